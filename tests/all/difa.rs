//! DiFA: a run that is saved, resumed, recorded into a host's frames, stored and asked; thresholds, budgets and what
//! cannot be had.

use crate::common::{TempDir, engines};
use crate::rig::{toy, toy_of_bytes};
use crate::runs::{Run, finish, settings};
use querent::data::{Dataset, Part};
use querent::methods::difa::{Config, Trainer};
use querent::policy::evaluate::{Rules, episodes};
use querent::policy::history::Phase;
use querent::{Engine, Model, Step};
use serde_json::{Value, json};

/// A run of a second or two: a pretraining, two temperatures, rates that decay.
fn small(data: &Dataset) -> Value {
    let changed = [
        ("horizon", json!(3)),
        ("hidden", json!([12, 10])),
        ("batch", json!(20)),
        ("selector_rate", json!(0.03)),
        ("predictor_rate", json!(0.02)),
        ("patience", json!(1)),
        ("stage_epochs", json!(3)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(6)),
        ("temperatures", json!(2)),
        ("start_temperature", json!(1.0)),
        ("end_temperature", json!(0.2)),
        ("seed", json!(5)),
    ];
    settings("difa", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(5, 60);
    Run::new("difa", &data, small(&data)).goes_on_with_equal_bits();
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(5, 60);
    Run::new("difa", &data, small(&data)).is_the_same_in_frames();
}

/// The pretraining, then each temperature with both full rates again, until the greedy validation loss rests.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut training = Run::new("difa", &data, small(&data)).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    assert_eq!(history.iter().filter(|epoch| epoch.phase == Phase::WarmUp).count(), 2);
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 2 * 3);
    let mut best_of_all = f64::INFINITY;
    for (stage, temperature) in [1.0, 0.2].into_iter().enumerate() {
        let (mut best, mut decays) = (f64::INFINITY, 0);
        let epochs: Vec<_> = history.iter().filter(|epoch| epoch.phase == Phase::Stage(stage)).collect();
        for (index, epoch) in epochs.iter().enumerate() {
            let of = |name: &str| epoch.settings[name];
            let fallen = 0.2f64.powi(decays);
            assert!((of("tau_soft") - temperature).abs() < 1e-12);
            assert!((of("selector_rate") - 0.03 * fallen).abs() < 1e-12, "{history:?}");
            assert!((of("predictor_rate") - 0.02 * fallen).abs() < 1e-12, "{history:?}");
            let hard = epoch.validation.extra[0];
            // A patience of one: whatever is not better decays; one decay, and then it is over.
            decays += i32::from(hard >= best);
            best = best.min(hard);
            assert_eq!(epoch.best, hard < best_of_all);
            best_of_all = best_of_all.min(hard);
            assert_eq!(index + 1 == epochs.len(), decays == 2 || index == 2, "stage {stage}: {history:?}");
        }
    }
    assert_eq!(training.best(), Some(best_of_all));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = toy(4, 30);
    Run::new("difa", &data, settings("difa", &data, &[])).refuses(&[
        ("threshold", json!(-1.0)),
        ("selector_rate", json!(0.0)),
        ("predictor_rate", json!(-1.0)),
        ("end_temperature", json!(-0.2)),
        ("start_temperature", json!(0.0)),
        ("hidden", json!([])),
        ("dropout", json!(1.0)),
        ("temperatures", json!(0)),
        ("horizon", json!(5)),
        ("gamma", json!(0.2)),
    ]);
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset, engine: &Engine) -> (Model, Trainer) {
    let config: Config = serde_json::from_value(small(data)).expect("settings");
    let mut trainer = Trainer::new(engine, data, Config { epoch_steps: 60, ..config }).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked to the horizon, a model does what the engine evaluates, on reals and on bytes; what the schedule goes by is what
/// it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    for data in [toy(6, 200), toy_of_bytes(5, 150)] {
        for (name, engine) in engines() {
            let (model, mut trainer) = trained(&data, &engine);
            let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
            let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
            let to_the_end = Rules { may_stop: false, ..Rules::default() };
            let asked = episodes(&model, &data, Part::Test, &to_the_end).expect("asks");
            let ended = asked.ended();
            assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess), "{name}");
            let labels = &data.splits()[2].y;
            let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
            let steps = model.steps();
            let hard = (1..=steps).map(loss).sum::<f64>() / steps as f64;
            assert!((evaluation.extra[0] - hard).abs() < 1e-4 * hard, "{name}: {evaluation:?} {hard}");
            assert!((evaluation.loss - loss(steps)).abs() < 1e-4 * hard);
            assert_eq!(evaluation.instances, labels.len() as f64);
        }
    }
}

/// From its file it asks what it asked before; a higher threshold never asks more, and what it asks is the beginning of
/// what a lower one asks.
#[test]
fn a_model_comes_back_and_has_every_threshold() {
    let folder = TempDir::new("difa-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    let (model, _) = trained(&data, &Engine::cpu());
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("difa", 3, 0.0));
    let layers = |net: &str| loaded.network(net).len();
    assert_eq!((layers("selector"), layers("predictor"), layers("policy")), (3, 3, 0));
    let run = |model: &Model, rules: &Rules| episodes(model, &data, Part::Test, rules).expect("asks");
    assert_eq!(run(&loaded, &Rules::default()), run(&model, &Rules::default()));

    let whole = run(&model, &Rules { may_stop: false, ..Rules::default() });
    let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
    let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
    scores.sort_by(f32::total_cmp);
    let mut thresholds = vec![0.0, 1.1];
    thresholds.splice(1..1, (1..10).map(|tenth| scores[scores.len() * tenth / 10].into()));
    let at = |threshold: f64| model.clone().with_tradeoff(threshold).expect("valid");
    let all: Vec<_> = thresholds.iter().map(|&threshold| run(&at(threshold), &Rules::default())).collect();
    for (threshold, episodes) in thresholds.iter().zip(&all) {
        assert_eq!(episodes.ended(), whole.below(*threshold as f32), "{threshold}");
    }
    for pair in all.windows(2) {
        for (low, high) in pair[0].episodes.iter().zip(&pair[1].episodes) {
            assert!(low.path.starts_with(&high.path), "{low:?} {high:?}");
        }
    }
    let asked: Vec<usize> =
        all.iter().map(|all| all.episodes.iter().map(|episode| episode.path.len()).sum()).collect();
    println!("{asked:?} questions at {thresholds:?}");
    assert_eq!((asked[0], asked[10]), (100 * model.steps(), 0));
    assert!(asked.windows(2).filter(|pair| pair[1] < pair[0]).count() >= 5, "{asked:?}");
    for threshold in [-0.1, f64::NAN, f64::INFINITY] {
        let error = model.clone().with_tradeoff(threshold).expect_err("out of range").to_string();
        assert!(error.contains("zero or more") && error.contains(&threshold.to_string()), "{error}");
    }
}

/// It learns what says something; what cannot be had and what does not fit a budget is not asked for.
#[test]
fn what_it_learns_budgets_and_what_cannot_be_had() {
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 600, 300]);
    let config = Config {
        hidden: vec![32, 24],
        batch: 50,
        dropout: 0.0,
        selector_rate: 3e-3,
        predictor_rate: 3e-3,
        stage_epochs: 4,
        warm_up_epochs: 2,
        epoch_steps: 120,
        temperatures: 2,
        threshold: 0.2,
        seed: 3,
        ..Config::default()
    };
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("finishes");
    let labels = &data.splits()[2].y;
    let run = |rules: &Rules| episodes(&model, &data, Part::Test, rules).expect("asks");
    let asked = run(&Rules::default());
    let summary = asked.ended().summary(data.problem(), labels, 0.0);
    println!("{summary:?}");
    assert!(summary.accuracy > 0.9, "{summary:?}");
    // It depends on the answers how much is asked.
    assert!(summary.stop_steps.iter().filter(|&&share| share > 0.05).count() > 1, "{summary:?}");
    for budget in [0.0, 1.0, 2.5] {
        let within = run(&Rules::with_budget(budget));
        let spent = |moments: &[querent::policy::evaluate::Moment]| moments[moments.len() - 1].spent;
        assert!(within.episodes.iter().all(|episode| spent(&episode.moments) <= budget));
        assert!(budget == 0.0 || within.episodes.iter().any(|episode| spent(&episode.moments) > 0.0));
    }
    let mut session = model.session();
    let mut gone = Vec::new();
    while let Step::Acquire(feature) = session.next() {
        session.unavailable(feature).expect("open");
        assert!(!gone.contains(&feature));
        gone.push(feature);
    }
    assert_eq!(gone.len(), data.problem().features().len(), "each is asked for once, and none again");
}
