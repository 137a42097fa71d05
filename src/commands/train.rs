//! `querent train`: one model, or one for each α and seed.

use super::source::Source;
use super::{Failure, Talk, interrupt, progress, say, write_table};
use querent::data::Part;
use querent::data::table::Prepared;
use querent::digest::Digest;
use querent::nmppg::{Config, Trainer};
use querent::policy::evaluate;
use querent::run::{Point, Run};
use querent::{Engine, Error, baseline, files};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Train on a problem.toml or on a data set of the catalog.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A problem.toml, or the name of a data set (`querent data list`).
    problem: String,
    /// What one unit of cost is worth in nats of loss: larger values ask less.
    #[arg(long, value_name = "A", default_value_t = 0.02)]
    alpha: f64,
    /// Train at each of these α instead, for a curve of performance against cost.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with = "alpha")]
    alphas: Option<Vec<f64>>,
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
    /// Epochs of each of the five stages, at most.
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
    /// Training steps of an epoch [default: at most 900, and 20 passes over the rows].
    #[arg(long, value_name = "N")]
    epoch_steps: Option<usize>,
    /// Questions asked of one instance, at most [default: all, at most 30].
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// Width of the hidden layers; the policy's first one is twice as wide.
    #[arg(long, value_name = "N", default_value_t = 128)]
    hidden: usize,
    /// Chance that a hidden unit of the predictor is left out in training [default: 0.3 below 5,000 rows].
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

α is the price of cost: with α = 0.05 a question of cost 1 is worth asking if it lowers the loss by 0.05
nats. Ctrl-C ends training after the epoch at hand; --resume goes on from there with the same bits. The run's
folder holds run.json, and for each model a model.safetensors and a checkpoint. `querent report` draws it.";

/// The default settings for a table of so many training rows.
fn config(args: &Args, alpha: f64, seed: u64, rows: usize) -> Config {
    let mut config = Config { seed, horizon: args.horizon, ..Config::new(alpha) };
    // More than so many passes an epoch only teach a small table by heart.
    let passes = 20 * (rows / config.batch.min(rows).max(1)).max(1);
    config.schedule.epoch_steps = args.epoch_steps.unwrap_or(config.schedule.epoch_steps.min(passes));
    config.networks.dropout =
        args.dropout.unwrap_or(if rows < 5_000 { 0.3 } else { config.networks.dropout });
    config.networks.policy = [2 * args.hidden, args.hidden];
    config.networks.predictor = [args.hidden; 2];
    if let Some(epochs) = args.epochs {
        config.schedule.stage_epochs = epochs;
    }
    // The weights' average must be able to follow within the run.
    let steps = config.schedule.epoch_steps * (config.schedule.warm_up_epochs + config.schedule.stage_epochs);
    config.schedule.ema = config.schedule.ema.max(10.0 / steps.max(1) as f64).min(1.0);
    config
}

/// Runs the command.
///
/// # Errors
/// What is wrong with the arguments, the table, the engine or the folder; or an interruption.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let alphas = args.alphas.clone().unwrap_or(vec![args.alpha]);
    if alphas.is_empty() || args.seeds.is_empty() {
        return Err(Failure::Refused("there is no α or no seed to train with".into()));
    }
    let source = Source::find(&args.problem, args.data_dir.as_deref())?;
    let mut prepared = source.load(args.seeds[0], talk)?;
    // Settings that cannot be are refused before anything is written.
    for &alpha in &alphas {
        config(args, alpha, 0, prepared.data.sizes()[0]).check(prepared.data.problem())?;
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
            if record.points.iter().any(|point| point.alpha == alpha && point.seed == seed) {
                say(talk, format_args!("α {alpha}, seed {seed}: finished before"));
                continue;
            }
            if source.is_synthetic() && seed != args.seeds[0] {
                prepared = source.load(seed, talk)?;
            }
            if !single {
                say(talk, format_args!("α {alpha}, seed {seed}"));
            }
            let place = if single { String::new() } else { format!("alpha_{alpha}_seed_{seed}/") };
            let settings = config(args, alpha, seed, prepared.data.sizes()[0]);
            let point = train_point(args, talk, &engine, &prepared, settings, &folder, &place)?;
            record.points.push(point);
            record.save(&folder)?;
        }
    }
    if args.baselines && record.everything.is_none() {
        say(talk, "asking nothing, and everything");
        let settings = config(args, alphas[0], args.seeds[0], prepared.data.sizes()[0]);
        record.nothing = Some(baseline::subset_blocking(&engine, &prepared.data, &settings, &[])?);
        record.everything = Some(baseline::everything_blocking(&engine, &prepared.data, &settings)?);
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

fn train_point(
    args: &Args,
    talk: Talk,
    engine: &Engine,
    prepared: &Prepared,
    settings: Config,
    folder: &Path,
    place: &str,
) -> Result<Point, Failure> {
    let data = &prepared.data;
    let (alpha, seed) = (settings.alpha, settings.seed);
    let here = folder.join(place);
    std::fs::create_dir_all(&here).map_err(|error| Error::io(&here, error))?;
    let checkpoint = here.join("checkpoint.safetensors");
    let mut trainer = Trainer::new(engine, data, settings.clone())?;
    if args.resume && checkpoint.exists() {
        trainer.resume(&checkpoint)?;
        files::clear_remains(&checkpoint);
    }
    progress::train(engine, &mut trainer, &checkpoint, talk)?;
    let model = trainer.finish_blocking()?.with_encoding(prepared.encoding.clone())?;
    let file = format!("{place}model.safetensors");
    model.save(folder.join(&file))?;
    let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
    let outcomes = evaluate::outcomes(&model, data, part, f64::INFINITY)?;
    let test = outcomes.traces.summary(data.problem(), &data.splits()[part as usize].y, alpha);
    let mut subsets = Vec::new();
    if args.baselines && data.sizes()[2] > 0 {
        say(talk, "looking for the best fixed set of features of the same cost");
        let chosen = baseline::choose_blocking(engine, data, &settings, test.cost)?;
        // The last one is beyond the cost: one set without it, one with it.
        for count in [chosen.len().saturating_sub(1), chosen.len()] {
            subsets.push(baseline::subset_blocking(engine, data, &settings, &chosen[..count])?);
        }
    }
    Ok(Point {
        alpha,
        seed,
        model: file,
        seconds: trainer.history().last().map_or(0.0, |epoch| epoch.seconds),
        epochs: [trainer.history().len(), trainer.epochs_at_most()],
        digest: Digest::of(data, Some(&prepared.encoding), part, &outcomes),
        test,
        subsets,
    })
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
            format!("α {}, seed {}", point.alpha, point.seed),
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
