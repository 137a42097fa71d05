//! What a policy has to beat, measured with NM-PPG's predictor: asking nothing, and asking the same best features of
//! everybody.

use super::trials::{Ground, Trials};
use crate::data::{Dataset, Part};
use crate::engine::kernels::words::NO_LABEL;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::engine::{Engine, Program, groups};
use crate::error::Result;
use crate::methods::nmppg::{self, Config, Stepper};
use crate::nn::{Inputs, Masked, Network, Stack, Tape, Tensors, Weights, pitch};
use crate::policy::Uncertainty;
use crate::policy::evaluate::{Summary, Traces};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Validation rows that decide between subsets, at most.
const ROWS: usize = 1_000;
/// Features that stay candidates after the first look, at most.
const CANDIDATES: usize = 60;
/// Lanes of the search on the CPU engine, which runs them side by side.
const CPU_LANES: usize = 8;

/// A fixed set of features, asked of everybody, and how well a predictor of its own does with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Subset {
    /// The features, in the order of their choice.
    pub features: Vec<String>,
    /// What they cost together.
    pub cost: f64,
    /// Share of right answers.
    pub accuracy: f64,
    /// F1 averaged over the classes.
    pub macro_f1: f64,
    /// Loss, weighted by class if the problem says so.
    pub loss: f64,
    /// How sure these means are; runs of older versions do not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncertainty: Option<Uncertainty>,
}

/// The rows of a split as the networks read them, at most so many.
fn inputs(data: &Dataset, part: Part, most: usize) -> (Vec<f32>, Vec<u32>) {
    let columns = data.problem().columns();
    let split = &data.splits()[part as usize];
    let rows = split.y.len().min(most);
    let x = match data.images() {
        Some(images) => {
            let divisor = data.divisor().unwrap_or(1) as f32;
            images[part as usize][..rows * columns].iter().map(|&byte| f32::from(byte) / divisor).collect()
        }
        None => split.x[..rows * columns].to_vec(),
    };
    (x, split.y[..rows].to_vec())
}

/// The engine's forward pass of a predictor of any subset, on some validation rows: what is chosen so far is in the first
/// layer's running sum, and candidates are tried on top of it.
struct Search {
    program: Program,
    rows: usize,
    features: usize,
    lane_rows: usize,
    path: BufferId,
    candidates: BufferId,
    totals: BufferId,
    /// Adds what is in the path to what is known.
    add: Section,
    /// Tries some candidates.
    blocks: Vec<(Range<usize>, Section)>,
}

impl Search {
    fn new(engine: &Engine, data: &Dataset, config: &Config, layers: &[Tensors]) -> Result<Self> {
        let problem = data.problem();
        let (columns, features) = (problem.columns(), problem.features().len());
        let classes = problem.classes().len();
        let (x, y) = inputs(data, Part::Validation, ROWS);
        let (rows, lanes) = (y.len(), if engine.device().is_some() { 1 } else { CPU_LANES });
        let lane_rows = rows.div_ceil(lanes).max(1);

        let mut b = PlanBuilder::new(lanes);
        let mut shared = |name: &str, elem, len| b.buffer(name, elem, len, Scope::Shared);
        let none = shared("none", Elem::F32, 4);
        let groups = shared("groups", Elem::U32, features + 1 + 2 * columns);
        let costs = shared("costs", Elem::F32, features + classes);
        let candidates = shared("candidates", Elem::U32, features + 1);
        let mut lane = |name: &str, elem, len| b.buffer(name, elem, len, Scope::Lane);
        let lane_x = lane("x", Elem::F32, lane_rows * pitch(columns));
        let lane_y = lane("y", Elem::U32, lane_rows);
        let path = lane("path", Elem::U32, lane_rows);
        let widths = [&[columns + features][..], &config.networks.predictor, &[classes]].concat();
        let stack = Stack::new(0, &widths);
        let weights = Weights::declare(&mut b, "predictor", stack.end(), 0);
        let network = Network::new(stack.clone(), weights, none);
        let tape = Tape::forward_only(&mut b, "known", &stack, [lane_rows; 2]);
        let trials = Trials::declare(&mut b, &stack, lane_rows, features + 1);

        let of_columns = Inputs { groups, columns, row_columns: columns, features };
        let masked = Masked { inputs: of_columns, x: lane_x, path, acquired_at: path, rows: lane_rows };
        let ground = Ground {
            inputs: of_columns,
            rows: lane_rows,
            classes,
            x: lane_x,
            y: lane_y,
            sum: tape.sum,
            candidates,
            costs,
        };
        let on_lanes = |b: &mut PlanBuilder, name: String, calls: &dyn Fn(&mut PlanBuilder)| {
            b.section(name, |b| {
                for lane in 0..lanes {
                    b.lane(Some(lane));
                    calls(b);
                }
                b.lane(None);
            })
        };
        let [start, add] = [("start", 0), ("add", 1)].map(|(name, step)| {
            on_lanes(&mut b, name.into(), &|b| {
                masked.forward(b, &network, &tape, step..step + 1, None, false);
            })
        });
        let mut blocks = Vec::new();
        for block in trials.blocks() {
            let calls = |b: &mut PlanBuilder| trials.calls(b, &network, ground, block.clone());
            let section = on_lanes(&mut b, format!("try.{}", block.start), &calls);
            blocks.push((block, section));
        }

        let mut program = Program::new(engine, b.finish()?)?;
        let mut padded = vec![0.0; lanes * lane_rows * pitch(columns)];
        for (to, row) in padded.chunks_exact_mut(pitch(columns)).zip(x.chunks_exact(columns)) {
            to[..columns].copy_from_slice(row);
        }
        // Rows that fill up the last lane have no label, so no loss.
        let mut labels = y;
        labels.resize(lanes * lane_rows, NO_LABEL);
        let weighed =
            problem.features().iter().map(|f| f.cost).chain(problem.class_weights().iter().copied());
        program.write_words(groups, 0, &groups::words(features, problem.group_of_column()));
        program.write(costs, 0, &weighed.collect::<Vec<f64>>());
        program.write(lane_x, 0, &padded);
        program.write_words(lane_y, 0, &labels);
        program.write(weights.values, 0, &stack.pack(layers));
        program.run(start.calls(), 1);
        let totals = trials.totals;
        Ok(Self { program, rows, features, lane_rows, path, candidates, totals, add, blocks })
    }

    /// The mean loss with each of these features known besides, and last the one without.
    fn losses_blocking(&mut self, candidates: &[usize]) -> Result<Vec<f64>> {
        let mut tried: Vec<u32> = candidates.iter().map(|&feature| feature as u32).collect();
        tried.push(self.features as u32);
        self.program.write_words(self.candidates, 0, &tried);
        for (block, section) in &self.blocks {
            if block.start < tried.len() {
                self.program.run(section.calls(), 1);
            }
        }
        let mut losses = vec![0.0; tried.len()];
        for lane in self.program.read_blocking(self.totals)?.chunks_exact(self.features + 1) {
            losses.iter_mut().zip(lane).for_each(|(loss, total)| *loss += total / self.rows.max(1) as f64);
        }
        Ok(losses)
    }

    /// From now on this feature is known.
    fn add(&mut self, feature: usize) {
        let len = self.program.plan().lanes() * self.lane_rows;
        self.program.write_words(self.path, 0, &vec![feature as u32; len]);
        self.program.run(self.add.calls(), 1);
    }
}

/// Chooses features one after the other: always the one that lowers the validation loss most for its cost,
/// by a predictor that was trained on random subsets, until one more than `cost` buys is chosen.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn choose_blocking(engine: &Engine, data: &Dataset, config: &Config, cost: f64) -> Result<Vec<usize>> {
    let problem = data.problem();
    let mut stepper = Stepper::new(engine, data, config.clone())?;
    let epochs = config.schedule.warm_up_epochs.max(1);
    for epoch in 0..epochs {
        let pass = stepper.steps_per_epoch();
        stepper.set_stage(config.warm_up_stage(epoch, pass))?;
        stepper.warm_up(config.whole_passes(pass));
        stepper.means_blocking()?;
    }
    let mut search = Search::new(engine, data, config, &stepper.predictor_blocking()?)?;
    drop(stepper);
    let mut candidates: Vec<usize> = (0..problem.features().len()).collect();
    let mut chosen = Vec::new();
    let mut spent = 0.0;
    while spent <= cost && !candidates.is_empty() {
        let losses = search.losses_blocking(&candidates)?;
        let before = losses[candidates.len()];
        let gain = |(&feature, with): (&usize, &f64)| {
            let (less, cost) = (before - with, problem.features()[feature].cost.max(1e-3));
            (if less > 0.0 { less / cost } else { less * cost }, feature)
        };
        let mut scored: Vec<(f64, usize)> = candidates.iter().zip(&losses).map(gain).collect();
        scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let best = scored[0].1;
        candidates = scored.iter().skip(1).take(CANDIDATES).map(|(_, feature)| *feature).collect();
        search.add(best);
        spent += problem.features()[best].cost;
        chosen.push(best);
    }
    Ok(chosen)
}

/// Trains a predictor on a fixed set of features and tests it.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn subset_blocking(engine: &Engine, data: &Dataset, config: &Config, chosen: &[usize]) -> Result<Subset> {
    let problem = data.problem();
    let names = chosen.iter().map(|&feature| problem.features()[feature].name.clone()).collect();
    // Not `sum`, which is -0 for nothing.
    let cost = chosen.iter().fold(0.0, |cost, &feature| cost + problem.features()[feature].cost);
    let nobody = problem.features().len() as u32;
    let is_seen = |&owner: &u32| owner == nobody || chosen.contains(&(owner as usize));
    let owners = problem.group_of_column();
    let columns: Vec<usize> = (0..owners.len()).filter(|&column| is_seen(&owners[column])).collect();
    if columns.is_empty() {
        return nothing(data);
    }
    answered_blocking(engine, data, config, &columns, (names, cost))
}

/// All features, asked of everybody: what acquiring could reach if nothing had a price.
///
/// # Errors
/// Settings that do not fit the problem, or a device that was lost.
pub fn everything_blocking(engine: &Engine, data: &Dataset, config: &Config) -> Result<Subset> {
    let columns: Vec<usize> = (0..data.problem().columns()).collect();
    let cost = data.problem().features().iter().map(|feature| feature.cost).sum();
    answered_blocking(engine, data, config, &columns, (vec!["all".into()], cost))
}

/// How well a predictor does that always sees these columns, with what they are called and cost.
fn answered_blocking(
    engine: &Engine,
    data: &Dataset,
    config: &Config,
    columns: &[usize],
    (features, cost): (Vec<String>, f64),
) -> Result<Subset> {
    let answers = nmppg::seeing_blocking(engine, data, config, columns)?.answers;
    let (guesses, losses) = answers.into_iter().map(|(guess, loss)| (guess, loss as f32)).unzip();
    let Summary { accuracy, macro_f1, loss, uncertainty, .. } = summary(data, guesses, losses);
    Ok(Subset { features, cost, accuracy, macro_f1, loss, uncertainty })
}

/// Asking nothing: the most frequent class for everybody, which of all constant answers has both the best
/// accuracy and the best macro-F1; the belief, for the loss, is the weighted classes' shares.
fn nothing(data: &Dataset) -> Result<Subset> {
    let weights = data.problem().class_weights();
    let mut mass = vec![0.0; weights.len()];
    data.splits()[0].y.iter().for_each(|&label| mass[label as usize] += weights[label as usize]);
    let total: f64 = mass.iter().sum();
    let mut counts = vec![0usize; mass.len()];
    data.splits()[0].y.iter().for_each(|&label| counts[label as usize] += 1);
    let best = (0..mass.len()).fold(0, |best, class| if counts[class] > counts[best] { class } else { best });
    let test = &data.splits()[2].y;
    let losses =
        test.iter().map(|&y| (-weights[y as usize] * (mass[y as usize] / total).max(1e-9).ln()) as f32);
    let Summary { accuracy, macro_f1, loss, uncertainty, .. } =
        summary(data, vec![best as u32; test.len()], losses.collect());
    Ok(Subset { features: Vec::new(), cost: 0.0, accuracy, macro_f1, loss, uncertainty })
}

fn summary(data: &Dataset, guess: Vec<u32>, loss: Vec<f32>) -> Summary {
    let features = data.problem().features().len();
    let traces = Traces { features, steps: 1, path: vec![features as u32; guess.len()], guess, loss };
    traces.summary(data.problem(), &data.splits()[2].y, 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Split, synthetic};
    use crate::problem::Problem;

    /// The first three of eleven features make the label: they are found, and enough.
    #[test]
    fn the_best_subset_is_found() {
        let problem = Problem::ungrouped(&[1.0; 11], 2).expect("valid");
        let label = |row: &[f32]| u32::from(row[0] + row[1] + row[2] > 0.0);
        let splits = synthetic::syn1(3, [4_000, 500, 500])
            .expect("valid")
            .splits()
            .clone()
            .map(|split| Split { y: split.x.chunks_exact(11).map(label).collect(), x: split.x });
        let [a, b, c] = splits;
        let data = Dataset::new(problem, a, b, c).expect("valid");
        let config = Config::new(0.02).with(|c| {
            let s = &mut c.schedule;
            (s.warm_up_epochs, s.stage_epochs, s.epoch_steps, s.ema) = (2, 2, 100, 0.05);
        });
        let engine = Engine::cpu();
        let mut chosen = choose_blocking(&engine, &data, &config, 2.5).expect("chooses");
        chosen.sort();
        assert_eq!(chosen, [0, 1, 2]);
        let three = subset_blocking(&engine, &data, &config, &chosen).expect("trains");
        let one = subset_blocking(&engine, &data, &config, &[0]).expect("trains");
        let none = subset_blocking(&engine, &data, &config, &[]).expect("counts");
        assert!(
            three.accuracy > 0.95 && one.accuracy < 0.8 && none.accuracy < 0.6,
            "{three:?} {one:?} {none:?}"
        );
        assert_eq!((three.cost, none.cost), (3.0, 0.0));
    }
}
