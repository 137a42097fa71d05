//! What a policy does on a split, instance by instance and summed up.

use super::model::Model;
use super::session::{Session, Step};
use super::uncertainty::Uncertainty;
use crate::data::{Dataset, Part};
use crate::error::Result;
use crate::problem::Problem;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The greedy policy's way through each instance of a split.
#[derive(Clone, Debug, PartialEq)]
pub struct Traces {
    /// Features of the problem; an action of that number is stopping.
    pub features: usize,
    /// Steps of each path.
    pub steps: usize,
    /// Instance after instance, the action of each step; once stopped, stopping again.
    pub path: Vec<u32>,
    /// The class answered.
    pub guess: Vec<u32>,
    /// The loss of the answer.
    pub loss: Vec<f32>,
}

/// A split's results in numbers: means over its instances.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Loss plus α times cost.
    pub objective: f64,
    /// Cross-entropy in nats, weighted by class if the problem says so.
    pub loss: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes.
    pub macro_f1: f64,
    /// F1 of the second class, where there are two.
    pub f1: Option<f64>,
    /// Cost of what was acquired.
    pub cost: f64,
    /// Features acquired.
    pub acquisitions: f64,
    /// The share of instances that acquired 0, 1, 2, … features.
    pub stop_steps: Vec<f64>,
    /// The share of instances whose first action was each feature, and last: stopping.
    pub first_actions: Vec<f64>,
    /// How many instances there were.
    pub instances: usize,
    /// How sure the means are; runs of older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<Uncertainty>,
}

impl Traces {
    /// How many instances there are.
    pub fn len(&self) -> usize {
        self.guess.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.guess.is_empty()
    }

    /// One instance's actions.
    pub fn path_of(&self, instance: usize) -> &[u32] {
        &self.path[instance * self.steps..][..self.steps]
    }

    /// For each action (the features, then stopping) and step, the share of the chosen instances that
    /// took it. A stopped instance stops again in every later step.
    pub fn shares(&self, chosen: impl Fn(usize) -> bool) -> (Vec<Vec<f64>>, usize) {
        let mut counts = vec![vec![0.0; self.steps]; self.features + 1];
        let mut total = 0usize;
        for instance in (0..self.len()).filter(|&instance| chosen(instance)) {
            total += 1;
            for (t, &action) in self.path_of(instance).iter().enumerate() {
                counts[(action as usize).min(self.features)][t] += 1.0;
            }
        }
        counts.iter_mut().flatten().for_each(|count| *count /= total.max(1) as f64);
        (counts, total)
    }

    /// Sums up. `labels` are the split's, `alpha` what a unit of cost is worth.
    pub fn summary(&self, problem: &Problem, labels: &[u32], alpha: f64) -> Summary {
        let n = self.len().max(1) as f64;
        let classes = problem.classes().len();
        // For each class: hits, guesses, instances.
        let mut counts = vec![[0.0f64; 3]; classes];
        let mut confusion = vec![vec![0.0; classes]; classes];
        let mut costs = Vec::with_capacity(self.len());
        let (mut loss, mut cost, mut acquired) = (0.0, 0.0, 0.0);
        let mut stop_steps = vec![0.0; self.steps + 1];
        for (instance, (&guess, &label)) in self.guess.iter().zip(labels).enumerate() {
            counts[guess as usize][1] += 1.0;
            counts[label as usize][2] += 1.0;
            counts[label as usize][0] += f64::from(u8::from(guess == label));
            confusion[label as usize][guess as usize] += 1.0;
            loss += f64::from(self.loss[instance]);
            let asked =
                self.path_of(instance).iter().take_while(|&&action| (action as usize) < self.features);
            let (mut count, before) = (0, cost);
            for &feature in asked {
                cost += problem.features()[feature as usize].cost;
                count += 1;
            }
            costs.push(cost - before);
            acquired += count as f64;
            stop_steps[count] += 1.0 / n;
        }
        let f1 = |[hits, guesses, instances]: [f64; 3]| {
            if guesses + instances > 0.0 { 2.0 * hits / (guesses + instances) } else { 0.0 }
        };
        let losses: Vec<f64> = self.loss.iter().map(|&loss| loss.into()).collect();
        let first_actions = self.shares(|_| true).0.iter().map(|steps| steps[0]).collect();
        Summary {
            objective: (loss + alpha * cost) / n,
            loss: loss / n,
            accuracy: counts.iter().map(|count| count[0]).sum::<f64>() / n,
            macro_f1: counts.iter().copied().map(f1).sum::<f64>() / classes as f64,
            f1: (classes == 2).then(|| f1(counts[1])),
            cost: cost / n,
            acquisitions: acquired / n,
            stop_steps,
            first_actions,
            instances: self.len(),
            uncertainty: Some(Uncertainty::new(&confusion, &losses, &costs)),
        }
    }
}

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

    /// Writes a table of every step: `episode,step,action,guess,label,probability,cost,forced_stop`. Steps count from
    /// 1; `guess`, its `probability` and `cost`, all that was spent, are those after the action; a stop is a row of its
    /// own, `forced_stop` is 1 if nothing more could be acquired.
    ///
    /// # Errors
    /// What the writer has.
    pub fn write_csv(
        &self,
        problem: &Problem,
        labels: &[u32],
        out: &mut impl std::io::Write,
    ) -> std::io::Result<()> {
        writeln!(out, "{COLUMNS}")?;
        self.write_rows(problem, labels, "", out)
    }

    /// The rows of that table, each behind these cells.
    ///
    /// # Errors
    /// What the writer has.
    pub fn write_rows(
        &self,
        problem: &Problem,
        labels: &[u32],
        before: &str,
        out: &mut impl std::io::Write,
    ) -> std::io::Result<()> {
        let class = |index: u32| quoted(&problem.classes()[index as usize]);
        for (index, (episode, &label)) in self.episodes.iter().zip(labels).enumerate() {
            let last = episode.path.len();
            for step in 1..=last + 1 {
                let action = match episode.path.get(step - 1) {
                    Some(&feature) => quoted(&problem.features()[feature as usize].name),
                    None => "stop".into(),
                };
                let moment = &episode.moments[step.min(last)];
                let forced = u8::from(step > last && episode.forced);
                writeln!(
                    out,
                    "{before}{index},{step},{action},{},{},{},{},{forced}",
                    class(moment.guess),
                    class(label),
                    moment.probability,
                    moment.spent
                )?;
            }
        }
        Ok(())
    }
}

/// Columns of the table of every step.
pub const COLUMNS: &str = "episode,step,action,guess,label,probability,cost,forced_stop";

/// A cell of a CSV file.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_by_hand() {
        let problem = Problem::ungrouped(&[1.0, 2.0], 2).expect("valid");
        let traces = Traces {
            features: 2,
            steps: 2,
            path: vec![0, 2, 1, 0, 2, 2, 0, 2],
            guess: vec![1, 1, 0, 0],
            loss: vec![0.5, 0.25, 1.0, 0.25],
        };
        let s = traces.summary(&problem, &[1, 0, 0, 1], 0.1);
        assert_eq!((s.loss, s.cost, s.acquisitions, s.accuracy), (0.5, 1.25, 1.0, 0.5));
        assert!((s.objective - 0.625).abs() < 1e-12);
        assert_eq!(s.stop_steps, [0.25, 0.5, 0.25]);
        assert_eq!(s.first_actions, [0.5, 0.25, 0.25]);
        // Costs of 1, 3, 0 and 1: their deviation over √4.
        let cost = s.uncertainty.expect("counted").cost;
        assert!((cost - (4.75f64 / 3.0).sqrt() / 2.0).abs() < 1e-12, "{cost}");
        // Each class: one hit, two guesses, two instances.
        assert_eq!((s.macro_f1, s.f1), (0.5, Some(0.5)));
        let (shares, total) = traces.shares(|instance| instance < 2);
        assert_eq!(total, 2);
        assert_eq!(shares, [[0.5, 0.5], [0.5, 0.0], [0.0, 0.5]]);
    }
}
