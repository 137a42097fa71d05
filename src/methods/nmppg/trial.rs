//! Settings that follow from no size of a table, only from trying: a predictor that sees everything is cheap to train, and
//! its validation loss tells.

use super::config::Config;
use super::reference::seeing_blocking;
use crate::data::Dataset;
use crate::engine::Engine;
use crate::error::Result;
use crate::methods::{Trial, pass};

/// The settings that are tried.
pub(super) const TRIED: &[&str] = &["input_noise", "predictor"];

/// A wider predictor has to lower the validation loss by this share: it makes every training step dearer.
const WORTH_ITS_TIME: f64 = 0.02;

impl Config {
    /// Tries what only trying can tell, for those of the settings `input_noise` and `predictor` that are named: whether the
    /// predictor of this table does better without input noise, and whether it does better twice as wide. Noise keeps
    /// rows from being learned by heart (Cube-NM: loss of everything 0.125 with it, 0.185 without), but a table of fine
    /// differences cannot stand it (diamonds: 0.653 with, 0.594 without).
    ///
    /// # Errors
    /// No validation rows, or a device that was lost.
    pub fn tried_blocking(
        self,
        engine: &Engine,
        data: &Dataset,
        names: &[&str],
    ) -> Result<(Self, Vec<Trial>)> {
        let columns: Vec<usize> = (0..data.problem().columns()).collect();
        let usual = Config::for_table(data, 1.0).schedule;
        let loss = |config: &Config| {
            // However long the run is to be: a trial is a short one.
            let config = config.clone().with(|c| {
                let (s, u) = (&mut c.schedule, &usual);
                s.epoch_steps = s.epoch_steps.min(u.epoch_steps);
                s.warm_up_epochs = s.warm_up_epochs.min(u.warm_up_epochs);
                s.stage_epochs = s.stage_epochs.min(u.stage_epochs);
            });
            seeing_blocking(engine, data, &config, &columns).map(|reference| reference.validation.loss)
        };
        let pass = pass(data.sizes()[0], self.batch);
        let plain = self.clone().with(|c| c.predictor.input_noise = 0.0);
        let mut candidates = Vec::new();
        if names.contains(&"input_noise") && self.input_noise_for(pass) > 0.0 {
            candidates.push(("input_noise", 0.0));
        }
        if names.contains(&"predictor") {
            candidates.push(("predictor", WORTH_ITS_TIME));
        }
        if candidates.is_empty() {
            return Ok((self, Vec::new()));
        }
        let (mut config, mut least, mut trials) = (self.clone(), loss(&self)?, Vec::new());
        for (name, gain) in candidates {
            let (changed, assignment) = if name == "input_noise" {
                (plain.clone(), "input_noise=0".to_string())
            } else {
                let [a, b] = config.networks.predictor.map(|width| 2 * width);
                let wide = config.clone().with(|c| c.networks.predictor = [a, b]);
                (wide, format!("networks.predictor=[{a},{b}]"))
            };
            let with = loss(&changed)?;
            let kept = with < (1.0 - gain) * least;
            trials.push(Trial { assignment, losses: [least, with], kept });
            if kept {
                (config, least) = (changed, with);
            }
        }
        Ok((config, trials))
    }
}
