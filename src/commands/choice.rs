//! Which trade-off to ask at: the same flags for every command that asks.

use super::Failure;
use querent::Model;
use querent::methods::{Tradeoff, find};

/// Which trade-off, of a model that has several.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Choice {
    /// What a unit of cost is worth in nats of loss, of a model that was trained for a range: larger values ask less
    /// [default: the knee of its curve].
    #[arg(long, value_name = "A", conflicts_with_all = ["spend", "target", "threshold"])]
    alpha: Option<f64>,
    /// Ask as much as costs this on average, over the validation rows of the training.
    #[arg(long, value_name = "COST", conflicts_with_all = ["target", "threshold"])]
    spend: Option<f64>,
    /// Ask as little as reaches this score on the validation rows of the training (accuracy, or what the problem says).
    #[arg(long, value_name = "SCORE", conflicts_with = "threshold")]
    target: Option<f64>,
    /// The threshold of the stop rule, for a method that has one.
    #[arg(long, value_name = "T")]
    threshold: Option<f64>,
}

impl Choice {
    /// The model at that trade-off.
    ///
    /// # Errors
    /// It has no such trade-off, or none that does what is wanted.
    pub fn apply(&self, model: Model) -> Result<Model, Failure> {
        // Some methods have one at some settings only.
        let has_threshold = model.policy().case().threshold().is_some();
        let by_threshold = has_threshold || find(model.method())?.tradeoff == Tradeoff::Threshold;
        let by_alpha = self.alpha.is_some() || self.spend.is_some() || self.target.is_some();
        if by_alpha && by_threshold {
            return Err(Failure::Refused(format!(
                "the model is of {}, which has a threshold of its stop rule and no α: --threshold moves it",
                model.method()
            )));
        }
        if self.threshold.is_some() && !by_threshold {
            return Err(Failure::Refused(match model.alphas() {
                Some(range) => format!("the model has no threshold: --alpha chooses among {range}"),
                None => "the model was trained for one α and has no threshold to move".into(),
            }));
        }
        let at = match (self.alpha, self.spend, self.target) {
            (Some(alpha), ..) if model.alphas().is_none() && alpha == model.alpha() => None,
            (Some(alpha), ..) => Some(alpha),
            (_, Some(cost), _) => Some(model.alpha_for_spend(cost)?),
            (.., Some(score)) => Some(model.alpha_for_target(score)?),
            _ => self.threshold,
        };
        Ok(match at {
            Some(at) => model.with_tradeoff(at)?,
            None => model,
        })
    }
}
