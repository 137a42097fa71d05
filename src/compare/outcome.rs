//! What comes of one cell of a comparison.

use super::context::Context;
use crate::data::encoding::Metric;
use crate::methods::fixed::Subset;
use crate::policy::evaluate::{Summary, Traces};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// What comes of a cell: nothing in it depends on how long anything took.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// The hash of what the cell depends on.
    pub hash: String,
    /// The table's name.
    pub table: String,
    /// The method's name.
    pub method: String,
    /// The seed.
    pub seed: u64,
    /// What to judge by.
    pub metric: Metric,
    /// Training, validation and test rows.
    pub sizes: [usize; 3],
    /// Features that can be asked for.
    pub features: usize,
    /// How many classes there are.
    pub classes: usize,
    /// The cost of asking for everything.
    pub full_cost: f64,
    /// Epochs trained; 0 for what has none.
    pub epochs: usize,
    /// The curves: one, or several that the same training gives.
    pub curves: Vec<Curve>,
}

/// A curve, or a piece of one: other cells of the same method and seed may have further points of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Curve {
    /// What it is called in pictures and tables.
    pub name: String,
    /// Its points, from asking much to asking little or the other way round.
    pub points: Vec<Point>,
    /// What is asked, step by step, at the point in the middle; `None` where nothing is asked one after the other.
    pub paths: Option<Paths>,
}

/// What is asked, step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paths {
    /// The trade-off that it is of.
    pub tradeoff: f64,
    /// Features that are asked for, the most frequent first, then `STOP`.
    pub rows: Vec<String>,
    /// For each of them and each step, the share of the test rows.
    pub shares: Vec<Vec<f64>>,
    /// The same for the rows that answer the question alike which most are asked first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<PathsOf>,
}

/// What is asked of some of the rows, step by step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathsOf {
    /// What they have in common.
    pub name: String,
    /// How many they are.
    pub rows: usize,
    /// As [`Paths::shares`].
    pub shares: Vec<Vec<f64>>,
}

/// One trade-off of a curve, on the test rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// What trades loss for cost: α, a threshold, or what the method has instead.
    pub tradeoff: f64,
    /// The mean cost.
    pub cost: f64,
    /// What is judged by.
    pub score: f64,
    /// Its standard error over the test rows.
    pub score_error: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes.
    pub macro_f1: f64,
    /// Cross-entropy in nats, weighted by class if the problem says so.
    pub loss: f64,
    /// Questions asked.
    pub acquisitions: f64,
    /// The most frequent first questions (`stop` for none), with their shares.
    pub first: Vec<(String, f64)>,
}

/// First questions that are kept, at most.
const FIRST: usize = 3;
/// Features of a table of paths, at most.
const SHOWN: usize = 16;

impl Point {
    /// From what was done with the test rows at a trade-off.
    pub fn new(tradeoff: f64, problem: &Problem, metric: Metric, summary: &Summary) -> Self {
        let names = problem.features().iter().map(|feature| feature.name.as_str()).chain(["stop"]);
        let mut first: Vec<(String, f64)> = names
            .zip(&summary.first_actions)
            .filter(|(_, share)| **share > 0.0)
            .map(|(name, share)| (name.to_string(), *share))
            .collect();
        first.sort_by(|a, b| b.1.total_cmp(&a.1));
        first.truncate(FIRST);
        Self {
            tradeoff,
            cost: summary.cost,
            score: summary.score(metric),
            score_error: summary.score_error(metric),
            accuracy: summary.accuracy,
            macro_f1: summary.macro_f1,
            loss: summary.loss,
            acquisitions: summary.acquisitions,
            first,
        }
    }

    /// From a set of features that everybody is asked for, all at once.
    pub fn of_subset(subset: &Subset, metric: Metric, acquisitions: f64) -> Self {
        Self {
            tradeoff: 0.0,
            cost: subset.cost,
            score: subset.score(metric),
            score_error: subset.score_error(metric),
            accuracy: subset.accuracy,
            macro_f1: subset.macro_f1,
            loss: subset.loss,
            acquisitions,
            first: Vec::new(),
        }
    }
}

impl Paths {
    /// From what was done with the test rows at a trade-off; `contexts` gives rows that answer a feature alike.
    pub fn new(
        tradeoff: f64,
        problem: &Problem,
        traces: &Traces,
        contexts: impl Fn(usize) -> Vec<Context>,
    ) -> Self {
        let (shares, _) = traces.shares(|_| true);
        let asked = |feature: usize| shares[feature].iter().sum::<f64>();
        let mut order: Vec<usize> = (0..traces.features).filter(|&feature| asked(feature) > 0.0).collect();
        order.sort_by(|&a, &b| asked(b).total_cmp(&asked(a)).then(a.cmp(&b)));
        order.truncate(SHOWN);
        let name = |&feature: &usize| problem.features()[feature].name.clone();
        let rows = order.iter().map(name).chain(["STOP".to_string()]).collect();
        order.push(traces.features);
        let shown = |shares: &[Vec<f64>]| order.iter().map(|&row| shares[row].clone()).collect();
        let at_first = |feature: &usize| shares[*feature].first().copied().unwrap_or(0.0);
        let first = (0..traces.features).max_by(|a, b| at_first(a).total_cmp(&at_first(b)).then(b.cmp(a)));
        // Only of rows that were asked it first: of others, the answer was not known when the next question was chosen.
        let groups = first.filter(|feature| at_first(feature) > 0.0).map_or(Vec::new(), |feature| {
            let asked = |row: usize| traces.path_of(row).first() == Some(&(feature as u32));
            let of = |context: Context| {
                let (shares, rows) = traces.shares(|row| context.holds[row] && asked(row));
                PathsOf { name: context.name, rows, shares: shown(&shares) }
            };
            contexts(feature).into_iter().map(of).filter(|group| group.rows > 0).collect()
        });
        Self { tradeoff, rows, shares: shown(&shares), contexts: groups }
    }
}

/// How long a cell took, in seconds; kept apart, so that everything else is equal to the byte whenever it is done again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Times {
    /// The training, as far as it was not interrupted.
    pub training: f64,
    /// Asking through the test rows at every point.
    pub evaluation: f64,
    /// The cell as a whole.
    pub all: f64,
}
