//! DIME: a run that is saved, resumed, recorded into a host's frames, stored and asked; prices, budgets and what cannot
//! be had.

use crate::common::{TempDir, engines};
use crate::rig::{toy, toy_of_bytes};
use crate::runs::{Run, finish, settings};
use querent::data::{Dataset, Normalization, Part};
use querent::methods::dime::{self, Config, Trainer};
use querent::nn::Tensors;
use querent::policy::Stopping;
use querent::policy::evaluate::{Rules, episodes, outcomes};
use querent::policy::history::Phase;
use querent::{Engine, Model, Problem, Step};
use serde_json::{Value, json};

/// A run of a second or two: a pretraining, three ε, rates that decay.
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
        ("epsilon", json!(0.3)),
        ("epsilon_decay", json!(0.2)),
        ("epsilons", json!(3)),
        ("seed", json!(5)),
    ];
    settings("dime", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(5, 60);
    Run::new("dime", &data, small(&data)).goes_on_with_equal_bits();
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(5, 60);
    Run::new("dime", &data, small(&data)).is_the_same_in_frames();
}

/// What the schedule went through: the pretraining, then each ε with the full rate again, until its loss rests; the best
/// weights are those with the lowest loss over all steps, and what rests is measured by the best of every ε.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut training = Run::new("dime", &data, small(&data)).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    assert_eq!(history.iter().filter(|epoch| epoch.phase == Phase::WarmUp).count(), 2);
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 3 * 3);
    let mut best = f64::INFINITY;
    for stage in 0..3 {
        let epochs: Vec<_> = history.iter().filter(|epoch| epoch.phase == Phase::Stage(stage)).collect();
        let mut decays = 0;
        for (index, epoch) in epochs.iter().enumerate() {
            assert!((epoch.settings["epsilon"] - 0.3 * 0.2f64.powi(stage as i32)).abs() < 1e-12);
            assert!((epoch.settings["rate"] - 0.02 * 0.2f64.powi(decays)).abs() < 1e-12, "{history:?}");
            let along = epoch.validation.extra[0];
            assert_eq!(epoch.best, along < best);
            // A patience of one: whatever is not better decays; one decay, and then it is over.
            decays += i32::from(along >= best);
            best = best.min(along);
            assert_eq!(index + 1 == epochs.len(), decays == 2 || index == 2, "stage {stage}: {history:?}");
        }
    }
    assert_eq!(training.best(), Some(best));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = toy(4, 30);
    Run::new("dime", &data, settings("dime", &data, &[])).refuses(&[
        ("threshold", json!(-1.0)),
        ("epsilon", json!(1.1)),
        ("epsilon", json!(-0.1)),
        ("epsilon_decay", json!(2.0)),
        ("epsilons", json!(0)),
        ("price", json!(-0.5)),
        ("rate", json!(0.0)),
        ("hidden", json!([])),
        ("hidden", json!([8, 0])),
        ("dropout", json!(1.0)),
        ("horizon", json!(5)),
        ("epoch_steps", json!(0)),
        ("temperatures", json!(5)),
    ]);
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset, engine: &Engine, price: Option<f64>) -> (Model, Trainer) {
    let config: Config = serde_json::from_value(small(data)).expect("settings");
    let config = Config { epoch_steps: 60, epsilons: 2, price, ..config };
    let mut trainer = Trainer::new(engine, data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked to the horizon, a model does what the engine evaluates, with groups, prices, class weights and known columns, by
/// quotients and with a price, on reals and on bytes; what the schedule goes by is what it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    for (data, price) in [(toy(6, 200), None), (toy(6, 200), Some(0.05)), (toy_of_bytes(5, 150), None)] {
        for (name, engine) in engines() {
            let (model, mut trainer) = trained(&data, &engine, price);
            let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
            let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
            let to_the_end = Rules { may_stop: false, ..Rules::default() };
            let asked = episodes(&model, &data, Part::Test, &to_the_end).expect("asks");
            let ended = asked.ended();
            assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess), "{name}, {price:?}");
            assert!(traces.path.iter().all(|&feature| (feature as usize) < traces.features));
            // The loss before anything is known and after each acquisition.
            let labels = &data.splits()[2].y;
            let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
            let steps = model.steps();
            let along = (0..=steps).map(loss).sum::<f64>() / (steps + 1) as f64;
            assert!((evaluation.extra[0] - along).abs() < 1e-4 * along, "{name}: {evaluation:?} {along}");
            assert!((evaluation.loss - loss(steps)).abs() < 1e-4 * along);
            assert_eq!(evaluation.instances, labels.len() as f64);
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("dime-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    for price in [None, Some(0.05)] {
        let (model, _) = trained(&data, &Engine::cpu(), price);
        model.save(&file).expect("saves");
        let loaded = Model::load(&file).expect("loads");
        assert_eq!(loaded, model);
        assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("dime", 3, 0.0));
        assert_eq!((loaded.network("network").len(), loaded.network("predictor").len()), (3, 0));
        let all = |model: &Model| episodes(model, &data, Part::Test, &Rules::default()).expect("asks");
        assert_eq!(all(&loaded), all(&model));
        for threshold in [-0.1, f64::NAN, f64::INFINITY] {
            let error = model.clone().with_tradeoff(threshold).expect_err("out of range").to_string();
            assert!(error.contains("zero or more") && error.contains(&threshold.to_string()), "{error}");
        }
    }
}

/// A higher threshold never asks more, and what it asks is the beginning of what a lower one asks.
#[test]
fn a_threshold_for_every_trade_off() {
    let data = toy(6, 200);
    let (model, _) = trained(&data, &Engine::cpu(), None);
    let at = |threshold: f64| model.clone().with_tradeoff(threshold).expect("valid");
    let run = |model: &Model, rules: &Rules| episodes(model, &data, Part::Test, rules).expect("asks");
    let whole = run(&model, &Rules { may_stop: false, ..Rules::default() });
    let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
    let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
    scores.sort_by(f32::total_cmp);
    // ln 3 for a cost of 0.5, and twice that for the class weights: nothing is worth more.
    let mut thresholds = vec![0.0, 4.5];
    thresholds.splice(1..1, (1..10).map(|tenth| scores[scores.len() * tenth / 10].into()));
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
}

/// A model of one hidden unit that sees nothing: what it says of two classes and two features is by hand.
fn by_hand(costs: [f64; 2], weights: [f64; 2], price: Option<f64>, threshold: f64) -> Model {
    let problem = Problem::ungrouped(&costs, 2)
        .and_then(|problem| problem.with_class_weights(weights.to_vec()))
        .expect("valid");
    let config = Config { hidden: vec![1], price, threshold, ..Config::default() };
    let layers = vec![
        Tensors { weight: vec![0.0; 4], bias: vec![0.0] },
        // f = (0.8, 0.2); σ(v) = 0.75 and 0.5.
        Tensors { weight: vec![0.0; 4], bias: vec![4f64.ln(), 0.0, 3f64.ln(), 0.0] },
    ];
    dime::model(problem, Normalization::identity(2), config, layers, Vec::new()).expect("fits")
}

#[test]
fn worth_by_hand() {
    let entropy = -(0.8 * 0.8f64.ln() + 0.2 * 0.2f64.ln());
    let worth = |model: &Model| match model.session().why().stopping {
        Stopping::Worth { best, below } => (f64::from(best), f64::from(below)),
        other => panic!("{other:?}"),
    };
    for (costs, weights, price, first, expected) in [
        // The second one is worth less, but costs less still.
        ([2.0, 1.0], [1.0, 1.0], None, 1, 0.5 * entropy),
        ([1.0, 1.0], [1.0, 1.0], None, 0, 0.75 * entropy),
        // What is free counts as 0.001.
        ([0.0, 1.0], [1.0, 1.0], None, 0, 0.75 * entropy / 1e-3),
        // Where classes weigh, 0.8 / 0.5 and 0.2 / 2 are how often they are.
        ([1.0, 1.0], [0.5, 2.0], None, 0, 0.75 * entropy / 1.7),
        ([2.0, 1.0], [1.0, 1.0], Some(0.2), 1, 0.5 * entropy - 0.2),
        ([2.0, 1.0], [1.0, 1.0], Some(0.1), 0, 0.75 * entropy - 0.2),
    ] {
        let model = by_hand(costs, weights, price, 0.001);
        assert_eq!(model.session().next(), Step::Acquire(first), "{costs:?} {price:?}");
        let (best, below) = worth(&model);
        assert!((best - expected).abs() < 1e-5 * expected, "{costs:?} {weights:?}: {best} {expected}");
        assert!((below - 0.001).abs() < 1e-9);
        let shares = model.session().why().wanted;
        assert_eq!((shares.len(), shares[0].feature), (2, first));
        // Just below what it is worth it asks, just above it stops.
        for (threshold, step) in [(0.999, Step::Acquire(first)), (1.001, Step::Stop)] {
            assert_eq!(by_hand(costs, weights, price, threshold * expected).session().next(), step);
        }
    }
    // A price above all of it stops at once, whatever the threshold.
    assert_eq!(by_hand([2.0, 1.0], [1.0, 1.0], Some(0.5), 0.0).session().next(), Step::Stop);
}

/// Of two that say the same, the cheaper one is asked for; what cannot be had and what does not fit a budget is not.
#[test]
fn prices_budgets_and_what_cannot_be_had() {
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 600, 300]);
    let config = Config {
        hidden: vec![32, 24],
        batch: 50,
        dropout: 0.0,
        rate: 3e-3,
        stage_epochs: 4,
        warm_up_epochs: 2,
        epoch_steps: 120,
        epsilons: 2,
        threshold: 0.02,
        seed: 3,
        ..Config::default()
    };
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("finishes");
    let labels = &data.splits()[2].y;
    let all =
        episodes(&model, &data, Part::Test, &Rules { may_stop: false, ..Rules::default() }).expect("asks");
    for episode in &all.episodes {
        let place = |feature: u32| episode.path.iter().position(|&asked| asked == feature);
        assert!(place(2) < place(0), "the dear one before the same for less: {:?}", episode.path);
    }
    let asked = outcomes(&model, &data, Part::Test, f64::INFINITY).expect("asks").traces;
    let summary = asked.summary(data.problem(), labels, 0.0);
    println!("{summary:?}");
    assert!(summary.accuracy > 0.9, "{summary:?}");
    assert!(summary.cost < 4.0, "{summary:?}");
    // It depends on the answers how much is asked.
    assert!(summary.stop_steps.iter().filter(|&&share| share > 0.05).count() > 1, "{summary:?}");

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
    // Even what is dear is asked for in its place.
    assert!(gone.contains(&2) && gone.contains(&0), "{gone:?}");
}
