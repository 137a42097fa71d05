//! SEFA: a run that is saved, resumed, recorded into a host's frames, stored and asked; prices, budgets and what cannot
//! be had.

use crate::common::{TempDir, engines};
use crate::rig::{toy, toy_of_bytes};
use crate::runs::{Run, finish, settings};
use crate::spoil::File;
use querent::data::{Dataset, Normalization, Part};
use querent::methods::sefa::{self, Config, Layers, Trainer};
use querent::nn::Tensors;
use querent::policy::evaluate::{Rules, episodes, outcomes};
use querent::policy::history::Phase;
use querent::{Engine, Model, Problem, Step};
use serde_json::{Value, json};

/// A run of a second or two: epochs that do not count yet, then three learning rates.
fn small(data: &Dataset) -> Value {
    let changed = [
        ("horizon", json!(3)),
        ("hidden", json!([12, 10])),
        ("encoder", json!([5, 6])),
        ("latent", json!(3)),
        ("training_samples", json!(4)),
        ("validation_samples", json!(5)),
        ("samples", json!(5)),
        ("batch", json!(20)),
        ("rate", json!(0.02)),
        ("patience", json!(1)),
        ("decays", json!(2)),
        ("stage_epochs", json!(3)),
        ("warm_up_epochs", json!(2)),
        ("epoch_steps", json!(6)),
        ("seed", json!(5)),
    ];
    settings("sefa", data, &changed)
}

#[test]
fn equal_bits_after_a_resume() {
    let data = toy(5, 60);
    Run::new("sefa", &data, small(&data)).goes_on_with_equal_bits();
}

#[test]
fn frames_give_the_plain_runs_bits() {
    let data = toy(5, 60);
    Run::new("sefa", &data, small(&data)).is_the_same_in_frames();
}

/// What the schedule went through: each learning rate until the loss rests or its epochs are over; the best weights are
/// those with the lowest loss over all steps.
#[test]
fn the_schedule() {
    let data = toy(5, 60);
    let mut training = Run::new("sefa", &data, small(&data)).start(&Engine::cpu());
    let (history, _) = finish(&mut *training);
    assert!(history.len() <= training.epochs_at_most() && training.epochs_at_most() == 2 + 3 * 3);
    assert!(history[..2].iter().all(|epoch| epoch.phase == Phase::WarmUp && !epoch.best));
    let (mut best, mut stage, mut of_stage) = (f64::INFINITY, 0, 0);
    for epoch in &history[2..] {
        assert_eq!(epoch.phase, Phase::Stage(stage));
        assert!((epoch.settings["rate"] - 0.02 * 0.2f64.powi(stage as i32)).abs() < 1e-12, "{history:?}");
        let along = epoch.validation.extra[0];
        assert_eq!(epoch.best, along < best);
        of_stage += 1;
        // A patience of one: whatever is not better is the last of its rate.
        if along >= best || of_stage == 3 {
            (stage, of_stage) = (stage + 1, 0);
        }
        best = best.min(along);
    }
    assert_eq!((stage, training.best()), (3, Some(best)));
}

#[test]
fn settings_out_of_range_are_refused() {
    let data = toy(4, 30);
    Run::new("sefa", &data, settings("sefa", &data, &[])).refuses(&[
        ("threshold", json!(-1.0)),
        ("latent", json!(0)),
        ("latent", json!(1_000_000)),
        ("samples", json!(0)),
        ("samples", json!(1_000_000)),
        ("training_samples", json!(0)),
        ("validation_samples", json!(0)),
        ("beta", json!(-0.1)),
        ("rate", json!(0.0)),
        ("decay", json!(0.0)),
        ("hidden", json!([])),
        ("encoder", json!([8, 0])),
        ("encoder", json!([])),
        ("horizon", json!(5)),
        ("epoch_steps", json!(0)),
        ("dropout", json!(0.3)),
    ]);
}

/// A batch is normalized as a whole: where it does not fit, it is not split.
#[test]
fn a_batch_that_does_not_fit_is_refused() {
    let data = toy(5, 60);
    let config: Config = serde_json::from_value(small(&data)).expect("settings");
    let memory = sefa::Stepper::memory(&Engine::cpu(), &data, &config).expect("fits");
    assert_eq!((memory.rows, memory.micro_batches), (20, 1));
    let tight = Config { memory_budget: memory.working - 1, ..config };
    let error = sefa::Stepper::memory(&Engine::cpu(), &data, &tight).expect_err("too large").to_string();
    assert!(error.contains("memory"), "{error}");
}

// A model

/// A model that has learned a little, and the engine that it learned on.
fn trained(data: &Dataset, engine: &Engine, deterministic: bool) -> (Model, Trainer) {
    let config: Config = serde_json::from_value(small(data)).expect("settings");
    let config = Config { epoch_steps: 60, deterministic, ..config };
    let mut trainer = Trainer::new(engine, data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    (trainer.finish_blocking().expect("finishes"), trainer)
}

/// Asked to the horizon, a model does what the engine evaluates, with groups, prices, class weights and known columns, with
/// noise and without, on reals and on bytes; what the schedule goes by is what it says it is.
#[test]
fn the_engine_evaluates_what_a_model_does() {
    for (data, deterministic) in [(toy(6, 200), false), (toy(6, 200), true), (toy_of_bytes(5, 150), false)] {
        for (name, engine) in engines() {
            let (model, mut trainer) = trained(&data, &engine, deterministic);
            // What was kept may be older than what the engine has: an epoch's evaluation says which.
            let history = trainer.history().to_vec();
            let to_the_end = Rules { may_stop: false, ..Rules::default() };
            let asked = episodes(&model, &data, Part::Validation, &to_the_end).expect("asks");
            let labels = &data.splits()[1].y;
            let loss = |t: usize| asked.after(t).summary(data.problem(), labels, 0.0).loss;
            let steps = model.steps();
            let along = (0..=steps).map(loss).sum::<f64>() / (steps + 1) as f64;
            let kept = history.iter().rfind(|epoch| epoch.best).expect("one is the best");
            let evaluation = &kept.validation;
            assert!((evaluation.extra[0] - along).abs() < 1e-3 * along, "{name}: {evaluation:?} {along}");
            assert!((evaluation.loss - loss(steps)).abs() < 1e-3 * along, "{name}: {}", loss(steps));
            assert_eq!(evaluation.instances, labels.len() as f64);
            let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
            assert!(traces.path.iter().all(|&feature| (feature as usize) < traces.features));
        }
    }
}

#[test]
fn a_model_comes_back_from_its_file_and_asks() {
    let folder = TempDir::new("sefa-model");
    let file = folder.0.join("model.safetensors");
    let data = toy(6, 200);
    for deterministic in [false, true] {
        let (model, _) = trained(&data, &Engine::cpu(), deterministic);
        model.save(&file).expect("saves");
        let loaded = Model::load(&file).expect("loads");
        assert_eq!(loaded, model);
        assert_eq!((loaded.method(), loaded.steps(), loaded.alpha()), ("sefa", 3, 0.0));
        assert_eq!(loaded.network("predictor").len(), 3);
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
    let (model, _) = trained(&data, &Engine::cpu(), false);
    let at = |threshold: f64| model.clone().with_tradeoff(threshold).expect("valid");
    let run = |model: &Model, rules: &Rules| episodes(model, &data, Part::Test, rules).expect("asks");
    let whole = run(&model, &Rules { may_stop: false, ..Rules::default() });
    let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
    let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
    scores.sort_by(f32::total_cmp);
    // Nobody is less sure than ln 3.
    let mut thresholds = vec![0.0, 1.1];
    thresholds.splice(1..1, (1..10).map(|tenth| scores[scores.len() * tenth / 10].into()));
    let all: Vec<_> = thresholds.iter().map(|&threshold| run(&at(threshold), &Rules::default())).collect();
    for (threshold, episodes) in thresholds.iter().zip(&all) {
        assert_eq!(episodes.ended(), whole.below(*threshold as f32), "{threshold}");
    }
    let asked: Vec<usize> =
        all.iter().map(|all| all.episodes.iter().map(|episode| episode.path.len()).sum()).collect();
    println!("{asked:?} questions at {thresholds:?}");
    assert_eq!((asked[0], asked[10]), (100 * model.steps(), 0));
    assert!(asked.windows(2).filter(|pair| pair[1] < pair[0]).count() >= 5, "{asked:?}");
}

/// Two features with latents of one number each, whose mean is 1 once they are acquired; the predictor's only hidden unit
/// is w·z of both, and what is left of it by the ReLU is the first class's logit.
fn by_hand(costs: [f64; 2], weights: [f64; 2]) -> Model {
    let problem = Problem::ungrouped(&costs, 2).expect("valid");
    let config = Config {
        hidden: vec![1],
        encoder: vec![1],
        latent: 1,
        deterministic: true,
        threshold: 0.0,
        ..Config::default()
    };
    let layers = Layers {
        // The mask alone is read.
        encoder: vec![
            Tensors { weight: vec![1.0, 0.0, 1.0, 0.0], bias: vec![0.0; 2] },
            Tensors { weight: vec![1.0, 0.0, 1.0, 0.0], bias: vec![0.0; 4] },
        ],
        predictor: vec![
            Tensors { weight: weights.to_vec(), bias: vec![1.0] },
            Tensors { weight: vec![1.0, 0.0], bias: vec![0.0; 2] },
        ],
        knots: [vec![0.0; 64], vec![0.0; 64]].concat().repeat(2),
    };
    sefa::model(problem, Normalization::identity(2), config, layers, Vec::new()).expect("fits")
}

#[test]
fn scores_and_beliefs_by_hand() {
    for (costs, weights, first) in [
        ([1.0, 1.0], [0.5, 2.0], 1),
        ([1.0, 1.0], [-2.0, 0.5], 0),
        // For its cost, the first is better.
        ([0.1, 1.0], [0.5, 2.0], 0),
        // What is free counts as 0.001.
        ([1.0, 0.0], [2.0, 0.01], 1),
    ] {
        let model = by_hand(costs, weights);
        let mut session = model.session();
        let sure = |logit: f64| 1.0 / (1.0 + (-logit).exp());
        assert!((f64::from(session.predict()[0]) - sure(1.0)).abs() < 1e-6);
        assert_eq!(session.next(), Step::Acquire(first), "{costs:?} {weights:?}");
        // How much each is wanted: |w| over its cost.
        let wanted = session.why().wanted;
        let worth = |i: usize| weights[i].abs() / costs[i].max(1e-3);
        let share = worth(first) / (worth(0) + worth(1));
        assert_eq!(wanted[0].feature, first);
        assert!(
            (f64::from(wanted[0].share.expect("it has weights")) - share).abs() < 1e-4,
            "{wanted:?} {share}"
        );
        session.observe(first, [3.0]).expect("open");
        let logit = (1.0 + weights[first]).max(0.0);
        assert!((f64::from(session.predict()[0]) - sure(logit)).abs() < 1e-6);
    }
}

/// A file that says it is another method's, or lacks something, is refused with what is wrong.
#[test]
fn a_model_of_another_method_is_refused() {
    let folder = TempDir::new("sefa-other");
    let path = folder.0.join("model.safetensors");
    by_hand([1.0, 2.0], [0.5, 2.0]).save(&path).expect("saves");
    let file = File::read(&path);
    let refused = |change: &dyn Fn(&mut File)| {
        let mut file = file.clone();
        change(&mut file);
        Model::from_bytes(&file.bytes()).expect_err("spoilt").to_string()
    };
    for other in ["gdfs", "dime", "nmppg", "aaco"] {
        let said = refused(&|file| {
            let text =
                file.metadata["model"].replace("\"method\":\"sefa\"", &format!("\"method\":\"{other}\""));
            assert!(text.contains(other), "{text}");
            file.set("model", &text);
        });
        assert!(said.contains("cannot be read") || said.contains("tensor"), "{other}: {said}");
    }
    for (name, dimension) in [("encoder.0.weight", 0), ("encoder.1.bias", 1), ("columns.knots", 2)] {
        let said = refused(&|file| file.tensor(name).shorten(dimension));
        assert!(said.contains(name) && said.contains("expected"), "{said}");
        let said = refused(&|file| drop(file.tensors.remove(name)));
        assert!(said.contains(name) && said.contains("missing"), "{said}");
    }
    let said = refused(&|file| {
        let text = file.metadata["model"].replace("\"samples\":100", "\"samples\":4000000000");
        file.set("model", &text);
    });
    assert!(said.contains("samples is 4000000000"), "{said}");
}

/// What does not fit the problem is refused, with what is wrong.
#[test]
fn layers_that_do_not_fit_are_refused() {
    let problem = || Problem::ungrouped(&[1.0; 2], 2).expect("valid");
    let config = Config { hidden: vec![1], encoder: vec![1], latent: 1, ..Config::default() };
    let good = Layers {
        encoder: vec![
            Tensors { weight: vec![0.0; 4], bias: vec![0.0; 2] },
            Tensors { weight: vec![0.0; 4], bias: vec![0.0; 4] },
        ],
        predictor: vec![
            Tensors { weight: vec![0.0; 2], bias: vec![0.0] },
            Tensors { weight: vec![0.0; 2], bias: vec![0.0; 2] },
        ],
        knots: vec![0.0; 256],
    };
    let make = |change: &dyn Fn(&mut Layers)| {
        let mut layers = good.clone();
        change(&mut layers);
        sefa::model(problem(), Normalization::identity(2), config.clone(), layers, Vec::new())
    };
    make(&|_| ()).expect("fits");
    for (change, said) in [
        (&(|l: &mut Layers| l.encoder.truncate(1)) as &dyn Fn(&mut Layers), "layers instead of 2"),
        (&|l| l.encoder[1].bias.truncate(3), "2 encoders lead from 1 to 2 units"),
        (&|l| l.encoder[0].weight[2] = f64::NAN, "`encoder.0.weight`"),
        (&|l| l.predictor[0].weight.truncate(1), "layer 0 of the predictor"),
        (&|l| l.knots.truncate(255), "2 columns have 256"),
        (&|l| l.knots[0] = f64::INFINITY, "`columns.knots`"),
    ] {
        let error = make(change).expect_err("does not fit").to_string();
        assert!(error.contains(said), "{error}");
    }
}

/// Of two that say the same, the cheaper one is asked for; what cannot be had and what does not fit a budget is not.
#[test]
fn prices_budgets_and_what_cannot_be_had() {
    // Features: dear (a again, at 3), noise, a, pair, b, free.
    let data = crate::fixed::data([3_000, 600, 300]);
    let config = Config {
        hidden: vec![32, 24],
        encoder: vec![12],
        batch: 50,
        rate: 3e-3,
        stage_epochs: 4,
        decays: 1,
        epoch_steps: 120,
        samples: 30,
        threshold: 0.1,
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
