//! The methods, one module each.

pub mod nmppg;
