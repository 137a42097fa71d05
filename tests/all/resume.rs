//! Tier 6: the same seed gives the same bits, a resumed run those of the uninterrupted one, and the
//! engines stay close to each other.

use crate::common::{self, TempDir, distance, engines};
use querent::data::Part;
use querent::data::{Dataset, synthetic};
use querent::nmppg::{Checkpoint, Config, Rollout, Stage, Stepper};
use querent::{Engine, Error};

fn data() -> Dataset {
    synthetic::syn1(3, [500, 70, 70]).unwrap_or_else(|error| panic!("{error}"))
}

fn config() -> Config {
    Config::new(0.02).with(|c| {
        c.networks.policy = [24, 20];
        c.networks.predictor = [24, 20];
        c.batch = 50;
        c.seed = 7;
    })
}

fn trainer(engine: &Engine, config: Config) -> Stepper {
    let mut trainer = Stepper::new(engine, &data(), config).unwrap_or_else(|error| panic!("{error}"));
    trainer.set_stage(Stage { tau_soft: 0.5, lambda: 0.01, ..Stage::default() }).expect("valid");
    trainer
}

/// A later stage, with everything that the published method has not.
const ALL: Stage = Stage {
    alpha: 0.02,
    tradeoffs: None,
    tau_soft: 0.2,
    lambda: 0.005,
    policy_rate: 1e-3,
    predictor_rate: 1e-3,
    lure: 0.4,
    guard: 0.02,
    ema: 0.1,
    exact_stop: true,
    hazard: 0.05,
    reinforce: 1.0,
    rollouts: 2,
    focus: 0.5,
    submasks: 0.7,
    input_noise: 0.2,
    unavailable: 0.3,
};

/// Warm-up, two stages, an evaluation in between: what a run does.
fn train(trainer: &mut Stepper, from: usize, to: usize) {
    for step in from..to {
        if step == 40 {
            trainer.set_stage(ALL).expect("valid");
        }
        if step % 20 == 0 {
            trainer.evaluate_blocking(Part::Validation).expect("evaluates");
        }
        if step < 20 { trainer.warm_up(1) } else { trainer.steps(1) }
    }
}

#[test]
fn equal_bits_from_the_same_seed_and_after_a_resume() {
    let folder = TempDir::new("resume");
    for (name, engine) in engines() {
        let mut whole = trainer(&engine, config());
        train(&mut whole, 0, 70);
        let end = whole.checkpoint_blocking().expect("reads");

        let mut again = trainer(&engine, config());
        train(&mut again, 0, 70);
        assert_eq!(again.checkpoint_blocking().expect("reads"), end, "{name}: the same seed");

        // Stopped in the first stage and in the second.
        let mut resumed = again;
        for stopped in [35, 55] {
            let mut first = trainer(&engine, config());
            train(&mut first, 0, stopped);
            let file = folder.0.join(format!("{name}-{stopped}.safetensors"));
            first.checkpoint_blocking().and_then(|middle| middle.save(&file)).expect("saves");
            drop(first);
            resumed = trainer(&engine, config());
            resumed.restore(&Checkpoint::load(&file).expect("loads")).expect("fits");
            assert_eq!(*resumed.stage() == ALL, stopped > 40);
            train(&mut resumed, stopped, 70);
            assert_eq!(resumed.checkpoint_blocking().expect("reads"), end, "{name}: resumed at {stopped}");
            assert_eq!(
                resumed.evaluate_blocking(Part::Test).expect("evaluates"),
                whole.evaluate_blocking(Part::Test).expect("evaluates"),
            );
        }

        // The control: another seed, and one step more, give other bits.
        let mut other = trainer(&engine, Config { seed: 8, ..config() });
        train(&mut other, 0, 70);
        assert_ne!(other.checkpoint_blocking().expect("reads"), end, "{name}: another seed");
        resumed.steps(1);
        assert_ne!(resumed.checkpoint_blocking().expect("reads"), end, "{name}: a step more");
    }
    assert_eq!(folder.files().iter().filter(|name| name.contains("tmp")).count(), 0);
}

/// From one engine to the other, in the middle of what is being counted: they have different numbers of lanes.
#[test]
fn a_run_goes_on_on_the_other_engine() {
    let Some(gpu) = common::gpu() else { return };
    let config = Config { batch: 200, ..config() };
    for (from, to) in [(&gpu, &Engine::cpu()), (&Engine::cpu(), &gpu)] {
        let mut first = trainer(from, config.clone());
        train(&mut first, 0, 50);
        let mut second = trainer(to, config.clone());
        assert_ne!(first.program().plan().lanes(), second.program().plan().lanes());
        second.restore(&first.checkpoint_blocking().expect("reads")).expect("fits");
        // Once more with what the first has counted so far, once without.
        for _ in 0..2 {
            let [a, b] = [&mut first, &mut second].map(|stepper| {
                stepper.steps(1);
                stepper.means_blocking().expect("reads")
            });
            assert_eq!(a["instances"], b["instances"]);
            let [a, b] = [a, b].map(|means| {
                ["objective", "loss_and_cost", "entropy", "prediction_loss"].map(|name| means[name])
            });
            let off = distance(&a, &b);
            assert!(off < 1e-5, "{from} to {to}: {off:.1e}");
        }
    }
}

/// The number of threads is no part of the result.
#[test]
fn equal_bits_whatever_the_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads");
        pool.install(|| {
            let mut trainer = trainer(&Engine::cpu(), Config { batch: 200, ..config() });
            train(&mut trainer, 0, 50);
            trainer.checkpoint_blocking().expect("reads")
        })
    };
    assert_eq!(run(1), run(3));
}

/// A path as [step][instance], whatever the lanes of the plan.
fn path(trainer: &Stepper, steps: usize) -> Vec<Vec<u32>> {
    let plan = trainer.program().plan();
    let id = plan.find("path").expect("declared");
    let all = trainer.program().read_words_blocking(id).expect("reads");
    let rows = plan.buffer(id).len / steps;
    let batch = trainer.batch();
    let micro_rows = |lane: usize| rows.min(batch - lane * rows);
    (0..steps)
        .map(|t| {
            (0..plan.lanes())
                .flat_map(|lane| {
                    let n = micro_rows(lane);
                    all[lane * rows * steps + t * n..][..n].to_vec()
                })
                .collect()
        })
        .collect()
}

fn weights(trainer: &Stepper, name: &str) -> Vec<f64> {
    let id = trainer.program().plan().find(name).expect("declared");
    trainer.program().read_blocking(id).expect("reads")
}

#[test]
fn the_engines_take_the_same_path_and_stay_close() {
    let Some(gpu) = common::gpu() else { return };
    for stage in [*trainer(&Engine::cpu(), config()).stage(), ALL] {
        stay_close(&gpu, stage);
    }
}

fn stay_close(gpu: &Engine, stage: Stage) {
    let [mut cpu, mut gpu] = [&Engine::cpu(), gpu].map(|engine| trainer(engine, config()));
    cpu.set_stage(stage).expect("valid");
    gpu.set_stage(stage).expect("valid");
    for step in 1..=10 {
        cpu.steps(1);
        gpu.steps(1);
        if step == 1 {
            assert_eq!(path(&cpu, 11), path(&gpu, 11), "the first step's path");
        }
    }
    for name in ["policy.values", "predictor.values"] {
        let apart = distance(&weights(&gpu, name), &weights(&cpu, name));
        println!("{name}: {apart:.1e} of the largest weight apart after ten steps");
        // Ten Adam steps of 1e-3 could move weights of up to 0.3 by 3% of the largest.
        assert!(apart < 2e-4, "{name}: {apart:.1e}");
        let moved = distance(&weights(&trainer(&Engine::cpu(), config()), name), &weights(&cpu, name));
        assert!(moved > 20.0 * apart, "{name}: moved only {moved:.1e}: closeness would mean nothing");
    }
    let (cpu, gpu) = (cpu.means_blocking().expect("finite"), gpu.means_blocking().expect("finite"));
    assert!((cpu["objective"] - gpu["objective"]).abs() < 1e-4 * cpu["objective"].abs());
}

/// How far apart the weights are after a few steps in large and in small micro-batches.
fn apart_when_split(engine: &Engine, config: Config, stage: Stage) -> f64 {
    let whole_memory = Stepper::memory(engine, &data(), &config).expect("fits");
    // A third of the memory: several micro-batches that do not divide the batch evenly.
    let tight = Config { memory_budget: whole_memory.working / 3, ..config.clone() };
    let tight_memory = Stepper::memory(engine, &data(), &tight).expect("fits");
    assert!(tight_memory.micro_batches > whole_memory.micro_batches, "{tight_memory:?}");
    let (mut a, mut b) = (trainer(engine, config), trainer(engine, tight));
    for trainer in [&mut a, &mut b] {
        trainer.set_stage(stage).expect("valid");
        trainer.warm_up(2);
        trainer.steps(3);
    }
    ["policy.values", "predictor.values", "policy.mean", "predictor.mean"]
        .into_iter()
        .map(|buffer| distance(&weights(&b, buffer), &weights(&a, buffer)))
        .fold(0.0, f64::max)
}

/// Splitting a batch into micro-batches does not change its gradient.
#[test]
fn micro_batches_give_the_same_step() {
    let published = *trainer(&Engine::cpu(), config()).stage();
    for (name, engine) in engines() {
        for rollout in [Rollout::StraightThrough, Rollout::Soft] {
            for stage in [published, Stage { reinforce: 0.0, ..ALL }] {
                let apart = apart_when_split(&engine, Config { rollout, ..config() }, stage);
                assert!(apart < 1e-4, "{name}, {rollout:?}, {stage:?}: {apart:.1e}");
            }
        }
    }
}

/// The same with REINFORCE: an instance's rollouts must not be taken for another's.
#[test]
fn micro_batches_keep_rollouts_together() {
    for (name, engine) in engines() {
        let apart = apart_when_split(&engine, config(), ALL);
        assert!(apart < 1e-4, "{name}: {apart:.1e}");
    }
}

/// Rows 2i and 2i + 1 of a micro-batch are what `select_grad` takes for one instance's rollouts, in every batch.
#[test]
fn an_odd_batch_keeps_rollouts_together() {
    let mut trainer = trainer(&Engine::cpu(), Config { batch: 33, ..config() });
    trainer.set_stage(ALL).expect("valid");
    for step in 1..=4 {
        trainer.steps(1);
        let x = weights(&trainer, "x");
        // The first lane's 32 rows of 11 columns and 11 that tell what cannot be had, padded to 24.
        let pairs = x[..32 * 24].chunks_exact(48).filter(|pair| pair[..24] == pair[24..]).count();
        assert_eq!(pairs, 16, "rollouts of one instance in the first micro-batch of step {step}");
    }
}

#[test]
fn training_learns_and_evaluation_agrees_between_engines() {
    let Some(gpu) = common::gpu() else { return };
    let mut cpu = trainer(&Engine::cpu(), config());
    let mut gpu = trainer(&gpu, config());
    for which in [Part::Train, Part::Validation, Part::Test] {
        let (a, b) = (
            cpu.evaluate_blocking(which).expect("evaluates"),
            gpu.evaluate_blocking(which).expect("evaluates"),
        );
        assert_eq!(a.instances, b.instances);
        for (x, y) in
            [(a.objective, b.objective), (a.loss, b.loss), (a.accuracy, b.accuracy), (a.cost, b.cost)]
        {
            assert!((x - y).abs() <= 1e-4 * x.abs().max(1.0), "{which:?}: {a:?} against {b:?}");
        }
    }
    let before = cpu.evaluate_blocking(Part::Train).expect("evaluates");
    cpu.warm_up(300);
    cpu.steps(300);
    let after = cpu.evaluate_blocking(Part::Train).expect("evaluates");
    assert!(after.objective < before.objective, "{before:?} to {after:?}");
}

#[test]
fn a_gradient_that_is_not_finite_stops_training_and_names_the_step() {
    for (name, engine) in engines() {
        let mut trainer = trainer(&engine, config());
        trainer.steps(3);
        trainer.means_blocking().expect("finite so far");
        let id = trainer.program().plan().find("predictor.values").expect("declared");
        trainer.program_mut().write(id, 0, &[f32::NAN]);
        trainer.steps(2);
        match trainer.means_blocking() {
            Err(Error::NonFinite { step: 3 }) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
}
