//! How often something is done in a second.

use crate::engine::Instant;
use crate::error::Result;

/// How often a second `work(n)` does something, which it does n times before it returns; from about so many seconds of it.
/// It is done twice before, as what is done first meets memory and code for the first time.
///
/// # Errors
/// What the work has.
pub fn rate_blocking(seconds: f64, mut work: impl FnMut(usize) -> Result<()>) -> Result<f64> {
    let mut seconds_of = |times: usize| -> Result<f64> {
        let begun = Instant::now();
        work(times)?;
        Ok(begun.elapsed().as_secs_f64().max(1e-9))
    };
    seconds_of(2)?;
    // More and more, until it takes long enough to tell how many fit.
    let (mut times, mut took) = (1, seconds_of(1)?);
    while took < seconds / 10.0 {
        times *= 2;
        took = seconds_of(times)?;
    }
    let fitting = (times as f64 * seconds / took) as usize;
    // What takes as long as this already has been measured well enough.
    if fitting <= times {
        return Ok(times as f64 / took);
    }
    Ok(fitting as f64 / seconds_of(fitting)?)
}
