//! NM-PPG in the list of methods.

use super::{Alpha, Config, Trainer, kernels};
use crate::data::Dataset;
use crate::error::Result;
use crate::methods::{Entry, Tradeoff, usual};
use crate::policy::storable;
use serde_json::Value;

/// NM-PPG.
pub static ENTRY: Entry = Entry {
    name: super::NAME,
    about: "non-myopic pathwise policy gradients: the whole trajectory is relaxed; one model for every α",
    kernels: kernels::KERNELS,
    tradeoff: Tradeoff::Alpha,
    thresholds: |_| Vec::new(),
    defaults: |data| serde_json::to_value(Config::for_table(data, Alpha::Auto)).unwrap_or_default(),
    // How far the average reaches back follows from how long the run is.
    settle: |defaults, chosen| {
        let config = read(&chosen)?;
        let is_default = config.schedule.ema == read(defaults)?.schedule.ema;
        let base = Config::default().schedule.ema;
        let config = if is_default { config.with(|c| c.schedule.ema = base).settled() } else { config };
        storable("the configuration", &config)
    },
    tried: super::trial::TRIED,
    try_blocking: |engine, data, settings, names| Ok(read(settings)?.tried_blocking(engine, data, names)?.1),
    widen: |settings, width| {
        settings["networks"]["policy"] = serde_json::json!([2 * width, width]);
        settings["networks"]["predictor"] = serde_json::json!([width, width]);
    },
    renamed: super::RENAMED,
    check: |data, settings| read(settings)?.check(data.problem()),
    start: |engine, data, settings| Ok(Box::new(Trainer::new(engine, data, read(&settings)?)?)),
    load: super::load,
};

fn read(settings: &Value) -> Result<Config> {
    usual::read(super::NAME, settings)
}

/// From so many training rows on the predictor need not be kept from learning them by heart.
const MANY_ROWS: usize = 20_000;
/// Its share of the loss on sub-masks is then less, and what it is for gets the rest.
const FEWER_SUBMASKS: f64 = 0.2;
/// The moving average of the weights reaches back over at most this share of a short run's steps.
const AVERAGED: f64 = 0.1;

impl Config {
    /// The default settings for a table: small ones get dropout and fewer steps an epoch, large ones fewer sub-masks.
    pub fn for_table(data: &Dataset, alpha: impl Into<Alpha>) -> Self {
        let rows = data.sizes()[0];
        let mut config = Self::new(alpha);
        config.schedule.epoch_steps = usual::epoch_steps(config.schedule.epoch_steps, config.batch, data);
        if rows < usual::FEW_ROWS {
            config.networks.dropout = 0.3;
        }
        if rows >= MANY_ROWS {
            config.predictor.submasks = FEWER_SUBMASKS;
        }
        config.settled()
    }

    /// The same settings with an average of the weights that can follow within the run, however short it is.
    pub fn settled(mut self) -> Self {
        let s = &mut self.schedule;
        let steps = s.epoch_steps * (s.warm_up_epochs + s.stage_epochs);
        s.ema = s.ema.max(1.0 / (AVERAGED * steps.max(1) as f64)).min(1.0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic;

    #[test]
    fn defaults_follow_from_the_rows() {
        for (rows, dropout, submasks) in [(4_000, 0.3, 0.8), (10_000, 0.0, 0.8), (20_000, 0.0, 0.2)] {
            let data = synthetic::syn1(0, [rows, 100, 100]).expect("valid");
            let config = Config::for_table(&data, 0.02);
            assert_eq!((config.networks.dropout, config.predictor.submasks), (dropout, submasks), "{rows}");
        }
    }
}
