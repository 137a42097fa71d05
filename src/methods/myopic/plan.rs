//! Two networks and their tape. What is done with them is in `step` and `evaluate`.

use super::kernels::Concrete;
use crate::engine::kernels::MeanLoss;
use crate::engine::kernels::words::losses;
use crate::engine::plan::{BufferId, Elem, PlanBuilder, Scope, Section};
use crate::nn::{Dense, Network, Stack, Tape, Tensors, Weights, pitch, word};
use crate::train::{Batches, Dropout, Validation};

/// The mask that the predictor is tried on after a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Successor {
    /// The relaxed one. What is acquired is sampled by noise of its own.
    Relaxed,
    /// The hard one, with what was sampled; its gradient goes to the relaxed choice (straight-through).
    Straight,
}

/// What a method has two networks for.
#[derive(Clone, Copy, Debug)]
pub struct Setup<'a> {
    /// Widths of the hidden layers of both.
    pub hidden: &'a [usize],
    /// Probability that a hidden unit of the predictor is dropped.
    pub dropout: f64,
    /// The mask that the predictor is tried on.
    pub successor: Successor,
    /// The optimiser group that both are in; `None`: each has its own, with a rate of its own.
    pub group: Option<&'static str>,
}

/// A selector and a predictor in a plan.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The selector, whose group is the first.
    pub selector: Network,
    /// The predictor, whose group is the last.
    pub predictor: Network,
    /// What they are trained and evaluated by.
    pub sections: Sections,
}

/// Its sections.
#[derive(Clone, Copy, Debug)]
pub struct Sections {
    /// A training step.
    pub step: Section,
    /// One of the pretraining.
    pub warm_up: Section,
    /// A chunk of each split.
    pub evaluate: [Section; 3],
    /// A chunk of the validation rows, with what was asked.
    pub validate: Section,
}

/// Relaxed choices, and what the predictor makes of what follows from them.
#[derive(Clone, Debug)]
pub(super) struct Relaxed {
    pub gumbel: BufferId,
    pub masks: BufferId,
    pub input: BufferId,
    pub losses: BufferId,
    pub predictor: Tape,
}

/// Networks and tape.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub batches: Batches,
    pub selector: Network,
    pub predictor: Network,
    pub successor: Successor,
    pub dropout: Dropout,
    pub acquired_at: BufferId,
    pub path: BufferId,
    pub mask_grad: BufferId,
    pub tape: Tape,
    pub relaxed: Relaxed,
    /// In an evaluation: the selector, the predictor under hard masks, and under relaxed ones where those are trained.
    pub chunk_selector: Tape,
    pub chunk_predictor: Tape,
    pub chunk_relaxed: Option<Relaxed>,
    pub scratch: BufferId,
}

/// Steps that a tape of the predictor has, those that have a dense input, and Gumbel numbers for so many.
#[derive(Clone, Copy)]
pub(super) struct Extent {
    pub states: usize,
    pub dense: usize,
    pub noise: usize,
}

impl Successor {
    pub(super) fn extent(self, steps: usize) -> Extent {
        match self {
            Successor::Relaxed => Extent { states: steps, dense: steps, noise: 2 * steps },
            // Under hard masks the first layer goes on from knowing nothing; only the pretraining has a dense input.
            Successor::Straight => Extent { states: steps + 1, dense: 1, noise: steps },
        }
    }
}

impl Relaxed {
    /// For `rows` instances, trained or only evaluated, under a name of its own.
    fn declare(
        b: &mut PlanBuilder,
        name: &str,
        batches: &Batches,
        net: &Stack,
        [rows, steps]: [usize; 2],
        extent: Extent,
    ) -> Self {
        let (d, inputs) = (pitch(batches.sizes.features), pitch(batches.inputs().width()));
        let (all, states) = (rows * steps, rows * extent.states);
        let trained = name.is_empty();
        let predictor = if trained {
            Tape::declare(b, "predictor", net, [rows, states, all])
        } else {
            Tape::forward_only(b, &format!("{name}predictor"), net, [rows, states])
        };
        let mut reals = |what: &str, len| b.buffer(format!("{name}{what}"), Elem::F32, len, Scope::Lane);
        Self {
            gumbel: reals("gumbel", rows * extent.noise * d),
            masks: reals("masks", all * d),
            input: reals("input", rows * extent.dense * inputs),
            losses: reals("losses", states * losses::LEN),
            predictor,
        }
    }

    pub(super) fn dense(&self, x: BufferId, features: usize) -> Dense {
        Dense { x, masks: self.masks, mask_stride: pitch(features), input: self.input }
    }
}

impl Pair {
    /// Declares the networks and their tape, and writes the sections.
    pub fn new(b: &mut PlanBuilder, batches: &Batches, setup: Setup) -> Self {
        let layout = Layout::declare(b, batches.clone(), setup);
        let step = layout.training_step(b);
        let warm_up = layout.warm_up_step(b);
        let (evaluate, validate) = batches.evaluations(b, |b, at| layout.greedy_chunk(b, at));
        let sections = Sections { step, warm_up, evaluate, validate };
        Self { selector: layout.selector, predictor: layout.predictor, sections }
    }

    /// How an epoch is validated.
    pub fn validation(&self) -> Validation {
        Validation { section: self.sections.validate, passes: 1, alphas: vec![0.0] }
    }

    /// The optimiser groups.
    pub fn weights(&self) -> Vec<Weights> {
        let mut groups = vec![self.selector.weights, self.predictor.weights];
        groups.dedup();
        groups
    }

    /// Both, by their names.
    pub fn networks(&self) -> Vec<(&'static str, &Network)> {
        vec![("selector", &self.selector), ("predictor", &self.predictor)]
    }

    /// Initial weights of each group.
    pub fn init(&self, seed: u64) -> Vec<Vec<f64>> {
        let of = [(&self.selector, 0), (&self.predictor, 1)].map(|(net, which)| net.stack.init(seed, which));
        if self.weights().len() == 1 { vec![of.concat()] } else { of.into() }
    }

    /// The layers of the selector and of the predictor, from the groups' values.
    pub fn unpack(&self, groups: &[Vec<f64>]) -> [Vec<Tensors>; 2] {
        let [first, last] = [groups.first(), groups.last()].map(|group| group.map_or(&[][..], Vec::as_slice));
        [self.selector.stack.unpack(first), self.predictor.stack.unpack(last)]
    }
}

impl Layout {
    fn declare(b: &mut PlanBuilder, batches: Batches, setup: Setup) -> Self {
        let s = batches.sizes.clone();
        let (rows, steps) = (s.rows, s.horizon);
        let Setup { hidden, dropout, successor, .. } = setup;
        let [selector, predictor] = networks(b, &batches, setup);
        let extent = successor.extent(steps);
        let dropout = Dropout::declare(b, dropout, hidden, rows * extent.states);
        let mask_grad = b.buffer("mask_grad", Elem::F32, rows * steps * pitch(s.features), Scope::Lane);
        let tape = Tape::declare(b, "selector", &selector.stack, [rows, rows * steps, 0]);
        let relaxed = Relaxed::declare(b, "", &batches, &predictor.stack, [rows, steps], extent);
        let chunk_rows = s.evaluation_rows;
        let mut forward = |name: &str, stack| Tape::forward_only(b, name, stack, [chunk_rows; 2]);
        let chunk_selector = forward("evaluation.selector", &selector.stack);
        let chunk_predictor = forward("evaluation.predictor", &predictor.stack);
        let chunk_relaxed = (successor == Successor::Relaxed).then(|| {
            let (name, net) = ("evaluation.soft.", &predictor.stack);
            Relaxed::declare(b, name, &batches, net, [chunk_rows, 1], successor.extent(1))
        });
        let mut words = |name: &str, len| b.buffer(name, Elem::U32, len, Scope::Lane);
        Self {
            acquired_at: words("acquired_at", rows * s.features),
            path: words("path", rows * steps),
            // What a relaxed choice also samples is not what an evaluation asks.
            scratch: words("evaluation.scratch", chunk_rows),
            batches,
            selector,
            predictor,
            successor,
            dropout,
            mask_grad,
            tape,
            relaxed,
            chunk_selector,
            chunk_predictor,
            chunk_relaxed,
        }
    }

    pub(super) fn mean_loss(&self, b: &mut PlanBuilder, p: MeanLoss, losses: BufferId, training: bool) {
        let (y, to) = if training {
            (self.batches.y, self.batches.metrics)
        } else {
            (self.batches.chunk.y, self.batches.chunk.metrics)
        };
        let (stride, at) = (word(losses::LEN), word(losses::LOSS));
        b.call(MeanLoss { stride, at, training: u32::from(training), ..p }, &[losses, y, to]);
    }

    pub(super) fn concrete(&self, b: &mut PlanBuilder, at: Concrete, buffers: [BufferId; 5]) {
        let features = self.batches.sizes.features;
        let [logits, gumbel, acquired_at, masks, path] = buffers;
        b.call(
            Concrete { features: word(features), pitch: word(pitch(features)), ..at },
            &[logits, gumbel, acquired_at, masks, path, self.batches.settings],
        );
    }
}

/// The selector and the predictor, in one optimiser group or in one each.
fn networks(b: &mut PlanBuilder, batches: &Batches, setup: Setup) -> [Network; 2] {
    let s = &batches.sizes;
    let widths = |outputs| [&[batches.inputs().width()][..], setup.hidden, &[outputs]].concat();
    let selector = Stack::new(0, &widths(s.features));
    let begins = if setup.group.is_some() { selector.end() } else { 0 };
    let predictor = Stack::new(begins, &widths(s.classes));
    let groups = match setup.group {
        Some(name) => [Weights::declare(b, name, predictor.end(), 0); 2],
        None => [
            Weights::declare(b, "selector", selector.end(), 0),
            Weights::declare(b, "predictor", predictor.end(), 1),
        ],
    };
    let [of_selector, of_predictor] = groups;
    [Network::new(selector, of_selector, batches.none), Network::new(predictor, of_predictor, batches.none)]
}
