//! Contenders, measured in turn, round by round: what else the machine does hits all of them alike, and
//! ratios within a round can be compared.

use super::peers::Peer;
use super::stats::median;
use super::{Machine, Outcome};
use std::time::Instant;

/// How often a contender's work was done in a second, measured for about so many seconds.
type Rate<'a> = Box<dyn FnMut(f64) -> Outcome<f64> + 'a>;

/// Something that is measured.
pub struct Contender<'a> {
    /// Its name in tables.
    pub name: String,
    rate: Rate<'a>,
    /// Its rates, round by round.
    pub rates: Vec<f64>,
}

impl<'a> Contender<'a> {
    /// Ours: `work(n)` does the work n times and returns when it is done. Warmed up here.
    pub fn ours(name: impl Into<String>, mut work: impl FnMut(usize) -> Outcome<()> + 'a) -> Outcome<Self> {
        let mut seconds_of = move |times: usize| -> Outcome<f64> {
            let start = Instant::now();
            work(times)?;
            Ok(start.elapsed().as_secs_f64().max(1e-9))
        };
        seconds_of(1)?;
        // What one takes, from as many as take 20 ms together.
        let (mut times, mut spent) = (1, seconds_of(1)?);
        while spent < 0.02 {
            times *= 2;
            spent = seconds_of(times)?;
        }
        let mut each = spent / times as f64;
        let rate = move |seconds: f64| {
            let times = ((seconds / each) as usize).max(1);
            each = seconds_of(times)? / times as f64;
            Ok(1.0 / each)
        };
        Ok(Self { name: name.into(), rate: Box::new(rate), rates: Vec::new() })
    }

    /// A peer that has been prepared.
    pub fn peer(peer: &'a mut Peer) -> Self {
        let name = peer.recipe.name.into();
        Self { name, rate: Box::new(|seconds| peer.rate(seconds)), rates: Vec::new() }
    }

    /// The median of its rates.
    pub fn median(&self) -> Option<f64> {
        median(self.rates.iter().copied())
    }

    /// The median, over the rounds, of how many times faster than another it is.
    pub fn times(&self, other: &Contender) -> Option<f64> {
        median(self.rates.iter().zip(&other.rates).map(|(ours, theirs)| ours / theirs))
    }
}

/// Measures all of them, round after round, and the machine's peak in each; every other round goes the other
/// way. Returns the peaks.
pub fn run(
    contenders: &mut [Contender],
    machine: &mut Machine,
    rounds: usize,
    seconds: f64,
) -> Outcome<Vec<f64>> {
    let mut peaks = Vec::with_capacity(rounds);
    for round in 0..rounds {
        peaks.push(machine.measure(seconds.min(0.3)));
        let mut order: Vec<usize> = (0..contenders.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for index in order {
            let contender = &mut contenders[index];
            let rate = (contender.rate)(seconds)?;
            contender.rates.push(rate);
        }
    }
    Ok(peaks)
}
