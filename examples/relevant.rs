//! How many questions a model of a Syn task needs until it holds every feature that matters to the row: x11 and those of
//! the formula that x11 chooses. It is asked on to the horizon, whatever its stop rule says.
//!
//! `cargo run --release --example relevant -- syn1 runs/syn1/model.safetensors ...`

use querent::data::{Dataset, Part, synthetic};
use querent::policy::evaluate::{Rules, episodes};
use querent::{Error, Model, Result};
use std::process::ExitCode;

/// x11, which decides between two formulas.
const DECIDES: u32 = 10;
/// How many questions are shown.
const SHOWN: usize = 5;
/// The features of the three formulas.
const FORMULAS: [&[u32]; 3] = [&[0, 1], &[2, 3, 4, 5], &[6, 7, 8, 9]];

type Make = fn(u64, [usize; 3]) -> Result<Dataset>;

/// What makes a task's rows; its formulas where x11 is below zero, and where it is not.
fn task(name: &str) -> Result<(Make, [&'static [u32]; 2])> {
    match name {
        "syn1" => Ok((synthetic::syn1, [FORMULAS[0], FORMULAS[1]])),
        "syn2" => Ok((synthetic::syn2, [FORMULAS[0], FORMULAS[2]])),
        "syn3" => Ok((synthetic::syn3, [FORMULAS[1], FORMULAS[2]])),
        _ => Err(Error::Config(format!("`{name}` is none of syn1, syn2 and syn3"))),
    }
}

/// Mean questions until all that matters is held (a row that never holds it counts as one more than it asked), and for
/// the first questions the feature that most rows are asked.
fn measure(name: &str, path: &str) -> Result<(f64, String)> {
    let (make, formulas) = task(name)?;
    let model = Model::load(path)?;
    let raw = make(model.seed(), synthetic::SYN_SIZES)?;
    let data = raw.clone().standardized();
    let all = episodes(&model, &data, Part::Test, &Rules { may_stop: false, ..Rules::default() })?;
    let mut needed = 0;
    for (instance, episode) in all.episodes.iter().enumerate() {
        let decides = raw.row(Part::Test, instance)[DECIDES as usize];
        let formula = formulas[usize::from(decides >= 0.0)];
        let asked_at = |feature: &u32| episode.path.iter().position(|asked| asked == feature);
        let last =
            formula.iter().chain([&DECIDES]).map(|feature| asked_at(feature).unwrap_or(episode.path.len()));
        needed += 1 + last.max().unwrap_or(0);
    }
    let shares = all.ended().shares(|_| true).0;
    let most = |step: usize| {
        let share = |feature: &usize| shares[*feature][step];
        let best = (0..shares.len() - 1).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0);
        format!("{} {:.0}%", model.problem().features()[best].name, 100.0 * share(&best))
    };
    let steps = SHOWN.min(model.steps());
    Ok((needed as f64 / all.episodes.len() as f64, (0..steps).map(most).collect::<Vec<_>>().join(", ")))
}

fn run(args: &[String]) -> Result<()> {
    let (name, paths) = args
        .split_first()
        .filter(|(_, paths)| !paths.is_empty())
        .ok_or_else(|| Error::Config("usage: relevant syn1|syn2|syn3 MODEL.safetensors ...".into()))?;
    let mut total = 0.0;
    for path in paths {
        let (needed, first) = measure(name, path)?;
        println!("{needed:.3} questions until all that matters is held; the first ones: {first}  {path}");
        total += needed;
    }
    if paths.len() > 1 {
        println!("{:.3} in the mean", total / paths.len() as f64);
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}
