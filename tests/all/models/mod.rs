//! Models made by hand or at random, for the tests that ask them and those that store them.

use querent::data::Normalization;
use querent::nmppg::{Config, Evaluation};
use querent::nn::{Stack, Tensors};
use querent::policy::history::{Epoch, Phase};
use querent::{Feature, Model, Problem};

/// Numbers in -1..1.
pub fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

pub fn layers(widths: [usize; 4], seed: u64, gain: f64) -> Vec<Tensors> {
    let stack = Stack::new(0, &widths);
    let mut tensors = stack.unpack(&stack.init(seed, 0));
    for layer in &mut tensors {
        layer
            .weight
            .iter_mut()
            .chain(&mut layer.bias)
            .for_each(|value| *value = f64::from((*value * gain) as f32));
    }
    tensors
}

pub fn history() -> Vec<Epoch> {
    let epoch = |index: usize, phase| Epoch {
        index,
        phase,
        settings: [("tau_soft".to_string(), 0.8 / 3.0), ("lambda".to_string(), 0.1 + 0.2)].into(),
        train: [("objective", 1.0 / 3.0)].into(),
        validation: Evaluation { objective: 0.48f64.sqrt(), ..Evaluation::default() },
        passes: Vec::new(),
        best: index == 1,
        judged: None,
        seconds: 1e-3 * index as f64,
    };
    vec![epoch(0, Phase::WarmUp), epoch(1, Phase::Stage(0)), epoch(2, Phase::Stage(1))]
}

/// A model of random weights. Feature names, costs, normalization and weights are all different.
pub fn random(
    groups: &[u32],
    classes: usize,
    hidden: [[usize; 2]; 2],
    horizon: Option<usize>,
    seed: u64,
) -> Model {
    let features = 1 + *groups.iter().max().expect("columns") as usize;
    let feature = |i: usize| Feature { name: format!("feature \"{i}\" ü"), cost: 0.5 + i as f64 / 7.0 };
    let problem = Problem::new(
        (0..features).map(feature).collect(),
        groups.to_vec(),
        (0..classes).map(|class| format!("class {class}")).collect(),
    )
    .and_then(|problem| problem.with_class_weights((1..=classes).map(|i| 1.0 / i as f64).collect()))
    .expect("valid");
    let mut draw = numbers(seed);
    let normalization = Normalization {
        mean: groups.iter().map(|_| (3.0 * draw()) as f32).collect(),
        scale: groups.iter().map(|_| (1.5 + draw()) as f32).collect(),
    };
    let inputs = groups.len() + features;
    let policy = layers([inputs, hidden[0][0], hidden[0][1], features + 1], seed, 2.5);
    let predictor = layers([inputs, hidden[1][0], hidden[1][1], classes], seed + 1, 2.5);
    let config = Config::new(0.03).with(|c| {
        c.networks.policy = hidden[0];
        c.networks.predictor = hidden[1];
        c.horizon = horizon;
        c.unavailable = 0.0;
        c.seed = seed;
    });
    querent::nmppg::model(problem, normalization, config, policy, predictor, history()).expect("fits")
}

/// A model that reads nothing: its policy has these logits (the last is for stopping), whatever was seen.
pub fn constant(logits: &[f64], costs: &[f64], horizon: Option<usize>) -> Model {
    let features = costs.len();
    assert_eq!(logits.len(), features + 1);
    let zero = |inputs: usize, outputs: usize| Tensors {
        weight: vec![0.0; inputs * outputs],
        bias: vec![0.0; outputs],
    };
    let network = |bias: Vec<f64>| {
        let last = Tensors { bias: bias.clone(), ..zero(4, bias.len()) };
        vec![zero(2 * features, 4), zero(4, 4), last]
    };
    querent::nmppg::model(
        Problem::ungrouped(costs, 3).expect("valid"),
        Normalization::identity(features),
        Config::default().with(|c| {
            c.networks.policy = [4, 4];
            c.networks.predictor = [4, 4];
            c.horizon = horizon;
            c.unavailable = 0.0;
        }),
        network(logits.to_vec()),
        network(vec![1.0, 2.0, 2.0]),
        Vec::new(),
    )
    .expect("fits")
}
