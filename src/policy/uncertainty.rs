//! How sure results are that come from few rows.

use serde::{Deserialize, Serialize};

/// One standard error of each mean over a split's rows: how far other rows of the same kind might have moved it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Uncertainty {
    /// Of the share of right answers.
    pub accuracy: f64,
    /// Of the F1 averaged over the classes.
    pub macro_f1: f64,
    /// Of the loss.
    pub loss: f64,
    /// Of the cost.
    pub cost: f64,
}

/// Rows that nobody saw, spread evenly over what could have happened: without them, 27 right answers of 27 would be
/// certainty.
const UNSEEN: f64 = 2.0;

impl Uncertainty {
    /// From how often each class was answered for each true one, and from each row's loss and cost.
    pub fn new(confusion: &[Vec<f64>], losses: &[f64], costs: &[f64]) -> Self {
        let [accuracy, macro_f1] = of_answers(confusion);
        Self { accuracy, macro_f1, loss: of_mean(losses), cost: of_mean(costs) }
    }
}

/// The standard deviation of some values around their mean, as a sample's; 0 for fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / (values.len() - 1) as f64).sqrt()
}

/// The standard error of a share of so many rows.
pub fn of_share(share: f64, rows: usize) -> f64 {
    let all = rows as f64 + UNSEEN;
    let share = (share * rows as f64 + UNSEEN / 2.0) / all;
    (share * (1.0 - share) / all).sqrt()
}

fn of_mean(values: &[f64]) -> f64 {
    deviation(values) / (values.len().max(1) as f64).sqrt()
}

/// Of accuracy and macro-F1, by the delta method: what one more row in a cell of the confusion would change, and how
/// much that varies over the cells.
fn of_answers(confusion: &[Vec<f64>]) -> [f64; 2] {
    let classes = confusion.len();
    let each = UNSEEN / (classes * classes).max(1) as f64;
    let all: f64 = confusion.iter().flatten().sum::<f64>() + UNSEEN;
    let share = |truth: usize, answer: usize| (confusion[truth][answer] + each) / all;
    // Of each class: the share that is right, and that of its rows plus that of its answers.
    let sums: Vec<[f64; 2]> = (0..classes)
        .map(|class| {
            let (rows, answers) = (0..classes)
                .fold((0.0, 0.0), |(r, a), other| (r + share(class, other), a + share(other, class)));
            [share(class, class), rows + answers]
        })
        .collect();
    let slope = |class: usize| -2.0 * sums[class][0] / (sums[class][1].powi(2) * classes as f64);
    let (mut means, mut squares) = ([0.0; 2], [0.0; 2]);
    for (truth, of_truth) in sums.iter().enumerate() {
        for answer in 0..classes {
            let mut f1 = slope(truth) + slope(answer);
            if truth == answer {
                f1 += 2.0 / (of_truth[1] * classes as f64);
            }
            let right = f64::from(u8::from(truth == answer));
            for (measure, change) in [right, f1].into_iter().enumerate() {
                means[measure] += share(truth, answer) * change;
                squares[measure] += share(truth, answer) * change * change;
            }
        }
    }
    [0, 1].map(|measure| ((squares[measure] - means[measure].powi(2)).max(0.0) / all).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_by_hand() {
        assert_eq!(deviation(&[]), 0.0);
        assert_eq!(deviation(&[3.0]), 0.0);
        assert!((deviation(&[1.0, 3.0]) - 2f64.sqrt()).abs() < 1e-12);
        // 25 of 50: √(0.25 / 52). None of few is not certain.
        assert!((of_share(0.5, 50) - (0.25f64 / 52.0).sqrt()).abs() < 1e-12);
        assert!(of_share(1.0, 27) > 0.03 && (of_share(0.0, 27) - of_share(1.0, 27)).abs() < 1e-12);
        assert!(of_share(1.0, 0).is_finite());
    }

    #[test]
    fn answers_are_as_sure_as_their_number() {
        // Of two classes, accuracy is a share like any other.
        let [accuracy, _] = of_answers(&[vec![40.0, 10.0], vec![10.0, 40.0]]);
        assert!((accuracy - of_share(0.8, 100)).abs() < 1e-9, "{accuracy}");
        // Four times the rows, half the error, but for the rows that nobody saw.
        let few = vec![vec![400.0, 50.0, 10.0], vec![60.0, 300.0, 5.0], vec![20.0, 5.0, 90.0]];
        let many: Vec<Vec<f64>> = few.iter().map(|row| row.iter().map(|n| 4.0 * n).collect()).collect();
        for measure in [0, 1] {
            let ratio = of_answers(&few)[measure] / of_answers(&many)[measure];
            assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        }
        // All right is not certain, and classes without rows are no division by zero.
        for confusion in [vec![vec![27.0, 0.0], vec![0.0, 0.0]], vec![vec![0.0; 3]; 3], Vec::new()] {
            assert!(of_answers(&confusion).iter().all(|error| error.is_finite()), "{confusion:?}");
        }
        assert!(of_answers(&[vec![13.0, 0.0], vec![0.0, 14.0]])[1] > 0.02);
    }

    /// What the formula says is what drawing the rows again says.
    #[test]
    fn macro_f1_agrees_with_the_bootstrap() {
        let confusion = [[60usize, 8, 2], [9, 40, 6], [4, 3, 18]];
        let rows: Vec<(usize, usize)> = (0..9)
            .flat_map(|cell| std::iter::repeat_n((cell / 3, cell % 3), confusion[cell / 3][cell % 3]))
            .collect();
        let macro_f1 = |of: &[[f64; 3]; 3]| {
            let f1 = |c: usize| {
                let (rows, answers) = (0..3).fold((0.0, 0.0), |(r, a), o| (r + of[c][o], a + of[o][c]));
                2.0 * of[c][c] / (rows + answers)
            };
            (f1(0) + f1(1) + f1(2)) / 3.0
        };
        let mut state = 1u64;
        let mut drawn = Vec::new();
        for _ in 0..4_000 {
            let mut counts = [[0.0; 3]; 3];
            for _ in 0..rows.len() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (truth, answer) = rows[(state >> 33) as usize % rows.len()];
                counts[truth][answer] += 1.0;
            }
            drawn.push(macro_f1(&counts));
        }
        let real: Vec<Vec<f64>> = confusion.iter().map(|row| row.map(|n| n as f64).to_vec()).collect();
        let (formula, bootstrap) = (of_answers(&real)[1], deviation(&drawn));
        assert!((formula / bootstrap - 1.0).abs() < 0.06, "{formula} {bootstrap}");
    }
}
