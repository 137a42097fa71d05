//! What a model of a range of α says at the end of its training.

use super::{Failure, write_table};
use querent::Model;
use querent::data::encoding::short;
use querent::policy::CurvePoint;
use querent::policy::tradeoff::rounded;
use std::io::Write;
use std::path::Path;

/// What the ends of the range mean, in the table's own units.
pub fn meaning(model: &Model) -> Option<String> {
    let (first, last) = (model.curve().first()?, model.curve().last()?);
    let asked = |p: &CurvePoint| match p.acquisitions {
        n if n < 0.05 => "nothing asked".to_string(),
        n => format!("about {n:.1} asked, cost {}", short((p.cost * 100.0).round() / 100.0)),
    };
    Some(format!(
        "one model for α from {} ({}) to {} ({})",
        rounded(first.alpha),
        asked(first),
        rounded(last.alpha),
        asked(last)
    ))
}

/// Three points of the curve, and the commands that ask there.
///
/// # Errors
/// Standard output cannot be written.
pub fn show(model: &Model, file: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let Some(choices) = model.choices() else { return Ok(()) };
    let metric = model.metric();
    writeln!(out, "\nWhat to choose, by the validation rows:")?;
    let shown = |alpha: f64| model.alphas().map_or(alpha, |range| range.shown(alpha));
    // Two that are the same point share a line.
    let mut named: Vec<(String, CurvePoint)> = Vec::new();
    for (name, point) in
        [("cheap", choices.cheap), ("the knee", choices.knee), ("thorough", choices.thorough)]
    {
        match named.iter_mut().find(|(_, other)| other.alpha == point.alpha) {
            Some((names, _)) => *names = format!("{names}, {name}"),
            None => named.push((name.into(), point)),
        }
    }
    let mut rows = Vec::new();
    for (names, point) in named {
        rows.push(vec![
            format!("{names}:"),
            format!(
                "{metric} {:.3} for {:.2}, {:.1} asked",
                point.score(metric),
                point.cost,
                point.acquisitions
            ),
            format!("querent ask {} --alpha {}", file.display(), shown(point.alpha)),
        ]);
    }
    write_table(out, 3, &rows)?;
    Ok(())
}
