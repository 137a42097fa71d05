//! Runs the plan: training steps, warm-up steps, evaluations, checkpoints.

use super::checkpoint::Checkpoint;
use super::config::{Config, Stage};
use super::kernels::hyper;
use super::layout::{Layout, Memory, Noise, Target};
use super::measures::{Evaluation, Metrics};
use super::rollout::{Sections, TrainingStep};
use crate::data::Dataset;
use crate::engine::kernels::words::{METRICS, clock, losses, settings};
use crate::engine::plan::{BufferId, Elem, Section};
use crate::engine::{Engine, Program, groups};
use crate::error::{Error, Result};
use crate::evaluate::Traces;
use crate::nn::Tensors;
use crate::problem::Problem;

/// Which rows to evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// What is trained on.
    Train = 0,
    /// What decides when to stop.
    Validation = 1,
    /// What nothing was decided on.
    Test = 2,
}

/// The weights of [`Mlp`](crate::nn::Mlp)'s initial values for the two networks.
const POLICY: u32 = 0;
const PREDICTOR: u32 = 1;

/// A training run on an engine.
pub struct Stepper {
    program: Program,
    layout: Layout,
    sections: Sections,
    problem: Problem,
    config: Config,
    stage: Stage,
    horizon: usize,
}

impl Stepper {
    /// Puts the data and freshly initialised networks on an engine.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or more memory than the engine has.
    pub fn new(engine: &Engine, data: &Dataset, config: Config) -> Result<Self> {
        Self::with_noise(engine, data, config, Noise::Drawn)
    }

    pub(super) fn with_noise(engine: &Engine, data: &Dataset, config: Config, noise: Noise) -> Result<Self> {
        let problem = data.problem().clone();
        let (layout, sections, plan) =
            Layout::build(&Target::of(engine), &problem, data.sizes(), data.divisor(), &config, noise)?;
        let mut program = Program::new(engine, plan)?;
        let costs: Vec<f64> = problem
            .features()
            .iter()
            .map(|f| f.cost)
            .chain(problem.class_weights().iter().copied())
            .collect();
        program.write_words(
            layout.groups,
            0,
            &groups::words(layout.sizes.features, problem.group_of_column()),
        );
        program.write(layout.costs, 0, &costs);
        if layout.sizes.input_noise {
            program.write(layout.spread, 0, &data.spread());
        }
        match data.packed() {
            Some(words) => program.write_words(layout.data_x, 0, &words),
            None => {
                for (split, at) in data.splits().iter().zip(layout.sizes.splits) {
                    program.write(layout.data_x, at.start * layout.sizes.columns, &split.x);
                }
            }
        }
        for (split, at) in data.splits().iter().zip(layout.sizes.splits) {
            program.write_words(layout.data_y, at.start, &split.y);
        }
        for (net, which) in [(layout.policy, POLICY), (layout.predictor, PREDICTOR)] {
            let values = net.mlp.init(config.seed, which);
            program.write(net.values, 0, &values);
            program.write(net.average, 0, &values);
        }
        program.write(layout.powers, 0, &[1.0; 4]);
        program.write_words(layout.status, 0, &[u32::MAX]);
        program.write_words(layout.clock, clock::SEED_LO, &[config.seed as u32, (config.seed >> 32) as u32]);
        let stage = Stage {
            alpha: config.alpha,
            policy_rate: config.policy_rate,
            predictor_rate: config.predictor_rate,
            ..Stage::default()
        };
        let horizon = layout.sizes.steps;
        let mut trainer = Self { program, layout, sections, problem, config, stage, horizon };
        trainer.set_stage(stage)?;
        Ok(trainer)
    }

    /// What a configuration takes on an engine, before anything is allocated.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or a memory budget too small for one instance.
    pub fn memory(engine: &Engine, data: &Dataset, config: &Config) -> Result<Memory> {
        Layout::memory(engine, data, config)
    }

    /// The limits a device must be requested with so that this table and configuration fit.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or a memory budget too small for one instance.
    pub fn required_limits(data: &Dataset, config: &Config) -> Result<wgpu::Limits> {
        Engine::required_limits(data, config)
    }

    /// Sets what changes from stage to stage.
    ///
    /// # Errors
    /// A temperature that is not above zero, or a λ that is not a number.
    pub fn set_stage(&mut self, stage: Stage) -> Result<()> {
        self.note_stage(stage)?;
        self.program.write_words(self.layout.clock, clock::COPIES, &[stage.twins as u32]);
        self.program.write(self.layout.settings, 0, &self.setting_values(&stage));
        Ok(())
    }

    /// Checks and remembers a stage whose values are written by other means.
    pub(super) fn note_stage(&mut self, stage: Stage) -> Result<()> {
        stage.check()?;
        for (name, stage, config) in
            [("parts", stage.parts, self.config.parts), ("blur", stage.blur, self.config.blur)]
        {
            if stage > 0.0 && config == 0.0 {
                return Err(Error::Config(format!(
                    "{name} is {stage} in the stage, but 0 in the configuration: its plan has no such step"
                )));
            }
        }
        self.stage = stage;
        Ok(())
    }

    /// What a stage writes: the hyper-parameters.
    pub(super) fn setting_values(&self, stage: &Stage) -> [f64; hyper::LEN] {
        let mut values = [0.0; hyper::LEN];
        values[hyper::ALPHA] = stage.alpha;
        values[hyper::TAU_HARD] = self.config.tau_hard;
        values[hyper::TAU_SOFT] = stage.tau_soft;
        values[hyper::LAMBDA] = stage.lambda;
        values[hyper::RATE_POLICY] = stage.policy_rate;
        values[hyper::RATE_PREDICTOR] = stage.predictor_rate;
        values[settings::BETA1] = 0.9;
        values[settings::BETA2] = 0.999;
        values[settings::EPSILON] = 1e-8;
        values[settings::AVERAGE] = stage.average;
        values[hyper::LURE] = stage.lure;
        values[hyper::GUARD] = stage.guard;
        values[hyper::EXACT_STOP] = f64::from(u8::from(stage.exact_stop));
        values[hyper::HAZARD] = stage.hazard;
        values[hyper::REINFORCE] = stage.score;
        values[hyper::ROLLOUTS] = stage.twins as f64;
        values[hyper::FOCUS] = stage.focus;
        values[hyper::SUBMASKS] = stage.parts;
        values[settings::INPUT_NOISE] = stage.blur;
        values
    }

    /// Sets the stop's bias so that, before anything is learned, a policy stops with the configured
    /// probability. With many features the initial weights would nearly always go on, a habit that is
    /// hard to unlearn: a decision that is never taken gets no gradient.
    pub(super) fn set_initial_stop(&mut self) {
        let Some(stop) = self.config.initial_stop else { return };
        let net = self.layout.policy;
        let features = self.layout.sizes.features;
        let bias = (features as f64 * stop / (1.0 - stop)).ln();
        for id in [net.values, net.average] {
            self.program.write(id, net.mlp.layers[2].bias + features, &[bias as f32]);
        }
    }

    /// What is learned.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The current stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Training steps of a pass over the training rows: with n twins it sees one in n of them, other ones
    /// each time.
    pub fn steps_per_epoch(&self) -> usize {
        self.layout.sizes.batches
    }

    /// Instances of a training step: the configured batch, or all training rows if they are fewer.
    pub fn batch(&self) -> usize {
        self.layout.sizes.batch
    }

    /// The plan and its buffers, to encode ranges of or to look into.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The same, to change buffers or to run ranges by hand: for tools and tests.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Trains for so many steps. The CPU engine has done them on return; the GPU engine has submitted
    /// them and works on.
    pub fn steps(&mut self, steps: usize) {
        self.run(self.training_step(&self.stage).whole, steps);
    }

    /// The training step in a stage, at the current horizon.
    pub(super) fn training_step(&self, stage: &Stage) -> TrainingStep {
        self.sections.step(self.horizon, self.is_scored(stage))
    }

    /// The plan's sections.
    pub(super) fn sections(&self) -> &Sections {
        &self.sections
    }

    /// Whether a stage's training steps are those without the relaxed gradient.
    fn is_scored(&self, stage: &Stage) -> bool {
        self.layout.sizes.scored && stage.score == 1.0 && stage.exact_stop
    }

    /// Acquisitions of the training rollouts: the horizon, or what [`Stepper::set_horizon`] has said.
    pub fn horizon(&self) -> usize {
        self.horizon
    }

    /// Chunks that an evaluation goes through.
    pub(super) fn chunks(&self, which: Which) -> usize {
        self.layout.sizes.splits[which as usize].len.div_ceil(self.layout.chunk_rows())
    }

    /// Ends the rollouts of the following training steps after so many acquisitions: the horizon, or one
    /// of those [`Stepper::shorter_horizons`] gives.
    ///
    /// # Errors
    /// There is no training step of that many in the plan.
    pub fn set_horizon(&mut self, steps: usize) -> Result<()> {
        let sizes = &self.layout.sizes;
        if steps != sizes.steps && !sizes.shorter().any(|shorter| shorter == steps) {
            return Err(Error::Config(format!("there is no training step of {steps} acquisitions")));
        }
        self.horizon = steps;
        Ok(())
    }

    /// The horizons below the full one that training steps exist for, from the shortest.
    pub fn shorter_horizons(&self) -> impl Iterator<Item = usize> + use<> {
        self.layout.sizes.shorter()
    }

    /// The horizon for the next epoch: the shortest beyond which less than `tail` was asked in the last
    /// one, or the next longer than the current one if more than twice that went on at its end.
    pub(super) fn next_horizon(&self, still_asking: [f64; 3], tail: f64) -> usize {
        let sizes = &self.layout.sizes;
        let there = sizes.marks.into_iter().zip(still_asking).filter(|&(mark, _)| mark > 0);
        let mut within = there.clone().filter(|&(mark, _)| mark <= self.horizon);
        if let Some((_, mass)) = within.clone().find(|&(mark, _)| mark == self.horizon)
            && mass > 2.0 * tail
        {
            return there.map(|(mark, _)| mark).find(|&mark| mark > self.horizon).unwrap_or(sizes.steps);
        }
        within.find(|&(_, mass)| mass < tail).map_or(self.horizon, |(mark, _)| mark)
    }

    /// Trains the predictor alone for so many steps, on masks drawn feature by feature.
    pub fn warm_up(&mut self, steps: usize) {
        self.run(self.sections.warm_up, steps);
    }

    pub(super) fn run(&mut self, section: Section, times: usize) {
        self.program.run(section.calls(), times);
    }

    /// The sums of a metrics buffer over its lanes, which are then set to zero.
    pub(super) fn take_metrics_blocking(&mut self, id: BufferId) -> Result<[f64; METRICS]> {
        let all = self.program.read_blocking(id)?;
        let mut sums = [0.0; METRICS];
        for lane in all.chunks_exact(METRICS) {
            for (sum, value) in sums.iter_mut().zip(lane) {
                *sum += value;
            }
        }
        self.program.write(id, 0, &vec![0.0; all.len()]);
        Ok(sums)
    }

    /// The training metrics since the last call, when everything before is done.
    ///
    /// # Errors
    /// A gradient was not a finite number (with the step), or the device was lost.
    pub fn metrics_blocking(&mut self) -> Result<Metrics> {
        let sums = self.take_metrics_blocking(self.layout.metrics)?;
        let bad = self.program.read_words_blocking(self.layout.status)?[0];
        Metrics::of_sums(sums, bad)
    }

    /// Runs the greedy policy on a split.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn evaluate_blocking(&mut self, which: Which) -> Result<Evaluation> {
        self.evaluate_section_blocking(self.sections.evaluate, which)
    }

    /// Evaluates the predictor alone on a split, everything seen at no cost.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn evaluate_all_blocking(&mut self, which: Which) -> Result<Evaluation> {
        self.evaluate_section_blocking(self.sections.evaluate_all, which)
    }

    fn evaluate_section_blocking(&mut self, sections: [Section; 3], which: Which) -> Result<Evaluation> {
        let rows = self.layout.sizes.splits[which as usize].len;
        if rows == 0 {
            return Err(Error::Data(format!("there are no {which:?} rows to evaluate on")));
        }
        let id = self.layout.chunk.metrics;
        self.take_metrics_blocking(id)?;
        self.program.write_words(self.layout.clock, clock::CHUNK, &[0]);
        self.run(sections[which as usize], self.chunks(which));
        // The configuration's α: that of the current stage may still be on its way there.
        Ok(Evaluation::of_sums(self.take_metrics_blocking(id)?, self.config.alpha))
    }

    /// Runs the greedy policy on a split and reads back each instance's path and answer.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn traces_blocking(&mut self, which: Which) -> Result<Traces> {
        let sizes = self.layout.sizes.clone();
        let rows = sizes.splits[which as usize].len;
        let chunk_rows = self.layout.chunk_rows();
        let mut traces = Traces {
            features: sizes.features,
            steps: sizes.steps,
            path: vec![],
            guess: vec![],
            loss: vec![],
        };
        self.program.write_words(self.layout.clock, clock::CHUNK, &[0]);
        for chunk in 0..rows.div_ceil(chunk_rows) {
            self.run(self.sections.evaluate[which as usize], 1);
            let path = self.program.read_words_blocking(self.layout.chunk.path)?;
            let scores = self.program.read_blocking(self.layout.chunk.losses)?;
            // A lane's path lies step by step, its instances side by side.
            for instance in 0..chunk_rows.min(rows - chunk * chunk_rows) {
                let (lane, row) = (instance / sizes.evaluation_rows, instance % sizes.evaluation_rows);
                let lane_path = &path[lane * sizes.evaluation_rows * sizes.steps..];
                traces.path.extend((0..sizes.steps).map(|t| lane_path[t * sizes.evaluation_rows + row]));
                let score = &scores[instance * losses::LEN..][..losses::LEN];
                traces.loss.push(score[losses::LOSS] as f32);
                traces.guess.push(score[losses::GUESS] as u32);
            }
        }
        Ok(traces)
    }

    /// The answer and its loss for each instance of a split, everything seen at no cost.
    ///
    /// # Errors
    /// The device was lost.
    pub fn answers_blocking(&mut self, which: Which) -> Result<Vec<(u32, f64)>> {
        let rows = self.layout.sizes.splits[which as usize].len;
        let chunk_rows = self.layout.chunk_rows();
        let mut answers = Vec::with_capacity(rows);
        self.program.write_words(self.layout.clock, clock::CHUNK, &[0]);
        for chunk in 0..rows.div_ceil(chunk_rows) {
            self.run(self.sections.evaluate_all[which as usize], 1);
            let scores = self.program.read_blocking(self.layout.chunk.losses)?;
            let there = scores.chunks_exact(losses::LEN).take(chunk_rows.min(rows - chunk * chunk_rows));
            answers.extend(there.map(|score| (score[losses::GUESS] as u32, score[losses::LOSS])));
        }
        Ok(answers)
    }

    /// Trains the predictor alone for so many steps, on everything: the reference that no choice of
    /// features can beat.
    pub fn reference_steps(&mut self, steps: usize) {
        self.run(self.sections.reference, steps);
    }

    /// Replaces the weights of both networks, given in PyTorch's layout.
    pub fn set_weights(&mut self, policy: &[Tensors], predictor: &[Tensors]) {
        for (net, tensors) in [(self.layout.policy, policy), (self.layout.predictor, predictor)] {
            let values = net.mlp.pack(tensors);
            self.program.write(net.values, 0, &values);
            self.program.write(net.average, 0, &values);
        }
    }

    /// The predictor's averaged weights, in PyTorch's layout.
    ///
    /// # Errors
    /// The device was lost.
    pub fn predictor_blocking(&self) -> Result<Vec<Tensors>> {
        let net = self.layout.predictor;
        Ok(net.mlp.unpack(&self.program.read_blocking(net.average)?))
    }

    /// The buffers a checkpoint holds, by name: all that a step reads and an earlier step wrote.
    pub(super) fn state_buffers(&self) -> Vec<(String, BufferId)> {
        let l = &self.layout;
        [
            l.policy.values,
            l.policy.average,
            l.policy.mean,
            l.policy.variance,
            l.predictor.values,
            l.predictor.average,
            l.predictor.mean,
            l.predictor.variance,
            l.clock,
            l.powers,
            l.status,
            l.metrics,
        ]
        .into_iter()
        .map(|id| (self.program.plan().buffer(id).name.clone(), id))
        .collect()
    }

    /// Everything needed to continue with equal bits, when everything before is done.
    ///
    /// # Errors
    /// The device was lost, or the engine is the f64 one: checkpoints hold f32.
    pub fn checkpoint_blocking(&self) -> Result<Checkpoint> {
        if matches!(self.program, Program::CpuF64(_)) {
            return Err(Error::Config(
                "checkpoints hold f32: the f64 engine is for checking gradients".into(),
            ));
        }
        let mut checkpoint = Checkpoint::new(&self.config, self.stage);
        for (name, id) in self.state_buffers() {
            match self.program.plan().buffer(id).elem {
                Elem::F32 => {
                    let values = self.program.read_blocking(id)?;
                    checkpoint.reals.insert(name, values.into_iter().map(|value| value as f32).collect());
                }
                Elem::U32 => {
                    checkpoint.words.insert(name, self.program.read_words_blocking(id)?);
                }
            }
        }
        Ok(checkpoint)
    }

    /// Continues from a checkpoint of the same configuration, with equal bits if it is of an engine of the same kind.
    ///
    /// # Errors
    /// The checkpoint is of another configuration or problem; nothing is changed then.
    pub fn restore(&mut self, checkpoint: &Checkpoint) -> Result<()> {
        checkpoint.check_config(&self.config)?;
        checkpoint.stage.check()?;
        for (name, id) in self.state_buffers() {
            let decl = self.program.plan().buffer(id);
            // An engine of another kind has another number of lanes.
            let lanes = if id == self.layout.metrics { checkpoint.lanes(&name, decl.len) } else { 1 };
            checkpoint.check_len(&name, decl.elem == Elem::F32, lanes * decl.len)?;
        }
        for (name, id) in self.state_buffers() {
            if id == self.layout.metrics {
                let values = checkpoint.on_lanes(&name, self.layout.sizes.lanes, METRICS);
                self.program.write(id, 0, &values);
            } else if let Some(values) = checkpoint.reals.get(&name) {
                self.program.write(id, 0, values);
            } else if let Some(values) = checkpoint.words.get(&name) {
                self.program.write_words(id, 0, values);
            }
        }
        self.set_stage(checkpoint.stage)
    }
}
