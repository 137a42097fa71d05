//! `querent eval`: how a model does on a table.

use super::choice::Choice;
use super::source::Source;
use super::{Failure, Talk, progress, write_table};
use querent::data::Part;
use querent::data::catalog;
use querent::data::encoding::Metric;
use querent::data::table::{TableReader, read_rows};
use querent::data::{Dataset, Split};
use querent::files::write_atomically;
use querent::policy::evaluate::{self, Rules, Summary};
use querent::policy::tradeoff::rounded;
use querent::run::{FILE, Run};
use querent::{Error, Model};
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
    /// Where the catalog's files are [default: QUERENT_DATA, or as in training].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

const HELP: &str = "\
Examples:
  querent eval runs/clinic/model.safetensors                  on the run's test rows
  querent eval runs/clinic/model.safetensors new_cases.csv    on other rows, in the table's own units
  querent eval runs/clinic/model.safetensors --alphas 0.01,0.1    one model at several α
  querent eval runs/clinic/model.safetensors --budget 5       as if no row could spend more than 5
  querent eval runs/clinic/model.safetensors --json | jq .accuracy
  querent eval runs/clinic/model.safetensors --no-stop --traces all.csv    every step to the horizon

In a file of --traces, `action` is the feature's name or `stop`; `guess`, its `probability` and `cost`, all that was
spent, are those after the action; `forced_stop` is 1 if nothing more could be asked (horizon, budget).";

/// Runs the command.
///
/// # Errors
/// The model or the table cannot be read, or do not fit together.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let model = args.choice.apply(Model::load(&args.model)?)?;
    let (data, part, what) = match &args.table {
        Some(table) => {
            let rows = normalized(&model, rows_for(&model, TableReader::open(table)?, table, talk)?);
            let data = Dataset::new(model.problem().clone(), rows, Split::default(), Split::default())?;
            (data, Part::Train, table.display().to_string())
        }
        None => {
            let data = trained_beside(&model, args, talk)?;
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
        return at_each(&model, alphas, (&data, part, &what), args, out);
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
        let mut value = serde_json::json!({ "rows": what, "alpha": model.alpha(), "nothing_asked": nothing });
        if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&summary) {
            fields.into_iter().for_each(|(key, field)| value[key] = field);
        }
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
    args: &Args,
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
        let s =
            evaluate::episodes(&model, data, part, &rules)?.ended().summary(model.problem(), labels, alpha);
        let numbers = [s.score(metric), s.loss, s.cost, s.acquisitions, s.objective];
        rows.push([alpha.to_string()].into_iter().chain(numbers.map(|v| format!("{v:.4}"))).collect());
        let mut value = serde_json::json!({ "alpha": alpha });
        if let Ok(serde_json::Value::Object(fields)) = serde_json::to_value(&s) {
            fields.into_iter().for_each(|(key, field)| value[key] = field);
        }
        values.push(value);
    }
    if args.json {
        writeln!(out, "{:#}", serde_json::json!({ "rows": what, "points": values }))?;
        return Ok(());
    }
    writeln!(out, "{what}: {} rows", labels.len())?;
    write_table(out, 0, &rows)?;
    Ok(())
}

/// Rows of another table, as the model's own was read.
fn rows_for(model: &Model, reader: TableReader, path: &Path, talk: Talk) -> Result<Split, Error> {
    let Some(encoding) = model.encoding() else {
        return Err(Error::file(
            path,
            "the model was not trained on a table with a header: it knows no columns",
        ));
    };
    read_rows(progress::watched(reader, talk), model.problem(), encoding)
}

fn normalized(model: &Model, mut rows: Split) -> Split {
    model.normalization().apply(&mut rows.x);
    rows
}

/// The data set of the run that a model is of.
fn trained_beside(model: &Model, args: &Args, talk: Talk) -> Result<Dataset, Failure> {
    let folder = args.model.parent().unwrap_or(Path::new(""));
    let folders = [folder.to_path_buf(), folder.join("..")];
    let Some(folder) = folders.iter().find(|folder| folder.join(FILE).exists()) else {
        return Err(Error::file(
            &args.model,
            format!("there is no {FILE} beside it to tell its test rows; name a table to evaluate on"),
        )
        .into());
    };
    let run = Run::load(folder)?;
    // Where training found the files counts only as long as they are there: runs move, and so do files.
    let before = run.data_dir.as_ref().map(PathBuf::from).filter(|dir| dir.join(&run.problem).is_dir());
    let said = args.data_dir.clone().or_else(catalog::data_dir_set).or(before);
    let source = Source::find(&run.problem, said.as_deref())?;
    let data = source.load(model.seed(), talk)?.data;
    if data.problem() != model.problem() || data.normalization() != model.normalization() {
        return Err(Error::file(
            Path::new(&run.problem),
            "the problem or its table has changed since the model was trained; name a table to evaluate on",
        )
        .into());
    }
    Ok(data)
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
