//! Grows a tree: at each node the question that lowers the entropy most, for its price if that counts.

use super::bins::Bins;
use crate::data::Dataset;
use crate::problem::Problem;

/// How to grow.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// How much a price counts: a gain is divided by 1 + this · price / mean price.
    pub price: f64,
    /// Rows of a leaf, at least.
    pub leaf: usize,
    /// The deepest a node may be; the root is at 0.
    pub deepest: usize,
}

/// A node.
#[derive(Clone, Debug)]
pub struct Node {
    /// The question, unless it is a leaf.
    pub split: Option<Split>,
    /// The probability of each class, weighted as the loss is.
    pub belief: Vec<f32>,
    /// The most probable class.
    pub guess: u32,
    /// The weighted entropy of its rows, in nats, as a share of all rows' weight.
    pub entropy: f64,
    /// How far from the root.
    pub depth: usize,
}

/// A question.
#[derive(Clone, Debug)]
pub struct Split {
    /// The column that is looked at.
    pub column: usize,
    /// Whose it is; as many as there are features for what is known from the start.
    pub feature: u32,
    /// Values up to this go to `low`, the others to `high`.
    pub most: f32,
    /// The node of the lower values.
    pub low: usize,
    /// The node of the higher values.
    pub high: usize,
}

/// The tree, the root first, and children after their parents.
pub fn grow(data: &Dataset, bins: &Bins, rule: Rule) -> Vec<Node> {
    let problem = data.problem();
    let labels = &data.splits()[0].y;
    let costs: f64 = problem.features().iter().map(|feature| feature.cost).sum();
    let mean = costs / problem.features().len() as f64;
    let weight = labels.iter().map(|&label| problem.class_weights()[label as usize]).sum();
    let mut grower = Grower {
        problem,
        labels,
        bins,
        rule,
        mean,
        weight,
        counts: vec![0.0; bins.most() * problem.classes().len()],
        rows: vec![0; bins.most()],
        nodes: Vec::new(),
    };
    let all = (0..labels.len() as u32).collect();
    grower.node(all, &mut Vec::new(), 0);
    grower.nodes
}

struct Grower<'a> {
    problem: &'a Problem,
    labels: &'a [u32],
    bins: &'a Bins,
    rule: Rule,
    /// The mean price of a feature.
    mean: f64,
    /// Of all rows.
    weight: f64,
    /// For each bin of a column, the weight of each class; kept, as it is needed often.
    counts: Vec<f64>,
    /// For each bin of a column, its rows.
    rows: Vec<usize>,
    nodes: Vec<Node>,
}

/// The best question of a node.
struct Best {
    worth: f64,
    column: usize,
    bin: usize,
}

impl Grower<'_> {
    /// Grows the node of some rows, where some features are paid for already; its number.
    fn node(&mut self, rows: Vec<u32>, paid: &mut Vec<u32>, depth: usize) -> usize {
        let classes = self.problem.classes().len();
        let mut weights = vec![0.0; classes];
        rows.iter().for_each(|&row| weights[self.label(row)] += self.weight_of(row));
        let total: f64 = weights.iter().sum();
        // A row of every class that nobody saw, one in all: no leaf is certain.
        let belief: Vec<f32> =
            weights.iter().map(|w| ((w + 1.0 / classes as f64) / (total + 1.0)) as f32).collect();
        let guess =
            (0..classes).fold(0, |best, class| if weights[class] > weights[best] { class } else { best });
        let index = self.nodes.len();
        let entropy = entropy(&weights) / self.weight.max(1e-300);
        self.nodes.push(Node { split: None, belief, guess: guess as u32, entropy, depth });
        if depth >= self.rule.deepest || rows.len() < 2 * self.rule.leaf {
            return index;
        }
        let Some(Best { column, bin, .. }) = self.best(&rows, &weights, paid) else { return index };
        let feature = self.problem.group_of_column()[column];
        let is_new = !paid.contains(&feature);
        if is_new {
            paid.push(feature);
        }
        let is_low = |&row: &u32| usize::from(self.bins.row(row as usize)[column]) <= bin;
        let (low, high): (Vec<u32>, Vec<u32>) = rows.into_iter().partition(is_low);
        let most = self.bins.edge(column, bin);
        let [low, high] = [low, high].map(|part| self.node(part, paid, depth + 1));
        if is_new {
            paid.pop();
        }
        self.nodes[index].split = Some(Split { column, feature, most, low, high });
        index
    }

    fn label(&self, row: u32) -> usize {
        self.labels[row as usize] as usize
    }

    fn weight_of(&self, row: u32) -> f64 {
        self.problem.class_weights()[self.label(row)]
    }

    /// The question that is worth most; `None` if none lowers the entropy.
    fn best(&mut self, rows: &[u32], weights: &[f64], paid: &[u32]) -> Option<Best> {
        let before = entropy(weights);
        let mut best: Option<Best> = None;
        for column in 0..self.problem.columns() {
            let owner = self.problem.group_of_column()[column];
            let feature = self.problem.features().get(owner as usize).filter(|_| !paid.contains(&owner));
            let price = feature.map_or(0.0, |feature| feature.cost);
            let dearer = 1.0 + self.rule.price * price / self.mean.max(1e-300);
            let least = best.as_ref().map_or(1e-9, |best| best.worth);
            let Some((gain, bin)) = self.cut(rows, weights, column, before) else { continue };
            if gain / dearer > least {
                best = Some(Best { worth: gain / dearer, column, bin });
            }
        }
        best
    }

    /// The best place to cut a column, by how much it lowers the entropy: the last bin of the lower part.
    fn cut(&mut self, rows: &[u32], weights: &[f64], column: usize, before: f64) -> Option<(f64, usize)> {
        let (bins, classes) = (self.bins.count(column), weights.len());
        self.counts[..bins * classes].fill(0.0);
        self.rows[..bins].fill(0);
        for &row in rows {
            let bin = usize::from(self.bins.row(row as usize)[column]);
            let label = self.label(row);
            self.counts[bin * classes + label] += self.problem.class_weights()[label];
            self.rows[bin] += 1;
        }
        let (mut low, mut high, mut count) = (vec![0.0; classes], weights.to_vec(), 0);
        let mut best: Option<(f64, usize)> = None;
        for bin in 0..bins.saturating_sub(1) {
            for class in 0..classes {
                let moved = self.counts[bin * classes + class];
                low[class] += moved;
                high[class] -= moved;
            }
            count += self.rows[bin];
            if count < self.rule.leaf || rows.len() - count < self.rule.leaf || self.rows[bin] == 0 {
                continue;
            }
            let gain = before - entropy(&low) - entropy(&high);
            if best.is_none_or(|(most, _)| gain > most) {
                best = Some((gain, bin));
            }
        }
        best
    }
}

/// The entropy of weighted rows in nats, times their weight.
fn entropy(weights: &[f64]) -> f64 {
    let total: f64 = weights.iter().sum();
    let of = |&w: &f64| if w > 0.0 { -w * (w / total).ln() } else { 0.0 };
    weights.iter().map(of).sum()
}
