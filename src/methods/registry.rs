//! What the list of methods says about each, and what follows from the list: which kernels there are, and how a model's
//! file is read.

use super::METHODS;
use crate::data::Dataset;
use crate::engine::Engine;
use crate::engine::kernels::words::Words;
use crate::engine::kernels::{GENERAL, Kernel};
use crate::error::{Error, Result};
use crate::policy::{Model, Policy, Stored};
use crate::problem::Problem;
use crate::train::Training;
use serde_json::Value;
use std::path::Path;

/// What trades loss for cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tradeoff {
    /// α, what a unit of cost is worth: training knows it, one or a range of them.
    Alpha,
    /// α: training knows it, one at a time.
    One,
    /// A threshold of the stop rule: one training has them all.
    Threshold,
}

/// A setting that was tried on a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The setting and its value: `input_noise=0`.
    pub assignment: String,
    /// The validation loss without it, and with it.
    pub losses: [f64; 2],
    /// Whether it is better.
    pub kept: bool,
}

/// Tries settings by their last names, beginning with some.
pub type Try = fn(&Engine, &Dataset, settings: &Value, names: &[&str]) -> Result<Vec<Trial>>;

/// A method, for those who do not care which.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: &'static str,
    /// What it is, in a line.
    pub about: &'static str,
    /// Kernels that only it has, or those that are like it.
    pub kernels: &'static [&'static Kernel],
    /// Numbers of its own uses of randomness, its own or shared with those that are like it. A new method takes those behind the
    /// last one's; what is taken stays, as it decides the bits of a run.
    pub streams: &'static Words,
    /// What trades loss for cost.
    pub tradeoff: Tradeoff,
    /// Thresholds of its stop rule that are worth a look, where it has one.
    pub thresholds: fn(&Problem) -> Vec<f64>,
    /// Its settings for a table: the defaults that depend on one stand in the method.
    pub defaults: fn(&Dataset) -> Value,
    /// Given the defaults and the settings as they were chosen: the settings with those that follow from others, where
    /// nobody chose them.
    pub settle: fn(&Value, Value) -> Result<Value>,
    /// A batch for devices that a step of the usual size cannot fill, where `settle` knows which rates and lengths fit it and
    /// the table can do with fewer updates.
    pub large_batch: fn(&Dataset) -> Option<usize>,
    /// Settings that only trying can tell, by their last names.
    pub tried: &'static [&'static str],
    /// Tries those of them that are named, beginning with some settings.
    pub try_blocking: Try,
    /// Gives the hidden layers a width.
    pub widen: fn(&mut Value, usize),
    /// Settings that have another name now: old and new.
    pub renamed: &'static [(&'static str, &'static str)],
    /// Checks settings against a table.
    pub check: fn(&Dataset, &Value) -> Result<()>,
    /// Begins a training run.
    pub start: fn(&Engine, &Dataset, Value) -> Result<Box<dyn Training>>,
    /// Makes a policy of a model's file.
    pub load: fn(&mut Stored) -> Result<Box<dyn Policy>>,
}

/// A method by its name.
///
/// # Errors
/// There is none of that name.
pub fn find(name: &str) -> Result<&'static Entry> {
    METHODS.iter().copied().find(|entry| entry.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = READERS.iter().map(|reader| reader.name).collect();
    Error::Config(format!("there is no method `{name}`; there are {}", known.join(", ")))
}

/// Of a method, what is needed to read its models and to ask and test them.
#[derive(Clone, Copy, Debug)]
pub struct Reader {
    /// Its name.
    pub name: &'static str,
    /// What trades loss for cost.
    pub tradeoff: Tradeoff,
    /// Thresholds of its stop rule that are worth a look, where it has one.
    pub thresholds: fn(&Problem) -> Vec<f64>,
    load: fn(&mut Stored) -> Result<Box<dyn Policy>>,
}

impl Reader {
    const fn of(entry: &Entry) -> Self {
        Self { name: entry.name, tradeoff: entry.tradeoff, thresholds: entry.thresholds, load: entry.load }
    }
}

/// A method by its name, for programs that do not train with it.
///
/// # Errors
/// There is none of that name.
pub fn reader(name: &str) -> Result<&'static Reader> {
    READERS.iter().find(|reader| reader.name == name).ok_or_else(|| unknown(name))
}

/// Taken out of the list when the library is compiled: a program that only asks, as the page does, names no entry and so
/// is linked without trainers and devices.
static READERS: [Reader; METHODS.len()] = {
    let mut readers = [Reader::of(METHODS[0]); METHODS.len()];
    let mut index = 1;
    while index < METHODS.len() {
        readers[index] = Reader::of(METHODS[index]);
        index += 1;
    }
    readers
};

/// Every kernel: the general ones, then each method's own, those that methods share once.
pub fn kernels() -> impl Iterator<Item = &'static Kernel> {
    let own = METHODS.iter().enumerate().flat_map(|(index, entry)| {
        let is_new = move |kernel: &&&Kernel| {
            METHODS[..index].iter().flat_map(|before| before.kernels).all(|other| !other.is(kernel))
        };
        entry.kernels.iter().filter(is_new)
    });
    GENERAL.iter().chain(own).copied()
}

// Reading a model needs the list of methods, so it stands here and not beside the rest of the model.
impl Model {
    /// Reads a model.
    ///
    /// # Errors
    /// The file cannot be read, is cut off, is not a model, is one of another format, or contradicts
    /// itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = std::fs::read(path).map_err(|error| Error::io(path, error))?;
        Self::from_bytes_of(path, &bytes)
    }

    /// Reads a model from the bytes of a file that somebody else has read, such as a browser. What is wrong with it is said
    /// as by [`Model::load`].
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn from_bytes_of(path: impl AsRef<Path>, bytes: &[u8]) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(bytes).map_err(|error| match error {
            // What `read` itself complains about needs no other name than the file's.
            Error::Config(what) | Error::Problem(what) => Error::file(path, what),
            other => Error::file(path, other.to_string()),
        })
    }

    /// Reads a model from the bytes of its file.
    ///
    /// # Errors
    /// As [`Model::load`], without the file's name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut stored = Stored::from_bytes(bytes)?;
        let Reader { name, load, .. } = reader(&stored.method)?;
        let policy = load(&mut stored)?;
        stored.model(policy, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::synthetic;
    use crate::engine::kernels::Part;
    use crate::methods::set;
    use crate::random::stream;

    /// Their numbers, and where they end.
    fn numbers(entry: &Entry) -> (Vec<u32>, u32) {
        let all: Vec<u32> = entry.streams.numbers.iter().map(|(_, number)| *number).collect();
        let end = all.iter().copied().max().unwrap_or(0);
        (all.into_iter().filter(|&number| number < end).collect(), end)
    }

    /// Equal numbers are equal bits: two uses of one run that shared one would not be independent, and methods may take
    /// parts of one another.
    #[test]
    fn no_two_uses_of_randomness_have_one_number() {
        // They begin at the same number, which does no harm: no run has both.
        let harmless = [("gsmrl", "aaco"), ("aaco", "gsmrl")];
        for entry in METHODS {
            let (own, end) = numbers(entry);
            assert!(!own.is_empty(), "{}", entry.name);
            // Those of dropout go on from there, a number for each layer.
            assert!(end <= stream::dropout(2), "{} ends at {end}", entry.name);
            assert!(!own.iter().any(|number| stream::GENERAL.contains(number)), "{}: {own:?}", entry.name);
            for other in METHODS {
                let is_shared = std::ptr::eq(entry.streams, other.streams);
                if is_shared || harmless.contains(&(entry.name, other.name)) {
                    continue;
                }
                let theirs = numbers(other).0;
                assert!(!own.iter().any(|n| theirs.contains(n)), "{} and {}", entry.name, other.name);
            }
        }
    }

    /// What a method's shaders draw from is general or its own.
    #[test]
    fn shaders_draw_from_streams_of_their_method() {
        let mut seen = 0;
        for entry in METHODS {
            let own = numbers(entry).0;
            for part in entry.kernels.iter().flat_map(|kernel| kernel.parts) {
                let Part::Words(words) = part else { continue };
                for (name, number) in words.numbers.iter().filter(|(name, _)| name.starts_with("STREAM_")) {
                    let is_own = own.contains(number);
                    assert!(is_own || stream::GENERAL.contains(number), "{}: {name}", entry.name);
                    seen += usize::from(is_own);
                }
            }
        }
        assert!(seen >= 5, "{seen}");
    }

    /// Two lanes at the same time, pretraining and a stage, small enough for Miri, which looks at every access to the buffers
    /// that threads share (docs/reliability.md).
    #[test]
    fn every_method_trains_in_lanes() {
        let data = synthetic::syn1(5, [17, 3, 3]).expect("valid").standardized();
        for entry in METHODS {
            let mut settings = (entry.defaults)(&data);
            (entry.widen)(&mut settings, 3);
            // Each method has the first of them, and those of the others that make it short.
            for (name, of_all) in [
                ("batch=17", true),
                ("horizon=2", true),
                ("stage_epochs=1", true),
                ("warm_up_epochs=1", true),
                ("alpha=0.02", false),
                ("temperatures=1", false),
                ("temperatures=[0.5]", false),
                ("epsilons=1", false),
                ("updates=2", false),
                ("replay=34", false),
                ("passes=2", false),
                ("couplings=2", false),
                ("encoder=[3]", false),
                ("training_samples=2", false),
                ("validation_samples=2", false),
                ("rollouts=2", false),
                ("candidates=4", false),
            ] {
                let done = set::set(&mut settings, name, &[]);
                assert!(done.is_ok() || !of_all, "{}: {name}", entry.name);
            }
            let engine = Engine::cpu();
            let mut training = (entry.start)(&engine, &data, settings)
                .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            let (mut phases, mut behind) = (std::collections::BTreeSet::new(), 0.0);
            loop {
                let span = training.epoch_span();
                assert!(behind <= span.start && span.start <= span.end, "{}: {span:?}", entry.name);
                behind = span.end;
                let Some(epoch) = training.epoch_blocking().expect("finite") else { break };
                phases.insert(epoch.phase.to_string());
            }
            assert!(behind <= 1.0, "{}: {behind}", entry.name);
            assert!(phases.len() > 1, "{}: {phases:?}", entry.name);
            // Under Miri each takes minutes.
            println!("{}: {phases:?}", entry.name);
        }
    }
}
