//! The shapes that are measured, random tables of these shapes, and the arithmetic a step needs.

use crate::data::{Dataset, Split};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::methods::nmppg::{Config, Stage, Stepper};
use crate::problem::{Feature, Problem};
use crate::random::{Source, unit};

/// A problem's sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Shape {
    /// How it is called.
    pub name: &'static str,
    /// Features that can be acquired.
    pub d: usize,
    /// Columns, at least one a feature.
    pub columns: usize,
    /// Horizon.
    pub k: usize,
    /// Classes.
    pub classes: usize,
    /// Width of all hidden layers.
    pub hidden: usize,
}

/// The shapes of four data sets.
pub const SHAPES: [Shape; 4] = [
    Shape { name: "syn1", d: 11, columns: 11, k: 11, classes: 2, hidden: 128 },
    Shape { name: "diabetes", d: 33, columns: 45, k: 30, classes: 3, hidden: 128 },
    Shape { name: "cube", d: 55, columns: 55, k: 30, classes: 8, hidden: 256 },
    Shape { name: "mnist", d: 784, columns: 784, k: 30, classes: 10, hidden: 256 },
];

impl std::str::FromStr for Shape {
    type Err = Error;

    /// The shape of a name.
    fn from_str(name: &str) -> Result<Self> {
        SHAPES.into_iter().find(|shape| shape.name == name).ok_or_else(|| {
            let names: Vec<&str> = SHAPES.iter().map(|shape| shape.name).collect();
            Error::Config(format!("no shape is called `{name}`; there are {}", names.join(", ")))
        })
    }
}

impl Shape {
    /// Floating-point operations that one instance of a training step needs: the products with weight
    /// matrices, a multiplication and an addition each, by the cheapest way we know (docs/architecture.md).
    /// Noise, softmax, dropout and Adam are not counted, so the share of the peak is on the low side.
    ///
    /// - Under hard masks the first layer is a running sum: of `k` acquisitions, each adds the weights of its
    ///   columns, `columns / d` on average, times their values, and those of its mask entry. Its weight
    ///   gradient is a suffix sum, `k` vectors long, scattered to the same weights.
    /// - A hidden or last layer costs one product forward, one for the gradient of its weights and one for
    ///   that of its input; the policy on `k` rows, the predictor on `k + 1`.
    /// - The masks after the first, `k` of the predictor's and `k - 1` of the policy's, need a gradient
    ///   through the whole first layer: every feature could have been chosen.
    pub fn flops(&self) -> f64 {
        let [d, columns, k, classes, h] =
            [self.d, self.columns, self.k, self.classes, self.hidden].map(|n| n as f64);
        let acquisition = 2.0 * columns / d * h + h;
        let running_sum = |acquisitions: f64| acquisitions * acquisition;
        let first_weights = |acquisitions: f64| acquisitions * (acquisition + h);
        let layers = |rows: f64, outputs: f64| rows * 3.0 * 2.0 * (h * h + h * outputs);
        let masks = |rows: f64| rows * 2.0 * h * (columns + d);
        let policy = running_sum(k - 1.0) + layers(k, d + 1.0) + masks(k - 1.0) + first_weights(k - 1.0);
        let predictor = running_sum(k) + layers(k + 1.0, classes) + masks(k) + first_weights(k);
        policy + predictor
    }

    /// Floating-point operations of a greedy run to the horizon and its prediction, counted in the same way.
    pub fn greedy_flops(&self) -> f64 {
        let [d, columns, k, classes, h] =
            [self.d, self.columns, self.k, self.classes, self.hidden].map(|n| n as f64);
        let sum = k * (2.0 * columns / d * h + h);
        2.0 * sum + k * 2.0 * (h * h + h * (d + 1.0)) + 2.0 * (h * h + h * classes)
    }

    /// The feature each column belongs to: the first features have the columns that are left over.
    fn group_of_column(&self) -> Vec<u32> {
        let mut groups: Vec<u32> = (0..self.columns).map(|column| (column % self.d) as u32).collect();
        groups.sort_unstable();
        groups
    }

    /// Costs of 1 and classes without names.
    pub fn problem(&self) -> Result<Problem> {
        let features = (0..self.d).map(|i| Feature { name: format!("x{i}"), cost: 1.0 }).collect();
        let classes = (0..self.classes).map(|class| class.to_string()).collect();
        Problem::new(features, self.group_of_column(), classes)
    }

    /// A random table.
    pub fn table(&self, rows: usize, test: usize) -> Result<Dataset> {
        let split = |rows: usize, stream: u32| {
            let source = Source::new(1, stream, 0);
            let value = |row: usize, column: usize| {
                let bits = source.bits(row as u32, 0, column as u32);
                // Three uniform numbers added up are near enough to a normal one.
                bits[..3].iter().map(|&bits| 2.0 * unit(bits) - 1.0).sum::<f64>() as f32
            };
            Split {
                x: (0..rows * self.columns).map(|at| value(at / self.columns, at % self.columns)).collect(),
                y: (0..rows).map(|row| source.bits(row as u32, 1, 0)[3] % self.classes as u32).collect(),
            }
        };
        Dataset::new(self.problem()?, split(rows, 100), Split::default(), split(test, 101))
    }

    /// The published settings: a rollout a row, to the horizon, and dropout.
    pub fn config(&self, batch: usize) -> Config {
        Config::paper(0.02).with(|c| {
            c.horizon = Some(self.k);
            c.networks.policy = [self.hidden; 2];
            c.networks.predictor = [self.hidden; 2];
            c.batch = batch;
        })
    }

    /// Training steps ready to be timed. λ as published makes the policy ask to the horizon, so that
    /// nothing an engine skips in rollouts that have stopped can count for it here.
    pub fn stepper(&self, engine: &Engine, batch: usize, rows: usize) -> Result<Stepper> {
        let config = self.config(batch);
        let mut stepper = Stepper::new(engine, &self.table(rows.max(batch), 0)?, config.clone())?;
        stepper.set_stage(Stage {
            alpha: config.alpha.one().unwrap_or_default(),
            tau_soft: 0.5,
            lambda: 0.5,
            policy_rate: config.schedule.policy_rate,
            predictor_rate: config.schedule.predictor_rate,
            ..Stage::default()
        })?;
        Ok(stepper)
    }

    /// As peers are told of it.
    pub fn to_json(self) -> serde_json::Value {
        serde_json::json!({
            "name": self.name, "d": self.d, "columns": self.columns, "k": self.k,
            "classes": self.classes, "hidden": self.hidden, "group_of_column": self.group_of_column(),
        })
    }
}
