//! A plan of a few calls on the f64 engine, with buffers by name, small random inputs, and derivatives
//! by central differences.

use querent::data::{Dataset, Split};
use querent::engine::plan::PlanBuilder;
use querent::engine::{Engine, Program};
use querent::random::{Source, unit};
use querent::{Feature, Problem};

pub struct Rig(Program);

impl Rig {
    pub fn new(builder: PlanBuilder) -> Self {
        let plan = builder.finish().unwrap_or_else(|error| panic!("{error}"));
        Self(Program::new(&Engine::cpu_f64(), plan).unwrap_or_else(|error| panic!("{error}")))
    }

    fn id(&self, name: &str) -> querent::engine::plan::BufferId {
        self.0.plan().find(name).unwrap_or_else(|| panic!("no buffer `{name}`"))
    }

    pub fn set(&mut self, name: &str, values: &[f64]) -> &mut Self {
        let id = self.id(name);
        self.0.write(id, 0, values);
        self
    }

    pub fn set_words(&mut self, name: &str, values: &[u32]) -> &mut Self {
        let id = self.id(name);
        self.0.write_words(id, 0, values);
        self
    }

    pub fn run(&mut self, section: &str) -> &mut Self {
        let range = crate::common::section(self.0.plan(), section);
        self.0.run(range, 1);
        self
    }

    pub fn get(&self, name: &str) -> Vec<f64> {
        self.0.read_blocking(self.id(name)).expect("the CPU engine can be read")
    }

    pub fn words(&self, name: &str) -> Vec<u32> {
        self.0.read_words_blocking(self.id(name)).expect("the CPU engine can be read")
    }
}

/// Numbers for tests: a counter-based source, read in order.
pub struct Random {
    source: Source,
    at: u32,
}

impl Random {
    pub fn new(seed: u64) -> Self {
        Self { source: Source::new(seed, 99, 0), at: 0 }
    }

    pub fn unit(&mut self) -> f64 {
        self.at += 1;
        unit(self.source.bits(self.at, 0, 0)[0])
    }

    /// Roughly normal: the sum of twelve uniforms.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }

    pub fn normals(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| self.normal()).collect()
    }

    pub fn positives(&mut self, n: usize) -> Vec<f64> {
        (0..n).map(|_| 0.1 + 0.8 * self.unit()).collect()
    }

    pub fn choice(&mut self, n: usize, of: &[f64]) -> Vec<f64> {
        (0..n).map(|_| of[(self.unit() * of.len() as f64) as usize]).collect()
    }

    /// Rows of normals, padded with zeros to the pitch.
    pub fn padded(&mut self, rows: usize, width: usize) -> Vec<f64> {
        let pitch = querent::nn::pitch(width);
        (0..rows * pitch).map(|i| if i % pitch < width { self.normal() } else { 0.0 }).collect()
    }
}

/// Without the padding.
pub fn unpadded(values: &[f64], width: usize) -> Vec<f64> {
    values.chunks_exact(querent::nn::pitch(width)).flat_map(|row| row[..width].to_vec()).collect()
}

/// Central differences of f in f64 are good to about (1e-5)² relative; kinks would show as far more.
const TOLERANCE: f64 = 1e-7;

/// dL/dv by central differences.
pub fn differences(values: &[f64], mut loss: impl FnMut(&[f64]) -> f64) -> Vec<f64> {
    let mut at = values.to_vec();
    (0..values.len())
        .map(|i| {
            let step = 1e-5 * values[i].abs().max(1.0);
            at[i] = values[i] + step;
            let above = loss(&at);
            at[i] = values[i] - step;
            let below = loss(&at);
            at[i] = values[i];
            (above - below) / (2.0 * step)
        })
        .collect()
}

#[track_caller]
pub fn assert_close(what: &str, got: &[f64], expected: &[f64]) {
    let error = crate::common::distance(got, expected);
    assert!(
        error < TOLERANCE,
        "{what}: off by {error:.1e} of the largest\n got {got:.6?}\n want {expected:.6?}"
    );
}

/// The same problem with bytes for values.
pub fn toy_of_bytes(features: usize, rows: usize) -> Dataset {
    let reals = toy(features, rows);
    let splits = reals.splits().clone().map(|split| {
        let bytes = split.x.iter().map(|value| (value * 40.0 + 128.0) as u8).collect();
        (bytes, split.y)
    });
    Dataset::of_bytes(reals.problem().clone(), splits).unwrap_or_else(|error| panic!("{error}"))
}

/// A small grouped problem with weights and costs that differ: feature i has 1 + i % 3 columns, not
/// side by side, and two more columns are known from the start.
pub fn toy(features: usize, rows: usize) -> Dataset {
    let mut group_of_column: Vec<u32> = (0..features as u32).collect();
    for extra in 1..3 {
        group_of_column.extend((0..features as u32).filter(|feature| feature % 3 >= extra));
    }
    let list = (0..features).map(|i| Feature { name: format!("f{i}"), cost: 0.5 + 0.25 * (i % 4) as f64 });
    let classes = ["a", "b", "c"].map(String::from).to_vec();
    let problem = Problem::new(list.collect(), group_of_column, classes)
        .and_then(|problem| problem.with_known_columns(2).with_class_weights(vec![1.0, 0.5, 2.0]))
        .unwrap_or_else(|error| panic!("{error}"));
    let columns = problem.columns();
    let split = |seed: u64, rows: usize| {
        let mut random = Random::new(seed);
        let x: Vec<f32> = random.normals(rows * columns).into_iter().map(|v| v as f32).collect();
        let y = x.chunks_exact(columns).map(|row| (row[0].abs() * 1.7) as u32 % 3).collect();
        Split { x, y }
    };
    Dataset::new(problem, split(1, rows), split(2, rows.div_ceil(2)), split(3, rows.div_ceil(2)))
        .unwrap_or_else(|error| panic!("{error}"))
}
