//! `querent train`: one model for a range of α, or one for each α and seed.

pub(super) mod aim;
pub(super) mod engine;
mod folder;
pub(super) mod lock;
pub(super) mod minutes;
pub(super) mod model;
mod results;
pub(super) mod tried;

use super::room::{self, Room};
use super::source::Source;
use super::{Failure, Talk, curve, interrupt, say};
use aim::Aim;
pub use engine::EngineName;
use engine::Trained;
use minutes::Allotted;
pub use minutes::Pace;
use model::Job;
use querent::data::Dataset;
use querent::data::table::Prepared;
use querent::methods::fixed;
use querent::methods::set::set;
use querent::methods::{self, Entry};
use querent::nmppg::{self, Config};
use querent::{Error, Model};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Train on a problem.toml or on a data set of the catalog.
#[derive(Clone, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A problem.toml, or the name of a data set (`querent data list`).
    pub(super) problem: String,
    /// The method: `querent methods` lists them.
    #[arg(long, value_name = "NAME", default_value = "nmppg")]
    pub(super) method: String,
    /// Train one model for all α between these two [default: the range that makes a difference, found on the way].
    #[arg(long, value_name = "LO,HI", value_delimiter = ',', num_args = 1)]
    pub(super) range: Option<Vec<f64>>,
    /// Train for one α alone, what a unit of cost is worth in nats of loss: larger values ask less.
    #[arg(long, value_name = "A", conflicts_with = "range")]
    pub(super) alpha: Option<f64>,
    /// Train a model for each of these α alone.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "range"])]
    pub(super) alphas: Option<Vec<f64>>,
    /// Of a method whose training does not know α: the thresholds of its stop rule to show
    /// [default: six, from asking much to asking little].
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "alphas", "range"])]
    pub(super) thresholds: Option<Vec<f64>>,
    /// Any setting of the method, by its name; may be repeated. `querent methods NAME` lists them.
    #[arg(long, value_name = "FIELD=VALUE")]
    pub(super) set: Vec<String>,
    /// Seeds of weights and noise: one model for each.
    #[arg(long, value_name = "N,M,…", value_delimiter = ',', default_value = "0")]
    pub(super) seeds: Vec<u64>,
    /// What computes: auto takes a hardware GPU if there is one and a few steps on it are faster than on the CPU; where a
    /// larger batch is faster still there, and the table is large enough, it is taken with rates that fit.
    #[arg(long, value_enum, default_value = "auto")]
    pub(super) engine: EngineName,
    /// Where the models and run.json go [default: runs/NAME].
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Go on with a run that was interrupted: what is finished is kept.
    #[arg(long)]
    pub(super) resume: bool,
    /// Begin anew where there is a run already: its models are removed.
    #[arg(long, conflicts_with = "resume")]
    pub(super) force: bool,
    /// Be done within about so many minutes, by shorter epochs where the schedule would take longer: a short rehearsal
    /// measures how many steps fit. Every temperature is still gone through. --baselines takes its time on top.
    #[arg(long, value_name = "M")]
    pub(super) minutes: Option<f64>,
    /// Epochs of each stage, at most.
    #[arg(long, value_name = "N")]
    pub(super) epochs: Option<usize>,
    /// Training steps of an epoch, at most: it has as many whole passes over the training rows as fit into them, and at
    /// least one, however long that is [default: the method's, NM-PPG's 900, or 20 passes if they are fewer].
    #[arg(long, value_name = "N")]
    pub(super) epoch_steps: Option<usize>,
    /// Questions asked of one instance, at most [default: all, at most 30].
    #[arg(long, value_name = "N")]
    pub(super) horizon: Option<usize>,
    /// Width of the hidden layers; NM-PPG's policy has a first one twice as wide [default: 128].
    #[arg(long, value_name = "N")]
    pub(super) hidden: Option<usize>,
    /// Chance that a hidden unit of the predictor is left out in training
    /// [default: the method's, see `querent methods NAME`; NM-PPG's 0.3, and 0 from 5,000 rows on].
    #[arg(long, value_name = "P")]
    pub(super) dropout: Option<f64>,
    /// Also measure what has to be beaten: asking nothing, a fixed set of features of the same cost for
    /// everybody, and all features.
    #[arg(long)]
    pub(super) baselines: bool,
    /// Train, validate and test on at most so many rows of the table, chosen at random by the seed of its split.
    #[arg(long, value_name = "N")]
    pub(super) sample: Option<u64>,
    /// What the rows may take in memory, such as 8G: a table that needs more is refused before it is read [default: what is
    /// available, on Linux].
    #[arg(long, value_name = "BYTES", value_parser = room::bytes)]
    pub(super) memory: Option<room::Bytes>,
    /// Where the catalog's files are [default: QUERENT_DATA, or `querent` in the user's data folder].
    #[arg(long, value_name = "DIR")]
    pub(super) data_dir: Option<PathBuf>,
}

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent train problem.toml                  one model for every trade-off
  querent train problem.toml --baselines      and what it has to beat
  querent train problem.toml --range 0.01,1   one model for these trade-offs
  querent train problem.toml --alpha 0.05     a model for one trade-off
  querent train problem.toml --minutes 5      a schedule of five minutes
  querent train problem.toml --resume         go on after an interruption
  querent train problem.toml --force          begin anew where there is a run
  querent train problem.toml --sample 100000  some rows of a very long table
  querent train diabetes --seeds 0,1,2        a data set by name, three seeds
  querent train syn1 --method gdfs            another of `querent methods`
  querent train syn1 --set stage_epochs=3     any setting of the method

α is the price of cost: with α = 0.05 a question of cost 1 is worth asking if it lowers the loss by 0.05 nats. Nobody has \
to know it before training: the model learns all that make a difference, and `querent ask` chooses one by --alpha, by what \
may be spent (--spend), or by what is to be reached (--target).

Ctrl-C ends training after the epoch at hand; --resume goes on from there with the same bits. The run's folder, runs/NAME, \
holds run.json, and for each model a model.safetensors and a checkpoint. `querent report` draws it.";

/// A method's settings for a table: its own defaults, then what was said.
pub(super) fn settings(
    args: &Args,
    entry: &Entry,
    data: &Dataset,
    aim: &Aim,
    seed: u64,
) -> querent::Result<Value> {
    let defaults = (entry.defaults)(data);
    let mut settings = defaults.clone();
    let mut assign =
        |name: &str, value: String| set(&mut settings, &format!("{name}={value}"), entry.renamed);
    assign("seed", seed.to_string())?;
    let flags = [
        ("stage_epochs", args.epochs.map(|n| n.to_string())),
        ("epoch_steps", args.epoch_steps.map(|n| n.to_string())),
        ("horizon", args.horizon.map(|n| n.to_string())),
        ("dropout", args.dropout.map(|p| p.to_string())),
    ];
    for (name, value) in flags {
        if let Some(value) = value {
            assign(name, value)?;
        }
    }
    if let Some(width) = args.hidden {
        (entry.widen)(&mut settings, width);
    }
    for assignment in &args.set {
        set(&mut settings, assignment, entry.renamed)?;
    }
    if let Some(alpha) = aim.setting() {
        settings["alpha"] = alpha;
    }
    (entry.settle)(&defaults, settings)
}

/// What has to be beaten is measured with NM-PPG's predictor, whatever the method.
pub(super) fn reference(args: &Args, data: &Dataset, seed: u64) -> querent::Result<Config> {
    let entry = methods::find(nmppg::NAME)?;
    let own = args.method == nmppg::NAME;
    let args = &Args { set: if own { args.set.clone() } else { Vec::new() }, ..args.clone() };
    // A predictor that sees everything, or a fixed set, knows no trade-off.
    let settings = settings(args, entry, data, &Aim::One(1.0), seed)?;
    serde_json::from_value(settings).map_err(|error| Error::Config(error.to_string()))
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the table, the engine or the folder; or an interruption.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let start = Instant::now();
    let entry = methods::find(&args.method)?;
    let aims = Aim::all(args, entry)?;
    if aims.is_empty() || args.seeds.is_empty() {
        return Err(Failure::Refused("there is no α or no seed to train with".into()));
    }
    let mut allotted = Allotted::new(args, start, aims.len() * args.seeds.len())?;
    let source = Source::find(&args.problem, args.data_dir.as_deref())?;
    if let (Some(_), Source::Named(entry, _)) = (args.sample, &source) {
        return Err(Failure::Refused(format!(
            "--sample is for tables of your own, and `{}` is a data set of the catalog, whose rows are what they are",
            entry.name
        )));
    }
    if args.sample == Some(0) {
        return Err(Failure::Refused("--sample is 0, but it must be at least 1".into()));
    }
    let room = Room::new(args.memory, args.sample)?;
    let mut prepared = source.load(args.seeds[0], &room, talk)?;
    let mut loaded = args.seeds[0];
    // Settings that cannot be are refused before anything is written.
    for aim in &aims {
        (entry.check)(&prepared.data, &settings(args, entry, &prepared.data, aim, 0)?)?;
    }
    let first = Trained { args, talk, entry, data: &prepared.data, aim: &aims[0] };
    let (engine, batch) = first.fastest_with_batch(args.engine.open()?)?;
    let folder = args.out.clone().unwrap_or_else(|| Path::new("runs").join(source.name()));
    let (mut record, _lock) = folder::open(&folder, args, &source, &prepared, &engine)?;
    let single = aims.len() * args.seeds.len() == 1;
    let place = |aim: &Aim, seed| if single { String::new() } else { aim.folder(seed) };
    for (aim, &seed) in aims.iter().flat_map(|aim| args.seeds.iter().map(move |seed| (aim, seed))) {
        folder::begin(&folder.join(place(aim, seed)), args)?;
    }
    interrupt::answer("stopping after this epoch; press again to stop at once", false);
    announce(talk, &source, &prepared);
    aims.iter().filter_map(|aim| aim.warning(&prepared.data)).for_each(|warning| say(talk, warning));
    let args = &tried::with_tried(&first, (&engine, batch), &source, &mut record)?;
    if interrupt::pressed() {
        return Err(Failure::Refused("interrupted before the first epoch: nothing is kept".into()));
    }
    // What was tried is not tried again if the first model is interrupted.
    record.save(&folder)?;
    for (aim, &seed) in aims.iter().flat_map(|aim| args.seeds.iter().map(move |seed| (aim, seed))) {
        if source.is_synthetic() && seed != loaded {
            prepared = source.load(seed, &room, talk)?;
            loaded = seed;
        }
        let place = place(aim, seed);
        let job = Job {
            args,
            talk,
            engine: &engine,
            prepared: &prepared,
            entry,
            aim,
            seed,
            folder: &folder,
            place,
        };
        job.carry_out(&mut record, allotted.as_mut())?;
    }
    if args.baselines && record.everything.is_none() {
        say(talk, "asking nothing, and everything");
        let settings = reference(args, &prepared.data, args.seeds[0])?;
        record.nothing = Some(fixed::subset_blocking(&engine, &prepared.data, &settings, &[])?);
        record.everything = Some(fixed::everything_blocking(&engine, &prepared.data, &settings)?);
        record.save(&folder)?;
    }
    results::show(&record, out)?;
    let Some((best, which)) = results::best(&record) else {
        return Err(Failure::Refused("no model was tested".into()));
    };
    let model = folder.join(&best.model);
    curve::show(&Model::load(&model)?, &model, out)?;
    let which = which.map_or(String::new(), |which| format!(" ({which})"));
    writeln!(out, "\nAsk it{which}: querent ask {}", model.display())?;
    writeln!(out, "See it: querent report {}", folder.display())?;
    Ok(())
}

fn announce(talk: Talk, source: &Source, prepared: &Prepared) {
    let problem = prepared.data.problem();
    let [train, validation, test] = prepared.data.sizes();
    say(
        talk,
        format_args!(
            "{}: {train} training, {validation} validation and {test} test rows; {} features in {} columns, {} classes",
            source.name(),
            problem.features().len(),
            problem.columns(),
            problem.classes().len()
        ),
    );
}
