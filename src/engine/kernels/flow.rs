//! A conditional flow forward, backward and the other way round: couplings of columns under masks, with exact
//! log-determinants. The maths is beside the shaders; [`crate::nn::Flow`] puts them together.

use super::{COUPLING, FLOW, GROUPS, Work, area, kernel, line, product};
use crate::engine::cpu::{Args, Real};
use crate::engine::groups::Groups;

/// Bounds of the logarithms of a coupling's scale and of its slope below zero. Same as in lib/coupling.wgsl.
pub(crate) const SCALE_BOUND: f64 = 2.0;
pub(crate) const SLOPE_BOUND: f64 = 1.0;
/// ln(2π)/2.
const HALF_LN_TAU: f64 = 0.918_938_533_204_672_7;

/// Which columns are given to a row and which it is asked for: see lib/flow.wgsl.
struct Lay<'a, T> {
    groups: Groups<'a>,
    masks: &'a [T],
    batch: usize,
    classes: usize,
    stride: usize,
    step: usize,
    kind: usize,
}

macro_rules! lay {
    ($p:ident, $groups:expr, $masks:expr) => {
        Lay {
            groups: Groups::new($groups, $p.features, $p.columns),
            masks: $masks,
            batch: $p.batch as usize,
            classes: $p.classes as usize,
            stride: $p.mask_stride as usize,
            step: $p.step as usize,
            kind: $p.kind as usize,
        }
    };
}

/// One row of it.
struct Row<'a, T> {
    instance: usize,
    class: usize,
    part: usize,
    conditional: bool,
    mask: &'a [T],
    features: &'a [u32],
}

impl<'a, T: Real> Lay<'a, T> {
    #[inline(always)]
    fn row(&self, row: usize, features: u32) -> Row<'a, T> {
        let (instance, part) = (row % self.batch, row / (self.batch * self.classes));
        let mask = &self.masks[(self.step * self.batch + instance) * self.stride..][..features as usize];
        Row {
            instance,
            class: row / self.batch % self.classes,
            part,
            conditional: self.kind + part > 0,
            mask,
            features: self.groups.features(),
        }
    }
}

impl<T: Real> Row<'_, T> {
    #[inline(always)]
    fn is_seen(&self, feature: usize) -> bool {
        self.mask[feature] > T::of(0.5)
    }

    /// What is known from the start has no mask, and is never asked for.
    #[inline(always)]
    fn is_asked_column(&self, column: usize) -> bool {
        let feature = self.features[column] as usize;
        feature < self.mask.len() && self.conditional != self.is_seen(feature)
    }

    #[inline(always)]
    fn is_given_column(&self, column: usize) -> bool {
        let feature = self.features[column] as usize;
        feature >= self.mask.len() || (self.conditional && self.is_seen(feature))
    }
}

#[inline(always)]
fn bounded<T: Real>(v: T, bound: f64) -> T {
    let size = if v < T::ZERO { -v } else { v };
    v / (T::ONE + size / T::of(bound))
}

#[inline(always)]
fn bounded_grad<T: Real>(s: T, bound: f64) -> T {
    let size = if s < T::ZERO { -s } else { s };
    let rest = T::ONE - size / T::of(bound);
    rest * rest
}

/// The columns that a coupling moves, with each one's place among the network's outputs; and how many there are.
#[inline(always)]
fn moved(columns: u32, stride: u32, offset: u32) -> (impl Iterator<Item = (usize, usize)>, usize) {
    let all = (offset as usize..columns as usize).step_by(stride as usize);
    let count = all.len();
    (all.zip(0..), count)
}

kernel! {
    /// Where a flow begins: what is asked for of each row, or points of its base.
    pub FlowStart "flow_start" [GROUPS, FLOW]
    { rows, batch, classes, columns, features, x_pitch, mask_stride, step, kind, z_pitch, points }
    (groups: U32 Read, x: F32 Read, masks: F32 Read, z: F32 Write, logs: F32 Write)
    grid |p| area(p.z_pitch, p.rows);
    work |p| Work::of_numbers(area(p.z_pitch, p.rows), 2 * product(&[p.rows, p.z_pitch]));
    twin flow_start;
}

#[inline(always)]
fn flow_start<T: Real>(p: &FlowStart, mut args: Args<T>) {
    let (groups, x, masks) = (args.words(), args.reals(), args.reals());
    let (z, logs) = (args.reals_mut(), args.reals_mut());
    let lay = lay!(p, groups, masks);
    for (row, z) in z.chunks_exact_mut(p.z_pitch as usize).take(p.rows as usize).enumerate() {
        let at = lay.row(row, p.features);
        let x = &x[at.instance * p.x_pitch as usize..][..p.columns as usize];
        z.fill(T::ZERO);
        for (column, z) in z.iter_mut().enumerate().take(p.columns as usize) {
            if at.is_asked_column(column) {
                let sign = if (column / 2 + at.part) & 1 == 1 { -T::ONE } else { T::ONE };
                *z = if p.points != 0 { sign } else { x[column] };
            }
        }
        logs[row] = T::ZERO;
    }
}

kernel! {
    /// What a coupling's network reads of each row: the columns that stay, what is given, what is asked for, the class.
    pub FlowInput "flow_input" [GROUPS, FLOW, COUPLING]
    { rows, batch, classes, columns, features, x_pitch, mask_stride, step, kind, z_pitch, input_pitch, stride, offset }
    (groups: U32 Read, x: F32 Read, masks: F32 Read, z: F32 Read, input: F32 Write)
    grid |p| area(p.input_pitch, p.rows);
    work |p| Work::of_numbers(area(p.input_pitch, p.rows), 2 * product(&[p.rows, p.input_pitch]));
    twin flow_input;
}

#[inline(always)]
fn flow_input<T: Real>(p: &FlowInput, mut args: Args<T>) {
    let (groups, x, masks, z) = (args.words(), args.reals(), args.reals(), args.reals());
    let input = args.reals_mut();
    let lay = lay!(p, groups, masks);
    let (columns, features) = (p.columns as usize, p.features as usize);
    for (row, input) in input.chunks_exact_mut(p.input_pitch as usize).take(p.rows as usize).enumerate() {
        let at = lay.row(row, p.features);
        let x = &x[at.instance * p.x_pitch as usize..][..columns];
        let z = &z[row * p.z_pitch as usize..][..columns];
        input.fill(T::ZERO);
        let (staying, rest) = input.split_at_mut(columns);
        let (given, rest) = rest.split_at_mut(columns);
        for column in 0..columns {
            let stays = column as u32 % p.stride != p.offset;
            if stays && at.is_asked_column(column) {
                staying[column] = z[column];
            }
            if at.is_given_column(column) {
                given[column] = x[column];
            }
        }
        for feature in 0..features {
            if at.conditional && at.is_seen(feature) {
                rest[feature] = T::ONE;
            }
            if at.conditional != at.is_seen(feature) {
                rest[features + feature] = T::ONE;
            }
        }
        rest[2 * features + at.class] = T::ONE;
    }
}

kernel! {
    /// The gradient of the columns that a coupling's network has read.
    pub FlowInputGrad "flow_input_grad" [GROUPS, FLOW, COUPLING]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch, input_pitch, stride, offset }
    (groups: U32 Read, masks: F32 Read, grad_input: F32 Read, grad_z: F32 Write)
    grid |p| area(p.columns, p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), 3 * product(&[p.rows, p.columns]));
    twin flow_input_grad;
}

#[inline(always)]
fn flow_input_grad<T: Real>(p: &FlowInputGrad, mut args: Args<T>) {
    let (groups, masks, grad_input) = (args.words(), args.reals(), args.reals());
    let grad_z = args.reals_mut();
    let lay = lay!(p, groups, masks);
    for (row, grad_z) in grad_z.chunks_exact_mut(p.z_pitch as usize).take(p.rows as usize).enumerate() {
        let at = lay.row(row, p.features);
        let grad_input = &grad_input[row * p.input_pitch as usize..][..p.columns as usize];
        for (column, (grad_z, &more)) in grad_z.iter_mut().zip(grad_input).enumerate() {
            if column as u32 % p.stride != p.offset && at.is_asked_column(column) {
                *grad_z += more;
            }
        }
    }
}

kernel! {
    /// A coupling: an affine map and a leaky ReLU of some columns, with what a network makes of the others.
    pub Coupling "coupling" [GROUPS, FLOW, COUPLING]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch, outputs_pitch, stride, offset }
    (groups: U32 Read, masks: F32 Read, from_z: F32 Read, outputs: F32 Read, to_z: F32 Write, logs: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, 2 * p.z_pitch + p.outputs_pitch]));
    twin coupling;
}

#[inline(always)]
fn coupling<T: Real>(p: &Coupling, mut args: Args<T>) {
    let (groups, masks, from, outputs) = (args.words(), args.reals(), args.reals(), args.reals());
    let (to, logs) = (args.reals_mut(), args.reals_mut());
    let lay = lay!(p, groups, masks);
    let pitch = p.z_pitch as usize;
    for row in 0..p.rows as usize {
        let at = lay.row(row, p.features);
        let (from, to) = (&from[row * pitch..][..pitch], &mut to[row * pitch..][..pitch]);
        let outputs = &outputs[row * p.outputs_pitch as usize..][..p.outputs_pitch as usize];
        to.copy_from_slice(from);
        let (columns, count) = moved(p.columns, p.stride, p.offset);
        let mut log = T::ZERO;
        for (column, o) in columns.filter(|&(column, _)| at.is_asked_column(column)) {
            let s = bounded(outputs[o], SCALE_BOUND);
            let mut z = from[column] * s.exp() + outputs[count + o];
            log += s;
            if z < T::ZERO {
                let r = bounded(outputs[2 * count + o], SLOPE_BOUND);
                z *= r.exp();
                log += r;
            }
            to[column] = z;
        }
        logs[row] += log;
    }
}

kernel! {
    /// The way back through a coupling: the gradient of its columns, and of its network's outputs, which they become.
    pub CouplingGrad "coupling_grad" [GROUPS, FLOW, COUPLING]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch, outputs_pitch, stride, offset }
    (groups: U32 Read, masks: F32 Read, from_z: F32 Read, grad_logs: F32 Read, outputs: F32 Write, grad_z: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, 3 * p.z_pitch + 2 * p.outputs_pitch]));
    twin coupling_grad;
}

#[inline(always)]
fn coupling_grad<T: Real>(p: &CouplingGrad, mut args: Args<T>) {
    let (groups, masks, from, grad_logs) = (args.words(), args.reals(), args.reals(), args.reals());
    let (outputs, grad_z) = (args.reals_mut(), args.reals_mut());
    let lay = lay!(p, groups, masks);
    let pitch = p.z_pitch as usize;
    for row in 0..p.rows as usize {
        let at = lay.row(row, p.features);
        let (from, grad_z) = (&from[row * pitch..][..pitch], &mut grad_z[row * pitch..][..pitch]);
        let outputs = &mut outputs[row * p.outputs_pitch as usize..][..p.outputs_pitch as usize];
        let g = grad_logs[row];
        let (columns, count) = moved(p.columns, p.stride, p.offset);
        for (column, o) in columns {
            let [mut ds, mut dt, mut dr] = [T::ZERO; 3];
            if at.is_asked_column(column) {
                let s = bounded(outputs[o], SCALE_BOUND);
                let r = bounded(outputs[2 * count + o], SLOPE_BOUND);
                let scaled = from[column] * s.exp();
                let u = scaled + outputs[count + o];
                let mut du = grad_z[column];
                if u < T::ZERO {
                    du *= r.exp();
                    dr = (du * u + g) * bounded_grad(r, SLOPE_BOUND);
                }
                ds = (du * scaled + g) * bounded_grad(s, SCALE_BOUND);
                dt = du;
                grad_z[column] = du * s.exp();
            }
            (outputs[o], outputs[count + o], outputs[2 * count + o]) = (ds, dt, dr);
        }
    }
}

kernel! {
    /// A coupling the other way round.
    pub CouplingInverse "coupling_inverse" [GROUPS, FLOW, COUPLING]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch, outputs_pitch, stride, offset }
    (groups: U32 Read, masks: F32 Read, outputs: F32 Read, z: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, 2 * p.z_pitch + p.outputs_pitch]));
    twin coupling_inverse;
}

#[inline(always)]
fn coupling_inverse<T: Real>(p: &CouplingInverse, mut args: Args<T>) {
    let (groups, masks, outputs, z) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let lay = lay!(p, groups, masks);
    for (row, z) in z.chunks_exact_mut(p.z_pitch as usize).take(p.rows as usize).enumerate() {
        let at = lay.row(row, p.features);
        let outputs = &outputs[row * p.outputs_pitch as usize..][..p.outputs_pitch as usize];
        let (columns, count) = moved(p.columns, p.stride, p.offset);
        for (column, o) in columns.filter(|&(column, _)| at.is_asked_column(column)) {
            let mut u = z[column];
            if u < T::ZERO {
                u *= (-bounded(outputs[2 * count + o], SLOPE_BOUND)).exp();
            }
            z[column] = (u - outputs[count + o]) * (-bounded(outputs[o], SCALE_BOUND)).exp();
        }
    }
}

kernel! {
    /// The log-density of each row at the end of a flow, added to its log-determinant.
    pub FlowDensity "flow_density" [GROUPS, FLOW]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch }
    (groups: U32 Read, masks: F32 Read, z: F32 Read, logs: F32 Write)
    grid |p| line(p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), product(&[p.rows, p.z_pitch]));
    twin flow_density;
}

#[inline(always)]
fn flow_density<T: Real>(p: &FlowDensity, mut args: Args<T>) {
    let (groups, masks, z, logs) = (args.words(), args.reals(), args.reals(), args.reals_mut());
    let lay = lay!(p, groups, masks);
    for (row, log) in logs.iter_mut().enumerate().take(p.rows as usize) {
        let at = lay.row(row, p.features);
        let z = &z[row * p.z_pitch as usize..][..p.columns as usize];
        let asked = z.iter().enumerate().filter(|&(column, _)| at.is_asked_column(column));
        let mut sum = T::ZERO;
        for (_, &z) in asked {
            sum -= T::of(0.5) * z * z + T::of(HALF_LN_TAU);
        }
        *log += sum;
    }
}

kernel! {
    /// The gradient of what a flow ends in, from that of the log-densities.
    pub FlowDensityGrad "flow_density_grad" [GROUPS, FLOW]
    { rows, batch, classes, columns, features, mask_stride, step, kind, z_pitch }
    (groups: U32 Read, masks: F32 Read, z: F32 Read, grad_logs: F32 Read, grad_z: F32 Write)
    grid |p| area(p.columns, p.rows);
    work |p| Work::of_numbers(area(p.columns, p.rows), 2 * product(&[p.rows, p.columns]));
    twin flow_density_grad;
}

#[inline(always)]
fn flow_density_grad<T: Real>(p: &FlowDensityGrad, mut args: Args<T>) {
    let (groups, masks, z, grad_logs) = (args.words(), args.reals(), args.reals(), args.reals());
    let grad_z = args.reals_mut();
    let lay = lay!(p, groups, masks);
    for (row, grad_z) in grad_z.chunks_exact_mut(p.z_pitch as usize).take(p.rows as usize).enumerate() {
        let at = lay.row(row, p.features);
        let z = &z[row * p.z_pitch as usize..][..p.columns as usize];
        for (column, (grad_z, &z)) in grad_z.iter_mut().zip(z).enumerate() {
            *grad_z = if at.is_asked_column(column) { -z * grad_logs[row] } else { T::ZERO };
        }
    }
}

/// The other directions of a coupling have its parameters.
macro_rules! of_coupling {
    ($name:ident, $p:ident, $pitch:ident: $value:expr) => {
        $name {
            rows: $p.rows,
            batch: $p.batch,
            classes: $p.classes,
            columns: $p.columns,
            features: $p.features,
            mask_stride: $p.mask_stride,
            step: $p.step,
            kind: $p.kind,
            z_pitch: $p.z_pitch,
            $pitch: $value,
            stride: $p.stride,
            offset: $p.offset,
        }
    };
}

impl From<Coupling> for CouplingGrad {
    fn from(p: Coupling) -> Self {
        of_coupling!(CouplingGrad, p, outputs_pitch: p.outputs_pitch)
    }
}

impl From<Coupling> for CouplingInverse {
    fn from(p: Coupling) -> Self {
        of_coupling!(CouplingInverse, p, outputs_pitch: p.outputs_pitch)
    }
}

impl FlowInputGrad {
    /// Of what a coupling's network has read.
    pub fn of(p: Coupling, input_pitch: u32) -> Self {
        of_coupling!(FlowInputGrad, p, input_pitch: input_pitch)
    }
}
