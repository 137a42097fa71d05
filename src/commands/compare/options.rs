//! What holds for every cell of a comparison, and which methods there are to compare.

use super::variant::{self, Variant};
use super::{Alphas, Args};
use crate::commands::room::Room;
use crate::commands::source::Source;
use crate::commands::train::EngineName;
use crate::commands::{Failure, Talk};
use querent::compare::{EVERYTHING, NOTHING, tree};
use querent::data::table::Prepared;
use querent::methods::{Entry, METHODS};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What practitioners would do instead, beside the methods.
pub const INSTEAD: &[&str] = &[tree::NAME, EVERYTHING, NOTHING];

/// What holds for every cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// The engine.
    pub engine: EngineName,
    /// Minutes of a training.
    pub minutes: Option<f64>,
    /// Epochs of a stage.
    pub epochs: Option<usize>,
    /// Steps of an epoch.
    pub epoch_steps: Option<usize>,
    /// Width of hidden layers.
    pub hidden: Option<usize>,
    /// Validation and test rows, at most.
    pub rows: Option<usize>,
    /// Points of a curve, at most.
    pub points: usize,
    /// The α that were said.
    pub alphas: Option<Vec<f64>>,
    /// Methods under other settings.
    #[serde(default)]
    pub variants: Vec<Variant>,
    /// Settings of methods and variants, by their names.
    pub set: Vec<(String, String)>,
    /// The data folder, where one was said.
    pub data_dir: Option<PathBuf>,
}

impl Options {
    /// What the arguments say, for these methods.
    ///
    /// # Errors
    /// A number or a setting that cannot be.
    pub fn new(args: &Args, methods: &[String]) -> Result<Self, Failure> {
        for (name, count) in [("--rows", args.rows), ("--points", Some(args.points)), ("--jobs", args.jobs)] {
            if count == Some(0) {
                return Err(Failure::Refused(format!("{name} is 0, but it must be at least 1")));
            }
        }
        let variants = variant::read(&args.variant)?;
        // What is said for a method counts for its variants as well, also where it is not compared itself.
        let mut known: Vec<&str> = methods.iter().map(String::as_str).collect();
        for name in variants.iter().flat_map(|variant| [variant.name.as_str(), &variant.method]) {
            if !known.contains(&name) {
                known.push(name);
            }
        }
        let mut set = Vec::new();
        for said in &args.set {
            let Some((method, assignment)) = said.split_once(':').map(|(of, set)| (of.trim(), set)) else {
                return Err(Failure::Refused(format!(
                    "--set {said}: say which method it is for, as in --set nmppg:{said}"
                )));
            };
            if !known.contains(&method) {
                return Err(Failure::Refused(format!(
                    "--set {said}: `{method}` is not compared; there are {}",
                    known.join(", ")
                )));
            }
            set.push((method.to_string(), assignment.to_string()));
        }
        if let Some(same) = variants.iter().find(|variant| !set.iter().any(|(of, _)| *of == variant.name)) {
            let Variant { name, method } = same;
            return Err(Failure::Refused(format!(
                "--variant {name}={method}: say what is other than in {method}, as in --set \"{name}:FIELD=VALUE\""
            )));
        }
        Ok(Self {
            engine: args.engine,
            minutes: args.minutes,
            epochs: args.epochs,
            epoch_steps: args.epoch_steps,
            hidden: args.hidden,
            rows: args.rows,
            points: args.points,
            alphas: match &args.alphas {
                Alphas::Auto => None,
                Alphas::These(alphas) => Some(alphas.clone()),
            },
            variants,
            set,
            data_dir: args.data_dir.clone(),
        })
    }

    /// What is not as by default, in words.
    pub fn words(&self) -> Vec<String> {
        let said = |name: &str, value: Option<String>| value.map(|value| format!("{name} {value}"));
        let count = |value: Option<usize>| value.map(|value| value.to_string());
        let options = [
            said("--minutes", self.minutes.map(|minutes| minutes.to_string())),
            said("--epochs", count(self.epochs)),
            said("--epoch-steps", count(self.epoch_steps)),
            said("--hidden", count(self.hidden)),
            said("--rows", count(self.rows)),
        ];
        let set = self.set.iter().map(|(method, assignment)| Some(format!("--set {method}:{assignment}")));
        let variants =
            self.variants.iter().map(|Variant { name, method }| Some(format!("--variant {name}={method}")));
        options.into_iter().chain(variants).chain(set).flatten().collect()
    }

    /// The method that a name stands for: itself, or that of a variant.
    pub fn method_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.variants.iter().find(|variant| variant.name == name).map_or(name, |variant| &variant.method)
    }

    /// What was said for a method; for a variant that of its method, and then its own.
    pub fn set_of(&self, name: &str) -> Vec<String> {
        let method = self.method_of(name);
        let of = |whose: &str| -> Vec<String> {
            self.set.iter().filter(|(of, _)| of == whose).map(|(_, set)| set.clone()).collect()
        };
        if method == name { of(name) } else { [of(method), of(name)].concat() }
    }

    /// Reads a table, with as many rows as are wanted.
    ///
    /// # Errors
    /// What is wrong with it, or that it has no validation or test rows.
    pub fn load(&self, source: &Source, seed: u64, room: &Room, talk: Talk) -> Result<Prepared, Failure> {
        let mut prepared = source.load(seed, room, talk)?;
        for (part, rows) in [("validation", prepared.data.sizes()[1]), ("test", prepared.data.sizes()[2])] {
            if rows == 0 {
                return Err(Failure::Refused(format!(
                    "{}: there are no {part} rows, and a comparison needs them: validation rows choose the points of each \
                     curve, test rows tell what they are worth. Change the shares in [split] of its problem file",
                    source.name()
                )));
            }
        }
        if let Some(rows) = self.rows {
            prepared.data = prepared.data.thinned([usize::MAX, rows, rows])?;
        }
        Ok(prepared)
    }
}

/// The methods that are to be compared, each once, in the order of the list of methods.
///
/// # Errors
/// There is none of that name.
pub fn chosen(said: &[String]) -> Result<Vec<String>, Failure> {
    let all: Vec<&str> =
        METHODS.iter().map(|entry: &&Entry| entry.name).chain(INSTEAD.iter().copied()).collect();
    let is_all = said.iter().any(|name| name == "all");
    if let Some(unknown) = said.iter().find(|name| *name != "all" && !all.contains(&name.as_str())) {
        return Err(Failure::Refused(format!(
            "there is no method `{unknown}`; there are {}, or `all`",
            all.join(", ")
        )));
    }
    let chosen = all.into_iter().filter(|name| is_all || said.iter().any(|said| said == name));
    Ok(chosen.map(str::to_string).collect())
}
