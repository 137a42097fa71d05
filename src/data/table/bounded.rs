//! A row that never ends. A quote that is not closed makes one cell of the rest of a file, and a small packed file may
//! unpack to a cell larger than the memory: so a row may have so many bytes and no more, and a file may not end inside of
//! quotes.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes of a row at most: some hundred times the widest tables there are.
pub const ROW: usize = 32 << 20;

/// Where in a cell the bytes are, as CSV has it: a quote counts as one only where a cell begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Plain,
    Quoted,
    /// Behind a quote inside of quotes: the end, or the first of a doubled one.
    Doubt,
}

/// Bytes of which so many may be read until the next row begins.
pub struct Bounded<R> {
    bytes: R,
    delimiter: u8,
    left: Rc<Cell<usize>>,
    at: At,
    line: u64,
    /// The line in which the last quote was opened.
    opened: u64,
}

/// Tells [`Bounded`] that a row begins.
pub struct RowBegins(Rc<Cell<usize>>);

impl<R> Bounded<R> {
    /// The bytes, and who tells that a row begins.
    pub fn new(bytes: R, delimiter: u8) -> (Self, RowBegins) {
        let left = Rc::new(Cell::new(ROW));
        let bounded = Self { bytes, delimiter, left: Rc::clone(&left), at: At::Start, line: 1, opened: 0 };
        (bounded, RowBegins(left))
    }

    fn watch(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.at = match (self.at, byte) {
                (At::Start, b'"') => {
                    self.opened = self.line;
                    At::Quoted
                }
                (At::Quoted, b'"') => At::Doubt,
                (At::Doubt, b'"') => At::Quoted,
                (At::Quoted, _) => At::Quoted,
                (_, b'\n' | b'\r') => At::Start,
                (_, byte) if byte == self.delimiter => At::Start,
                _ => At::Plain,
            };
            self.line += u64::from(byte == b'\n');
        }
    }
}

impl RowBegins {
    /// A row begins.
    pub fn tell(&self) {
        self.0.set(ROW);
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let refused = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if self.left.get() == 0 {
            return refused(format!("it has more than {} MiB: is a quote never closed?", ROW >> 20));
        }
        let most = to.len().min(self.left.get());
        let read = self.bytes.read(&mut to[..most])?;
        self.left.set(self.left.get() - read);
        self.watch(&to[..read]);
        if read == 0 && !to.is_empty() && self.at == At::Quoted {
            // Once: whoever asks again is told that this is the end.
            self.at = At::Plain;
            return refused(format!("the quote that is opened in line {} is never closed", self.opened));
        }
        Ok(read)
    }
}
