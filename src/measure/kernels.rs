//! Where the time of some calls goes: kernel by kernel, with the arithmetic and the bytes that each needs at least.

use crate::engine::plan::{Call, Plan};
use crate::engine::{Instant, Program};
use crate::error::Result;
use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

/// A kernel's calls.
#[derive(Clone, Copy, Debug, Default)]
pub struct Part {
    /// How many.
    pub calls: usize,
    /// Floating-point operations of all of them.
    pub flops: f64,
    /// Bytes that all of them have to read and write at least.
    pub bytes: f64,
    /// Seconds of all of them; 0 where they were only counted.
    pub seconds: f64,
}

/// By kernel, and by the operations of a call where calls of different sizes are told apart.
pub type Parts = BTreeMap<(&'static str, Option<u64>), Part>;

/// Who told the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The device, when each call began and ended.
    Timestamps,
    /// The host: each call was waited for.
    Host,
}

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Enough {
    /// Rounds, at least.
    pub rounds: usize,
    /// Seconds, at least.
    pub seconds: f64,
}

fn key(call: &Call, sizes: bool) -> (&'static str, Option<u64>) {
    (call.kernel.name, sizes.then_some(call.flops))
}

/// What some calls need.
pub fn counted(plan: &Plan, calls: Range<usize>, sizes: bool) -> Parts {
    let mut parts = Parts::new();
    for call in &plan.calls()[calls] {
        let part = parts.entry(key(call, sizes)).or_default();
        part.calls += 1;
        part.flops += call.flops as f64;
        part.bytes += call.bytes as f64;
    }
    parts
}

/// The same with the time each takes, the mean of all rounds. The calls are run in order, each by itself, a lane after the
/// other on one core; there should have been some before, as the first ones take longer.
///
/// # Errors
/// The device was lost.
pub fn timed_blocking(
    program: &mut Program,
    calls: Range<usize>,
    sizes: bool,
    enough: Enough,
) -> Result<(Parts, Clock)> {
    let mut parts = counted(program.plan(), calls.clone(), sizes);
    let (begun, mut rounds, mut clock) = (Instant::now(), 0, Clock::Host);
    let mut sums = vec![0.0; calls.len()];
    while rounds < enough.rounds || begun.elapsed().as_secs_f64() < enough.seconds {
        let (seconds, told_by) = round_blocking(program, calls.clone())?;
        sums.iter_mut().zip(seconds).for_each(|(sum, seconds)| *sum += seconds);
        clock = told_by;
        rounds += 1;
    }
    for (call, sum) in program.plan().calls()[calls].iter().zip(sums) {
        parts.entry(key(call, sizes)).or_default().seconds += sum / rounds.max(1) as f64;
    }
    Ok((parts, clock))
}

/// Seconds of each call, once.
fn round_blocking(program: &mut Program, calls: Range<usize>) -> Result<(Vec<f64>, Clock)> {
    if let Some(seconds) = program.gpu().map(|gpu| gpu.stamped_blocking(calls.clone())).transpose()?.flatten()
    {
        return Ok((seconds, Clock::Timestamps));
    }
    // On one of rayon's threads: to get there takes as long as a small call.
    rayon::scope(|_| {
        let nothing =
            (0..20).map(|_| waited(program, calls.start..calls.start)).collect::<Result<Vec<_>>>()?;
        let nothing = nothing.into_iter().min().unwrap_or_default();
        let of = |call: usize| Ok(waited(program, call..call + 1)?.saturating_sub(nothing).as_secs_f64());
        Ok((calls.map(of).collect::<Result<_>>()?, Clock::Host))
    })
}

/// Runs some calls until they are done.
fn waited(program: &mut Program, calls: Range<usize>) -> Result<Duration> {
    let begun = Instant::now();
    program.run(calls, 1);
    if let Program::Gpu(program) = program {
        program.gpu().wait_blocking()?;
    }
    Ok(begun.elapsed())
}
