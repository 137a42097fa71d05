//! What a policy did with a split, condensed to what a report shows: no rows in it.

use crate::data::Part;
use crate::data::encoding::{Code, Encoding, short};
use crate::data::{Dataset, Normalization};
use crate::policy::evaluate::Outcomes;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};

/// Bins of the calibration.
const BINS: usize = 10;
/// Branches of the decision flow below this share of all instances are left out.
const LEAST_SHARE: f64 = 0.03;
/// Questions deep the decision flow goes.
const DEPTH: usize = 6;
/// Branches of a question, at most.
const BRANCHES: usize = 4;
/// Features of the heat map, at most.
const SHOWN: usize = 25;

/// A feature's part in what was asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Its name.
    pub name: String,
    /// Its cost.
    pub cost: f64,
    /// Share of instances that asked for it.
    pub asked: f64,
    /// Mean position of the question, from 1, where it was asked.
    pub position: f64,
    /// What was spent on it, on average over all instances.
    pub spent: f64,
}

/// Answers of about the same confidence.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bin {
    /// Mean probability of the answer.
    pub confidence: f64,
    /// Share of right ones.
    pub right: f64,
    /// How many.
    pub count: usize,
}

/// A question of the decision flow, or an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Node {
    /// The feature asked for; `None` to stop and answer.
    pub ask: Option<String>,
    /// Share of all instances that come here.
    pub share: f64,
    /// The values of the question before that lead here, in words.
    pub because: String,
    /// Where the instances that stop here are answered: the most frequent answer, and the share of right
    /// ones.
    pub answer: Option<(String, f64)>,
    /// What follows, the most frequent first.
    pub next: Vec<Node>,
    /// Share of all instances in branches that are left out.
    pub rest: f64,
}

/// A split in numbers and paths.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    /// For each true class, how often each was answered.
    pub confusion: Vec<Vec<usize>>,
    /// From the least to the most confident answers.
    pub calibration: Vec<Bin>,
    /// Each feature's part, the most asked first.
    pub usage: Vec<Usage>,
    /// Names of the heat map's rows: the most asked features, then STOP.
    pub rows: Vec<String>,
    /// For each of them and each step, the share of instances.
    pub shares: Vec<Vec<f64>>,
    /// The most common paths as a tree: the first questions, the most frequent first.
    pub flow: Vec<Node>,
    /// Share of instances with other first questions.
    pub flow_rest: f64,
    /// How many instances there were.
    pub instances: usize,
}

struct Tree<'a> {
    problem: &'a Problem,
    outcomes: &'a Outcomes,
    labels: &'a [u32],
    /// Raw values of a feature's first columns, in words.
    describe: &'a dyn Fn(usize, &[usize]) -> String,
}

impl Digest {
    /// Condenses what a model did with a split.
    pub fn of(data: &Dataset, encoding: Option<&Encoding>, part: Part, outcomes: &Outcomes) -> Self {
        let problem = data.problem();
        let split = &data.splits()[part as usize];
        let traces = &outcomes.traces;
        let (features, classes) = (problem.features().len(), problem.classes().len());
        let n = traces.len().max(1) as f64;
        let mut confusion = vec![vec![0; classes]; classes];
        for (&label, &guess) in split.y.iter().zip(&traces.guess) {
            confusion[label as usize][guess as usize] += 1;
        }
        let mut asked = vec![(0usize, 0.0f64); features];
        for instance in 0..traces.len() {
            for (t, &feature) in traces.path_of(instance).iter().enumerate() {
                if let Some((count, position)) = asked.get_mut(feature as usize) {
                    *count += 1;
                    *position += t as f64 + 1.0;
                }
            }
        }
        let mut usage: Vec<(usize, Usage)> = problem
            .features()
            .iter()
            .zip(&asked)
            .map(|(feature, &(count, position))| Usage {
                name: feature.name.clone(),
                cost: feature.cost,
                asked: count as f64 / n,
                position: position / count.max(1) as f64,
                spent: feature.cost * count as f64 / n,
            })
            .enumerate()
            .collect();
        usage.sort_by(|a, b| b.1.asked.total_cmp(&a.1.asked).then(a.0.cmp(&b.0)));
        let (all, _) = traces.shares(|_| true);
        let shown: Vec<&(usize, Usage)> = usage.iter().filter(|(_, u)| u.asked > 0.0).take(SHOWN).collect();
        let rows = shown.iter().map(|(_, u)| u.name.clone()).chain(["STOP".to_string()]).collect();
        let shares = shown.iter().map(|(i, _)| all[*i].clone()).chain([all[features].clone()]).collect();
        let describe =
            |feature: usize, instances: &[usize]| describe(data, encoding, part, feature, instances);
        let tree = Tree { problem, outcomes, labels: &split.y, describe: &describe };
        let everyone: Vec<usize> = (0..traces.len()).collect();
        let (flow, flow_rest) = tree.branches(&everyone, 0, None);
        Self {
            confusion,
            calibration: calibration(&split.y, outcomes, classes),
            rows,
            shares,
            flow,
            flow_rest,
            usage: usage.into_iter().map(|(_, usage)| usage).collect(),
            instances: traces.len(),
        }
    }
}

fn calibration(labels: &[u32], outcomes: &Outcomes, classes: usize) -> Vec<Bin> {
    let mut sums = [(0.0f64, 0usize, 0usize); BINS];
    let answers = outcomes.traces.guess.iter().zip(labels).zip(outcomes.beliefs.chunks_exact(classes));
    for ((&guess, &label), belief) in answers {
        let confidence = f64::from(belief[guess as usize]);
        let bin = &mut sums[((confidence * BINS as f64) as usize).min(BINS - 1)];
        bin.0 += confidence;
        bin.1 += usize::from(guess == label);
        bin.2 += 1;
    }
    let filled = sums.into_iter().filter(|(_, _, count)| *count > 0);
    filled
        .map(|(sum, right, count)| Bin {
            confidence: sum / count as f64,
            right: right as f64 / count as f64,
            count,
        })
        .collect()
}

impl Tree<'_> {
    /// Those who have asked the same so far, by what they do next.
    fn branches(&self, instances: &[usize], depth: usize, after: Option<usize>) -> (Vec<Node>, f64) {
        let traces = &self.outcomes.traces;
        let all = traces.len() as f64;
        // Those who stop are told apart by what they answer.
        let mut branches: std::collections::BTreeMap<(usize, u32), Vec<usize>> = Default::default();
        for &instance in instances {
            let next = traces.path_of(instance).get(depth).map_or(traces.features, |&next| next as usize);
            let next = next.min(traces.features);
            let guess = if next == traces.features { traces.guess[instance] } else { 0 };
            branches.entry((next, guess)).or_default().push(instance);
        }
        let mut branches: Vec<((usize, u32), Vec<usize>)> = branches.into_iter().collect();
        branches.sort_by_key(|(_, branch)| std::cmp::Reverse(branch.len()));
        let (mut nodes, mut rest) = (Vec::new(), 0.0);
        for (index, ((next, _), branch)) in branches.iter().enumerate() {
            let share = branch.len() as f64 / all;
            if index >= BRANCHES || share < LEAST_SHARE {
                rest += share;
                continue;
            }
            let because = after.map_or(String::new(), |feature| (self.describe)(feature, branch));
            let feature = self.problem.features().get(*next);
            let mut node = Node {
                ask: feature.map(|feature| feature.name.clone()),
                share,
                because,
                answer: feature.is_none().then(|| self.answer(branch)),
                next: Vec::new(),
                rest: 0.0,
            };
            if feature.is_some() {
                (node.next, node.rest) = if depth + 1 < DEPTH {
                    self.branches(branch, depth + 1, Some(*next))
                } else {
                    (Vec::new(), share)
                };
            }
            nodes.push(node);
        }
        (nodes, rest)
    }

    fn answer(&self, instances: &[usize]) -> (String, f64) {
        let guesses = &self.outcomes.traces.guess;
        let mut counts = vec![0usize; self.problem.classes().len()];
        let mut right = 0;
        for &instance in instances {
            counts[guesses[instance] as usize] += 1;
            right += usize::from(guesses[instance] == self.labels[instance]);
        }
        let most =
            (0..counts.len()).max_by_key(|&class| (counts[class], std::cmp::Reverse(class))).unwrap_or(0);
        (self.problem.classes()[most].clone(), right as f64 / instances.len() as f64)
    }
}

/// The values of a feature that some instances have: the middle 80% of a number, the most frequent words.
fn describe(
    data: &Dataset,
    encoding: Option<&Encoding>,
    part: Part,
    feature: usize,
    instances: &[usize],
) -> String {
    let problem = data.problem();
    let columns = problem.columns();
    let groups = problem.group_of_column();
    let Some(first) = groups.iter().position(|&group| group as usize == feature) else {
        return String::new();
    };
    let Normalization { mean, scale } = data.normalization();
    let value = |instance: usize, column: usize| match data.images() {
        Some(images) => f32::from(images[part as usize][instance * columns + column]),
        None => {
            let x = data.splits()[part as usize].x[instance * columns + column];
            let raw = x * scale[column] + mean[column];
            // Zero comes back as the rounding error of the way there and back.
            if raw.abs() < 1e-6 * (mean[column].abs() + scale[column]) { 0.0 } else { raw }
        }
    };
    let range = |unit: &str| {
        let mut values: Vec<f32> = instances.iter().map(|&instance| value(instance, first)).collect();
        values.sort_by(f32::total_cmp);
        let at = |share: f64| short(f64::from(values[(share * (values.len() - 1) as f64).round() as usize]));
        let (low, high) = (at(0.1), at(0.9));
        let unit = if unit.is_empty() { String::new() } else { format!(" {unit}") };
        if low == high { format!("{low}{unit}") } else { format!("{low} to {high}{unit}") }
    };
    let Some(fields) = encoding.map(|encoding| &encoding.features[feature]) else { return range("") };
    let Some(field) = fields.first() else { return String::new() };
    let width = field.columns();
    let missing = |instance: usize| field.flag && value(instance, first + width - 1) > 0.5;
    let absent = instances.iter().filter(|&&instance| missing(instance)).count();
    if absent * 2 > instances.len() {
        return "missing".into();
    }
    let words = match &field.code {
        Code::Number { .. } => return range(&field.unit),
        // Its first column is the year.
        Code::Date { .. } => return range(""),
        Code::Levels { levels: words, .. } | Code::Categories { values: words } => words,
    };
    let is_category = matches!(field.code, Code::Categories { .. });
    let mut counts = vec![0usize; words.len()];
    for &instance in instances.iter().filter(|&&instance| !missing(instance)) {
        let word = if is_category {
            (0..words.len()).find(|&word| value(instance, first + word) > 0.5)
        } else {
            Some(value(instance, first).round() as usize)
        };
        if let Some(count) = word.and_then(|word| counts.get_mut(word)) {
            *count += 1;
        }
    }
    let mut order: Vec<usize> = (0..words.len()).filter(|&word| counts[word] > 0).collect();
    order.sort_by_key(|&word| std::cmp::Reverse(counts[word]));
    // As many words as it takes to cover nine in ten, at most three.
    let mut covered = 0;
    let mut named = Vec::new();
    for word in order {
        named.push(words[word].clone());
        covered += counts[word];
        if covered * 10 >= instances.len() * 9 || named.len() == 3 {
            break;
        }
    }
    let more = if covered * 10 < instances.len() * 9 { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}
