//! Large allocations that fail with an error, where Rust's own would end the process.

use crate::error::{Error, Result};

/// Makes room for exactly so many more values.
///
/// # Errors
/// The system gives no memory; `what` says what it was for.
pub(crate) fn reserve<T>(to: &mut Vec<T>, more: usize, what: &str) -> Result<()> {
    to.try_reserve_exact(more).map_err(|_| none_for(what, to.len().saturating_add(more), size_of::<T>()))
}

/// Appends a value.
///
/// # Errors
/// The system gives no memory; `what` says what it was for.
#[cfg(feature = "table")]
pub(crate) fn push<T>(to: &mut Vec<T>, value: T, what: &str) -> Result<()> {
    if to.len() == to.capacity() {
        to.try_reserve(1).map_err(|_| none_for(what, to.len().saturating_mul(2), size_of::<T>()))?;
    }
    to.push(value);
    Ok(())
}

fn none_for(what: &str, values: usize, bytes: usize) -> Error {
    Error::HostMemory { what: what.into(), needed: (values as u64).saturating_mul(bytes as u64) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn what_cannot_be_had_is_an_error() {
        let mut values: Vec<u64> = vec![1];
        let error = reserve(&mut values, usize::MAX / 16, "the rows").expect_err("more than any machine has");
        assert_eq!(error.kind(), ErrorKind::OutOfMemory);
        assert!(error.to_string().contains("no memory for the rows (92233"), "{error}");
        reserve(&mut values, 3, "the rows").expect("a little");
        assert_eq!((values.len(), values.capacity()), (1, 4));
    }
}
