//! What a comparison consists of: cells, each of one method, table and seed, and, for a method that is trained for one α at a
//! time, α. The plan is a file, so that every cell can be run anywhere by its number.

use super::Args;
use super::options::{INSTEAD, Options, chosen};
use crate::commands::room::Room;
use crate::commands::source::Source;
use crate::commands::train;
use crate::commands::train::aim::Aim;
use crate::commands::{Failure, Talk};
use querent::compare::{Cell, Table, check};
use querent::data::Dataset;
use querent::data::table::Schema;
use querent::files::write_atomically;
use querent::methods::{self, Tradeoff};
use querent::policy::AlphaRange;
use querent::policy::tradeoff::rounded;
use querent::{Error, compare};
use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::path::Path;

/// The plan's name in the folder of a comparison.
const FILE: &str = "comparison.json";
/// A comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The version that made it.
    pub querent: String,
    /// Its tables.
    pub tables: Vec<Table>,
    /// What holds for every cell.
    pub options: Options,
    /// Its cells; their numbers are their places here.
    pub cells: Vec<Cell>,
}

impl Plan {
    /// Makes the plan that the arguments say.
    ///
    /// # Errors
    /// What is wrong with a table, a method, a setting or the seeds.
    pub fn new(args: &Args, talk: Talk) -> Result<Self, Failure> {
        if args.seeds.0.is_empty() {
            return Err(Failure::Refused("there is no seed: name at least one, as in --seeds 0,1,2".into()));
        }
        let methods = chosen(&args.methods)?;
        let options = Options::new(args, &methods)?;
        let mut plan = Self {
            querent: env!("CARGO_PKG_VERSION").into(),
            tables: Vec::new(),
            options,
            cells: Vec::new(),
        };
        let variants = plan.options.variants.iter().map(|variant| variant.name.clone());
        let compared: Vec<String> = methods.into_iter().chain(variants).collect();
        let room = Room::new(None, None)?;
        for said in &args.tables {
            let source = Source::find(said, args.data_dir.as_deref())?;
            let table = Table {
                name: source.name(),
                problem: source.file().unwrap_or_else(|| said.clone()),
                content: content(&source)?,
            };
            if plan.tables.iter().any(|other| other.name == table.name) {
                return Err(Failure::Refused(format!(
                    "two tables are called `{}`: rename one of the problem files, so that results can be told apart",
                    table.name
                )));
            }
            let prepared = plan.options.load(&source, args.seeds.0[0], &room, talk)?;
            for method in &compared {
                for &seed in &args.seeds.0 {
                    for alpha in plan.alphas(method, &table, &prepared.data, args.separate)? {
                        plan.add(&table, method, seed, alpha);
                    }
                }
            }
            plan.tables.push(table);
        }
        Ok(plan)
    }

    /// What cells there are of a method: one for the whole curve, or one for each α.
    fn alphas(
        &self,
        method: &str,
        table: &Table,
        data: &Dataset,
        separate: bool,
    ) -> Result<Vec<Option<f64>>, Failure> {
        if INSTEAD.contains(&method) {
            return Ok(vec![None]);
        }
        let entry = methods::find(self.options.method_of(method))?;
        let settings = |aim: &Aim| {
            let cell = self.train_args(method, &table.problem, 0);
            let settings = train::settings(&cell, entry, data, aim, 0)?;
            (entry.check)(data, &settings)?;
            Ok::<_, Error>(settings)
        };
        let one = Aim::One(1.0);
        let by_threshold = entry.tradeoff == Tradeoff::Threshold;
        // What cannot be is refused before anything is begun.
        settings(if by_threshold { &Aim::Thresholds } else { &one })?;
        if by_threshold {
            return Ok(vec![None]);
        }
        let grid = self.options.alphas.clone().unwrap_or_else(|| grid(data, self.options.points));
        let each = grid.into_iter().map(Some);
        // A method that knows no range is trained for one α after the other.
        let has_range = entry.tradeoff == Tradeoff::Alpha;
        let whole = has_range.then_some(None);
        Ok(whole.into_iter().chain(each.filter(|_| !has_range || separate)).collect())
    }

    fn add(&mut self, table: &Table, method: &str, seed: u64, alpha: Option<f64>) {
        let Options { engine, minutes, epochs, epoch_steps, hidden, rows, points, alphas, .. } =
            &self.options;
        let of = self.options.method_of(method);
        let mut depends = json!({
            "querent": self.querent, "table": table.content, "method": of, "seed": seed, "alpha": alpha,
            "engine": engine, "minutes": minutes, "epochs": epochs, "epoch_steps": epoch_steps, "hidden": hidden,
            "rows": rows, "points": points, "alphas": alphas, "set": self.options.set_of(method),
        });
        // Its curve has its name.
        if of != method {
            depends["variant"] = method.into();
        }
        let hash = hex(&Sha256::digest(depends.to_string().as_bytes()));
        let aim = alpha.map_or("curve".into(), |alpha| format!("alpha_{alpha}"));
        let name: String = format!("{}-{method}-seed_{seed}-{aim}", table.name)
            .chars()
            .map(|c| if c.is_alphanumeric() || "._-".contains(c) { c } else { '_' })
            .collect();
        let folder = format!("cells/{name}-{}", &hash[..8]);
        self.cells.push(Cell { table: table.name.clone(), method: method.into(), seed, alpha, hash, folder });
    }

    /// The arguments that `querent train` would have for a cell.
    pub fn train_args(&self, method: &str, problem: &str, seed: u64) -> train::Args {
        let Options { engine, minutes, epochs, epoch_steps, hidden, data_dir, .. } = self.options.clone();
        train::Args {
            problem: problem.into(),
            method: self.options.method_of(method).into(),
            range: None,
            alpha: None,
            alphas: None,
            thresholds: None,
            set: self.options.set_of(method),
            seeds: vec![seed],
            engine,
            out: None,
            resume: true,
            force: false,
            minutes,
            epochs,
            epoch_steps,
            horizon: None,
            hidden,
            dropout: None,
            baselines: false,
            memory: None,
            sample: None,
            data_dir,
        }
    }

    /// A table by its name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|table| table.name == name)
    }

    /// Reads the plan of a comparison.
    ///
    /// # Errors
    /// There is none in the folder, or it cannot be read.
    pub fn load(out: &Path) -> Result<Self, Failure> {
        let path = out.join(FILE);
        let text = std::fs::read_to_string(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Error::file(
                &path,
                "there is no comparison here: `querent compare TABLE… --list --out DIR` plans one",
            ),
            _ => Error::io(&path, error),
        })?;
        let plan: Self = serde_json::from_str(&text)
            .map_err(|error| Error::file(&path, format!("not a comparison of this version: {error}")))?;
        check(&plan.tables, &plan.cells).map_err(|error| Error::file(&path, error.to_string()))?;
        Ok(plan)
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn save(&self, out: &Path) -> Result<(), Failure> {
        std::fs::create_dir_all(out).map_err(|error| Error::io(out, error))?;
        let path = out.join(FILE);
        let text =
            serde_json::to_string_pretty(self).map_err(|error| Error::file(&path, error.to_string()))?;
        Ok(write_atomically(&path, text.as_bytes())?)
    }
}

/// The hash of a table's files; a data set's name, as its files are checked whenever they are read.
pub fn content(source: &Source) -> Result<String, Failure> {
    let Source::File(path) = source else { return Ok(source.name()) };
    // What is wrong with it is said by whoever reads it next.
    let Ok(schema) = Schema::load(path) else { return Ok(String::new()) };
    let mut all = Sha256::new();
    for file in [path.clone(), schema.table_path(path)] {
        let mut opened = std::fs::File::open(&file).map_err(|error| Error::io(&file, error))?;
        let mut hash = Sha256::new();
        std::io::copy(&mut opened, &mut hash).map_err(|error| Error::io(&file, error))?;
        all.update(hash.finalize());
    }
    Ok(hex(&all.finalize()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Some α for a table whose range nobody has looked for, even in ln α.
fn grid(data: &Dataset, points: usize) -> Vec<f64> {
    match AlphaRange::try_from(compare::alphas(data)) {
        Ok(range) if points > 1 => range.grid(points).into_iter().map(rounded).collect(),
        Ok(range) => vec![rounded(range.middle())],
        // Nothing costs anything, so nothing is to be traded.
        Err(_) => vec![0.0],
    }
}
