//! From a table and its schema to a data set: reads the cells, splits the rows, and learns from the
//! training rows how to encode.

use super::reader::{Cells, TableReader};
use super::schema::{Kind, Missing, NamedWeights, Schema, Weights};
use super::split::stratified;
use crate::data::encoding::{Code, Encoding, Field, Metric, canonical, in_order, listed, number};
use crate::data::nearest::{did_you_mean, nearest};
use crate::data::{Dataset, Normalization, Split};
use crate::error::{Error, Result};
use crate::problem::{Feature, Problem};
use std::collections::HashMap;

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

/// A column's cells while they wait for the split.
enum Raw {
    /// NaN where missing.
    Numbers(Vec<f32>),
    /// Index into the words; `NONE` where missing.
    Words { words: Vec<String>, of: HashMap<String, u32>, cells: Vec<u32> },
}

const NONE: u32 = u32::MAX;

/// Words of a categorical column at most: each becomes a column.
const MOST_WORDS: usize = 1000;

impl Raw {
    fn push(&mut self, cell: Option<&str>, closed: bool) -> Result<()> {
        match (self, cell) {
            (Raw::Numbers(cells), None) => cells.push(f32::NAN),
            (Raw::Numbers(cells), Some(cell)) => cells.push(number(cell)? as f32),
            (Raw::Words { cells, .. }, None) => cells.push(NONE),
            (Raw::Words { words, of, cells }, Some(cell)) => {
                let word = canonical(cell);
                let index = match of.get(word) {
                    Some(&index) => index,
                    None if closed => {
                        let near = did_you_mean(word, words.iter().map(String::as_str));
                        return Err(Error::Data(format!("`{word}` is none of {}{near}", listed(words))));
                    }
                    None if words.len() == MOST_WORDS => {
                        return Err(Error::Data(format!(
                            "`{word}` is different word number {} of this categorical column: is it an id or text? Then \
                             set ignore = true",
                            MOST_WORDS + 1
                        )));
                    }
                    None => {
                        words.push(word.to_string());
                        of.insert(word.to_string(), words.len() as u32 - 1);
                        words.len() as u32 - 1
                    }
                };
                cells.push(index);
            }
        }
        Ok(())
    }

    fn is_missing(&self, row: u32) -> bool {
        match self {
            Raw::Numbers(cells) => cells[row as usize].is_nan(),
            Raw::Words { cells, .. } => cells[row as usize] == NONE,
        }
    }
}

/// Everything read, in the schema's order of columns.
struct Loaded {
    columns: Vec<Option<Raw>>,
    labels: Vec<u32>,
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
    let splits = match &loaded.split {
        Some(splits) => splits.clone(),
        None => {
            let sizes = split_sizes(schema, loaded.labels.len()).map_err(|error| error.at(&path))?;
            check_classes(schema, &loaded.labels).map_err(|error| error.at(&path))?;
            stratified(&loaded.labels, schema.target.classes.len(), sizes, schema.split.seed)
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
    fit(schema, &loaded, rows).map_err(|error| error.at(path))
}

fn read(mut table: TableReader, schema: &Schema) -> Result<Loaded> {
    let target = table.column(&schema.target.column)?;
    let fold = schema.split.column.as_deref().map(|name| table.column(name)).transpose()?;
    let mut at = Vec::new();
    let mut columns: Vec<Option<Raw>> = Vec::new();
    for column in &schema.features {
        if column.ignore {
            at.push(None);
            columns.push(None);
            continue;
        }
        at.push(Some(table.column(&column.name)?));
        let words: Vec<String> =
            column.values.iter().flatten().map(|word| canonical(word).to_string()).collect();
        columns.push(Some(match column.kind {
            Kind::Numeric => Raw::Numbers(Vec::new()),
            _ => {
                let of = words.iter().cloned().zip(0..).collect();
                Raw::Words { words, of, cells: Vec::new() }
            }
        }));
    }
    let classes: HashMap<&str, u32> =
        schema.target.classes.iter().map(|class| canonical(class)).zip(0..).collect();
    let path = table.path().to_path_buf();
    let mut loaded = Loaded { columns, labels: Vec::new(), split: fold.map(|_| Vec::new()) };
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
        let Some(&label) = classes.get(word) else {
            let what = format!(
                "`{word}` is no class: the classes are {}; add it to `classes`, or to `drop` to leave such rows out{}",
                listed(&schema.target.classes),
                misspelt(word, &schema.target.classes)
            );
            return Err(fail(&schema.target.column, what));
        };
        loaded.labels.push(label);
        for ((raw, column), &at) in loaded.columns.iter_mut().zip(&schema.features).zip(&at) {
            let (Some(raw), Some(at)) = (raw, at) else { continue };
            let cell = &cells.cells[at];
            let trimmed = cell.trim();
            let is_missing = trimmed.is_empty() || schema.table.missing.iter().any(|word| word == trimmed);
            let cell = (!is_missing).then_some(cell);
            // What is too large counts as missing before anything else is known about the column.
            let cell = cell.filter(|cell| {
                !column.missing_above.is_some_and(|most| number(cell).is_ok_and(|value| value > most))
            });
            let closed = column.values.is_some();
            raw.push(cell, closed).map_err(|error| fail(&column.name, error.message()))?;
        }
        if let (Some(splits), Some(fold)) = (&mut loaded.split, fold) {
            let word = cells.cells[fold].trim().to_lowercase();
            let which = ["train", "validation", "test"].iter().position(|name| *name == word);
            let Some(which) = which else {
                let what = format!("`{word}` is none of `train`, `validation`, `test`");
                return Err(fail(schema.split.column.as_deref().unwrap_or_default(), what));
            };
            splits.push(which as u8);
        }
    }
    if loaded.labels.is_empty() {
        return Err(Error::table(&path, "there are no rows"));
    }
    Ok(loaded)
}

/// Of a class that the table has and the problem does not: which of the problem's may be a misspelling of it.
fn misspelt(word: &str, classes: &[String]) -> String {
    nearest(word, classes.iter().map(String::as_str)).first().map_or(String::new(), |class| {
        format!(". One of the two may be misspelt: the problem says `{class}`; did you mean `{word}`?")
    })
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

fn check_classes(schema: &Schema, labels: &[u32]) -> Result<()> {
    let mut counts = vec![0usize; schema.target.classes.len()];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    match counts.iter().position(|&count| count < 3) {
        None => Ok(()),
        Some(class) => Err(Error::Data(format!(
            "class `{}` has {} row(s), but each of training, validation and test needs one: leave it out (`drop`), \
             merge it with another, or give a split column",
            schema.target.classes[class], counts[class]
        ))),
    }
}

fn fit(schema: &Schema, loaded: &Loaded, rows: [Vec<u32>; 3]) -> Result<Prepared> {
    let groups = schema.groups()?;
    let train = &rows[0];
    let mut normalization = Normalization { mean: Vec::new(), scale: Vec::new() };
    let mut fit_group = |columns: &[usize]| -> Result<Vec<(usize, Field)>> {
        let mut fields: Vec<(usize, Field)> = Vec::new();
        for &index in columns {
            let Some(raw) = &loaded.columns[index] else { continue };
            // Cells that are missing together need one flag only.
            let flagged = fields.iter().any(|(other, field)| {
                field.flag
                    && loaded.columns[*other].as_ref().is_some_and(|other| {
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
        schema.target.classes.clone(),
    )?;
    let known_columns = known.iter().map(|(_, field)| field.columns()).sum();
    let problem = problem.with_known_columns(known_columns).with_class_weights(class_weights(
        schema,
        &loaded.labels,
        train,
    ))?;
    let splits = [0, 1, 2].map(|which| {
        let mut split = Split::default();
        for &row in &rows[which] {
            let fields = features.iter().flatten().chain(&known);
            fields.for_each(|(index, field)| encode(loaded, *index, field, row, &mut split.x));
            split.y.push(loaded.labels[row as usize]);
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
    };
    encoding.check(data.problem())?;
    Ok(Prepared { data, encoding, rows, metric: schema.target.metric })
}

fn encode(loaded: &Loaded, index: usize, field: &Field, row: u32, out: &mut Vec<f32>) {
    match &loaded.columns[index] {
        Some(Raw::Numbers(cells)) if !cells[row as usize].is_nan() => {
            field.encode_number(cells[row as usize].into(), out);
        }
        Some(Raw::Words { words, cells, .. }) if cells[row as usize] != NONE => {
            // Words were checked when they were read; those of a category may be new.
            if field.encode(&words[cells[row as usize] as usize], out).is_err() {
                field.encode_missing(out);
            }
        }
        _ => field.encode_missing(out),
    }
}

/// Learns a field from the training rows, and how its columns are normalized.
fn fit_field(
    schema: &Schema,
    index: usize,
    raw: &Raw,
    train: &[u32],
    may_flag: bool,
    normalization: &mut Normalization,
) -> Result<Field> {
    let column = &schema.features[index];
    let present: Vec<u32> = train.iter().copied().filter(|&row| !raw.is_missing(row)).collect();
    let tells_nothing = |what: String| {
        Err(Error::Data(format!(
            "column `{}` {what}, so it can tell nothing: set ignore = true",
            column.name
        )))
    };
    let constant = is_constant(raw);
    if present.is_empty() {
        return tells_nothing("has no value in any training row".into());
    }
    let some_missing = present.len() < train.len();
    let flag = may_flag && some_missing && schema.preprocessing.missing == Missing::Flag;
    let mean_and_deviation = |values: &[f64]| {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        // Missing cells sit at the mean.
        let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / train.len() as f64;
        (mean, square.sqrt())
    };
    let mut normalize = |mean: f64, scale: f64| {
        let scale = if scale > 0.0 { scale } else { 1.0 };
        normalization.mean.push(mean as f32);
        normalization.scale.push(scale as f32);
    };
    let code = match raw {
        Raw::Numbers(cells) => {
            let mut values: Vec<f64> = present.iter().map(|&row| cells[row as usize].into()).collect();
            values.sort_by(f64::total_cmp);
            let seen = [values[0], values[values.len() - 1]];
            if constant {
                return tells_nothing(format!("is {} in every row", seen[0]));
            }
            let [low, high] = schema.preprocessing.winsorize.map(|q| quantile(&values, q));
            // A column that is nearly always the same must not be clipped to that.
            let [low, high] = if low < high { [low, high] } else { seen };
            values.iter_mut().for_each(|value| *value = value.max(low).min(high));
            let (mean, deviation) = mean_and_deviation(&values);
            if schema.preprocessing.standardize {
                normalize(mean, deviation)
            } else {
                normalize(0.0, 1.0)
            }
            Code::Number { low, high, fill: mean, seen, missing_above: column.missing_above }
        }
        Raw::Words { words, cells, .. } => {
            let mut counts = vec![0usize; words.len()];
            present.iter().for_each(|&row| counts[cells[row as usize] as usize] += 1);
            if constant {
                let word = counts.iter().position(|&count| count > 0).map_or("", |at| &words[at]);
                return tells_nothing(format!("is `{word}` in every row"));
            }
            if column.kind == Kind::Categorical {
                // Listed values all get a column; others only if a training row has them.
                let listed = column.values.is_some();
                let mut values: Vec<String> = (0..words.len())
                    .filter(|&at| listed || counts[at] > 0)
                    .map(|at| words[at].clone())
                    .collect();
                if !listed {
                    values.sort_by(|a, b| in_order(a, b));
                }
                values.iter().for_each(|_| normalize(0.0, 1.0));
                Code::Categories { values }
            } else {
                let levels: Vec<f64> = present.iter().map(|&row| cells[row as usize].into()).collect();
                let (mean, deviation) = mean_and_deviation(&levels);
                let scaled = schema.preprocessing.standardize && column.kind == Kind::Ordinal;
                if scaled {
                    normalize(mean, deviation)
                } else {
                    normalize(0.0, 1.0)
                }
                Code::Levels { levels: words.clone(), fill: mean }
            }
        }
    };
    if flag {
        normalize(0.0, 1.0);
    }
    Ok(Field { name: column.name.clone(), unit: column.unit.clone(), code, flag })
}

/// Whether all rows have the same value. A column that is so in the training rows only is useless, but
/// another split of the rows may change that.
fn is_constant(raw: &Raw) -> bool {
    match raw {
        Raw::Numbers(cells) => cells.iter().all(|cell| *cell == cells[0]),
        Raw::Words { cells, .. } => cells.iter().all(|&cell| cell == cells[0] && cell != NONE),
    }
}

/// A quantile of sorted values, between neighbours in proportion.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}

fn class_weights(schema: &Schema, labels: &[u32], train: &[u32]) -> Vec<f64> {
    let classes = schema.target.classes.len();
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
