//! The fixed list as a method: what it chooses, what its trials compute, and that its runs go on after a checkpoint with
//! equal bits.

use crate::common::{TempDir, engines, gpu, weights};
use querent::data::{Dataset, Part, Split};
use querent::methods::fixed::{Config, Trainer};
use querent::policy::evaluate::{self, Rules};
use querent::policy::history::Phase;
use querent::random::{Source, unit};
use querent::{Budget, Engine, Feature, Model, Problem, Step, wgpu};

/// Six features in seven columns, and one more column that is known from the start: the sum of a, b and the second
/// column of `pair` makes the label; `dear` is a again, but costs more. The classes have weights.
pub fn data(rows: [usize; 3]) -> Dataset {
    let costs = [("dear", 3.0), ("noise", 1.0), ("a", 1.0), ("pair", 1.0), ("b", 1.0), ("free", 0.0)];
    let features = costs.map(|(name, cost)| Feature { name: name.into(), cost }).to_vec();
    let problem = Problem::new(features, vec![0, 1, 2, 3, 3, 4, 5], vec!["no".into(), "yes".into()])
        .map(|problem| problem.with_known_columns(1))
        .and_then(|problem| problem.with_class_weights(vec![1.0, 1.5]))
        .expect("valid");
    let mut split = 0;
    let [train, validation, test] = rows.map(|rows| {
        split += 1;
        let source = Source::new(5, 99, split);
        let mut to = Split::default();
        for row in 0..rows as u32 {
            let draw = |i: u32| (2.0 * unit(source.bits(row, i, 0)[0]) - 1.0) as f32;
            let (a, b, c) = (draw(0), 0.8 * draw(1), 0.5 * draw(2));
            to.x.extend([a, draw(3), a, draw(4), c, b, draw(5), draw(6)]);
            to.y.push(u32::from(a + b + c > 0.0));
        }
        to
    });
    Dataset::new(problem, train, validation, test).expect("valid")
}

fn config() -> Config {
    Config {
        horizon: Some(4),
        hidden: vec![24, 20],
        batch: 50,
        dropout: 0.0,
        rate: 3e-3,
        warm_up_epochs: 2,
        stage_epochs: 1,
        epoch_steps: 120,
        threshold: 0.0,
        seed: 3,
        ..Config::default()
    }
}

fn list(model: &Model) -> Vec<usize> {
    let tensors = model.tensors();
    let list = tensors.iter().find(|tensor| tensor.name == "list").expect("a list");
    list.values.iter().map(|&feature| feature as usize).collect()
}

fn run(engine: &Engine, data: &Dataset, config: Config) -> (Trainer, Model) {
    let mut trainer = Trainer::new(engine, data, config).unwrap_or_else(|error| panic!("{error}"));
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("a model");
    (trainer, model)
}

/// What is informative comes first, of two that say the same the cheaper one, and everybody is asked in this order.
#[test]
fn the_list_is_the_best_for_its_cost() {
    let data = data([3_000, 600, 300]);
    for (name, engine) in engines() {
        let (trainer, model) = run(&engine, &data, config());
        let chosen = list(&model);
        // What is free may come at any place: it helps nobody, but it costs nothing.
        let paid: Vec<usize> = chosen.iter().copied().filter(|&feature| feature != 5).collect();
        assert_eq!(paid[..3], [2, 4, 3], "{name}: {chosen:?}");
        let phases: Vec<Phase> = trainer.history().iter().map(|epoch| epoch.phase).collect();
        assert_eq!(phases[1..3], [Phase::WarmUp, Phase::Stage(0)], "{name}");
        assert_eq!(
            (phases.len(), phases[6]),
            (7, Phase::Stage(1)),
            "{name}: a feature an epoch, then the list"
        );
        assert!(trainer.history()[..6].iter().all(|epoch| !epoch.best) && trainer.history()[6].best);

        // The engine's evaluation, the sessions' and the list agree.
        let all =
            evaluate::episodes(&model, &data, Part::Test, &Rules::with_budget(f64::INFINITY)).expect("asks");
        let traces = all.ended();
        let expected: Vec<u32> = chosen.iter().map(|&feature| feature as u32).collect();
        assert!((0..traces.len()).all(|row| traces.path_of(row) == expected), "{name}");
        let labels = &data.splits()[2].y;
        let summary = traces.summary(data.problem(), labels, 0.0);
        let mut trainer = trainer;
        let there = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
        assert!(
            (summary.loss - there.loss).abs() < 1e-4 && summary.cost == there.cost,
            "{summary:?} {there:?}"
        );
        assert_eq!(trainer.stepper_mut().traces_blocking(Part::Test).expect("reads").path, traces.path);
        assert!(summary.accuracy > 0.9, "{name}: {summary:?}");

        // What cannot be had is skipped; a threshold stops sooner, and never asks more.
        let mut session = model.session();
        session.unavailable(chosen[0]).expect("open");
        assert_eq!(session.next(), Step::Acquire(chosen[1]));
        let stopping = model.clone().with_tradeoff(0.4).expect("a threshold");
        let fewer = evaluate::outcomes(&stopping, &data, Part::Test, f64::INFINITY).expect("asks").traces;
        let fewer = fewer.summary(data.problem(), labels, 0.0);
        assert!(fewer.acquisitions < 4.0 && fewer.acquisitions > 0.0, "{fewer:?}");
        assert!(model.clone().with_tradeoff(-1.0).is_err());

        let folder = TempDir::new("fixed");
        let file = folder.0.join("model.safetensors");
        stopping.save(&file).expect("saves");
        assert_eq!(Model::load(&file).expect("loads"), stopping);
    }
}

/// The engine's trials are what the model itself loses when it knows one feature more.
#[test]
fn trials_are_the_losses_with_one_more_feature() {
    // More rows than a chunk has, and not a multiple of it.
    let data = data([400, 287, 10]);
    for (name, engine) in engines() {
        let settings = Config { horizon: Some(2), epoch_steps: 20, ..config() };
        let (mut trainer, model) = run(&engine, &data, settings);
        let program = trainer.stepper_mut().program_mut();
        let [scores, candidates] =
            ["scores", "candidates"].map(|name| program.plan().find(name).expect("there"));
        let scores = program.read_blocking(scores).expect("reads");
        let candidates = program.read_words_blocking(candidates).expect("reads");
        let chosen = list(&model);
        let mut open: Vec<u32> = (0..6).filter(|feature| !chosen.contains(&(*feature as usize))).collect();
        open.resize(7, 6);
        assert_eq!(candidates, open, "{name}");
        let split = &data.splits()[1];
        for (&candidate, &score) in candidates.iter().zip(&scores) {
            let mut total = 0.0;
            for (row, &label) in split.x.chunks_exact(8).zip(&split.y) {
                let mut session = model.session();
                session.given(row[7]).expect("known");
                for feature in
                    chosen.iter().copied().chain([candidate as usize]).filter(|&feature| feature < 6)
                {
                    match feature {
                        3 => session.observe(3, [row[3], row[4]]),
                        0..3 => session.observe(feature, row[feature]),
                        _ => session.observe(feature, row[feature + 1]),
                    }
                    .expect("observes");
                }
                let weight = data.problem().class_weights()[label as usize];
                total -= weight * f64::from(session.predict()[label as usize]).ln();
            }
            assert!((score / total - 1.0).abs() < 1e-4, "{name}, {candidate}: {score} {total}");
        }
    }
}

/// A checkpoint at the end of any epoch, the choosing ones among them.
#[test]
fn a_run_goes_on_with_equal_bits() {
    let folder = TempDir::new("fixed-resume");
    let data = data([400, 150, 10]);
    let settings = Config { epoch_steps: 16, dropout: 0.2, stage_epochs: 3, patience: 2, ..config() };
    for (name, engine) in engines() {
        let (whole, expected) = run(&engine, &data, settings.clone());
        for stopped in 0..whole.history().len() {
            let mut first = Trainer::new(&engine, &data, settings.clone()).expect("starts");
            for _ in 0..stopped {
                first.epoch_blocking().expect("trains");
            }
            let file = folder.0.join(format!("{name}-{stopped}.safetensors"));
            first.save_blocking(&file).expect("saves");
            drop(first);
            let mut second = Trainer::new(&engine, &data, settings.clone()).expect("starts");
            second.resume(&file).expect("resumes");
            while second.epoch_blocking().expect("trains").is_some() {}
            let model = second.finish_blocking().expect("a model");
            assert_eq!(weights(&model), weights(&expected), "{name}: stopped after {stopped} epochs");
            assert_eq!(second.epochs_behind(), second.epochs_at_most());
        }
    }
}

/// In a host's frames, and stopped in the middle of an epoch, the list and the weights are the same bits.
#[test]
fn frames_give_the_same_list() {
    let Some(engine) = gpu() else { return };
    let (device, queue) = engine.device().expect("a GPU engine");
    let folder = TempDir::new("fixed-frames");
    let data = data([400, 150, 10]);
    let settings = Config { epoch_steps: 16, ..config() };
    let (_, expected) = run(&engine, &data, settings.clone());
    let frame = |trainer: &mut Trainer| {
        let mut encoder = device.create_command_encoder(&Default::default());
        trainer.encode(&mut encoder, Budget::Dispatches(41)).expect("records");
        queue.submit([encoder.finish()]);
        device.poll(wgpu::PollType::wait_indefinitely()).expect("polls");
        trainer.try_progress().expect("goes on").finished
    };
    let mut trainer = Trainer::new(&engine, &data, settings.clone()).expect("starts");
    let mut frames = 0;
    while !frame(&mut trainer) {
        frames += 1;
        if frames % 17 == 5 {
            let file = folder.0.join("middle.safetensors");
            trainer.save_blocking(&file).expect("saves");
            trainer = Trainer::new(&engine, &data, settings.clone()).expect("starts");
            trainer.resume(&file).expect("resumes");
        }
    }
    assert!(frames > 40, "{frames} frames are too few to be stopped in");
    let model = trainer.try_model().expect("no error").expect("a model");
    assert_eq!(weights(&model), weights(&expected));
}

/// A run that ends before its list is complete has a model that asks what there is.
#[test]
fn an_unfinished_list_is_asked_as_far_as_it_goes() {
    let data = data([400, 150, 10]);
    let mut trainer =
        Trainer::new(&Engine::cpu(), &data, Config { epoch_steps: 8, ..config() }).expect("starts");
    let nothing = trainer.finish_blocking().expect("a model");
    assert_eq!((list(&nothing), nothing.session().next()), (vec![6; 4], Step::Stop));
    for _ in 0..4 {
        trainer.epoch_blocking().expect("trains");
    }
    let some = trainer.finish_blocking().expect("a model");
    let chosen = list(&some);
    assert!(chosen[0] < 6 && chosen[1] < 6 && chosen[2..] == [6, 6], "{chosen:?}");
    let mut session = some.session();
    session
        .known(chosen[0], &[0.1f32, 0.2][..some.session().question().expect("asks").values])
        .expect("known");
    assert_eq!(session.next(), Step::Acquire(chosen[1]));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = data([40, 15, 10]);
    for (settings, says) in [
        (Config { horizon: Some(7), ..config() }, "must be 1 to 6"),
        (Config { hidden: vec![], ..config() }, "at least one layer"),
        (Config { warm_up_epochs: 0, ..config() }, "warm_up_epochs is 0"),
        (Config { threshold: f64::NAN, ..config() }, "threshold"),
    ] {
        let error = Trainer::new(&Engine::cpu(), &data, settings).err().expect("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
}
