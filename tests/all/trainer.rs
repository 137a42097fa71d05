//! The staged procedure: it learns, keeps the best, and continues after a kill with equal bits.

use crate::common::{TempDir, engines, weights};
use querent::data::Part;
use querent::data::{Dataset, synthetic};
use querent::nmppg::{Config, Trainer, reference_blocking};
use querent::policy::history::Phase;
use querent::{Engine, Model, Step};

fn data(rows: usize) -> Dataset {
    synthetic::syn1(1, [rows, 400, 400]).unwrap_or_else(|error| panic!("{error}")).standardized()
}

/// A run of seconds.
fn short() -> Config {
    Config::new(0.01).with(|c| {
        c.networks.policy = [24, 24];
        c.networks.predictor = [24, 24];
        c.batch = 64;
        c.schedule.temperatures = vec![0.8, 0.2];
        c.schedule.warm_up_epochs = 1;
        c.schedule.stage_epochs = 2;
        c.schedule.epoch_steps = 6;
        c.seed = 4;
    })
}

fn trainer(engine: &Engine, data: &Dataset, config: Config) -> Trainer {
    Trainer::new(engine, data, config).unwrap_or_else(|error| panic!("{error}"))
}

fn finish(mut trainer: Trainer) -> (Trainer, Model) {
    while trainer.epoch_blocking().unwrap_or_else(|error| panic!("{error}")).is_some() {}
    let model = trainer.finish_blocking().unwrap_or_else(|error| panic!("{error}"));
    (trainer, model)
}

/// Somebody who watches a run is told how far an epoch is, and changes nothing.
#[test]
fn a_run_may_be_watched() {
    let data = data(256);
    for (name, engine) in engines() {
        // So long that there is something to tell.
        let steps = if name == "cpu" { 1000 } else { 20 };
        let config = short().with(|c| c.schedule.epoch_steps = steps);
        let (plain, expected) = finish(trainer(&engine, &data, config.clone()));
        let mut watched = trainer(&engine, &data, config);
        let mut told = 0;
        loop {
            let (mut last, most) = (0, watched.epoch_steps());
            let mut watch = |step: usize| {
                assert!(last <= step && step <= most, "{name}: {step} after {last} of {most}");
                (last, told) = (step, told + 1);
            };
            if watched.epoch_watched_blocking(&mut watch).expect("trains").is_none() {
                break;
            }
        }
        assert!(told > plain.history().len(), "{name}: told {told} times");
        assert_eq!(watched.history().len(), plain.history().len());
        let model = watched.finish_blocking().expect("reads");
        assert_eq!(weights(&model), weights(&expected), "{name}");
    }
}

#[test]
fn epochs_share_the_run_by_what_they_compute() {
    let mut trainer = trainer(&Engine::cpu(), &data(256), short());
    let mut spans = vec![trainer.epoch_span()];
    while trainer.epoch_blocking().expect("trains").is_some() {
        spans.push(trainer.epoch_span());
    }
    assert_eq!((spans[0].start, spans.pop()), (0.0, Some(1.0..1.0)));
    assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start), "{spans:?}");
    let warm_up = trainer.history().iter().filter(|epoch| epoch.phase == Phase::WarmUp).count();
    let (first, later) = spans.split_at(warm_up);
    // A warm-up's step is one mask of each row, a later one a rollout.
    let length = |span: &std::ops::Range<f64>| span.end - span.start;
    assert!(warm_up > 0 && length(&first[0]) < 0.5 * length(&later[0]), "{spans:?}");
}

#[test]
fn a_killed_run_continues_with_equal_bits() {
    let folder = TempDir::new("trainer");
    let data = data(256);
    for (name, engine) in engines() {
        let (whole, expected) = finish(trainer(&engine, &data, short()));
        assert_eq!(whole.history().len(), whole.epochs_at_most());
        for killed_after in [1, 2, 4] {
            let file = folder.0.join(format!("{name}-{killed_after}.safetensors"));
            let mut first = trainer(&engine, &data, short());
            for _ in 0..killed_after {
                first.epoch_blocking().expect("trains");
                first.save_blocking(&file).expect("saves");
            }
            drop(first);
            let mut resumed = trainer(&engine, &data, short());
            resumed.resume(&file).expect("resumes");
            assert_eq!(resumed.history().len(), killed_after);
            let (resumed, model) = finish(resumed);
            assert_eq!(weights(&model), weights(&expected), "{name}, killed after {killed_after}");
            let objectives = |trainer: &Trainer| -> Vec<f64> {
                trainer.history().iter().map(|epoch| epoch.validation.objective).collect()
            };
            assert_eq!(objectives(&resumed), objectives(&whole));
        }
        // The control: another seed gives another model.
        let (_, other) = finish(trainer(&engine, &data, Config { seed: 5, ..short() }));
        assert_ne!(weights(&other), weights(&expected));
    }
    let mut other = trainer(&Engine::cpu(), &data, Config { alpha: 0.5.into(), ..short() });
    let refused = other.resume(folder.0.join("cpu-2.safetensors")).expect_err("another configuration");
    assert!(refused.to_string().contains("another configuration"), "{refused}");
    assert!(other.history().is_empty(), "a refused resume changed the run");
}

/// Epochs that are made shorter on the way, less than a pass and less than the curve has points: the schedule is gone
/// through all the same, also after a kill, and a length that changes nothing leaves the bits as they are.
#[test]
fn epochs_may_become_shorter() {
    let folder = TempDir::new("shorter");
    let data = data(256);
    for (name, engine) in engines() {
        let instances = |trainer: &Trainer| -> Vec<f64> {
            trainer.history().iter().map(|epoch| epoch.train["instances"]).collect()
        };
        let mut whole = trainer(&engine, &data, short());
        whole.epoch_blocking().expect("trains");
        whole.set_epoch_steps(3);
        whole.epoch_blocking().expect("trains");
        let file = folder.0.join(format!("{name}.safetensors"));
        whole.save_blocking(&file).expect("saves");
        let (whole, expected) = finish(whole);
        let seen = instances(&whole);
        assert_eq!(seen.len(), whole.epochs_at_most(), "{name}");
        // A pass has 4 steps of 64; rollouts of one instance share a step.
        assert!(seen[0] == 256.0 && seen[1..].iter().all(|&seen| seen == 192.0), "{name}: {seen:?}");
        let mut resumed = trainer(&engine, &data, short());
        resumed.resume(&file).expect("resumes");
        assert_eq!(resumed.epoch_steps(), 3);
        let (_, model) = finish(resumed);
        assert_eq!(weights(&model), weights(&expected), "{name}");

        let mut same = trainer(&engine, &data, short());
        same.set_epoch_steps(same.epoch_steps());
        let (_, undisturbed) = finish(trainer(&engine, &data, short()));
        assert_eq!(weights(&finish(same).1), weights(&undisturbed), "{name}");
        assert_ne!(weights(&undisturbed), weights(&expected), "the control: {name}");
    }
}

#[test]
fn the_best_epoch_is_what_comes_out() {
    let data = data(512);
    let (mut trainer, model) = finish(trainer(&Engine::cpu(), &data, short()));
    let best = trainer.history().iter().rfind(|epoch| epoch.best).expect("one is best");
    assert!(matches!(best.phase, Phase::Stage(_)));
    let staged = trainer.history().iter().filter(|epoch| matches!(epoch.phase, Phase::Stage(_)));
    let lowest = staged.map(|epoch| epoch.validation.objective).fold(f64::INFINITY, f64::min);
    assert_eq!(best.validation.objective, lowest);
    let again = trainer.stepper_mut().evaluate_blocking(Part::Validation).expect("evaluates");
    assert_eq!(again.objective, lowest);

    // The model, asked instance by instance and in raw units, takes the same way as the engine.
    let raw = synthetic::syn1(1, [512, 400, 400]).expect("valid");
    let engine_traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
    let model_traces =
        querent::nmppg::traces_blocking(&Engine::cpu(), &model, &raw.splits()[2]).expect("evaluates");
    assert_eq!(model_traces.path, engine_traces.path);
    let mut session = model.session();
    for (instance, x) in raw.splits()[2].x.chunks_exact(11).take(50).enumerate() {
        session.reset();
        let mut path = Vec::new();
        while let Step::Acquire(feature) = session.next() {
            path.push(feature as u32);
            session.observe(feature, x[feature]).expect("a good answer");
        }
        path.resize(engine_traces.steps, engine_traces.features as u32);
        assert_eq!(path, engine_traces.path_of(instance), "instance {instance}");
        assert_eq!(session.best() as u32, engine_traces.guess[instance]);
    }
    let summary = engine_traces.summary(data.problem(), &data.splits()[2].y, 0.01);
    let test = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
    assert!(
        (summary.objective - test.objective).abs() < 1e-5 && (summary.accuracy - test.accuracy).abs() < 1e-6
    );
}

/// A small run that has to learn: within seconds, far below the loss of asking nothing.
#[test]
fn a_small_run_learns_to_ask_for_the_context() {
    let data = synthetic::cube_nm(3, [2_000, 300, 1_000], 2, 0.05).expect("valid").standardized();
    let config = Config::new(0.05).with(|c| {
        c.networks.policy = [64, 64];
        c.networks.predictor = [64, 64];
        c.horizon = Some(8);
        c.schedule.stage_epochs = 2;
        c.schedule.epoch_steps = 150;
    });
    let (mut trainer, _) = finish(trainer(&Engine::cpu(), &data, config.clone()));
    let test = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
    let reference = reference_blocking(&Engine::cpu(), &data, &config).expect("evaluates");
    println!(
        "objective {:.3}, cost {:.2}, all features: loss {:.3}",
        test.objective, test.cost, reference.loss
    );
    // ln 8 = 2.08 is what asking nothing scores; asking all 8 steps costs at least 0.3.
    assert!(test.objective < 0.6, "{test:?}");
    assert!(reference.accuracy > 0.95, "{reference:?}");
}
