//! What a unit of cost is worth in training: one number, or a range of them.

use crate::error::{Error, Result};
use crate::policy::tradeoff::rounded;
use crate::policy::{AlphaRange, Tradeoffs};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// The trade-off of a run, α: what a unit of cost is worth in nats of loss.
///
/// In a file or on the command line: a number, a list of two, or `"auto"`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub enum Alpha {
    /// One, for the whole run.
    One(f64),
    /// The smallest and the largest: one policy learns all between them, and is told which one counts.
    Range([f64; 2]),
    /// The range that makes a difference, found after the warm-up: from where nearly everything that helps is worth its cost
    /// to where nothing is.
    Auto,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    One(f64),
    Range([f64; 2]),
    Word(String),
}

/// The word for a range that is to be found.
const AUTO: &str = "auto";

impl TryFrom<Written> for Alpha {
    type Error = String;

    fn try_from(written: Written) -> std::result::Result<Self, String> {
        match written {
            Written::One(alpha) => Ok(Alpha::One(alpha)),
            Written::Range(ends) => Ok(Alpha::Range(ends)),
            Written::Word(word) if word == AUTO => Ok(Alpha::Auto),
            // As `--set` has it, which puts what is no word in a word's place into quotes.
            Written::Word(word) => match serde_json::from_str(&word) {
                Ok(Written::One(alpha)) => Ok(Alpha::One(alpha)),
                Ok(Written::Range(ends)) => Ok(Alpha::Range(ends)),
                _ => Err(format!("alpha is `{word}`, but it must be a number, a list of two, or `{AUTO}`")),
            },
        }
    }
}

impl From<Alpha> for Written {
    fn from(alpha: Alpha) -> Self {
        match alpha {
            Alpha::One(alpha) => Written::One(alpha),
            Alpha::Range(ends) => Written::Range(ends),
            Alpha::Auto => Written::Word(AUTO.into()),
        }
    }
}

impl From<f64> for Alpha {
    fn from(alpha: f64) -> Self {
        Alpha::One(alpha)
    }
}

impl From<[f64; 2]> for Alpha {
    fn from(ends: [f64; 2]) -> Self {
        Alpha::Range(ends)
    }
}

impl std::fmt::Display for Alpha {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Alpha::One(alpha) => write!(f, "{alpha}"),
            Alpha::Range([from, to]) => write!(f, "{from} to {to}"),
            Alpha::Auto => f.write_str("a range to be found"),
        }
    }
}

impl Alpha {
    /// The one there is.
    pub fn one(&self) -> Option<f64> {
        match self {
            Alpha::One(alpha) => Some(*alpha),
            _ => None,
        }
    }

    /// Checks the value.
    ///
    /// # Errors
    /// A number that is not finite or below zero, or a range that is none.
    pub(crate) fn check(&self) -> Result<()> {
        match *self {
            Alpha::One(alpha) if !(alpha.is_finite() && alpha >= 0.0) => {
                Err(Error::Config(format!("alpha is {alpha}, but it must be a finite number, zero or more")))
            }
            Alpha::Range(ends) => AlphaRange::try_from(ends).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// The trade-offs a run begins with; `None` for a single one, and for a range that is still to be found.
    pub(crate) fn given(&self) -> Option<Tradeoffs> {
        match *self {
            Alpha::Range(ends) => AlphaRange::try_from(ends).ok().map(within),
            _ => None,
        }
    }
}

/// How far beyond the range instances get an α in training, as a share of its width.
pub(crate) const MARGIN: f64 = 0.1;

/// A range on a scale that is wider, as instances get an α from a little beyond the ends as well.
pub(crate) fn within(trained: AlphaRange) -> Tradeoffs {
    Tradeoffs { scale: trained.widened(MARGIN), trained }
}

/// A policy that asks less than this share of the most it asks at any α asks next to nothing. (By questions, not by what they
/// cost: what is nearly free is worth asking at an α of its own. What is free is asked at any, and does not count.)
const NEXT_TO_NOTHING: f64 = 0.01;
/// A policy that spends at least this share of the most it spends at any α asks all that helps.
const ALL_THAT_HELPS: f64 = 0.98;

/// The part of a range that makes a difference, from what a policy spends and how much it asks at some α, from the smallest to
/// the largest: it ends where next to nothing is asked, and begins one before the last at which all that helps is, as a policy that has
/// only begun to learn is not to be trusted more than that. Never narrower than two of them.
pub(crate) fn narrowed(range: AlphaRange, seen: &[(f64, f64)]) -> AlphaRange {
    let alphas = range.grid(seen.len());
    let spent = seen.iter().map(|at| at.0).fold(0.0, f64::max);
    if spent == 0.0 {
        return range;
    }
    let free = seen.last().filter(|at| at.0 == 0.0).map_or(0.0, |at| at.1);
    let most = seen.iter().map(|at| at.1 - free).fold(0.0, f64::max);
    // From the largest α on: a policy that has only begun to learn may ask nothing at a small one.
    let asks = seen.iter().rposition(|at| at.1 - free >= NEXT_TO_NOTHING * most).unwrap_or(0);
    let last = (asks + 1).min(seen.len() - 1);
    let first = seen[..last].iter().rposition(|at| at.0 >= ALL_THAT_HELPS * spent);
    AlphaRange::try_from([alphas[first.unwrap_or(0).saturating_sub(1)], alphas[last]].map(rounded))
        .unwrap_or(range)
}

/// Whether half of the features is no more than policies of a horizon can show, so that the warm-up may show it.
pub(crate) fn shows_half(horizon: usize, features: usize) -> bool {
    2 * horizon >= features
}

/// What the predictor's loss is on the validation rows after the warm-up, and what all it could be told costs: between
/// these, every trade-off lies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Survey {
    /// The loss with nothing but what is known from the start.
    pub nothing: f64,
    /// The loss with everything; where the warm-up never shows half of the features, with as many at random as may be
    /// acquired.
    pub everything: f64,
    /// What as many features as may be acquired cost, on average.
    pub cost: f64,
}

/// The smallest α, as a share of what everything is worth a unit of its cost.
pub(crate) const SMALLEST: f64 = 1.0 / 30.0;
/// Where it may be larger, it grows with the loss that everything leaves: such a part of that, a unit of cost. What takes next to
/// nothing of a large loss is not missed; of a small one it is.
const OF_WHAT_IS_LEFT: f64 = 0.25;
/// The smallest and the largest α where policies can show less than half of the features, the largest as a share of what the
/// cheapest feature could be worth at most (elsewhere it is all of that). None of so many is worth all there is to know (the best pixel
/// of MNIST 0.26 of 2.3 nats, of Fashion-MNIST 0.50), and of the few that fit the horizon the last still helps: at a thirtieth
/// of their mean worth MNIST's policy has stopped after 22 pixels of 30.
const ENDS_OF_MANY: [f64; 2] = [1.0 / 150.0, 0.25];
/// A predictor that gains less than this by everything has nothing to show: the range is then that of such a gain.
const LEAST_GAIN: f64 = 1e-3;

impl Survey {
    /// From the two losses.
    pub(crate) fn new(problem: &Problem, horizon: usize, [nothing, everything]: [f64; 2]) -> Self {
        let costs: Vec<f64> = problem.features().iter().map(|feature| feature.cost).collect();
        let cost = costs.iter().sum::<f64>() * horizon as f64 / costs.len().max(1) as f64;
        Self { nothing, everything, cost }
    }

    /// What one pays without a policy, at some α: the less of asking nothing and asking everything.
    pub(crate) fn without_policy(&self, alpha: f64) -> f64 {
        // Never zero: others are divided by it.
        self.nothing.min(self.everything + alpha * self.cost).max(1e-6)
    }

    /// All α that can make a difference. With a gain D of everything over nothing, no feature is worth more than D, so
    /// above D over the cheapest one's cost nothing is asked. Everything is worth D over its cost a unit on average; what
    /// helps least is worth a share of that, which is the smaller the less loss is left when everything is known. Where the
    /// predictor has not seen everything, D may be all its loss. `noisy` is the share at which the range begins if labels are
    /// noisy, so that much loss is left; it never begins before [`SMALLEST`]. Where policies can show less than half of the
    /// features, [`ENDS_OF_MANY`] holds instead.
    pub(crate) fn range(&self, problem: &Problem, horizon: usize, noisy: f64) -> Result<AlphaRange> {
        let shown = shows_half(horizon, problem.features().len());
        let gain = (self.nothing - if shown { self.everything } else { 0.0 }).max(LEAST_GAIN);
        let costs = problem.features().iter().map(|feature| feature.cost).filter(|&cost| cost > 0.0);
        let cheapest = costs.fold(f64::INFINITY, f64::min);
        if !cheapest.is_finite() {
            return Err(Error::Config(
                "no feature costs anything, so there is no trade-off to learn: give the features costs, or train for \
                 one α"
                    .into(),
            ));
        }
        let smallest = (OF_WHAT_IS_LEFT * self.everything / gain).min(noisy).max(SMALLEST);
        let [bottom, top] = if shown { [smallest, 1.0] } else { ENDS_OF_MANY };
        AlphaRange::try_from([bottom * gain / self.cost.max(cheapest), top * gain / cheapest].map(rounded))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_narrowed_to_what_makes_a_difference() {
        let range = AlphaRange::try_from([0.001, 1.0]).expect("a range");
        let narrowed = |seen: &[(f64, f64)]| {
            <[f64; 2]>::from(narrowed(range, seen)).map(|end| (end * 1e4).round() / 1e4)
        };
        let ends = |costs: &[f64]| narrowed(&costs.iter().map(|&cost| (cost, cost)).collect::<Vec<_>>());
        assert_eq!(ends(&[8.0, 8.0, 5.0, 0.0]), [0.001, 1.0]);
        assert_eq!(ends(&[8.0, 5.0, 0.0, 0.0]), [0.001, 0.1]);
        assert_eq!(ends(&[8.0, 7.9, 7.9, 0.0]), [0.01, 1.0]);
        assert_eq!(ends(&[8.0, 0.0, 0.0, 0.0]), [0.001, 0.01]);
        assert_eq!(ends(&[8.0, 8.0, 8.0, 8.0]), [0.01, 1.0]);
        assert_eq!(ends(&[0.0; 4]), [0.001, 1.0]);
        assert_eq!(ends(&[0.0, 8.0, 5.0, 0.0]), [0.001, 1.0], "unlearned at the smallest");
        let nearly_free = [(8.0, 5.0), (5.0, 4.0), (0.01, 1.0), (0.0, 0.0)];
        assert_eq!(narrowed(&nearly_free), [0.001, 1.0]);
        let free = [(8.0, 5.0), (5.0, 4.0), (0.0, 1.0), (0.0, 1.0)];
        assert_eq!(narrowed(&free), [0.001, 0.1]);
    }

    #[test]
    fn the_range_lies_between_what_everything_and_what_the_cheapest_could_be_worth() {
        let problem = Problem::ungrouped(&[2.0, 0.5, 5.5, 0.0], 2).expect("valid");
        let survey = Survey::new(&problem, 2, [0.7, 0.3]);
        assert_eq!(survey.cost, 4.0);
        let [from, to] = survey.range(&problem, 2, SMALLEST).expect("a range").into();
        assert_eq!([from, to], [0.00333, 0.8]);
        // The surer everything makes, the further the last questions matter: from an eighth down to a thirtieth.
        for (everything, smallest) in [(0.3, 0.0125), (0.1, 0.00625), (0.02, 0.00567)] {
            let survey = Survey::new(&problem, 2, [0.7, everything]);
            assert_eq!(survey.range(&problem, 2, 0.125).expect("a range").from(), smallest);
        }
        // Of two of five features at most, nobody knows what everything is worth.
        let many = Problem::ungrouped(&[1.0; 5], 2).expect("valid");
        let [from, to] = Survey::new(&many, 2, [0.6, 0.3]).range(&many, 2, 0.125).expect("a range").into();
        assert_eq!([from, to], [0.002, 0.15]);
        assert_eq!(survey.without_policy(1.0), 0.7);
        assert!((survey.without_policy(0.05) - 0.5).abs() < 1e-12);
        let free = Problem::ungrouped(&[0.0, 0.0], 2).expect("valid");
        assert!(
            survey
                .range(&free, 2, SMALLEST)
                .expect_err("nothing costs")
                .to_string()
                .contains("no feature costs anything")
        );
    }

    #[test]
    fn it_is_written_as_a_number_a_list_or_a_word() {
        for (alpha, text) in
            [(Alpha::One(0.5), "0.5"), (Alpha::Range([0.1, 2.0]), "[0.1,2.0]"), (Alpha::Auto, "\"auto\"")]
        {
            assert_eq!(serde_json::to_string(&alpha).expect("written"), text);
            assert_eq!(serde_json::from_str::<Alpha>(text).expect("read"), alpha);
        }
        for (text, alpha) in [("\"0.5\"", Alpha::One(0.5)), ("\"[0.1, 2]\"", Alpha::Range([0.1, 2.0]))] {
            assert_eq!(serde_json::from_str::<Alpha>(text).expect("read"), alpha);
        }
        let said = serde_json::from_str::<Alpha>("\"always\"").expect_err("no word of it").to_string();
        assert!(said.contains("`always`") && said.contains("`auto`"), "{said}");
    }
}
