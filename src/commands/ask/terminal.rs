//! The conversation with a person.

use super::{Failure, Talk, say};
use querent::Session;
use querent::asking::fields::{fields_of, known, odd, shown_classes, tell};
use querent::asking::lines::NextLine;
use querent::asking::understand::{Meant, Wish, understand};
use querent::asking::why;
use querent::data::encoding::{Field, Notice, short};
use std::io::Write;

/// Where questions go and answers come from.
pub struct Terminal<'a, W: Write> {
    pub talk: Talk,
    pub out: &'a mut W,
    pub next_line: NextLine<'a>,
    /// Answers in advance, by the field's name.
    pub answers: Vec<(String, String)>,
    /// Whether answers have to be shown, as nobody types them.
    pub echo: bool,
    /// Whether to say why with each question.
    pub why: bool,
}

/// What came of a question.
enum Reply {
    /// A cell for each field; an empty one is missing.
    Cells(Vec<String>),
    Unavailable,
    Back,
}

/// What came of one cell's question.
enum Cell {
    Is(String),
    Unavailable,
    Back,
}

impl<W: Write> Terminal<'_, W> {
    /// Asks a case through and says the answer.
    ///
    /// # Errors
    /// The input ended too early, or the output cannot be written.
    pub fn case(mut self, fresh: &Session<'_>) -> Result<(), Failure> {
        let model = fresh.model();
        let (mut session, mut before) = (fresh.clone(), Vec::new());
        self.given(&mut session)?;
        while let Some(question) = session.question() {
            let (feature, name, cost) = (question.feature, question.name.to_string(), question.cost);
            self.believe(&session)?;
            let fields = fields_of(model, feature);
            let group = fields.len() > 1;
            if group {
                writeln!(self.out, "{name}, cost {}, {} values:", short(cost), fields.len())?;
            }
            let prompt = |field: &Field| match group {
                true => format!("  {} ({})", field.label(), field.expected()),
                false => format!("{}, cost {} ({})", field.label(), short(cost), field.expected()),
            };
            match self.reply(&session, &fields, &prompt, &name)? {
                Reply::Back => match before.pop() {
                    Some(earlier) => session = earlier,
                    None if known(model).is_some() => {
                        session = fresh.clone();
                        self.given(&mut session)?;
                    }
                    None => writeln!(self.out, "  this is the first question")?,
                },
                Reply::Unavailable => {
                    before.push(session.clone());
                    session.unavailable(feature)?;
                    writeln!(self.out, "  {name} cannot be had: something else, then")?;
                }
                Reply::Cells(cells) => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    let earlier = session.clone();
                    match tell(&mut session, feature, &fields, &cells) {
                        Ok(notices) => {
                            before.push(earlier);
                            self.warn(&fields, &cells, &notices);
                        }
                        // Such as a number so large that the networks overflow: it is asked for again.
                        Err(error) => writeln!(self.out, "  {error}")?,
                    }
                }
            }
        }
        self.believe(&session)?;
        let spent = short(session.spent());
        writeln!(self.out, "answer: {} ({} asked, {spent} spent)", session.label(), session.acquisitions())?;
        Ok(())
    }

    /// Asks for what is known from the start.
    fn given(&mut self, session: &mut Session<'_>) -> Result<(), Failure> {
        let Some(encoding) = known(session.model()) else { return Ok(()) };
        loop {
            writeln!(self.out, "Known from the start:")?;
            let prompt = |field: &Field| format!("{} ({})", field.label(), field.expected());
            let mut cells: Vec<String> = Vec::new();
            while let Some(field) = encoding.known.get(cells.len()) {
                match self.cell(session, field, &prompt(field), &field.name)? {
                    Cell::Is(cell) => cells.push(cell),
                    // What is not known after all is a missing cell.
                    Cell::Unavailable => cells.push(String::new()),
                    Cell::Back if cells.pop().is_none() => {
                        writeln!(self.out, "  this is the first question")?;
                    }
                    Cell::Back => {}
                }
            }
            let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
            match session.tell_given(&cells) {
                Ok(notices) => {
                    self.warn(&encoding.known, &cells, &notices);
                    return Ok(());
                }
                Err(error) => writeln!(self.out, "  {error}")?,
            }
        }
    }

    /// Asks for all cells of a feature.
    fn reply(
        &mut self,
        session: &Session<'_>,
        fields: &[Field],
        prompt: &dyn Fn(&Field) -> String,
        feature: &str,
    ) -> Result<Reply, Failure> {
        let mut cells: Vec<String> = Vec::new();
        while let Some(field) = fields.get(cells.len()) {
            match self.cell(session, field, &prompt(field), feature)? {
                Cell::Is(cell) => cells.push(cell),
                Cell::Unavailable => return Ok(Reply::Unavailable),
                Cell::Back if cells.pop().is_none() => return Ok(Reply::Back),
                Cell::Back => {}
            }
        }
        Ok(Reply::Cells(cells))
    }

    /// Asks for a cell until it is one. A missing one is empty.
    fn cell(
        &mut self,
        session: &Session<'_>,
        field: &Field,
        prompt: &str,
        feature: &str,
    ) -> Result<Cell, Failure> {
        let mut doubted = None;
        loop {
            write!(self.out, "{prompt}? ")?;
            self.out.flush()?;
            let Some(line) = self.line(&field.name)? else {
                writeln!(self.out)?;
                return Err(Failure::Refused(format!(
                    "the input ended while `{feature}` was asked for: this case has no answer"
                )));
            };
            let complaint = match understand(field, &line) {
                Meant::Cell(cell) => return Ok(Cell::Is(cell)),
                Meant::Wish(Wish::Back) => return Ok(Cell::Back),
                Meant::Wish(Wish::Unavailable) => return Ok(Cell::Unavailable),
                Meant::Wish(Wish::Missing) if session.model().encoding().is_some() => {
                    return Ok(Cell::Is(String::new()));
                }
                Meant::Wish(Wish::Missing) => "the model knows of no missing values".into(),
                Meant::Wish(Wish::Why) => {
                    writeln!(self.out, "  {}", why::in_words(session))?;
                    continue;
                }
                Meant::Wish(Wish::Help) => {
                    self.help(field)?;
                    continue;
                }
                // Said twice, it is meant.
                Meant::Doubtful(_) if doubted.as_deref() == Some(line.trim()) => {
                    return Ok(Cell::Is(line.trim().to_string()));
                }
                Meant::Doubtful(what) => {
                    doubted = Some(line.trim().to_string());
                    writeln!(self.out, "  {what} If not, say it again")?;
                    continue;
                }
                // A word that the table has for a missing cell.
                Meant::Nothing(_)
                    if !line.trim().is_empty()
                        && session.model().encoding().is_some_and(|e| e.is_missing(&line)) =>
                {
                    return Ok(Cell::Is(String::new()));
                }
                Meant::Nothing(what) => what,
            };
            let answer = if complaint.ends_with('?') { " Answer" } else { "; answer" };
            writeln!(self.out, "  {complaint}{answer} with {}, or n/a (? for help)", field.expected())?;
        }
    }

    fn help(&mut self, field: &Field) -> Result<(), Failure> {
        writeln!(self.out, "  {}: {}", field.label(), field.expected())?;
        if field.words().len() > 8 {
            writeln!(self.out, "  all of them: {}", field.words().join(", "))?;
        }
        for (word, means) in [
            ("n/a", "cannot be had: something else is asked for"),
            ("missing", "was measured and gave nothing"),
            ("back", "undoes the last answer"),
            ("why", "what else would be asked, and how near the stop is"),
        ] {
            writeln!(self.out, "  {word:7}  {means}")?;
        }
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

    fn warn(&mut self, fields: &[Field], cells: &[&str], notices: &[Notice]) {
        for ((field, cell), notice) in fields.iter().zip(cells).zip(notices) {
            if let Some(text) = odd(field, cell, notice) {
                say(self.talk, format_args!("warning: {text}"));
            }
        }
    }

    /// Shows the probability of each class as bars.
    fn believe(&mut self, session: &Session<'_>) -> std::io::Result<()> {
        const BAR: f32 = 30.0;
        let classes = session.model().problem().classes();
        let width = classes.iter().map(|class| class.chars().count()).max().unwrap_or(0).min(30);
        for class in shown_classes(session) {
            let p = session.predict()[class];
            let bar = "█".repeat((p * BAR).round() as usize);
            let line = format!("  {:width$} {:5.1}% {bar}", classes[class], 100.0 * p);
            writeln!(self.out, "{}", line.trim_end())?;
        }
        if self.why {
            writeln!(self.out, "  {}", why::in_words(session))?;
        }
        Ok(())
    }
}
