//! The rows that a model was trained beside, found again from whatever folder.

use crate::commands::room::Room;
use crate::commands::source::Source;
use crate::commands::{Failure, Talk};
use querent::data::{Dataset, catalog};
use querent::run::{FILE, Run};
use querent::{Error, Model};
use std::path::{Path, PathBuf};

/// The data set of the run that a model is of.
///
/// # Errors
/// There is no run beside the model, its problem is not found, or it has changed since.
pub fn trained_beside(
    model: &Model,
    file: &Path,
    data_dir: Option<&Path>,
    talk: Talk,
) -> Result<Dataset, Failure> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let folders = [folder.to_path_buf(), folder.join("..")];
    let Some(folder) = folders.iter().find(|folder| folder.join(FILE).exists()) else {
        return Err(Error::file(
            file,
            format!("there is no {FILE} beside it to tell its test rows; name a table to evaluate on"),
        )
        .into());
    };
    let run = Run::load(folder)?;
    // Where training found the files counts only as long as they are there: runs move, and so do files.
    let before = run.data_dir.as_ref().map(PathBuf::from).filter(|dir| dir.join(&run.problem).is_dir());
    let said = data_dir.map(Path::to_path_buf).or_else(catalog::data_dir_set).or(before);
    let problem = problem_of(&run, folder);
    let source = Source::find(&problem, said.as_deref())?;
    if let (Source::File(path), false) = (&source, Path::new(&problem).is_file()) {
        return Err(Error::file(
            path,
            format!(
                "the model's run was trained on it ({}), and it is not there any more, nor above the run's folder; \
                 name a table to evaluate on",
                run.problem_file.as_deref().unwrap_or("in the folder that training ran in")
            ),
        )
        .into());
    }
    let data = source.load(model.seed(), &Room::of_run(run.sample), talk)?.data;
    if data.problem() != model.problem() || data.normalization() != model.normalization() {
        return Err(Error::file(
            Path::new(&problem),
            "the problem or its table has changed since the model was trained; name a table to evaluate on",
        )
        .into());
    }
    Ok(data)
}

/// What the run was trained on, for this folder: a `problem.toml` is where it was then; or, if run and problem have moved
/// together, as far from the run's folder or one above it as it was from the folder that training ran in.
fn problem_of(run: &Run, folder: &Path) -> String {
    let said = Path::new(&run.problem);
    if said.extension().is_none_or(|ending| ending != "toml") && catalog::find(&run.problem).is_ok() {
        return run.problem.clone();
    }
    let was = run.problem_file.iter().map(PathBuf::from);
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    // The run's folder may be given by way of a link, or with `..` in it.
    let folder = folder.canonicalize().unwrap_or(folder);
    let near = folder.ancestors().map(|above| above.join(said));
    // Runs of older versions say no more than that.
    let here = [said.to_path_buf()];
    let found = was.chain(near).chain(here).find(|path| path.is_file());
    found.map_or_else(|| run.problem.clone(), |path| path.display().to_string())
}
