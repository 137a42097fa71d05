//! AACO on a synthetic task, with a few test rows: what it asks first, what it reaches, and how many candidate sets it
//! looks at in a second.
//!
//!     cargo run --release --example aaco -- syn1 --alpha 0.02 --test 200 --set neighbours=20

use clap::Parser;
use querent::data::{Part, synthetic};
use querent::methods::aaco::{Config, Trainer};
use querent::methods::set::changed;
use querent::policy::evaluate::{self, Rules};
use querent::train::Training;
use querent::{Engine, Error, Model, Result};
use std::path::PathBuf;
use std::time::Instant;

/// AACO on a synthetic task.
#[derive(Parser)]
struct Args {
    /// `syn1`, `syn2`, `syn3` or `cube_nm`.
    task: String,
    /// What a unit of cost is worth.
    #[arg(long, default_value_t = 0.02)]
    alpha: f64,
    /// Rows that are asked.
    #[arg(long, default_value_t = 200)]
    test: usize,
    /// Noise of Cube-NM.
    #[arg(long, default_value_t = 0.1)]
    sigma: f64,
    /// A setting; may be repeated.
    #[arg(long)]
    set: Vec<String>,
    /// Seed of the task and of the training.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to keep the model; one that is there is not trained again, but searches as `--set` says.
    #[arg(long)]
    model: Option<PathBuf>,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let syn = [synthetic::SYN_SIZES[0], synthetic::SYN_SIZES[1], args.test];
    let cube = [synthetic::CUBE_SIZES[0], synthetic::CUBE_SIZES[1], args.test];
    let data = match args.task.as_str() {
        "syn1" => synthetic::syn1(args.seed, syn)?,
        "syn2" => synthetic::syn2(args.seed, syn)?,
        "syn3" => synthetic::syn3(args.seed, syn)?,
        "cube_nm" => synthetic::cube_nm(args.seed, cube, 5, args.sigma)?,
        other => return Err(Error::Config(format!("there is no task `{other}`"))),
    };
    let mut config = Config { alpha: args.alpha.into(), seed: args.seed, ..Config::for_table(&data) };
    for assignment in &args.set {
        config = changed(&config, assignment, &[])?;
    }
    let model = match &args.model {
        Some(path) if path.exists() => {
            let model = Model::load(path)?.with_tradeoff(args.alpha)?;
            querent::methods::aaco::searching(&model, &config)?
        }
        _ => {
            let model = train(&data, config.clone())?;
            if let Some(path) = &args.model {
                model.save(path)?;
            }
            model
        }
    };
    let start = Instant::now();
    let all = evaluate::episodes(&model, &data, Part::Test, &Rules::default())?;
    let seconds = start.elapsed().as_secs_f64();
    let traces = all.ended();
    let summary = traces.summary(data.problem(), &data.splits()[2].y, args.alpha);
    let features = data.problem().features();
    // The first step is searched once for all.
    let sets =
        |open: usize| if open < 20 { config.candidates.min((1 << open) - 1) } else { config.candidates };
    let searched = |path: &Vec<u32>| -> usize {
        let last = path.len().min(config.steps(data.problem()) - 1);
        (1..=last).map(|known| sets(features.len() - known)).sum()
    };
    let candidates: usize = all.episodes.iter().map(|episode| searched(&episode.path)).sum();
    println!(
        "objective {:.4}, loss {:.4}, accuracy {:.4}, cost {:.3}, {:.2} asked of {} rows",
        summary.objective, summary.loss, summary.accuracy, summary.cost, summary.acquisitions, args.test
    );
    for (step, name) in [(0, "first"), (1, "second")] {
        let (shares, _) = traces.shares(|_| true);
        let mut asked: Vec<(f64, &str)> = shares
            .iter()
            .enumerate()
            .map(|(action, steps)| (steps[step], features.get(action).map_or("stop", |f| f.name.as_str())))
            .filter(|(share, _)| *share > 0.0)
            .collect();
        asked.sort_by(|a, b| b.0.total_cmp(&a.0));
        let asked: Vec<String> =
            asked.iter().take(6).map(|(share, name)| format!("{name} {:.0}%", 100.0 * share)).collect();
        println!("{name}: {}", asked.join(", "));
    }
    println!(
        "{seconds:.2} s: {:.0} candidate sets a second, {:.0} on a neighbour each",
        candidates as f64 / seconds,
        (candidates * config.neighbours) as f64 / seconds
    );
    Ok(())
}

fn train(data: &querent::data::Dataset, config: Config) -> Result<Model> {
    let start = Instant::now();
    let mut trainer = Trainer::new(&Engine::cpu(), data, config)?;
    while let Some(epoch) = trainer.epoch_blocking()? {
        println!(
            "{}: {} ({:.0} s)",
            epoch.title(),
            epoch.headline(trainer.best()),
            start.elapsed().as_secs_f64()
        );
    }
    trainer.finish_blocking()
}
