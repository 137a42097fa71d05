//! What `querent train` prints at the end.

use crate::commands::{Failure, write_table};
use querent::run::{Point, Run, Spread};
use std::io::Write;

/// The results as a table.
pub fn show(record: &Run, out: &mut impl Write) -> Result<(), Failure> {
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
    rows.extend(means(record));
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

/// The means over several seeds, with the standard deviation between them.
fn means(record: &Run) -> Vec<Vec<String>> {
    let of =
        |spread: Spread, places: usize| format!("{:.places$} ± {:.places$}", spread.mean, spread.deviation);
    let row = |over: querent::run::OverSeeds| {
        vec![
            format!("{}, mean of {} seeds ± deviation", over.name, over.seeds),
            of(over.score, 4),
            of(over.loss, 4),
            of(over.cost, 3),
            of(over.acquisitions, 2),
        ]
    };
    record.over_seeds().into_iter().map(row).collect()
}

/// The point of the model to ask: of several models, the one that is best on the validation rows, and of equals the
/// one that asks less. The second says so, where there is a choice.
pub fn best(record: &Run) -> Option<(&Point, Option<String>)> {
    let first = record.points.first()?;
    let is_better = |a: &Point, b: &Point| match a.validation.zip(b.validation) {
        Some((a_score, b_score)) => a_score > b_score || (a_score == b_score && a.alpha > b.alpha),
        None => false,
    };
    let best =
        record.points.iter().fold(first, |best, point| if is_better(point, best) { point } else { best });
    if record.points.iter().all(|point| point.model == first.model) {
        return Some((first, None));
    }
    let which = match best.range {
        None => format!("{} {}, seed {}", best.symbol(), best.alpha, best.seed),
        Some(_) => format!("seed {}", best.seed),
    };
    let said = best
        .validation
        .map(|score| format!("the best by the validation rows: {which}, {} {score:.3}", record.metric));
    Some((best, said))
}
