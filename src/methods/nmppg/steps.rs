//! NM-PPG step by step, for tests, benchmarks and baselines: what a trainer does by its schedule, by hand.

use super::plan::NmPpg;
use crate::data::Part;
use crate::engine::kernels::words::losses;
use crate::error::Result;
use crate::nn::Tensors;
use crate::policy::history::Evaluation;
use crate::train::Stepper;

impl Stepper<NmPpg> {
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
