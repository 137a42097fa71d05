//! What a policy does on a split, instance by instance and summed up.

pub use super::steps_table::{COLUMNS, quoted};
pub use super::traces::{Summary, Traces};

use super::model::Model;
use super::session::{Session, Step};
use crate::data::{Dataset, Part};
use crate::error::Result;
use crate::problem::Problem;
use rayon::prelude::*;

/// What an evaluation allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// What may be spent on one row.
    pub budget: f64,
    /// Acquisitions at most; `None`: the model's.
    pub horizon: Option<usize>,
    /// Whether the policy may stop by itself; else it goes on to the horizon or the budget.
    pub may_stop: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self { budget: f64::INFINITY, horizon: None, may_stop: true }
    }
}

impl Rules {
    /// With a budget.
    pub fn with_budget(budget: f64) -> Self {
        Self { budget, ..Self::default() }
    }
}

/// What a model says of a row at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// The most probable class.
    pub guess: u32,
    /// Its probability.
    pub probability: f32,
    /// The loss, had this been the end.
    pub loss: f32,
    /// What was spent until then.
    pub spent: f64,
    /// What the stop rule looked at; `None` where nothing more could be acquired.
    pub stop_score: Option<f32>,
}

/// A row's way through a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    /// What was acquired, in order.
    pub path: Vec<u32>,
    /// What the model said before anything, and after each acquisition.
    pub moments: Vec<Moment>,
    /// Whether it ended because nothing more could be acquired (horizon, budget), not because the policy stopped.
    pub forced: bool,
    /// The probability of each class at the end.
    pub belief: Vec<f32>,
}

impl Episode {
    /// After how many acquisitions what the stop rule looks at is below a threshold for the first time; the whole way if
    /// it never is.
    pub fn stop_below(&self, threshold: f32) -> usize {
        let stops = |moment: &Moment| moment.stop_score.is_some_and(|score| score < threshold);
        self.moments.iter().position(stops).unwrap_or(self.path.len())
    }
}

/// The ways of all rows of a split.
#[derive(Clone, Debug, PartialEq)]
pub struct Episodes {
    /// One a row.
    pub episodes: Vec<Episode>,
    features: usize,
    steps: usize,
}

/// What a model does with the rows of a split, asked through one by one, and what it believes at the end.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcomes {
    /// The way through each instance.
    pub traces: Traces,
    /// Instance after instance, the probability of each class at the end.
    pub beliefs: Vec<f32>,
}

/// Asks a model through each row of a split of its data set, on the host's cores and without a device.
///
/// # Errors
/// The data set is of another problem, a rule is out of range, or a row makes the networks overflow.
pub fn episodes(model: &Model, data: &Dataset, part: Part, rules: &Rules) -> Result<Episodes> {
    let one = |fresh: &Session<'_>, row: &[f32], label| episode(fresh.clone(), row, label, |_| ());
    let episodes = each(model, data, part, rules, one)?;
    let steps = rules.horizon.unwrap_or(model.steps());
    Ok(Episodes { episodes, features: model.problem().features().len(), steps })
}

/// Something for each row of a split, with a session that has not begun, the row and its label; on all cores.
fn each<T: Send>(
    model: &Model,
    data: &Dataset,
    part: Part,
    rules: &Rules,
    one: impl Fn(&Session<'_>, &[f32], u32) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    if data.problem() != model.problem() {
        return Err(crate::Error::Data("the model and the table are of different problems".into()));
    }
    let steps = rules.horizon.unwrap_or(model.steps());
    let mut fresh = model.session().with_budget(rules.budget)?.with_horizon(steps)?;
    if !rules.may_stop {
        fresh = fresh.without_stop();
    }
    let labels = &data.splits()[part as usize].y;
    let of = |instance: usize| one(&fresh, &data.row(part, instance), labels[instance]);
    (0..labels.len()).into_par_iter().map(of).collect()
}

/// A row's way; `told` gets the belief of each moment.
fn episode(
    mut session: Session<'_>,
    row: &[f32],
    label: u32,
    mut told: impl FnMut(&[f32]),
) -> Result<Episode> {
    let problem = session.model().problem();
    if problem.known_columns() > 0 {
        session.give_input(row)?;
    }
    let weight = problem.class_weights()[label as usize] as f32;
    let mut moment = |session: &Session| {
        let (guess, belief) = (session.best(), session.predict());
        told(belief);
        Moment {
            guess: guess as u32,
            probability: belief[guess],
            loss: -weight * belief[label as usize].max(f32::MIN_POSITIVE).ln(),
            spent: session.spent(),
            stop_score: session.stop_score(),
        }
    };
    let (mut path, mut moments) = (Vec::new(), vec![moment(&session)]);
    while let Step::Acquire(feature) = session.next() {
        session.observe_input(feature, row)?;
        path.push(feature as u32);
        moments.push(moment(&session));
    }
    let forced = moments[moments.len() - 1].stop_score.is_none();
    Ok(Episode { path, moments, forced, belief: session.predict().to_vec() })
}

/// [`episodes`], as far as how they ended.
///
/// # Errors
/// As [`episodes`].
pub fn outcomes(model: &Model, data: &Dataset, part: Part, budget: f64) -> Result<Outcomes> {
    let all = episodes(model, data, part, &Rules::with_budget(budget))?;
    let beliefs = all.episodes.iter().flat_map(|episode| episode.belief.iter().copied()).collect();
    Ok(Outcomes { traces: all.traces(|episode| episode.path.len()), beliefs })
}

/// [`outcomes`] at each of some thresholds of a stop rule. Each row is asked through once, as far as the lowest of them
/// goes: where it would have ended at the others is on the way.
///
/// # Errors
/// As [`episodes`], or the model has no such threshold.
pub fn outcomes_below(
    model: &Model,
    data: &Dataset,
    part: Part,
    thresholds: &[f64],
) -> Result<Vec<Outcomes>> {
    let Some(lowest) = thresholds.iter().copied().reduce(f64::min) else { return Ok(Vec::new()) };
    let model = model.clone().with_tradeoff(lowest)?;
    let (features, classes) = (model.problem().features().len(), model.problem().classes().len());
    let one = |fresh: &Session<'_>, row: &[f32], label| {
        let mut beliefs = Vec::new();
        let episode = episode(fresh.clone(), row, label, |belief| beliefs.extend_from_slice(belief))?;
        let ended = |&threshold: &f64| {
            let end = episode.stop_below(threshold as f32);
            beliefs[end * classes..][..classes].to_vec()
        };
        let ended: Vec<Vec<f32>> = thresholds.iter().map(ended).collect();
        Ok((episode, ended))
    };
    let rules = Rules::default();
    let (episodes, ended): (Vec<_>, Vec<_>) = each(&model, data, part, &rules, one)?.into_iter().unzip();
    let all = Episodes { episodes, features, steps: model.steps() };
    let at = |(place, &threshold): (usize, &f64)| Outcomes {
        traces: all.below(threshold as f32),
        beliefs: ended.iter().flat_map(|beliefs| beliefs[place].iter().copied()).collect(),
    };
    Ok(thresholds.iter().enumerate().map(at).collect())
}

impl Episodes {
    /// The ways up to a number of acquisitions for each.
    fn traces(&self, end: impl Fn(&Episode) -> usize) -> Traces {
        let (features, steps) = (self.features, self.steps);
        let mut traces = Traces { features, steps, path: vec![], guess: vec![], loss: vec![] };
        for episode in &self.episodes {
            let end = end(episode).min(episode.path.len());
            traces.path.extend(&episode.path[..end]);
            traces.path.extend(std::iter::repeat_n(features as u32, steps - end));
            traces.guess.push(episode.moments[end].guess);
            traces.loss.push(episode.moments[end].loss);
        }
        traces
    }

    /// As they ended.
    pub fn ended(&self) -> Traces {
        self.traces(|episode| episode.path.len())
    }

    /// As if each had ended after so many acquisitions.
    pub fn after(&self, acquisitions: usize) -> Traces {
        self.traces(|_| acquisitions)
    }

    /// As if each had ended as soon as what its stop rule looks at is below a threshold: one rollout to the horizon has
    /// every threshold in it.
    pub fn below(&self, threshold: f32) -> Traces {
        self.traces(|episode| episode.stop_below(threshold))
    }

    /// Each cut after so many acquisitions, as if it had stopped there by itself if that is before its end. What it
    /// believed at the end is not known any more: [`Episode::belief`] is then empty.
    pub fn cut(&self, end: impl Fn(&Episode) -> usize) -> Self {
        let one = |episode: &Episode| {
            let end = end(episode).min(episode.path.len());
            let is_whole = end == episode.path.len();
            Episode {
                path: episode.path[..end].to_vec(),
                moments: episode.moments[..=end].to_vec(),
                forced: is_whole && episode.forced,
                belief: if is_whole { episode.belief.clone() } else { Vec::new() },
            }
        };
        Self { episodes: self.episodes.iter().map(one).collect(), ..*self }
    }

    /// Ways that something else than a model went, of at most as many acquisitions as there are features.
    pub fn of(problem: &Problem, episodes: Vec<Episode>) -> Self {
        let features = problem.features().len();
        Self { episodes, features, steps: features }
    }
}
