//! `problem.toml`: what the columns of a table are, what they cost, and what is to be predicted.
//! `docs/problem-toml.md` explains it key by key.

use crate::data::dates::Order;
use crate::data::encoding::Metric;
use crate::data::numbers::Decimal;
use crate::error::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The whole file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// Where the rows are.
    pub table: Table,
    /// What is predicted.
    pub target: Target,
    /// Which rows train, validate and test.
    #[serde(default)]
    pub split: Split,
    /// How cells become numbers.
    #[serde(default)]
    pub preprocessing: Preprocessing,
    /// The columns.
    #[serde(default, rename = "feature")]
    pub features: Vec<Column>,
}

/// Where the rows are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The file, relative to `problem.toml`.
    pub path: PathBuf,
    /// Cells that mean: not known.
    #[serde(default = "missing_words")]
    pub missing: Vec<String>,
}

/// What is predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its column.
    pub column: String,
    /// Its classes, in the order in which they are numbered. None if it is a number, which is cut into ranges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<String>,
    /// Of a number: into so many ranges, with about as many training rows each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bins: Option<usize>,
    /// Of a number: where one range ends and the next begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<f64>>,
    /// How its numbers are written, if they are not plain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
    /// How much each class's loss counts.
    #[serde(default)]
    pub weights: Weights,
    /// What to judge by.
    #[serde(default)]
    pub metric: Metric,
    /// Rows with these words in the target's column are left out.
    #[serde(default)]
    pub drop: Vec<String>,
}

/// How much each class's loss counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "weights must be \"none\", \"root\", \"balanced\" or a list of numbers, one for each class"
)]
pub enum Weights {
    /// `"none"`, `"root"` or `"balanced"`.
    Named(NamedWeights),
    /// One for each class.
    Each(Vec<f64>),
    /// Not said: all alike.
    #[default]
    #[serde(skip)]
    Unset,
}

/// Weights by rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NamedWeights {
    /// All alike.
    None,
    /// Each class by the root of its rows, halfway between the other two: what macro-F1 is best served by.
    Root,
    /// Each class as much as any other: rows / (classes · rows of the class).
    Balanced,
}

/// Which rows train, validate and test.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Split {
    /// Share or number of rows that train.
    pub train: f64,
    /// Share or number of rows that decide when training ends.
    pub validation: f64,
    /// Share or number of rows that nothing is decided on.
    pub test: f64,
    /// Which rows go where: the same seed, the same rows.
    pub seed: u64,
    /// A column that says `train`, `validation` or `test` for each row, instead of all that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
}

impl Default for Split {
    fn default() -> Self {
        Self { train: 0.7, validation: 0.15, test: 0.15, seed: 0, column: None }
    }
}

/// How cells become numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Preprocessing {
    /// Quantiles of the training rows that numbers are clipped to.
    pub winsorize: [f64; 2],
    /// Whether numbers are divided by their deviation, after their mean is subtracted.
    pub standardize: bool,
    /// What is done about missing cells.
    pub missing: Missing,
    /// Pieces of equally many rows that numbers are cut into, so that fine differences are seen; 0: none. By default from 1,000
    /// training rows on, one for each 300 of them, 24 at most. From 2,000 rows on the classes cut them further, at most as
    /// often again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pieces: Option<usize>,
}

impl Default for Preprocessing {
    fn default() -> Self {
        Self { winsorize: [0.005, 0.995], standardize: true, missing: Missing::Flag, pieces: None }
    }
}

/// What is done about missing cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// The training rows' mean, and a flag in the same feature.
    Flag,
    /// The training rows' mean.
    Impute,
}

/// What a column's cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Numbers.
    Numeric,
    /// One of two words.
    Binary,
    /// One of several words without an order.
    Categorical,
    /// One of several words in order.
    Ordinal,
    /// Dates: year, month, day of week and age in days.
    Date,
}

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// Its name in the header.
    pub name: String,
    /// What its cells are.
    pub kind: Kind,
    /// Columns of the same group are asked for together and have one cost.
    #[serde(default)]
    pub group: Option<String>,
    /// What asking for it costs.
    #[serde(default)]
    pub cost: Option<f64>,
    /// What its numbers are in.
    #[serde(default)]
    pub unit: String,
    /// It is there before asking starts.
    #[serde(default)]
    pub known: bool,
    /// It is not used.
    #[serde(default)]
    pub ignore: bool,
    /// The words of a binary or ordinal column, in order; of a categorical one, if they are not to be
    /// taken from the training rows.
    #[serde(default)]
    pub values: Option<Vec<String>>,
    /// Numbers above this mean: not known.
    #[serde(default)]
    pub missing_above: Option<f64>,
    /// How its numbers are written, if they are not plain.
    #[serde(default)]
    pub decimal: Option<Decimal>,
    /// In which order its dates have year, month and day.
    #[serde(default)]
    pub dates: Option<Order>,
}

impl Column {
    /// A column of unit cost and a group of its own.
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            group: None,
            cost: Some(1.0),
            unit: String::new(),
            known: false,
            ignore: false,
            values: None,
            missing_above: None,
            decimal: None,
            dates: None,
        }
    }

    /// The group it is asked for with.
    pub fn group(&self) -> &str {
        self.group.as_deref().unwrap_or(&self.name)
    }
}

/// A feature to be asked for: a group of columns.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its cost.
    pub cost: f64,
    /// Its columns, as indices into [`Schema::features`].
    pub columns: Vec<usize>,
}

/// Words that mean: not known, unless the file says otherwise.
pub fn missing_words() -> Vec<String> {
    ["", "NA", "N/A", "n/a", "NaN", "nan", "null", "NULL", "?"].map(String::from).to_vec()
}

/// Classes at most: more are an id or a number.
pub const MOST_CLASSES: usize = 256;

impl Schema {
    /// Reads and checks a `problem.toml`.
    ///
    /// # Errors
    /// The file cannot be read, is no TOML (with the line), has a key that means nothing, or contradicts
    /// itself.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
        Self::parse(&text).map_err(|error| error.at(path))
    }

    /// Reads and checks the text of a `problem.toml`.
    ///
    /// # Errors
    /// What is wrong.
    pub fn parse(text: &str) -> Result<Self> {
        let schema: Self = toml::from_str(text).map_err(|error| {
            Error::content(ErrorKind::Problem, error.to_string().trim_end()).because(error)
        })?;
        schema.check()?;
        Ok(schema)
    }

    /// Where the table is, for a `problem.toml` at a path.
    pub fn table_path(&self, problem: &Path) -> PathBuf {
        problem.parent().unwrap_or(Path::new("")).join(&self.table.path)
    }

    /// The groups that can be asked for, in the order of their first columns.
    ///
    /// # Errors
    /// A group without a cost or with two, or one that is known in part.
    pub fn groups(&self) -> Result<Vec<Group>> {
        let mut groups: Vec<(Group, Option<f64>)> = Vec::new();
        for (index, column) in self.features.iter().enumerate().filter(|(_, c)| !c.ignore) {
            let name = column.group();
            let others = self.features.iter().filter(|c| !c.ignore && c.group() == name);
            if let Some(other) = others.clone().find(|other| other.known != column.known) {
                return fail(format!(
                    "group `{name}`: `{}` and `{}` are asked for together, so either both are known or none",
                    column.name, other.name
                ));
            }
            if column.known {
                continue;
            }
            let at = groups.iter().position(|(group, _)| group.name == name).unwrap_or_else(|| {
                groups.push((Group { name: name.into(), cost: 0.0, columns: Vec::new() }, None));
                groups.len() - 1
            });
            let (group, stated) = &mut groups[at];
            match (column.cost, *stated) {
                (Some(cost), Some(before)) if cost != before => {
                    let first = &self.features[group.columns[0]].name;
                    return fail(format!(
                        "group `{name}` has two costs, {before} (`{first}`) and {cost} (`{}`): its columns are asked \
                         for together, so there is one",
                        column.name
                    ));
                }
                (Some(cost), _) => *stated = Some(cost),
                (None, _) => {}
            }
            group.columns.push(index);
        }
        groups
            .into_iter()
            .map(|(group, cost)| match cost {
                Some(cost) => Ok(Group { cost, ..group }),
                None => fail(format!("feature `{}` has no cost: write one, such as cost = 1.0", group.name)),
            })
            .collect()
    }

    /// The columns that are known from the start, as indices into [`Schema::features`].
    pub fn known(&self) -> Vec<usize> {
        (0..self.features.len()).filter(|&i| self.features[i].known && !self.features[i].ignore).collect()
    }
}

pub(super) fn fail<T>(what: String) -> Result<T> {
    Err(Error::Problem(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[table]\npath = \"t.csv\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n";

    #[test]
    fn groups_share_a_cost() {
        let text = format!(
            "{HEAD}[[feature]]\nname = \"u\"\nkind = \"numeric\"\ngroup = \"g\"\ncost = 2\n\
             [[feature]]\nname = \"v\"\nkind = \"numeric\"\ncost = 1.5\n\
             [[feature]]\nname = \"w\"\nkind = \"numeric\"\ngroup = \"g\"\n\
             [[feature]]\nname = \"k\"\nkind = \"numeric\"\nknown = true\n"
        );
        let schema = Schema::parse(&text).expect("valid");
        let groups = schema.groups().expect("valid");
        assert_eq!(groups.len(), 2);
        assert_eq!(
            (groups[0].name.as_str(), groups[0].cost, &groups[0].columns[..]),
            ("g", 2.0, &[0, 2][..])
        );
        assert_eq!(schema.known(), [3]);
        assert_eq!(schema.split, Split::default());
    }
}
