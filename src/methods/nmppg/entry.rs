//! NM-PPG in the list of methods.

use super::{Alpha, Config, Trainer, kernels};
use crate::data::Dataset;
use crate::error::Result;
use crate::methods::alpha::shows_half;
use crate::methods::{Entry, Tradeoff, usual};
use crate::policy::storable;
use serde_json::Value;

/// NM-PPG.
pub static ENTRY: Entry = Entry {
    name: super::NAME,
    about: "non-myopic pathwise policy gradients: the whole trajectory is relaxed; one model for every α",
    kernels: kernels::KERNELS,
    streams: &kernels::stream::WORDS,
    tradeoff: Tradeoff::Alpha,
    thresholds: |_| Vec::new(),
    defaults: |data| serde_json::to_value(Config::for_table(data, Alpha::Auto)).unwrap_or_default(),
    // Rates and lengths follow from the batch, and how far the average reaches back from how long the run is.
    settle: |defaults, chosen| {
        let (config, mut defaults) = (read(&chosen)?, read(defaults)?);
        let is_default = config.schedule.ema == defaults.schedule.ema;
        let base = Config::default().schedule.ema;
        if !is_default {
            return storable("the configuration", &config.for_batch(&defaults));
        }
        let config = config.with(|c| c.schedule.ema = base);
        defaults.schedule.ema = base;
        storable("the configuration", &config.for_batch(&defaults).settled())
    },
    // Of hundreds of features, no device is fast enough to make up for fewer updates.
    large_batch: |data| (!has_many_features(data)).then_some(LARGE_BATCH),
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

/// What a GPU that a step of the usual size cannot fill may take: measured (docs/training.md), as the rule below is.
const LARGE_BATCH: usize = 1024;
/// From so many training rows on the predictor need not be kept from learning them by heart.
const MANY_ROWS: usize = 20_000;
/// Its share of the loss on sub-masks is then less, and what it is for gets the rest.
const FEWER_SUBMASKS: f64 = 0.2;
/// Batches of a table that is gone through once an epoch, or in part, and of one of many features. Where no row is seen so
/// often that it is learned by heart, four times the updates in the same time are worth more than gradients of half the noise.
const SMALL_BATCH: usize = 32;
/// Where a range of α begins there, if labels are noisy. What is short is updates, and each α between gets more of them;
/// rows that are seen again and again teach the predictor more if some of them are asked for much.
const LATER: f64 = 1.0 / 8.0;
/// More instances a step than this many times the default: of faster rates than theirs nothing is known.
const MOST_TIMES: f64 = 8.0;
/// The moving average of the weights reaches back over at most this share of a short run's steps.
const AVERAGED: f64 = 0.1;

/// Whether a table has enough rows to learn from, and so many features that a policy never sees half of them (an image).
fn has_many_features(data: &Dataset) -> bool {
    let problem = data.problem();
    data.sizes()[0] >= MANY_ROWS && !shows_half(Config::default().steps(problem), problem.features().len())
}

impl Config {
    /// The default settings for a table: small ones get dropout and fewer steps an epoch, large ones fewer sub-masks, still
    /// larger ones small batches and a range of α that begins later, and those of many features settings of their own.
    pub fn for_table(data: &Dataset, alpha: impl Into<Alpha>) -> Self {
        let rows = data.sizes()[0];
        let mut config = Self::new(alpha);
        if has_many_features(data) {
            return config.for_many_features().settled();
        }
        config.schedule.epoch_steps = usual::epoch_steps(config.schedule.epoch_steps, config.batch, data);
        if rows < usual::FEW_ROWS {
            config.networks.dropout = 0.3;
        }
        if rows >= MANY_ROWS {
            config.predictor.submasks = FEWER_SUBMASKS;
        }
        let pass = usual::pass(rows, config.batch);
        if config.whole_passes(pass) == pass {
            config.schedule.epoch_steps *= config.batch / SMALL_BATCH;
            config.batch = SMALL_BATCH;
            config.schedule.range_from = LATER;
        }
        config.settled()
    }

    /// The same settings for a table of many features. There a choice is one of hundreds, and what is short is neither rows
    /// nor the precision of a gradient but the number of updates: small batches, and steps that leave out what takes most
    /// of their time (docs/training.md has what each brings).
    fn for_many_features(self) -> Self {
        self.with(|c| {
            c.batch = SMALL_BATCH;
            (c.networks.policy, c.networks.predictor) = ([512, 128], [256, 256]);
            (c.gradient.through_policy, c.gradient.reinforce_from) = (false, 1.0);
            (c.predictor.submasks, c.predictor.focus, c.predictor.input_noise) = (0.05, 0.0, 0.0);
            c.schedule.policy_rate = 2e-3;
            // Warmer ones stand still sooner, and colder ones have noise for a gradient.
            c.schedule.temperatures = vec![0.5, 0.3, 0.2, 0.2, 0.2];
            c.schedule.stage_epochs = 8;
        })
    }

    /// The same settings with what fits a batch that is larger than that of the defaults, where nobody chose otherwise: a
    /// setting is taken as chosen if it differs from the default. The run sees as many rows as before, so an epoch has as
    /// many times fewer steps and the average of the weights reaches back over as many times fewer; the rates grow with
    /// the square root of the batch, as the noise of a gradient falls with it, which is what Adam's steps are scaled by.
    pub fn for_batch(mut self, defaults: &Self) -> Self {
        let times = self.batch as f64 / defaults.batch.max(1) as f64;
        // Of smaller ones nothing is known.
        if times <= 1.0 {
            return self;
        }
        let (s, d) = (&mut self.schedule, &defaults.schedule);
        if s.epoch_steps == d.epoch_steps {
            s.epoch_steps = ((d.epoch_steps as f64 / times).round() as usize).max(1);
        }
        for (rate, default) in
            [(&mut s.policy_rate, d.policy_rate), (&mut s.predictor_rate, d.predictor_rate)]
        {
            if *rate == default {
                *rate = default * times.min(MOST_TIMES).sqrt();
            }
        }
        if s.ema == d.ema {
            s.ema = (d.ema * times).min(1.0);
        }
        self
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
    use crate::data::{Split, synthetic};
    use crate::problem::Problem;

    #[test]
    fn rates_and_lengths_follow_from_a_large_batch() {
        const ROWS: usize = 55 * 1024;
        let data = synthetic::syn1(0, [ROWS, 100, 100]).expect("valid");
        let defaults = (ENTRY.defaults)(&data);
        let settled = |changes: &[&str]| {
            let mut chosen = defaults.clone();
            for change in changes {
                crate::methods::set::set(&mut chosen, change, super::super::RENAMED).expect("a setting");
            }
            read(&(ENTRY.settle)(&defaults, chosen).expect("fits")).expect("reads").schedule
        };
        let usual = settled(&[]);
        assert_eq!(usual, read(&defaults).expect("reads").schedule);
        let large = settled(&["batch=1024"]);
        assert_eq!((usual.epoch_steps, large.epoch_steps), (900, 113));
        // As many rows: two passes over them each.
        let rows = |schedule: &super::super::Schedule, batch| {
            batch * usual::whole_passes(schedule.epoch_steps, usual::pass(ROWS, batch))
        };
        assert_eq!([rows(&usual, 128), rows(&large, 1024)], [2 * ROWS; 2]);
        assert!((large.policy_rate / usual.policy_rate - 8f64.sqrt()).abs() < 1e-12);
        assert!((large.predictor_rate / usual.predictor_rate - 8f64.sqrt()).abs() < 1e-12);
        assert_eq!((usual.ema, large.ema), (0.0025, 0.02));
        // What was chosen stays, and what is smaller than the default changes nothing.
        let chosen = settled(&["batch=1024", "policy_rate=0.002", "epoch_steps=500", "ema=0.01"]);
        assert_eq!((chosen.policy_rate, chosen.epoch_steps, chosen.ema), (0.002, 500, 0.01));
        assert_eq!(chosen.predictor_rate, large.predictor_rate);
        assert_eq!(settled(&["batch=64"]), usual);
    }

    #[test]
    fn defaults_follow_from_the_rows() {
        for (rows, dropout, submasks) in [(4_000, 0.3, 0.8), (10_000, 0.0, 0.8), (20_000, 0.0, 0.2)] {
            let data = synthetic::syn1(0, [rows, 100, 100]).expect("valid");
            let config = Config::for_table(&data, 0.02);
            assert_eq!((config.networks.dropout, config.predictor.submasks), (dropout, submasks), "{rows}");
        }
    }

    #[test]
    fn what_is_gone_through_once_an_epoch_gets_small_batches() {
        let settings = |rows: usize| {
            let data = synthetic::syn1(0, [rows, 100, 100]).expect("valid");
            let config = Config::for_table(&data, 0.02);
            let pass = usual::pass(rows, config.batch);
            let schedule = &config.schedule;
            (
                config.batch,
                schedule.epoch_steps,
                config.whole_passes(pass) / pass,
                schedule.range_from == LATER,
            )
        };
        assert_eq!(settings(57_727), (128, 900, 2, false));
        assert_eq!(settings(57_728), (SMALL_BATCH, 3_600, 1, true));
        assert_eq!(settings(300_000), (SMALL_BATCH, 3_600, 1, true));
    }

    #[test]
    fn tables_of_many_features_have_settings_of_their_own() {
        let batch = |features: usize, rows: usize| {
            let problem = Problem::ungrouped(&vec![1.0; features], 2).expect("valid");
            let train = Split { x: vec![0.0; rows * features], y: (0..rows as u32).map(|i| i % 2).collect() };
            let data = Dataset::new(problem, train, Split::default(), Split::default()).expect("valid");
            let config = Config::for_table(&data, 0.02);
            // All of it or nothing.
            assert_eq!((ENTRY.large_batch)(&data).is_none(), config.batch == 32, "{features} × {rows}");
            assert_eq!(config.batch == 32, !config.gradient.through_policy, "{features} × {rows}");
            config.batch
        };
        // A policy that asks 30 times sees half of 60 features.
        assert_eq!([batch(60, 20_000), batch(61, 20_000), batch(61, 19_999)], [128, 32, 128]);
    }
}
