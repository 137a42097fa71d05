//! What `querent train` trains models for: one α, a range of them, or every threshold.

use super::Args;
use crate::commands::Failure;
use querent::Model;
use querent::data::Dataset;
use querent::methods::{Entry, Tradeoff};
use querent::run::Point;
use serde_json::Value;
use std::path::Path;

/// What a model is trained for.
#[derive(Clone, Debug, PartialEq)]
pub enum Aim {
    /// One α.
    One(f64),
    /// All α of a range.
    Range([f64; 2]),
    /// All α of the range that makes a difference.
    Found,
    /// One α, which the method takes for the table.
    Usual,
    /// The method does not know α: every threshold of its stop rule.
    Thresholds,
}

impl Aim {
    /// What there is to train, as the arguments say.
    pub fn all(args: &Args, entry: &Entry) -> Result<Vec<Self>, Failure> {
        let alpha_said = args.alpha.is_some() || args.alphas.is_some() || args.range.is_some();
        let refused = match entry.tradeoff {
            Tradeoff::Alpha if args.thresholds.is_some() => {
                Some("it is trained for α: --range or --alpha instead of --thresholds")
            }
            Tradeoff::One if args.range.is_some() || args.thresholds.is_some() => Some(
                "it is trained for one α at a time: --alpha or --alphas instead of --range and --thresholds",
            ),
            Tradeoff::Threshold if alpha_said => {
                Some("its training knows no α, and one has every threshold: --thresholds instead of --alpha")
            }
            _ => None,
        };
        if let Some(instead) = refused {
            return Err(Failure::Refused(format!("{}: {instead}", entry.name)));
        }
        let names = args.set.iter().map(|assignment| assignment.split('=').next().unwrap_or_default().trim());
        if entry.tradeoff != Tradeoff::Threshold && names.into_iter().any(|name| name == "alpha") {
            let or_range = if entry.tradeoff == Tradeoff::One { "" } else { " or --range LO,HI" };
            return Err(Failure::Refused(format!("--set alpha: say --alpha A{or_range} instead")));
        }
        let aims = match (&args.alphas, args.alpha, args.range.as_deref()) {
            _ if entry.tradeoff == Tradeoff::Threshold => vec![Self::Thresholds],
            (Some(alphas), ..) => alphas.iter().map(|&alpha| Self::One(alpha)).collect(),
            (_, Some(alpha), _) => vec![Self::One(alpha)],
            (.., Some(&[from, to])) => vec![Self::Range([from, to])],
            (.., Some(other)) => {
                return Err(Failure::Refused(format!(
                    "--range needs two numbers, as in --range 0.005,0.1, but has {}",
                    other.len()
                )));
            }
            _ if entry.tradeoff == Tradeoff::One => vec![Self::Usual],
            _ => vec![Self::Found],
        };
        let numbers = aims.iter().flat_map(|aim| match aim {
            Self::One(alpha) => vec![*alpha],
            Self::Range(ends) => ends.to_vec(),
            _ => Vec::new(),
        });
        if let Some(bad) = numbers.into_iter().find(|number| !number.is_finite()) {
            return Err(Failure::Refused(format!("alpha must be a number, but it is {bad}")));
        }
        let mut thresholds = args.thresholds.iter().flatten();
        if let Some(bad) = thresholds.find(|number| !(number.is_finite() && **number >= 0.0)) {
            return Err(Failure::Refused(format!(
                "a threshold must be a number, zero or more, but it is {bad}"
            )));
        }
        Ok(aims)
    }

    /// The setting `alpha`, for a method that has it.
    pub fn setting(&self) -> Option<Value> {
        match self {
            Self::One(alpha) => Some((*alpha).into()),
            Self::Range(ends) => Some(ends.to_vec().into()),
            Self::Found => Some("auto".into()),
            Self::Usual | Self::Thresholds => None,
        }
    }

    /// Whether a point is of a model that was trained for this.
    pub fn is_of(&self, point: &Point, run: &Path) -> bool {
        match self {
            Self::One(alpha) => point.range.is_none() && point.alpha == *alpha,
            Self::Range(ends) => point.range == Some(*ends) && !was_found(point, run),
            Self::Found => point.range.is_some() && was_found(point, run),
            Self::Usual => point.range.is_none(),
            Self::Thresholds => true,
        }
    }

    /// What it is, beside a model of something else.
    pub fn meaning(&self) -> String {
        match self {
            Self::One(alpha) => format!("α {alpha}"),
            Self::Range([from, to]) => format!("α {from} to {to} (--range {from},{to})"),
            Self::Found => "the range of α that is found (no --range)".into(),
            Self::Usual => "the α that the method takes for the table (no --alpha)".into(),
            Self::Thresholds => "every threshold".into(),
        }
    }

    /// Of a given α: that no question can be worth its price, if that is known before training. Knowing nothing loses
    /// at most ln(classes), as weighted as the rows are, so no answer lowers the loss by more.
    pub fn warning(&self, data: &Dataset) -> Option<String> {
        let alpha = match self {
            Self::One(alpha) => *alpha,
            Self::Range([from, _]) => *from,
            Self::Found | Self::Usual | Self::Thresholds => return None,
        };
        let problem = data.problem();
        let cheapest = problem.features().iter().min_by(|a, b| a.cost.total_cmp(&b.cost))?;
        let labels = &data.splits()[0].y;
        let weight: f64 = labels.iter().map(|&label| problem.class_weights()[label as usize]).sum();
        let most = weight / labels.len().max(1) as f64 * (problem.classes().len() as f64).ln();
        (alpha * cheapest.cost > most).then(|| {
            format!(
                "warning: at α {alpha} no question can be worth its price, so nothing will be asked: even the cheapest, `{}` \
                 for {}, would have to lower the loss by {:.3} nats, and knowing nothing loses {most:.3} at most; an α \
                 below {:.3} may ask",
                cheapest.name,
                cheapest.cost,
                alpha * cheapest.cost,
                most / cheapest.cost
            )
        })
    }

    /// For messages.
    pub fn name(&self, seed: u64) -> String {
        match self {
            Self::One(alpha) => format!("α {alpha}, seed {seed}"),
            Self::Range([from, to]) => format!("α {from} to {to}, seed {seed}"),
            Self::Found | Self::Usual | Self::Thresholds => format!("seed {seed}"),
        }
    }

    /// The folder, where there are several models.
    pub fn folder(&self, seed: u64) -> String {
        match self {
            Self::One(alpha) => format!("alpha_{alpha}_seed_{seed}/"),
            _ => format!("seed_{seed}/"),
        }
    }
}

/// Whether the range of a point's model was found by its training; if the model cannot be read, so it is taken to be.
fn was_found(point: &Point, run: &Path) -> bool {
    Model::load(run.join(&point.model)).map_or(true, |model| model.settings()["alpha"].is_string())
}
