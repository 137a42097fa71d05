//! The threads that compute.

use super::Failure;
use std::sync::atomic::{AtomicBool, Ordering};

/// Starts them, so that threads that cannot be had are an error here and no panic later, and so that what they take of
/// the memory is taken when somebody asks how much is left.
///
/// # Errors
/// The system gives no more threads.
pub fn start() -> Result<(), Failure> {
    static STARTED: AtomicBool = AtomicBool::new(false);
    if STARTED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    rayon::ThreadPoolBuilder::new().build_global().map_err(|error| {
        Failure::Refused(format!(
            "the threads that compute cannot be started: {error}; with RAYON_NUM_THREADS=1 in the environment there are fewer"
        ))
    })?;
    rayon::broadcast(|_| ());
    Ok(())
}
