//! A comparison on the terminal: for each table, what each method reaches at the same costs.

use crate::commands::{Failure, write_table};
use querent::compare::Standing;
use querent::nmppg;
use querent::run::Spread;
use std::io::Write;

/// Costs that methods are shown at, as shares of where they are compared up to.
const SHARES: [f64; 3] = [0.25, 0.5, 1.0];

/// Shows the standings.
///
/// # Errors
/// Standard output cannot be written.
pub fn show(standings: &[Standing], out: &mut impl Write) -> Result<(), Failure> {
    for standing in standings {
        let [train, validation, test] = standing.sizes;
        writeln!(
            out,
            "{}: {train} training, {validation} validation and {test} test rows; {} by cost",
            standing.table, standing.metric
        )?;
        let costs = SHARES.map(|share| share * standing.reach);
        let head = costs.iter().map(|cost| format!("at {cost:.3}"));
        let head = [String::new()].into_iter().chain(head);
        let mut rows = vec![head.chain(["mean up to there".into(), "training".into()]).collect::<Vec<_>>()];
        for (method, mean) in standing.ranked() {
            let many = method.lines.len() > 1;
            let at =
                costs.iter().map(|&cost| method.at(cost).map_or(String::new(), |at| shown(at.score, many)));
            let seconds: f64 = method.times.iter().map(|times| times.training).sum();
            let trained = format!("{:.1} s", seconds / method.times.len().max(1) as f64);
            rows.push(
                [method.name.clone()].into_iter().chain(at).chain([shown(mean, many), trained]).collect(),
            );
        }
        for (name, whole) in [("nothing asked", standing.nothing), ("everything asked", standing.everything)]
        {
            if let Some(at) = whole {
                let score = format!("{:.4} at {:.3}", at.score.mean, at.cost);
                rows.push(vec![name.into(), String::new(), String::new(), score]);
            }
        }
        write_table(out, 1, &rows)?;
        writeln!(out, "{}\n", standing.sentence(nmppg::NAME))?;
    }
    Ok(())
}

fn shown(score: Spread, many: bool) -> String {
    if many { format!("{:.4} ± {:.4}", score.mean, score.deviation) } else { format!("{:.4}", score.mean) }
}
