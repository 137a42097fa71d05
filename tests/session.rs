//! A model in memory, in its file, and asked through: against a dense forward pass written here, and
//! against rules that a hand-made model makes plain.

mod common;

use common::TempDir;
use querent::data::Normalization;
use querent::history::{Epoch, Phase};
use querent::nmppg::{Config, Evaluation, Metrics};
use querent::nn::{Mlp, Tensors};
use querent::{Answer, Error, Feature, Model, Problem, Result, Session, Step};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Numbers in -1..1.
fn numbers(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed;
    move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

fn layers(widths: [usize; 4], seed: u64, gain: f64) -> Vec<Tensors> {
    let mlp = Mlp::new(widths[0], [widths[1], widths[2]], widths[3]);
    let mut tensors = mlp.unpack(&mlp.init(seed, 0));
    for layer in &mut tensors {
        layer
            .weight
            .iter_mut()
            .chain(&mut layer.bias)
            .for_each(|value| *value = f64::from((*value * gain) as f32));
    }
    tensors
}

fn history() -> Vec<Epoch> {
    let epoch = |index: usize, phase| Epoch {
        index,
        phase,
        tau_soft: 0.8 / 3.0,
        lambda: 0.1 + 0.2,
        train: Metrics { objective: 1.0 / 3.0, ..Metrics::default() },
        validation: Evaluation { objective: 0.48f64.sqrt(), ..Evaluation::default() },
        best: index == 1,
        seconds: 1e-3 * index as f64,
    };
    vec![epoch(0, Phase::WarmUp), epoch(1, Phase::Stage(0)), epoch(2, Phase::Stage(1))]
}

/// A model of random weights. Feature names, costs, normalization and weights are all different.
fn random(
    groups: &[u32],
    classes: usize,
    hidden: [[usize; 2]; 2],
    horizon: Option<usize>,
    seed: u64,
) -> Model {
    let features = 1 + *groups.iter().max().expect("columns") as usize;
    let feature = |i: usize| Feature { name: format!("feature \"{i}\" ü"), cost: 0.5 + i as f64 / 7.0 };
    let problem = Problem::new(
        (0..features).map(feature).collect(),
        groups.to_vec(),
        (0..classes).map(|class| format!("class {class}")).collect(),
    )
    .and_then(|problem| problem.with_class_weights((1..=classes).map(|i| 1.0 / i as f64).collect()))
    .expect("valid");
    let mut draw = numbers(seed);
    let normalization = Normalization {
        mean: groups.iter().map(|_| (3.0 * draw()) as f32).collect(),
        scale: groups.iter().map(|_| (1.5 + draw()) as f32).collect(),
    };
    let inputs = groups.len() + features;
    let policy = layers([inputs, hidden[0][0], hidden[0][1], features + 1], seed, 2.5);
    let predictor = layers([inputs, hidden[1][0], hidden[1][1], classes], seed + 1, 2.5);
    let config =
        Config { policy_hidden: hidden[0], predictor_hidden: hidden[1], horizon, seed, ..Config::new(0.03) };
    Model::new(problem, normalization, config, policy, predictor, history()).expect("fits")
}

/// A model that reads nothing: its policy has these logits (the last is for stopping), whatever was seen.
fn constant(logits: &[f64], costs: &[f64], horizon: Option<usize>) -> Model {
    let features = costs.len();
    assert_eq!(logits.len(), features + 1);
    let zero = |inputs: usize, outputs: usize| Tensors {
        weight: vec![0.0; inputs * outputs],
        bias: vec![0.0; outputs],
    };
    let network = |bias: Vec<f64>| {
        let last = Tensors { bias: bias.clone(), ..zero(4, bias.len()) };
        vec![zero(2 * features, 4), zero(4, 4), last]
    };
    Model::new(
        Problem::ungrouped(costs, 3).expect("valid"),
        Normalization::identity(features),
        Config { policy_hidden: [4, 4], predictor_hidden: [4, 4], horizon, ..Config::default() },
        network(logits.to_vec()),
        network(vec![1.0, 2.0, 2.0]),
        Vec::new(),
    )
    .expect("fits")
}

/// The networks as they are written down: dense, in f64, from (x ⊙ m, m).
fn dense(layers: &[Tensors], model: &Model, x: &[f32], seen: &[bool]) -> Vec<f64> {
    let groups = model.problem().group_of_column();
    let normalization = model.normalization();
    let columns = x.iter().enumerate().map(|(column, &value)| {
        let value = (f64::from(value) - f64::from(normalization.mean[column]))
            / f64::from(normalization.scale[column]);
        if seen[groups[column] as usize] { value } else { 0.0 }
    });
    let mut units: Vec<f64> = columns.chain(seen.iter().map(|&seen| f64::from(u8::from(seen)))).collect();
    for (index, layer) in layers.iter().enumerate() {
        let rows = layer.weight.chunks_exact(units.len()).zip(&layer.bias);
        let sums = rows.map(|(row, bias)| bias + row.iter().zip(&units).map(|(w, x)| w * x).sum::<f64>());
        units = sums.map(|sum| if index < 2 { sum.max(0.0) } else { sum }).collect();
    }
    units
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mass: f64 = logits.iter().map(|logit| (logit - top).exp()).sum();
    logits.iter().map(|logit| (logit - top).exp() / mass).collect()
}

fn difference(got: &[f32], expected: &[f64]) -> f64 {
    assert_eq!(got.len(), expected.len());
    got.iter().zip(expected).map(|(&got, want)| (f64::from(got) - want).abs()).fold(0.0, f64::max)
}

/// The values of a feature's columns, in order.
fn answer(model: &Model, x: &[f32], feature: usize) -> Vec<f32> {
    let groups = model.problem().group_of_column().iter();
    groups.zip(x).filter(|(group, _)| **group as usize == feature).map(|(_, &value)| value).collect()
}

/// The best action by the dense pass, and by how much; blocked are those seen.
fn greedy(logits: &[f64], seen: &[bool]) -> (Step, f64) {
    let stop = seen.len();
    let open: Vec<usize> = (0..=stop).filter(|&i| i == stop || !seen[i]).collect();
    let best = *open.iter().max_by(|&&a, &&b| logits[a].total_cmp(&logits[b])).expect("stop is open");
    let second = open.iter().filter(|&&i| i != best).map(|&i| logits[i]).fold(f64::NEG_INFINITY, f64::max);
    (if best == stop { Step::Stop } else { Step::Acquire(best) }, logits[best] - second)
}

#[test]
fn agrees_with_a_dense_forward_pass() {
    let eleven: Vec<u32> = (0..11).collect();
    // Features of one to four columns, which do not lie together; widths around all block sizes.
    let groups = [2, 0, 1, 0, 2, 4, 3, 2, 2, 4, 5, 5];
    let many: Vec<u32> = (0..90).collect();
    let (mut stops, mut decisions, mut told_apart, mut worst) = (0, 0, 0, 0f64);
    for (seed, groups, classes, hidden, horizon) in [
        (1, &eleven[..], 2, [[128, 128], [128, 128]], None),
        (2, &groups[..], 3, [[7, 5], [70, 33]], None),
        (3, &groups[..], 3, [[1, 64], [3, 17]], Some(3)),
        (4, &many[..], 10, [[100, 20], [81, 65]], None),
    ] {
        let model = random(groups, classes, hidden, horizon, seed);
        let (policy, predictor) = (model.policy(), model.predictor());
        let features = model.problem().features().len();
        let mut session = model.session();
        let mut draw = numbers(seed + 100);
        for instance in 0..40 {
            session.reset();
            let x: Vec<f32> = groups.iter().map(|_| (4.0 * draw()) as f32).collect();
            let mut seen = vec![false; features];
            let mut cost = 0.0;
            for step in 0.. {
                let belief = softmax(&dense(&predictor, &model, &x, &seen));
                worst = worst.max(difference(session.predict(), &belief));
                let (mut expected, margin) = greedy(&dense(&policy, &model, &x, &seen), &seen);
                if step >= model.steps() {
                    expected = Step::Stop;
                }
                if margin > 1e-4 || step >= model.steps() {
                    assert_eq!(session.next(), expected, "{seed}, instance {instance}, step {step}");
                }
                decisions += 1;
                assert_eq!(session.next(), session.next());
                // Every other instance goes its own way, and stops when nothing is left.
                let feature = match session.next() {
                    Step::Acquire(feature) if instance % 2 == 0 => feature,
                    Step::Stop if instance % 2 == 0 => {
                        stops += usize::from(step < model.steps());
                        break;
                    }
                    _ => match (0..features).map(|i| (i * 7 + instance) % features).find(|&i| !seen[i]) {
                        Some(feature) => feature,
                        None => break,
                    },
                };
                session.observe(feature, answer(&model, &x, feature)).expect("taken");
                seen[feature] = true;
                cost += model.problem().features()[feature].cost;
                assert_eq!((session.spent(), session.acquisitions()), (cost, step + 1));
            }
            // The comparison can fail: one feature more or less shows, unless it is clear already.
            let last = seen.iter().rposition(|&seen| seen).unwrap_or(0);
            seen[last] = !seen[last];
            let wrong = softmax(&dense(&predictor, &model, &x, &seen));
            told_apart += usize::from(difference(session.predict(), &wrong) > 1e-3);
        }
    }
    assert!(told_apart > 120, "{told_apart} of 160");
    assert!(worst < 1e-5, "{worst:.1e}");
    assert!(stops > 10 && decisions > 1000, "the policies are too dull: {stops}, {decisions}");
}

/// Asks a session through; what it acquired, in order.
fn path(session: &mut Session<'_>) -> Vec<usize> {
    let mut path = Vec::new();
    while let Step::Acquire(feature) = session.next() {
        session.observe(feature, 0.5).expect("taken");
        path.push(feature);
    }
    path
}

#[test]
fn takes_the_highest_logit_and_the_lowest_index_of_equals() {
    assert_eq!(path(&mut constant(&[1.0, 3.0, 2.0, 0.0], &[1.0; 3], None).session()), [1, 2, 0]);
    assert_eq!(path(&mut constant(&[1.0, 3.0, 2.0, 2.5], &[1.0; 3], None).session()), [1]);
    assert_eq!(path(&mut constant(&[1.0, 3.0, 2.0, 9.0], &[1.0; 3], None).session()), [0; 0]);
    // Stopping has the highest index: a feature as good is acquired.
    assert_eq!(path(&mut constant(&[2.0, 2.0, 2.0, 2.0], &[1.0; 3], None).session()), [0, 1, 2]);
    // A logit below every large negative number is still better than a lower one.
    assert_eq!(path(&mut constant(&[-3e38, -3.1e38, -3e38, -3.2e38], &[1.0; 3], None).session()), [0, 2, 1]);
    assert_eq!(path(&mut constant(&[4.0, 3.0, 2.0, 0.0], &[1.0; 3], Some(2)).session()), [0, 1], "horizon");
}

#[test]
fn known_values_are_free_and_unavailable_ones_not_asked_for() {
    let model = constant(&[4.0, 3.0, 2.0, 1.0, 0.0], &[1.0, 2.0, 4.0, 8.0], Some(2));
    let mut session = model.session();
    session.known(0, 7.0).expect("taken");
    session.known(3, 7.0).expect("taken");
    session.unavailable(1).expect("taken");
    session.unavailable(1).expect("saying it twice changes nothing");
    assert_eq!(session.next(), Step::Acquire(2));
    assert_eq!((session.spent(), session.acquisitions()), (0.0, 0));
    assert_eq!(path(&mut session), [2]);
    assert_eq!((session.spent(), session.acquisitions()), (4.0, 1));
    // It turns up after all; it was not asked for, and costs what it costs.
    session.observe(1, 0.0).expect("taken");
    assert_eq!((session.spent(), session.acquisitions()), (6.0, 2));
    let trace: Vec<_> = session.trace().map(|event| (event.feature, event.answer, event.cost)).collect();
    assert_eq!(
        trace,
        [
            (0, Answer::Known, 0.0),
            (3, Answer::Known, 0.0),
            (1, Answer::Unavailable, 0.0),
            (2, Answer::Asked, 4.0),
            (1, Answer::Offered, 2.0),
        ]
    );
    let mut session = model.session();
    (0..4).for_each(|feature| session.unavailable(feature).expect("taken"));
    assert_eq!(session.next(), Step::Stop, "nothing can be had");
}

#[test]
fn a_budget_blocks_what_no_longer_fits() {
    let model = constant(&[4.0, 3.0, 2.0, 1.0, 0.0], &[3.0, 2.0, 1.0, 0.0], None);
    let with = |budget| model.session().with_budget(budget).expect("valid");
    assert_eq!(path(&mut with(6.0)), [0, 1, 2, 3]);
    assert_eq!(path(&mut with(5.9)), [0, 1, 3]);
    assert_eq!(path(&mut with(4.0)), [0, 2, 3]);
    assert_eq!(path(&mut with(0.0)), [3], "what is free always fits");
    assert_eq!(path(&mut with(f64::INFINITY)), [0, 1, 2, 3]);
    // Known values leave the budget as it is, observed ones may exceed it.
    let mut session = with(3.0);
    session.known(1, 0.0).expect("taken");
    assert_eq!(path(&mut session), [0, 3]);
    session.observe(2, 0.0).expect("taken");
    assert_eq!((session.spent(), session.budget()), (4.0, 3.0));
    session.reset();
    assert_eq!((session.spent(), session.budget()), (0.0, 3.0), "the budget is for each instance");
    assert_eq!(path(&mut session), [0, 3]);
    // 0.1 + 0.1 + 0.1 > 0.3 in floating point.
    let tenths = constant(&[1.0, 1.0, 1.0, 1.0, 0.0], &[0.1; 4], None);
    assert_eq!(path(&mut tenths.session().with_budget(0.3).expect("valid")), [0, 1, 2]);
    for bad in [-1.0, f64::NAN] {
        let error = model.session().with_budget(bad).expect_err("should have been refused");
        assert!(matches!(error, Error::Config(_)) && error.to_string().contains("budget"), "{error}");
    }
}

#[test]
fn bad_answers_are_refused_and_change_nothing() {
    let model = random(&[0, 1, 1, 0, 1, 2], 2, [[5, 5], [5, 5]], None, 9);
    let mut session = model.session();
    session.observe(2, 1.0).expect("taken");
    let before = format!("{:?}", (session.next(), session.predict(), session.spent(), session.trace().len()));
    let mut refused = |fragment: &str, act: &dyn Fn(&mut Session<'_>) -> Result<()>| {
        let error = act(&mut session).expect_err(fragment);
        assert!(matches!(error, Error::Data(_)) && error.to_string().contains(fragment), "{error}");
        let after = (session.next(), session.predict(), session.spent(), session.trace().len());
        assert_eq!(format!("{after:?}"), before, "{fragment}");
    };
    refused("no feature 3: the model has 3", &|session| session.observe(3, 1.0));
    refused("no feature", &|session| session.unavailable(usize::MAX));
    refused("feature 2 (`feature \"2\" ü`) is known already", &|session| session.observe(2, 1.0));
    refused("known already", &|session| session.known(2, 1.0));
    refused("known already", &|session| session.unavailable(2));
    refused("feature 1 (`feature \"1\" ü`) has 3 value(s), but 1 were given", &|session| {
        session.observe(1, 1.0)
    });
    refused("has 2 value(s), but 0", &|session| session.observe(0, &[] as &[f32]));
    refused("has 2 value(s), but 3", &|session| session.known(0, [1.0, 2.0, 3.0]));
    refused("column 3 is NaN, not a finite number", &|session| session.observe(0, [1.0, f32::NAN]));
    refused("column 1 is inf", &|session| session.observe(1, vec![f32::INFINITY, 0.0, 0.0]));
    session.observe(0, [1.0, 2.0]).expect("one that is right is still taken");
}

#[test]
fn an_answer_that_the_networks_cannot_bear_is_taken_back() {
    let layer = |weight: f64| Tensors { weight: vec![weight; 2], bias: vec![0.0] };
    let last = |bias: f64| Tensors { weight: vec![0.0, 1e15], bias: vec![bias, 0.0] };
    let narrow = Tensors { weight: vec![1.0], bias: vec![0.0] };
    let model = Model::new(
        Problem::ungrouped(&[1.0], 2).expect("valid"),
        Normalization { mean: vec![0.0], scale: vec![1e-10] },
        Config { policy_hidden: [1, 1], predictor_hidden: [1, 1], ..Config::default() },
        vec![layer(0.0), narrow.clone(), last(1.0)],
        vec![layer(1.0), narrow, last(0.5)],
        Vec::new(),
    )
    .expect("fits");
    let mut session = model.session();
    let before = session.predict().to_vec();
    for (value, fragment) in [(1e38, "too large to be normalized"), (1e18, "the networks' outputs overflow")]
    {
        let error = session.observe(0, value).expect_err(fragment);
        assert!(matches!(error, Error::Data(_)) && error.to_string().contains(fragment), "{error}");
        assert_eq!(session.next(), Step::Acquire(0), "{fragment}");
        assert_eq!((session.predict(), session.spent(), session.trace().len()), (&before[..], 0.0, 0));
    }
    session.observe(0, 1.0).expect("taken");
    assert_eq!(session.predict(), [0.0, 1.0]);
}

#[test]
fn the_trace_tells_the_whole_story() {
    let model = random(&[0, 1, 1, 2, 2, 2, 3], 3, [[16, 16], [16, 16]], None, 5);
    let mut session = model.session();
    let prior = session.predict().to_vec();
    assert_eq!(session.prior(), prior);
    assert_eq!(session.trace().len(), 0);
    let Some(question) = session.question() else { panic!("a random model that asks something was wanted") };
    let asked = question.feature;
    assert_eq!(Step::Acquire(asked), session.next());
    let feature = &model.problem().features()[asked];
    assert_eq!((question.name, question.cost), (feature.name.as_str(), feature.cost));
    assert_eq!((question.values, question.probabilities), ([1, 2, 3, 1][asked], &prior[..]));
    let values = vec![0.25; question.values];
    session.observe(question.feature, &values).expect("taken");
    let first = session.predict().to_vec();
    let (blocked, other) = ((asked + 1) % 4, (asked + 2) % 4);
    session.unavailable(blocked).expect("taken");
    let x: Vec<f32> = (0..7).map(|column| column as f32).collect();
    session.known(other, answer(&model, &x, other)).expect("taken");

    let trace: Vec<_> = session.trace().collect();
    assert_eq!(trace.len(), 3);
    assert_eq!((trace[0].feature, trace[0].answer, trace[0].values), (asked, Answer::Asked, &values[..]));
    assert_eq!(trace[0].cost, model.problem().features()[asked].cost);
    assert_eq!(trace[0].probabilities, first);
    assert_eq!((trace[1].feature, trace[1].answer, trace[1].values), (blocked, Answer::Unavailable, &[][..]));
    assert_eq!(trace[1].probabilities, first, "nothing was learned");
    assert_eq!((trace[2].feature, trace[2].answer), (other, Answer::Known));
    assert_eq!((trace[2].values, trace[2].cost), (&answer(&model, &x, other)[..], 0.0));
    assert_eq!(trace[2].probabilities, session.predict());
    assert_eq!(session.trace().next_back(), session.trace().last());
    assert_eq!(session.prior(), prior);
    assert_eq!(session.model(), &model);
}

#[test]
fn the_label_is_the_most_probable_class() {
    let model = constant(&[0.0, 1.0], &[1.0], None);
    let session = model.session();
    let expected = softmax(&[1.0, 2.0, 2.0]);
    assert!(difference(session.predict(), &expected) < 1e-6);
    assert_eq!((session.best(), session.label()), (1, "1"), "the lowest index of equals");
}

#[test]
fn after_a_reset_nothing_of_the_last_instance_is_left() {
    let model = random(&[0, 1, 1, 2, 3, 4], 4, [[12, 9], [20, 20]], None, 11);
    let x = [0.5, -1.0, 2.0, 0.0, 3.0, -2.0];
    let run = |session: &mut Session<'_>| {
        let mut story = format!("{:?} {:?}", session.prior(), session.next());
        for feature in [3, 1, 4] {
            session.observe(feature, answer(&model, &x, feature)).expect("taken");
            story += &format!("{:?}", session.next());
        }
        session.unavailable(0).expect("taken");
        story + &format!("{:?} {:?}", session.next(), session.trace().collect::<Vec<_>>())
    };
    let fresh = run(&mut model.session());
    let mut session = model.session();
    session.observe(1, [1e6, -1e6]).expect("taken");
    session.unavailable(4).expect("taken");
    session.known(0, 3.0).expect("taken");
    for _ in 0..3 {
        session.reset();
        assert_eq!((session.spent(), session.acquisitions(), session.trace().len()), (0.0, 0, 0));
        assert_eq!(run(&mut session), fresh);
    }
}

#[test]
fn a_session_lives_in_another_thread_as_well() {
    fn check<T: Send + Sync + Clone>(value: T) -> T {
        value
    }
    let model = constant(&[1.0, 0.0], &[1.0], None);
    let mut session = check(model.session());
    std::thread::scope(|scope| {
        assert_eq!(scope.spawn(|| path(&mut session)).join().expect("no panic"), [0]);
    });
}

/// What does not fit together is refused before there is a model.
#[test]
fn contradicting_parts_are_refused() {
    type Parts = (Problem, Normalization, Config, Vec<Tensors>, Vec<Tensors>, Vec<Epoch>);
    let refused = |fragment: &str, spoil: &dyn Fn(&mut Parts)| {
        let model = random(&[0, 1, 1], 2, [[3, 4], [5, 6]], None, 1);
        let mut parts = (
            model.problem().clone(),
            model.normalization().clone(),
            model.config().clone(),
            model.policy(),
            model.predictor(),
            model.history().to_vec(),
        );
        spoil(&mut parts);
        let (problem, normalization, config, policy, predictor, history) = parts;
        let error =
            Model::new(problem, normalization, config, policy, predictor, history).expect_err(fragment);
        assert!(matches!(error, Error::Config(_)) && error.to_string().contains(fragment), "{error}");
    };
    refused("the policy has 2 layers", &|parts| parts.3.truncate(2));
    refused("layer 0 of the policy has 14 weights and 3 biases, but it leads from 5 to 3", &|parts| {
        parts.3[0].weight.pop();
    });
    refused("layer 1 of the policy has 12 weights and 4 biases, but it leads from 3 to 5", &|parts| {
        parts.2.policy_hidden = [3, 5]
    });
    refused("layer 0 of the policy", &|parts| parts.2.policy_hidden = [usize::MAX, 4]);
    refused("layer 2 of the predictor has 12 weights and 1 biases", &|parts| parts.4[2].bias.truncate(1));
    refused("layer 2 of the predictor", &|parts| {
        parts.0 =
            Problem::new(parts.0.features().to_vec(), vec![0, 1, 1], ["a", "b", "c"].map(Into::into).into())
                .expect("valid");
    });
    refused("element 7 of `predictor.1.weight` is NaN", &|parts| parts.4[1].weight[7] = f64::NAN);
    refused("element 0 of `policy.2.bias` is 1e39", &|parts| parts.3[2].bias[0] = 1e39);
    refused("outputs overflow", &|parts| {
        parts.4[0].bias.fill(1.0);
        parts.4[1].weight.fill(1e30);
        parts.4[2].weight.fill(1e30);
    });
    refused("2 means and 3 scales for 3 columns", &|parts| parts.1.mean.truncate(2));
    refused("column 1 has mean", &|parts| parts.1.scale[1] = 0.0);
    refused("column 2 has mean inf", &|parts| parts.1.mean[2] = f32::INFINITY);
    refused("alpha is -1", &|parts| parts.2.alpha = -1.0);
    refused("entry 1 of the training history cannot be stored", &|parts| parts.5[1].train.entropy = f64::NAN);
}

#[test]
fn a_model_comes_back_from_its_file_with_equal_bits() {
    let folder = TempDir::new("model");
    let file = folder.0.join("model.safetensors");
    let model = random(&[2, 0, 1, 0, 2, 3], 3, [[31, 18], [20, 7]], Some(3), 4);
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!(loaded.version(), env!("CARGO_PKG_VERSION"));
    assert_eq!((loaded.steps(), loaded.problem().group_of_column()), (3, &[2, 0, 1, 0, 2, 3][..]));
    assert_eq!(loaded.history(), history());
    let bits = |tensors: Vec<Tensors>| -> Vec<u64> {
        tensors.iter().flat_map(|t| t.weight.iter().chain(&t.bias)).map(|value| value.to_bits()).collect()
    };
    assert_eq!(bits(loaded.policy()), bits(model.policy()));
    assert_eq!(bits(loaded.predictor()), bits(model.predictor()));
    let probabilities = |model: &Model| {
        let mut session = model.session();
        session.observe(2, [0.3, -0.7]).expect("taken");
        (session.next(), session.predict().iter().map(|p| p.to_bits()).collect::<Vec<_>>())
    };
    assert_eq!(probabilities(&loaded), probabilities(&model));
    // Over an older file, and again.
    loaded.save(&file).expect("saves");
    assert_eq!(Model::load(&file).expect("loads"), model);
    assert_eq!(folder.files(), ["model.safetensors"]);
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_behind() {
    let folder = TempDir::new("model-unwritable");
    let model = constant(&[1.0, 0.0], &[1.0], None);
    let missing = folder.0.join("no such folder").join("model.safetensors");
    let taken = folder.0.join("taken");
    std::fs::create_dir_all(taken.join("inside")).expect("a folder");
    for path in [&missing, &taken] {
        let error = model.save(path).expect_err("should have failed");
        assert!(
            matches!(error, Error::Io { .. }) && error.to_string().contains(&*path.to_string_lossy()),
            "{error}"
        );
        let error = Model::load(path).expect_err("should have failed");
        assert!(matches!(error, Error::Io { .. }), "{error}");
    }
    assert_eq!(folder.files(), ["taken"]);
}

type Tensor = (Dtype, Vec<usize>, Vec<u8>);

/// A model's file to spoil.
#[derive(Clone)]
struct File {
    tensors: BTreeMap<String, Tensor>,
    metadata: HashMap<String, String>,
}

impl File {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("reads");
        let (_, header) = SafeTensors::read_metadata(&bytes).expect("a safetensors file");
        let file = SafeTensors::deserialize(&bytes).expect("a safetensors file");
        let tensors = file.iter().map(|(name, view)| {
            (name.to_string(), (view.dtype(), view.shape().to_vec(), view.data().to_vec()))
        });
        Self { tensors: tensors.collect(), metadata: header.metadata().clone().unwrap_or_default() }
    }

    fn write(&self, path: &Path) {
        let views = self.tensors.iter().map(|(name, (dtype, shape, bytes))| {
            (name, TensorView::new(*dtype, shape.clone(), bytes).expect("sizes fit"))
        });
        let bytes = safetensors::serialize(views, Some(self.metadata.clone())).expect("serializes");
        std::fs::write(path, bytes).expect("writes");
    }

    /// Changes the JSON text.
    fn describe(&mut self, change: impl Fn(&mut serde_json::Value)) {
        let text = self.metadata.get_mut("model").expect("there");
        let mut value = serde_json::from_str(text).expect("JSON");
        change(&mut value);
        *text = value.to_string();
    }
}

fn refused(path: &Path, fragment: &str) {
    let error = Model::load(path).expect_err(fragment);
    assert!(matches!(error, Error::File { .. }), "{fragment}: {error:?}");
    let text = error.to_string();
    assert!(text.contains(fragment) && text.contains(&*path.to_string_lossy()), "`{fragment}`: {text}");
}

#[test]
fn spoiled_files_are_refused_with_what_is_wrong() {
    let folder = TempDir::new("model-spoiled");
    let path = folder.0.join("model.safetensors");
    random(&[0, 1, 1, 2], 2, [[3, 4], [5, 6]], None, 8).save(&path).expect("saves");
    let good = File::read(&path);
    let spoil = |fragment: &str, change: &dyn Fn(&mut File)| {
        let mut file = good.clone();
        change(&mut file);
        file.write(&path);
        refused(&path, fragment);
    };

    spoil("not a model of querent", &|file| file.metadata.clear());
    spoil("not a model of querent", &|file| drop(file.metadata.insert("format".into(), "pt".into())));
    spoil("it says it is a `querent model 2`, but this version reads a `querent model 1`", &|file| {
        file.metadata.insert("format".into(), "querent model 2".into());
    });
    spoil("`querent checkpoint 1`", &|file| {
        file.metadata.insert("format".into(), "querent checkpoint 1".into());
    });
    spoil("no metadata `model`", &|file| drop(file.metadata.remove("model")));
    spoil("no metadata `querent`", &|file| drop(file.metadata.remove("querent")));

    spoil("tensor `policy.1.bias` is missing", &|file| drop(file.tensors.remove("policy.1.bias")));
    spoil("unknown tensor `policy.3.bias`", &|file| {
        let copy = file.tensors["policy.1.bias"].clone();
        file.tensors.insert("policy.3.bias".into(), copy);
    });
    let tensor = |file: &mut File, name: &str, change: &dyn Fn(&mut Tensor)| {
        change(file.tensors.get_mut(name).expect("there"));
    };
    spoil("tensor `policy.0.weight` has shape [7, 3], expected [3, 7]", &|file| {
        tensor(file, "policy.0.weight", &|tensor| tensor.1 = vec![7, 3]);
    });
    spoil("tensor `predictor.2.bias` has shape [1], expected [2]", &|file| {
        tensor(file, "predictor.2.bias", &|tensor| (tensor.1, tensor.2) = (vec![1], tensor.2[..4].to_vec()));
    });
    spoil("tensor `policy.2.bias` has type I32", &|file| {
        tensor(file, "policy.2.bias", &|tensor| tensor.0 = Dtype::I32);
    });
    for value in [f32::NAN, f32::INFINITY] {
        spoil("element 3 of `predictor.1.weight` is", &|file| {
            tensor(file, "predictor.1.weight", &|tensor| {
                tensor.2[12..16].copy_from_slice(&value.to_le_bytes());
            });
        });
    }

    for text in ["", "{", "[]", "null", "{\"problem\":", "\u{0}"] {
        spoil("`model` cannot be read", &|file| drop(file.metadata.insert("model".into(), text.into())));
    }
    use serde_json::json;
    let describe = |fragment: &str, pointer: &str, value: serde_json::Value| {
        spoil(fragment, &|file| {
            file.describe(|text| {
                *text.pointer_mut(pointer).unwrap_or_else(|| panic!("no {pointer}")) = value.clone();
            });
        });
    };
    describe("column 0 belongs to features 0 and 1", "/problem/features/1/columns", json!([0, 2]));
    describe("feature 0 (`feature \"0\" ü`) has column 4", "/problem/features/0/columns", json!([4]));
    describe("has column 4294967295", "/problem/features/2/columns", json!([u32::MAX]));
    describe("`model` cannot be read", "/problem/features/2/columns", json!([-1]));
    describe("feature 2 (`feature \"2\" ü`) has no column", "/problem/features/2/columns", json!([]));
    describe("its cost is -1", "/problem/features/0/cost", json!(-1));
    describe("there is no feature", "/problem/features", json!([]));
    describe("at least two", "/problem/classes", json!(["one"]));
    describe("1 class weights for 2 classes", "/problem/class_weights", json!([1]));
    describe("3 means and 4 scales for 4 columns", "/normalization/mean", json!([0, 0, 0]));
    describe("column 1 has mean", "/normalization/scale", json!([1, 0, 1, 1]));
    describe("number out of range", "/normalization/mean", json!([1e300, 0, 0, 0]));
    describe("the horizon is 0, but there are 3 features", "/horizon", json!(0));
    describe("the horizon is 4, but there are 3 features", "/horizon", json!(4));
    describe("`model` cannot be read", "/horizon", json!(1.5));
    describe("alpha is -1", "/config/alpha", json!(-1));
    describe("`model` cannot be read: unknown field `x`", "/config", json!({"x": 1}));
    describe(
        "tensor `policy.0.weight` has shape [3, 7], expected [8, 7]",
        "/config/policy_hidden",
        json!([8, 4]),
    );
    describe("expected [18446744073709551615, 7]", "/config/policy_hidden", json!([u64::MAX, 4]));
    describe("`model` cannot be read", "/history/1/seconds", json!(null));
    spoil("`model` cannot be read: missing field `history`", &|file| {
        file.describe(|text| drop(text.as_object_mut().expect("an object").remove("history")));
    });

    good.write(&path);
    Model::load(&path).expect("the file that was spoiled is a good one");
}

#[test]
fn truncated_and_foreign_files_are_refused() {
    let folder = TempDir::new("model-foreign");
    let path = folder.0.join("model.safetensors");
    let model = random(&[0, 1, 1, 2], 2, [[3, 4], [5, 6]], None, 8);
    model.save(&path).expect("saves");
    let bytes = std::fs::read(&path).expect("reads");
    for end in (0..bytes.len()).step_by(7).chain([bytes.len() - 1]) {
        std::fs::write(&path, &bytes[..end]).expect("writes");
        refused(&path, "not a model of querent, or cut off");
    }
    std::fs::write(&path, [&bytes[..], b"more"].concat()).expect("writes");
    refused(&path, "not a model of querent, or cut off");
    for foreign in [&b"name,cost\nx1,1\n"[..], b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", &[0xff; 64]] {
        std::fs::write(&path, foreign).expect("writes");
        refused(&path, "not a model of querent, or cut off");
    }
    let golden = std::fs::read_dir(common::assets().join("golden")).expect("lists").flatten();
    let golden =
        golden.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|e| e == "safetensors"));
    refused(&golden.expect("a golden"), "not a model of querent");

    // A bit flipped in every third byte of the header: an error or a model, never a panic.
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes")) as usize;
    let mut survivors = 0;
    for at in (0..header).step_by(3) {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        std::fs::write(&path, &flipped).expect("writes");
        match Model::load(&path) {
            Ok(model) => {
                survivors += 1;
                model.session().observe(0, 0.5).expect("a model is always usable");
            }
            Err(Error::File { .. }) => {}
            Err(other) => panic!("byte {at}: {other:?}"),
        }
    }
    assert!(survivors < header / 6, "{survivors} of {} were not refused", header / 3);
}
