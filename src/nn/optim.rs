//! An optimiser group: the numbers that one Adam updates, of any number of networks.

use super::word;
use crate::engine::kernels::{Adam, Average, GradNorm, GradScale};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};

/// The numbers of a group on the device, and all that is kept about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// Its name: its buffers', and that of its tensors in checkpoints.
    pub name: &'static str,
    /// How many numbers.
    pub len: usize,
    /// Which of the groups it is: its place among the powers of Adam's decays.
    pub slot: usize,
    /// The numbers.
    pub values: BufferId,
    /// The layers' weights the other way round, for the way back to their inputs.
    pub transposed: BufferId,
    /// Their exponential moving average, which is evaluated and kept.
    pub average: BufferId,
    /// The average at its best so far.
    pub best: BufferId,
    /// Adam's mean of the gradient.
    pub mean: BufferId,
    /// Adam's mean of the squared gradient.
    pub variance: BufferId,
    /// The gradient, one a lane.
    pub grad: BufferId,
}

/// What Adam reads besides: settings, the powers of its decays, the clock, and where it notes a gradient that is not
/// finite.
#[derive(Clone, Copy, Debug)]
pub struct Optimizer {
    /// The settings.
    pub settings: BufferId,
    /// β1ᵗ and β2ᵗ of each group.
    pub powers: BufferId,
    /// The clock.
    pub clock: BufferId,
    /// The first step with a gradient that was not finite.
    pub status: BufferId,
    /// Lanes whose gradients are added up.
    pub lanes: usize,
}

impl Weights {
    /// Declares a group's buffers.
    pub fn declare(b: &mut PlanBuilder, name: &'static str, len: usize, slot: usize) -> Self {
        let mut shared = |what| b.buffer(format!("{name}.{what}"), Elem::F32, len, Scope::Shared);
        let (values, transposed) = (shared("values"), shared("transposed"));
        let (average, best) = (shared("average"), shared("best"));
        let (mean, variance) = (shared("mean"), shared("variance"));
        let grad = b.buffer(format!("{name}.grad"), Elem::F32, len, Scope::Lane);
        Self { name, len, slot, values, transposed, average, best, mean, variance, grad }
    }

    /// The name of the best weights in a checkpoint.
    pub fn best_name(&self) -> String {
        format!("best.{}", self.name)
    }

    /// Clips the gradient, added up over the lanes, to a norm, which is a word of the settings. `factor` is a number that all
    /// lanes share.
    pub fn clip(&self, b: &mut PlanBuilder, limit: usize, factor: BufferId, o: &Optimizer) {
        let norm = GradNorm { len: word(self.len), lanes: word(o.lanes), limit: word(limit) };
        b.call(norm, &[self.grad, o.settings, factor]);
        b.call(GradScale { len: word(self.len * o.lanes) }, &[factor, self.grad]);
    }

    /// Adam with the gradients of all lanes, and the average of what comes out. `rate` is a word of the settings.
    pub fn adam(&self, b: &mut PlanBuilder, rate: usize, o: &Optimizer) {
        self.step(b, rate, o);
        self.follow(b, o);
    }

    /// Adam alone.
    pub fn step(&self, b: &mut PlanBuilder, rate: usize, o: &Optimizer) {
        b.call(
            Adam { len: word(self.len), lanes: word(o.lanes), rate: word(rate), power: word(2 * self.slot) },
            &[self.values, self.mean, self.variance, self.grad, o.settings, o.powers, o.clock, o.status],
        );
    }

    /// The average follows the numbers.
    pub fn follow(&self, b: &mut PlanBuilder, o: &Optimizer) {
        b.call(Average { len: word(self.len) }, &[self.values, self.average, o.settings]);
    }
}
