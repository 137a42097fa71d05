//! Which trade-offs of a model to show, from what they do on the validation rows: points that cover the whole curve and do
//! not fall onto one another.

use crate::data::Dataset;
use crate::policy::evaluate::Episodes;
use crate::policy::tradeoff::rounded;

/// Features that count as asked where everything is, at most.
const HORIZON: usize = 30;
/// The smallest α, as a share of what everything could be worth a unit of its cost, and the largest, as a share of what the
/// cheapest feature could be.
const ENDS: [f64; 2] = [0.1, 0.5];
/// Costs that differ by less than this share of all they differ by are the same.
const SAME: f64 = 1e-3;
/// Thresholds that are looked at.
const LOOKED_AT: usize = 60;

/// What being far from those that are shown counts against being off the straight line between them.
const EVEN: f64 = 0.25;

/// Of points (cost, loss), those to show, at most so many, by their index and from the cheapest on. Of points at the same
/// cost only the one with the least loss counts: what is (nearly) free is had by everybody. Both ends are shown, and then one
/// after the other what is furthest off the lines that are drawn by then, so that a curve has points where it bends; where it is
/// straight the largest gap is halved. The way from one end to the other in cost counts as much as that in loss, and
/// points much nearer to another one than at even distances are left out.
pub fn representative(points: &[(f64, f64)], most: usize) -> Vec<usize> {
    let mut order: Vec<usize> =
        (0..points.len()).filter(|&i| points[i].0.is_finite() && points[i].1.is_finite()).collect();
    order.sort_by(|&a, &b| points[a].0.total_cmp(&points[b].0).then(points[b].1.total_cmp(&points[a].1)));
    let span = |order: &[usize], of: fn(&(f64, f64)) -> f64| {
        let values = || order.iter().map(|&i| of(&points[i]));
        (values().fold(f64::NEG_INFINITY, f64::max) - values().fold(f64::INFINITY, f64::min)).max(1e-12)
    };
    let order = best_at_a_cost(points, &order, SAME * span(&order, |p| p.0));
    let (costs, losses) = (span(&order, |p| p.0), span(&order, |p| p.1));
    // In units of what there is of each, with the way along the curve.
    let place: Vec<(f64, f64)> = order.iter().map(|&i| (points[i].0 / costs, points[i].1 / losses)).collect();
    let mut way = vec![0.0; place.len()];
    for (i, pair) in place.windows(2).enumerate() {
        way[i + 1] = way[i] + (pair[1].0 - pair[0].0).abs() + (pair[1].1 - pair[0].1).abs();
    }
    let Some(last) = place.len().checked_sub(1) else { return Vec::new() };
    let near = way[last] / (4 * most.max(2) - 4) as f64;
    let mut chosen = if last == 0 { vec![0] } else { vec![0, last] };
    chosen.truncate(most);
    while chosen.len() < most {
        let worth = |i: usize, a: usize, b: usize| {
            let share = (place[i].0 - place[a].0) / (place[b].0 - place[a].0).max(1e-12);
            let off = (place[i].1 - place[a].1 - share * (place[b].1 - place[a].1)).abs();
            let apart = (way[i] - way[a]).min(way[b] - way[i]);
            (apart >= near).then_some(off + EVEN * apart)
        };
        let between = chosen.windows(2).flat_map(|pair| {
            let (a, b) = (pair[0], pair[1]);
            (a + 1..b).filter_map(move |i| Some((worth(i, a, b)?, i)))
        });
        let Some((_, next)) = between.max_by(|a, b| a.0.total_cmp(&b.0)) else { break };
        chosen.push(next);
        chosen.sort_unstable();
    }
    chosen.into_iter().map(|place| order[place]).collect()
}

/// Of points in the order of their costs, the one with the least loss of each group whose costs differ by no more than `same`.
fn best_at_a_cost(points: &[(f64, f64)], order: &[usize], same: f64) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::new();
    let mut from = f64::NEG_INFINITY;
    for &i in order {
        match best.last_mut() {
            Some(last) if points[i].0 - from <= same => {
                if points[i].1 < points[*last].1 {
                    *last = i;
                }
            }
            _ => {
                from = points[i].0;
                best.push(i);
            }
        }
    }
    best
}

/// Thresholds of a stop rule that are worth a look, from what it looked at on rows that went on to the horizon: even shares of
/// all values, from never stopping to stopping at once.
pub fn thresholds(episodes: &Episodes) -> Vec<f64> {
    let moments = episodes.episodes.iter().flat_map(|episode| &episode.moments);
    let mut seen: Vec<f32> =
        moments.filter_map(|moment| moment.stop_score).filter(|s| s.is_finite()).collect();
    seen.sort_by(f32::total_cmp);
    let mut chosen = vec![0.0];
    if let Some(last) = seen.len().checked_sub(1) {
        let quantiles = (0..=LOOKED_AT).map(|step| f64::from(seen[last * step / LOOKED_AT]));
        chosen.extend(quantiles.map(rounded).filter(|&threshold| threshold > 0.0));
        // Above all that was seen, nothing is asked.
        chosen.push(rounded(1.01 * f64::from(seen[last]).max(0.0) + 1e-6));
    }
    chosen.sort_by(f64::total_cmp);
    chosen.dedup();
    chosen
}

/// The smallest and the largest α that may make a difference, for methods that do not find them: no answer is worth more than
/// the entropy of the classes. The same number twice if nothing costs anything.
pub fn alphas(data: &Dataset) -> [f64; 2] {
    let problem = data.problem();
    let mut mass = vec![0.0; problem.classes().len()];
    data.splits()[0].y.iter().for_each(|&y| mass[y as usize] += problem.class_weights()[y as usize]);
    let total: f64 = mass.iter().sum();
    let entropy: f64 = mass.iter().filter(|&&m| m > 0.0).map(|m| -m / total * (m / total).ln()).sum();
    let costs: Vec<f64> = problem.features().iter().map(|feature| feature.cost).collect();
    let all = costs.iter().sum::<f64>() * costs.len().min(HORIZON) as f64 / costs.len() as f64;
    let cheapest = costs.into_iter().filter(|&cost| cost > 0.0).fold(f64::INFINITY, f64::min);
    if !cheapest.is_finite() {
        return [0.0; 2];
    }
    let entropy = entropy.max(1e-3);
    [ENDS[0] * entropy / all, ENDS[1] * entropy / cheapest].map(rounded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;
    use crate::policy::evaluate::{Episode, Moment};
    use crate::problem::Problem;

    #[test]
    fn points_cover_the_curve_and_do_not_collapse() {
        // Most of the loss falls at little cost, and the end is flat: both get points.
        let points: Vec<(f64, f64)> =
            (0..=40).rev().map(|i| f64::from(i) / 4.0).map(|c| (c, (-c).exp())).collect();
        let chosen = representative(&points, 5);
        let costs: Vec<f64> = chosen.iter().map(|&i| points[i].0).collect();
        assert_eq!((costs.len(), costs[0], costs[4]), (5, 0.0, 10.0), "{costs:?}");
        assert!(costs[1] < 1.0 && costs[3] > 4.0, "{costs:?}");
        // A knee is shown, wherever even distances would have put a point; and where nothing bends, they are even.
        let knee = |c: f64| if c < 3.7 { 1.0 - 0.2 * c } else { 0.26 - 0.01 * (c - 3.7) };
        let bent: Vec<(f64, f64)> = (0..=100).map(|i| f64::from(i) / 10.0).map(|c| (c, knee(c))).collect();
        let chosen = representative(&bent, 4);
        assert!(chosen.contains(&37) && chosen[..1] == [0] && chosen[3..] == [100], "{chosen:?}");
        let straight: Vec<(f64, f64)> = (0..=8).map(|i| (f64::from(i), f64::from(8 - i))).collect();
        assert_eq!(representative(&straight, 5), [0, 2, 4, 6, 8]);
        // Many that are the same are one.
        let same = [(0.0, 1.0), (0.0, 1.0), (3.0, 0.5), (3.001, 0.5), (3.002, 0.499), (6.0, 0.1)];
        assert_eq!(representative(&same, 6).len(), 3);
        assert_eq!(representative(&[(2.0, 0.5)], 6), [0]);
        assert_eq!(representative(&[(0.0, 0.5); 4], 6), [0]);
        assert_eq!(representative(&[(0.0, 0.5), (0.0, 0.6), (0.0, 0.7)], 6).len(), 1);
        assert_eq!(representative(&[(f64::NAN, 0.5)], 6), [0usize; 0]);
        assert_eq!(representative(&same, 0), [0usize; 0]);
        assert_eq!(representative(&same, 2), [0, 5]);
        // What is nearly free is asked of everybody: the price of the rest must not hide what it brings.
        let free = [(0.0, 0.7), (0.001, 0.6), (0.002, 0.5), (25.0, 0.49), (60.0, 0.48), (100.0, 0.47)];
        let chosen = representative(&free, 4);
        assert_eq!(chosen, [2, 3, 4, 5]);
    }

    #[test]
    fn alphas_lie_between_what_everything_and_the_cheapest_could_be_worth() {
        let data = |costs: &[f64]| {
            let problem = Problem::ungrouped(costs, 2).expect("valid");
            let rows = || Split { x: vec![0.5; 4 * costs.len()], y: vec![0, 1, 0, 1] };
            Dataset::new(problem, rows(), rows(), rows()).expect("valid")
        };
        // ln 2 is 0.693: a tenth of it over 7, and half of it over 2.
        assert_eq!(alphas(&data(&[2.0, 5.0, 0.0])), [0.0099, 0.173]);
        assert_eq!(alphas(&data(&[0.0, 0.0])), [0.0, 0.0]);
    }

    #[test]
    fn thresholds_reach_from_everything_to_nothing() {
        let problem = Problem::ungrouped(&[1.0, 1.0], 2).expect("valid");
        let moment = |score: Option<f32>| Moment {
            guess: 0,
            probability: 0.5,
            loss: 0.5,
            spent: 0.0,
            stop_score: score,
        };
        let episode = |a: f32, b: f32| Episode {
            path: vec![0, 1],
            moments: vec![moment(Some(a)), moment(Some(b)), moment(None)],
            forced: true,
            belief: vec![0.5, 0.5],
        };
        let all = Episodes::of(&problem, vec![episode(0.7, 0.2), episode(0.6, 0.1)]);
        let found = thresholds(&all);
        let asked = |threshold: f64| {
            all.episodes.iter().map(|episode| episode.stop_below(threshold as f32)).sum::<usize>()
        };
        assert_eq!((found[0], asked(found[0])), (0.0, 4));
        assert_eq!(asked(found[found.len() - 1]), 0);
        let mut counts: Vec<usize> = found.iter().map(|&t| asked(t)).collect();
        counts.dedup();
        assert_eq!(counts, [4, 3, 2, 1, 0], "{found:?}");
        let cut = all.cut(|episode| episode.stop_below(0.3));
        assert_eq!(
            cut.episodes.iter().map(|e| (e.path.len(), e.forced)).collect::<Vec<_>>(),
            [(1, false); 2]
        );
        assert_eq!(cut.ended(), all.below(0.3));
        assert_eq!(all.cut(|_| 9), all);
    }
}
