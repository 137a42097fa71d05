//! From a table and its schema to a data set: reads the cells, splits the rows, and learns from the
//! training rows how to encode.

use super::cells::Loaded;
use super::fit::{Raw, Training, fit_field};
use super::reader::{Cells, TableReader};
use super::sample::{Choice, Sample};
use super::schema::{NamedWeights, Schema, Split, Weights};
use super::split::{stratified, with_validation};
use super::target::{Answers, Settled};
use crate::data::encoding::{Encoding, Field, Metric};
use crate::data::{self, Dataset, Normalization};
use crate::error::{Error, Result};
use crate::memory::reserve;
use crate::problem::{Feature, Problem};

/// A table that is ready to be trained on.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The rows, encoded and normalized.
    pub data: Dataset,
    /// How cells were encoded, for the model.
    pub encoding: Encoding,
    /// For each split, where its rows are among those that were taken: their numbers, from 0.
    pub rows: [Vec<u32>; 3],
    /// What to judge by.
    pub metric: Metric,
}

/// Reads a table as its schema says, splits it and encodes it.
///
/// # Errors
/// A column that is not there, a cell that does not fit its kind (with row and column), a class with too
/// few rows, or a column that can tell nothing.
pub fn prepare(table: TableReader, schema: &Schema) -> Result<Prepared> {
    prepare_some(table, schema, None)
}

/// The same with some of the rows, chosen at random by the seed of the split; a [`Survey`](super::Survey) gives the
/// sample.
///
/// # Errors
/// As [`prepare`], or there is no memory for the rows.
pub fn prepare_some(table: TableReader, schema: &Schema, sample: Option<Sample>) -> Result<Prepared> {
    let path = table.path().to_path_buf();
    let loaded = read(table, schema, sample)?;
    let (strata, count) = loaded.answers.strata();
    let splits = match &loaded.split {
        // People who tell training rows from test rows only leave the rest to us.
        Some(splits) if !splits.contains(&1) => {
            let Split { train, validation, seed, .. } = &schema.split;
            with_validation(splits, &strata, count, validation / (train + validation), *seed)
        }
        Some(splits) => splits.clone(),
        None => {
            let sizes = split_sizes(schema, strata.len(), sample).map_err(|error| error.at(&path))?;
            check_classes(&loaded.answers).map_err(|error| error.at(&path))?;
            stratified(&strata, count, sizes, schema.split.seed)
        }
    };
    let rows = [0u8, 1, 2].map(|which| {
        (0..splits.len() as u32).filter(|&row| splits[row as usize] == which).collect::<Vec<u32>>()
    });
    for (which, name) in [(0, "training"), (1, "validation")] {
        if rows[which].is_empty() {
            return Err(Error::table(&path, format!("the split leaves no {name} rows")));
        }
    }
    let Loaded { columns, answers, .. } = loaded;
    let settled = answers.settle(&schema.target, &rows[0]).map_err(|error| error.at(&path))?;
    fit(schema, &columns, settled, rows).map_err(|error| error.at(path))
}

fn read(mut table: TableReader, schema: &Schema, sample: Option<Sample>) -> Result<Loaded<'_>> {
    let room = sample.map_or(0, |sample| sample.rows as usize);
    let mut loaded = Loaded::new(&table, schema, room)?;
    let mut choice = sample.map(|sample| Choice::new(sample, schema.split.seed));
    let mut cells = Cells::default();
    while table.next(&mut cells)? {
        if !loaded.drops(&cells) && choice.as_mut().is_none_or(Choice::takes) {
            loaded.push(&cells)?;
        }
    }
    if loaded.rows() == 0 {
        return Err(Error::table(table.path(), "there are no rows"));
    }
    Ok(loaded)
}

/// The sizes of the splits, of so many rows.
fn split_sizes(schema: &Schema, rows: usize, sample: Option<Sample>) -> Result<[usize; 3]> {
    let split = &schema.split;
    let sizes = [split.train, split.validation, split.test];
    let of_shares = |train: f64, validation: f64| {
        let train = (train * rows as f64).round() as usize;
        let validation = ((validation * rows as f64).round() as usize).min(rows - train);
        [train, validation, rows - train - validation]
    };
    if sizes.iter().all(|&size| size <= 1.0) {
        return Ok(of_shares(split.train, split.validation));
    }
    let sizes = sizes.map(|size| size as usize);
    let all = sample.map_or(rows, |sample| sample.of as usize);
    if sizes.iter().sum::<usize>() != all {
        return Err(Error::Data(format!(
            "[split] asks for {} + {} + {} rows, but there are {all}",
            sizes[0], sizes[1], sizes[2]
        )));
    }
    // Of a sample, the same shares.
    Ok(if rows == all { sizes } else { of_shares(split.train / all as f64, split.validation / all as f64) })
}

fn check_classes(answers: &Answers<'_>) -> Result<()> {
    let (classes, labels, advice) = match answers {
        Answers::Words { classes, labels, .. } => {
            (classes.to_vec(), labels, "leave it out (`drop`), merge it with another")
        }
        Answers::Cut { ranges, labels } => (ranges.names(), labels, "move the edges of [target]"),
        // Those are cut so that each has its share.
        Answers::Numbers { .. } => return Ok(()),
    };
    let mut counts = vec![0usize; classes.len()];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    match counts.iter().position(|&count| count < 3) {
        None => Ok(()),
        Some(class) => Err(Error::Data(format!(
            "class `{}` has {} row(s), but each of training, validation and test needs one: {advice}, or give a \
             split column",
            classes[class], counts[class]
        ))),
    }
}

fn fit(schema: &Schema, columns: &[Option<Raw>], settled: Settled, rows: [Vec<u32>; 3]) -> Result<Prepared> {
    let Settled { labels, classes, ranges } = settled;
    let groups = schema.groups()?;
    let train = &rows[0];
    let mut normalization = Normalization { mean: Vec::new(), scale: Vec::new() };
    let mut fit_group = |group: &[usize]| -> Result<Vec<(usize, Field)>> {
        let mut fields: Vec<(usize, Field)> = Vec::new();
        for &index in group {
            let Some(raw) = &columns[index] else { continue };
            // Cells that are missing together need one flag only.
            let flagged = fields.iter().any(|(other, field)| {
                field.flag
                    && columns[*other].as_ref().is_some_and(|other| {
                        train.iter().all(|&row| other.is_missing(row) == raw.is_missing(row))
                    })
            });
            let training = Training { rows: train, labels: &labels, classes: classes.len() };
            let field = fit_field(schema, index, raw, training, !flagged, &mut normalization)?;
            fields.push((index, field));
        }
        Ok(fields)
    };
    let features = groups.iter().map(|group| fit_group(&group.columns)).collect::<Result<Vec<_>>>()?;
    let known = fit_group(&schema.known())?;

    let group_of_column = features.iter().enumerate().flat_map(|(index, fields)| {
        let columns = fields.iter().map(|(_, field)| field.columns()).sum();
        std::iter::repeat_n(index as u32, columns)
    });
    let group_of_column: Vec<u32> = group_of_column.collect();
    let problem = Problem::new(
        groups.iter().map(|group| Feature { name: group.name.clone(), cost: group.cost }).collect(),
        group_of_column,
        classes.clone(),
    )?;
    let known_columns = known.iter().map(|(_, field)| field.columns()).sum();
    let problem = problem.with_known_columns(known_columns).with_class_weights(class_weights(
        schema,
        classes.len(),
        &labels,
        train,
    ))?;
    let encoded = |which: usize| -> Result<data::Split> {
        let mut split = data::Split::default();
        let count = rows[which].len();
        reserve(&mut split.x, count * problem.columns(), "the encoded rows")?;
        reserve(&mut split.y, count, "the rows' classes")?;
        for &row in &rows[which] {
            let fields = features.iter().flatten().chain(&known);
            for (index, field) in fields {
                if let Some(raw) = &columns[*index] {
                    raw.encode(field, row, &mut split.x);
                }
            }
            split.y.push(labels[row as usize]);
        }
        normalization.apply(&mut split.x);
        Ok(split)
    };
    let (train, validation, test) = (encoded(0)?, encoded(1)?, encoded(2)?);
    let data = Dataset::new(problem, train, validation, test)?.with_normalization(normalization);
    let only = |fields: Vec<(usize, Field)>| fields.into_iter().map(|(_, field)| field).collect::<Vec<_>>();
    let encoding = Encoding {
        target: schema.target.column.clone(),
        missing: schema.table.missing.clone(),
        features: features.into_iter().map(only).collect(),
        known: only(known),
        metric: schema.target.metric,
        ranges,
    };
    encoding.check(data.problem())?;
    Ok(Prepared { data, encoding, rows, metric: schema.target.metric })
}

fn class_weights(schema: &Schema, classes: usize, labels: &[u32], train: &[u32]) -> Vec<f64> {
    match &schema.target.weights {
        Weights::Each(weights) => weights.clone(),
        Weights::Named(NamedWeights::Root) => inverse(0.5, classes, labels, train),
        Weights::Named(NamedWeights::Balanced) => inverse(1.0, classes, labels, train),
        Weights::Named(NamedWeights::None) | Weights::Unset => vec![1.0; classes],
    }
}

/// For each class n^-power, n being its training rows, times what makes the mean over all rows 1. A class without any is
/// taken to have one.
fn inverse(power: f64, classes: usize, labels: &[u32], train: &[u32]) -> Vec<f64> {
    let mut counts = vec![0usize; classes];
    train.iter().for_each(|&row| counts[labels[row as usize] as usize] += 1);
    let counts: Vec<f64> = counts.into_iter().map(|count| count.max(1) as f64).collect();
    let sum: f64 = counts.iter().map(|n| n.powf(1.0 - power)).sum();
    counts.iter().map(|n| train.len() as f64 / (sum * n.powf(power))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows count 1 on average, and the root is halfway between counting alike and classes counting alike.
    #[test]
    fn classes_weigh_by_their_rows() {
        // Of the training rows, 9 are of class 0 and one is of class 1; the others do not count.
        let labels = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1];
        let train: Vec<u32> = (0..10).collect();
        let root = inverse(0.5, 2, &labels, &train);
        let balanced = inverse(1.0, 2, &labels, &train);
        assert_eq!(balanced, [10.0 / 18.0, 5.0]);
        for weights in [&root, &balanced] {
            assert!((9.0 * weights[0] + weights[1] - 10.0).abs() < 1e-12, "{weights:?}");
        }
        assert!((root[1] / root[0] - 3.0).abs() < 1e-12 && (balanced[1] / balanced[0] - 9.0).abs() < 1e-12);
    }
}
