//! What a model of many trade-offs gives at each of them, and which one to take: the curve of performance against cost.

use super::evaluate::{Rules, Summary, episodes};
use super::history::Pass;
use super::model::Model;
use crate::data::encoding::Metric;
use crate::data::{Dataset, Part};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// What a model does at one α, on rows it was not trained on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CurvePoint {
    /// What a unit of cost is worth.
    pub alpha: f64,
    /// Mean cost of what was acquired.
    pub cost: f64,
    /// Mean loss, in nats.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes; `None` where it was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macro_f1: Option<f64>,
    /// Features acquired, on average.
    pub acquisitions: f64,
}

impl CurvePoint {
    /// The number to judge by; accuracy where it was not counted.
    pub fn score(&self, metric: Metric) -> f64 {
        match (metric, self.macro_f1) {
            (Metric::MacroF1, Some(f1)) => f1,
            _ => self.accuracy,
        }
    }

    fn new(alpha: f64, of: &Summary) -> Self {
        let Summary { cost, loss, accuracy, macro_f1, acquisitions, .. } = *of;
        Self { alpha, cost, loss, accuracy, macro_f1: Some(macro_f1), acquisitions }
    }
}

impl From<&Pass> for CurvePoint {
    fn from(pass: &Pass) -> Self {
        let e = pass.evaluation;
        Self {
            alpha: pass.alpha,
            cost: e.cost,
            loss: e.loss,
            accuracy: e.accuracy,
            macro_f1: None,
            acquisitions: e.acquisitions,
        }
    }
}

/// Three points of a curve that are worth knowing.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Choices {
    /// The cheapest that has half of what the knee gains.
    pub cheap: CurvePoint,
    /// The knee: from here on, more cost gains little.
    pub knee: CurvePoint,
    /// The cheapest that has nearly all that can be gained.
    pub thorough: CurvePoint,
}

/// Share of the knee's gain that is cheap, and of all that can be gained that is thorough.
const CHEAP: f64 = 0.5;
const THOROUGH: f64 = 0.97;

impl Model {
    /// What it does at some α, from the smallest to the largest, on rows of a split of its data set.
    ///
    /// # Errors
    /// It was trained for one trade-off, or the data set is of another problem.
    pub fn measure(&self, data: &Dataset, part: Part, alphas: &[f64]) -> Result<Vec<CurvePoint>> {
        let labels = &data.splits()[part as usize].y;
        let point = |&alpha: &f64| {
            let at = self.clone().with_tradeoff(alpha)?;
            let ended = episodes(&at, data, part, &Rules::default())?.ended();
            Ok(CurvePoint::new(alpha, &ended.summary(data.problem(), labels, alpha)))
        };
        alphas.iter().map(point).collect()
    }

    /// The same model with a curve measured on the validation rows, finer than what training has left: at so many α, even in
    /// ln α, and at nearly as many more where cost or loss jumps from one to the next.
    ///
    /// # Errors
    /// The data set is of another problem.
    pub fn with_curve(mut self, data: &Dataset, points: usize) -> Result<Self> {
        let Some(range) = self.alphas() else { return Ok(self) };
        let mut curve = self.measure(data, Part::Validation, &range.grid(points))?;
        while let Some(after) = widest(&curve).filter(|_| curve.len() < most_points(points)) {
            let between = (curve[after].alpha * curve[after + 1].alpha).sqrt();
            let measured = self.measure(data, Part::Validation, &[between])?;
            curve.splice(after + 1..after + 1, measured);
        }
        self.curve = curve;
        Ok(self)
    }

    /// What it does at each α that was measured on the validation rows, from the smallest; empty for a model of one
    /// trade-off.
    pub fn curve(&self) -> &[CurvePoint] {
        &self.curve
    }

    /// What its curve is judged by: what the problem says, or accuracy where that was not counted.
    pub fn metric(&self) -> Metric {
        let counted = self.curve.iter().all(|point| point.macro_f1.is_some());
        self.encoding().map(|encoding| encoding.metric).filter(|_| counted).unwrap_or_default()
    }

    /// The α whose mean cost on the validation rows is this; the largest or the smallest if the model always spends more
    /// or less.
    ///
    /// # Errors
    /// The model is one of a single trade-off, or this is less than nothing or more than everything costs.
    pub fn alpha_for_spend(&self, cost: f64) -> Result<f64> {
        let curve = self.known_curve()?;
        let everything: f64 = self.problem().features().iter().map(|feature| feature.cost).sum();
        if !(cost >= 0.0 && cost <= everything) {
            return Err(Error::Config(format!(
                "{cost} is to be spent on average, but it must be 0 to {everything}, what everything costs"
            )));
        }
        let (first, last) = (curve[0], curve[curve.len() - 1]);
        if cost >= first.cost {
            return Ok(first.alpha);
        }
        let crossing = curve.windows(2).find(|pair| pair[0].cost >= cost && cost >= pair[1].cost);
        Ok(crossing.map_or(last.alpha, |pair| {
            let share = (pair[0].cost - cost) / (pair[0].cost - pair[1].cost).max(1e-12);
            // Linear in ln α.
            pair[0].alpha * (pair[1].alpha / pair[0].alpha).powf(share)
        }))
    }

    /// The largest α, which is the cheapest, whose score on the validation rows reaches this.
    ///
    /// # Errors
    /// The model is one of a single trade-off, or no α reaches it.
    pub fn alpha_for_target(&self, score: f64) -> Result<f64> {
        let (curve, metric) = (self.known_curve()?, self.metric());
        if let Some(point) = curve.iter().rfind(|point| point.score(metric) >= score) {
            return Ok(point.alpha);
        }
        let best = curve.iter().map(|point| point.score(metric)).fold(0.0, f64::max);
        Err(Error::Config(format!(
            "the target is {score}, but the model reaches a validation {metric} of {best:.4} at most"
        )))
    }

    /// Three α that are worth knowing; `None` for a model of one trade-off.
    pub fn choices(&self) -> Option<Choices> {
        choices(&self.curve)
    }

    fn known_curve(&self) -> Result<&[CurvePoint]> {
        if self.curve.is_empty() {
            let why = match self.alphas() {
                Some(_) => "the model's curve was not measured: `Model::with_curve` does it",
                None => {
                    "the model was trained for one trade-off and knows no other: train it for a range of α"
                }
            };
            return Err(Error::Config(why.into()));
        }
        Ok(&self.curve)
    }
}

/// The mean score along a curve, even in ln α wherever its points are.
pub fn mean_score(curve: &[CurvePoint], metric: Metric) -> f64 {
    let [first, .., last] = curve else { return curve.first().map_or(0.0, |point| point.score(metric)) };
    let part = |pair: &[CurvePoint]| {
        0.5 * (pair[0].score(metric) + pair[1].score(metric)) * (pair[1].alpha / pair[0].alpha).ln()
    };
    curve.windows(2).map(part).sum::<f64>() / (last.alpha / first.alpha).ln()
}

/// Points of a curve that was begun with so many, at most.
pub fn most_points(begun: usize) -> usize {
    (2 * begun).saturating_sub(1)
}

/// α that are no further apart than this factor are the same: what jumps between them is a threshold of the policy's.
const SAME: f64 = 1.02;
/// The largest part of a curve between two points, cost and loss counting alike, that needs none between.
const SMOOTH: f64 = 0.1;

/// After which point of a curve most of it is without one, if that is too much.
fn widest(curve: &[CurvePoint]) -> Option<usize> {
    let span = |value: fn(&CurvePoint) -> f64| {
        let values = || curve.iter().map(value);
        (values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)).max(1e-12)
    };
    let (cost, loss) = (span(|p| p.cost), span(|p| p.loss));
    let jump = |pair: &[CurvePoint]| {
        0.5 * ((pair[1].cost - pair[0].cost).abs() / cost + (pair[1].loss - pair[0].loss).abs() / loss)
    };
    let wide = curve.windows(2).enumerate().filter(|(_, pair)| pair[1].alpha > SAME * pair[0].alpha);
    let widest = wide.map(|(after, pair)| (jump(pair), after)).filter(|(jump, _)| *jump > SMOOTH);
    widest.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, after)| after)
}

/// Gains are in loss, which every question changes, not in a score, which only some do.
fn choices(curve: &[CurvePoint]) -> Option<Choices> {
    let last = *curve.last()?;
    let least = |value: fn(&CurvePoint) -> f64| curve.iter().map(value).fold(f64::INFINITY, f64::min);
    let (best, cheapest) = (least(|p| p.loss), least(|p| p.cost));
    let dearest = -least(|p| -p.cost);
    let worst = -least(|p| -p.loss);
    let gain = |p: &CurvePoint| (worst - p.loss) / (worst - best).max(1e-12);
    let spent = |p: &CurvePoint| (p.cost - cheapest) / (dearest - cheapest).max(1e-12);
    let reaching = |share: f64| *curve.iter().rfind(|p| gain(p) >= share).unwrap_or(&last);
    // From the cheapest on, so that of equal ones it is taken.
    let knee = curve
        .iter()
        .rev()
        .fold(last, |best, p| if gain(p) - spent(p) > gain(&best) - spent(&best) + 1e-9 { *p } else { best });
    Some(Choices { cheap: reaching(CHEAP * gain(&knee)), knee, thorough: reaching(THOROUGH) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(alpha: f64, cost: f64, loss: f64) -> CurvePoint {
        CurvePoint { alpha, cost, loss, accuracy: 1.0 - loss, macro_f1: None, acquisitions: cost }
    }

    #[test]
    fn a_curve_is_refined_where_it_jumps() {
        let smooth: Vec<CurvePoint> =
            (0..13).map(|i| point(0.1 * 1.5f64.powi(i), f64::from(12 - i), f64::from(i) / 12.0)).collect();
        assert_eq!(widest(&smooth), None, "a twelfth of it between each two");
        let mut jumps = smooth.clone();
        jumps.drain(4..6);
        assert_eq!(widest(&jumps), Some(3));
        // A threshold of the policy's is no place to look for more.
        jumps[4].alpha = 1.01 * jumps[3].alpha;
        assert_eq!(widest(&jumps), None);
        assert_eq!(widest(&smooth[..1]), None);
        // Where its points are makes no difference to the mean.
        let [whole, refined] =
            [&smooth[..], &[&smooth[..1], &[point(0.12, 12.0, 0.0)], &smooth[1..]].concat()]
                .map(|curve| mean_score(curve, Metric::Accuracy));
        assert!((whole - 0.5).abs() < 1e-12 && (refined - whole).abs() < 0.01, "{whole} {refined}");
        assert_eq!(mean_score(&smooth[..1], Metric::Accuracy), 1.0);
        assert_eq!(widest(&[point(0.1, 2.0, 0.5), point(0.2, 2.0, 0.5)]), None, "the same throughout");
    }

    #[test]
    fn the_knee_is_where_more_cost_gains_little() {
        let curve = [
            point(0.001, 10.0, 0.10),
            point(0.01, 6.0, 0.11),
            point(0.03, 4.0, 0.15),
            point(0.1, 1.0, 0.45),
            point(0.5, 0.0, 0.9),
        ];
        let Choices { cheap, knee, thorough } = choices(&curve).expect("there is a curve");
        assert_eq!((cheap.alpha, knee.alpha, thorough.alpha), (0.1, 0.03, 0.01));
        assert_eq!(choices(&[]), None);
        let flat = [point(0.1, 0.0, 0.5), point(0.2, 0.0, 0.5)];
        assert_eq!(
            choices(&flat).expect("there is a curve").knee.alpha,
            0.2,
            "nothing to gain: the cheapest"
        );
    }
}
