//! `querent train`: one model for a range of α, or one for each α and seed.

use super::source::Source;
use super::{Failure, Talk, curve, interrupt, progress, say, write_table};
use querent::data::Dataset;
use querent::data::Part;
use querent::data::table::Prepared;
use querent::digest::Digest;
use querent::methods::fixed;
use querent::methods::fixed::Subset;
use querent::methods::set::set;
use querent::methods::{self, Entry, Tradeoff};
use querent::nmppg::{self, Config};
use querent::policy::evaluate;
use querent::run::{Point, Run};
use querent::{Engine, Error, Model, files};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train on a problem.toml or on a data set of the catalog.
#[derive(Clone, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A problem.toml, or the name of a data set (`querent data list`).
    problem: String,
    /// The method: `querent methods` lists them.
    #[arg(long, value_name = "NAME", default_value = "nmppg")]
    method: String,
    /// Train one model for all α between these two [default: the range that makes a difference, found on the way].
    #[arg(long, value_name = "LO,HI", value_delimiter = ',', num_args = 1)]
    range: Option<Vec<f64>>,
    /// Train for one α alone, what a unit of cost is worth in nats of loss: larger values ask less.
    #[arg(long, value_name = "A", conflicts_with = "range")]
    alpha: Option<f64>,
    /// Train a model for each of these α alone.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "range"])]
    alphas: Option<Vec<f64>>,
    /// Of a method whose training does not know α: the thresholds of its stop rule to show
    /// [default: six, from asking much to asking little].
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "alphas", "range"])]
    thresholds: Option<Vec<f64>>,
    /// Any setting of the method, by its name; may be repeated. `querent methods NAME` lists them.
    #[arg(long, value_name = "FIELD=VALUE")]
    set: Vec<String>,
    /// Seeds of weights and noise: one model for each.
    #[arg(long, value_name = "N,M,…", value_delimiter = ',', default_value = "0")]
    seeds: Vec<u64>,
    /// What computes: auto takes a hardware GPU if there is one.
    #[arg(long, value_enum, default_value = "auto")]
    engine: EngineName,
    /// Where the models and run.json go [default: runs/NAME].
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with a run that was interrupted: what is finished is kept.
    #[arg(long)]
    resume: bool,
    /// Epochs of each stage, at most.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Training steps of an epoch [default: at most 900, and 20 passes over the rows].
    #[arg(long, value_name = "N")]
    epoch_steps: Option<usize>,
    /// Questions asked of one instance, at most [default: all, at most 30].
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// Width of the hidden layers; NM-PPG's policy has a first one twice as wide [default: 128].
    #[arg(long, value_name = "N")]
    hidden: Option<usize>,
    /// Chance that a hidden unit of the predictor is left out in training
    /// [default: 0.3; NM-PPG's 0 from 5,000 rows on].
    #[arg(long, value_name = "P")]
    dropout: Option<f64>,
    /// Also measure what has to be beaten: asking nothing, a fixed set of features of the same cost for
    /// everybody, and all features.
    #[arg(long)]
    baselines: bool,
    /// Where the catalog's files are [default: QUERENT_DATA, or `querent` in the user's data folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The engines' names.
#[derive(Clone, Copy, Debug, PartialEq, clap::ValueEnum)]
pub enum EngineName {
    /// A hardware GPU if there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU, also a software one.
    Gpu,
}

impl EngineName {
    /// The engine.
    ///
    /// # Errors
    /// There is none of that kind.
    pub fn open(self) -> querent::Result<Engine> {
        match self {
            Self::Auto => Engine::auto_blocking(),
            Self::Cpu => Ok(Engine::cpu()),
            Self::Gpu => Engine::gpu_blocking(),
        }
    }
}

const HELP: &str = "\
Examples:
  querent train problem.toml                           one model for every trade-off: runs/NAME/model.safetensors
  querent train problem.toml --baselines               and what it has to beat
  querent train problem.toml --range 0.01,0.5          one model for these trade-offs
  querent train problem.toml --alpha 0.05              a model for one trade-off
  querent train diabetes --seeds 0,1,2 --out runs/d    a data set of the catalog, three seeds
  querent train problem.toml --resume                  go on after an interruption
  querent train syn1 --method gdfs                     another method: `querent methods` lists them
  querent train syn1 --set stage_epochs=3              any setting of the method

α is the price of cost: with α = 0.05 a question of cost 1 is worth asking if it lowers the loss by 0.05
nats. Nobody has to know it before training: the model learns all that make a difference, and `querent ask`
chooses one by --alpha, by what may be spent (--spend), or by what is to be reached (--target).

Ctrl-C ends training after the epoch at hand; --resume goes on from there with the same bits. The run's
folder holds run.json, and for each model a model.safetensors and a checkpoint. `querent report` draws it.";

/// A method's settings for a table: its own defaults, then what was said.
fn settings(args: &Args, entry: &Entry, data: &Dataset, aim: &Aim, seed: u64) -> querent::Result<Value> {
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
fn reference(args: &Args, data: &Dataset, seed: u64) -> querent::Result<Config> {
    let entry = methods::find(nmppg::NAME)?;
    let own = args.method == nmppg::NAME;
    let args = &Args { set: if own { args.set.clone() } else { Vec::new() }, ..args.clone() };
    // A predictor that sees everything, or a fixed set, knows no trade-off.
    let settings = settings(args, entry, data, &Aim::One(1.0), seed)?;
    serde_json::from_value(settings).map_err(|error| Error::Config(error.to_string()))
}

/// What a model is trained for.
#[derive(Clone, Debug, PartialEq)]
enum Aim {
    /// One α.
    One(f64),
    /// All α of a range.
    Range([f64; 2]),
    /// All α of the range that makes a difference.
    Found,
    /// The method does not know α: every threshold of its stop rule.
    Thresholds,
}

impl Aim {
    /// What there is to train, as the arguments say.
    fn all(args: &Args, entry: &Entry) -> Result<Vec<Self>, Failure> {
        let alpha_said = args.alpha.is_some() || args.alphas.is_some() || args.range.is_some();
        let refused = match entry.tradeoff {
            Tradeoff::Alpha if args.thresholds.is_some() => {
                Some("it is trained for α: --range or --alpha instead of --thresholds")
            }
            Tradeoff::Threshold if alpha_said => {
                Some("its training knows no α, and one has every threshold: --thresholds instead of --alpha")
            }
            _ => None,
        };
        if let Some(instead) = refused {
            return Err(Failure::Refused(format!("{}: {instead}", entry.name)));
        }
        let names = args.set.iter().map(|assignment| assignment.split('=').next().unwrap_or_default().trim());
        if entry.tradeoff == Tradeoff::Alpha && names.into_iter().any(|name| name == "alpha") {
            return Err(Failure::Refused("--set alpha: say --alpha A or --range LO,HI instead".into()));
        }
        let aims = match (&args.alphas, args.alpha, args.range.as_deref()) {
            _ if entry.tradeoff == Tradeoff::Threshold => vec![Self::Thresholds],
            (Some(alphas), ..) => alphas.iter().map(|&alpha| Self::One(alpha)).collect(),
            (_, Some(alpha), _) => vec![Self::One(alpha)],
            (.., Some(&[from, to])) => vec![Self::Range([from, to])],
            (.., Some(other)) => {
                return Err(Failure::Refused(format!(
                    "--range needs two numbers, as in --range 0.005,0.1, but has {}",
                    other.len()
                )));
            }
            _ => vec![Self::Found],
        };
        let numbers = aims.iter().flat_map(|aim| match aim {
            Self::One(alpha) => vec![*alpha],
            Self::Range(ends) => ends.to_vec(),
            _ => Vec::new(),
        });
        if let Some(bad) = numbers.into_iter().find(|number| !number.is_finite()) {
            return Err(Failure::Refused(format!("alpha must be a number, but it is {bad}")));
        }
        Ok(aims)
    }

    /// The setting `alpha`, for a method that has it.
    fn setting(&self) -> Option<Value> {
        match self {
            Self::One(alpha) => Some((*alpha).into()),
            Self::Range(ends) => Some(ends.to_vec().into()),
            Self::Found => Some("auto".into()),
            Self::Thresholds => None,
        }
    }

    /// Whether a point is of a model that was trained for this.
    fn is_of(&self, point: &Point) -> bool {
        match self {
            Self::One(alpha) => point.range.is_none() && point.alpha == *alpha,
            Self::Range(ends) => point.range == Some(*ends),
            Self::Found => point.range.is_some(),
            Self::Thresholds => true,
        }
    }

    /// For messages.
    fn name(&self, seed: u64) -> String {
        match self {
            Self::One(alpha) => format!("α {alpha}, seed {seed}"),
            Self::Range([from, to]) => format!("α {from} to {to}, seed {seed}"),
            Self::Found | Self::Thresholds => format!("seed {seed}"),
        }
    }

    /// The folder, where there are several models.
    fn folder(&self, seed: u64) -> String {
        match self {
            Self::One(alpha) => format!("alpha_{alpha}_seed_{seed}/"),
            _ => format!("seed_{seed}/"),
        }
    }
}

/// Points of the curve that travels with a model of a range.
const CURVE: usize = 13;
/// Points of it that are tested and drawn.
const TESTED: usize = 7;

/// Thresholds on the belief's entropy where none are said, as shares of what knowing nothing has.
const THRESHOLDS: [f64; 6] = [0.05, 0.15, 0.3, 0.5, 0.7, 0.9];

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the table, the engine or the folder; or an interruption.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let entry = methods::find(&args.method)?;
    let aims = Aim::all(args, entry)?;
    if aims.is_empty() || args.seeds.is_empty() {
        return Err(Failure::Refused("there is no α or no seed to train with".into()));
    }
    let source = Source::find(&args.problem, args.data_dir.as_deref())?;
    let mut prepared = source.load(args.seeds[0], talk)?;
    // Settings that cannot be are refused before anything is written.
    for aim in &aims {
        (entry.check)(&prepared.data, &settings(args, entry, &prepared.data, aim, 0)?)?;
    }
    let engine = args.engine.open()?;
    let folder = args.out.clone().unwrap_or_else(|| Path::new("runs").join(source.name()));
    if folder.join(querent::run::FILE).exists() && !args.resume {
        return Err(Error::file(
            &folder,
            "there is a run in it already; --resume goes on with it, --out writes elsewhere",
        )
        .into());
    }
    std::fs::create_dir_all(&folder).map_err(|error| Error::io(&folder, error))?;
    interrupt::answer("stopping after this epoch; press again to stop at once", false);
    let mut record = if args.resume && folder.join(querent::run::FILE).exists() {
        // The files may be elsewhere by now.
        Run { data_dir: source.data_dir(), problem_file: source.file(), ..resumed(&folder, args, &prepared)? }
    } else {
        fresh(args, &source, &prepared, &engine)
    };
    announce(talk, &source, &prepared);
    let single = aims.len() * args.seeds.len() == 1;
    for aim in &aims {
        for &seed in &args.seeds {
            let name = aim.name(seed);
            let is_it = |point: &Point| point.seed == seed && point.method == entry.name && aim.is_of(point);
            let finished: Vec<Point> = record.points.iter().filter(|point| is_it(point)).cloned().collect();
            let is_complete = |thresholds: &Vec<f64>| {
                finished.iter().map(|point| point.alpha).eq(thresholds.iter().copied())
            };
            if !finished.is_empty() && args.thresholds.as_ref().is_none_or(is_complete) {
                say(talk, format_args!("{name}: finished before"));
                continue;
            }
            if source.is_synthetic() && seed != args.seeds[0] {
                prepared = source.load(seed, talk)?;
            }
            if !single {
                say(talk, &name);
            }
            let place = if single { String::new() } else { aim.folder(seed) };
            let job = Job { entry, aim, seed, folder: &folder, place };
            if let Some(before) = finished.first() {
                // One training has all thresholds: the model is tested at those that are new.
                say(talk, format_args!("{name}: trained before, tested at other thresholds"));
                let model = Model::load(folder.join(&before.model))?;
                let (seconds, epochs) = (before.seconds, before.epochs);
                let trained = TrainedModel { model, file: before.model.clone(), seconds, epochs };
                let points = test_points(args, talk, &engine, &prepared, &job, &trained, &finished)?;
                let place = record.points.iter().position(is_it).unwrap_or(0);
                record.points.retain(|point| !is_it(point));
                record.points.splice(place..place, points);
            } else {
                let trained = train_model(args, talk, &engine, &prepared, &job)?;
                record.points.extend(test_points(args, talk, &engine, &prepared, &job, &trained, &[])?);
            }
            record.save(&folder)?;
        }
    }
    if args.baselines && record.everything.is_none() {
        say(talk, "asking nothing, and everything");
        let settings = reference(args, &prepared.data, args.seeds[0])?;
        record.nothing = Some(fixed::subset_blocking(&engine, &prepared.data, &settings, &[])?);
        record.everything = Some(fixed::everything_blocking(&engine, &prepared.data, &settings)?);
        record.save(&folder)?;
    }
    show(&record, out)?;
    let Some(first) = record.points.first() else {
        return Err(Failure::Refused("no model was tested".into()));
    };
    let model = folder.join(&first.model);
    curve::show(&Model::load(&model)?, &model, out)?;
    writeln!(out, "\nAsk it: querent ask {}", model.display())?;
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

fn fresh(args: &Args, source: &Source, prepared: &Prepared, engine: &Engine) -> Run {
    let problem = prepared.data.problem();
    Run {
        querent: env!("CARGO_PKG_VERSION").into(),
        command: std::env::args().skip(1).collect::<Vec<_>>().join(" "),
        problem: args.problem.clone(),
        problem_file: source.file(),
        data_dir: source.data_dir(),
        engine: engine.to_string(),
        metric: prepared.metric,
        sizes: prepared.data.sizes(),
        classes: problem.classes().to_vec(),
        features: problem.features().len(),
        columns: problem.columns(),
        full_cost: problem.features().iter().map(|feature| feature.cost).sum(),
        known: prepared.encoding.known.iter().map(|field| field.name.clone()).collect(),
        points: Vec::new(),
        nothing: None,
        everything: None,
    }
}

/// The run in a folder, if it is of the same problem.
fn resumed(folder: &Path, args: &Args, prepared: &Prepared) -> Result<Run, Failure> {
    let record = Run::load(folder)?;
    let problem = prepared.data.problem();
    if record.problem != args.problem
        || record.sizes != prepared.data.sizes()
        || record.columns != problem.columns()
    {
        return Err(Error::file(
            folder,
            format!(
                "the run in it is of `{}`, or of a table that has changed since; use another --out",
                record.problem
            ),
        )
        .into());
    }
    Ok(record)
}

/// What is trained, and where it goes.
struct Job<'a> {
    entry: &'static Entry,
    aim: &'a Aim,
    seed: u64,
    folder: &'a Path,
    /// The models' place in it.
    place: String,
}

/// A model with what its training took.
struct TrainedModel {
    model: Model,
    /// Its file, relative to the run's folder.
    file: String,
    seconds: f64,
    epochs: [usize; 2],
}

/// Trains a model, or goes on with it.
fn train_model(
    args: &Args,
    talk: Talk,
    engine: &Engine,
    prepared: &Prepared,
    job: &Job,
) -> Result<TrainedModel, Failure> {
    let data = &prepared.data;
    let &Job { entry, aim, seed, folder, ref place } = job;
    let here = folder.join(place);
    std::fs::create_dir_all(&here).map_err(|error| Error::io(&here, error))?;
    let checkpoint = here.join("checkpoint.safetensors");
    let mut trainer = (entry.start)(engine, data, settings(args, entry, data, aim, seed)?)?;
    if args.resume && checkpoint.exists() {
        trainer.resume(&checkpoint)?;
        files::clear_remains(&checkpoint);
    }
    progress::train(engine, &mut *trainer, &checkpoint, talk)?;
    let model =
        trainer.finish_blocking()?.with_encoding(prepared.encoding.clone())?.with_curve(data, CURVE)?;
    if let Some(meaning) = curve::meaning(&model) {
        say(talk, meaning);
    }
    let file = format!("{place}model.safetensors");
    model.save(folder.join(&file))?;
    let seconds = trainer.history().last().map_or(0.0, |epoch| epoch.seconds);
    let epochs = [trainer.history().len(), trainer.epochs_at_most()];
    Ok(TrainedModel { model, file, seconds, epochs })
}

/// Tests a model: at its α, at some of its range, or at each threshold. What was tested before is not tested again.
fn test_points(
    args: &Args,
    talk: Talk,
    engine: &Engine,
    prepared: &Prepared,
    job: &Job,
    trained: &TrainedModel,
    before: &[Point],
) -> Result<Vec<Point>, Failure> {
    let data = &prepared.data;
    let tradeoffs = match job.aim {
        Aim::One(alpha) => vec![*alpha],
        Aim::Range(_) | Aim::Found => trained.model.alphas().map_or(Vec::new(), |range| {
            range.grid(TESTED).into_iter().map(|alpha| range.shown(alpha)).collect()
        }),
        Aim::Thresholds => args.thresholds.clone().unwrap_or_else(|| {
            let most = (data.problem().classes().len() as f64).ln();
            THRESHOLDS.map(|share| (share * most * 1e3).round() / 1e3).to_vec()
        }),
    };
    let (mut points, mut known) = (Vec::new(), Vec::new());
    for tradeoff in tradeoffs {
        if let Some(point) = before.iter().find(|point| point.alpha == tradeoff) {
            points.push(point.clone());
            continue;
        }
        let model = match job.aim {
            Aim::One(_) => trained.model.clone(),
            _ => trained.model.clone().with_tradeoff(tradeoff)?,
        };
        let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
        let outcomes = evaluate::outcomes(&model, data, part, f64::INFINITY)?;
        let labels = &data.splits()[part as usize].y;
        let test = outcomes.traces.summary(data.problem(), labels, model.alpha());
        let subsets = if args.baselines && data.sizes()[2] > 0 {
            fixed_sets(args, talk, engine, data, job, test.cost, &mut known)?
        } else {
            Vec::new()
        };
        points.push(Point {
            method: job.entry.name.into(),
            alpha: tradeoff,
            range: trained.model.alphas().map(Into::into),
            seed: job.seed,
            model: trained.file.clone(),
            seconds: trained.seconds,
            epochs: trained.epochs,
            digest: Digest::of(data, Some(&prepared.encoding), part, &outcomes),
            test,
            subsets,
        });
    }
    Ok(points)
}

/// The best fixed set of features of the same cost: one that is not above it, and the next. Sets that are known are not
/// measured again.
fn fixed_sets(
    args: &Args,
    talk: Talk,
    engine: &Engine,
    data: &Dataset,
    job: &Job,
    cost: f64,
    known: &mut Vec<(Vec<usize>, Subset)>,
) -> Result<Vec<Subset>, Failure> {
    say(talk, "looking for the best fixed set of features of the same cost");
    let settings = reference(args, data, job.seed)?;
    let chosen = fixed::choose_blocking(engine, data, &settings, cost)?;
    // The last one is beyond the cost: one set without it, one with it.
    let mut subsets = Vec::new();
    for count in [chosen.len().saturating_sub(1), chosen.len()] {
        // Points of one model that cost about the same have the same sets.
        let set = &chosen[..count];
        let subset = match known.iter().find(|(of, _)| of == set) {
            Some((_, subset)) => subset.clone(),
            None => {
                let subset = fixed::subset_blocking(engine, data, &settings, set)?;
                known.push((set.to_vec(), subset.clone()));
                subset
            }
        };
        subsets.push(subset);
    }
    Ok(subsets)
}

/// The results as a table.
fn show(record: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let metric = record.metric;
    let mut rows =
        vec![vec!["".to_string(), metric.to_string(), "loss".into(), "cost".into(), "questions".into()]];
    let number = |value: f64| format!("{value:.4}");
    // Points of one model have a column for what they have to beat, others lines of their own.
    let in_a_column = record.points.iter().all(|point| point.range.is_some() && !point.subsets.is_empty());
    if in_a_column {
        rows[0].push("the same for all, at that cost".into());
    }
    for point in &record.points {
        let test = &point.test;
        rows.push(vec![
            format!("{} {}, seed {}", point.symbol(), point.alpha, point.seed),
            number(test.score(metric)),
            number(test.loss),
            format!("{:.3}", test.cost),
            format!("{:.2}", test.acquisitions),
        ]);
        if let (true, Some(score), Some(row)) = (in_a_column, point.fixed_score(metric), rows.last_mut()) {
            row.push(number(score));
            continue;
        }
        for subset in &point.subsets {
            rows.push(vec![
                format!("  the same {} for all", subset.features.len()),
                number(subset.score(metric)),
                number(subset.loss),
                format!("{:.3}", subset.cost),
                subset.features.len().to_string(),
            ]);
        }
        if let (Some(score), true) = (point.fixed_score(metric), point.subsets.len() > 1) {
            rows.push(vec![
                "  between them, at the same cost".into(),
                number(score),
                "".into(),
                format!("{:.3}", test.cost),
            ]);
        }
    }
    for (name, subset) in [("nothing asked", &record.nothing), ("everything asked", &record.everything)] {
        if let Some(subset) = subset {
            rows.push(vec![
                name.into(),
                number(subset.score(metric)),
                number(subset.loss),
                format!("{:.3}", subset.cost),
            ]);
        }
    }
    let part = if record.sizes[2] > 0 { "test" } else { "validation" };
    writeln!(out, "On {} {part} rows", record.points.first().map_or(0, |point| point.test.instances))?;
    write_table(out, 1, &rows)?;
    Ok(())
}
