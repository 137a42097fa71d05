//! The subcommands of `querent`, a file each, and what they share.

pub mod ask;
mod choice;
pub mod compare;
pub mod completions;
mod curve;
pub mod data;
pub mod eval;
pub mod flags;
pub mod info;
pub mod init;
pub mod interrupt;
pub mod methods;
mod oddities;
pub mod page;
pub mod predict;
mod progress;
pub mod report;
mod room;
mod source;
mod threads;
pub mod train;

use std::io::Write;

/// Why a command could not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The library says why.
    #[error(transparent)]
    Library(#[from] querent::Error),
    /// The results cannot be shown.
    #[error("standard output: {0}")]
    Output(#[from] std::io::Error),
    /// Something was asked for that cannot be.
    #[error("{0}")]
    Refused(String),
}

/// How much is said on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Talk {
    /// Results and errors only.
    Quiet,
    /// What matters.
    Plain,
}

/// Says something on standard error, unless it is to be quiet.
pub fn say(talk: Talk, what: impl std::fmt::Display) {
    if talk > Talk::Quiet {
        // Nobody listening is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{what}");
    }
}

/// Writes rows of cells as an indented table: each column as wide as its widest cell, the first
/// `left` columns aligned to the left, the others to the right.
pub fn write_table(out: &mut impl Write, left: usize, rows: &[Vec<String>]) -> std::io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            line += &if column < left { format!("  {cell:width$}") } else { format!("  {cell:>width$}") };
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = [["a", "é", "1"], ["long", "b", "100"]].map(|row| row.map(String::from).to_vec());
        let mut out = Vec::new();
        write_table(&mut out, 2, &rows).expect("writes to memory");
        assert_eq!(String::from_utf8(out).expect("text"), "  a     é    1\n  long  b  100\n");
    }
}
