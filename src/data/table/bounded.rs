//! A row that never ends. A quote that is not closed makes one cell of the rest of a file, and a small packed file may
//! unpack to a cell larger than the memory: so a row may have so many bytes and no more.

use std::cell::Cell;
use std::io::{self, Read};
use std::rc::Rc;

/// Bytes of a row at most: some hundred times the widest tables there are.
pub const ROW: usize = 32 << 20;

/// Bytes of which so many may be read until the next row begins.
pub struct Bounded<R> {
    bytes: R,
    left: Rc<Cell<usize>>,
}

/// Tells [`Bounded`] that a row begins.
pub struct RowBegins(Rc<Cell<usize>>);

impl<R> Bounded<R> {
    /// The bytes, and who tells that a row begins.
    pub fn new(bytes: R) -> (Self, RowBegins) {
        let left = Rc::new(Cell::new(ROW));
        (Self { bytes, left: Rc::clone(&left) }, RowBegins(left))
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
        if self.left.get() == 0 {
            let what = format!("it has more than {} MiB: is a quote never closed?", ROW >> 20);
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
        }
        let most = to.len().min(self.left.get());
        let read = self.bytes.read(&mut to[..most])?;
        self.left.set(self.left.get() - read);
        Ok(read)
    }
}
