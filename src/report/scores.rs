//! How well a run does: the table of its results, and performance against cost. Every score comes with how sure it is.

use super::curve::{Look, curve_as};
use super::page::text;
use super::{CurvePoint, Series};
use crate::data::encoding::Metric;
use crate::methods::fixed::Subset;
use crate::policy::Uncertainty;
use crate::run::{Point, Run, Spread};
use std::fmt::Write;

/// Rows of the test that a score's axis covers, at least: what a single one makes must not look like much.
const LEAST_ROWS: f64 = 10.0;
/// The part of a score's axis that is always covered, however many rows there are.
const LEAST_SPAN: f64 = 0.05;

/// A line of the table: score, accuracy, loss and cost, each with how far it may be off.
struct Line {
    name: String,
    /// Of several seeds: that they agree is to be seen as well.
    of_seeds: bool,
    numbers: [[f64; 2]; 4],
    questions: String,
}

impl Line {
    fn new(
        name: String,
        values: [f64; 4],
        metric: Metric,
        known: Option<Uncertainty>,
        questions: String,
    ) -> Self {
        let errors = known.map_or([0.0; 4], |u| {
            let score = if metric == Metric::Accuracy { u.accuracy } else { u.macro_f1 };
            [score, u.accuracy, u.loss, u.cost]
        });
        let numbers = std::array::from_fn(|i| [values[i], errors[i]]);
        Self { name, of_seeds: false, numbers, questions }
    }

    fn of(point: &Point, metric: Metric) -> Self {
        let t = &point.test;
        let name = format!("policy, {} = {}, seed {}", point.symbol(), point.alpha, point.seed);
        let values = [t.score(metric), t.accuracy, t.loss, t.cost];
        Self::new(name, values, metric, t.uncertainty, format!("{:.2}", t.acquisitions))
    }

    fn fixed(name: String, subset: &Subset, metric: Metric, questions: usize) -> Self {
        let values = [subset.score(metric), subset.accuracy, subset.loss, subset.cost];
        Self::new(name, values, metric, subset.uncertainty, questions.to_string())
    }

    fn write(&self, out: &mut String, metric: Metric) -> std::fmt::Result {
        write!(out, "<tr><td>{}</td>", text(&self.name))?;
        for (column, [value, error]) in self.numbers.into_iter().enumerate() {
            if column == 1 && metric == Metric::Accuracy {
                // It is what is judged by, and stands there already.
                continue;
            }
            let places = if column == 3 { 3 } else { 4 };
            write!(out, "<td>{value:.places$}")?;
            if error > 0.0 || self.of_seeds {
                write!(out, " <span class=\"quiet\">± {error:.places$}</span>")?;
            }
            write!(out, "</td>")?;
        }
        writeln!(out, "<td>{}</td></tr>", self.questions)
    }
}

/// The table of all results.
pub(super) fn results(out: &mut String, run: &Run) -> std::fmt::Result {
    let metric = run.metric;
    let part = if run.sizes[2] > 0 { "test" } else { "validation" };
    writeln!(out, "<h2>Results on the {part} rows</h2>")?;
    let accuracy = if metric == Metric::Accuracy { "" } else { "<th>accuracy</th>" };
    writeln!(
        out,
        "<table><tr><th></th><th>{metric}</th>{accuracy}<th>loss</th><th>cost</th><th>questions</th></tr>"
    )?;
    let fixed = |out: &mut String, subset: &Subset| {
        let shown = subset.features.iter().take(6).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = if subset.features.len() > 6 { ", …" } else { "" };
        let name = format!("the same for everybody: {shown}{more}");
        Line::fixed(name, subset, metric, subset.features.len()).write(out, metric)
    };
    // Points of one model have fixed sets in common: those are listed once, below. No features are asking nothing, which
    // has a line of its own.
    let mut of_ranges: Vec<&Subset> = Vec::new();
    for subset in run.points.iter().filter(|point| point.range.is_some()).flat_map(|point| &point.subsets) {
        if !subset.features.is_empty() && !of_ranges.iter().any(|other| other.features == subset.features) {
            of_ranges.push(subset);
        }
    }
    of_ranges.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    for point in &run.points {
        Line::of(point, metric).write(out, metric)?;
        if point.range.is_none() {
            let sets = point.subsets.iter().filter(|subset| !subset.features.is_empty());
            sets.into_iter().try_for_each(|subset| fixed(out, subset))?;
        }
    }
    let over_seeds = run.over_seeds();
    for over in &over_seeds {
        let pair = |spread: Spread| [spread.mean, spread.deviation];
        Line {
            name: format!("mean of {} seeds, {}", over.seeds, over.name),
            of_seeds: true,
            numbers: [over.score, over.accuracy, over.loss, over.cost].map(pair),
            questions: format!("{:.2} ± {:.2}", over.acquisitions.mean, over.acquisitions.deviation),
        }
        .write(out, metric)?;
    }
    of_ranges.into_iter().try_for_each(|subset| fixed(out, subset))?;
    for (name, subset) in [("nothing asked", &run.nothing), ("everything asked", &run.everything)] {
        if let Some(s) = subset {
            let questions = if s.features.is_empty() { 0 } else { run.features };
            Line::fixed(name.into(), s, metric, questions).write(out, metric)?;
        }
    }
    writeln!(out, "</table>")?;
    let rows = run.points.first().map_or(0, |point| point.test.instances);
    let seeds = if over_seeds.is_empty() {
        ""
    } else {
        "; behind a mean of seeds, the standard deviation between them"
    };
    writeln!(out, "<p class=\"quiet\">±: one standard error over the {rows} {part} rows{seeds}.</p>")
}

/// Performance against cost, with the place of one of the points. Around each score is one standard error: that of the
/// test rows, and of a mean over seeds that as well.
pub(super) fn performance(run: &Run, title: &str, here: Option<&Point>) -> String {
    let metric = run.metric;
    let (many, alone): (Vec<&Point>, Vec<&Point>) =
        run.points.iter().partition(|point| point.range.is_some());
    let mut series = Vec::new();
    // Each model of a range is a line of its own: the ranges differ.
    for points in many.chunk_by(|a, b| a.model == b.model) {
        series
            .push(Series { name: format!("one model, seed {}", points[0].seed), points: means(run, points) });
    }
    if !alone.is_empty() {
        let name = if many.is_empty() { "policy" } else { "a model for each α" };
        series.push(Series { name: name.into(), points: means(run, &alone) });
    }
    let of = |subset: &Subset| CurvePoint {
        x: subset.cost,
        y: subset.score(metric),
        y_sd: subset.score_error(metric),
        label: None,
    };
    let mut fixed: Vec<CurvePoint> = run.points.iter().flat_map(|point| &point.subsets).map(of).collect();
    fixed.sort_by(|a, b| a.x.total_cmp(&b.x));
    fixed.dedup_by(|a, b| a.x == b.x);
    if !fixed.is_empty() {
        series.push(Series { name: "the same for everybody".into(), points: fixed });
    }
    if let Some(nothing) = &run.nothing {
        series.push(Series { name: "nothing asked".into(), points: vec![of(nothing)] });
    }
    if let Some(point) = here {
        let (x, y, y_sd) = (point.test.cost, point.test.score(metric), point.test.score_error(metric));
        let place = CurvePoint { x, y, y_sd, label: None };
        series.push(Series { name: format!("{} = {}", point.symbol(), point.alpha), points: vec![place] });
    }
    let all = run.everything.as_ref().map(|all| {
        let name = format!("everything asked, {:.3} ± {:.3}", all.score(metric), all.score_error(metric));
        (name, all.score(metric))
    });
    let rows = run.points.first().map_or(0, |point| point.test.instances).max(1) as f64;
    let least = (LEAST_ROWS / rows).clamp(LEAST_SPAN, 1.0);
    let title = format!("{title}: performance against cost, with one standard error");
    curve_as(&title, "mean cost", &metric.to_string(), &series, all, Look { least, shares: true })
}

/// A point for each trade-off: the mean over the seeds.
fn means(run: &Run, of: &[&Point]) -> Vec<CurvePoint> {
    let metric = run.metric;
    let symbol = of.first().map_or("α", |point| point.symbol());
    let mut alphas: Vec<f64> = of.iter().map(|point| point.alpha).collect();
    alphas.sort_by(f64::total_cmp);
    alphas.dedup();
    let points = alphas.iter().map(|&alpha| {
        let same: Vec<&&Point> = of.iter().filter(|point| point.alpha == alpha).collect();
        let spread = |value: &dyn Fn(&Point) -> f64| {
            Spread::of(&same.iter().map(|point| value(point)).collect::<Vec<f64>>())
        };
        let score = spread(&|point| point.test.score(metric));
        // All seeds are tested on the same rows: their number makes the mean surer of the seeds, not of the rows.
        let rows = spread(&|point| point.test.score_error(metric).powi(2)).mean;
        let seeds = score.deviation.powi(2) / same.len().max(1) as f64;
        CurvePoint {
            x: spread(&|point| point.test.cost).mean,
            y: score.mean,
            y_sd: (rows + seeds).sqrt(),
            label: Some(format!("{symbol} {alpha}")),
        }
    });
    points.collect()
}
