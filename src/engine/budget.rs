//! How much of a plan goes into a host's frame, and learning how much fits.

use super::plan::Plan;
use std::collections::VecDeque;
use std::ops::Range;

/// How much work to record at a time. A slice may end anywhere, also in the middle of a training step.
/// Zero records nothing; anything above at least one dispatch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// At most so many dispatches.
    Dispatches(usize),
    /// At most so many calls of kernels, of which several may be one dispatch; and only whole dispatches, of which the first one
    /// goes in however many calls it is.
    Calls(usize),
    /// About so many floating-point operations.
    Flops(u64),
    /// About so many milliseconds of the device's time. How much that is, is learned from timestamps if
    /// the device has `TIMESTAMP_QUERY`, else from how much later frames with work are done than frames
    /// without: the first few slices are careful ones.
    Millis(f64),
}

/// What is left of a budget while a slice is recorded.
pub(crate) struct Allowance {
    budget: Budget,
    left: f64,
    taken: usize,
}

impl Allowance {
    /// A budget, to be spent on the calls of a plan.
    pub fn new(budget: Budget) -> Self {
        let left = match budget {
            Budget::Dispatches(n) | Budget::Calls(n) => n as f64,
            Budget::Flops(n) => n as f64,
            // Not a number is nothing.
            Budget::Millis(ms) => ms.max(0.0) * 1e6 * AIM,
        };
        Self { budget, left, taken: 0 }
    }

    /// Takes calls from the front of a range as long as there is something left; says where it ended. Calls that can be one
    /// dispatch are taken together where all of them fit, else one by one.
    pub fn take(&mut self, range: Range<usize>, plan: &Plan, pace: &Pace) -> usize {
        let mut call = range.start;
        while call < range.end {
            let fused = plan.fused().binary_search_by_key(&call, |fused| fused.calls.start).ok();
            let whole = fused.map(|at| plan.fused()[at].calls.clone()).filter(|calls| calls.end <= range.end);
            let by_calls = matches!(self.budget, Budget::Calls(_));
            let single = (whole.is_none() || !by_calls).then_some(call..call + 1);
            let parts = whole.into_iter().chain(single);
            let mut costs = parts.map(|calls| (calls.end, self.cost(calls, plan, pace)));
            // The first one goes in whatever it costs: else a small budget would never get anywhere.
            let fits = |(end, cost): &(usize, f64)| {
                let is_first = self.taken == 0 && (by_calls || *end == call + 1);
                self.left > 0.0 && (*cost <= self.left || is_first)
            };
            let Some((end, cost)) = costs.find(fits) else {
                self.left = 0.0;
                return call;
            };
            self.left -= cost;
            self.taken += 1;
            call = end;
        }
        range.end
    }

    /// What some calls that are one dispatch take of the budget.
    fn cost(&self, calls: Range<usize>, plan: &Plan, pace: &Pace) -> f64 {
        match self.budget {
            Budget::Dispatches(_) => 1.0,
            Budget::Calls(_) => calls.len() as f64,
            Budget::Flops(_) => plan.calls()[calls].iter().map(|call| call.flops as f64).sum(),
            Budget::Millis(_) => calls.map(|call| pace.nanos(plan, call)).sum(),
        }
    }

    /// Whether nothing more goes in.
    pub fn is_spent(&self) -> bool {
        self.left <= 0.0
    }
}

/// What is aimed at of a budget in time: as many frames take longer than expected as take less.
const AIM: f64 = 0.85;

/// Frames between two looks at how long a frame takes without work.
const IDLE_EVERY: u32 = 32;
/// Such looks that are remembered.
const IDLE_KEPT: usize = 5;
/// A measurement changes an estimate by this factor at most: the first ones may be far off.
const MOST: f64 = 4.0;

/// What a plan's calls take on the device, as far as is known.
#[derive(Debug)]
pub(crate) struct Pace {
    /// By what the first guess is to be multiplied, for all calls of a kernel and for each single call: the
    /// former is soon known for calls not met before, the latter makes it exact.
    kernels: Vec<f64>,
    calls: Vec<f64>,
    /// Which of the plan's kernels each call is of.
    kernel_of: Vec<usize>,
    /// Whether a kernel has been run: drivers compile some things when they meet them.
    seen: Vec<bool>,
    measured: u32,
    idle: VecDeque<f64>,
    frames: u32,
}

impl Pace {
    pub fn new(plan: &Plan) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let mut number = |name| {
            names.iter().position(|&known| known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        };
        let kernel_of: Vec<usize> = plan.calls().iter().map(|call| number(call.kernel.name)).collect();
        Self {
            kernels: vec![1.0; names.len()],
            calls: vec![1.0; plan.calls().len()],
            seen: vec![false; names.len()],
            kernel_of,
            measured: 0,
            idle: VecDeque::new(),
            frames: 0,
        }
    }

    /// What a call takes. Before anything was measured: as slow as on the slowest software adapter we know,
    /// so that the first frames are not held up.
    fn nanos(&self, plan: &Plan, call: usize) -> f64 {
        let guess = 30_000.0 + plan.calls()[call].flops as f64;
        self.kernels[self.kernel_of[call]] * self.calls[call] * guess
    }

    /// Whether to leave this frame without work, to see how long one takes then: two in a row, of which
    /// the second no longer has to wait for an earlier one's work. Only where there are no timestamps.
    pub fn wants_idle(&mut self) -> bool {
        self.frames = (self.frames + 1) % IDLE_EVERY;
        self.frames < 2
    }

    /// Whether the frame just asked about is the one that counts.
    pub fn is_baseline(&self) -> bool {
        self.frames == 1
    }

    /// How long a frame without work took from its recording to its end.
    pub fn learn_idle(&mut self, nanos: f64) {
        self.idle.push_back(nanos);
        if self.idle.len() > IDLE_KEPT {
            self.idle.pop_front();
        }
    }

    /// How long a frame with some calls took from its recording to its end.
    pub fn learn_latency(&mut self, plan: &Plan, calls: &[Range<usize>], nanos: f64) {
        let mut idle: Vec<f64> = self.idle.iter().copied().collect();
        idle.sort_by(f64::total_cmp);
        if let Some(usual) = idle.get(idle.len() / 2) {
            self.learn(plan, calls, nanos - usual);
        }
    }

    /// How long some calls took, all together.
    pub fn learn(&mut self, plan: &Plan, calls: &[Range<usize>], nanos: f64) {
        let mut in_it = vec![false; self.kernels.len()];
        let mut predicted = 0.0;
        for call in calls.iter().cloned().flatten() {
            in_it[self.kernel_of[call]] = true;
            predicted += self.nanos(plan, call);
        }
        let kernels = || in_it.iter().enumerate().filter(|(_, is)| **is).map(|(kernel, _)| kernel);
        if kernels().any(|kernel| !self.seen[kernel]) {
            kernels().for_each(|kernel| self.seen[kernel] = true);
            return;
        }
        if predicted <= 0.0 || !nanos.is_finite() {
            return;
        }
        let ratio = (nanos.max(0.0) / predicted).clamp(1.0 / MOST, MOST);
        // Fast at first and where it is far off, else calm: single measurements are noisy.
        let is_surprise = !(0.5..=2.0).contains(&ratio);
        let trust = if self.measured < 8 || is_surprise { 0.7 } else { 0.2 };
        self.measured = self.measured.saturating_add(1);
        let learn =
            |factor: &mut f64, share: f64| *factor = (*factor * ratio.powf(share * trust)).clamp(1e-5, 1e5);
        kernels().for_each(|kernel| learn(&mut self.kernels[kernel], 0.4));
        // Once each, also those that were run several times.
        let mut calls: Vec<usize> = calls.iter().cloned().flatten().collect();
        calls.sort_unstable();
        calls.dedup();
        calls.into_iter().for_each(|call| learn(&mut self.calls[call], 0.6));
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernels::{Advance, Gumbel};
    use super::super::plan::{Elem, PlanBuilder, Scope};
    use super::*;

    /// Calls of two kernels, the second half of the other one.
    fn plan(calls: usize) -> Plan {
        let mut b = PlanBuilder::new(1);
        let clock = b.buffer("clock", Elem::U32, 8, Scope::Shared);
        let [powers, settings, gumbel] =
            ["powers", "settings", "gumbel"].map(|name| b.buffer(name, Elem::F32, 4, Scope::Shared));
        for call in 0..calls {
            if call < calls / 2 {
                b.call(Advance { slots: 1, chunk: 0, batches: 1 }, &[clock, powers, settings]);
            } else {
                b.call(Gumbel { rows: 1, steps: 1, actions: 2, pitch: 4, first: 0 }, &[clock, gumbel]);
            }
        }
        b.finish().expect("valid")
    }

    #[test]
    fn a_budget_is_spent_and_a_small_one_still_gets_somewhere() {
        let plan = plan(10);
        let pace = Pace::new(&plan);
        let each = plan.calls()[0].flops; // the first five are alike
        for (budget, end) in [
            (Budget::Dispatches(0), 0),
            (Budget::Dispatches(3), 3),
            (Budget::Dispatches(30), 10),
            (Budget::Flops(0), 0),
            (Budget::Flops(1), 1),
            (Budget::Flops(each * 4), 4),
            (Budget::Millis(0.0), 0),
            (Budget::Millis(-1.0), 0),
            (Budget::Millis(f64::NAN), 0),
            (Budget::Millis(1e-9), 1),
        ] {
            let mut allowance = Allowance::new(budget);
            assert_eq!(allowance.take(0..10, &plan, &pace), end, "{budget:?}");
        }
        let mut allowance = Allowance::new(Budget::Dispatches(3));
        assert_eq!((allowance.take(0..2, &plan, &pace), allowance.is_spent()), (2, false));
        assert_eq!((allowance.take(5..9, &plan, &pace), allowance.is_spent()), (6, true));
    }

    #[test]
    fn calls_that_are_one_dispatch_are_taken_together_where_they_fit() {
        let mut b = PlanBuilder::new(1);
        let clock = b.buffer("clock", Elem::U32, 8, Scope::Shared);
        let gumbel = b.buffer("gumbel", Elem::F32, 4, Scope::Shared);
        let draw = |b: &mut PlanBuilder, times: usize| {
            (0..times).for_each(|_| {
                b.call(Gumbel { rows: 1, steps: 1, actions: 2, pitch: 4, first: 0 }, &[clock, gumbel])
            });
        };
        draw(&mut b, 1);
        b.chain(1, 1, |b| draw(b, 5));
        draw(&mut b, 2);
        let plan = b.finish().expect("valid");
        assert_eq!((plan.dispatches(0..8), plan.dispatches(2..8), plan.dispatches(0..4)), (4, 6, 4));
        let (pace, each) = (Pace::new(&plan), plan.calls()[0].flops);
        for (budget, from, end) in [
            (Budget::Dispatches(2), 0, 6),
            (Budget::Dispatches(2), 2, 4),
            (Budget::Flops(3 * each), 0, 3),
            (Budget::Flops(6 * each), 0, 6),
            (Budget::Calls(3), 0, 1),
            (Budget::Calls(3), 1, 6),
            (Budget::Calls(6), 0, 6),
            (Budget::Calls(6), 2, 8),
            (Budget::Calls(0), 0, 0),
        ] {
            let mut allowance = Allowance::new(budget);
            assert_eq!(allowance.take(from..8, &plan, &pace), end, "{budget:?} from {from}");
        }
    }

    /// A device on which the second half of the calls is ten times as slow.
    #[test]
    fn the_pace_is_learned() {
        let plan = plan(100);
        let mut pace = Pace::new(&plan);
        let truth = |range: &Range<usize>| range.clone().map(|i| if i < 50 { 2e3 } else { 2e4 }).sum::<f64>();
        let mut at = 0;
        let mut last = Vec::new();
        for _ in 0..2_000 {
            let end = Allowance::new(Budget::Millis(0.1)).take(at..100, &plan, &pace);
            let range = at..end;
            pace.learn(&plan, std::slice::from_ref(&range), truth(&range));
            // A slice that the plan's end cuts short says nothing.
            if end < 100 {
                last.push(truth(&range));
            }
            at = end % 100;
        }
        let late = &last[last.len() - 20..];
        assert!(late.iter().all(|&nanos| nanos < 1.5e5), "{late:?}");
        assert!(late.iter().sum::<f64>() > 20.0 * 5e4, "{late:?}");
    }

    #[test]
    fn latencies_count_above_those_of_idle_frames() {
        let plan = plan(100);
        let mut pace = Pace::new(&plan);
        assert_eq!((0..66).filter(|_| pace.wants_idle()).count(), 5);
        for _ in 0..200 {
            let end = Allowance::new(Budget::Millis(0.2)).take(0..100, &plan, &pace);
            pace.learn_idle(16e6);
            pace.learn_latency(&plan, std::slice::from_ref(&(0..end)), 16e6 + end as f64 * 1e4);
        }
        let end = Allowance::new(Budget::Millis(0.2)).take(0..100, &plan, &pace);
        assert!((15..=25).contains(&end), "{end}");
    }
}
