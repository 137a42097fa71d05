//! GDFS in the list of methods.

use super::{Config, Trainer};
use crate::error::Result;
use crate::methods::myopic::{kernels, policy};
use crate::methods::{Entry, Tradeoff, usual};
use crate::train::Settings;
use serde_json::Value;

/// GDFS.
pub static ENTRY: Entry = Entry {
    name: super::NAME,
    about: "greedy dynamic feature selection: each question is the best single one; one training for every threshold",
    kernels: kernels::KERNELS,
    streams: &kernels::stream::WORDS,
    tradeoff: Tradeoff::Threshold,
    thresholds: usual::doubts,
    defaults: |data| serde_json::to_value(Config::for_table(data)).unwrap_or_default(),
    settle: |_, chosen| Ok(chosen),
    large_batch: |_| None,
    tried: &[],
    try_blocking: |_, _, _, _| Ok(Vec::new()),
    widen: |settings, width| settings["hidden"] = serde_json::json!([width, width]),
    renamed: &[],
    check: |data, settings| read(settings)?.check(data.problem()),
    start: |engine, data, settings| Ok(Box::new(Trainer::new(engine, data, read(&settings)?)?)),
    load: policy::load::<Config>,
};

fn read(settings: &Value) -> Result<Config> {
    usual::read(super::NAME, settings)
}
