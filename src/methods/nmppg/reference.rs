//! A predictor that always sees the same columns. Of everything, it is the best that acquiring could reach if nothing had
//! a price; of a few, a fixed set that everybody is asked; and it is cheap to train, so it also tells which settings a
//! table likes.

use super::Stepper;
use super::config::Config;
use crate::data::{Dataset, Part, Split};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::alpha::Alpha;
use crate::policy::history::Evaluation;
use crate::problem::{Feature, Problem};

/// What came of a predictor that always sees the same.
pub(crate) struct Reference {
    /// On the validation rows, at the epoch with the least loss there.
    pub validation: Evaluation,
    /// The answer to each test row and its loss, at that epoch.
    pub answers: Vec<(u32, f64)>,
}

/// Trains the reference with the configuration's predictor, for as many epochs as the warm-up and one
/// stage have, and evaluates the epoch with the best validation loss on the test rows.
///
/// # Errors
/// Settings that do not fit the problem, no validation or test rows, or a device that was lost.
pub fn reference_blocking(engine: &Engine, data: &Dataset, config: &Config) -> Result<Evaluation> {
    if data.sizes()[1] == 0 || data.sizes()[2] == 0 {
        return Err(Error::Data("the reference needs validation and test rows".into()));
    }
    let columns: Vec<usize> = (0..data.problem().columns()).collect();
    let Reference { answers, .. } = seeing_blocking(engine, data, config, &columns)?;
    let labels = &data.splits()[Part::Test as usize].y;
    let instances = answers.len() as f64;
    let right = answers.iter().zip(labels).filter(|((guess, _), label)| guess == *label).count();
    let loss = answers.iter().map(|(_, loss)| loss).sum::<f64>() / instances;
    Ok(Evaluation {
        objective: loss,
        loss,
        accuracy: right as f64 / instances,
        instances,
        ..Evaluation::default()
    })
}

/// Trains a predictor that always sees these columns.
///
/// # Errors
/// Settings that do not fit the problem, no validation rows, or a device that was lost.
pub(crate) fn seeing_blocking(
    engine: &Engine,
    data: &Dataset,
    config: &Config,
    columns: &[usize],
) -> Result<Reference> {
    let data = always_seen(data, columns)?;
    let epochs = config.schedule.warm_up_epochs + config.schedule.stage_epochs;
    // The warm-up's falling rate, stretched over all epochs. Nothing is asked, so no trade-off counts.
    let config = config.clone().with(|c| {
        (c.alpha, c.horizon, c.schedule.warm_up_epochs) = (Alpha::One(0.0), None, epochs);
    });
    let mut stepper = Stepper::new(engine, &data, config.clone())?;
    let pass = stepper.steps_per_epoch();
    let mut best: Option<Reference> = None;
    let mut since_best = 0;
    for epoch in 0..epochs {
        stepper.set_stage(config.warm_up_stage(epoch, pass))?;
        stepper.reference_steps(config.whole_passes(pass));
        stepper.means_blocking()?;
        let validation = stepper.evaluate_all_blocking(Part::Validation)?;
        since_best += 1;
        if best.as_ref().is_none_or(|best| validation.loss < best.validation.loss) {
            best = Some(Reference { validation, answers: stepper.answers_blocking(Part::Test)? });
            since_best = 0;
        }
        if since_best >= config.schedule.patience {
            break;
        }
    }
    best.ok_or_else(|| Error::Config("the reference was given no epochs".into()))
}

/// The same rows with these columns known from the start, and a feature that is always zero, as there has to be one.
/// What is always seen needs no mask: inputs that are always one are biases in all but name, and hundreds of them, which
/// Adam moves together, leave a network no peace (MNIST: 0.954 of the test rows right with masks, 0.978 without).
fn always_seen(data: &Dataset, columns: &[usize]) -> Result<Dataset> {
    let problem = data.problem();
    let idle = Feature { name: "nothing".into(), cost: 0.0 };
    let small = Problem::new(vec![idle], vec![0], problem.classes().to_vec())?
        .with_known_columns(columns.len())
        .with_class_weights(problem.class_weights().to_vec())?;
    let [train, validation, test] = [Part::Train, Part::Validation, Part::Test].map(|part| {
        let y = data.splits()[part as usize].y.clone();
        let mut x = Vec::with_capacity(y.len() * (columns.len() + 1));
        for index in 0..y.len() {
            let row = data.row(part, index);
            x.push(0.0);
            x.extend(columns.iter().map(|&column| row[column]));
        }
        Split { x, y }
    });
    Dataset::new(small, train, validation, test)
}
