//! Where the data folder is.

use crate::error::{Error, Result};
use etcetera::base_strategy::{BaseStrategy, choose_native_strategy};
use std::path::{Path, PathBuf};

/// Where the data folder is: as said, or as `QUERENT_DATA` says, or `querent` in the user's data folder
/// (`~/.local/share` on Linux).
///
/// # Errors
/// Nothing says it, and the user has no data folder.
pub fn data_dir(said: Option<&Path>) -> Result<PathBuf> {
    let said = said.map(Path::to_path_buf).or_else(data_dir_set);
    said.or_else(data_dir_of_user).ok_or_else(|| {
        Error::Data(format!("there is no folder to look for data sets in, as no home is known: {}", ways()))
    })
}

/// The data folder as `QUERENT_DATA` says.
pub fn data_dir_set() -> Option<PathBuf> {
    std::env::var_os("QUERENT_DATA").filter(|set| !set.is_empty()).map(PathBuf::from)
}

/// The data folder where nothing else is said.
fn data_dir_of_user() -> Option<PathBuf> {
    let folder = choose_native_strategy().ok()?.data_dir();
    // An empty HOME would make it a path of wherever one happens to be.
    folder.is_absolute().then(|| folder.join("querent"))
}

/// How to say where the data folder is.
pub(super) fn ways() -> String {
    let default = match data_dir_of_user() {
        Some(folder) => folder.display().to_string(),
        None => "`querent` in the user's data folder".into(),
    };
    format!("--data-dir says where to look, else the variable QUERENT_DATA, else it is {default}")
}
