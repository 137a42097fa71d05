//! The training step: modules, autodiff through the rollout, burn's Adam.

use crate::Outcome;
use crate::problem::{Problem, Shape};
use burn::module::Module;
use burn::nn::{Linear, LinearConfig};
use burn::optim::{AdamConfig, GradientsParams, ModuleOptimizer};
use burn::prelude::*;
use burn::tensor::Distribution;
use burn::tensor::activation::{log_softmax, relu, softmax};

const DROPOUT: f64 = 0.3;
/// What is added to blocked logits in place of −∞.
const BLOCKED: f32 = -1e30;

/// Two hidden layers.
#[derive(Module, Debug)]
pub struct Mlp {
    pub first: Linear,
    pub second: Linear,
    pub last: Linear,
}

impl Mlp {
    pub fn new([inputs, first, second, outputs]: [usize; 4], device: &Device) -> Self {
        Self {
            first: LinearConfig::new(inputs, first).init(device),
            second: LinearConfig::new(first, second).init(device),
            last: LinearConfig::new(second, outputs).init(device),
        }
    }

    fn policy(&self, input: Tensor<2>) -> Tensor<2> {
        let hidden = relu(self.first.forward(input));
        self.last.forward(relu(self.second.forward(hidden)))
    }

    fn predictor(&self, input: Tensor<2>, dropout: &[Tensor<2>; 2]) -> Tensor<2> {
        let hidden = relu(self.first.forward(input)) * dropout[0].clone();
        self.last.forward(relu(self.second.forward(hidden)) * dropout[1].clone())
    }
}

/// A batch with its noise.
pub struct Batch {
    /// B × columns.
    pub x: Tensor<2>,
    /// B × 1.
    pub y: Tensor<2, Int>,
    /// k times B × (d + 1).
    pub gumbel: Vec<Tensor<2>>,
    /// Multipliers of the hidden layers: (k + 1) B × width.
    pub dropout: [Tensor<2>; 2],
}

fn inputs(problem: &Problem, x: Tensor<2>, mask: Tensor<2>) -> Tensor<2> {
    let seen = match &problem.group {
        Some(group) => mask.clone().select(1, group.clone()),
        None => mask.clone(),
    };
    Tensor::cat(vec![x * seen, mask], 1)
}

/// J and L_pred. Burn cannot go back twice through one graph, so the predictor is evaluated twice on the masks
/// of all steps: with its weights frozen for J, with the masks detached for L_pred.
pub fn objectives(problem: &Problem, policy: &Mlp, predictor: &Mlp, batch: &Batch) -> (Tensor<1>, Tensor<1>) {
    let p = problem;
    let [rows, _] = batch.x.dims();
    let device = batch.x.device();
    let mut hard = Tensor::<2>::zeros([rows, p.d], &device);
    let mut relaxed = hard.clone();
    let mut survive = Tensor::<2>::ones([rows, 1], &device);
    let never = Tensor::<2>::zeros([rows, 1], &device);
    let features = Tensor::<1, Int>::arange(0..p.d as i64, &device).unsqueeze::<2>().repeat_dim(0, rows);
    let straight_through =
        |hard: &Tensor<2>, relaxed: &Tensor<2>| hard.clone() + (relaxed.clone() - relaxed.clone().detach());
    let (mut masks, mut stops) = (Vec::new(), Vec::new());
    let mut paid = Tensor::<2>::zeros([rows, 1], &device);
    for noise in &batch.gumbel {
        let mask = straight_through(&hard, &relaxed);
        let blocked = Tensor::cat(vec![hard.clone(), never.clone()], 1).equal_elem(1.0);
        let z = policy.policy(inputs(p, batch.x.clone(), mask.clone())).div_scalar(p.tau_hard);
        let z = z.mask_fill(blocked.clone(), BLOCKED);
        let log_p = log_softmax(z.clone(), 1);
        let entropy = -(log_p.clone().exp() * log_p.mask_fill(blocked, 0.0)).sum_dim(1);
        let u = (z + noise.clone()).div_scalar(p.tau_soft);
        let action = softmax(u.clone(), 1);
        let stop = action.clone().narrow(1, p.d, 1);
        let go = action.narrow(1, 0, p.d).sum_dim(1);
        let choice = softmax(u.narrow(1, 0, p.d), 1);
        let chosen = choice.clone().detach().argmax(1).repeat_dim(1, p.d);
        let onehot = features.clone().equal(chosen).float();
        let price = straight_through(&onehot, &choice).matmul(p.cost.clone());
        let step = (go.clone() * price).mul_scalar(p.alpha) - entropy.mul_scalar(p.lambda);
        paid = paid + survive.clone() * step;
        masks.push(mask);
        stops.push(survive.clone() * stop);
        hard = hard + onehot;
        relaxed = relaxed.clone() + (relaxed.neg() + 1.0) * choice;
        survive = survive * go;
    }
    masks.push(straight_through(&hard, &relaxed));
    stops.push(survive);
    let masks = Tensor::cat(masks, 0);
    let stops = Tensor::cat(stops, 0);
    let x = batch.x.clone().repeat_dim(0, p.k + 1);
    let y = batch.y.clone().repeat_dim(0, p.k + 1);
    let losses = |net: &Mlp, masks: Tensor<2>| {
        let logits = net.predictor(inputs(p, x.clone(), masks), &batch.dropout);
        let mut losses = -log_softmax(logits, 1).gather(1, y.clone());
        if let Some(weights) = &p.class_weight {
            losses = losses * weights.clone().repeat_dim(0, rows * (p.k + 1)).gather(1, y.clone());
        }
        losses
    };
    let frozen = predictor.clone().no_grad();
    let stopped = (stops * losses(&frozen, masks.clone())).sum().div_scalar(rows as f32);
    (paid.mean() + stopped, losses(predictor, masks.detach()).mean())
}

/// Gradients of both networks, each of its own objective.
pub fn gradients(
    problem: &Problem,
    policy: &Mlp,
    predictor: &Mlp,
    batch: &Batch,
) -> (Tensor<1>, Tensor<1>, [GradientsParams; 2]) {
    let (objective, prediction) = objectives(problem, policy, predictor, batch);
    let mut grads = (objective.clone() + prediction.clone()).backward();
    let for_policy = GradientsParams::from_module(&mut grads, policy);
    let for_predictor = GradientsParams::from_module(&mut grads, predictor);
    (objective, prediction, [for_policy, for_predictor])
}

/// A run on a random table.
pub struct Training {
    problem: Problem,
    nets: Option<[Mlp; 2]>,
    adams: [ModuleOptimizer; 2],
    x: Tensor<2>,
    y: Tensor<2, Int>,
    widths: [usize; 2],
    batch: usize,
    at: usize,
    device: Device,
}

impl Training {
    pub fn new(shape: &Shape, batch: usize, rows: usize, device: &Device) -> Outcome<Self> {
        let widths = [shape.hidden; 2];
        let net = |outputs| Mlp::new([shape.columns + shape.d, widths[0], widths[1], outputs], device);
        let label = Tensor::<2>::random([rows, 1], Distribution::Uniform(0.0, shape.classes as f64), device);
        let adam = || AdamConfig::new().with_epsilon(1e-8).init();
        Ok(Self {
            problem: Problem::of(shape, device),
            nets: Some([net(shape.d + 1), net(shape.classes)]),
            adams: [adam(), adam()],
            x: Tensor::random([rows, shape.columns], Distribution::Normal(0.0, 1.0), device),
            y: label.clamp(0.0, shape.classes as f32 - 0.5).int(),
            widths,
            batch,
            at: 0,
            device: device.clone(),
        })
    }

    /// The next batch. Rows in their order: a random table needs no shuffling.
    fn next(&mut self) -> Batch {
        let [rows, _] = self.x.dims();
        if self.at + self.batch > rows {
            self.at = 0;
        }
        let (first, p) = (self.at, &self.problem);
        self.at += self.batch;
        let uniform =
            |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Uniform(1e-10, 1.0), &self.device);
        let keep = 1.0 - DROPOUT;
        let multipliers = |width: usize| {
            let shape = [(p.k + 1) * self.batch, width];
            Tensor::<2>::random(shape, Distribution::Bernoulli(keep), &self.device).div_scalar(keep as f32)
        };
        Batch {
            x: self.x.clone().narrow(0, first, self.batch),
            y: self.y.clone().narrow(0, first, self.batch),
            gumbel: (0..p.k).map(|_| -(-uniform([self.batch, p.d + 1]).log()).log()).collect(),
            dropout: self.widths.map(multipliers),
        }
    }

    /// So many steps, all done on return.
    pub fn steps(&mut self, times: usize) -> Outcome<()> {
        for _ in 0..times {
            let batch = self.next();
            let [policy, predictor] = self.nets.take().ok_or("a step failed before")?;
            let (_, _, [for_policy, for_predictor]) = gradients(&self.problem, &policy, &predictor, &batch);
            let [first, second] = &mut self.adams;
            self.nets =
                Some([first.step(1e-3, policy, for_policy), second.step(1e-4, predictor, for_predictor)]);
        }
        self.device.sync().map_err(|error| format!("{error:?}"))?;
        Ok(())
    }
}
