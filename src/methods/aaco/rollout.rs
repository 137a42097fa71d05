//! The search rolled out on rows of a table, on all cores of the host: what it asks of each, which the predictor is then
//! trained on; and the range of α that makes a difference to it.

use super::config::Config;
use super::kernels::stream;
use super::policy::Search;
use super::rows;
use crate::data::{Dataset, Part};
use crate::error::Result;
use crate::methods::alpha::{Alpha, SMALLEST, Survey, narrowed};
use crate::policy::{AlphaRange, Case};
use crate::random::Source;
use rayon::prelude::*;

/// α of a range that rollouts have: as few as this, so that what is found with nothing known is found once for each.
const ALPHAS: usize = 8;
/// α at which a range is tried before it is narrowed, and validation rows that it is tried on, at most.
const TRIED: usize = 9;
const TRIED_ROWS: usize = 64;
/// Validation rows that tell what nothing and everything are worth, at most.
const SURVEYED_ROWS: usize = 4_000;

/// What the rollouts of a round have visited, as the plan's buffers have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rolled {
    pub slots: Vec<u32>,
    pub visited: Vec<u32>,
}

/// Rolls the search out on rows of the training and of the validation split.
pub(super) fn roll_out(
    search: &Search,
    data: &Dataset,
    config: &Config,
    range: Option<AlphaRange>,
    round: usize,
) -> Result<Rolled> {
    let steps = config.steps(data.problem());
    let sizes = data.sizes();
    let rolled = config.rolled([sizes[0], sizes[1]]);
    let alphas = match (config.alpha, range) {
        (Alpha::One(alpha), _) => vec![alpha],
        (_, Some(range)) => range.grid(ALPHAS),
        (_, None) => vec![search.alpha],
    };
    let source = Source::new(config.seed, stream::ROLLOUTS, round as u32);
    let mut slots = vec![0; sizes.iter().sum()];
    let mut visited = Vec::new();
    let (mut first_row, mut first_slot) = (0, 0);
    for (part, count) in [Part::Train, Part::Validation].into_iter().zip(rolled) {
        let all = sizes[part as usize];
        let draw = |at: usize, what: u32, n: usize| {
            let word = source.bits(at as u32, 2 * part as u32 + what, 0)[0];
            ((u64::from(word) * n as u64) >> 32) as usize
        };
        let chosen: Vec<usize> = rows::order(config.seed, all).take(count).collect();
        let paths: Vec<Result<Vec<u32>>> = chosen
            .par_iter()
            .enumerate()
            .map(|(place, &row)| {
                // The model's rows are in the same order.
                let left_out = Some(place).filter(|_| part == Part::Train);
                path(search, &data.row(part, row), alphas[draw(place, 0, alphas.len())], left_out, steps)
            })
            .collect();
        for path in paths {
            let path = path?;
            visited.extend(path.iter().map(|feature| feature + 1));
            visited.extend(std::iter::repeat_n(0, steps - path.len()));
        }
        if count > 0 {
            // Who was not rolled out borrows a path, by chance, whatever the label is.
            let of_split = &mut slots[first_row..][..all];
            let borrowed = of_split.iter_mut().enumerate();
            borrowed.for_each(|(row, slot)| *slot = (1 + first_slot + draw(row, 1, count)) as u32);
            for (place, &row) in chosen.iter().enumerate() {
                of_split[row] = (1 + first_slot + place) as u32;
            }
        }
        (first_row, first_slot) = (first_row + all, first_slot + count);
    }
    Ok(Rolled { slots, visited })
}

/// What the search asks of a row, one feature after the other.
///
/// # Errors
/// The row makes the predictor overflow.
pub(super) fn path(
    search: &Search,
    row: &[f32],
    alpha: f64,
    left_out: Option<usize>,
    steps: usize,
) -> Result<Vec<u32>> {
    let mut case = search.instance(alpha, left_out);
    let mut path = Vec::new();
    if !search.oracle.columns_of(None).is_empty() {
        show(search, &mut case, None, row)?;
    }
    while path.len() < steps {
        match case.best(&|_| true) {
            Some(feature) if !case.stops(feature) => {
                show(search, &mut case, Some(feature), row)?;
                path.push(feature as u32);
            }
            _ => break,
        }
    }
    Ok(path)
}

/// Lets a case see a feature of a row.
fn show(search: &Search, case: &mut impl Case, feature: Option<usize>, row: &[f32]) -> Result<()> {
    let columns = search.oracle.columns_of(feature);
    let inputs: Vec<f32> = columns.iter().map(|&column| row[column as usize]).collect();
    if case.observe(feature, columns, &inputs) {
        return Ok(());
    }
    Err(crate::Error::Data("a row's values are so large that the predictor's outputs overflow".into()))
}

/// The range of α that makes a difference: within what nothing and everything are worth to the predictor, where the
/// search neither asks all that helps nor nothing.
///
/// # Errors
/// No feature costs anything.
pub(super) fn range(search: &Search, data: &Dataset, config: &Config) -> Result<AlphaRange> {
    let (problem, steps) = (data.problem(), config.steps(data.problem()));
    let features = problem.features().len();
    let rows = data.sizes()[1];
    let losses = (0..rows.min(SURVEYED_ROWS)).into_par_iter().map(|row| {
        let label = data.splits()[1].y[row] as usize;
        let values = data.row(Part::Validation, row);
        let mut case = search.instance(0.0, None);
        let loss = |case: &dyn Case| {
            -problem.class_weights()[label] * f64::from(case.belief()[label].max(f32::MIN_POSITIVE)).ln()
        };
        show(search, &mut case, None, &values)?;
        let nothing = loss(&case);
        for feature in 0..features {
            show(search, &mut case, Some(feature), &values)?;
        }
        Ok([nothing, loss(&case)])
    });
    let losses: Vec<[f64; 2]> = losses.collect::<Result<_>>()?;
    let mean = |which: usize| losses.iter().map(|of| of[which]).sum::<f64>() / losses.len().max(1) as f64;
    let whole = Survey::new(problem, steps, [mean(0), mean(1)]).range(problem, steps, SMALLEST)?;
    let mut seen: Vec<(f64, f64)> = Vec::new();
    for alpha in whole.grid(TRIED) {
        let paths: Vec<Vec<u32>> = (0..rows.min(TRIED_ROWS))
            .into_par_iter()
            .map(|row| path(search, &data.row(Part::Validation, row), alpha, None, steps))
            .collect::<Result<_>>()?;
        let asked = || paths.iter().flatten();
        let spent = asked().map(|&feature| problem.features()[feature as usize].cost).sum();
        seen.push((spent, asked().count() as f64));
    }
    Ok(narrowed(whole, &seen))
}
