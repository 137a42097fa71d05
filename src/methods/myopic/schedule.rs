//! A pretraining, then one temperature after another, each until a validation loss rests.

use crate::policy::history::Phase;
use crate::train::{Plateau, Then};
use serde::{Deserialize, Serialize};

/// Where the schedule is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct State {
    /// Pretraining epochs done.
    pub warm_up_done: usize,
    /// Which temperature.
    pub stage: usize,
    /// Epochs done of it.
    pub stage_epoch: usize,
    /// The validation loss that it goes by.
    #[serde(flatten)]
    pub plateau: Plateau,
}

/// The schedule's settings.
#[derive(Clone, Copy, Debug)]
pub struct Schedule {
    /// Epochs of the predictor alone.
    pub warm_up_epochs: usize,
    /// How many temperatures there are.
    pub temperatures: usize,
    /// Epochs of one, at most.
    pub stage_epochs: usize,
    /// Epochs without a better loss that count as resting.
    pub patience: usize,
    /// Decays of the rate before the next temperature.
    pub decays: usize,
}

impl Schedule {
    /// The part of the run that the next epoch is of.
    pub fn phase(&self, state: &State) -> Option<Phase> {
        if state.warm_up_done < self.warm_up_epochs {
            return Some(Phase::WarmUp);
        }
        (state.stage < self.temperatures).then_some(Phase::Stage(state.stage))
    }

    /// What follows from an epoch with this validation loss.
    pub fn follow(&self, state: &mut State, phase: Phase, loss: f64) -> Then {
        if phase == Phase::WarmUp {
            state.warm_up_done += 1;
            // The selector begins with an Adam that has seen nothing.
            return Then { reset: state.warm_up_done == self.warm_up_epochs, ..Then::default() };
        }
        state.stage_epoch += 1;
        let rests = state.plateau.is_over(loss, self.patience, self.decays);
        if !rests && state.stage_epoch < self.stage_epochs {
            return Then::default();
        }
        let done = State { warm_up_done: state.warm_up_done, stage: state.stage + 1, ..State::default() };
        *state = done;
        Then { restore: true, reset: true, ..Then::default() }
    }

    /// Epochs of the pretraining and of the temperatures, at most.
    pub fn epochs_at_most(&self) -> [usize; 2] {
        [self.warm_up_epochs, self.temperatures * self.stage_epochs]
    }

    /// Of those, the ones that are behind it.
    pub fn epochs_behind(&self, state: &State) -> usize {
        state.warm_up_done + state.stage * self.stage_epochs + state.stage_epoch
    }

    /// The temperature of a stage: from one to another, falling geometrically.
    pub fn temperature(&self, [start, end]: [f64; 2], stage: usize) -> f64 {
        let share = stage as f64 / (self.temperatures.max(2) - 1) as f64;
        start * (end / start).powf(share)
    }
}
