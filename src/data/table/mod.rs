//! Tables from files: CSV and TSV, plain or gzipped, described by a `problem.toml`.

mod bounded;
mod cells;
mod check;
mod counts;
mod cut;
mod draft;
mod fit;
mod foreign;
mod guess;
mod knots;
mod load;
mod prices;
mod profile;
mod reader;
mod rows;
mod sample;
pub mod schema;
mod split;
mod survey;
mod target;

pub use cut::{Cut, NumberTarget};
pub use draft::{checks, draft};
pub use guess::{Doubt, Guess};
pub use load::{Prepared, prepare, prepare_some};
pub use prices::{Price, read_prices};
pub use profile::{Profile, profile, profile_cut};
pub use reader::{Cells, TableReader, open_bytes, unpacked};
pub use rows::{Odd, read_rows, read_rows_with};
pub use sample::Sample;
pub use schema::Schema;
pub use split::stratified;
pub use survey::Survey;
