//! A conditional normalizing flow: the density of any columns of a row given any others and a class, exactly.
//!
//! Couplings (`shaders/coupling.wgsl`) move one half of the columns after the other, each with what a network makes of the
//! half that stays, of what is given, and of the class. The last one moves all columns and reads only what is given: with the
//! standard normal behind it, it is a conditional base. Columns that are not asked for are no part of it: they are zero,
//! are never moved and add nothing to the density, so it is one of exactly the columns asked for, whichever they are. The
//! halves are fixed (even and odd columns), so no permutation is needed.

use super::layer::pitch;
use super::masked::Inputs;
use super::optim::Weights;
use super::stack::{Network, Rows, Stack};
use super::tape::{Operand, Tape};
use super::word;
use crate::engine::kernels as k;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope};

/// Points of the base that moments are taken from.
pub const POINTS: usize = 2;

/// Which columns a coupling moves: every so many, from one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Every so many.
    pub stride: usize,
    /// From this one on.
    pub offset: usize,
}

impl Moves {
    /// Of a flow over so many columns with so many couplings of halves: these in turn, then all columns at once. A single
    /// column has no halves.
    pub fn all(columns: usize, couplings: usize) -> Vec<Self> {
        let halves = if columns > 1 { couplings } else { 0 };
        let halves = (0..halves).map(|index| Self { stride: 2, offset: index % 2 });
        halves.chain([Self { stride: 1, offset: 0 }]).collect()
    }

    /// How many columns it moves.
    pub fn columns(&self, of: usize) -> usize {
        of.saturating_sub(self.offset).div_ceil(self.stride)
    }

    /// The widths of its network: what it reads, the hidden layers, and s, t and r of each column it moves.
    pub fn widths(&self, [columns, features, classes]: [usize; 3], hidden: &[usize]) -> Vec<usize> {
        let inputs = 2 * (columns + features) + classes;
        [&[inputs][..], hidden, &[3 * self.columns(columns)]].concat()
    }
}

/// A coupling in a plan.
#[derive(Clone, Debug)]
struct Step {
    network: Network,
    moves: Moves,
}

/// A flow in a plan.
#[derive(Clone, Debug)]
pub struct Flow {
    inputs: Inputs,
    classes: usize,
    steps: Vec<Step>,
}

/// What a flow leaves behind on its way forward, and needs on its way back.
#[derive(Clone, Debug)]
pub struct FlowTape {
    /// The columns before each coupling, and after the last.
    pub z: Vec<BufferId>,
    /// The log-density of each row; its gradient on the way back.
    pub logs: BufferId,
    inputs: Vec<BufferId>,
    networks: Vec<Tape>,
    grad: Option<[BufferId; 2]>,
}

/// The rows that a flow goes through: those of `batch` instances, `parts` times for each class (`shaders/lib/flow.wgsl`).
#[derive(Clone, Copy, Debug)]
pub struct FlowRows {
    /// Instances.
    pub batch: usize,
    /// How often; all but the first are of kind 1.
    pub parts: usize,
    /// Of the first: 0 for the density of what the mask has, 1 for that of the rest given it.
    pub kind: usize,
    /// The instances' rows.
    pub x: BufferId,
    /// Their masks, a pitch of the features apart.
    pub masks: BufferId,
    /// Which step of the masks' tape.
    pub step: usize,
}

impl Flow {
    /// The layouts of its networks, one after the other from a place of the group's buffers on.
    pub fn stacks(
        start: usize,
        sizes @ [columns, ..]: [usize; 3],
        hidden: &[usize],
        couplings: usize,
    ) -> Vec<Stack> {
        let mut end = start;
        let stacks = Moves::all(columns, couplings).into_iter().map(|moves| {
            let stack = Stack::new(end, &moves.widths(sizes, hidden));
            end = stack.end();
            stack
        });
        stacks.collect()
    }

    /// A flow with these networks, whose weights are in a group.
    pub fn new(inputs: Inputs, classes: usize, stacks: Vec<Stack>, weights: Weights, none: BufferId) -> Self {
        let moves = Moves::all(inputs.columns, stacks.len() - 1);
        let steps = stacks.into_iter().zip(moves);
        let steps = steps.map(|(stack, moves)| Step { network: Network::new(stack, weights, none), moves });
        Self { inputs, classes, steps: steps.collect() }
    }

    /// The same with its averaged weights, for evaluation.
    pub fn averaged(&self) -> Self {
        let average = |step: &Step| Step { network: step.network.averaged(), moves: step.moves };
        Self { steps: self.steps.iter().map(average).collect(), ..self.clone() }
    }

    /// Its networks.
    pub fn networks(&self) -> impl Iterator<Item = &Network> {
        self.steps.iter().map(|step| &step.network)
    }

    fn rows(&self, at: FlowRows) -> Rows {
        Rows { first: 0, count: at.parts * self.classes * at.batch }
    }

    /// What the way back needs, once a step.
    pub fn transpose(&self, b: &mut PlanBuilder) {
        for Step { network, .. } in &self.steps {
            network.transpose(b, 0..network.stack.layers.len());
        }
    }

    /// From rows to their log-densities.
    pub fn forward(&self, b: &mut PlanBuilder, tape: &FlowTape, at: FlowRows) {
        self.start(b, tape.z[0], tape, at, false);
        for (index, step) in self.steps.iter().enumerate() {
            self.read(b, index, tape.z[index], tape, at);
            let outputs = tape.networks[index].logits();
            let p = self.coupling(step, at);
            let buffers =
                [self.inputs.groups, at.masks, tape.z[index], outputs, tape.z[index + 1], tape.logs];
            b.call(p, &buffers);
        }
        let end = tape.z[self.steps.len()];
        b.call(self.density(at), &[self.inputs.groups, at.masks, end, tape.logs]);
    }

    /// From the gradients of the log-densities to those of all weights; after [`Flow::transpose`]. Divided by `divisor`;
    /// added to what is there, or written over it.
    pub fn backward(
        &self,
        b: &mut PlanBuilder,
        tape: &FlowTape,
        at: FlowRows,
        divisor: usize,
        accumulate: bool,
    ) {
        let Some([grad_z, grad_input]) = tape.grad else { return };
        let (groups, rows) = (self.inputs.groups, self.rows(at));
        let k::FlowDensity {
            rows: count,
            batch,
            classes,
            columns,
            features,
            mask_stride,
            step,
            kind,
            z_pitch,
        } = self.density(at);
        let density = k::FlowDensityGrad {
            rows: count,
            batch,
            classes,
            columns,
            features,
            mask_stride,
            step,
            kind,
            z_pitch,
        };
        b.call(density, &[groups, at.masks, tape.z[self.steps.len()], tape.logs, grad_z]);
        for (index, step) in self.steps.iter().enumerate().rev() {
            let network = &tape.networks[index];
            let p = k::CouplingGrad::from(self.coupling(step, at));
            b.call(p, &[groups, at.masks, tape.z[index], tape.logs, network.logits(), grad_z]);
            step.network.backward_hidden(b, rows, network, None);
            step.network.backward_weights(b, rows.count, network, divisor, accumulate);
            step.network.backward_first(b, rows.count, tape.inputs[index], network, divisor, accumulate);
            if index > 0 {
                step.network.backward_input(b, rows, network, grad_input);
                let p = self.coupling(step, at);
                let p = k::FlowInputGrad::of(p, word(self.input_pitch()));
                b.call(p, &[groups, at.masks, grad_input, grad_z]);
            }
        }
    }

    /// From points of the base, a part each, to rows, which end up in the tape's first z.
    pub fn sample(&self, b: &mut PlanBuilder, tape: &FlowTape, at: FlowRows) {
        let z = tape.z[0];
        self.start(b, z, tape, at, true);
        for (index, step) in self.steps.iter().enumerate().rev() {
            self.read(b, index, z, tape, at);
            let p = k::CouplingInverse::from(self.coupling(step, at));
            b.call(p, &[self.inputs.groups, at.masks, tape.networks[index].logits(), z]);
        }
    }

    fn start(&self, b: &mut PlanBuilder, z: BufferId, tape: &FlowTape, at: FlowRows, points: bool) {
        let p = self.density(at);
        let start = k::FlowStart {
            rows: p.rows,
            batch: p.batch,
            classes: p.classes,
            columns: p.columns,
            features: p.features,
            x_pitch: word(pitch(self.inputs.row_columns)),
            mask_stride: p.mask_stride,
            step: p.step,
            kind: p.kind,
            z_pitch: p.z_pitch,
            points: u32::from(points),
        };
        b.call(start, &[self.inputs.groups, at.x, at.masks, z, tape.logs]);
    }

    /// A coupling's network on some z.
    fn read(&self, b: &mut PlanBuilder, index: usize, z: BufferId, tape: &FlowTape, at: FlowRows) {
        let step = &self.steps[index];
        let p = self.coupling(step, at);
        let input = k::FlowInput {
            rows: p.rows,
            batch: p.batch,
            classes: p.classes,
            columns: p.columns,
            features: p.features,
            x_pitch: word(pitch(self.inputs.row_columns)),
            mask_stride: p.mask_stride,
            step: p.step,
            kind: p.kind,
            z_pitch: p.z_pitch,
            input_pitch: word(self.input_pitch()),
            stride: p.stride,
            offset: p.offset,
        };
        b.call(input, &[self.inputs.groups, at.x, at.masks, z, tape.inputs[index]]);
        let from = Some(Operand::at(tape.inputs[index], 0));
        step.network.forward(b, 0, self.rows(at), from, &tape.networks[index], None);
    }

    fn input_pitch(&self) -> usize {
        pitch(2 * (self.inputs.columns + self.inputs.features) + self.classes)
    }

    fn density(&self, at: FlowRows) -> k::FlowDensity {
        k::FlowDensity {
            rows: word(self.rows(at).count),
            batch: word(at.batch),
            classes: word(self.classes),
            columns: word(self.inputs.columns),
            features: word(self.inputs.features),
            mask_stride: word(pitch(self.inputs.features)),
            step: word(at.step),
            kind: word(at.kind),
            z_pitch: word(pitch(self.inputs.columns)),
        }
    }

    fn coupling(&self, step: &Step, at: FlowRows) -> k::Coupling {
        let p = self.density(at);
        k::Coupling {
            rows: p.rows,
            batch: p.batch,
            classes: p.classes,
            columns: p.columns,
            features: p.features,
            mask_stride: p.mask_stride,
            step: p.step,
            kind: p.kind,
            z_pitch: p.z_pitch,
            outputs_pitch: word(pitch(3 * step.moves.columns(self.inputs.columns))),
            stride: word(step.moves.stride),
            offset: word(step.moves.offset),
        }
    }
}

impl FlowTape {
    /// A tape for so many rows; `trained`: with what the way back needs.
    pub fn declare(b: &mut PlanBuilder, name: &str, flow: &Flow, rows: usize, trained: bool) -> Self {
        let columns = pitch(flow.inputs.columns);
        let networks = flow.steps.iter().enumerate().map(|(index, step)| {
            let (name, stack) = (format!("{name}.{index}"), &step.network.stack);
            match trained {
                true => Tape::declare(b, &name, stack, [0, rows, 0]),
                false => Tape::forward_only(b, &name, stack, [0, rows]),
            }
        });
        let networks = networks.collect();
        let mut reals = |what: String, len| b.buffer(format!("{name}.{what}"), Elem::F32, len, Scope::Lane);
        let steps = flow.steps.len();
        // Without a way back, two z in turn and one input are enough.
        let (z_buffers, input_buffers) = if trained { (steps + 1, steps) } else { (2, 1) };
        let z: Vec<_> = (0..z_buffers).map(|index| reals(format!("z{index}"), rows * columns)).collect();
        let inputs: Vec<_> = (0..input_buffers)
            .map(|index| reals(format!("input{index}"), rows * flow.input_pitch()))
            .collect();
        Self {
            z: z.iter().copied().cycle().take(steps + 1).collect(),
            logs: reals("logs".into(), rows),
            inputs: inputs.iter().copied().cycle().take(steps).collect(),
            networks,
            grad: trained.then(|| {
                [
                    reals("grad_z".into(), rows * columns),
                    reals("grad_input".into(), rows * flow.input_pitch()),
                ]
            }),
        }
    }
}
