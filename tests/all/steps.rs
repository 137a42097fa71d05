//! What a training step may leave out or add: steps without the relaxed gradient, and noise on
//! the rows.

use crate::common::distance;
use crate::rig::{self, Rig};
use querent::Engine;
use querent::engine::kernels as k;
use querent::engine::kernels::words::{clock, settings};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nmppg::kernels::hyper;
use querent::nmppg::{Config, Stage, Stepper};

/// Where only REINFORCE counts, `step.reinforce` gives what `step` does without computing
/// the rest, at every horizon; where it does not, it would not.
#[test]
fn a_reinforce_step_is_the_whole_step() {
    let config = Config::default().with(|c| {
        c.networks.policy = [12, 9];
        c.networks.predictor = [10, 13];
        c.batch = 40;
        c.horizon = Some(6);
        c.seed = 3;
    });
    let stage = Stage {
        exact_stop: true,
        hazard: 0.05,
        reinforce: 1.0,
        rollouts: 2,
        lambda: 0.01,
        guard: 0.02,
        submasks: 0.6,
        ..Stage::default()
    };
    let gradients = |section: &str, reinforce: f64| {
        let data = rig::toy(7, 80);
        let mut stepper = Stepper::new(&Engine::cpu_f64(), &data, config.clone()).expect("fits");
        stepper.set_stage(Stage { reinforce, ..stage }).expect("valid");
        let range = crate::common::section(stepper.program().plan(), section);
        stepper.program_mut().run(range, 1);
        ["policy.grad", "predictor.grad", "policy.values", "metrics"].map(|name| {
            let id = stepper.program().plan().find(name).expect("declared");
            stepper.program().read_blocking(id).expect("reads")
        })
    };
    for horizon in ["", ".2", ".3", ".5"] {
        let (whole, alone) = (format!("step{horizon}"), format!("step{horizon}.reinforce"));
        for (whole, alone) in gradients(&whole, 1.0).iter().zip(gradients(&alone, 1.0)) {
            assert!(whole.iter().any(|&value| value != 0.0));
            assert!(distance(&alone, whole) < 1e-12, "{horizon}: {:.1e}", distance(&alone, whole));
        }
        assert!(distance(&gradients(&alone, 0.5)[0], &gradients(&whole, 0.5)[0]) > 1e-3, "must differ");
    }
}

/// A small table's rows get noise of the asked-for size, column by column, another one every step, the same
/// one for an instance's rollouts.
#[test]
fn rows_get_input_noise() {
    let (rows, columns, pitch) = (600usize, 6usize, 8usize);
    let mut b = PlanBuilder::new(1);
    let clock_id = b.buffer("clock", Elem::U32, clock::LEN, Scope::Shared);
    let mut reals = |name: &str, len| b.buffer(name, Elem::F32, len, Scope::Shared);
    let (spread, hyper_id, x) =
        (reals("spread", columns), reals("hyper", hyper::LEN), reals("x", rows * pitch));
    for (name, first) in [("input noise", 0), ("from 100", 100)] {
        b.section(name, |b| {
            let call =
                k::InputNoise { rows: rows as u32, columns: columns as u32, pitch: pitch as u32, first };
            b.call(call, &[clock_id, spread, hyper_id, x]);
        });
    }
    let mut rig = Rig::new(b);
    let mut hypers = vec![0.0; hyper::LEN];
    hypers[settings::INPUT_NOISE] = 0.3;
    let spreads = [1.0, 2.0, 0.0, 0.5, 1.0, 4.0];
    rig.set("hyper", &hypers).set("spread", &spreads);
    let mut noise = |step: u32, rollouts: u32, section: &str| {
        let mut words = [0; clock::LEN];
        (words[clock::SEED_LO], words[clock::STEP], words[clock::COPIES]) = (7, step, rollouts);
        rig.set_words("clock", &words).set("x", &vec![5.0; rows * pitch]).run(section);
        rig.get("x").iter().map(|value| value - 5.0).collect::<Vec<f64>>()
    };
    let drawn = noise(1, 1, "input noise");
    for column in 0..pitch {
        let values: Vec<f64> = drawn.iter().skip(column).step_by(pitch).copied().collect();
        let mean = values.iter().sum::<f64>() / rows as f64;
        let deviation = (values.iter().map(|v| v * v).sum::<f64>() / rows as f64).sqrt();
        let expected = 0.3 * spreads.get(column).copied().unwrap_or(0.0);
        assert!(mean.abs() <= 0.15 * expected, "column {column}: mean {mean}");
        assert!((deviation - expected).abs() <= 0.1 * expected, "column {column}: {deviation}");
    }
    assert_eq!(noise(1, 1, "input noise"), drawn);
    assert_ne!(noise(2, 1, "input noise"), drawn);
    // Noise belongs to the instance of the batch, whichever micro-batch it is in.
    assert_eq!(noise(1, 1, "from 100")[..(rows - 100) * pitch], drawn[100 * pitch..]);
    let pairs = noise(1, 2, "input noise");
    for row in 0..rows {
        assert_eq!(pairs[row * pitch..][..pitch], drawn[row / 2 * pitch..][..pitch], "row {row}");
    }
}
