//! A method on an engine, step by step: training steps, evaluations, checkpoints.

use super::batches::{Batches, MOST_PASSES};
use super::checkpoint::Checkpoint;
use super::fit::{Built, Memory, Target};
use super::limits::{Shape, required_limits};
use super::method::{Method, Settings};
use super::sizes::{Noise, Sizes};
use crate::data::{Dataset, Part};
use crate::engine::kernels::words::{METRICS, clock, losses};
use crate::engine::plan::{BufferId, Elem, Section};
use crate::engine::{Engine, Program};
use crate::error::{Error, Result};
use crate::policy::evaluate::Traces;
use crate::policy::history::{Evaluation, Means};
use crate::problem::Problem;

/// A method's plan with a table on an engine.
pub struct Stepper<M: Method> {
    pub(crate) program: Program,
    pub(crate) method: M,
    pub(crate) batches: Batches,
    problem: Problem,
    config: M::Config,
    stage: M::Stage,
    /// Where the method's schedule is, for steps that are done one by one.
    pub(crate) state: M::State,
}

impl<M: Method> Stepper<M> {
    /// Puts the data and freshly initialised networks on an engine.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or more memory than the engine has.
    pub fn new(engine: &Engine, data: &Dataset, config: M::Config) -> Result<Self> {
        Self::with_noise(engine, data, config, Noise::Drawn)
    }

    /// The same where the host may write the noise: [`Noise::Given`] replays a step of somebody else's.
    ///
    /// # Errors
    /// As [`Stepper::new`].
    pub fn with_noise(engine: &Engine, data: &Dataset, config: M::Config, noise: Noise) -> Result<Self> {
        let Built { method, batches, plan } = Target::of(engine).build::<M>(data.into(), &config, noise)?;
        let problem = data.problem().clone();
        let mut program = Program::new(engine, plan)?;
        batches.upload(&mut program, &problem, data, config.seed());
        for (id, values) in method.constants(&config) {
            program.write(id, 0, &values);
        }
        let (stage, state) = (M::first_stage(&config), method.begin(&config));
        let mut stepper = Self { program, method, batches, problem, config, stage: stage.clone(), state };
        stepper.set_stage(stage)?;
        stepper.write_initial(data, false);
        Ok(stepper)
    }

    /// Writes the initial weights, and for a whole run what only that changes about them.
    pub(super) fn write_initial(&mut self, data: &Dataset, whole_run: bool) {
        let mut values = self.method.init(&self.config);
        self.method.fit_to(&self.config, data, &mut values);
        if whole_run {
            self.method.prepare(&self.config, &mut values);
        }
        for (weights, values) in self.method.weights().iter().zip(values) {
            self.program.write(weights.values, 0, &values);
            self.program.write(weights.average, 0, &values);
        }
    }

    /// What a configuration takes on an engine, before anything is allocated.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or a memory budget too small for one instance.
    pub fn memory(engine: &Engine, data: &Dataset, config: &M::Config) -> Result<Memory> {
        Target::of(engine).memory::<M>(data, config)
    }

    /// The limits a device must be requested with so that a table and configuration fit: WebGPU's
    /// defaults, with larger buffers only if what outlives a step needs them (tapes adapt). The shape is a
    /// `&Dataset`, a `(&Problem, rows)`, or a `&Problem` if the table is a small one.
    ///
    /// # Errors
    /// Settings that do not fit the problem, or a memory budget too small for one instance.
    pub fn required_limits<'a>(shape: impl Into<Shape<'a>>, config: &M::Config) -> Result<wgpu::Limits> {
        required_limits::<M>(shape.into(), config)
    }

    /// Sets what changes from stage to stage.
    ///
    /// # Errors
    /// A value that is out of range.
    pub fn set_stage(&mut self, stage: M::Stage) -> Result<()> {
        self.note_stage(stage)?;
        let (words, copies) = self.stage_words();
        self.program.write_words(self.batches.clock, clock::COPIES, &[copies]);
        self.program.write(self.batches.settings, 0, &words);
        Ok(())
    }

    /// Checks and remembers a stage whose values are written by other means.
    pub(super) fn note_stage(&mut self, stage: M::Stage) -> Result<()> {
        M::check_stage(&self.config, &stage)?;
        self.stage = stage;
        Ok(())
    }

    /// What the current stage writes: the settings, and the rows of an instance.
    pub(super) fn stage_words(&self) -> (Vec<f64>, u32) {
        (M::settings(&self.config, &self.stage), M::copies(&self.stage))
    }

    /// What is learned.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The settings.
    pub fn config(&self) -> &M::Config {
        &self.config
    }

    /// The current stage.
    pub fn stage(&self) -> &M::Stage {
        &self.stage
    }

    /// Training steps of a pass over the training rows: with n rollouts of an instance it sees one in n of them, other
    /// ones each time.
    pub fn steps_per_epoch(&self) -> usize {
        self.batches.sizes.batches
    }

    /// Instances of a training step: the configured batch, or all training rows if they are fewer.
    pub fn batch(&self) -> usize {
        self.batches.sizes.batch
    }

    /// The plan and its buffers, to encode ranges of or to look into.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The same, to change buffers or to run ranges by hand: for tools and tests.
    pub fn program_mut(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Trains for so many steps. The CPU engine has done them on return; the GPU engine has submitted
    /// them and works on.
    pub fn steps(&mut self, steps: usize) {
        self.run(self.method.step(&self.config, &self.state, &self.stage), steps);
    }

    pub(crate) fn run(&mut self, section: Section, times: usize) {
        self.program.run(section.calls(), times);
    }

    /// Chunks that an evaluation goes through.
    pub(super) fn chunks(&self, part: Part) -> usize {
        self.batches.sizes.chunks(part as usize)
    }

    /// The sums of a metrics buffer over its lanes, which are then set to zero.
    pub(crate) fn take_metrics_blocking<const PASSES: usize>(
        &mut self,
        id: BufferId,
    ) -> Result<[[f64; METRICS]; PASSES]> {
        let all = self.program.read_blocking(id)?;
        let mut sums = [[0.0; METRICS]; PASSES];
        for lane in all.chunks_exact(PASSES * METRICS) {
            for (sum, value) in sums.as_flattened_mut().iter_mut().zip(lane) {
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
    pub fn means_blocking(&mut self) -> Result<Means> {
        let [sums] = self.take_metrics_blocking(self.batches.metrics)?;
        let bad = self.program.read_words_blocking(self.batches.status)?[0];
        Means::from_sums(&M::METRICS, sums, bad)
    }

    /// Runs the greedy policy on a split: the mean over all trade-offs it is evaluated at.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn evaluate_blocking(&mut self, part: Part) -> Result<Evaluation> {
        let passes = self.batches.sizes.passes;
        Ok(Evaluation::mean(&self.evaluate_section_blocking(self.method.evaluate(), part, passes)?))
    }

    pub(crate) fn evaluate_section_blocking(
        &mut self,
        sections: [Section; 3],
        part: Part,
        passes: usize,
    ) -> Result<Vec<Evaluation>> {
        let rows = self.batches.sizes.splits[part as usize].len;
        if rows == 0 {
            return Err(Error::Data(format!("there are no {part:?} rows to evaluate on")));
        }
        let id = self.batches.chunk.metrics;
        self.take_metrics_blocking::<MOST_PASSES>(id)?;
        self.program.write_words(self.batches.clock, clock::CHUNK, &[0]);
        self.run(sections[part as usize], passes * self.chunks(part));
        let sums = self.take_metrics_blocking::<MOST_PASSES>(id)?;
        let alphas = M::alphas(&self.config, &self.stage);
        Ok(sums
            .into_iter()
            .zip(alphas)
            .take(passes)
            .map(|(s, alpha)| Evaluation::from_sums(s, alpha))
            .collect())
    }

    /// Runs the greedy policy on a split and reads back each instance's path and answer; of several trade-offs, at the
    /// smallest.
    ///
    /// # Errors
    /// The split is empty, or the device was lost.
    pub fn traces_blocking(&mut self, part: Part) -> Result<Traces> {
        let Sizes { features, horizon: steps, evaluation_rows, .. } = self.batches.sizes;
        let mut traces = Traces { features, steps, path: vec![], guess: vec![], loss: vec![] };
        let chunk = self.batches.chunk;
        self.each_chunk_blocking(self.method.evaluate(), part, |program, there| {
            let path = program.read_words_blocking(chunk.path)?;
            let answers = program.read_blocking(chunk.losses)?;
            // A lane's path lies step by step, its instances side by side.
            for instance in 0..there {
                let (lane, row) = (instance / evaluation_rows, instance % evaluation_rows);
                let lane_path = &path[lane * evaluation_rows * steps..];
                traces.path.extend((0..steps).map(|t| lane_path[t * evaluation_rows + row]));
                let answer = &answers[instance * losses::LEN..][..losses::LEN];
                traces.loss.push(answer[losses::LOSS] as f32);
                traces.guess.push(answer[losses::GUESS] as u32);
            }
            Ok(())
        })?;
        Ok(traces)
    }

    /// Evaluates a split chunk by chunk; after each, `read` has the program and how many instances the chunk has.
    pub(crate) fn each_chunk_blocking(
        &mut self,
        sections: [Section; 3],
        part: Part,
        mut read: impl FnMut(&Program, usize) -> Result<()>,
    ) -> Result<()> {
        let rows = self.batches.sizes.splits[part as usize].len;
        let chunk_rows = self.batches.sizes.chunk_rows();
        self.program.write_words(self.batches.clock, clock::CHUNK, &[0]);
        for first in (0..rows).step_by(chunk_rows) {
            self.run(sections[part as usize], 1);
            read(&self.program, chunk_rows.min(rows - first))?;
        }
        Ok(())
    }

    /// The buffers a checkpoint holds, by name: all that a step reads and an earlier step wrote.
    pub(super) fn state_buffers(&self) -> Vec<(String, BufferId)> {
        let weights = self.method.weights();
        let of_weights = weights.iter().flat_map(|w| [w.values, w.average, w.mean, w.variance]);
        let Batches { clock, powers, status, metrics, .. } = self.batches;
        let all = of_weights.chain(self.method.state()).chain([clock, powers, status, metrics]);
        all.map(|id| (self.program.plan().buffer(id).name.clone(), id)).collect()
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
        let mut checkpoint = Checkpoint::new::<M>(&self.config, &self.stage)?;
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
        checkpoint.check_config::<M>(&self.config)?;
        let stage: M::Stage = checkpoint.stage()?;
        M::check_stage(&self.config, &stage)?;
        for (name, id) in self.state_buffers() {
            let decl = self.program.plan().buffer(id);
            // An engine of another kind has another number of lanes.
            let lanes = if id == self.batches.metrics { checkpoint.lanes(&name, decl.len) } else { 1 };
            checkpoint.check_len(&name, decl.elem == Elem::F32, lanes * decl.len)?;
        }
        self.check_places(checkpoint)?;
        for (name, id) in self.state_buffers() {
            if id == self.batches.metrics {
                let values = checkpoint.on_lanes(&name, self.batches.sizes.lanes, METRICS);
                self.program.write(id, 0, &values);
            } else if let Some(values) = checkpoint.reals.get(&name) {
                self.program.write(id, 0, values);
            } else if let Some(values) = checkpoint.words.get(&name) {
                self.program.write_words(id, 0, values);
            }
        }
        // What a step does not train has no gradient, but may have one of the steps before.
        for w in self.method.weights() {
            self.program.write(w.grad, 0, &vec![0.0; self.batches.sizes.lanes * w.len]);
        }
        self.set_stage(stage)
    }

    /// Refuses a checkpoint that would send a kernel to a place that is not there.
    fn check_places(&self, checkpoint: &Checkpoint) -> Result<()> {
        let plan = self.program.plan();
        let name = |id: BufferId| plan.buffer(id).name.as_str();
        let spoilt = |what: String| Err(Error::Config(format!("the checkpoint is spoilt: {what}")));
        let words = |id| checkpoint.words.get(name(id)).cloned().unwrap_or_default();
        let batches = self.batches.sizes.batches;
        if let Some(batch) =
            words(self.batches.clock).get(clock::BATCH).filter(|&&batch| batch as usize >= batches)
        {
            return spoilt(format!("it is in batch {batch} of a pass of {batches}"));
        }
        if let Some(what) = self.method.spoilt(&words) {
            return spoilt(what);
        }
        Ok(())
    }
}
