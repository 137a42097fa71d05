//! OL: a run that is saved, resumed, recorded into a host's frames, stored and asked; prices, budgets and what cannot be
//! had.

use crate::common::{TempDir, engines};
use crate::rig::{toy, toy_of_bytes};
use crate::runs::{Run, finish, settings};
use querent::data::{Dataset, Normalization, Part};
use querent::methods::ol::{self, Config, Reward, Trainer};
use querent::nn::Tensors;
use querent::policy::Stopping;
use querent::policy::evaluate::{Rules, episodes, outcomes};
use querent::policy::history::Phase;
use querent::{Engine, Model, Problem, Step};
use serde_json::{Value, json};

/// A run of a second or two: a pretraining, three ε, several updates a step, a memory that goes round.
fn small(data: &Dataset, reward: &str) -> Value {
    let changed = [
        ("reward", json!(reward)),
        ("horizon", json!(3)),
        ("hidden", json!([7, 6])),
        ("batch", json!(20)),
        ("updates", json!(2)),
        ("replay", json!(60)),
        ("samples", json!(2)),
        ("polyak", json!(0.2)),
        ("rate", json!(0.02)),
        ("patience", json!(1)),
        ("stage_epochs", json!(2)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(6)),
        ("epsilons", json!(3)),
        ("seed", json!(5)),
    ];
    settings("ol", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(5, 60);
    for reward in ["loss", "confidence"] {
        Run::new("ol", &data, small(&data, reward)).goes_on_with_equal_bits();
    }
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(5, 60);
    Run::new("ol", &data, small(&data, "loss")).is_the_same_in_frames();
}

/// What the schedule went through: the pretraining, then each ε; the rate falls in the second half, and the last ε ends
/// when it rests. The best weights are those with the lowest objective.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut settings = small(&data, "loss");
    (settings["epsilons"], settings["decay"]) = (json!(4), json!(0.1));
    let mut training = Run::new("ol", &data, settings).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    assert_eq!(history.iter().filter(|epoch| epoch.phase == Phase::WarmUp).count(), 2);
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 4 * 2);
    let mut best = f64::INFINITY;
    // Of four stages: after two the first half is over, and a tenth of the run more, after three four tenths.
    for (stage, rate) in [0.02, 0.02, 0.02 * 0.1, 0.02 * 1e-3].into_iter().enumerate() {
        let epochs: Vec<_> = history.iter().filter(|epoch| epoch.phase == Phase::Stage(stage)).collect();
        assert!(epochs.len() == 2 || stage == 3 && epochs.len() == 1, "{history:?}");
        for (index, epoch) in epochs.iter().enumerate() {
            assert!((epoch.settings["epsilon"] - 0.1f64.powf(stage as f64 / 3.0)).abs() < 1e-12);
            assert!((epoch.settings["rate"] - rate).abs() < 1e-12, "{stage}: {:?}", epoch.settings);
            assert_eq!(epoch.best, epoch.validation.objective < best);
            // A patience of one: in the last stage, the first epoch that is not better is the last.
            assert!(stage < 3 || epoch.best || index + 1 == epochs.len());
            best = best.min(epoch.validation.objective);
        }
    }
    assert_eq!(training.best(), Some(best));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = toy(4, 30);
    Run::new("ol", &data, settings("ol", &data, &[])).refuses(&[
        ("alpha", json!(-1.0)),
        ("gamma", json!(1.1)),
        ("epsilon", json!(1.1)),
        ("epsilon", json!(0.0)),
        ("epsilon_end", json!(0.0)),
        ("epsilons", json!(0)),
        ("polyak", json!(0.0)),
        ("updates", json!(0)),
        ("replay", json!(0)),
        ("replay", json!(1_000_000_000)),
        ("samples", json!(0)),
        ("threshold", json!(-0.5)),
        ("rate", json!(0.0)),
        ("hidden", json!([])),
        ("hidden", json!([8, 0])),
        ("dropout", json!(1.0)),
        ("horizon", json!(5)),
        ("epoch_steps", json!(0)),
        ("temperatures", json!(5)),
    ]);
    let money = settings("ol", &data, &[("reward", json!("money"))]);
    let error = (querent::methods::ol::ENTRY.check)(&data, &money).expect_err("no reward").to_string();
    assert!(error.contains("`money`") && error.contains("`loss` or `confidence`"), "{error}");
    // What the original's reward is made of.
    let confidence = settings("ol", &data, &[("reward", json!("confidence"))]);
    Run::new("ol", &data, confidence).refuses(&[("dropout", json!(0.0))]);
}

/// The default α follows from the classes and the costs.
#[test]
fn the_default_alpha() {
    let data = toy(4, 30);
    // Of ln 3, for a mean cost of 0.875.
    assert_eq!(Config::for_table(&data).alpha, 0.038);
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset, engine: &Engine, reward: &str) -> (Model, Trainer) {
    let config: Config = serde_json::from_value(small(data, reward)).expect("settings");
    let config = Config { epoch_steps: 40, ..config };
    let mut trainer = Trainer::new(engine, data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// A model does what the engine evaluates, with groups, prices, class weights and known columns, on reals and on bytes; what
/// epochs are judged by is what it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    for (data, reward) in [(toy(6, 200), "loss"), (toy(6, 200), "confidence"), (toy_of_bytes(5, 150), "loss")]
    {
        for (name, engine) in engines() {
            let (model, mut trainer) = trained(&data, &engine, reward);
            let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
            let evaluation = trainer.stepper_mut().evaluate_blocking(Part::Test).expect("evaluates");
            let stops = reward == "loss";
            let rules = Rules { may_stop: stops, ..Rules::default() };
            let asked = episodes(&model, &data, Part::Test, &rules).expect("asks");
            let ended = asked.ended();
            assert_eq!((&ended.path, &ended.guess), (&traces.path, &traces.guess), "{name}, {reward}");
            let labels = &data.splits()[2].y;
            let summary = ended.summary(data.problem(), labels, model.alpha());
            assert!((evaluation.objective - summary.objective).abs() < 1e-4, "{evaluation:?} {summary:?}");
            assert_eq!(evaluation.instances, labels.len() as f64);
            if !stops {
                assert!(traces.path.iter().all(|&feature| (feature as usize) < traces.features));
                // The loss before anything is known and after each acquisition.
                let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
                let steps = model.steps();
                let along = (0..=steps).map(loss).sum::<f64>() / (steps + 1) as f64;
                assert!((evaluation.extra[0] - along).abs() < 1e-4 * along, "{name}: {evaluation:?} {along}");
            }
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("ol-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    for reward in ["loss", "confidence"] {
        let (model, _) = trained(&data, &Engine::cpu(), reward);
        model.save(&file).expect("saves");
        let loaded = Model::load(&file).expect("loads");
        assert_eq!(loaded, model);
        assert_eq!((loaded.method(), loaded.steps()), ("ol", 3));
        assert_eq!((loaded.network("network").len(), loaded.network("predictor").len()), (3, 0));
        // The predicting branch goes on not reading the other.
        let second = &loaded.network("network")[1].weight;
        assert!(second.chunks_exact(14).take(6).all(|row| row[7..].iter().all(|&weight| weight == 0.0)));
        assert!(second.chunks_exact(14).skip(6).all(|row| row.iter().all(|&weight| weight != 0.0)));
        let all = |model: &Model| episodes(model, &data, Part::Test, &Rules::default()).expect("asks");
        assert_eq!(all(&loaded), all(&model));
        if reward == "loss" {
            assert!(loaded.alpha() > 0.0);
            let error = model.clone().with_tradeoff(0.5).expect_err("one α").to_string();
            assert!(error.contains("one α") && error.contains("another"), "{error}");
        } else {
            assert_eq!(loaded.alpha(), 0.0);
            let error = model.clone().with_tradeoff(-0.1).expect_err("out of range").to_string();
            assert!(error.contains("zero or more"), "{error}");
            let none = model.clone().with_tradeoff(2.0).expect("valid");
            assert!(all(&none).episodes.iter().all(|episode| episode.path.is_empty()));
            assert!(all(&model).episodes.iter().all(|episode| episode.path.len() == 3));
        }
    }
}

/// A model of one hidden unit a branch that sees nothing: what it says of two features is by hand.
fn by_hand(reward: Reward, threshold: f64, q: [f64; 3]) -> Model {
    let problem = Problem::ungrouped(&[1.0, 2.0], 2).expect("valid");
    let config = Config { hidden: vec![1], reward, threshold, ..Config::default() };
    let layers = vec![
        Tensors { weight: vec![0.0; 8], bias: vec![0.0; 2] },
        // f = (0.8, 0.2).
        Tensors { weight: vec![0.0; 10], bias: vec![4f64.ln(), 0.0, q[0], q[1], q[2]] },
    ];
    ol::model(problem, Normalization::identity(2), config, layers, Vec::new()).expect("fits")
}

#[test]
fn values_by_hand() {
    let stopping = |model: &Model| model.session().why().stopping;
    // The second feature is worth more than stopping, by 0.25.
    let model = by_hand(Reward::Loss, 0.0, [-1.0, -0.25, -0.5]);
    assert_eq!((model.session().next(), stopping(&model)), (Step::Acquire(1), Stopping::Gain(0.25)));
    // Of equal values, the feature's counts.
    assert_eq!(by_hand(Reward::Loss, 0.0, [-0.5, -0.75, -0.5]).session().next(), Step::Acquire(0));
    let model = by_hand(Reward::Loss, 0.0, [-1.0, -0.75, -0.5]);
    assert_eq!((model.session().next(), stopping(&model)), (Step::Stop, Stopping::Gain(-0.25)));
    // With the original's reward stopping has no value, and the belief says when.
    let entropy = -(0.8 * 0.8f64.ln() + 0.2 * 0.2f64.ln());
    let model = by_hand(Reward::Confidence, 0.0, [1.0, 0.5, 9.0]);
    assert_eq!(model.session().next(), Step::Acquire(0));
    let Stopping::Doubt { entropy: doubt, below } = stopping(&model) else {
        panic!("{:?}", stopping(&model))
    };
    assert!((f64::from(doubt) - entropy).abs() < 1e-6 && below == 0.0);
    assert_eq!(by_hand(Reward::Confidence, 0.6, [1.0, 0.5, 9.0]).session().next(), Step::Stop);
}

/// Of two that say the same, the cheaper one is asked for; what cannot be had and what does not fit a budget is not.
#[test]
fn prices_budgets_and_what_cannot_be_had() {
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 600, 300]);
    let config = Config {
        alpha: 0.03,
        hidden: vec![32, 24],
        batch: 50,
        dropout: 0.0,
        polyak: 0.02,
        rate: 3e-3,
        stage_epochs: 3,
        warm_up_epochs: 2,
        epoch_steps: 120,
        epsilons: 4,
        updates: 6,
        seed: 3,
        ..Config::default()
    };
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("finishes");
    let labels = &data.splits()[2].y;
    let asked = outcomes(&model, &data, Part::Test, f64::INFINITY).expect("asks").traces;
    let summary = asked.summary(data.problem(), labels, 0.03);
    println!("{summary:?}");
    assert!(summary.accuracy > 0.9, "{summary:?}");
    assert!(summary.cost < 4.0, "{summary:?}");
    // It depends on the answers how much is asked.
    assert!(summary.stop_steps.iter().filter(|&&share| share > 0.05).count() > 1, "{summary:?}");
    let all = episodes(&model, &data, Part::Test, &Rules::default()).expect("asks");
    let dear = all.episodes.iter().filter(|episode| episode.path.contains(&0)).count();
    let cheap = all.episodes.iter().filter(|episode| episode.path.contains(&2)).count();
    assert!(20 * dear < cheap, "the same for less: {dear} {cheap}");

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
    assert!(gone.contains(&2), "{gone:?}");
}

/// A checkpoint and a model of another method are not taken for ones of this.
#[test]
fn files_of_another_method_are_refused() {
    let folder = TempDir::new("ol-other");
    let data = toy(5, 60);
    let short = [
        ("horizon", json!(3)),
        ("hidden", json!([7, 6])),
        ("batch", json!(20)),
        ("stage_epochs", json!(1)),
        ("warm_up_epochs", json!(1)),
        ("epoch_steps", json!(2)),
        ("epsilons", json!(1)),
    ];
    let mut dime = Run::new("dime", &data, settings("dime", &data, &short)).start(&Engine::cpu());
    finish(&mut *dime);
    let [checkpoint, file] = ["checkpoint", "model"].map(|name| folder.0.join(name));
    dime.save_blocking(&checkpoint).expect("saves");
    let mut other = Run::new("ol", &data, small(&data, "loss")).start(&Engine::cpu());
    let error = other.resume(&checkpoint).expect_err("of another method").to_string();
    assert!(error.contains("dime") && error.contains("ol"), "{error}");

    dime.finish_blocking().expect("finishes").save(&file).expect("saves");
    let mut stored = crate::spoil::File::read(&file);
    let mut model: Value = serde_json::from_str(&stored.metadata["model"]).expect("JSON");
    assert_eq!(model["method"], "dime");
    model["method"] = json!("ol");
    stored.set("model", &model.to_string());
    stored.write(&file);
    let error = Model::load(&file).expect_err("of another method").to_string();
    assert!(error.contains("unknown field"), "{error}");
}
