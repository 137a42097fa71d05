//! The surrogate without a device, one instance at a time: what it believes of the label, and what it expects of every
//! column that is not known. The maths is that of the shaders (`shaders/coupling.wgsl`, `shaders/gsmrl/moments.wgsl`).

use super::kernels::LIMIT;
use crate::engine::kernels::{SCALE_BOUND, SLOPE_BOUND};
use crate::nn::{Moves, POINTS};
use crate::policy::{Activations, Perceptron, Tensor, belief};
use crate::problem::Problem;

/// ln(2π)/2.
const HALF_LN_TAU: f32 = 0.918_938_5;

/// The surrogate's networks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Surrogate {
    couplings: Vec<(Perceptron, Moves)>,
    prior: Perceptron,
    /// The feature of each column; as many as there are features for what is known from the start.
    feature_of: Vec<usize>,
    features: usize,
    classes: usize,
}

impl Surrogate {
    pub fn new(problem: &Problem, couplings: Vec<Perceptron>, prior: Perceptron) -> Self {
        let moves = Moves::all(problem.columns(), couplings.len() - 1);
        Self {
            couplings: couplings.into_iter().zip(moves).collect(),
            prior,
            feature_of: problem.group_of_column().iter().map(|&feature| feature as usize).collect(),
            features: problem.features().len(),
            classes: problem.classes().len(),
        }
    }

    pub fn tensors(&self) -> Vec<Tensor> {
        let couplings = self.couplings.iter().flat_map(|(network, _)| network.tensors());
        couplings.chain(self.prior.tensors()).collect()
    }
}

/// What the surrogate makes of one instance. All buffers are made once.
#[derive(Clone, Debug)]
pub(super) struct Thought<'s> {
    of: &'s Surrogate,
    couplings: Vec<Activations<'s>>,
    prior: Activations<'s>,
    /// The columns as they are known, 0 otherwise, and which features are.
    x: Vec<f32>,
    seen: Vec<bool>,
    /// ln p(x_O|y) + ln p(y) of each class, and what follows.
    logs: Vec<f32>,
    belief: Vec<f32>,
    z: Vec<f32>,
    /// What each point of each class has become.
    points: Vec<f32>,
    /// What would be believed if something were known.
    supposed: Vec<f32>,
    reader: Reader,
}

/// A network's inputs that are not zero.
#[derive(Clone, Debug, Default)]
struct Reader {
    columns: Vec<u32>,
    inputs: Vec<f32>,
}

impl Reader {
    fn clear(&mut self) {
        self.columns.clear();
        self.inputs.clear();
    }

    fn put(&mut self, at: usize, input: f32) {
        if input != 0.0 {
            self.columns.push(at as u32);
            self.inputs.push(input);
        }
    }
}

/// Which density: of what is known, or of the rest given it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Known,
    Rest,
}

impl<'s> Thought<'s> {
    pub fn new(of: &'s Surrogate) -> Self {
        let (columns, classes) = (of.feature_of.len(), of.classes);
        // The most that a network reads: the couplings', or the policy's.
        let widest = (2 * (columns + of.features) + classes).max(3 * columns + of.features + classes);
        Self {
            of,
            couplings: of.couplings.iter().map(|(network, _)| Activations::new(network)).collect(),
            prior: Activations::new(&of.prior),
            x: vec![0.0; columns],
            seen: vec![false; of.features],
            logs: vec![0.0; classes],
            belief: vec![0.0; classes],
            z: vec![0.0; columns],
            points: vec![0.0; POINTS * classes * columns],
            supposed: vec![0.0; classes],
            reader: Reader { columns: Vec::with_capacity(widest), inputs: Vec::with_capacity(widest) },
        }
    }

    /// Forgets everything.
    pub fn reset(&mut self) {
        self.x.fill(0.0);
        self.seen.fill(false);
    }

    /// Takes values of columns: a feature's, or what is known from the start.
    pub fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) {
        for (&column, &input) in columns.iter().zip(inputs) {
            self.x[column as usize] = input;
        }
        if let Some(feature) = feature {
            self.seen[feature] = true;
        }
    }

    /// Takes them back.
    pub fn forget(&mut self, feature: Option<usize>, columns: &[u32]) {
        columns.iter().for_each(|&column| self.x[column as usize] = 0.0);
        if let Some(feature) = feature {
            self.seen[feature] = false;
        }
    }

    /// What the policy reads of the state: inputs that are not zero, and where.
    pub fn think(&mut self) -> (&[u32], &[f32]) {
        let (columns, classes) = (self.x.len(), self.of.classes);
        self.weigh_classes();
        belief::believe(&self.logs, &mut self.belief);
        for point in 0..POINTS {
            for class in 0..classes {
                self.sample(point, class);
                let to = (point * classes + class) * columns;
                self.points[to..][..columns].copy_from_slice(&self.z);
            }
        }
        self.read_state();
        (&self.reader.columns, &self.reader.inputs)
    }

    /// What knowing each feature is expected to lower the entropy of the belief by, after [`Thought::think`]: over the points of
    /// each class, as likely as it is. Nothing for what is known.
    pub fn inform(&mut self, gains: &mut [f32]) {
        let (columns, classes) = (self.x.len(), self.of.classes);
        let doubt = belief::entropy(&self.belief);
        for (feature, gain) in gains.iter_mut().enumerate() {
            *gain = 0.0;
            if self.seen[feature] {
                continue;
            }
            self.seen[feature] = true;
            let mut left = 0.0;
            for (sample, points) in (0..POINTS * classes).map(|sample| (sample, sample * columns)) {
                for column in (0..columns).filter(|&column| self.of.feature_of[column] == feature) {
                    self.x[column] = self.points[points + column];
                }
                self.weigh_classes();
                belief::believe(&self.logs, &mut self.supposed);
                left += self.belief[sample % classes] * belief::entropy(&self.supposed) / POINTS as f32;
            }
            *gain = doubt - left;
            self.seen[feature] = false;
            for column in (0..columns).filter(|&column| self.of.feature_of[column] == feature) {
                self.x[column] = 0.0;
            }
        }
    }

    /// ln p(x_O|y) + ln p(y) of each class.
    fn weigh_classes(&mut self) {
        self.believe_first();
        for class in 0..self.of.classes {
            for (column, z) in self.z.iter_mut().enumerate() {
                let is_asked = self.seen.get(self.of.feature_of[column]) == Some(&true);
                *z = if is_asked { self.x[column] } else { 0.0 };
            }
            self.logs[class] += self.density(class);
        }
    }

    /// ln p(y), from what is known from the start, into `logs`.
    fn believe_first(&mut self) {
        self.reader.clear();
        for (column, &feature) in self.of.feature_of.iter().enumerate() {
            if feature == self.of.features {
                self.reader.put(column, self.x[column]);
            }
        }
        self.prior.read(&self.reader.columns, &self.reader.inputs);
        self.logs.copy_from_slice(&self.prior.output()[..self.of.classes]);
    }

    fn is_asked(&self, column: usize, kind: Kind) -> bool {
        self.seen.get(self.of.feature_of[column]).is_some_and(|&seen| seen == (kind == Kind::Known))
    }

    /// ln p(x_O|y), where z is x_O.
    fn density(&mut self, class: usize) -> f32 {
        let (columns, kind) = (self.x.len(), Kind::Known);
        let mut log = 0.0;
        for index in 0..self.couplings.len() {
            let moves = self.read(index, class, kind);
            let count = moves.columns(columns);
            for (o, column) in (moves.offset..columns).step_by(moves.stride).enumerate() {
                if !self.is_asked(column, kind) {
                    continue;
                }
                let outputs = self.couplings[index].output();
                let s = bounded(outputs[o], SCALE_BOUND);
                let r = bounded(outputs[2 * count + o], SLOPE_BOUND);
                let mut z = self.z[column] * s.exp() + outputs[count + o];
                log += s;
                if z < 0.0 {
                    z *= r.exp();
                    log += r;
                }
                self.z[column] = z;
            }
        }
        for column in (0..columns).filter(|&column| self.is_asked(column, kind)) {
            log -= 0.5 * self.z[column] * self.z[column] + HALF_LN_TAU;
        }
        log
    }

    /// What a point of the base becomes, into z.
    fn sample(&mut self, point: usize, class: usize) {
        let (columns, kind) = (self.x.len(), Kind::Rest);
        for column in 0..columns {
            let sign = if (column / 2 + point) & 1 == 1 { -1.0 } else { 1.0 };
            self.z[column] = if self.is_asked(column, kind) { sign } else { 0.0 };
        }
        for index in (0..self.couplings.len()).rev() {
            let moves = self.read(index, class, kind);
            let count = moves.columns(columns);
            for (o, column) in (moves.offset..columns).step_by(moves.stride).enumerate() {
                if !self.is_asked(column, kind) {
                    continue;
                }
                let outputs = self.couplings[index].output();
                let mut u = self.z[column];
                if u < 0.0 {
                    u *= (-bounded(outputs[2 * count + o], SLOPE_BOUND)).exp();
                }
                self.z[column] = (u - outputs[count + o]) * (-bounded(outputs[o], SCALE_BOUND)).exp();
            }
        }
    }

    /// A coupling's network on z: `shaders/flow_input.wgsl`.
    fn read(&mut self, index: usize, class: usize, kind: Kind) -> Moves {
        let (columns, features) = (self.x.len(), self.of.features);
        let moves = self.of.couplings[index].1;
        self.reader.clear();
        for column in (0..columns).filter(|column| column % moves.stride != moves.offset) {
            if self.is_asked(column, kind) {
                self.reader.put(column, self.z[column]);
            }
        }
        for column in 0..columns {
            let feature = self.of.feature_of[column];
            if feature == features || (kind == Kind::Rest && self.seen[feature]) {
                self.reader.put(columns + column, self.x[column]);
            }
        }
        let flag = |is: bool| if is { 1.0 } else { 0.0 };
        for (feature, &seen) in self.seen.iter().enumerate() {
            self.reader.put(2 * columns + feature, flag(kind == Kind::Rest && seen));
        }
        for (feature, &seen) in self.seen.iter().enumerate() {
            self.reader.put(2 * columns + features + feature, flag(seen == (kind == Kind::Known)));
        }
        self.reader.put(2 * (columns + features) + class, 1.0);
        self.couplings[index].read(&self.reader.columns, &self.reader.inputs);
        moves
    }

    /// `(x ⊙ m, m)`, the belief, and each column's mean and standard deviation.
    fn read_state(&mut self) {
        let (columns, features, classes) = (self.x.len(), self.of.features, self.of.classes);
        self.reader.clear();
        for (column, &x) in self.x.iter().enumerate() {
            self.reader.put(column, x);
        }
        for (feature, &seen) in self.seen.iter().enumerate() {
            self.reader.put(columns + feature, if seen { 1.0 } else { 0.0 });
        }
        for (class, &share) in self.belief.iter().enumerate() {
            self.reader.put(columns + features + class, share);
        }
        let limit = LIMIT as f32;
        let aside = columns + features + classes;
        for is_spread in [false, true] {
            for column in 0..columns {
                let of = |class: usize, point: usize| {
                    self.points[(point * classes + class) * columns + column].clamp(-limit, limit)
                };
                let weigh = |value: &dyn Fn(f32) -> f32| {
                    let shares = self.belief.iter().enumerate();
                    shares
                        .map(|(class, p)| p * 0.5 * (value(of(class, 0)) + value(of(class, 1))))
                        .sum::<f32>()
                };
                let mean = weigh(&|z| z);
                if is_spread {
                    let spread = weigh(&|z| (z - mean) * (z - mean)).sqrt();
                    self.reader.put(aside + columns + column, spread);
                } else {
                    self.reader.put(aside + column, mean);
                }
            }
        }
    }
}

fn bounded(v: f32, bound: f64) -> f32 {
    v / (1.0 + v.abs() / bound as f32)
}
