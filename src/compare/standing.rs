//! How the methods of a comparison stand on one table.

use super::line::{Line, Place};
use super::outcome::{Outcome, Paths, Point, Times};
use crate::data::encoding::Metric;
use crate::run::Spread;

/// The name of asking for everything, and of asking for nothing.
pub const EVERYTHING: &str = "everything";
/// See [`EVERYTHING`].
pub const NOTHING: &str = "nothing";
/// Share of all that can be gained up to where methods are compared.
const GAINED: f64 = 0.99;
/// Costs at which curves of several seeds are averaged.
const GRID: usize = 48;
/// Standard errors that make a difference at 95%, for 2, 3, … seeds (Student's t); for more, and for rows, two.
const CLEAR: [f64; 29] = [
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13, 2.12, 2.11,
    2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05,
];

/// A method on a table: a curve for each seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Method {
    /// Its name.
    pub name: String,
    /// Seeds and their curves.
    pub lines: Vec<(u64, Line)>,
    /// What each of its trainings took.
    pub times: Vec<Times>,
    /// What the first seed asks, step by step, in the middle of its curve.
    pub paths: Option<Paths>,
}

/// A score at some cost: the mean over seeds with the deviation between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct At {
    /// The cost.
    pub cost: f64,
    /// The score.
    pub score: Spread,
}

/// What lies between two curves: how much better one is on average over the costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Between {
    /// The mean difference of the scores.
    pub mean: f64,
    /// Its standard error: between the seeds, or of one seed over the test rows, where points of a curve count as if they
    /// erred together and curves as if each erred alone, which is more than it can be.
    pub error: f64,
    /// Seeds that both have.
    pub seeds: usize,
}

impl Between {
    /// Whether it is more than chance, at 95%.
    pub fn is_clear(&self) -> bool {
        let few = self.seeds.checked_sub(2).and_then(|place| CLEAR.get(place));
        self.mean.abs() > few.copied().unwrap_or(2.0) * self.error
    }
}

/// A table and how each method does on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The table's name.
    pub table: String,
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
    /// The methods, in the order of the cells.
    pub methods: Vec<Method>,
    /// Asking for everything, if that was measured, and what it took.
    pub everything: Option<At>,
    /// Asking nothing, if that was measured.
    pub nothing: Option<At>,
    /// The cost that methods are compared up to: where the best of them have nearly all (99%) of what there is to gain.
    pub reach: f64,
}

impl Standing {
    /// From all outcomes, a standing for each table, in the order of the cells.
    pub fn all(outcomes: &[(Outcome, Times)]) -> Vec<Self> {
        let mut names: Vec<&str> = Vec::new();
        for (outcome, _) in outcomes {
            if !names.contains(&outcome.table.as_str()) {
                names.push(&outcome.table);
            }
        }
        let of = |name: &str| outcomes.iter().filter(|(o, _)| o.table == name).collect::<Vec<_>>();
        names.iter().filter_map(|name| Self::of(&of(name))).collect()
    }

    fn of(cells: &[&(Outcome, Times)]) -> Option<Self> {
        let (first, _) = cells.first()?;
        let whole = |name: &str| {
            let points = cells.iter().flat_map(|(o, _)| &o.curves).filter(|curve| curve.name == name);
            let points: Vec<_> = points.flat_map(|curve| &curve.points).collect();
            let scores: Vec<f64> = points.iter().map(|point| point.score).collect();
            points.first().map(|point| At { cost: point.cost, score: Spread::of(&scores) })
        };
        let nothing = whole(NOTHING);
        let mut methods: Vec<Method> = Vec::new();
        for curve in cells.iter().flat_map(|(outcome, _)| &outcome.curves) {
            let is_line = curve.name != EVERYTHING && curve.name != NOTHING;
            if is_line && !methods.iter().any(|method| method.name == curve.name) {
                methods.push(method(cells, &curve.name, nothing.map(|at| at.score.mean)));
            }
        }
        let mut standing = Self {
            table: first.table.clone(),
            metric: first.metric,
            sizes: first.sizes,
            features: first.features,
            classes: first.classes,
            full_cost: first.full_cost,
            methods,
            everything: whole(EVERYTHING),
            nothing,
            reach: 0.0,
        };
        standing.reach = standing.found_reach();
        Some(standing)
    }

    /// The least cost at which the best of the methods, by their means, has nearly all that any has at any cost.
    fn found_reach(&self) -> f64 {
        const STEPS: usize = 400;
        let end = self.methods.iter().map(Method::end).fold(0.0, f64::max);
        let best = |cost: f64| {
            let scores = self.methods.iter().filter_map(|method| Some(method.at(cost)?.score.mean));
            scores.fold(f64::NEG_INFINITY, f64::max)
        };
        let costs: Vec<f64> = (0..=STEPS).map(|step| end * step as f64 / STEPS as f64).collect();
        let most = costs.iter().map(|&cost| best(cost)).fold(f64::NEG_INFINITY, f64::max);
        let least = best(0.0);
        costs.into_iter().find(|&cost| best(cost) >= least + GAINED * (most - least)).unwrap_or(end)
    }

    /// By how much one method is better than another on average, up to [`Standing::reach`]; `None` if no seed has both.
    pub fn between(&self, one: &Method, other: &Method) -> Option<Between> {
        let pairs = one.lines.iter().filter_map(|(seed, a)| {
            let (_, b) = other.lines.iter().find(|(s, _)| s == seed)?;
            Some((a.mean_to(self.reach)?, b.mean_to(self.reach)?))
        });
        let pairs: Vec<(Place, Place)> = pairs.collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| a.score - b.score).collect();
        let Spread { mean, deviation } = Spread::of(&differences);
        let error = match &pairs[..] {
            [] => return None,
            [(a, b)] => a.error.hypot(b.error),
            many => deviation / (many.len() as f64).sqrt(),
        };
        Some(Between { mean, error, seeds: pairs.len() })
    }

    /// The methods with their mean score up to [`Standing::reach`], the best first.
    pub fn ranked(&self) -> Vec<(&Method, Spread)> {
        let mean = |method: &Method| {
            let scores = method.lines.iter().filter_map(|(_, line)| line.mean_to(self.reach));
            Spread::of(&scores.map(|place| place.score).collect::<Vec<f64>>())
        };
        let mut ranked: Vec<(&Method, Spread)> =
            self.methods.iter().filter(|m| m.end_is_known()).map(|method| (method, mean(method))).collect();
        ranked.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
        ranked
    }

    /// What is known without a curve: of asking everything and nothing.
    fn ends(&self) -> String {
        let known = [(EVERYTHING, self.everything), (NOTHING, self.nothing)];
        let known =
            known.iter().filter_map(|(name, at)| Some(format!("{name} has {:.3}", at.as_ref()?.score.mean)));
        let known: Vec<String> = known.collect();
        match &known[..] {
            [] => format!("On {} there is nothing yet.", self.table),
            known => format!("On {}, {}; judged by {}.", self.table, known.join(" and "), self.metric),
        }
    }

    /// What was found, in a sentence or two, as seen from a method.
    pub fn sentence(&self, about: &str) -> String {
        let ranked = self.ranked();
        let Some((best, mean)) = ranked.first() else {
            return self.ends();
        };
        let mut said = format!(
            "On {}, over costs up to {:.3}, {} has the highest {} on average, {:.3}",
            self.table, self.reach, best.name, self.metric, mean.mean
        );
        let differences = |from: &Method| -> Vec<(&str, Between)> {
            let others = ranked.iter().filter(|(other, _)| other.name != from.name);
            others.filter_map(|(other, _)| Some((other.name.as_str(), self.between(from, other)?))).collect()
        };
        let level: Vec<&str> =
            differences(best).iter().filter(|(_, d)| !d.is_clear()).map(|(name, _)| *name).collect();
        if !level.is_empty() {
            said += &format!("; not clearly behind it (at 95%): {}", level.join(", "));
        }
        said += ".";
        let Some((mine, _)) = ranked.iter().find(|(method, _)| method.name == about) else { return said };
        let listed = |ahead: bool| {
            let clear =
                differences(mine).into_iter().filter(|(_, d)| d.is_clear() && (d.mean > 0.0) == ahead);
            clear
                .map(|(name, d)| format!("{name} ({:+.3} ± {:.3})", d.mean, d.error))
                .collect::<Vec<_>>()
                .join(", ")
        };
        for (ahead, word) in [(true, "is ahead of"), (false, "is behind")] {
            let list = listed(ahead);
            if !list.is_empty() {
                said += &format!(" {about} {word} {list}.");
            }
        }
        said
    }
}

/// The curves of one name, a line for each seed.
fn method(cells: &[&(Outcome, Times)], name: &str, nothing: Option<f64>) -> Method {
    let has = |outcome: &Outcome| outcome.curves.iter().any(|curve| curve.name == name);
    let of: Vec<_> = cells.iter().filter(|(outcome, _)| has(outcome)).collect();
    let mut seeds: Vec<u64> = of.iter().map(|(outcome, _)| outcome.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let curves = |seed: u64| {
        let outcomes = of.iter().filter(move |(outcome, _)| outcome.seed == seed);
        outcomes.flat_map(|(outcome, _)| &outcome.curves).filter(move |curve| curve.name == name)
    };
    let line = |seed: u64| {
        let points = curves(seed).flat_map(|curve| &curve.points);
        // Who asks nothing could give the best answer without any. With classes that count alike all are as probable then, and
        // which of them a method names is chance.
        let score = |p: &Point| match nothing {
            Some(nothing) if p.acquisitions == 0.0 => p.score.max(nothing),
            _ => p.score,
        };
        let place = points.map(|p| Place { cost: p.cost, score: score(p), error: p.score_error });
        (seed, Line::new(place.collect(), nothing))
    };
    // Of several trainings for one point each, the one in the middle.
    let paths: Vec<&Paths> = seeds
        .first()
        .into_iter()
        .flat_map(|&seed| curves(seed))
        .filter_map(|curve| curve.paths.as_ref())
        .collect();
    Method {
        name: name.into(),
        lines: seeds.iter().map(|&seed| line(seed)).collect(),
        times: of.iter().map(|(_, times)| *times).collect(),
        paths: paths.get(paths.len() / 2).map(|&paths| paths.clone()),
    }
}

impl Method {
    /// The largest cost of any seed.
    pub fn end(&self) -> f64 {
        self.lines.iter().map(|(_, line)| line.end()).fold(0.0, f64::max)
    }

    fn end_is_known(&self) -> bool {
        self.lines.iter().any(|(_, line)| !line.places().is_empty())
    }

    /// What the seeds reach at a cost.
    pub fn at(&self, cost: f64) -> Option<At> {
        let scores: Vec<f64> =
            self.lines.iter().filter_map(|(_, line)| line.at(cost)).map(|place| place.score).collect();
        (!scores.is_empty()).then(|| At { cost, score: Spread::of(&scores) })
    }

    /// The curve to draw: of one seed its points, of several their mean at some costs with the deviation between them.
    pub fn drawn(&self) -> Vec<Place> {
        if let [(_, line)] = &self.lines[..] {
            return line.places().iter().map(|place| Place { error: 0.0, ..*place }).collect();
        }
        let starts = self.lines.iter().filter_map(|(_, line)| line.places().first());
        let start = starts.map(|place| place.cost).fold(f64::INFINITY, f64::min);
        let costs = (0..=GRID).map(|step| start + (self.end() - start) * step as f64 / GRID as f64);
        let at = costs.filter_map(|cost| self.at(cost));
        at.map(|at| Place { cost: at.cost, score: at.score.mean, error: at.score.deviation }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Curve;

    fn outcome(name: &str, seed: u64, points: &[(f64, f64)]) -> (Outcome, Times) {
        let point = |&(cost, score): &(f64, f64)| Point {
            tradeoff: 0.0,
            cost,
            score,
            score_error: 0.01,
            accuracy: score,
            macro_f1: score,
            loss: 1.0 - score,
            acquisitions: cost,
            first: Vec::new(),
        };
        let curve = Curve { name: name.into(), points: points.iter().map(point).collect(), paths: None };
        let outcome = Outcome {
            hash: String::new(),
            table: "t".into(),
            method: name.into(),
            seed,
            metric: Metric::Accuracy,
            sizes: [10, 10, 10],
            features: 4,
            classes: 2,
            full_cost: 4.0,
            epochs: 1,
            curves: vec![curve],
        };
        (outcome, Times::default())
    }

    #[test]
    fn without_a_curve_its_ends_are_told() {
        let said = |cells: &[(Outcome, Times)]| Standing::all(cells)[0].sentence("a");
        let everything = outcome(EVERYTHING, 0, &[(4.0, 0.92)]);
        assert_eq!(
            said(std::slice::from_ref(&everything)),
            "On t, everything has 0.920; judged by accuracy."
        );
        let both = [outcome(NOTHING, 0, &[(0.0, 0.5)]), everything];
        assert_eq!(said(&both), "On t, everything has 0.920 and nothing has 0.500; judged by accuracy.");
    }

    #[test]
    fn what_lies_between_two_curves() {
        let mut cells = vec![outcome(NOTHING, 0, &[(0.0, 0.5)]), outcome(EVERYTHING, 0, &[(4.0, 0.92)])];
        for (seed, more) in [(0, 0.0), (1, 0.02)] {
            cells.push(outcome("a", seed, &[(2.0, 0.9 + more), (4.0, 0.9 + more)]));
            // Two cells of a point each are one curve.
            cells.push(outcome("b", seed, &[(2.0, 0.7)]));
            cells.push(outcome("b", seed, &[(1.0, 0.6)]));
        }
        let [standing] = &Standing::all(&cells)[..] else { panic!("one table") };
        // 99% of the gain from 0.5 to 0.91 is reached just before the cost of 2.
        assert!((standing.reach - 2.0).abs() < 0.03, "{}", standing.reach);
        let [a, b] = &standing.methods[..] else { panic!("{:?}", standing.methods) };
        assert_eq!((a.lines.len(), b.lines.len(), b.times.len()), (2, 2, 4));
        let between = standing.between(a, b).expect("both seeds");
        // From nothing, both rise in a straight line: the areas are triangles over the same base.
        assert!((between.mean - 0.105).abs() < 0.003, "{between:?}");
        assert!(
            between.seeds == 2 && (between.error - 0.005).abs() < 5e-4 && between.is_clear(),
            "{between:?}"
        );
        let back = standing.between(b, a).expect("both seeds");
        assert!((back.mean + between.mean).abs() < 1e-12);
        let said = standing.sentence("b");
        assert!(
            said.contains("a has the highest accuracy") && said.contains("b is behind a (-0.1"),
            "{said}"
        );
        assert!(standing.sentence("a").contains("a is ahead of b (+0.1"), "{}", standing.sentence("a"));
        let drawn = a.drawn();
        let last = drawn.last().expect("points");
        assert!((last.score - 0.91).abs() < 1e-12 && (last.error - 0.02 / 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(standing.everything.map(|at| at.cost), Some(4.0));
    }

    /// With balanced classes a belief without answers has no most probable class: no method is to gain by how it guesses.
    #[test]
    fn asking_nothing_is_the_same_for_all() {
        let cells = [
            outcome(NOTHING, 0, &[(0.0, 0.3)]),
            outcome("a", 0, &[(0.0, 0.3), (2.0, 0.9)]),
            outcome("b", 0, &[(0.0, 0.02), (2.0, 0.9)]),
            outcome("c", 0, &[(2.0, 0.9)]),
        ];
        let standing = &Standing::all(&cells)[0];
        for pair in standing.methods.windows(2) {
            let between = standing.between(&pair[0], &pair[1]).expect("a seed");
            assert!(between.mean.abs() < 1e-12, "{between:?}");
        }
    }

    #[test]
    fn one_seed_has_the_error_of_its_rows() {
        let cells = [outcome("a", 0, &[(0.0, 0.5), (2.0, 0.9)]), outcome("b", 0, &[(0.0, 0.5), (2.0, 0.89)])];
        let standing = &Standing::all(&cells)[0];
        let between = standing.between(&standing.methods[0], &standing.methods[1]).expect("a seed");
        assert!((between.error - 0.01 * 2f64.sqrt()).abs() < 1e-12 && !between.is_clear(), "{between:?}");
        assert!(standing.sentence("a").contains("not clearly behind it (at 95%): b"));
        assert!(Standing::all(&[]).is_empty());
    }
}
