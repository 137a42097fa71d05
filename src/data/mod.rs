//! Tables to learn from.

#[cfg(feature = "table")]
pub mod catalog;
pub mod dates;
pub mod encoding;
mod field;
pub mod nearest;
pub mod numbers;
pub mod ranges;
pub mod synthetic;
#[cfg(feature = "table")]
pub mod table;
mod words;

use crate::error::{Error, Result};
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// Rows of a table: all columns of each, and its label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Split {
    /// Row after row.
    pub x: Vec<f32>,
    /// The class of each row.
    pub y: Vec<u32>,
}

/// Which rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What is trained on.
    Train = 0,
    /// What decides when to stop.
    Validation = 1,
    /// What nothing was decided on.
    Test = 2,
}

/// How raw values become the networks' inputs: (value − mean) / scale, column by column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Normalization {
    /// Subtracted.
    pub mean: Vec<f32>,
    /// Divided by. Never zero.
    pub scale: Vec<f32>,
}

impl Normalization {
    /// Leaves so many columns as they are.
    pub fn identity(columns: usize) -> Self {
        Self { mean: vec![0.0; columns], scale: vec![1.0; columns] }
    }

    /// Mean and standard deviation of the rows' columns; a constant column keeps its scale.
    pub fn of(split: &Split, columns: usize) -> Self {
        let (mean, deviation) = moments(&split.x, columns);
        Self { mean, scale: deviation.iter().map(|&s| if s > 0.0 { s } else { 1.0 }).collect() }
    }

    /// Normalizes rows in place.
    pub fn apply(&self, x: &mut [f32]) {
        for row in x.chunks_exact_mut(self.mean.len()) {
            for ((value, mean), scale) in row.iter_mut().zip(&self.mean).zip(&self.scale) {
                *value = (*value - mean) / scale;
            }
        }
    }
}

/// Mean and standard deviation of each column.
fn moments<V: Copy + Into<f64>>(x: &[V], columns: usize) -> (Vec<f32>, Vec<f32>) {
    let rows = (x.len() / columns.max(1)).max(1) as f64;
    let mut sums = vec![[0.0f64; 2]; columns];
    for row in x.chunks_exact(columns) {
        for (sum, &value) in sums.iter_mut().zip(row) {
            sum[0] += value.into();
        }
    }
    let means: Vec<f64> = sums.iter().map(|sum| sum[0] / rows).collect();
    for row in x.chunks_exact(columns) {
        for ((sum, &value), mean) in sums.iter_mut().zip(row).zip(&means) {
            sum[1] += (value.into() - mean).powi(2);
        }
    }
    let deviations = sums.iter().map(|sum| (sum[1] / rows).sqrt() as f32).collect();
    (means.iter().map(|&mean| mean as f32).collect(), deviations)
}

/// A fully observed table, split into training, validation and test rows, with the normalization its
/// values have been through. Clones share the rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    problem: Problem,
    splits: Arc<[Split; 3]>,
    normalization: Normalization,
    /// The rows of each split, where they are bytes.
    images: Option<Arc<[Vec<u8>; 3]>>,
}

/// What bytes are divided by.
const BYTE: u32 = 255;

/// The splits' names, in order.
const NAMES: [&str; 3] = ["training", "validation", "test"];

impl Dataset {
    /// Checks and keeps a table.
    ///
    /// # Errors
    /// A split whose sizes do not fit the problem, a value that is not a finite number, a label that
    /// is not a class (with row and column), or no training rows.
    pub fn new(problem: Problem, train: Split, validation: Split, test: Split) -> Result<Self> {
        let splits = [train, validation, test];
        for (split, name) in splits.iter().zip(NAMES) {
            check(&problem, split, name)?;
        }
        if splits[0].y.is_empty() {
            return Err(Error::Data("the training split has no rows".into()));
        }
        let normalization = Normalization::identity(problem.columns());
        Ok(Self { problem, splits: Arc::new(splits), normalization, images: None })
    }

    /// Checks and keeps a table of bytes, such as images: for each split the rows and their labels. They
    /// stay bytes until they are gathered on the device, where the networks read them divided by 255. Of
    /// [`Dataset::splits`], only the labels are there.
    ///
    /// # Errors
    /// As [`Dataset::new`].
    pub fn of_bytes(problem: Problem, splits: [(Vec<u8>, Vec<u32>); 3]) -> Result<Self> {
        let columns = problem.columns();
        for ((bytes, labels), name) in splits.iter().zip(NAMES) {
            check_sizes(bytes.len(), labels, columns, name)?;
            check_labels(&problem, labels, name)?;
        }
        if splits[0].1.is_empty() {
            return Err(Error::Data("the training split has no rows".into()));
        }
        let normalization = Normalization { mean: vec![0.0; columns], scale: vec![BYTE as f32; columns] };
        let [a, b, c] = splits;
        let labels = [a.1, b.1, c.1].map(|y| Split { x: Vec::new(), y });
        let images = Some(Arc::new([a.0, b.0, c.0]));
        Ok(Self { problem, splits: Arc::new(labels), normalization, images })
    }

    /// What the table's bytes are divided by on the device; `None` if it does not hold bytes.
    pub fn divisor(&self) -> Option<u32> {
        self.images.as_ref().map(|_| BYTE)
    }

    /// The bytes of each split, if it holds bytes.
    pub fn images(&self) -> Option<&[Vec<u8>; 3]> {
        self.images.as_deref()
    }

    /// A row as the networks read it.
    pub fn row(&self, part: Part, index: usize) -> Cow<'_, [f32]> {
        let columns = self.problem.columns();
        let at = index * columns;
        match &self.images {
            Some(images) => {
                let bytes = &images[part as usize][at..][..columns];
                bytes.iter().map(|&byte| f32::from(byte) / BYTE as f32).collect()
            }
            None => Cow::Borrowed(&self.splits[part as usize].x[at..][..columns]),
        }
    }

    /// All bytes, four to a word, the first in its lowest bits.
    pub(crate) fn packed(&self) -> Option<Vec<u32>> {
        let images = self.images.as_ref()?;
        let mut words = vec![0u32; images.iter().map(Vec::len).sum::<usize>().div_ceil(4)];
        for (index, &byte) in images.iter().flatten().enumerate() {
            words[index / 4] |= u32::from(byte) << (8 * (index % 4));
        }
        Some(words)
    }

    /// The same table with a normalization that its values have been through already.
    #[cfg(feature = "table")]
    pub(crate) fn with_normalization(mut self, normalization: Normalization) -> Self {
        self.normalization = normalization;
        self
    }

    /// The same table with every column standardized by the training rows' mean and deviation. Bytes stay
    /// as they are.
    pub fn standardized(mut self) -> Self {
        if self.images.is_some() {
            return self;
        }
        let normalization = Normalization::of(&self.splits[0], self.problem.columns());
        Arc::make_mut(&mut self.splits).iter_mut().for_each(|split| normalization.apply(&mut split.x));
        // The values may have been normalized before: (v − m)/s of (x − M)/S is (x − M − m S)/(s S).
        let both = self.normalization.mean.iter().zip(&self.normalization.scale);
        let (mean, scale) = both
            .zip(normalization.mean.iter().zip(&normalization.scale))
            .map(|((mean, scale), (m, s))| (mean + m * scale, s * scale))
            .unzip();
        self.normalization = Normalization { mean, scale };
        self
    }

    /// The same table with at most so many training, validation and test rows: of a longer part, rows at even distances.
    ///
    /// # Errors
    /// No training rows are left.
    pub fn thinned(&self, most: [usize; 3]) -> Result<Self> {
        let columns = self.problem.columns();
        let chosen = |part: usize| {
            let (rows, few) = (self.splits[part].y.len(), most[part]);
            (0..few.min(rows)).map(move |at| at * rows / few.min(rows))
        };
        let labels = |part: usize| chosen(part).map(|row| self.splits[part].y[row]).collect::<Vec<u32>>();
        if let Some(images) = &self.images {
            let rows =
                |part: usize| chosen(part).flat_map(move |row| &images[part][row * columns..][..columns]);
            let splits = [0, 1, 2].map(|part| (rows(part).copied().collect(), labels(part)));
            return Self::of_bytes(self.problem.clone(), splits);
        }
        let rows =
            |part: usize| chosen(part).flat_map(move |row| &self.splits[part].x[row * columns..][..columns]);
        let [a, b, c] = [0, 1, 2].map(|part| Split { x: rows(part).copied().collect(), y: labels(part) });
        Ok(Self { normalization: self.normalization.clone(), ..Self::new(self.problem.clone(), a, b, c)? })
    }

    /// The standard deviation of each column over the training rows, as the networks read it.
    pub(crate) fn spread(&self) -> Vec<f32> {
        let columns = self.problem.columns();
        match &self.images {
            None => moments(&self.splits[0].x, columns).1,
            Some(images) => moments(&images[0], columns).1.iter().map(|s| s / BYTE as f32).collect(),
        }
    }

    /// What the table's values have been through.
    pub fn normalization(&self) -> &Normalization {
        &self.normalization
    }

    /// What the table is about.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The training, validation and test rows.
    pub fn splits(&self) -> &[Split; 3] {
        &self.splits
    }

    /// How many rows each split has.
    pub fn sizes(&self) -> [usize; 3] {
        [0, 1, 2].map(|i| self.splits[i].y.len())
    }
}

fn check(problem: &Problem, split: &Split, name: &str) -> Result<()> {
    let columns = problem.columns();
    check_sizes(split.x.len(), &split.y, columns, name)?;
    if let Some(at) = split.x.iter().position(|value| !value.is_finite()) {
        let (row, column) = (at / columns, at % columns);
        let feature = problem.features().get(problem.group_of_column()[column] as usize);
        let whose = feature.map_or("known from the start".into(), |f| format!("feature `{}`", f.name));
        return Err(Error::Data(format!(
            "{name} split: row {row}, column {column} ({whose}) is {}, not a finite number",
            split.x[at]
        )));
    }
    check_labels(problem, &split.y, name)
}

fn check_sizes(values: usize, labels: &[u32], columns: usize, name: &str) -> Result<()> {
    let rows = labels.len();
    if values != rows * columns {
        return Err(Error::Data(format!(
            "{name} split: {values} values for {rows} rows of {columns} columns"
        )));
    }
    Ok(())
}

fn check_labels(problem: &Problem, labels: &[u32], name: &str) -> Result<()> {
    let classes = problem.classes().len();
    if let Some(row) = labels.iter().position(|&label| label as usize >= classes) {
        return Err(Error::Data(format!(
            "{name} split: row {row} has label {}, but the classes are 0 to {}",
            labels[row] as i32,
            classes - 1
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standardizing_twice_still_undoes_to_the_raw_values() {
        let problem = Problem::ungrouped(&[1.0, 1.0, 1.0], 2).expect("valid");
        let train = Split { x: vec![1.0, 10.0, 7.0, 3.0, 30.0, 7.0, 5.0, 20.0, 7.0], y: vec![0, 1, 0] };
        let raw = train.x.clone();
        let data = Dataset::new(problem, train, Split::default(), Split::default()).expect("valid");
        let once = data.standardized();
        assert!((once.splits()[0].x[0] + 1.2247449).abs() < 1e-6, "{:?}", once.splits()[0].x);
        assert_eq!(once.splits()[0].x[2], 0.0, "a constant column is centred");
        let twice = once.clone().standardized();
        let mut again = raw;
        twice.normalization().apply(&mut again);
        for (a, b) in again.iter().zip(&twice.splits()[0].x) {
            assert!((a - b).abs() < 1e-5);
        }
    }

    #[test]
    fn thinned_rows_are_at_even_distances() {
        let problem = || Problem::ungrouped(&[1.0], 2).expect("valid");
        let rows = |n: u8| Split { x: (0..n).map(f32::from).collect(), y: vec![1; usize::from(n)] };
        let data = Dataset::new(problem(), rows(7), rows(6), rows(3)).expect("valid").standardized();
        let few = data.thinned([7, 3, 9]).expect("valid");
        assert_eq!(few.sizes(), [7, 3, 3]);
        assert_eq!(
            (few.splits()[0].clone(), few.normalization()),
            (data.splits()[0].clone(), data.normalization())
        );
        assert_eq!(few.splits()[1].x, [0, 2, 4].map(|row| data.splits()[1].x[row]));
        let bytes = [(vec![0, 1, 2, 3], vec![0; 4]), (vec![5, 6], vec![1; 2]), (vec![], vec![])];
        let few =
            Dataset::of_bytes(problem(), bytes).and_then(|data| data.thinned([2, 1, 4])).expect("valid");
        assert_eq!(few.images().expect("bytes"), &[vec![0, 2], vec![5], vec![]]);
    }

    #[test]
    fn bad_tables_are_refused_with_their_place() {
        let problem = || Problem::ungrouped(&[1.0, 1.0], 2).expect("valid");
        let message = |x: Vec<f32>, y: Vec<u32>| {
            Dataset::new(problem(), Split { x, y }, Split::default(), Split::default())
                .expect_err("should have been refused")
                .to_string()
        };
        assert!(message(vec![1.0; 3], vec![0, 1]).contains("3 values for 2 rows of 2 columns"));
        assert!(
            message(vec![1.0, 2.0, 3.0, f32::NAN], vec![0, 1])
                .contains("row 1, column 1 (feature `x2`) is NaN")
        );
        assert!(message(vec![1.0; 4], vec![0, 2]).contains("row 1 has label 2"));
        assert!(message(vec![1.0; 2], vec![u32::MAX]).contains("label -1"));
        assert!(message(vec![], vec![]).contains("no rows"));
    }
}
