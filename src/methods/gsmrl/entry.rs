//! GSMRL in the list of methods.

use super::{Config, Trainer, kernels};
use crate::error::Result;
use crate::methods::{Entry, Tradeoff, usual};
use crate::train::Settings;
use serde_json::Value;

/// GSMRL.
pub static ENTRY: Entry = Entry {
    name: super::NAME,
    about: "reinforcement learning (PPO) whose policy reads what a generative surrogate (a flow) expects",
    kernels: kernels::KERNELS,
    streams: &kernels::stream::WORDS,
    tradeoff: Tradeoff::One,
    thresholds: |_| Vec::new(),
    defaults: |data| {
        serde_json::to_value(Config::for_table(data, usual::alpha(data.problem()))).unwrap_or_default()
    },
    settle: |_, chosen| Ok(chosen),
    large_batch: |_| None,
    tried: &[],
    try_blocking: |_, _, _, _| Ok(Vec::new()),
    widen: |settings, width| {
        settings["hidden"] = serde_json::json!([width, width]);
        settings["surrogate_hidden"] = serde_json::json!([width, width]);
    },
    renamed: &[],
    check: |data, settings| read(settings)?.check(data.problem()),
    start: |engine, data, settings| Ok(Box::new(Trainer::new(engine, data, read(&settings)?)?)),
    load: super::policy::load,
};

fn read(settings: &Value) -> Result<Config> {
    usual::read(super::NAME, settings)
}
