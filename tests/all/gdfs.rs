//! GDFS: a run that is saved, resumed, recorded into a host's frames, stored and asked.

use crate::common::{TempDir, engines};
use crate::rig::toy;
use crate::runs::{Run, finish, settings};
use querent::data::{Dataset, Part};
use querent::methods::gdfs::{Config, Stepper, Trainer};
use querent::policy::evaluate::{Rules, episodes};
use querent::policy::history::Phase;
use querent::train::Settings;
use querent::{Engine, Model, Step};
use serde_json::{Value, json};

/// A run of a second or two: a pretraining, two temperatures, rates that decay.
fn small(data: &Dataset) -> Value {
    let changed = [
        ("horizon", json!(3)),
        ("hidden", json!([12, 10])),
        ("batch", json!(20)),
        ("rate", json!(0.02)),
        ("patience", json!(1)),
        ("stage_epochs", json!(3)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(6)),
        ("temperatures", json!(2)),
        ("start_temperature", json!(1.0)),
        ("seed", json!(5)),
    ];
    settings("gdfs", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(5, 60);
    Run::new("gdfs", &data, small(&data)).goes_on_with_equal_bits();
}

/// What the schedule went through: the pretraining, then each temperature with the full rate again, and the best weights
/// are those with the lowest loss under hard masks.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut training = Run::new("gdfs", &data, small(&data)).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    let phases: Vec<Phase> = history.iter().map(|epoch| epoch.phase).collect();
    assert_eq!(phases.iter().filter(|phase| **phase == Phase::WarmUp).count(), 2);
    assert!(phases.is_sorted_by_key(|phase| match phase {
        Phase::WarmUp => 0,
        Phase::Stage(stage) => 1 + stage,
    }));
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 2 * 3);
    for (stage, temperature) in [1.0, 0.2].into_iter().enumerate() {
        let mut epochs = history.iter().filter(|epoch| epoch.phase == Phase::Stage(stage));
        let (mut best, mut rate) = (f64::INFINITY, 0.02);
        assert!(epochs.clone().count() > 0);
        epochs.all(|epoch| {
            assert!((epoch.settings["tau_soft"] - temperature).abs() < 1e-12);
            assert!((epoch.settings["rate"] - rate).abs() < 1e-12, "{history:?}");
            // A patience of one: whatever is not better decays.
            if epoch.validation.extra[1] >= best {
                rate *= 0.2;
            }
            best = best.min(epoch.validation.extra[1]);
            true
        });
    }
    let mut best = f64::INFINITY;
    for epoch in &history {
        let is_best = epoch.phase != Phase::WarmUp && epoch.validation.extra[0] < best;
        assert_eq!(epoch.best, is_best);
        best = if is_best { epoch.validation.extra[0] } else { best };
    }
    assert_eq!(training.best(), Some(best));
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(5, 60);
    Run::new("gdfs", &data, small(&data)).is_the_same_in_frames();
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset) -> (Model, Trainer) {
    let config = serde_json::from_value(small(data)).expect("settings");
    let config = Config { epoch_steps: 60, ..config };
    let mut trainer = Trainer::new(&Engine::cpu(), data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked to the horizon, a model does what the engine evaluates; what the schedule goes by is what it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    let data = toy(6, 200);
    let (model, mut trainer) = trained(&data);
    let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
    let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
    let asked =
        episodes(&model, &data, Part::Test, &Rules { may_stop: false, ..Rules::default() }).expect("asks");
    let ended = asked.ended();
    assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess));
    assert!(
        traces.path.iter().all(|&feature| (feature as usize) < traces.features),
        "it went to the horizon"
    );
    // The loss after each acquisition, under hard masks.
    let labels = &data.splits()[2].y;
    let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
    let steps = model.steps();
    let hard = (1..=steps).map(loss).sum::<f64>() / steps as f64;
    assert!((evaluation.extra[0] - hard).abs() < 1e-4 * hard, "{} {hard}", evaluation.extra[0]);
    assert!((evaluation.loss - loss(steps)).abs() < 1e-4 * hard);
    assert_eq!(evaluation.instances, labels.len() as f64);

    // With logits that no noise can overrule, a relaxed choice is the greedy one; with noise it is another.
    let average = |stepper: &Stepper| stepper.program().plan().find("gdfs.average").expect("declared");
    let values = trainer.stepper().program().read_blocking(average(trainer.stepper())).expect("reads");
    for (gamma, is_greedy) in [(1e-7, true), (1.0, false)] {
        let config = Config { gamma, ..trainer.config().clone() };
        for (name, engine) in engines() {
            let mut stepper = Stepper::new(&engine, &data, config.clone()).expect("fits");
            let to = average(&stepper);
            stepper.program_mut().write(to, 0, &values);
            let [hard, soft, _] = stepper.evaluate_blocking(Part::Test).expect("evaluates").extra;
            assert!((hard - evaluation.extra[0]).abs() < 1e-5 * hard, "{name}: {hard}");
            assert_eq!((hard - soft).abs() < 1e-5 * hard, is_greedy, "{name}: {hard} {soft}");
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("gdfs-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    let (model, _) = trained(&data);
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("gdfs", 3, 0.0));
    let names = |net: &str| loaded.network(net).len();
    assert_eq!((names("selector"), names("predictor"), names("policy")), (3, 3, 0));

    let ask = |model: &Model| {
        let row = &data.splits()[2].x[..data.problem().columns()];
        let groups = data.problem().group_of_column();
        let of = |feature: usize| -> Vec<f32> {
            let columns = groups.iter().zip(row).filter(|(group, _)| **group as usize == feature);
            columns.map(|(_, &value)| value).collect()
        };
        let mut session = model.session();
        session.given(of(data.problem().features().len())).expect("given");
        let mut asked = Vec::new();
        while let Step::Acquire(feature) = session.next() {
            session.observe(feature, of(feature)).expect("observes");
            asked.push(feature);
        }
        (asked, session.predict().to_vec())
    };
    let certain = |model: Model| model.with_tradeoff(0.0).expect("valid");
    assert_eq!(ask(&loaded), ask(&model));
    let (asked, belief) = ask(&certain(loaded));
    assert_eq!(asked.len(), 3, "it is never that certain");
    assert!(asked.iter().all(|feature| asked.iter().filter(|other| *other == feature).count() == 1));
    assert_eq!((asked, belief), ask(&certain(model)));
}

/// A higher threshold on the entropy never asks more, and what it asks is the beginning of what a lower one asks.
#[test]
fn a_threshold_for_every_trade_off() {
    let data = toy(6, 200);
    let (model, _) = trained(&data);
    let at = |threshold: f64| model.clone().with_tradeoff(threshold).expect("valid");
    let run = |model: &Model, rules: &Rules| episodes(model, &data, Part::Test, rules).expect("asks");
    let whole = run(&model, &Rules { may_stop: false, ..Rules::default() });
    // Some of the entropies that it looks at, and what is below and above all of them: from 0 to ln 3.
    let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
    let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
    scores.sort_by(f32::total_cmp);
    let mut thresholds = vec![0.0, 1.1];
    thresholds.splice(1..1, (1..10).map(|tenth| scores[scores.len() * tenth / 10].into()));
    let all: Vec<_> = thresholds.iter().map(|&threshold| run(&at(threshold), &Rules::default())).collect();
    for (threshold, episodes) in thresholds.iter().zip(&all) {
        // One rollout to the horizon has all of them in it.
        assert_eq!(episodes.ended(), whole.below(*threshold as f32), "{threshold}");
        for episode in &episodes.episodes {
            let entropy: f32 = episode.belief.iter().map(|p| -p * p.ln()).sum();
            let is_certain = entropy < *threshold as f32 + 1e-6;
            assert!(
                is_certain || episode.path.len() == model.steps(),
                "{threshold}: it stopped at {entropy}"
            );
        }
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
    // The settings' own.
    assert_eq!(run(&model, &Rules::default()), run(&at(Config::default().threshold), &Rules::default()));
}

#[test]
fn bad_thresholds_are_refused() {
    let data = toy(4, 30);
    let config = Config { hidden: vec![4], ..Config::default() };
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config.clone()).expect("fits");
    let model = trainer.finish_blocking().expect("finishes");
    for threshold in [-0.1, f64::NAN, f64::INFINITY] {
        let error = model.clone().with_tradeoff(threshold).expect_err("out of range").to_string();
        assert!(error.contains("zero or more") && error.contains(&threshold.to_string()), "{error}");
        let error = Config { threshold, ..config.clone() }.check(data.problem()).expect_err("out of range");
        assert!(error.to_string().contains("threshold"), "{error}");
    }
    Run::new("gdfs", &data, settings("gdfs", &data, &[])).refuses(&[
        ("threshold", json!(-1.0)),
        ("gamma", json!(0.0)),
        ("end_temperature", json!(-0.2)),
        ("hidden", json!([])),
        ("dropout", json!(1.0)),
        ("temperatures", json!(0)),
        ("horizon", json!(5)),
        ("thresold", json!(0.1)),
    ]);
}
