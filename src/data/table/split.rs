//! Which rows train, validate and test.

use crate::random::stream;
use crate::random::{Source, unit};

/// Deals rows to the three splits, class by class, so that each split has every class's share (as far as
/// whole rows allow) and exactly the sizes asked for. For each row its split: 0, 1 or 2.
pub fn stratified(labels: &[u32], classes: usize, sizes: [usize; 3], seed: u64) -> Vec<u8> {
    let source = Source::new(seed, stream::DATA, 77);
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); classes];
    for (row, &label) in labels.iter().enumerate() {
        rows_of[label as usize].push(row as u32);
    }
    for rows in &mut rows_of {
        rows.sort_by(|&a, &b| {
            let key = |row: u32| unit(source.bits(row, 0, 0)[0]);
            key(a).total_cmp(&key(b)).then(a.cmp(&b))
        });
    }
    let counts: Vec<usize> = rows_of.iter().map(Vec::len).collect();
    let train = shares(&counts, sizes[0]);
    let left: Vec<usize> = counts.iter().zip(&train).map(|(all, taken)| all - taken).collect();
    let validation = shares(&left, sizes[1]);
    let mut splits = vec![2u8; labels.len()];
    for (class, rows) in rows_of.iter().enumerate() {
        let (train, validation) = (train[class], validation[class]);
        rows[..train].iter().for_each(|&row| splits[row as usize] = 0);
        rows[train..train + validation].iter().for_each(|&row| splits[row as usize] = 1);
    }
    splits
}

/// The split that a word of a column means: 0 for training, 1 for validation, 2 for test.
pub(super) fn fold(word: &str) -> Option<u8> {
    match word.trim().to_lowercase().as_str() {
        "train" | "training" => Some(0),
        "validation" | "valid" | "val" | "dev" => Some(1),
        "test" | "testing" => Some(2),
        _ => None,
    }
}

/// The same splits, with a share of the training rows of each class to validate on.
pub(super) fn with_validation(
    splits: &[u8],
    labels: &[u32],
    classes: usize,
    share: f64,
    seed: u64,
) -> Vec<u8> {
    let train: Vec<usize> = (0..splits.len()).filter(|&row| splits[row] == 0).collect();
    let of_train: Vec<u32> = train.iter().map(|&row| labels[row]).collect();
    let validation = (share * train.len() as f64).round() as usize;
    let dealt =
        stratified(&of_train, classes, [train.len() - validation.min(train.len()), validation, 0], seed);
    let mut splits = splits.to_vec();
    train.iter().zip(dealt).for_each(|(&row, split)| splits[row] = split);
    splits
}

/// So many out of all, dealt to the classes in proportion: whole parts first, then one each to the largest
/// remainders.
fn shares(counts: &[usize], wanted: usize) -> Vec<usize> {
    let all: usize = counts.iter().sum::<usize>().max(1);
    let mut dealt: Vec<usize> = counts.iter().map(|&n| n * wanted / all).collect();
    let mut by_remainder: Vec<usize> = (0..counts.len()).collect();
    by_remainder.sort_by_key(|&class| std::cmp::Reverse(counts[class] * wanted % all));
    let mut left = wanted.min(all) - dealt.iter().sum::<usize>();
    for class in by_remainder {
        if left > 0 && dealt[class] < counts[class] {
            dealt[class] += 1;
            left -= 1;
        }
    }
    dealt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validation_rows_are_taken_from_the_training_rows() {
        let labels: Vec<u32> = (0..100).map(|row| u32::from(row % 4 == 0)).collect();
        let before: Vec<u8> = (0..100).map(|row| if row < 80 { 0 } else { 2 }).collect();
        let splits = with_validation(&before, &labels, 2, 0.25, 0);
        assert_eq!(splits.iter().filter(|&&split| split == 1).count(), 20);
        assert_eq!((0..80).filter(|&row| splits[row] == 1 && labels[row] == 1).count(), 5);
        assert!(splits[80..].iter().all(|&split| split == 2));
        for (word, split) in [("Train", Some(0)), (" dev ", Some(1)), ("test", Some(2)), ("other", None)] {
            assert_eq!(fold(word), split, "{word}");
        }
    }

    #[test]
    fn sizes_are_exact_and_classes_spread() {
        let labels: Vec<u32> =
            (0..1000).map(|row| u32::from(row % 10 == 0) + 2 * u32::from(row % 97 == 0)).collect();
        let labels: Vec<u32> = labels.into_iter().map(|label| label.min(2)).collect();
        let splits = stratified(&labels, 3, [701, 149, 150], 3);
        for (split, size) in [701, 149, 150].into_iter().enumerate() {
            assert_eq!(splits.iter().filter(|&&s| s as usize == split).count(), size);
            for class in 0..3 {
                let all = labels.iter().filter(|&&label| label == class).count() as f64;
                let here = labels.iter().zip(&splits).filter(|(l, s)| **l == class && **s as usize == split);
                let expected = all * size as f64 / 1000.0;
                assert!((here.count() as f64 - expected).abs() < 2.0, "class {class} in split {split}");
            }
        }
        assert_eq!(splits, stratified(&labels, 3, [701, 149, 150], 3));
        assert_ne!(splits, stratified(&labels, 3, [701, 149, 150], 4));
    }
}
