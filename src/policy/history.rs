//! What a training run went through, epoch by epoch.

use crate::engine::kernels::words::METRICS;
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which part of a run an epoch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// The predictor alone, on random masks (pretraining).
    WarmUp,
    /// The method itself, in its n-th stage (from 0): a temperature, a rate of exploring, whatever it has.
    Stage(usize),
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Phase::WarmUp => f.write_str("warm-up"),
            Phase::Stage(stage) => write!(f, "stage {}", stage + 1),
        }
    }
}

/// Named means over the training instances of an epoch. Which there are, a method says; every method has `objective`,
/// what its training lowers, and `prediction_loss`, the predictor's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<String, Stored>")]
pub struct Means(BTreeMap<String, f64>);

/// A mean as a file has it: older ones have a list of three under one name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    One(f64),
    Many(Vec<f64>),
}

impl From<BTreeMap<String, Stored>> for Means {
    fn from(stored: BTreeMap<String, Stored>) -> Self {
        let mut means = BTreeMap::new();
        for (name, value) in stored {
            match value {
                Stored::One(value) => drop(means.insert(name, value)),
                Stored::Many(values) => {
                    means.extend(
                        values.into_iter().enumerate().map(|(i, value)| (format!("{name}.{i}"), value)),
                    );
                }
            }
        }
        Self(means)
    }
}

/// The mean that counts the instances.
const INSTANCES: &str = "instances";

impl Means {
    /// From the device's sums and its status word: the first step with a gradient that is not finite. The names are
    /// those of the words, in order; one of them is `instances`, and a word without a name is not used.
    pub(crate) fn from_sums(names: &[&str; METRICS], sums: [f64; METRICS], status: u32) -> Result<Self> {
        if status != u32::MAX {
            return Err(Error::NonFinite { step: status });
        }
        let count = names.iter().zip(sums).find(|(name, _)| **name == INSTANCES).map_or(0.0, |(_, sum)| sum);
        let mean = |(name, sum): (&&str, f64)| {
            let value = if *name == INSTANCES { sum } else { sum / count.max(1.0) };
            (name.to_string(), value)
        };
        Ok(Self(names.iter().zip(sums).filter(|(name, _)| !name.is_empty()).map(mean).collect()))
    }

    /// The sums again, as a device would have them.
    pub(crate) fn sums(&self, names: &[&str; METRICS]) -> [f64; METRICS] {
        let count = self[INSTANCES];
        names.map(|name| if name == INSTANCES { count } else { self[name] * count })
    }

    /// One of them.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, &value)| (name.as_str(), value))
    }

    /// The same with another value.
    pub fn with(mut self, name: &str, value: f64) -> Self {
        self.0.insert(name.into(), value);
        self
    }
}

impl<const N: usize> From<[(&str, f64); N]> for Means {
    fn from(means: [(&str, f64); N]) -> Self {
        Self(means.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
    }
}

/// 0 for one that is not there.
impl std::ops::Index<&str> for Means {
    type Output = f64;

    fn index(&self, name: &str) -> &f64 {
        self.0.get(name).unwrap_or(&0.0)
    }
}

/// The greedy policy on some rows: means over them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// Loss plus α times cost.
    pub objective: f64,
    /// Cross-entropy in nats, weighted by class if the problem says so.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// Cost of what was acquired.
    pub cost: f64,
    /// Features acquired.
    pub acquisitions: f64,
    /// How many instances these are the means of.
    pub instances: f64,
    /// What else a method's evaluation adds up.
    #[serde(default)]
    pub extra: [f64; 3],
}

impl Evaluation {
    /// From the device's sums: those of `tally.wgsl`, then three of the method's.
    pub(crate) fn from_sums(sums: [f64; METRICS], alpha: f64) -> Self {
        let [loss, correct, cost, acquisitions, instances, extra @ ..] = sums;
        let n = instances.max(1.0);
        Self {
            objective: (loss + alpha * cost) / n,
            loss: loss / n,
            accuracy: correct / n,
            cost: cost / n,
            acquisitions: acquisitions / n,
            instances,
            extra: extra.map(|sum| sum / n),
        }
    }

    /// The mean of several, of the same rows.
    pub fn mean(all: &[Self]) -> Self {
        let mean = |value: fn(&Self) -> f64| all.iter().map(value).sum::<f64>() / all.len().max(1) as f64;
        match all {
            [one] => *one,
            _ => Self {
                objective: mean(|e| e.objective),
                loss: mean(|e| e.loss),
                accuracy: mean(|e| e.accuracy),
                cost: mean(|e| e.cost),
                acquisitions: mean(|e| e.acquisitions),
                instances: mean(|e| e.instances),
                extra: [mean(|e| e.extra[0]), mean(|e| e.extra[1]), mean(|e| e.extra[2])],
            },
        }
    }

    /// The sums again, as a device would have them.
    pub(crate) fn sums(&self) -> [f64; METRICS] {
        let n = self.instances;
        let [a, b, c] = self.extra.map(|mean| mean * n);
        [self.loss * n, self.accuracy * n, self.cost * n, self.acquisitions * n, n, a, b, c]
    }
}

/// The greedy policy on some rows, at one of several trade-offs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pass {
    /// What a unit of cost is worth there.
    pub alpha: f64,
    /// What the policy does.
    pub evaluation: Evaluation,
}

impl Pass {
    pub(crate) fn each(alphas: &[f64], evaluations: &[Evaluation]) -> Vec<Self> {
        alphas.iter().zip(evaluations).map(|(&alpha, &evaluation)| Self { alpha, evaluation }).collect()
    }
}

/// One epoch of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "StoredEpoch")]
pub struct Epoch {
    /// Counted from 0 through the whole run.
    pub index: usize,
    /// Which part of the run.
    pub phase: Phase,
    /// What it was set to, by name: temperatures, bonuses.
    pub settings: BTreeMap<String, f64>,
    /// Means over the epoch's training instances.
    pub train: Means,
    /// The greedy policy on the validation rows; of several trade-offs, the mean. In the warm-up for a range of α: the
    /// mean of nothing and everything seen.
    pub validation: Evaluation,
    /// Where there are several, each of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passes: Vec<Pass>,
    /// Whether this epoch's weights are the best so far.
    pub best: bool,
    /// What it was judged by, the lower the better; `None` if it was no candidate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged: Option<f64>,
    /// Seconds since the run began.
    pub seconds: f64,
}

impl Epoch {
    /// Which part of the run it was, in words.
    pub fn title(&self) -> String {
        match (self.phase, self.settings.get("tau_soft")) {
            (Phase::Stage(_), Some(tau)) => format!("{}, τs {tau}", self.phase),
            _ => self.phase.to_string(),
        }
    }

    /// How it went on the validation rows, in a line; `best` is the best that there was so far.
    pub fn headline(&self, best: Option<f64>) -> String {
        let best = best.map_or("-".into(), |best| format!("{best:.4}"));
        let Evaluation { objective, accuracy, cost, .. } = self.validation;
        match (&self.passes[..], self.judged) {
            ([nothing, everything], None) => format!(
                "validation loss {:.4} with nothing asked, {:.4} with everything",
                nothing.evaluation.loss, everything.evaluation.loss
            ),
            ([_, .., _], Some(judged)) => format!(
                "relative objective {judged:.4} (best {best}), cost {:.2} to {:.2}",
                self.passes[0].evaluation.cost,
                self.passes[self.passes.len() - 1].evaluation.cost
            ),
            _ => format!(
                "validation objective {objective:.4} (best {best}), accuracy {accuracy:.3}, cost {cost:.2}"
            ),
        }
    }
}

/// An epoch as a file has it: older ones have two settings of NM-PPG beside the rest.
#[derive(Deserialize)]
struct StoredEpoch {
    index: usize,
    phase: Phase,
    #[serde(default)]
    settings: BTreeMap<String, f64>,
    tau_soft: Option<f64>,
    lambda: Option<f64>,
    train: Means,
    validation: Evaluation,
    #[serde(default)]
    passes: Vec<Pass>,
    best: bool,
    judged: Option<f64>,
    seconds: f64,
}

impl From<StoredEpoch> for Epoch {
    fn from(stored: StoredEpoch) -> Self {
        let StoredEpoch {
            index,
            phase,
            mut settings,
            tau_soft,
            lambda,
            train,
            validation,
            passes,
            best,
            judged,
            seconds,
        } = stored;
        let older = [("tau_soft", tau_soft), ("lambda", lambda)];
        settings.extend(older.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))));
        Self { index, phase, settings, train, validation, passes, best, judged, seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_from_means() {
        let names = ["objective", "a", "b", "prediction_loss", "instances", "c.0", "c.1", "c.2"];
        let sums = [6.0, 3.0, 9.0, 1.5, 3.0, 0.0, 0.3, 0.6];
        let means = Means::from_sums(&names, sums, u32::MAX).expect("finite");
        assert_eq!((means["objective"], means["instances"], means["nothing"]), (2.0, 3.0, 0.0));
        assert_eq!(means.sums(&names), sums);
        assert!(matches!(Means::from_sums(&names, sums, 7), Err(Error::NonFinite { step: 7 })));
        let stored = serde_json::to_string(&means).expect("stored");
        assert_eq!(serde_json::from_str::<Means>(&stored).expect("read"), means);
    }

    #[test]
    fn an_epoch_of_an_older_file_is_read() {
        let text = r#"{"index":4,"phase":{"Stage":1},"tau_soft":0.5,"lambda":0.001,
            "train":{"objective":0.4,"entropy":0.2,"instances":100.0,"still_asking":[0.9,0.5,0.1]},
            "validation":{"objective":0.3,"loss":0.2,"accuracy":0.9,"cost":5.0,"acquisitions":4.0,"instances":50.0},
            "best":true,"seconds":1.5}"#;
        let epoch: Epoch = serde_json::from_str(text).expect("read");
        assert_eq!(
            (epoch.phase, epoch.settings["tau_soft"], epoch.train["still_asking.1"]),
            (Phase::Stage(1), 0.5, 0.5)
        );
        let again: Epoch =
            serde_json::from_str(&serde_json::to_string(&epoch).expect("stored")).expect("read");
        assert_eq!(again, epoch);
    }
}
