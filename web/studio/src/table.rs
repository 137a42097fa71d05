//! A table that was dropped: what `querent init` makes of it, and the problem with what was changed.

use querent::data::table::schema::{Column, Kind};
use querent::data::table::{
    Guess, Prepared, Profile, Schema, TableReader, draft, prepare, profile, read_prices, unpacked,
};
use querent::{Error, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;

/// A table's file, and what is known about it.
pub struct Table {
    name: String,
    bytes: Arc<[u8]>,
    looked: Option<(Profile, Schema)>,
    /// As it was prepared last.
    problem: String,
}

/// A column as somebody has changed it.
#[derive(Deserialize)]
pub struct Edit {
    kind: Kind,
    group: String,
    cost: f64,
    unit: String,
    known: bool,
    ignore: bool,
    /// The words of a binary or ordinal column in order, if they were to be seen.
    values: Option<Vec<String>>,
}

fn reader(name: &str, bytes: Arc<[u8]>) -> Result<TableReader> {
    let path = Path::new(name);
    TableReader::read(path, unpacked(path, Cursor::new(bytes))?, None)
}

impl Table {
    pub fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes: bytes.into(), looked: None, problem: String::new() }
    }

    fn reader(&self) -> Result<TableReader> {
        reader(&self.name, Arc::clone(&self.bytes))
    }

    /// The names of its columns.
    pub fn header(&self) -> Result<Vec<String>> {
        Ok(self.reader()?.header().to_vec())
    }

    /// What `querent init` makes of it.
    pub fn look(&mut self, target: &str, prices: Option<Vec<u8>>) -> Result<Value> {
        let found = profile(self.reader()?, target)?;
        let prices = match prices {
            Some(list) => read_prices(reader("prices.csv", list.into())?, &found)?,
            None => Vec::new(),
        };
        let schema = Schema::parse(&draft(Path::new(&self.name), target, &found, &prices))?;
        let columns: Vec<Value> =
            found.columns.iter().zip(&schema.features).map(|(guess, column)| told(guess, column)).collect();
        let classes: Vec<Value> = found.classes.iter().map(|(class, rows)| json!([class, rows])).collect();
        let told = json!({
            "rows": found.rows,
            "classes": classes,
            "number": found.number.as_ref().map(|number| number.described()),
            "unlabelled": found.unlabelled,
            "split": found.split,
            "columns": columns,
        });
        self.looked = Some((found, schema));
        Ok(told)
    }

    /// The problem with what was changed, ready to be trained on.
    pub fn prepare(&mut self, edits: &[Edit]) -> Result<Prepared> {
        let Some((found, drafted)) = &self.looked else {
            return Err(Error::Data("the table has not been looked at".into()));
        };
        if edits.len() != drafted.features.len() {
            return Err(Error::Data(format!("{} columns for {}", edits.len(), drafted.features.len())));
        }
        let mut schema = drafted.clone();
        for ((column, edit), guess) in schema.features.iter_mut().zip(edits).zip(&found.columns) {
            change(column, edit, guess);
        }
        let text = toml::to_string(&schema).map_err(|error| Error::Problem(error.to_string()))?;
        // By way of the text, so that it is checked, and complained about, as the command does.
        let schema = Schema::parse(&text)?;
        let prepared = prepare(self.reader()?, &schema)?;
        self.problem = text;
        Ok(prepared)
    }

    /// The text of its `problem.toml`.
    pub fn problem(&self) -> String {
        self.problem.clone()
    }
}

/// A column for the page.
fn told(guess: &Guess, column: &Column) -> Value {
    let doubts: Vec<String> = guess.doubts.iter().map(|doubt| doubt.text()).collect();
    json!({
        "name": column.name,
        "kind": column.kind,
        "group": column.group(),
        "cost": column.cost,
        "unit": column.unit,
        "known": column.known,
        "ignore": column.ignore,
        "values": column.values,
        "seen": guess.seen(),
        "doubts": doubts,
    })
}

fn change(column: &mut Column, edit: &Edit, guess: &Guess) {
    if column.kind != edit.kind {
        // What belongs to the kind goes with it. The words that were seen are those of the new kind, if it has any.
        let has_words = matches!(edit.kind, Kind::Binary | Kind::Ordinal);
        column.values = has_words.then(|| guess.values.clone());
        (column.decimal, column.dates) = (None, None);
    } else if let Some(words) = &edit.values {
        column.values = Some(words.clone());
    }
    column.kind = edit.kind;
    let group = edit.group.trim();
    column.group = (!group.is_empty()).then(|| group.to_string());
    column.cost = Some(edit.cost);
    column.unit = edit.unit.trim().to_string();
    (column.known, column.ignore) = (edit.known, edit.ignore);
}
