//! A decision tree that asks as it descends: what practitioners would do instead of learning a policy.
//!
//! Trees are grown by the entropy (CART), with and without regard to prices, and with leaves of several sizes; each is cut at
//! every depth and pruned by cost-complexity to several degrees. A feature is paid for once on the way down, and then all of
//! its columns may be asked about; what is known from the start costs nothing. Of all these trees the validation rows choose
//! those that no other beats at no more cost. (The crates that grow trees know neither prices nor groups of columns, and do not
//! say what was asked on the way; with bins this is a few hundred lines.)

mod bins;
mod grow;

use crate::compare::spread::representative;
use crate::data::encoding::Metric;
use crate::data::{Dataset, Part};
use crate::policy::evaluate::{Episode, Episodes, Moment};
use crate::problem::Problem;
use bins::Bins;
use grow::{Node, Rule, grow};

/// Its name beside the methods.
pub const NAME: &str = "tree";

/// Rows of a leaf, at least.
const LEAVES: [usize; 3] = [5, 20, 80];
/// How much a price counts in the choice of a question: not at all, or as the publications on cost-sensitive trees have it.
const PRICES: [f64; 2] = [0.0, 1.0];
/// The deepest.
const DEEPEST: usize = 14;
/// What a leaf more has to lower the entropy by, in nats a row: from pruning a little to pruning nearly all.
const PRUNED: [f64; 10] = [1e-4, 3e-4, 1e-3, 2e-3, 4e-3, 8e-3, 0.016, 0.03, 0.06, 0.12];

/// Trees of a table, and the ways to cut them.
#[derive(Clone, Debug)]
pub struct Trees {
    grown: Vec<Vec<Node>>,
    variants: Vec<Variant>,
}

/// A tree as it is used: the nodes it ends at.
#[derive(Clone, Debug)]
struct Variant {
    tree: usize,
    ends: Vec<bool>,
}

impl Trees {
    /// Grows trees on the training rows.
    pub fn grow(data: &Dataset) -> Self {
        let bins = Bins::of(data);
        let (mut grown, mut variants) = (Vec::new(), Vec::new());
        for price in PRICES {
            for leaf in LEAVES {
                let tree = grown.len();
                let nodes = grow(data, &bins, Rule { price, leaf, deepest: DEEPEST });
                let deepest = nodes.iter().map(|node| node.depth).max().unwrap_or(0);
                for depth in 0..=deepest {
                    let ends = nodes.iter().map(|node| node.split.is_none() || node.depth >= depth).collect();
                    variants.push(Variant { tree, ends });
                }
                variants.extend(PRUNED.map(|price| Variant { tree, ends: pruned(&nodes, price) }));
                grown.push(nodes);
            }
        }
        Self { grown, variants }
    }

    /// The trees to show, at most so many, from the cheapest on.
    pub fn chosen(&self, data: &Dataset, metric: Metric, most: usize) -> Vec<usize> {
        let labels = &data.splits()[Part::Validation as usize].y;
        let place = |variant: usize| {
            let traces = self.episodes(variant, data, Part::Validation).ended();
            let summary = traces.summary(data.problem(), labels, 0.0);
            (summary.cost, -summary.score(metric))
        };
        let places: Vec<(f64, f64)> = (0..self.variants.len()).map(place).collect();
        let mut order: Vec<usize> = (0..places.len()).collect();
        order.sort_by(|&a, &b| places[a].0.total_cmp(&places[b].0).then(places[a].1.total_cmp(&places[b].1)));
        let (mut front, mut best) = (Vec::new(), f64::INFINITY);
        for variant in order {
            if places[variant].1 < best {
                best = places[variant].1;
                front.push(variant);
            }
        }
        let of_front: Vec<(f64, f64)> = front.iter().map(|&variant| places[variant]).collect();
        representative(&of_front, most).into_iter().map(|place| front[place]).collect()
    }

    /// What a tree asks each row of a split, and answers.
    pub fn episodes(&self, variant: usize, data: &Dataset, part: Part) -> Episodes {
        let Variant { tree, ends } = &self.variants[variant];
        let labels = &data.splits()[part as usize].y;
        let one = |(row, &label): (usize, &u32)| {
            descend(&self.grown[*tree], ends, data.problem(), &data.row(part, row), label)
        };
        Episodes::of(data.problem(), labels.iter().enumerate().map(one).collect())
    }
}

/// Where a tree ends that is pruned so that each leaf is worth so much: a node ends if all that is below it is not.
fn pruned(nodes: &[Node], price: f64) -> Vec<bool> {
    let mut ends = vec![true; nodes.len()];
    // What is below a node, with a price for each leaf; children come after their parents.
    let mut below = vec![0.0; nodes.len()];
    for (index, node) in nodes.iter().enumerate().rev() {
        let whole = node.entropy + price;
        below[index] = whole;
        if let Some(split) = &node.split {
            let parts = below[split.low] + below[split.high];
            if parts < whole {
                (below[index], ends[index]) = (parts, false);
            }
        }
    }
    ends
}

fn descend(nodes: &[Node], ends: &[bool], problem: &Problem, row: &[f32], label: u32) -> Episode {
    let weight = problem.class_weights()[label as usize] as f32;
    let (mut path, mut spent, mut at) = (Vec::new(), 0.0, 0);
    let moment = |node: &Node, spent: f64| Moment {
        guess: node.guess,
        probability: node.belief[node.guess as usize],
        loss: -weight * node.belief[label as usize].max(f32::MIN_POSITIVE).ln(),
        spent,
        stop_score: None,
    };
    let mut moments = Vec::new();
    loop {
        let node = &nodes[at];
        let Some(split) = node.split.as_ref().filter(|_| !ends[at]) else { break };
        let feature = problem.features().get(split.feature as usize);
        if let Some(feature) = feature.filter(|_| !path.contains(&split.feature)) {
            // What it would have answered before it asked.
            moments.push(moment(node, spent));
            path.push(split.feature);
            spent += feature.cost;
        }
        at = if row[split.column] <= split.most { split.low } else { split.high };
    }
    moments.push(moment(&nodes[at], spent));
    Episode { path, moments, forced: false, belief: nodes[at].belief.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;
    use crate::problem::Feature;

    /// Numbers that look random, from 0 to 1.
    fn numbers(count: usize) -> Vec<f32> {
        let mut state = 7u64;
        let next = |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as f32 / (1u64 << 24) as f32
        };
        (0..count).map(next).collect()
    }

    /// Feature a (two columns, cost 3) decides between b and c (cost 1 each), which decide the class; d is a copy of b for ten
    /// times the price, and the last column is known from the start.
    fn table() -> Dataset {
        let feature = |name: &str, cost: f64| Feature { name: name.into(), cost };
        let features = vec![feature("a", 3.0), feature("b", 1.0), feature("c", 1.0), feature("d", 10.0)];
        let problem = Problem::new(features, vec![0, 0, 1, 2, 3], vec!["n".into(), "y".into()])
            .expect("valid")
            .with_known_columns(1);
        let rows = |seed: usize, count: usize| {
            let values = numbers(5 * (seed + count));
            let mut split = Split::default();
            for row in values.chunks_exact(5).skip(seed).take(count) {
                let (a, b, c) = (row[0], row[1], row[2]);
                split.x.extend([a, 1.0 - a, b, c, b, row[3]]);
                split.y.push(u32::from(if a > 0.4 { b > 0.5 } else { c > 0.5 }));
            }
            split
        };
        Dataset::new(problem, rows(0, 3_000), rows(3_000, 500), rows(3_500, 500)).expect("valid")
    }

    #[test]
    fn a_rule_is_found_and_each_feature_paid_once() {
        let data = table();
        let trees = Trees::grow(&data);
        let chosen = trees.chosen(&data, Metric::Accuracy, 7);
        assert!(chosen.len() >= 3, "{chosen:?}");
        let labels = &data.splits()[2].y;
        let summaries: Vec<_> = chosen
            .iter()
            .map(|&tree| {
                let episodes = trees.episodes(tree, &data, Part::Test);
                for episode in &episodes.episodes {
                    let mut once = episode.path.clone();
                    once.sort_unstable();
                    once.dedup();
                    assert_eq!(once.len(), episode.path.len(), "asked twice: {:?}", episode.path);
                    let cost: f64 = once.iter().map(|&f| data.problem().features()[f as usize].cost).sum();
                    assert_eq!(episode.moments.last().map(|m| m.spent), Some(cost));
                    assert_eq!(episode.moments.len(), episode.path.len() + 1);
                }
                episodes.ended().summary(data.problem(), labels, 0.0)
            })
            .collect();
        assert_eq!((summaries[0].cost, summaries[0].acquisitions), (0.0, 0.0), "the stump asks nothing");
        let last = &summaries[summaries.len() - 1];
        assert!(last.accuracy > 0.95, "{last:?}");
        // Everything that helps costs 5; the copy for ten times the price is not asked where prices count.
        assert!(last.cost < 5.5, "{last:?}");
    }

    #[test]
    fn prices_turn_the_choice() {
        let data = table();
        let bins = Bins::of(&data);
        let asked = |price: f64| {
            let nodes = grow(&data, &bins, Rule { price, leaf: 20, deepest: 1 });
            nodes[0].split.as_ref().map(|split| split.feature)
        };
        // b and its dear copy tell the same: the first of equals without prices, the cheap one with them.
        assert_eq!(asked(1.0), Some(1));
        let swapped = {
            let feature = |name: &str, cost: f64| Feature { name: name.into(), cost };
            let features = vec![feature("dear", 9.0), feature("cheap", 1.0)];
            let problem = Problem::new(features, vec![0, 1], vec!["n".into(), "y".into()]).expect("valid");
            let values = numbers(2_000);
            let rows = |from: usize| {
                let of = &values[from..from + 500];
                // The cheap one is wrong now and then.
                let cheap = |(i, v): (usize, &f32)| if i % 20 == 0 { 1.0 - v } else { *v };
                let x = of.iter().enumerate().flat_map(|pair| [*pair.1, cheap(pair)]).collect();
                Split { x, y: of.iter().map(|&v| u32::from(v > 0.5)).collect() }
            };
            Dataset::new(problem, rows(0), rows(500), rows(1_000)).expect("valid")
        };
        let bins = Bins::of(&swapped);
        let first = |price: f64| {
            let nodes = grow(&swapped, &bins, Rule { price, leaf: 5, deepest: 1 });
            nodes[0].split.as_ref().map(|split| split.feature)
        };
        assert_eq!((first(0.0), first(1.0)), (Some(0), Some(1)));
    }

    #[test]
    fn pruning_takes_what_is_not_worth_its_leaves() {
        let data = table();
        let nodes = grow(&data, &Bins::of(&data), Rule { price: 0.0, leaf: 5, deepest: DEEPEST });
        let leaves = |price: f64| {
            let ends = pruned(&nodes, price);
            let (mut count, mut open) = (0, vec![0]);
            while let Some(at) = open.pop() {
                match nodes[at].split.as_ref().filter(|_| !ends[at]) {
                    Some(split) => open.extend([split.low, split.high]),
                    None => count += 1,
                }
            }
            count
        };
        let counts: Vec<usize> = [0.0, 1e-3, 0.02, 10.0].map(leaves).to_vec();
        assert!(counts.windows(2).all(|pair| pair[0] >= pair[1]), "{counts:?}");
        assert!(counts[2] >= 4 && counts[0] > counts[2] && counts[3] == 1, "{counts:?}");
    }

    #[test]
    fn rows_of_one_class_make_a_stump() {
        let problem = Problem::ungrouped(&[1.0], 2).expect("valid");
        let rows = || Split { x: vec![0.0, 1.0, 2.0], y: vec![1; 3] };
        let data = Dataset::new(problem, rows(), rows(), rows()).expect("valid");
        let trees = Trees::grow(&data);
        let chosen = trees.chosen(&data, Metric::Accuracy, 7);
        assert_eq!(chosen.len(), 1);
        let episodes = trees.episodes(chosen[0], &data, Part::Test);
        assert!(episodes.episodes.iter().all(|e| e.path.is_empty() && e.moments[0].guess == 1));
    }
}
