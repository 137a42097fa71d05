//! What is done with bytes that somebody else may have written: each function reads them as the command would and uses
//! what it has read. It must refuse or read them, never panic, hang or ask for all memory. `true` if they were read.
//!
//! The targets of the fuzzer call these, and so do the tests `fuzz` and `corpus`.

use querent::asking::lines::{Failure, talk};
use querent::compare::{Cell, Standing, Table, check};
use querent::data::catalog::read_idx;
use querent::data::table::{Profile, Schema, TableReader, draft, prepare, profile, read_prices, unpacked};
use querent::data::{Dataset, synthetic};
use querent::methods::{METHODS, set};
use querent::run::Run;
use querent::train::Training;
use querent::{Engine, Model, Result, Step};
use std::io::{BufRead, Cursor, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A reader by its name.
pub struct Reader {
    pub name: &'static str,
    pub read: fn(&[u8]) -> bool,
}

/// All of them.
pub const READERS: [Reader; 10] = [
    Reader { name: "tables", read: tables },
    Reader { name: "problems", read: problems },
    Reader { name: "prices", read: prices },
    Reader { name: "models", read: models },
    Reader { name: "checkpoints", read: checkpoints },
    Reader { name: "images", read: images },
    Reader { name: "runs", read: runs },
    Reader { name: "answers", read: answers },
    Reader { name: "lines", read: lines },
    Reader { name: "comparisons", read: comparisons },
];

/// The column that the tables' rows are told apart by.
pub const TARGET: &str = "diagnosis";

/// The first rows of the clinic's table.
pub fn clinic(rows: usize) -> Vec<u8> {
    let text = include_str!("../assets/clinic/clinic.csv");
    text.lines().take(rows + 1).flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// A table from bytes, which may be gzipped.
pub fn open(bytes: &[u8]) -> Result<TableReader> {
    let path = Path::new("t.csv");
    TableReader::read(path, unpacked(path, Cursor::new(bytes.to_vec()))?, None)
}

/// `querent init` and the reading part of `querent train`.
pub fn tables(bytes: &[u8]) -> bool {
    let Ok(found) = open(bytes).and_then(|table| profile(table, TARGET)) else { return false };
    let text = draft(Path::new("t.csv"), TARGET, &found, &[]);
    // What is drafted is always TOML; it may be refused only for what it says.
    match Schema::parse(&text) {
        Ok(schema) => open(bytes).and_then(|table| prepare(table, &schema)).is_ok(),
        Err(error) => {
            assert!(!error.message().contains("TOML parse error"), "{error}\n{text}");
            false
        }
    }
}

/// A problem file beside a table that it may or may not fit.
pub fn problems(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let Ok(schema) = Schema::parse(text) else { return false };
    open(&clinic(120)).and_then(|table| prepare(table, &schema)).is_ok()
}

/// A price list for `querent init --prices`.
pub fn prices(bytes: &[u8]) -> bool {
    static FOUND: LazyLock<Profile> = LazyLock::new(|| {
        open(&clinic(40)).and_then(|table| profile(table, TARGET)).unwrap_or_else(|error| panic!("{error}"))
    });
    let Ok(prices) = open(bytes).and_then(|list| read_prices(list, &FOUND)) else { return false };
    let text = draft(Path::new("t.csv"), TARGET, &FOUND, &prices);
    Schema::parse(&text).is_ok()
}

/// A model of any method: what is read can be asked.
pub fn models(bytes: &[u8]) -> bool {
    let Ok(model) = Model::from_bytes(bytes) else { return false };
    let mut session = model.session();
    while let Step::Acquire(feature) = session.next() {
        let told = match model.encoding() {
            Some(encoding) => {
                let cells = vec!["1"; encoding.features[feature].len()];
                session.tell(feature, &cells).is_ok()
            }
            None => session.observe(feature, 0.5).is_ok(),
        };
        if !told && session.unavailable(feature).is_err() {
            break;
        }
    }
    assert!(session.best() < model.problem().classes().len());
    true
}

/// A file of this process's own: some readers want a path.
fn file_of(name: &str, bytes: &[u8]) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("querent-fuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).ok()?;
    let path = folder.join(name);
    std::fs::write(&path, bytes).ok()?;
    Some(path)
}

/// Rows for a run of the first method of the list.
pub fn rows() -> Dataset {
    synthetic::syn1(3, [60, 30, 10]).unwrap_or_else(|error| panic!("{error}")).standardized()
}

/// A run of a method, as short as can be.
pub fn start(method: usize, data: &Dataset) -> Box<dyn Training> {
    let entry = METHODS[method];
    let mut settings = (entry.defaults)(data);
    for assignment in ["epoch_steps=1", "stage_epochs=1", "warm_up_epochs=1", "batch=16"] {
        set::set(&mut settings, assignment, entry.renamed).unwrap_or_else(|error| panic!("{error}"));
    }
    (entry.widen)(&mut settings, 4);
    (entry.start)(&Engine::cpu(), data, settings).unwrap_or_else(|error| panic!("{error}"))
}

/// A checkpoint that a run is to go on from.
pub fn checkpoints(bytes: &[u8]) -> bool {
    static ROWS: LazyLock<Dataset> = LazyLock::new(rows);
    thread_local! {
        /// A run that has gone on from nothing yet: what refuses a checkpoint is as it was, and building one takes longest.
        static FRESH: std::cell::Cell<Option<Box<dyn Training>>> = const { std::cell::Cell::new(None) };
    }
    let Some(path) = file_of("checkpoint.safetensors", bytes) else { return false };
    let mut training = FRESH.take().unwrap_or_else(|| start(0, &ROWS));
    if training.resume(&path).is_err() {
        FRESH.set(Some(training));
        return false;
    }
    let behind = training.history().len();
    // It may go on, or fail with an error; what it has is a model, or an error.
    let _ = training.epoch_blocking();
    let _ = training.finish_blocking();
    assert!(training.history().len() >= behind);
    true
}

/// Images in the IDX format, plain or gzipped.
pub fn images(bytes: &[u8]) -> bool {
    file_of("images", bytes).is_some_and(|path| read_idx(&path).is_ok())
}

/// The record of a run, which `--resume` and `report` read.
pub fn runs(bytes: &[u8]) -> bool {
    let Some(path) = file_of("run.json", bytes) else { return false };
    let Some(Ok(run)) = path.parent().map(Run::load) else { return false };
    let _ = run.over_seeds();
    true
}

/// A model to answer, made once.
static ANSWERED: LazyLock<Model> = LazyLock::new(|| asked_model(0).unwrap_or_else(|error| panic!("{error}")));

/// What people answer: for each feature of the clinic's table in turn a line of cells between tabs.
pub fn answers(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut session = ANSWERED.session();
    let mut told = 0;
    for (feature, line) in text.lines().enumerate().take(ANSWERED.problem().features().len()) {
        let cells: Vec<&str> = line.split('\t').collect();
        match session.tell(feature, &cells) {
            Ok(_) => told += 1,
            Err(_) if line.is_empty() => drop(session.unavailable(feature)),
            Err(_) => {}
        }
        session.next();
    }
    assert!(session.best() < ANSWERED.problem().classes().len());
    told > 0
}

/// Where the lines of `ask --json` go: each must be an object, and nothing of them is kept.
#[derive(Default)]
struct Heard {
    line: Vec<u8>,
    errors: usize,
}

impl Write for Heard {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for &byte in bytes {
            if byte != b'\n' {
                self.line.push(byte);
                continue;
            }
            let said: serde_json::Value =
                serde_json::from_slice(&self.line).unwrap_or_else(|error| panic!("{error}: {:?}", self.line));
            self.errors += usize::from(said.get("error").is_some());
            self.line.clear();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A model that asks for everything: hardly trained, most would stop at once.
pub fn asking_model() -> Result<Model> {
    let gdfs = METHODS.iter().position(|entry| entry.name == "gdfs").unwrap_or_default();
    // It stops where the belief has less entropy than this.
    asked_model(gdfs)?.with_tradeoff(1e-6)
}

/// What another program says to `ask --json --repeat`, line by line, to the end of its input: read if every line was
/// understood.
pub fn lines(bytes: &[u8]) -> bool {
    static MODEL: LazyLock<Model> =
        LazyLock::new(|| asking_model().unwrap_or_else(|error| panic!("{error}")));
    let mut input = bytes.lines();
    let mut next_line = || input.next().transpose();
    let mut heard = Heard::default();
    // It may end in the middle of a case, or with bytes that are no text.
    let ended = talk(&MODEL.session(), true, &mut next_line, &mut heard);
    assert!(heard.line.is_empty(), "half a line was said");
    !matches!(ended, Err(Failure::Line(_))) && heard.errors == 0
}

/// The files of a comparison: in the first line its plan, in each further one what came of a cell.
pub fn comparisons(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut lines = text.lines();
    let plan = lines.next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let Some(plan) = plan else { return false };
    let part = |name: &str| plan.get(name).cloned().unwrap_or_default();
    let Ok(tables) = serde_json::from_value::<Vec<Table>>(part("tables")) else { return false };
    let Ok(cells) = serde_json::from_value::<Vec<Cell>>(part("cells")) else { return false };
    if check(&tables, &cells).is_err() {
        return false;
    }
    let times = r#"{"training":1,"evaluation":1,"all":2}"#;
    let done: Vec<_> = cells.iter().zip(lines).filter_map(|(cell, line)| cell.done(line, times)).collect();
    for standing in Standing::all(&done) {
        standing.sentence("nmppg");
        standing.ranked();
        for one in &standing.methods {
            one.drawn();
            for other in &standing.methods {
                standing.between(one, other);
            }
        }
    }
    !done.is_empty()
}

/// A model of the clinic's table by a method of the list, with its encoding.
pub fn asked_model(method: usize) -> Result<Model> {
    let table = clinic(200);
    let found = profile(open(&table)?, TARGET)?;
    let schema = Schema::parse(&draft(Path::new("t.csv"), TARGET, &found, &[]))?;
    let prepared = prepare(open(&table)?, &schema)?;
    let mut training = start(method, &prepared.data);
    while training.epoch_blocking()?.is_some() {}
    training.finish_blocking()?.with_encoding(prepared.encoding)
}
