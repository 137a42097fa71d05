//! The training rows that travel with a model: what the search takes for the world.

use crate::data::{Dataset, Part};
use crate::error::{Error, Result};
use crate::policy::Tensor;
use crate::random::Shuffle;

/// Numbers that the training rows of a model may have at most: 256 MiB of them, 85,598 rows of 784 columns.
pub(super) const MOST_NUMBERS: usize = 1 << 26;

/// Keys the order of the rows, where the training's passes have their number.
const ORDER: u32 = u32::MAX;

/// Checks that so many rows may travel.
///
/// # Errors
/// They are too large.
pub(super) fn check_size(rows: usize, columns: usize) -> Result<()> {
    if rows.checked_mul(columns).is_some_and(|numbers| numbers <= MOST_NUMBERS) {
        return Ok(());
    }
    Err(Error::Config(format!(
        "a model of aaco holds its training rows, and {rows} rows of {columns} columns are more than the {MOST_NUMBERS} \
         numbers (256 MiB) that it may hold: let it keep fewer, as in --set rows={}",
        (MOST_NUMBERS / columns.max(1)).max(1)
    )))
}

/// Rows as the networks read them, in an order of chance: of rows that are equally near, the first ones count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Rows {
    /// Column after column, as distances are added up column by column.
    values: Vec<f32>,
    labels: Vec<u32>,
}

/// The place of each training row in the order of chance.
pub(super) fn order(seed: u64, rows: usize) -> impl Iterator<Item = usize> {
    let shuffle = Shuffle::new(seed, ORDER, rows as u32);
    (0..rows as u32).map(move |place| shuffle.index(place) as usize)
}

impl Rows {
    /// The first `count` of a table's training rows in the order of chance.
    pub fn of(data: &Dataset, seed: u64, count: usize) -> Self {
        let columns = data.problem().columns();
        let mut values = vec![0.0; count * columns];
        let mut labels = Vec::with_capacity(count);
        for (place, row) in order(seed, data.sizes()[0]).take(count).enumerate() {
            for (column, &value) in data.row(Part::Train, row).iter().enumerate() {
                values[column * count + place] = value;
            }
            labels.push(data.splits()[0].y[row]);
        }
        Self { values, labels }
    }

    /// From the tensors of a file: row after row, and the labels as reals.
    ///
    /// # Errors
    /// They are of other sizes or too large, a number is not finite, or a label is none of the classes.
    pub fn read(x: &[f32], y: &[f32], columns: usize, classes: usize) -> Result<Self> {
        let count = y.len();
        check_size(count, columns)?;
        if let Some(at) = x.iter().position(|value| !value.is_finite()) {
            return Err(Error::Config(format!("element {at} of `rows.x` is {}, not a finite number", x[at])));
        }
        if let Some(at) = y.iter().position(|&label| !(0..classes).any(|class| class as f32 == label)) {
            return Err(Error::Config(format!(
                "element {at} of `rows.y` is {}, but the classes are 0 to {}",
                y[at],
                classes - 1
            )));
        }
        let mut values = vec![0.0; count * columns];
        for (place, row) in x.chunks_exact(columns).enumerate() {
            row.iter().enumerate().for_each(|(column, &value)| values[column * count + place] = value);
        }
        Ok(Self { values, labels: y.iter().map(|&label| label as u32).collect() })
    }

    /// What a model's file holds of them.
    pub fn tensors(&self) -> [Tensor; 2] {
        let (count, columns) = (self.len(), self.columns());
        let values = (0..count).flat_map(|row| (0..columns).map(move |column| self.value(row, column)));
        let labels = self.labels.iter().map(|&label| label as f32);
        [
            Tensor { name: "rows.x".into(), shape: vec![count, columns], values: values.collect() },
            Tensor { name: "rows.y".into(), shape: vec![count], values: labels.collect() },
        ]
    }

    pub fn len(&self) -> usize {
        self.labels.len()
    }

    fn columns(&self) -> usize {
        self.values.len() / self.len().max(1)
    }

    pub fn value(&self, row: usize, column: usize) -> f32 {
        self.values[column * self.len() + row]
    }

    pub fn label(&self, row: usize) -> usize {
        self.labels[row] as usize
    }

    /// Adds the squared distance of each row from a value of a column.
    pub fn add_distances(&self, column: usize, value: f32, distances: &mut [f32]) {
        let count = self.len();
        let rows = &self.values[column * count..][..count];
        for (distance, &row) in distances.iter_mut().zip(rows) {
            *distance += (row - value) * (row - value);
        }
    }
}

/// The rows of the least distance, without one that is left out: from the nearest on, and of equally near ones the
/// first.
pub(super) fn nearest(distances: &[f32], count: usize, left_out: Option<usize>) -> Vec<usize> {
    let count = count.min(distances.len());
    let mut found: Vec<(f32, usize)> = Vec::with_capacity(count + 1);
    for (row, &distance) in distances.iter().enumerate() {
        let is_full = found.len() == count;
        if left_out == Some(row) || is_full && found.last().is_none_or(|(most, _)| distance >= *most) {
            continue;
        }
        let place = found.partition_point(|(other, _)| *other <= distance);
        found.insert(place, (distance, row));
        found.truncate(count);
    }
    found.into_iter().map(|(_, row)| row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equally_near_rows_the_first_count() {
        let distances = [3.0, 1.0, 2.0, 1.0, f32::INFINITY, 0.5];
        assert_eq!(nearest(&distances, 3, None), [5, 1, 3]);
        assert_eq!(nearest(&distances, 3, Some(1)), [5, 3, 2]);
        assert_eq!(nearest(&distances, 9, Some(5)), [1, 3, 2, 0, 4]);
        assert_eq!(nearest(&[0.0; 5], 2, None), [0, 1]);
        assert_eq!(nearest(&[f32::INFINITY; 3], 2, None), [0, 1]);
        assert!(nearest(&[], 2, None).is_empty());
    }

    #[test]
    fn the_limit_is_said() {
        assert!(check_size(85_598, 784).is_ok());
        let error = check_size(85_599, 784).expect_err("too many").to_string();
        assert!(error.contains("85599 rows of 784 columns") && error.contains("rows=85598"), "{error}");
        assert!(check_size(usize::MAX, 2).is_err());
    }

    #[test]
    fn rows_of_a_file_are_checked() {
        let rows = Rows::read(&[1.0, 2.0, 3.0, 4.0], &[1.0, 0.0], 2, 2).expect("valid");
        assert_eq!((rows.value(1, 0), rows.label(0)), (3.0, 1));
        let [x, y] = rows.tensors();
        assert_eq!((x.values, x.shape, y.values), (vec![1.0, 2.0, 3.0, 4.0], vec![2, 2], vec![1.0, 0.0]));
        let wrong = |x: &[f32], y: &[f32]| Rows::read(x, y, 2, 2).expect_err("refused").to_string();
        assert!(wrong(&[1.0, f32::NAN], &[0.0]).contains("element 1 of `rows.x`"));
        assert!(wrong(&[1.0, 2.0], &[2.0]).contains("classes are 0 to 1"));
        assert!(wrong(&[1.0, 2.0], &[0.5]).contains("element 0 of `rows.y` is 0.5"));
    }
}
