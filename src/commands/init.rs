//! `querent init`: from a table to a `problem.toml` to be edited.

use super::{Failure, Talk, progress};
use querent::Error;
use querent::data::table::{TableReader, draft, profile, read_prices};
use querent::files::write_atomically;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Look at a table and write a problem.toml for it: what each column seems to be, and what needs a look.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The table: CSV, TSV or with semicolons, plain or gzipped, with a header; `-` is standard input.
    table: PathBuf,
    /// The column to be predicted.
    #[arg(long, value_name = "COLUMN")]
    target: String,
    /// A price list: a table with the columns `column` and `cost` and, if you like, `group`, `unit`, `known`.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
    /// Where to write [default: problem.toml beside the table; for standard input, in the folder you are in].
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Replace a file that is there already.
    #[arg(long)]
    force: bool,
}

const HELP: &str = "\
Examples:
  querent init clinic.csv --target diagnosis             writes problem.toml beside clinic.csv
  querent init clinic.csv.gz --target diagnosis --out clinic.toml
  querent init clinic.csv --target diagnosis --prices prices.csv   with a price list: column,cost
  zstd -dc clinic.csv.zst | querent init - --target diagnosis      from standard input

The table is read once, row by row: a table of any size takes the same memory. Each column gets its kind
(numeric, binary, categorical, ordinal), a group, a cost of 1.0, a unit if its name has one. Ids, constants
and columns that give the target away are set to be ignored; what a person should look at is marked CHECK.
Edit the file, above all the costs, then run `querent train problem.toml`.";

/// Runs the command.
///
/// # Errors
/// The table cannot be read or has no such column, or the file is there already or cannot be written.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let to = match &args.out {
        Some(out) => out.clone(),
        None => args.table.with_file_name("problem.toml"),
    };
    if to.exists() && !args.force {
        return Err(
            Error::file(&to, "it is there already; --force replaces it, --out writes elsewhere").into()
        );
    }
    let piped = args.table == Path::new("-");
    let table = if piped { TableReader::standard_input()? } else { TableReader::open(&args.table)? };
    let found = profile(progress::watched(table, talk), &args.target)?;
    let prices = match &args.prices {
        Some(list) => read_prices(TableReader::open(list)?, &found)?,
        None => Vec::new(),
    };
    // What was piped has no name yet.
    let relative = if piped { args.table.clone() } else { relative(&args.table, &to) };
    write_atomically(&to, draft(&relative, &args.target, &found, &prices).as_bytes())?;

    let ignored: Vec<&str> = found
        .columns
        .iter()
        .filter(|column| column.doubts.iter().any(|doubt| doubt.is_out()))
        .map(|column| column.name.as_str())
        .collect();
    let checks = found.columns.iter().filter(|column| !column.doubts.is_empty()).count();
    writeln!(
        out,
        "{}: {} rows, {} columns, {} classes",
        args.table.display(),
        found.rows,
        found.columns.len() + 1,
        found.classes.len()
    )?;
    if !ignored.is_empty() {
        let shown = ignored.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if ignored.len() > 8 { format!(" and {} more", ignored.len() - 8) } else { String::new() };
        writeln!(out, "ignored: {shown}{more}")?;
    }
    writeln!(out, "written: {}", to.display())?;
    if checks > 0 {
        writeln!(out, "{checks} column(s) need a look: search it for CHECK")?;
    }
    let unpriced = found.columns.iter().enumerate().filter(|(index, column)| {
        !column.doubts.iter().any(|doubt| doubt.is_out()) && !matches!(prices.get(*index), Some(Some(_)))
    });
    let first = match unpriced.count() {
        0 => "Look it through".to_string(),
        count => format!("Put the prices of {count} columns in"),
    };
    writeln!(out, "{first}, then: querent train {}", to.display())?;
    Ok(())
}

/// The table's path as seen from the folder of the file that names it.
fn relative(table: &Path, to: &Path) -> PathBuf {
    let folder = |path: &Path| path.parent().unwrap_or(Path::new("")).to_path_buf();
    if folder(table) == folder(to) {
        return table.file_name().map(PathBuf::from).unwrap_or_default();
    }
    match table.strip_prefix(folder(to)) {
        Ok(inside) => inside.to_path_buf(),
        // Not inside: the whole path is right from everywhere.
        Err(_) => std::path::absolute(table).unwrap_or_else(|_| table.to_path_buf()),
    }
}
