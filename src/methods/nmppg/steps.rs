//! NM-PPG step by step, for tests, benchmarks and baselines: what a trainer does by its schedule, by hand.

use super::plan::{NmPpg, TrainingStep};
use super::stage::Stage;
use crate::data::Part;
use crate::engine::kernels::words::{clock, losses};
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::policy::history::Evaluation;
use crate::train::Stepper;

/// Means over the training instances since the last time they were read.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Metrics {
    /// J, entropy bonus included.
    pub objective: f64,
    /// G = J + λ H: expected loss and cost.
    pub loss_and_cost: f64,
    /// H: entropy summed over the surviving steps.
    pub entropy: f64,
    /// The predictor's loss over all steps of the path.
    pub prediction_loss: f64,
    /// How many instances these are the means of.
    pub instances: f64,
}

impl Stepper<NmPpg> {
    /// The training metrics since the last call, when everything before is done.
    ///
    /// # Errors
    /// A gradient was not a finite number (with the step), or the device was lost.
    pub fn metrics_blocking(&mut self) -> Result<Metrics> {
        let means = self.means_blocking()?;
        Ok(Metrics {
            objective: means["objective"],
            loss_and_cost: means["loss_and_cost"],
            entropy: means["entropy"],
            prediction_loss: means["prediction_loss"],
            instances: means["instances"],
        })
    }

    /// The training step in a stage, at the current horizon.
    pub(super) fn training_step(&self, stage: &Stage) -> TrainingStep {
        self.method.sections.step(self.state.horizon, self.method.is_reinforced(stage))
    }

    /// Acquisitions of the training rollouts: the horizon, or what [`Stepper::set_horizon`] has said.
    pub fn horizon(&self) -> usize {
        self.state.horizon
    }

    /// Ends the rollouts of the following training steps after so many acquisitions: the horizon, or one
    /// of those [`Stepper::shorter_horizons`] gives.
    ///
    /// # Errors
    /// There is no training step of that many in the plan.
    pub fn set_horizon(&mut self, steps: usize) -> Result<()> {
        let shape = self.method.layout.shape;
        if steps != shape.steps && !shape.shorter().any(|shorter| shorter == steps) {
            return Err(Error::Config(format!("there is no training step of {steps} acquisitions")));
        }
        self.state.horizon = steps;
        Ok(())
    }

    /// The horizons below the full one that training steps exist for, from the shortest.
    pub fn shorter_horizons(&self) -> impl Iterator<Item = usize> + use<> {
        self.method.layout.shape.shorter()
    }

    /// Trains the predictor alone for so many steps, on masks drawn feature by feature.
    pub fn warm_up(&mut self, steps: usize) {
        self.run(self.method.sections.warm_up, steps);
    }

    /// Trains the predictor alone for so many steps, on everything: the reference that no choice of
    /// features can beat.
    pub fn reference_steps(&mut self, steps: usize) {
        self.run(self.method.sections.reference, steps);
    }

    /// Evaluates the predictor alone on a split, everything seen at no cost.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn evaluate_all_blocking(&mut self, part: Part) -> Result<Evaluation> {
        let all = self.evaluate_section_blocking(self.method.sections.evaluate_all, part, 1)?;
        Ok(Evaluation::mean(&all))
    }

    /// The answer and its loss for each instance of a split, everything seen at no cost.
    ///
    /// # Errors
    /// The device was lost.
    pub fn answers_blocking(&mut self, part: Part) -> Result<Vec<(u32, f64)>> {
        let sections = self.method.sections.evaluate_all;
        let (mut answers, losses) = (Vec::new(), self.batches.chunk.losses);
        self.each_chunk_blocking(sections, part, |program, there| {
            let found = program.read_blocking(losses)?;
            let found = found.chunks_exact(losses::LEN).take(there);
            answers.extend(found.map(|answer| (answer[losses::GUESS] as u32, answer[losses::LOSS])));
            Ok(())
        })?;
        Ok(answers)
    }

    /// Replaces the weights of both networks, given in PyTorch's layout.
    pub fn set_weights(&mut self, policy: &[Tensors], predictor: &[Tensors]) {
        let networks =
            [(self.method.layout.policy.clone(), policy), (self.method.layout.predictor.clone(), predictor)];
        for (network, tensors) in networks {
            let values = network.stack.pack(tensors);
            self.program.write(network.weights.values, 0, &values);
            self.program.write(network.weights.average, 0, &values);
        }
    }

    /// The predictor's averaged weights, in PyTorch's layout.
    ///
    /// # Errors
    /// The device was lost.
    pub fn predictor_blocking(&self) -> Result<Vec<Tensors>> {
        let network = &self.method.layout.predictor;
        Ok(network.stack.unpack(&self.program.read_blocking(network.weights.average)?))
    }
}
