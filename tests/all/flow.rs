//! The conditional flow by central differences: its log-density is that of the change of variables, its way back is its
//! gradient, and its inverse leads back. Clipped gradients by hand.

use crate::rig::{Random, Rig, assert_close, differences};
use querent::engine::groups;
use querent::engine::kernels as k;
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nn::{Flow, FlowRows, FlowTape, Inputs, Weights, pitch};

/// A flow with its plan: one section for each direction.
struct Case {
    features: usize,
    of_column: Vec<u32>,
    classes: usize,
    couplings: usize,
    hidden: Vec<usize>,
    batch: usize,
    parts: usize,
    kind: usize,
}

impl Case {
    fn columns(&self) -> usize {
        self.of_column.len()
    }

    fn rows(&self) -> usize {
        self.parts * self.classes * self.batch
    }

    /// With random weights and rows, and masks of which some features are seen.
    fn rig(&self) -> (Rig, Vec<f64>) {
        let (columns, features) = (self.columns(), self.features);
        let mut b = PlanBuilder::new(1);
        let words = groups::words(features, &self.of_column);
        let of_groups = b.buffer("groups", Elem::U32, words.len(), Scope::Shared);
        let none = b.buffer("none", Elem::F32, 4, Scope::Shared);
        let x = b.buffer("x", Elem::F32, self.batch * pitch(columns), Scope::Shared);
        let masks = b.buffer("masks", Elem::F32, 2 * self.batch * pitch(features), Scope::Shared);
        let stacks = Flow::stacks(0, [columns, features, self.classes], &self.hidden, self.couplings);
        let weights = Weights::declare(&mut b, "flow", stacks.last().expect("a base").end(), 0);
        let init: Vec<f64> = stacks.iter().zip(0..).flat_map(|(stack, which)| stack.init(5, which)).collect();
        let inputs = Inputs { groups: of_groups, columns, row_columns: columns, features };
        let flow = Flow::new(inputs, self.classes, stacks, weights, none);
        let tape = FlowTape::declare(&mut b, "tape", &flow, self.rows(), true);
        let at = FlowRows { batch: self.batch, parts: self.parts, kind: self.kind, x, masks, step: 1 };
        b.section("forward", |b| flow.forward(b, &tape, at));
        b.section("sample", |b| flow.sample(b, &tape, at));
        b.section("backward", |b| {
            flow.transpose(b);
            flow.backward(b, &tape, at, 1, false);
        });
        let mut rig = Rig::new(b);
        let mut random = Random::new(3);
        // Larger than at the beginning of a training, so that nothing is nearly the identity.
        let init: Vec<f64> = init.into_iter().map(|weight| 1.5 * weight).collect();
        let rows = random.padded(self.batch, columns);
        let seen: Vec<f64> = random.choice(2 * self.batch * pitch(features), &[0.0, 1.0]);
        rig.set_words("groups", &words).set("flow.values", &init).set("x", &rows).set("masks", &seen);
        (rig, init)
    }

    /// Whether a row is asked for a column.
    fn is_asked(&self, masks: &[f64], row: usize, column: usize) -> bool {
        let instance = row % self.batch;
        let conditional = self.kind + row / (self.batch * self.classes) > 0;
        let feature = self.of_column[column] as usize;
        let mask = &masks[(self.batch + instance) * pitch(self.features)..][..self.features];
        mask.get(feature).is_some_and(|&seen| (seen > 0.5) != conditional)
    }
}

fn cases() -> Vec<Case> {
    // Groups that are not side by side, and columns that are known from the start; a single column; no halves left over.
    vec![
        Case {
            features: 4,
            of_column: vec![3, 0, 1, 3, 2, 0, 4],
            classes: 2,
            couplings: 3,
            hidden: vec![5, 4],
            batch: 3,
            parts: 2,
            kind: 0,
        },
        Case {
            features: 3,
            of_column: vec![0, 1, 2],
            classes: 3,
            couplings: 4,
            hidden: vec![6],
            batch: 2,
            parts: 2,
            kind: 1,
        },
        Case {
            features: 1,
            of_column: vec![0],
            classes: 2,
            couplings: 2,
            hidden: vec![3],
            batch: 2,
            parts: 1,
            kind: 1,
        },
    ]
}

fn determinant(mut matrix: Vec<Vec<f64>>) -> f64 {
    let mut product = 1.0;
    for at in 0..matrix.len() {
        let pivot = (at..matrix.len())
            .max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs()))
            .expect("a row");
        matrix.swap(at, pivot);
        product *= matrix[at][at] * if pivot == at { 1.0 } else { -1.0 };
        for below in at + 1..matrix.len() {
            let (above, under) = matrix.split_at_mut(below);
            let factor = under[0][at] / above[at][at];
            let pairs = under[0][at..].iter_mut().zip(&above[at][at..]);
            pairs.for_each(|(to, from)| *to -= factor * from);
        }
    }
    product
}

/// ln p = ln |det ∂z/∂x| + ln N(z), the Jacobian by differences over the columns that are asked for.
#[test]
fn the_density_is_that_of_the_change_of_variables() {
    let mut tested = 0;
    for case in cases() {
        let (mut rig, _) = case.rig();
        let (columns, p) = (case.columns(), pitch(case.columns()));
        let (x, masks) = (rig.get("x"), rig.get("masks"));
        let last = format!("tape.z{}", if columns > 1 { case.couplings + 1 } else { 1 });
        let z = rig.run("forward").get(&last);
        let logs = rig.get("tape.logs");
        for row in 0..case.rows() {
            let asked: Vec<usize> = (0..columns).filter(|&c| case.is_asked(&masks, row, c)).collect();
            let mut jacobian = vec![vec![0.0; asked.len()]; asked.len()];
            for (j, &from) in asked.iter().enumerate() {
                let [above, below] = [1e-5, -1e-5].map(|step| {
                    let mut moved = x.clone();
                    moved[row % case.batch * p + from] += step;
                    rig.set("x", &moved).run("forward").get(&last)
                });
                for (i, &to) in asked.iter().enumerate() {
                    jacobian[i][j] = (above[row * p + to] - below[row * p + to]) / 2e-5;
                }
            }
            let normal = |&c: &usize| -0.5 * (z[row * p + c].powi(2) + std::f64::consts::TAU.ln());
            let expected = determinant(jacobian).abs().ln() + asked.iter().map(normal).sum::<f64>();
            assert_close(&format!("row {row}"), &[logs[row]], &[expected]);
            // What is not asked for is no part of it.
            let others = (0..columns).filter(|c| !asked.contains(c));
            assert!(others.into_iter().all(|c| z[row * p + c] == 0.0));
            tested += usize::from(asked.len() > 1);
        }
    }
    assert!(tested > 10, "{tested} rows have something to show");
}

#[test]
fn the_way_back_is_the_gradient() {
    let mut tested = 0;
    for case in cases() {
        let (mut rig, weights) = case.rig();
        let cotangent = Random::new(8).normals(case.rows());
        let mut loss = |weights: &[f64]| {
            let logs = rig.set("flow.values", weights).run("forward").get("tape.logs");
            logs.iter().zip(&cotangent).map(|(log, c)| log * c).sum()
        };
        let numeric = differences(&weights, &mut loss);
        loss(&weights);
        let got = rig.set("tape.logs", &cotangent).run("backward").get("flow.grad");
        let live: Vec<usize> = (0..weights.len()).filter(|&i| weights[i] != 0.0).collect();
        let pick = |values: &[f64]| live.iter().map(|&i| values[i]).collect::<Vec<_>>();
        assert_close("the weights' gradient", &pick(&got), &pick(&numeric));
        tested += pick(&got).iter().filter(|g| **g != 0.0).count();
    }
    assert!(tested > 200, "{tested} weights have a gradient");
}

/// Points of the base become rows that the flow takes back to them.
#[test]
fn the_inverse_leads_back() {
    for case in cases().into_iter().filter(|case| case.kind == 1) {
        let (mut rig, _) = case.rig();
        let (columns, p) = (case.columns(), pitch(case.columns()));
        let (x, masks) = (rig.get("x"), rig.get("masks"));
        let last = format!("tape.z{}", if columns > 1 { case.couplings + 1 } else { 1 });
        let samples = rig.run("sample").get("tape.z0");
        for row in 0..case.rows() {
            let mut moved = x.clone();
            let asked: Vec<usize> = (0..columns).filter(|&c| case.is_asked(&masks, row, c)).collect();
            for &c in &asked {
                moved[row % case.batch * p + c] = samples[row * p + c];
            }
            let back = rig.set("x", &moved).run("forward").get(&last);
            let part = row / (case.batch * case.classes);
            for &c in &asked {
                let sign = if (c / 2 + part) % 2 == 1 { -1.0 } else { 1.0 };
                assert!((back[row * p + c] - sign).abs() < 1e-9, "row {row}, column {c}");
            }
        }
    }
}

#[test]
fn gradients_are_clipped_by_their_norm() {
    let (len, lanes) = (70, 2);
    let mut b = PlanBuilder::new(lanes);
    let grad = b.buffer("grad", Elem::F32, len, Scope::Lane);
    let settings = b.buffer("settings", Elem::F32, 3, Scope::Shared);
    let factor = b.buffer("factor", Elem::F32, 1, Scope::Shared);
    b.section("clip", |b| {
        let norm = k::GradNorm { len: len as u32, lanes: lanes as u32, limit: 2 };
        b.call(norm, &[grad, settings, factor]);
        b.call(k::GradScale { len: (len * lanes) as u32 }, &[factor, grad]);
    });
    let mut rig = Rig::new(b);
    let values = Random::new(2).normals(len * lanes);
    let norm = (0..len).map(|i| (values[i] + values[len + i]).powi(2)).sum::<f64>().sqrt();
    for limit in [0.1, norm / 2.0, 2.0 * norm] {
        let got = rig.set("grad", &values).set("settings", &[0.0, 0.0, limit]).run("clip").get("grad");
        let by_hand: Vec<f64> = values.iter().map(|g| g * (limit / norm).min(1.0)).collect();
        assert_close(&format!("{limit}"), &got, &by_hand);
    }
}
