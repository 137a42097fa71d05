//! `querent init`: from a table to a `problem.toml` to be edited.

use super::{Failure, Talk, progress};
use querent::Error;
use querent::data::table::{Cut, Profile, TableReader, checks, draft, profile_cut, read_prices};
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
    /// Cut a target that is a number into so many ranges, with about as many training rows each: the classes.
    #[arg(long, value_name = "N", conflicts_with_all = ["edges", "classes"])]
    bins: Option<usize>,
    /// Cut a target that is a number at these numbers.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with = "classes")]
    edges: Option<Vec<f64>>,
    /// Take each different number of the target for a class, however many there are.
    #[arg(long)]
    classes: bool,
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

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent init clinic.csv --target diagnosis        writes problem.toml
  querent init clinic.csv.gz --target diagnosis --out clinic.toml
  querent init clinic.csv --target diagnosis --prices prices.csv
  querent init houses.csv --target price --bins 4   a number: the range it is in
  querent init houses.csv --target price --edges 100000,250000
  zstd -dc clinic.csv.zst | querent init - --target diagnosis

The table is read once, row by row: a table of any size takes the same memory. Each column gets its kind (numeric, \
binary, categorical, ordinal, date), a group, a cost of 1.0 or that of the price list (column,cost), a unit if its name \
has one. Ids, free text, constants and columns that give the target away are set to be ignored; a column of the words \
train, validation and test becomes the split; what a person should look at is marked CHECK.

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
    let found = profile_cut(progress::watched(table, "read", talk), &args.target, cut(args))?;
    let prices = match &args.prices {
        Some(list) => read_prices(TableReader::open(list)?, &found)?,
        None => Vec::new(),
    };
    // What was piped has no name yet.
    let relative = if piped { args.table.clone() } else { relative(&args.table, &to) };
    let text = draft(&relative, &args.target, &found, &prices);
    write_atomically(&to, text.as_bytes())?;
    let name = if piped { "standard input".into() } else { args.table.display().to_string() };
    tell(&name, args, &found, out)?;
    writeln!(out, "written: {}", to.display())?;
    let checks = checks(&text);
    if checks > 0 {
        writeln!(out, "{checks} place(s) need a look: search it for CHECK")?;
    }
    let unpriced = found
        .columns
        .iter()
        .enumerate()
        .filter(|(index, column)| !column.is_out() && !matches!(prices.get(*index), Some(Some(_))));
    let first = match unpriced.count() {
        0 => "Look it through".to_string(),
        count => format!("Put the prices of {count} columns in"),
    };
    writeln!(out, "{first}, then: querent train {}", to.display())?;
    Ok(())
}

/// How the flags say a number is cut.
fn cut(args: &Args) -> Option<Cut> {
    match (&args.edges, args.bins) {
        (Some(edges), _) => Some(Cut::Edges(edges.clone())),
        (None, Some(bins)) => Some(Cut::Bins(bins)),
        (None, None) => args.classes.then_some(Cut::Classes),
    }
}

/// What was found.
fn tell(name: &str, args: &Args, found: &Profile, out: &mut impl Write) -> std::io::Result<()> {
    let columns = found.columns.len() + 1 + usize::from(found.split.is_some());
    let Some(number) = &found.number else {
        writeln!(out, "{name}: {} rows, {columns} columns, {} classes", found.rows, found.classes.len())?;
        return tell_columns(found, out);
    };
    writeln!(out, "{name}: {} rows, {columns} columns", found.rows)?;
    let about = if matches!(number.cut, Cut::Bins(_)) { "about " } else { "" };
    let names: Vec<&str> = found.classes.iter().take(8).map(|(class, _)| class.as_str()).collect();
    let more = if found.classes.len() > 8 { ", …" } else { "" };
    writeln!(
        out,
        "`{}` is a number ({}), cut into {} ranges: {about}{}{more}",
        args.target,
        number.described(),
        found.classes.len(),
        names.join(", ")
    )?;
    if number.guessed {
        writeln!(
            out,
            "--bins N or --edges A,B,… cuts it otherwise; --classes takes each number for a class"
        )?;
    }
    tell_columns(found, out)
}

fn tell_columns(found: &Profile, out: &mut impl Write) -> std::io::Result<()> {
    if let Some((column, [train, validation, test])) = &found.split {
        writeln!(out, "split by `{column}`: {train} training, {validation} validation and {test} test rows")?;
    }
    let ignored: Vec<&str> =
        found.columns.iter().filter(|column| column.is_out()).map(|column| column.name.as_str()).collect();
    if !ignored.is_empty() {
        let shown = ignored.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let more = if ignored.len() > 8 { format!(" and {} more", ignored.len() - 8) } else { String::new() };
        writeln!(out, "ignored: {shown}{more}")?;
    }
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
