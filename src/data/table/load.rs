//! From a table and its schema to a data set: reads the cells, splits the rows, and learns from the
//! training rows how to encode.

use super::fit::{Raw, fit_field};
use super::reader::{Cells, TableReader};
use super::schema::{NamedWeights, Schema, Split, Weights};
use super::split::{fold, stratified, with_validation};
use super::target::{Answers, Settled};
use crate::data::encoding::{Encoding, Field, Metric, canonical};
use crate::data::numbers::number_in;
use crate::data::{self, Dataset, Normalization};
use crate::error::{Error, Result};
use crate::problem::{Feature, Problem};

/// A table that is ready to be trained on.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The rows, encoded and normalized.
    pub data: Dataset,
    /// How cells were encoded, for the model.
    pub encoding: Encoding,
    /// For each split, where its rows are in the table: their numbers, from 0.
    pub rows: [Vec<u32>; 3],
    /// What to judge by.
    pub metric: Metric,
}

/// Everything read, in the schema's order of columns.
struct Loaded<'s> {
    columns: Vec<Option<Raw>>,
    answers: Answers<'s>,
    split: Option<Vec<u8>>,
}

/// Reads a table as its schema says, splits it and encodes it.
///
/// # Errors
/// A column that is not there, a cell that does not fit its kind (with row and column), a class with too
/// few rows, or a column that can tell nothing.
pub fn prepare(table: TableReader, schema: &Schema) -> Result<Prepared> {
    let path = table.path().to_path_buf();
    let loaded = read(table, schema)?;
    let (strata, count) = loaded.answers.strata();
    let splits = match &loaded.split {
        // People who tell training rows from test rows only leave the rest to us.
        Some(splits) if !splits.contains(&1) => {
            let Split { train, validation, seed, .. } = &schema.split;
            with_validation(splits, &strata, count, validation / (train + validation), *seed)
        }
        Some(splits) => splits.clone(),
        None => {
            let sizes = split_sizes(schema, strata.len()).map_err(|error| error.at(&path))?;
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

fn read(mut table: TableReader, schema: &Schema) -> Result<Loaded<'_>> {
    let target = table.column(&schema.target.column)?;
    let fold_at = schema.split.column.as_deref().map(|name| table.column(name)).transpose()?;
    let mut at = Vec::new();
    let mut columns: Vec<Option<Raw>> = Vec::new();
    for column in &schema.features {
        if column.ignore {
            at.push(None);
            columns.push(None);
            continue;
        }
        at.push(Some(table.column(&column.name)?));
        columns.push(Some(Raw::new(column)));
    }
    let path = table.path().to_path_buf();
    let mut loaded =
        Loaded { columns, answers: Answers::new(&schema.target), split: fold_at.map(|_| Vec::new()) };
    let mut cells = Cells::default();
    while table.next(&mut cells)? {
        let fail = |column: &str, what: String| {
            let (row, line) = (cells.row, cells.line);
            Error::table(&path, format!("row {row} (line {line}), column `{column}`: {what}"))
        };
        let word = canonical(&cells.cells[target]);
        if schema.target.drop.iter().any(|drop| canonical(drop) == word) {
            continue;
        }
        loaded
            .answers
            .push(&cells.cells[target])
            .map_err(|error| fail(&schema.target.column, error.message()))?;
        for ((raw, column), &at) in loaded.columns.iter_mut().zip(&schema.features).zip(&at) {
            let (Some(raw), Some(at)) = (raw, at) else { continue };
            let cell = &cells.cells[at];
            let trimmed = cell.trim();
            let is_missing = trimmed.is_empty() || schema.table.missing.iter().any(|word| word == trimmed);
            let cell = (!is_missing).then_some(cell);
            // What is too large counts as missing before anything else is known about the column.
            let cell = cell.filter(|cell| {
                !column
                    .missing_above
                    .is_some_and(|most| number_in(cell, column.decimal).is_ok_and(|value| value > most))
            });
            let closed = column.values.is_some();
            raw.push(cell, closed).map_err(|error| fail(&column.name, error.message()))?;
        }
        if let (Some(splits), Some(at)) = (&mut loaded.split, fold_at) {
            let word = cells.cells[at].trim();
            let Some(which) = fold(word) else {
                let what = format!("`{word}` is none of `train`, `validation`, `test`");
                return Err(fail(schema.split.column.as_deref().unwrap_or_default(), what));
            };
            splits.push(which);
        }
    }
    if loaded.answers.rows() == 0 {
        return Err(Error::table(&path, "there are no rows"));
    }
    Ok(loaded)
}

/// The sizes of the splits, of so many rows.
fn split_sizes(schema: &Schema, rows: usize) -> Result<[usize; 3]> {
    let split = &schema.split;
    let sizes = [split.train, split.validation, split.test];
    if sizes.iter().all(|&size| size <= 1.0) {
        let train = (split.train * rows as f64).round() as usize;
        let validation = ((split.validation * rows as f64).round() as usize).min(rows - train);
        return Ok([train, validation, rows - train - validation]);
    }
    let sizes = sizes.map(|size| size as usize);
    if sizes.iter().sum::<usize>() != rows {
        return Err(Error::Data(format!(
            "[split] asks for {} + {} + {} rows, but there are {rows}",
            sizes[0], sizes[1], sizes[2]
        )));
    }
    Ok(sizes)
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
            let field = fit_field(schema, index, raw, train, !flagged, &mut normalization)?;
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
    let splits = [0, 1, 2].map(|which| {
        let mut split = data::Split::default();
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
        split
    });
    let [a, b, c] = splits;
    let data = Dataset::new(problem, a, b, c)?.with_normalization(normalization);
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
        Weights::Named(NamedWeights::Balanced) => {
            let mut counts = vec![0usize; classes];
            train.iter().for_each(|&row| counts[labels[row as usize] as usize] += 1);
            let each = |count: usize| train.len() as f64 / (classes * count.max(1)) as f64;
            counts.into_iter().map(each).collect()
        }
        _ => vec![1.0; classes],
    }
}
