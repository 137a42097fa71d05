//! Rows of a file, one at a time: nothing but the row at hand is in memory.

use super::bounded::Bounded;
use super::foreign::complaint;
use crate::data::nearest::did_you_mean;
use crate::error::{Error, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// A row's cells, and where they are.
#[derive(Clone, Debug, Default)]
pub struct Cells {
    /// The cells as text.
    pub cells: csv::StringRecord,
    /// The row's number, from 1, the header not counted.
    pub row: u64,
    /// The line of the file it starts at, from 1.
    pub line: u64,
}

/// Reads the next row; `false` at the end.
type NextRow = Box<dyn FnMut(&mut Cells) -> Result<bool>>;

/// A table that is read row by row.
pub struct TableReader {
    path: PathBuf,
    header: Vec<String>,
    semicolons: bool,
    rows: NextRow,
}

/// How many bytes of the beginning are looked at to tell the delimiter.
const BEGINNING: usize = 64 * 1024;

/// Opens a file to read its bytes, unpacked if they are gzipped.
///
/// # Errors
/// The file cannot be opened.
pub fn open_bytes(path: &Path) -> Result<Box<dyn BufRead>> {
    let file = File::open(path).map_err(|error| Error::io(path, error))?;
    unpacked(path, BufReader::with_capacity(1 << 20, file))
}

/// Bytes from anywhere, unpacked if they are gzipped; the path is for messages.
///
/// # Errors
/// They cannot be read.
pub fn unpacked(path: &Path, mut bytes: impl BufRead + 'static) -> Result<Box<dyn BufRead>> {
    let packed = bytes.fill_buf().map_err(|error| Error::io(path, error))?.starts_with(&[0x1f, 0x8b]);
    Ok(if packed {
        Box::new(BufReader::with_capacity(1 << 20, flate2::bufread::MultiGzDecoder::new(bytes)))
    } else {
        Box::new(bytes)
    })
}

/// The name of a first column that has none: an index, as pandas and R write it. It is pandas' own name for it.
pub const UNNAMED: &str = "Unnamed: 0";

/// The delimiter of a table: the one that the first line has most of, outside of quotes.
fn delimiter(path: &Path, beginning: &[u8]) -> u8 {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    if name.trim_end_matches(".gz").ends_with(".tsv") {
        return b'\t';
    }
    let mut quoted = false;
    let mut counts = [(b',', 0), (b'\t', 0), (b';', 0)];
    for &byte in beginning {
        match byte {
            b'"' => quoted = !quoted,
            b'\n' if !quoted => break,
            _ if !quoted => counts.iter_mut().filter(|(d, _)| *d == byte).for_each(|(_, n)| *n += 1),
            _ => {}
        }
    }
    let most = counts.iter().map(|(_, n)| *n).max().unwrap_or(0);
    counts.iter().find(|(_, n)| *n == most).map_or(b',', |(d, _)| *d)
}

/// What begins like this is a table of text, as far as can be told.
fn refuse_no_text(path: &Path, beginning: &[u8]) -> Result<()> {
    if beginning.is_empty() {
        return Err(Error::table(path, "the file is empty: a table has a header and at least one row"));
    }
    if beginning.starts_with(&[0xff, 0xfe]) || beginning.starts_with(&[0xfe, 0xff]) {
        return Err(Error::table(path, "this is UTF-16 text: save the table as UTF-8"));
    }
    if let Some(what) = complaint(beginning, &path.to_string_lossy()) {
        return Err(Error::table(path, what));
    }
    if beginning.contains(&0) {
        return Err(Error::table(path, "there is a zero byte in it: this is no text, let alone a table"));
    }
    Ok(())
}

impl TableReader {
    /// Opens a table: CSV, TSV or with semicolons, plain or gzipped, with a header.
    ///
    /// # Errors
    /// The file cannot be read or is empty, or its header has an empty name or one twice.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(path.as_ref(), None)
    }

    /// Reads a table from standard input, as from a file. There it can be read once only.
    ///
    /// # Errors
    /// As [`TableReader::open`].
    pub fn standard_input() -> Result<Self> {
        let name = Path::new("standard input");
        let bytes = unpacked(Path::new(name), std::io::stdin().lock())?;
        Self::read(name, bytes, None)
    }

    /// Opens a table that has no header.
    ///
    /// # Errors
    /// As [`TableReader::open`].
    pub fn open_headless(path: impl AsRef<Path>, names: &[&str]) -> Result<Self> {
        Self::open_with(path.as_ref(), Some(names.iter().map(|name| name.to_string()).collect()))
    }

    fn open_with(path: &Path, names: Option<Vec<String>>) -> Result<Self> {
        Self::read(path, open_bytes(path)?, names)
    }

    /// Reads a table from anywhere; the path is for messages and the delimiter.
    ///
    /// # Errors
    /// As [`TableReader::open`].
    pub fn read(path: &Path, bytes: impl BufRead + 'static, names: Option<Vec<String>>) -> Result<Self> {
        let failed = |error| Error::io(path, error);
        let mut bytes = bytes;
        let mut beginning = Vec::new();
        bytes.by_ref().take(BEGINNING as u64).read_to_end(&mut beginning).map_err(failed)?;
        refuse_no_text(path, &beginning)?;
        let bom = if beginning.starts_with(&[0xef, 0xbb, 0xbf]) { 3 } else { 0 };
        beginning.drain(..bom);
        let delimiter = delimiter(path, &beginning);
        let (bounded, row_begins) = Bounded::new(std::io::Cursor::new(beginning).chain(bytes), delimiter);
        let mut csv = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .has_headers(false)
            .flexible(true)
            .from_reader(bounded);
        let named = names.is_some();
        let header = match names {
            Some(names) => names,
            None => {
                let mut record = csv::ByteRecord::new();
                if !csv.read_byte_record(&mut record).map_err(|error| bad(path, "the header", error))? {
                    return Err(Error::table(path, "there are only empty lines: a table has a header"));
                }
                header(path, &record)?
            }
        };
        let width = header.len();
        let names = header.clone();
        let path = path.to_path_buf();
        let mut raw = csv::ByteRecord::new();
        let mut row = 0;
        let whose = path.clone();
        let rows = move |to: &mut Cells| -> Result<bool> {
            row_begins.tell();
            row += 1;
            if !csv.read_byte_record(&mut raw).map_err(|error| bad(&whose, &format!("row {row}"), error))? {
                return Ok(false);
            }
            let line = raw.position().map_or(0, |position| position.line());
            if raw.len() != width {
                let hint = if raw.iter().any(|cell| cell.len() > BEGINNING) {
                    "; a cell is very long: is a quote never closed?"
                } else if named {
                    ""
                } else {
                    "; is there a delimiter in a cell without quotes around it?"
                };
                return Err(Error::table(
                    &whose,
                    format!(
                        "row {row} (line {line}) has {} cells, but the header has {width}{hint}",
                        raw.len()
                    ),
                ));
            }
            to.row = row;
            to.line = line;
            to.cells.clear();
            for (index, cell) in raw.iter().enumerate() {
                let text = std::str::from_utf8(cell).map_err(|error| {
                    let what = format!(
                        "row {row} (line {line}), column `{}`: not UTF-8 text; save the table as UTF-8",
                        names[index]
                    );
                    Error::table(&whose, what).because(error)
                })?;
                to.cells.push_field(text);
            }
            Ok(true)
        };
        Ok(Self { path, header, semicolons: delimiter == b';', rows: Box::new(rows) })
    }

    /// The same table through a change: a new header, and for each row its new cells, or `false` to leave
    /// it out. What is wrong with a row is told with its place.
    pub fn mapped(
        self,
        header: Vec<String>,
        mut change: impl FnMut(&csv::StringRecord, &mut csv::StringRecord) -> Result<bool> + 'static,
    ) -> Self {
        let Self { path, semicolons, mut rows, .. } = self;
        let whose = path.clone();
        let mut from = Cells::default();
        let rows = move |to: &mut Cells| loop {
            if !rows(&mut from)? {
                return Ok(false);
            }
            to.cells.clear();
            let kept = change(&from.cells, &mut to.cells).map_err(|error| {
                let (row, line) = (from.row, from.line);
                Error::table(&whose, format!("row {row} (line {line}): {}", error.message()))
            })?;
            if kept {
                (to.row, to.line) = (from.row, from.line);
                return Ok(true);
            }
        };
        Self { path, header, semicolons, rows: Box::new(rows) }
    }

    /// The same table, with somebody told how many rows have been read, every so many rows.
    pub fn watched(self, every: u64, mut tell: impl FnMut(u64) + 'static) -> Self {
        let Self { path, header, semicolons, mut rows } = self;
        let mut read = 0;
        let rows = move |to: &mut Cells| {
            let there = rows(to)?;
            read += u64::from(there);
            if there && read % every == 0 {
                tell(read);
            }
            Ok(there)
        };
        Self { path, header, semicolons, rows: Box::new(rows) }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its cells are separated by semicolons, as they are where commas are decimal.
    pub fn has_semicolons(&self) -> bool {
        self.semicolons
    }

    /// The names of the columns.
    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// The column of a name.
    ///
    /// # Errors
    /// There is none; the error says which there are.
    pub fn column(&self, name: &str) -> Result<usize> {
        self.header.iter().position(|column| column == name).ok_or_else(|| {
            Error::table(
                &self.path,
                format!(
                    "there is no column `{name}`; there are {}{}",
                    crate::data::encoding::listed(&self.header),
                    did_you_mean(name, self.header.iter().map(String::as_str))
                ),
            )
        })
    }

    /// Reads the next row into `to`; `false` at the end.
    ///
    /// # Errors
    /// The file cannot be read, or the row has too many or too few cells or is no UTF-8 text. After a complaint about a
    /// row ([`ErrorKind::Data`](crate::ErrorKind::Data)) the next call goes on with the row below.
    pub fn next(&mut self, to: &mut Cells) -> Result<bool> {
        (self.rows)(to)
    }
}

fn bad(path: &Path, row: &str, error: csv::Error) -> Error {
    let what = error.to_string();
    match error.into_kind() {
        // What comes after such a row is not known, so this is no complaint about a row that could be left out.
        csv::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            Error::file(path, format!("{row}: {error}"))
        }
        csv::ErrorKind::Io(error) => Error::io(path, error),
        _ => Error::table(path, what),
    }
}

fn header(path: &Path, record: &csv::ByteRecord) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    for (index, name) in record.iter().enumerate() {
        let Ok(name) = std::str::from_utf8(name) else {
            return Err(Error::table(
                path,
                format!("header, column {}: not UTF-8 text; save the table as UTF-8", index + 1),
            ));
        };
        let name = match name.trim() {
            "" if index == 0 && record.len() > 1 => UNNAMED,
            name => name,
        };
        if name.is_empty() {
            return Err(Error::table(
                path,
                format!("header, column {}: the name is empty; every column needs one", index + 1),
            ));
        }
        if let Some(first) = names.iter().position(|other| other == name) {
            return Err(Error::table(
                path,
                format!("header: columns {} and {} are both named `{name}`", first + 1, index + 1),
            ));
        }
        names.push(name.to_string());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(name: &str, text: &[u8]) -> Result<Vec<Vec<String>>> {
        let mut table = TableReader::read(Path::new(name), std::io::Cursor::new(text.to_vec()), None)?;
        let mut all = vec![table.header().to_vec()];
        let mut cells = Cells::default();
        while table.next(&mut cells)? {
            all.push(cells.cells.iter().map(String::from).collect());
        }
        Ok(all)
    }

    #[test]
    fn what_spreadsheets_write_is_read() {
        let plain = rows("t.csv", b"a,b\n1,x\n").expect("reads");
        assert_eq!(plain, [["a", "b"], ["1", "x"]]);
        assert_eq!(rows("t.csv", b"\xef\xbb\xbfa,b\r\n1,x\r\n").expect("BOM and CRLF"), plain);
        assert_eq!(rows("t.tsv", b"a\tb\n1\tx").expect("tabs"), plain);
        assert_eq!(rows("t.csv", b"a;b\n1;x\n\n").expect("semicolons, empty line"), plain);
        let quoted = rows("t.csv", b"a,b\n1,\"x\ny, \"\"z\"\"\"\n").expect("a quoted newline");
        assert_eq!(quoted[1], ["1", "x\ny, \"z\""]);
        assert_eq!(rows("t.csv", b",b\n0,x\n").expect("an index without a name")[0], [UNNAMED, "b"]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let says = |text: &[u8], what: &str| {
            let error = rows("t.csv", text).expect_err("refused").to_string();
            assert!(error.starts_with("t.csv: ") && error.contains(what), "{error}");
        };
        says(b"", "empty");
        says(b"\n\n", "only empty lines");
        says(b"a,b\n1,2\n3\n", "row 2 (line 3) has 1 cells, but the header has 2");
        says(b"a,b\n1,2,3\n", "row 1 (line 2) has 3 cells");
        says(b"a,a\n1,2\n", "columns 1 and 2 are both named `a`");
        says(b"a,,c\n1,2,3\n", "column 2: the name is empty");
        says(b",,c\n1,2,3\n", "column 2: the name is empty");
        says(b",Unnamed: 0\n1,2\n", "columns 1 and 2 are both named");
        says(b"PAR1\x15\x00\x15", "this is a Parquet file");
        says(b"a,b\n1,\xff\n", "row 1 (line 2), column `b`: not UTF-8");
        says(b"\xff\xfea\0", "UTF-16");
        says(b"a\0b", "zero byte");
    }
}
