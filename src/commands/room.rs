//! Whether a table's rows fit into memory: told before they are read.

mod system;

use super::{Failure, Talk, say, threads};
use querent::data::table::{Sample, Survey};
use std::path::Path;

/// Bytes, as people write them: `8G`, `500M`, `1.5 GiB`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bytes(pub u64);

/// What a run may take, and how many rows it is to have.
#[derive(Clone, Copy, Debug, Default)]
pub struct Room {
    /// What was said, else what the system has.
    bound: Option<(u64, &'static str)>,
    sample: Option<u64>,
}

impl Room {
    /// As was said, or what the system has to give; a limit that the system enforces holds in any case. Starts the threads
    /// that compute, whose memory is none of what is left.
    ///
    /// # Errors
    /// There is not even enough to begin.
    pub fn new(memory: Option<Bytes>, sample: Option<u64>) -> Result<Self, Failure> {
        let before = system::limit();
        if let Some((allowed, whose)) = before.filter(|(allowed, _)| *allowed < Survey::BESIDES) {
            return Err(Failure::Refused(format!(
                "training needs {} of memory whatever the table, and there are {} ({whose})",
                shown(Survey::BESIDES),
                shown(allowed)
            )));
        }
        if before.is_some() {
            system::share_one_heap();
        }
        threads::start()?;
        let said = memory.map(|Bytes(bytes)| (bytes, "--memory")).or_else(system::available);
        Ok(Self { bound: said.into_iter().chain(system::limit()).min(), sample })
    }

    /// Nothing is looked at; the rows are those of a run before.
    pub fn of_run(sample: Option<u64>) -> Self {
        Self { bound: None, sample }
    }

    /// Whether there is anything to look at before reading. A pipe can be read once only.
    pub fn looks(&self, table: &Path) -> bool {
        (self.bound.is_some() || self.sample.is_some()) && table.is_file()
    }

    /// Which rows are to be read: says so if they are not all.
    ///
    /// # Errors
    /// They do not fit.
    pub fn sample(&self, survey: &Survey, table: &Path, talk: Talk) -> Result<Sample, Failure> {
        let sample = survey.sample(self.sample.unwrap_or(u64::MAX));
        let needed = survey.needs(sample.rows);
        if let Some((allowed, whose)) = self.bound.filter(|(allowed, _)| needed > *allowed) {
            return Err(Failure::Refused(refusal(survey, table, sample.rows, [needed, allowed], whose)));
        }
        if sample.rows < sample.of {
            say(talk, format_args!("training on {} of {} rows, chosen at random", sample.rows, sample.of));
        }
        Ok(sample)
    }
}

fn refusal(survey: &Survey, table: &Path, rows: u64, [needed, allowed]: [u64; 2], whose: &str) -> String {
    let mut said = format!(
        "{}: {rows} rows of {} columns, which become {}, need about {} of memory to be trained on, and there are {} ({whose}).",
        table.display(),
        survey.used,
        survey.columns,
        shown(needed),
        shown(allowed),
    );
    match two_digits(survey.fitting(allowed)) {
        0 => {}
        fitting => said += &format!(" `querent train … --sample {fitting}` takes so many of them at random."),
    }
    said + " Fewer columns (ignore = true) or pieces ([preprocessing]) need less; --memory says what may be used"
}

/// A number that is easy to type, not above this one.
fn two_digits(number: u64) -> u64 {
    let unit = 10u64.pow(number.max(1).ilog10().saturating_sub(1));
    number / unit * unit
}

/// Bytes for people.
fn shown(bytes: u64) -> String {
    match bytes {
        0..1_000_000_000 => format!("{:.0} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// Reads [`Bytes`].
///
/// # Errors
/// It is no number of bytes.
pub fn bytes(said: &str) -> Result<Bytes, String> {
    let said = said.trim();
    let digits = said.trim_end_matches(|c: char| c.is_alphabetic()).trim_end();
    let unit = said[digits.len()..].trim().to_lowercase();
    let shift = match unit.trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err(format!("`{unit}` is no unit: K, M, G and T are, as in 8G")),
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => {
            Ok(Bytes((number * (1u64 << shift) as f64) as u64))
        }
        Ok(_) => Err("it must be above 0".into()),
        Err(_) => Err("it must be a number of bytes, as in 8G or 500M".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        assert_eq!(bytes("8G"), Ok(Bytes(8 << 30)));
        assert_eq!(bytes("1.5 GiB"), Ok(Bytes(3 << 29)));
        assert_eq!(bytes("500mb"), Ok(Bytes(500 << 20)));
        assert_eq!(bytes("4096"), Ok(Bytes(4096)));
        for (bad, what) in [("8X", "no unit"), ("G", "a number"), ("-1G", "above 0"), ("inf", "no unit")] {
            assert!(bytes(bad).expect_err("refused").contains(what), "{bad}");
        }
    }

    #[test]
    fn numbers_are_easy_to_type() {
        let shown = [0, 7, 42, 987, 23_456_789].map(two_digits);
        assert_eq!(shown, [0, 7, 42, 980, 23_000_000]);
    }
}
