//! `querent eval`: how a model does on a table.

mod beside;
mod json;

use super::choice::Choice;
use super::oddities::Oddities;
use super::{Failure, Talk, progress, write_table};
use querent::data::Part;
use querent::data::encoding::Metric;
use querent::data::table::{Odd, TableReader, read_rows_with};
use querent::data::{Dataset, Split};
use querent::files::write_atomically;
use querent::policy::evaluate::{self, Rules, Summary};
use querent::policy::tradeoff::rounded;
use querent::{Error, Model};
use serde_json::json;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Ask a model through every row of a table and show how it does.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A model.safetensors.
    model: PathBuf,
    /// A table with the same columns, in the same units [default: the test rows it was trained beside].
    table: Option<PathBuf>,
    /// What may be spent on one row.
    #[arg(long, value_name = "COST", default_value_t = f64::INFINITY)]
    budget: f64,
    /// Questions asked of one row, at most [default: the model's].
    #[arg(long, value_name = "N")]
    horizon: Option<usize>,
    /// Go on to the horizon, or to the budget, whatever the stop rule says.
    #[arg(long)]
    no_stop: bool,
    #[command(flatten)]
    choice: Choice,
    /// Evaluate a model of a range at each of these α, as a table.
    #[arg(long, value_name = "A,B,…", value_delimiter = ',', conflicts_with_all = ["alpha", "spend", "target", "threshold", "traces"])]
    alphas: Option<Vec<f64>>,
    /// Write every step of every row as a table: episode, step, action, guess, label, probability, cost, forced_stop.
    #[arg(long, value_name = "FILE")]
    traces: Option<PathBuf>,
    /// Write the results as JSON.
    #[arg(long)]
    json: bool,
    /// Refuse a table if a row of it is bad, rather than to leave such rows out.
    #[arg(long)]
    strict: bool,
    /// Where the catalog's files are [default: QUERENT_DATA, or as in training].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

// Examples fit 80 columns; a paragraph is one line, which clap breaks where the terminal ends.
const HELP: &str = "\
Examples:
  querent eval model.safetensors                     on the run's test rows
  querent eval model.safetensors new_cases.csv       on other rows, in its units
  querent eval model.safetensors --alphas 0.01,0.1   one model at several α
  querent eval model.safetensors --budget 5          never more than 5 a row
  querent eval model.safetensors --json | jq .accuracy
  querent eval model.safetensors --no-stop --traces all.csv

A row of a table that cannot be used (too few cells, a word for a number, no class of the model's) is told and left out. \
Words that no training row has count as something else, and are counted.

With --json, `first_actions` has the share of rows that each feature was asked of first, `asked` that of rows it was \
asked of at all, both by its name, `stops_at_once` the share that nothing was asked of, and `classes` the numbers of \
each class by its name; `curve` has what the validation rows of a model of many α gave at each, and `choices` which of \
them are cheap, the knee and thorough; `bad_rows`, `unseen` and `out_of_range` tell what was odd about a table.

In a file of --traces, `action` is the feature's name or `stop`; `guess`, its `probability` and `cost`, all that was \
spent, are those after the action; `forced_stop` is 1 if nothing more could be asked (horizon, budget).";

/// Runs the command.
///
/// # Errors
/// The model or the table cannot be read, or do not fit together.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let model = args.choice.apply(Model::load(&args.model)?)?;
    let mut oddities = Oddities::new(talk, args.strict);
    let (data, part, what) = match &args.table {
        Some(table) => {
            let data = rows_of(&model, table, &mut oddities, talk)?;
            (data, Part::Train, table.display().to_string())
        }
        None => {
            let data = beside::trained_beside(&model, &args.model, args.data_dir.as_deref(), talk)?;
            let part = if data.sizes()[2] > 0 { Part::Test } else { Part::Validation };
            let what = if data.sizes()[2] > 0 { "the run's test rows" } else { "the run's validation rows" };
            (data, part, what.to_string())
        }
    };
    if let (Some(_), None) = (&args.alphas, model.alphas()) {
        return Err(Failure::Refused(
            "--alphas needs a model that was trained for a range of α, and this one was not".into(),
        ));
    }
    if let Some(alphas) = &args.alphas {
        return at_each(&model, alphas, (&data, part, &what), (args, &oddities), out);
    }
    let labels = &data.splits()[part as usize].y;
    let rules = Rules { budget: args.budget, horizon: args.horizon, may_stop: !args.no_stop };
    let episodes = evaluate::episodes(&model, &data, part, &rules)?;
    if let Some(path) = &args.traces {
        let mut table = Vec::new();
        episodes.write_csv(model.problem(), labels, &mut table)?;
        write_atomically(path, &table)?;
    }
    let summary = episodes.ended().summary(model.problem(), labels, model.alpha());
    // The same without a question: what the model believes of everybody at first.
    let nothing = evaluate::outcomes(&model, &data, part, 0.0)?;
    let nothing = nothing.traces.summary(model.problem(), labels, model.alpha());
    if args.json {
        let mut value = json!({ "rows": what, "alpha": model.alpha() });
        value["nothing_asked"] = json::summary(model.problem(), &nothing);
        json::add(&mut value, json::summary(model.problem(), &summary));
        json::add(&mut value, json::by_name(model.problem(), &episodes.ended(), labels));
        json::add(&mut value, json::curve(&model));
        json::add(&mut value, oddities.json());
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    writeln!(out, "{what}: {} rows", summary.instances)?;
    show(&model, &summary, &nothing, out)?;
    Ok(())
}

/// One model at several α.
fn at_each(
    model: &Model,
    alphas: &[f64],
    (data, part, what): (&Dataset, Part, &str),
    (args, oddities): (&Args, &Oddities),
    out: &mut impl Write,
) -> Result<(), Failure> {
    let (labels, metric) = (&data.splits()[part as usize].y, model.metric());
    let rules = Rules { budget: args.budget, horizon: args.horizon, may_stop: !args.no_stop };
    let header = [
        "α".to_string(),
        metric.to_string(),
        "loss".into(),
        "cost".into(),
        "questions".into(),
        "objective".into(),
    ];
    let (mut rows, mut values) = (vec![header.to_vec()], Vec::new());
    for &alpha in alphas {
        let model = model.clone().with_tradeoff(alpha)?;
        let ended = evaluate::episodes(&model, data, part, &rules)?.ended();
        let s = ended.summary(model.problem(), labels, alpha);
        let numbers = [s.score(metric), s.loss, s.cost, s.acquisitions, s.objective];
        rows.push([alpha.to_string()].into_iter().chain(numbers.map(|v| format!("{v:.4}"))).collect());
        let mut value = json!({ "alpha": alpha });
        json::add(&mut value, json::summary(model.problem(), &s));
        json::add(&mut value, json::by_name(model.problem(), &ended, labels));
        values.push(value);
    }
    if args.json {
        let mut value = json!({ "rows": what, "points": values });
        json::add(&mut value, json::curve(model));
        json::add(&mut value, oddities.json());
        writeln!(out, "{value:#}")?;
        return Ok(());
    }
    writeln!(out, "{what}: {} rows", labels.len())?;
    write_table(out, 0, &rows)?;
    Ok(())
}

/// Rows of another table, read as the model's own was.
fn rows_of(model: &Model, table: &Path, oddities: &mut Oddities, talk: Talk) -> Result<Dataset, Error> {
    let Some(encoding) = model.encoding() else {
        return Err(Error::file(
            table,
            "the model was not trained on a table with a header: it knows no columns",
        ));
    };
    let reader = progress::watched(TableReader::open(table)?, "read", talk);
    let mut rows = read_rows_with(reader, model.problem(), encoding, &mut |odd| match odd {
        Odd::Row(error) => oddities.bad_row(error),
        Odd::Cell { field, cell, notice } => {
            oddities.cell(&field.name, cell, &notice);
            Ok(())
        }
    })?;
    oddities.report(encoding, "left out");
    model.normalization().apply(&mut rows.x);
    Dataset::new(model.problem().clone(), rows, Split::default(), Split::default())
}

fn show(model: &Model, summary: &Summary, nothing: &Summary, out: &mut impl Write) -> Result<(), Failure> {
    let metric = model.encoding().map_or(Metric::Accuracy, |encoding| encoding.metric);
    let mark = |this: Metric| if this == metric { "  ← judged by" } else { "" };
    let row = |name: &str, value: String, other: String| vec![name.to_string(), value, other];
    let mut rows = vec![row("", "asking".into(), "not asking".into())];
    let pair = |f: fn(&Summary) -> f64| (format!("{:.4}", f(summary)), format!("{:.4}", f(nothing)));
    for (name, (value, other)) in [
        (format!("accuracy{}", mark(Metric::Accuracy)), pair(|s| s.accuracy)),
        (format!("macro-F1{}", mark(Metric::MacroF1)), pair(|s| s.macro_f1)),
        ("loss (nats)".into(), pair(|s| s.loss)),
        ("cost".into(), pair(|s| s.cost)),
        ("questions".into(), pair(|s| s.acquisitions)),
        (format!("objective (loss + {} · cost)", rounded(model.alpha())), pair(|s| s.objective)),
    ] {
        rows.push(row(&name, value, other));
    }
    write_table(out, 1, &rows)?;
    let features = model.problem().features();
    let mut first: Vec<(f64, &str)> = summary
        .first_actions
        .iter()
        .enumerate()
        .filter(|(_, share)| **share > 0.0)
        .map(|(index, share)| (*share, features.get(index).map_or("stop", |feature| &feature.name)))
        .collect();
    first.sort_by(|a, b| b.0.total_cmp(&a.0));
    let first: Vec<String> =
        first.iter().take(5).map(|(share, name)| format!("{name} {:.0}%", 100.0 * share)).collect();
    writeln!(out, "first question: {}", first.join(", "))?;
    Ok(())
}
