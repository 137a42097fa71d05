//! `querent data`: the catalog of named data sets.

use super::{Failure, Talk, write_table};
use querent::Error;
use querent::data::catalog::{self, CATALOG, Entry, State};
use querent::data::table::Cells;
use querent::files::write_atomically;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The catalog of named data sets: list them, check their files, write them as a table.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// Where the files are, a folder for each data set [default: QUERENT_DATA, or `querent` in the user's data
    /// folder].
    #[arg(long, value_name = "DIR", global = true)]
    data_dir: Option<PathBuf>,
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// List the data sets: rows, features, classes, licence, and whether their files are there.
    List,
    /// Check a data set's files (all of them without a name): there, right (SHA-256), and readable.
    Check {
        /// The data set.
        name: Option<String>,
    },
    /// Write a data set as table.csv and problem.toml, to look at or to change.
    Prepare {
        /// The data set.
        name: String,
        /// The folder to write to [default: NAME].
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

const HELP: &str = "\
Examples:
  querent data list
  querent data check diabetes
  querent data prepare diabetes --out diabetes
  querent train diabetes/problem.toml
  querent train diabetes                         the same without the detour

Files are looked for in the folder of --data-dir, else in that of the variable QUERENT_DATA, else in `querent` in the \
user's data folder (on Linux ~/.local/share/querent); `list` says which one it is. Nothing is downloaded: `check` says where to get a file that is not there.";

/// Runs the command.
///
/// # Errors
/// There is no such data set, or its files are not there, not right or not readable.
pub fn run(args: &Args, _: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let dir = catalog::data_dir(args.data_dir.as_deref())?;
    match &args.what {
        What::List => list(&dir, out),
        What::Check { name: Some(name) } => check(catalog::find(name)?, &dir, out),
        What::Check { name: None } => {
            let mut bad = Vec::new();
            for entry in CATALOG {
                if let Err(failure) = check(entry, &dir, out) {
                    writeln!(out, "{}: {failure}", entry.name)?;
                    bad.push(entry.name);
                }
            }
            match bad.is_empty() {
                true => Ok(()),
                false => Err(Failure::Refused(format!("not usable: {}", bad.join(", ")))),
            }
        }
        What::Prepare { name, out: to } => {
            let entry = catalog::find(name)?;
            prepare(entry, &dir, &to.clone().unwrap_or_else(|| name.into()), out)
        }
    }
}

fn list(dir: &Path, out: &mut impl Write) -> Result<(), Failure> {
    let mut rows =
        vec![["name", "rows", "features", "classes", "metric", "files", "about"].map(String::from).to_vec()];
    for entry in CATALOG {
        let there = entry.files.iter().all(|file| dir.join(entry.name).join(file.name).is_file());
        let files = match (entry.is_synthetic(), there) {
            (true, _) => "built in",
            (false, true) => "there",
            (false, false) => "not there",
        };
        rows.push(vec![
            entry.name.into(),
            entry.sizes.map(|size| size.to_string()).join("/"),
            entry.features.to_string(),
            entry.classes.to_string(),
            entry.metric.to_string(),
            files.into(),
            entry.about.into(),
        ]);
    }
    write_table(out, 7, &rows)?;
    writeln!(out, "\nFiles are looked for in {}; `querent data check NAME` reads them.", dir.display())?;
    Ok(())
}

fn check(entry: &Entry, dir: &Path, out: &mut impl Write) -> Result<(), Failure> {
    for found in entry.look(dir)? {
        let state = match found.state {
            State::Right => "right".to_string(),
            State::Absent => "not there".into(),
            State::Wrong(sum) => format!("another file: {sum}"),
        };
        writeln!(out, "{}/{}: {state}", entry.name, found.name)?;
    }
    entry.check(dir)?;
    let started = std::time::Instant::now();
    let prepared = entry.load(dir, 0)?;
    let problem = prepared.data.problem();
    let (sizes, features, classes) =
        (prepared.data.sizes(), problem.features().len(), problem.classes().len());
    if (sizes, features, classes) != (entry.sizes, entry.features, entry.classes) {
        return Err(Error::Data(format!(
            "`{}` has {sizes:?} rows, {features} features and {classes} classes; expected {:?}, {} and {}",
            entry.name, entry.sizes, entry.features, entry.classes
        ))
        .into());
    }
    writeln!(
        out,
        "{}: {} training, {} validation, {} test rows; {features} features in {} columns, {classes} classes; read in \
         {:.1} s; licence {}",
        entry.name,
        sizes[0],
        sizes[1],
        sizes[2],
        problem.columns(),
        started.elapsed().as_secs_f64(),
        entry.licence
    )?;
    Ok(())
}

/// Writes a data set as a table and its problem.
fn prepare(entry: &Entry, dir: &Path, to: &Path, out: &mut impl Write) -> Result<(), Failure> {
    if entry.is_synthetic() || entry.is_images() {
        return Err(Failure::Refused(format!(
            "`{}` is no table of words and numbers: train on it by its name",
            entry.name
        )));
    }
    let (schema, mut rows) = entry.table(dir)?;
    let mut bytes = Vec::new();
    {
        let mut writer = csv::Writer::from_writer(&mut bytes);
        let failed = |error: csv::Error| Error::Data(format!("{}: {error}", entry.name));
        writer.write_record(rows.header()).map_err(failed)?;
        let mut cells = Cells::default();
        while rows.next(&mut cells)? {
            writer.write_record(&cells.cells).map_err(failed)?;
        }
        writer.flush()?;
    }
    let text = toml::to_string(&schema).map_err(|error| Error::Data(format!("{}: {error}", entry.name)))?;
    std::fs::create_dir_all(to).map_err(|error| Error::io(to, error))?;
    write_atomically(&to.join("table.csv"), &bytes)?;
    let head = format!(
        "# {}: {}. Written by `querent data prepare`.\n# From {}; licence: {}.\n\n",
        entry.name, entry.about, entry.origin, entry.licence
    );
    write_atomically(&to.join("problem.toml"), (head + &text).as_bytes())?;
    writeln!(out, "written: {0}/table.csv and {0}/problem.toml", to.display())?;
    writeln!(out, "Then: querent train {}/problem.toml", to.display())?;
    Ok(())
}
