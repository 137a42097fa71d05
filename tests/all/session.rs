//! A model asked through: against a dense forward pass written here, and against rules that a hand-made
//! model makes plain.

use crate::models::{constant, numbers, random};
use querent::data::Normalization;
use querent::nmppg::Config;
use querent::nn::Tensors;
use querent::{Answer, Error, Model, Problem, Result, Session, Step};

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
        let (policy, predictor) = (model.network("policy"), model.network("predictor"));
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
    let model = querent::nmppg::model(
        Problem::ungrouped(&[1.0], 2).expect("valid"),
        Normalization { mean: vec![0.0], scale: vec![1e-10] },
        Config::default().with(|c| {
            c.networks.policy = [1, 1];
            c.networks.predictor = [1, 1];
            c.unavailable = 0.0;
        }),
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

/// What a session weighs is in the order of the policy, and adds up to one.
#[test]
fn why_has_the_runner_up_and_the_stop() {
    use querent::policy::Stopping;
    let model = constant(&[1.0, 3.0, 2.0, 1.5], &[1.0, 1.0, 5.0], None);
    let mut session = model.session();
    let why = session.why();
    assert_eq!(why.wanted.iter().map(|wanted| wanted.feature).collect::<Vec<_>>(), [1, 2, 0]);
    let shares: Vec<f32> = why.wanted.iter().filter_map(|wanted| wanted.share).collect();
    let Stopping::Share(stop) = why.stopping else { panic!("{why:?}") };
    assert!((shares.iter().sum::<f32>() + stop - 1.0).abs() < 1e-6, "{why:?}");
    assert!((shares[0] / shares[1] - 1f32.exp()).abs() < 1e-4 && !why.stops, "{why:?}");
    // It stops once only what weighs less than stopping is left.
    session.observe(1, 0.0).expect("taken");
    session.unavailable(2).expect("taken");
    let why = session.why();
    assert!(why.stops && why.wanted.len() == 1 && session.next() == Step::Stop, "{why:?}");
    // What does not fit the budget is no runner-up; with nothing left, the end is forced.
    let poor = model.session().with_budget(1.0).expect("a budget").why();
    assert_eq!(poor.wanted.iter().map(|wanted| wanted.feature).collect::<Vec<_>>(), [1, 0]);
    let none = model.session().with_budget(0.0).expect("a budget").why();
    assert_eq!((none.wanted.len(), none.stopping, none.stops), (0, Stopping::Forced, true));
}
