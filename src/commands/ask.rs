//! `querent ask`: one case, asked through in the terminal or by another program.

mod json;

use super::choice::{self, Choice};
use super::{Failure, Talk, interrupt, say};
use querent::data::encoding::{Field, Notice, short};
use querent::{Model, Session};
use std::io::{BufRead, IsTerminal, Write};
use std::path::PathBuf;

/// Ask for one measurement after the other, then answer.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// A model.safetensors.
    model: PathBuf,
    /// What may be spent: what no longer fits is not asked for.
    #[arg(long, value_name = "COST", default_value_t = f64::INFINITY)]
    budget: f64,
    #[command(flatten)]
    choice: Choice,
    /// An answer in advance, given when it is asked for; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "json")]
    answer: Vec<String>,
    /// Speak JSON, a line at a time, for programs.
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
Examples:
  querent ask runs/clinic/model.safetensors
  querent ask runs/clinic/model.safetensors --spend 4      as much as costs 4 on average
  querent ask runs/clinic/model.safetensors --target 0.9   as little as reaches this score
  querent ask runs/clinic/model.safetensors --budget 10    never more than 10
  querent ask runs/clinic/model.safetensors --answer age=31 --answer cough=mild   asks for the rest
  printf '38.9\\nyes\\nn/a\\n' | querent ask runs/clinic/model.safetensors

Answer with a number or a word as the table has them, in its units; with n/a if a measurement cannot be had
(something else is asked for then); with `missing` if it was made and gave nothing. A number outside of the
training rows' range, or a word they do not have, is taken with a warning.

With --json each line of output is one object, each line of input answers one:
  {\"ask\":\"temperature\",\"feature\":0,\"cost\":1.0,\"fields\":[{\"name\":\"temperature\",\"unit\":\"°C\",…}],
   \"belief\":{\"flu\":0.4,…},\"spent\":0.0}      answered by {\"answer\":38.9}, or {\"answer\":[…]} where there
   are several fields; {\"answer\":null} for n/a
  {\"given\":[fields]}                          what is known from the start, answered by {\"answer\":[…]}
  {\"warning\":\"…\"}   {\"error\":\"…\"}            the question is asked again after an error
  {\"predict\":\"flu\",\"belief\":{…},\"spent\":3.0,\"asked\":[…]}   the last line
The exit code is 0 if an answer was reached, 2 if the input ended before, or after Ctrl-C.";

/// The word for: measured, without a result.
const MISSING: &str = "missing";
/// The word for: cannot be had.
const UNAVAILABLE: [&str; 3] = ["n/a", "na", "-"];

/// Runs the command.
///
/// # Errors
/// The model cannot be read, the budget makes no sense, or the input ended too early.
pub fn run(args: &Args, talk: Talk, out: &mut impl Write) -> Result<(), Failure> {
    let model = args.choice.apply(Model::load(&args.model)?)?;
    if let (Some(expected), false) = (choice::expected(&model), args.json) {
        say(talk, expected);
    }
    let mut session = model.session().with_budget(args.budget)?;
    interrupt::answer("interrupted: this case has no answer, and nothing was kept of it", true);
    let mut lines = std::io::stdin().lock().lines();
    let mut next_line = move || lines.next().transpose();
    if args.json {
        return json::talk(&model, &mut session, &mut next_line, out);
    }
    let answers = in_advance(&model, &args.answer)?;
    let echo = !std::io::stdin().is_terminal();
    let mut terminal = Terminal { talk, out, next_line: &mut next_line, answers, echo };
    terminal.given(&model, &mut session)?;
    while let Some(question) = session.question() {
        let (feature, name, cost) = (question.feature, question.name.to_string(), question.cost);
        believe(&session, terminal.out)?;
        let fields = fields_of(&model, feature);
        let mut cells: Vec<String> = Vec::new();
        let group = fields.len() > 1;
        if group {
            writeln!(terminal.out, "{name}, cost {}, {} values:", short(cost), fields.len())?;
        }
        for field in &fields {
            let prompt = match group {
                true => format!("  {} ({})", field.label(), field.expected()),
                false => format!("{}, cost {} ({})", field.label(), short(cost), field.expected()),
            };
            let Some(cell) = terminal.cell(&model, field, &prompt, &name)? else {
                cells.clear();
                break;
            };
            cells.push(cell);
        }
        if cells.is_empty() {
            session.unavailable(feature)?;
            writeln!(terminal.out, "  {name} cannot be had: something else, then")?;
            continue;
        }
        terminal.observe(&mut session, feature, &fields, &cells)?;
    }
    believe(&session, out)?;
    let spent = short(session.spent());
    writeln!(out, "answer: {} ({} asked, {spent} spent)", session.label(), session.acquisitions())?;
    Ok(())
}

/// The answers in advance: for each field its cell.
fn in_advance(model: &Model, said: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let features = 0..model.problem().features().len();
    let mut names: Vec<String> =
        features.flat_map(|feature| fields_of(model, feature)).map(|field| field.name).collect();
    names
        .extend(model.encoding().iter().flat_map(|encoding| &encoding.known).map(|field| field.name.clone()));
    said.iter()
        .map(|said| {
            // A name may have a `=` in it: the longest that fits is meant.
            let fits =
                |name: &&String| said.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with('='));
            let Some(name) = names.iter().filter(fits).max_by_key(|name| name.len()) else {
                return Err(Failure::Refused(format!(
                    "--answer {said}: it must be NAME=VALUE, and the names are {}",
                    names.iter().take(12).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )));
            };
            Ok((name.clone(), said[name.len() + 1..].to_string()))
        })
        .collect()
}

/// The fields of a feature; of a model that was not trained on a table, the columns as they are.
fn fields_of(model: &Model, feature: usize) -> Vec<Field> {
    match model.encoding() {
        Some(encoding) => encoding.features[feature].clone(),
        None => {
            let groups = model.problem().group_of_column();
            let columns = groups.iter().filter(|&&group| group as usize == feature).count();
            let name = &model.problem().features()[feature].name;
            (0..columns).map(|column| plain_field(name, column, columns)).collect()
        }
    }
}

fn plain_field(name: &str, column: usize, columns: usize) -> Field {
    let name = if columns > 1 { format!("{name}[{column}]") } else { name.to_string() };
    let code = querent::data::encoding::Code::Number {
        low: f64::from(f32::MIN),
        high: f64::from(f32::MAX),
        fill: 0.0,
        seen: [f64::from(f32::MIN), f64::from(f32::MAX)],
        missing_above: None,
    };
    Field { name, unit: String::new(), code, flag: false }
}

/// Shows the probability of each class as bars.
fn believe(session: &Session<'_>, out: &mut impl Write) -> std::io::Result<()> {
    const BAR: f32 = 30.0;
    const SHOWN: usize = 12;
    let classes = session.model().problem().classes();
    let width = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0).min(30);
    let mut order: Vec<usize> = (0..classes.len()).collect();
    if classes.len() > SHOWN {
        // Many classes: the likely ones only.
        order.sort_by(|&a, &b| session.predict()[b].total_cmp(&session.predict()[a]));
        order.truncate(SHOWN);
    }
    for class in order {
        let p = session.predict()[class];
        let bar = "█".repeat((p * BAR).round() as usize);
        let line = format!("  {:width$} {:5.1}% {bar}", classes[class], 100.0 * p);
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// What is odd about a cell, in words.
fn odd(field: &Field, cell: &str, notice: &Notice) -> Option<String> {
    let name = &field.name;
    match notice {
        Notice::Fine => None,
        Notice::Missing => Some(format!("{name} counts as missing")),
        Notice::OutOfRange([low, high]) => Some(format!(
            "{name} = {cell} is outside of the training rows' range, {} to {}: the answer may be off",
            short(*low),
            short(*high)
        )),
        Notice::Unseen => Some(format!(
            "no training row has {name} = `{cell}` (they have {}): it is taken as something else",
            field.expected()
        )),
    }
}

/// Where questions go and answers come from.
struct Terminal<'a, W: Write> {
    talk: Talk,
    out: &'a mut W,
    next_line: &'a mut dyn FnMut() -> std::io::Result<Option<String>>,
    /// Answers in advance, by the field's name.
    answers: Vec<(String, String)>,
    /// Whether answers have to be shown, as nobody types them.
    echo: bool,
}

impl<W: Write> Terminal<'_, W> {
    /// Asks for what is known from the start.
    fn given(&mut self, model: &Model, session: &mut Session<'_>) -> Result<(), Failure> {
        let Some(encoding) = model.encoding().filter(|encoding| !encoding.known.is_empty()) else {
            return Ok(());
        };
        writeln!(self.out, "Known from the start:")?;
        let mut cells: Vec<String> = Vec::new();
        for field in &encoding.known {
            let prompt = format!("{} ({})", field.label(), field.expected());
            // What is not known after all is a missing cell.
            let cell = self.cell(model, field, &prompt, &field.name)?.unwrap_or_default();
            cells.push(cell);
        }
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        let notices = session.tell_given(&cells)?;
        self.warn(&encoding.known, &cells, &notices);
        Ok(())
    }

    /// The next answer: one in advance, or a line of input.
    fn line(&mut self, field: &str) -> std::io::Result<Option<String>> {
        let advance = self.answers.iter().position(|(name, _)| name == field);
        let echo = self.echo || advance.is_some();
        let line = match advance {
            Some(at) => Some(self.answers.remove(at).1),
            None => (self.next_line)()?,
        };
        if let (Some(line), true) = (&line, echo) {
            writeln!(self.out, "{line}")?;
        }
        Ok(line)
    }

    /// Asks for a cell until it is one; `None` if it cannot be had. A missing one is empty.
    fn cell(
        &mut self,
        model: &Model,
        field: &Field,
        prompt: &str,
        feature: &str,
    ) -> Result<Option<String>, Failure> {
        loop {
            write!(self.out, "{prompt}? ")?;
            self.out.flush()?;
            let Some(line) = self.line(&field.name)? else {
                writeln!(self.out)?;
                return Err(Failure::Refused(format!(
                    "the input ended while `{feature}` was asked for: this case has no answer"
                )));
            };
            let cell = line.trim();
            if UNAVAILABLE.contains(&cell.to_lowercase().as_str()) {
                return Ok(None);
            }
            if cell == MISSING && model.encoding().is_some() {
                return Ok(Some(String::new()));
            }
            let complaint = match field.encode(cell, &mut Vec::new()) {
                Ok(_) if !cell.is_empty() => return Ok(Some(cell.to_string())),
                Ok(_) => "an answer is needed".to_string(),
                Err(error) => error.message(),
            };
            writeln!(self.out, "  {complaint}; answer with {}, or n/a", field.expected())?;
        }
    }

    fn observe(
        &mut self,
        session: &mut Session<'_>,
        feature: usize,
        fields: &[Field],
        cells: &[String],
    ) -> Result<(), Failure> {
        let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
        match tell(session, feature, fields, &cells) {
            Ok(notices) => self.warn(fields, &cells, &notices),
            // Such as a number so large that the networks overflow: it is asked for again.
            Err(error) => writeln!(self.out, "  {error}")?,
        }
        Ok(())
    }

    fn warn(&mut self, fields: &[Field], cells: &[&str], notices: &[Notice]) {
        for ((field, cell), notice) in fields.iter().zip(cells).zip(notices) {
            if let Some(text) = odd(field, cell, notice) {
                say(self.talk, format_args!("warning: {text}"));
            }
        }
    }
}

/// Gives a session the cells of a feature.
fn tell(
    session: &mut Session<'_>,
    feature: usize,
    fields: &[Field],
    cells: &[&str],
) -> querent::Result<Vec<Notice>> {
    if session.model().encoding().is_some() {
        return session.tell(feature, cells);
    }
    let mut values = Vec::new();
    for (field, cell) in fields.iter().zip(cells) {
        field.encode(cell, &mut values)?;
    }
    session.observe(feature, values)?;
    Ok(vec![Notice::Fine; cells.len()])
}
