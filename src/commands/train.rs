//! `querent train`: one model, or one for each α and seed.

use super::source::Source;
use super::{Failure, Talk, interrupt, progress, say, write_table};
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
    /// What one unit of cost is worth in nats of loss: larger values ask less.
    #[arg(long, value_name = "A")]
    alpha: Option<f64>,
    /// Train at each of these α instead, for a curve of performance against cost.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with = "alpha")]
    alphas: Option<Vec<f64>>,
    /// Of a method whose training does not know α: the thresholds of its stop rule to show
    /// [default: six, from asking much to asking little].
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "alphas"])]
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
  querent train problem.toml --alpha 0.05              a model in runs/NAME/model.safetensors
  querent train problem.toml --alphas 0.01,0.03,0.1    a model for each, for a curve
  querent train problem.toml --alpha 0.05 --baselines  and what it has to beat
  querent train diabetes --seeds 0,1,2 --out runs/d    a data set of the catalog, three seeds
  querent train problem.toml --alpha 0.05 --resume     go on after an interruption
  querent train syn1 --method gdfs                     another method: `querent methods` lists them
  querent train syn1 --set stage_epochs=3              any setting of the method

α is the price of cost: with α = 0.05 a question of cost 1 is worth asking if it lowers the loss by 0.05
nats. Ctrl-C ends training after the epoch at hand; --resume goes on from there with the same bits. The run's
folder holds run.json, and for each model a model.safetensors and a checkpoint. `querent report` draws it.";

/// A method's settings for a table: its own defaults, then what was said.
fn settings(args: &Args, entry: &Entry, data: &Dataset, alpha: f64, seed: u64) -> querent::Result<Value> {
    let defaults = (entry.defaults)(data);
    let mut settings = defaults.clone();
    let mut assign =
        |name: &str, value: String| set(&mut settings, &format!("{name}={value}"), entry.renamed);
    if entry.tradeoff == Tradeoff::Alpha {
        assign("alpha", alpha.to_string())?;
    }
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
    (entry.settle)(&defaults, settings)
}

/// What has to be beaten is measured with NM-PPG's predictor, whatever the method.
fn reference(args: &Args, data: &Dataset, alpha: f64, seed: u64) -> querent::Result<Config> {
    let entry = methods::find(nmppg::NAME)?;
    let own = args.method == nmppg::NAME;
    let args = &Args { set: if own { args.set.clone() } else { Vec::new() }, ..args.clone() };
    let settings = settings(args, entry, data, alpha, seed)?;
    serde_json::from_value(settings).map_err(|error| Error::Config(error.to_string()))
}

/// α where none is said.
const ALPHA: f64 = 0.02;

/// Thresholds on the belief's entropy where none are said, as shares of what knowing nothing has.
const THRESHOLDS: [f64; 6] = [0.05, 0.15, 0.3, 0.5, 0.7, 0.9];

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the table, the engine or the folder; or an interruption.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let alphas = args.alphas.clone().unwrap_or(vec![args.alpha.unwrap_or(ALPHA)]);
    if alphas.is_empty() || args.seeds.is_empty() {
        return Err(Failure::Refused("there is no α or no seed to train with".into()));
    }
    let source = Source::find(&args.problem, args.data_dir.as_deref())?;
    let mut prepared = source.load(args.seeds[0], talk)?;
    let entry = methods::find(&args.method)?;
    let (said, other) = match entry.tradeoff {
        Tradeoff::Alpha => {
            (args.thresholds.is_some(), "it is trained for an α: --alpha instead of --thresholds")
        }
        Tradeoff::Threshold => (
            args.alpha.is_some() || args.alphas.is_some(),
            "its training knows no α, and one has every threshold: --thresholds instead of --alpha",
        ),
    };
    if said {
        return Err(Failure::Refused(format!("{}: {other}", entry.name)));
    }
    // One training has all thresholds.
    let alphas = if entry.tradeoff == Tradeoff::Alpha { alphas } else { vec![0.0] };
    // Settings that cannot be are refused before anything is written.
    for &alpha in &alphas {
        (entry.check)(&prepared.data, &settings(args, entry, &prepared.data, alpha, 0)?)?;
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
        Run { data_dir: source.data_dir(), ..resumed(&folder, args, &prepared)? }
    } else {
        fresh(args, &source, &prepared, &engine)
    };
    announce(talk, &source, &prepared);
    let single = alphas.len() * args.seeds.len() == 1;
    for &alpha in &alphas {
        for &seed in &args.seeds {
            let name = match entry.tradeoff {
                Tradeoff::Alpha => format!("α {alpha}, seed {seed}"),
                Tradeoff::Threshold => format!("seed {seed}"),
            };
            let is_it = |point: &Point| {
                point.seed == seed
                    && point.method == entry.name
                    && (entry.tradeoff == Tradeoff::Threshold || point.alpha == alpha)
            };
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
            let place = match (single, entry.tradeoff) {
                (true, _) => String::new(),
                (false, Tradeoff::Alpha) => format!("alpha_{alpha}_seed_{seed}/"),
                (false, Tradeoff::Threshold) => format!("seed_{seed}/"),
            };
            let job = Job { entry, alpha, seed, folder: &folder, place };
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
        let settings = reference(args, &prepared.data, alphas[0], args.seeds[0])?;
        record.nothing = Some(fixed::subset_blocking(&engine, &prepared.data, &settings, &[])?);
        record.everything = Some(fixed::everything_blocking(&engine, &prepared.data, &settings)?);
        record.save(&folder)?;
    }
    show(&record, out)?;
    let model = folder.join(&record.points[0].model);
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
    alpha: f64,
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
    let &Job { entry, alpha, seed, folder, ref place } = job;
    let here = folder.join(place);
    std::fs::create_dir_all(&here).map_err(|error| Error::io(&here, error))?;
    let checkpoint = here.join("checkpoint.safetensors");
    let mut trainer = (entry.start)(engine, data, settings(args, entry, data, alpha, seed)?)?;
    if args.resume && checkpoint.exists() {
        trainer.resume(&checkpoint)?;
        files::clear_remains(&checkpoint);
    }
    progress::train(engine, &mut *trainer, &checkpoint, talk)?;
    let model = trainer.finish_blocking()?.with_encoding(prepared.encoding.clone())?;
    let file = format!("{place}model.safetensors");
    model.save(folder.join(&file))?;
    let seconds = trainer.history().last().map_or(0.0, |epoch| epoch.seconds);
    let epochs = [trainer.history().len(), trainer.epochs_at_most()];
    Ok(TrainedModel { model, file, seconds, epochs })
}

/// Tests a model: at its α, or at each threshold. What was tested before is not tested again.
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
    let tradeoffs = match job.entry.tradeoff {
        Tradeoff::Alpha => vec![job.alpha],
        Tradeoff::Threshold => args.thresholds.clone().unwrap_or_else(|| {
            let most = (data.problem().classes().len() as f64).ln();
            THRESHOLDS.map(|share| (share * most * 1e3).round() / 1e3).to_vec()
        }),
    };
    let mut points = Vec::new();
    for tradeoff in tradeoffs {
        if let Some(point) = before.iter().find(|point| point.alpha == tradeoff) {
            points.push(point.clone());
            continue;
        }
        let model = match job.entry.tradeoff {
            Tradeoff::Alpha => trained.model.clone(),
            Tradeoff::Threshold => trained.model.clone().with_tradeoff(tradeoff)?,
        };
        let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
        let outcomes = evaluate::outcomes(&model, data, part, f64::INFINITY)?;
        let labels = &data.splits()[part as usize].y;
        let test = outcomes.traces.summary(data.problem(), labels, model.alpha());
        let subsets = if args.baselines && data.sizes()[2] > 0 {
            fixed_sets(args, talk, engine, data, job, test.cost)?
        } else {
            Vec::new()
        };
        points.push(Point {
            method: job.entry.name.into(),
            alpha: tradeoff,
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

/// The best fixed set of features of the same cost: one that is not above it, and the next.
fn fixed_sets(
    args: &Args,
    talk: Talk,
    engine: &Engine,
    data: &Dataset,
    job: &Job,
    cost: f64,
) -> Result<Vec<Subset>, Failure> {
    say(talk, "looking for the best fixed set of features of the same cost");
    let settings = reference(args, data, job.alpha, job.seed)?;
    let chosen = fixed::choose_blocking(engine, data, &settings, cost)?;
    // The last one is beyond the cost: one set without it, one with it.
    let mut subsets = Vec::new();
    for count in [chosen.len().saturating_sub(1), chosen.len()] {
        subsets.push(fixed::subset_blocking(engine, data, &settings, &chosen[..count])?);
    }
    Ok(subsets)
}

/// The results as a table.
fn show(record: &Run, out: &mut impl Write) -> Result<(), Failure> {
    let metric = record.metric;
    let mut rows =
        vec![vec!["".to_string(), metric.to_string(), "loss".into(), "cost".into(), "questions".into()]];
    let number = |value: f64| format!("{value:.4}");
    for point in &record.points {
        let test = &point.test;
        rows.push(vec![
            format!("{} {}, seed {}", point.symbol(), point.alpha, point.seed),
            number(test.score(metric)),
            number(test.loss),
            format!("{:.3}", test.cost),
            format!("{:.2}", test.acquisitions),
        ]);
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
