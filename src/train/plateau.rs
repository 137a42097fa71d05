//! Whether a loss still falls, and what follows if it does not.

use serde::{Deserialize, Serialize};

/// A loss that is watched: where it rests, the rate falls, and after so many times a stage is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Plateau {
    /// Times that the rate has fallen.
    pub decays: usize,
    /// Epochs since the lowest loss.
    pub since_best: usize,
    /// That loss.
    pub best: Option<f64>,
}

impl Plateau {
    /// Takes an epoch's loss. `patience` epochs without a lower one count as resting; it is over when it rests once more
    /// after so many `decays`.
    pub fn is_over(&mut self, loss: f64, patience: usize, decays: usize) -> bool {
        self.since_best += 1;
        if self.best.is_none_or(|best| loss < best) {
            (self.best, self.since_best) = (Some(loss), 0);
        }
        if self.since_best < patience {
            return false;
        }
        let is_over = self.decays >= decays;
        self.decays += 1;
        self.since_best = 0;
        is_over
    }

    /// What a rate has fallen to.
    pub fn rate(&self, rate: f64, decay: f64) -> f64 {
        rate * decay.powi(self.decays as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_decays_and_ends() {
        let mut plateau = Plateau::default();
        let mut take = |loss| {
            let is_over = plateau.is_over(loss, 2, 1);
            (is_over, plateau.rate(1.0, 0.5))
        };
        // Better, not better, better, then two that are not: the rate falls.
        for loss in [3.0, 3.0, 2.0, 2.5] {
            assert_eq!(take(loss), (false, 1.0));
        }
        assert_eq!(take(2.0), (false, 0.5));
        assert_eq!(take(f64::NAN), (false, 0.5), "what is not a number is not lower");
        assert!(take(2.1).0, "it rests once more");
    }
}
