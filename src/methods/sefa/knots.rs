//! The columns' empirical distributions, as a few of their values with normal scores.

use crate::data::{Dataset, Part};
use crate::engine::kernels::normal;

/// Knots of a column, at most.
pub(super) const KNOTS: usize = 64;
/// How far the knots reach into the tails: logits of the shares of the rows that the outermost lie above and below.
const REACH: f64 = 11.0;

/// Of each column the knots, from the smallest to the largest, then their normal scores; those that are too many repeat
/// the last. A knot's score is that of the share of the training rows below it, and half of those at it.
pub(super) fn tables(data: &Dataset) -> Vec<f64> {
    let (columns, rows) = (data.problem().columns(), data.sizes()[0]);
    let mut tables = Vec::with_capacity(columns * 2 * KNOTS);
    let mut values = vec![vec![0.0; rows]; columns];
    for row in 0..rows {
        for (values, &value) in values.iter_mut().zip(data.row(Part::Train, row).iter()) {
            values[row] = value;
        }
    }
    for column in &mut values {
        column.sort_by(f32::total_cmp);
        let (knots, scores) = knots(column);
        tables.extend(knots);
        tables.extend(scores);
    }
    tables
}

/// The knots of a sorted column, and their scores.
fn knots(sorted: &[f32]) -> (Vec<f64>, Vec<f64>) {
    let rows = sorted.len();
    let (mut knots, mut scores): (Vec<f64>, Vec<f64>) = (Vec::new(), Vec::new());
    for index in 0..KNOTS {
        // Shares whose logits are evenly apart: more of them where a normal distribution has its tails.
        let logit = REACH * (2.0 * index as f64 / (KNOTS - 1) as f64 - 1.0);
        let at = (rows as f64 / (1.0 + (-logit).exp())) as usize;
        let Some(&value) = sorted.get(at.min(rows.saturating_sub(1))) else { break };
        if knots.last().is_some_and(|&last| last >= f64::from(value)) {
            continue;
        }
        let below = sorted.partition_point(|&other| other < value);
        let up_to = sorted.partition_point(|&other| other <= value);
        knots.push(value.into());
        // Rounded to f32, as every engine has it.
        scores.push(f64::from(normal((below + up_to) as f64 / (2 * rows) as f64) as f32));
    }
    for list in [&mut knots, &mut scores] {
        let last = list.last().copied().unwrap_or(0.0);
        list.resize(KNOTS, last);
    }
    (knots, scores)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kernels::normal_score;

    #[test]
    fn values_become_normal_and_stay_in_order() {
        // An exponential distribution, in order.
        let sorted: Vec<f32> = (0..5000).map(|i| -(1.0 - (i as f32 + 0.5) / 5000.0).ln()).collect();
        let (knots, scores) = knots(&sorted);
        let table = [knots, scores].concat();
        let made: Vec<f64> = sorted.iter().map(|&value| normal_score(&table, value.into())).collect();
        assert!(made.windows(2).all(|pair| pair[0] <= pair[1]));
        let mean = made.iter().sum::<f64>() / 5000.0;
        let variance = made.iter().map(|score| (score - mean).powi(2)).sum::<f64>() / 5000.0;
        assert!(mean.abs() < 0.01 && (variance - 1.0).abs() < 0.02, "{mean} {variance}");
        // Where the quantiles of a normal distribution are known.
        for (share, score) in [(0.5f64, 0.0), (0.8413447, 1.0), (0.0227501, -2.0)] {
            let value = -(1.0 - share).ln();
            assert!((normal_score(&table, value) - score).abs() < 0.01, "{share}");
        }
        // Beyond what was seen, nothing changes.
        assert_eq!(normal_score(&table, -5.0), made[0]);
        assert_eq!(normal_score(&table, 1e9), made[4999]);
    }

    #[test]
    fn equal_values_share_the_middle_of_their_ranks() {
        let sorted: Vec<f32> = [vec![0.0; 75], vec![1.0; 25]].concat();
        let (knots, scores) = knots(&sorted);
        let table = [knots.clone(), scores].concat();
        assert!((normal_score(&table, 0.0) - normal(0.375)).abs() < 1e-6);
        assert!((normal_score(&table, 1.0) - normal(0.875)).abs() < 1e-6);
        assert_eq!(knots[1..], [1.0; KNOTS - 1]);
        // A column that is always the same says nothing.
        let (knots, scores) = super::knots(&[3.0; 10]);
        assert_eq!((knots[0], scores[0], normal_score(&[knots, scores].concat(), 7.0)), (3.0, 0.0, 0.0));
    }
}
