//! GSMRL: a run that is saved, resumed, recorded into a host's frames, stored and asked; prices, budgets and what cannot
//! be had.

use crate::common::{TempDir, engines};
use crate::rig::{toy, toy_of_bytes};
use crate::runs::{Run, finish, settings};
use crate::spoil::File;
use querent::data::{Dataset, Part};
use querent::methods::gsmrl::{Acquire, Config, Trainer};
use querent::policy::evaluate::{Rules, episodes, outcomes};
use querent::policy::history::Phase;
use querent::{Engine, Model, Step};
use serde_json::{Value, json};

/// A run of a second or two: a surrogate, and two stages of a policy.
fn small(data: &Dataset) -> Value {
    let changed = [
        ("alpha", json!(0.05)),
        ("horizon", json!(3)),
        ("hidden", json!([12, 10])),
        ("surrogate_hidden", json!([8])),
        ("couplings", json!(2)),
        ("batch", json!(20)),
        ("rate", json!(0.01)),
        ("surrogate_rate", json!(0.01)),
        ("patience", json!(1)),
        ("stage_epochs", json!(2)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(3)),
        ("passes", json!(2)),
        ("seed", json!(5)),
    ];
    settings("gsmrl", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(4, 60);
    Run::new("gsmrl", &data, small(&data)).goes_on_with_equal_bits();
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(4, 60);
    Run::new("gsmrl", &data, small(&data)).is_the_same_in_frames();
}

/// What the schedule went through: the surrogate with a rate that falls, then the stages, each with a lower one.
#[test]
fn the_schedule() {
    let data = toy(4, 60);
    let mut training = Run::new("gsmrl", &data, small(&data)).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    let rates = |phase: Phase| -> Vec<f64> {
        history.iter().filter(|epoch| epoch.phase == phase).map(|epoch| epoch.settings["rate"]).collect()
    };
    let surrogate = rates(Phase::WarmUp);
    assert!(surrogate.len() == 2 && surrogate[0] == 0.01 && surrogate[1] < 0.006, "{surrogate:?}");
    for (stage, rate) in [(0, 0.01), (1, 0.003)] {
        let rates = rates(Phase::Stage(stage));
        assert!((1..=2).contains(&rates.len()), "{rates:?}");
        assert!(rates.iter().all(|r| (r - rate).abs() < 1e-12), "{rates:?}");
    }
    let best = history.iter().filter(|epoch| epoch.phase != Phase::WarmUp);
    let best = best.map(|epoch| epoch.validation.objective).fold(f64::INFINITY, f64::min);
    assert_eq!(training.best(), Some(best));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = toy(4, 30);
    Run::new("gsmrl", &data, settings("gsmrl", &data, &[])).refuses(&[
        ("alpha", json!(-0.1)),
        ("alpha", json!("auto")),
        ("alpha", json!([0.01, 0.1])),
        ("couplings", json!(0)),
        ("couplings", json!(1_000_000_000u64)),
        ("surrogate_hidden", json!([])),
        ("hidden", json!([8, 0])),
        ("passes", json!(0)),
        ("stages", json!(0)),
        ("clip", json!(0.0)),
        ("clip", json!(1.0)),
        ("trace", json!(1.1)),
        ("discount", json!(-0.1)),
        ("norm", json!(0.0)),
        ("bonus", json!(-1.0)),
        ("information", json!(-1.0)),
        ("likelihood", json!(-1.0)),
        ("rate", json!(0.0)),
        ("dropout", json!(1.0)),
        ("horizon", json!(5)),
        ("threshold", json!(0.5)),
        ("warm_up_epochs", json!(0)),
    ]);
    let settings = settings("gsmrl", &data, &[("acquire", json!("anything"))]);
    let entry = querent::methods::find("gsmrl").expect("there is one");
    let error = (entry.check)(&data, &settings).expect_err("no such way").to_string();
    assert!(error.contains("anything") && error.contains("information"), "{error}");
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset, engine: &Engine) -> (Model, Trainer) {
    let config: Config = serde_json::from_value(small(data)).expect("settings");
    let config = Config { epoch_steps: 20, ..config };
    let mut trainer = Trainer::new(engine, data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked, a model does what the engine evaluates, with groups, prices, class weights and known columns, on reals and on
/// bytes.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    for data in [toy(6, 200), toy_of_bytes(5, 150)] {
        for (name, engine) in engines() {
            let (model, mut trainer) = trained(&data, &engine);
            let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
            let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
            let asked = episodes(&model, &data, Part::Test, &Rules::default()).expect("asks");
            let ended = asked.ended();
            assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess), "{name}");
            let labels = &data.splits()[2].y;
            let summary = ended.summary(data.problem(), labels, model.alpha());
            println!("{name}: {summary:?}");
            assert!((evaluation.loss - summary.loss).abs() < 1e-4 * summary.loss, "{name}: {evaluation:?}");
            assert!((evaluation.cost - summary.cost).abs() < 1e-4, "{name}: {evaluation:?}");
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("gsmrl-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(5, 100);
    let (model, _) = trained(&data, &Engine::cpu());
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("gsmrl", 3, 0.05));
    let networks =
        ["flow.0", "flow.2", "prior", "predictor", "policy"].map(|name| loaded.network(name).len());
    assert_eq!(networks, [2, 2, 2, 3, 3]);
    let all = |model: &Model| episodes(model, &data, Part::Test, &Rules::default()).expect("asks");
    assert_eq!(all(&loaded), all(&model));
    let error = model.with_tradeoff(0.1).expect_err("there is one α").to_string();
    assert!(error.contains("one α"), "{error}");
    // A file that says that it is another method's is refused.
    for method in ["nmppg", "dime", "fixed"] {
        let mut other = File::read(&file);
        let text =
            other.metadata["model"].replace("\"method\":\"gsmrl\"", &format!("\"method\":\"{method}\""));
        assert_ne!(text, other.metadata["model"]);
        other.set("model", &text);
        let error = Model::from_bytes(&other.bytes()).expect_err(method).to_string();
        assert!(error.contains("unknown field"), "as {method}: {error}");
    }
}

/// The surrogate alone asks for what tells most; a higher price asks less, and a budget is kept.
#[test]
fn information_alone() {
    let folder = TempDir::new("gsmrl-information");
    let file = folder.0.join("model.safetensors");
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 60, 100]);
    let trained = |alpha: f64| {
        let config = Config {
            alpha: alpha.into(),
            acquire: Acquire::Information,
            hidden: vec![32, 32],
            surrogate_hidden: vec![24],
            couplings: 2,
            batch: 64,
            surrogate_rate: 3e-3,
            warm_up_epochs: 6,
            epoch_steps: 46,
            seed: 3,
            ..Config::default()
        };
        let mut trainer = Trainer::new(&Engine::cpu(), &data, config).expect("fits");
        while trainer.epoch_blocking().expect("trains").is_some() {}
        assert_eq!(trainer.history().len(), 6, "there is no policy to train");
        trainer.finish_blocking().expect("finishes")
    };
    let summary = |model: &Model| {
        let asked = outcomes(model, &data, Part::Test, f64::INFINITY).expect("asks").traces;
        asked.summary(data.problem(), &data.splits()[2].y, model.alpha())
    };
    let model = trained(0.02);
    model.save(&file).expect("saves");
    assert_eq!(Model::load(&file).expect("loads"), model);
    let (cheap, dear) = (summary(&model), summary(&trained(0.3)));
    println!("{cheap:?} {dear:?}");
    assert!(cheap.accuracy > 0.85 && dear.cost < cheap.cost, "{cheap:?} {dear:?}");
    let all =
        episodes(&model, &data, Part::Test, &Rules { may_stop: false, ..Rules::default() }).expect("asks");
    // A flow is not exact: of what says the same, the cheaper one is asked first by most, and noise by nobody.
    let asked_before = |a: u32, b: u32| {
        let place = |path: &[u32], feature: u32| path.iter().position(|&asked| asked == feature);
        all.episodes.iter().filter(|episode| place(&episode.path, a) < place(&episode.path, b)).count()
    };
    assert!(asked_before(2, 0) > 60, "{} of 100", asked_before(2, 0));
    assert!(all.episodes.iter().all(|episode| episode.path[0] != 1), "noise first");
    let within = episodes(&model, &data, Part::Test, &Rules::with_budget(1.0)).expect("asks");
    assert!(within.episodes.iter().all(|episode| episode.moments[episode.moments.len() - 1].spent <= 1.0));
}

/// What says nothing is not asked for, what is dear neither, and what cannot be had and what does not fit a budget is not.
#[test]
fn prices_budgets_and_what_cannot_be_had() {
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 600, 300]);
    for (name, engine) in engines() {
        // The second engine is a software one here: enough to see that it learns.
        let epochs = if name == "cpu" { 8 } else { 3 };
        let config = Config {
            alpha: 0.05.into(),
            hidden: vec![32, 32],
            surrogate_hidden: vec![24],
            couplings: 2,
            batch: 64,
            rate: 3e-3,
            surrogate_rate: 3e-3,
            stages: 1,
            stage_epochs: epochs,
            warm_up_epochs: 4,
            epoch_steps: 46,
            passes: 4,
            seed: 3,
            ..Config::default()
        };
        let mut trainer = Trainer::new(&engine, &data, config).expect("fits");
        while trainer.epoch_blocking().expect("trains").is_some() {}
        let model = trainer.finish_blocking().expect("finishes");
        let labels = &data.splits()[2].y;
        let asked = outcomes(&model, &data, Part::Test, f64::INFINITY).expect("asks").traces;
        let summary = asked.summary(data.problem(), labels, model.alpha());
        println!("{name}: {summary:?}");
        let nothing = data.splits()[0].y.iter().filter(|&&label| label == 0).count() as f64 / 3_000.0;
        assert!(summary.accuracy > nothing.max(1.0 - nothing) + 0.1, "{name}: {summary:?}");
        if name != "cpu" {
            continue;
        }
        assert!(summary.accuracy > 0.85, "{summary:?}");
        for budget in [0.0, 1.0, 2.5] {
            let within = episodes(&model, &data, Part::Test, &Rules::with_budget(budget)).expect("asks");
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
        assert!(!gone.is_empty());
    }
}
