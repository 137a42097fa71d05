//! Tables from files: CSV and TSV, plain or gzipped, described by a `problem.toml`.

mod draft;
mod foreign;
mod load;
mod prices;
mod profile;
mod reader;
mod rows;
pub mod schema;
mod split;

pub use draft::draft;
pub use load::{Prepared, prepare};
pub use prices::{Price, read_prices};
pub use profile::{Profile, profile};
pub use reader::{Cells, TableReader, open_bytes, unpacked};
pub use rows::{Odd, read_rows, read_rows_with};
pub use schema::Schema;
pub use split::stratified;
