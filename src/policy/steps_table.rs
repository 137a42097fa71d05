//! Episodes as a table of every step, for anybody to check.

use super::evaluate::Episodes;
use crate::problem::Problem;

/// Columns of the table of every step.
pub const COLUMNS: &str = "episode,step,action,guess,label,probability,cost,forced_stop";

impl Episodes {
    /// Writes a table of every step: `episode,step,action,guess,label,probability,cost,forced_stop`. Steps count from
    /// 1; `guess`, its `probability` and `cost`, all that was spent, are those after the action; a stop is a row of its
    /// own, `forced_stop` is 1 if nothing more could be acquired.
    ///
    /// # Errors
    /// What the writer has.
    pub fn write_csv(
        &self,
        problem: &Problem,
        labels: &[u32],
        out: &mut impl std::io::Write,
    ) -> std::io::Result<()> {
        writeln!(out, "{COLUMNS}")?;
        self.write_rows(problem, labels, "", out)
    }

    /// The rows of that table, each behind these cells.
    ///
    /// # Errors
    /// What the writer has.
    pub fn write_rows(
        &self,
        problem: &Problem,
        labels: &[u32],
        before: &str,
        out: &mut impl std::io::Write,
    ) -> std::io::Result<()> {
        let class = |index: u32| quoted(&problem.classes()[index as usize]);
        for (index, (episode, &label)) in self.episodes.iter().zip(labels).enumerate() {
            let last = episode.path.len();
            for step in 1..=last + 1 {
                let action = match episode.path.get(step - 1) {
                    Some(&feature) => quoted(&problem.features()[feature as usize].name),
                    None => "stop".into(),
                };
                let moment = &episode.moments[step.min(last)];
                let forced = u8::from(step > last && episode.forced);
                writeln!(
                    out,
                    "{before}{index},{step},{action},{},{},{},{},{forced}",
                    class(moment.guess),
                    class(label),
                    moment.probability,
                    moment.spent
                )?;
            }
        }
        Ok(())
    }
}

/// A cell of a CSV file.
pub fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}
