//! What is odd about a table that a model is tried on: counted on the way, said at the end.

use super::{Talk, say};
use querent::data::encoding::{Encoding, Notice, short};
use querent::data::nearest::did_you_mean;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bad rows that are told one by one; the others are counted.
const TOLD: u64 = 10;
/// Different words of a column that are kept; further ones are counted.
const WORDS: usize = 100;
/// Words of a column that are told.
const SHOWN: usize = 5;

/// What was odd so far. How much it holds does not grow with the table.
pub struct Oddities {
    talk: Talk,
    strict: bool,
    bad: u64,
    columns: BTreeMap<String, Column>,
}

#[derive(Default)]
struct Column {
    unseen: u64,
    words: BTreeMap<String, u64>,
    outside: u64,
    range: [String; 2],
}

impl Oddities {
    /// None yet. If `strict`, the first bad row is an error.
    pub fn new(talk: Talk, strict: bool) -> Self {
        Self { talk, strict, bad: 0, columns: BTreeMap::new() }
    }

    /// A row that cannot be used.
    ///
    /// # Errors
    /// That is not allowed.
    pub fn bad_row(&mut self, what: querent::Error) -> querent::Result<()> {
        if self.strict {
            return Err(what);
        }
        self.bad += 1;
        if self.bad <= TOLD {
            say(self.talk, format_args!("warning: {what}"));
        }
        Ok(())
    }

    /// A cell that was taken.
    pub fn cell(&mut self, column: &str, cell: &str, notice: &Notice) {
        if !notice.is_new() {
            return;
        }
        if !self.columns.contains_key(column) {
            self.columns.insert(column.to_string(), Column::default());
        }
        let Some(of) = self.columns.get_mut(column) else { return };
        match notice {
            Notice::OutOfRange(range) => (of.outside, of.range) = (of.outside + 1, range.map(short)),
            Notice::OutOfDates(range) => (of.outside, of.range) = (of.outside + 1, range.clone()),
            _ => {
                of.unseen += 1;
                let word = cell.trim();
                if let Some(count) = of.words.get_mut(word) {
                    *count += 1;
                } else if of.words.len() < WORDS {
                    of.words.insert(word.to_string(), 1);
                }
            }
        }
    }

    /// Says all of it, where warnings go. `undone` is what became of bad rows.
    pub fn report(&self, encoding: &Encoding, undone: &str) {
        if self.bad > 0 {
            let more =
                if self.bad > TOLD { format!(" (the first {TOLD} are told above)") } else { String::new() };
            say(
                self.talk,
                format_args!("warning: {} row(s) {undone}{more}; --strict refuses them", self.bad),
            );
        }
        for (column, of) in &self.columns {
            if of.unseen > 0 {
                let words = self.words(encoding, column, of);
                say(
                    self.talk,
                    format_args!(
                        "warning: column `{column}`: {} cell(s) with words that no training row has ({words}): they \
                         count as something else",
                        of.unseen
                    ),
                );
            }
            if of.outside > 0 {
                let [low, high] = &of.range;
                say(
                    self.talk,
                    format_args!(
                        "warning: column `{column}`: {} cell(s) outside of the training rows' range, {low} to {high}",
                        of.outside
                    ),
                );
            }
        }
    }

    /// The most frequent words, with what may have been meant.
    fn words(&self, encoding: &Encoding, column: &str, of: &Column) -> String {
        let known =
            encoding.fields().find(|field| field.name == column).map_or(&[][..], |field| field.words());
        let mut words: Vec<(&String, &u64)> = of.words.iter().collect();
        words.sort_by(|a, b| b.1.cmp(a.1));
        let shown = words.iter().take(SHOWN).map(|(word, count)| {
            let meant = did_you_mean(word, known.iter().map(String::as_str));
            format!("`{word}` {count} time(s){}", meant.replace("; ", ", "))
        });
        let more = if words.len() > SHOWN { ", and others" } else { "" };
        shown.collect::<Vec<_>>().join(", ") + more
    }

    /// For programs.
    pub fn json(&self) -> Value {
        let pick = |f: &dyn Fn(&Column) -> Option<Value>| {
            let some = self.columns.iter().filter_map(|(name, of)| Some((name.clone(), f(of)?)));
            Value::Object(some.collect())
        };
        json!({
            "bad_rows": self.bad,
            "unseen": pick(&|of| (of.unseen > 0).then(|| json!(of.words))),
            "out_of_range": pick(&|of| (of.outside > 0).then(|| json!(of.outside))),
        })
    }
}
