//! A replay memory on the device: the episodes of the last batches, by where their rows lie and what was done, and
//! transitions drawn out of it. It outlives a step, so a checkpoint has it; rows stay in the data and are gathered again.

use super::batches::{Batches, Micro};
use super::sizes::Noise;
use crate::engine::kernels::{GatherAt, GatherAtBytes, ReplayDraw, ReplayStore, ReplayTurn, returns, taken};
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};
use crate::nn::{Dense, pitch, word};

/// What is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episodes {
    /// How many, rounded to whole batches, at least one.
    pub count: usize,
    /// Whether an action of its own, behind those of the features, ends an episode.
    pub stops: bool,
    /// Whether each step's reward is kept with it.
    pub rewarded: bool,
    /// The random stream that transitions are drawn with.
    pub stream: u32,
}

/// The memory, and where a micro-batch's transitions are drawn to.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    of: Episodes,
    rounds: usize,
    kept: BufferId,
    episodes: BufferId,
    earned: BufferId,
    places: BufferId,
    /// What each transition does: words of `kernels::taken`.
    pub taken: BufferId,
    /// What it comes to: words of `kernels::returns`.
    pub returns: BufferId,
    /// The masks before, then those after, a pitch of the features apart.
    pub masks: BufferId,
    /// The rows.
    pub x: BufferId,
    /// Their labels.
    pub y: BufferId,
}

impl Replay {
    /// Declares the buffers.
    pub fn declare(b: &mut PlanBuilder, batches: &Batches, of: Episodes) -> Self {
        let s = &batches.sizes;
        let rounds = of.count.div_ceil(s.batch).max(1);
        let episodes = rounds * s.batch;
        let mut shared = |name: &str, elem, len| b.buffer(format!("replay.{name}"), elem, len, Scope::Shared);
        let kept = shared("kept", Elem::U32, 1);
        let memory = shared("episodes", Elem::U32, episodes * (s.horizon + 1));
        let earned = shared("earned", Elem::F32, if of.rewarded { episodes * s.horizon } else { 0 });
        let mut lane = |name: &str, elem, len| b.buffer(format!("replay.{name}"), elem, len, Scope::Lane);
        Self {
            of,
            rounds,
            kept,
            episodes: memory,
            earned,
            places: lane("places", Elem::U32, s.rows),
            taken: lane("taken", Elem::U32, s.rows * taken::LEN),
            returns: lane("returns", Elem::F32, s.rows * returns::LEN),
            masks: lane("masks", Elem::F32, 2 * s.rows * pitch(s.features)),
            x: lane("x", Elem::F32, s.rows * pitch(s.row_columns())),
            y: lane("y", Elem::U32, s.rows),
        }
    }

    /// What outlives a step.
    pub fn state(&self) -> Vec<BufferId> {
        vec![self.kept, self.episodes, self.earned]
    }

    /// What is wrong with episodes that a checkpoint brings: a row that is not there, or an action that there is none of.
    pub fn spoilt(&self, batches: &Batches, words: &dyn Fn(BufferId) -> Vec<u32>) -> Option<String> {
        let s = &batches.sizes;
        let train = &s.splits[0];
        let rows = train.start..train.start + train.len;
        for episode in words(self.episodes).chunks_exact(s.horizon + 1) {
            // What was never written is zeros.
            if !rows.contains(&(episode[0] as usize)) && episode[0] != 0 {
                return Some(format!("an episode is of row {}, but there are {}", episode[0], rows.len()));
            }
            if let Some(action) = episode[1..].iter().find(|&&action| action as usize > s.features) {
                return Some(format!("an episode has action {action}, but there are {}", s.features + 1));
            }
        }
        None
    }

    /// Keeps the episodes of a micro-batch that a lane has rolled out: what was done at each step, and what it was rewarded
    /// with, where that is kept. No call of a lane: the memory is everybody's.
    pub fn store(
        &self,
        b: &mut PlanBuilder,
        batches: &Batches,
        micro: Micro,
        lane: usize,
        [path, rewards]: [BufferId; 2],
    ) {
        let s = &batches.sizes;
        let call = ReplayStore {
            rows: word(micro.rows),
            steps: word(s.horizon),
            first: word(micro.first),
            batch: word(s.batch),
            split_start: word(s.splits[0].start),
            split_len: word(s.splits[0].len),
            shuffled: u32::from(s.noise == Noise::Drawn),
            chunks: 1,
            lane_at: word(lane * s.rows * s.horizon),
            rounds: word(self.rounds),
            rewarded: u32::from(self.of.rewarded),
        };
        let rewards = if self.of.rewarded { rewards } else { batches.none };
        b.call(call, &[batches.clock, path, rewards, self.kept, self.episodes, self.earned]);
    }

    /// All micro-batches of a batch are kept.
    pub fn turn(&self, b: &mut PlanBuilder) {
        b.call(ReplayTurn { batches: 1 }, &[self.kept]);
    }

    /// Draws as many transitions as a micro-batch has instances, with their rows. Each update of a step draws others.
    pub fn draw(&self, b: &mut PlanBuilder, batches: &Batches, micro: Micro, update: usize) {
        let s = &batches.sizes;
        let call = ReplayDraw {
            rows: word(micro.rows),
            steps: word(s.horizon),
            features: word(s.features),
            first: word(micro.first),
            batch: word(s.batch),
            rounds: word(self.rounds),
            pitch: word(pitch(s.features)),
            update: word(update),
            stream: self.of.stream,
            stops: u32::from(self.of.stops),
            rewarded: u32::from(self.of.rewarded),
        };
        let to = [self.places, self.taken, self.returns, self.masks];
        b.call(call, &[batches.clock, self.kept, self.episodes, self.earned, to[0], to[1], to[2], to[3]]);
        let [rows, columns, pitch] = [micro.rows, s.columns, pitch(s.row_columns())].map(word);
        let buffers = [self.places, batches.data_x, batches.data_y, self.x, self.y];
        match s.bytes {
            Some(divisor) => b.call(GatherAtBytes { rows, columns, pitch, divisor }, &buffers),
            None => b.call(GatherAt { rows, columns, pitch }, &buffers),
        }
    }

    /// Writes the dense inputs of both states of so many transitions: the rows before the action, then those after it.
    pub fn expand(&self, b: &mut PlanBuilder, batches: &Batches, rows: usize, input: BufferId) -> Dense {
        let mask_stride = pitch(batches.sizes.features);
        let dense = Dense { x: self.x, masks: self.masks, mask_stride, input };
        for state in 0..2 {
            batches.inputs().expand(b, rows, state, false, dense);
        }
        dense
    }
}
