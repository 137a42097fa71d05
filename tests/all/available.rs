//! What cannot be had: how it is drawn in training, and what a policy that was told makes of it when it asks.

use crate::common::engines;
use crate::rig::{Random, Rig};
use querent::data::{Dataset, Split};
use querent::engine::kernels as k;
use querent::engine::kernels::words::{NEVER, UNAVAILABLE, clock, settings};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nmppg::{Config, Trainer};
use querent::policy::Stopping;
use querent::{Engine, Model, Problem, Session, Step};

/// The kernel alone: a share of the instances, any share of the features, the same for all rollouts of an instance, and
/// the columns that tell it.
#[test]
fn a_part_of_some_instances_cannot_be_had() {
    let (batch, copies, features, column) = (64u32, 2u32, 10u32, 3u32);
    let pitch = (column + features).div_ceil(4) * 4;
    let mut b = PlanBuilder::new(1);
    let [clock_id, acquired_at] = [("clock", clock::LEN), ("acquired_at", (batch * features) as usize)]
        .map(|(name, len)| b.buffer(name, Elem::U32, len, Scope::Shared));
    let [x, settings_id] = [("x", (batch * pitch) as usize), ("settings", settings::LEN)]
        .map(|(name, len)| b.buffer(name, Elem::F32, len, Scope::Shared));
    for (name, told) in [("told", 1), ("untold", 0)] {
        let call = k::Available { rows: batch, features, told, column, pitch, first: 0 };
        b.section(name, |b| b.call(call, &[clock_id, settings_id, acquired_at, x]));
    }
    let mut rig = Rig::new(b);
    let restricting = |share: f64| {
        let mut values = vec![0.0; settings::LEN];
        values[settings::RESTRICTED] = share;
        values
    };
    rig.set("settings", &restricting(0.25));
    let mut shares = Vec::new();
    let mut restricted = 0;
    for step in 0..100 {
        let mut now = [0; clock::LEN];
        (now[clock::STEP], now[clock::COPIES], now[clock::SEED_LO]) = (step, copies, 7);
        rig.set_words("clock", &now).run("told");
        let (marks, x) = (rig.words("acquired_at"), rig.get("x"));
        for row in 0..batch {
            let of = |row: u32| &marks[(row * features) as usize..][..features as usize];
            assert!(of(row).iter().all(|&mark| mark == NEVER || mark == UNAVAILABLE));
            assert_eq!(of(row), of(row - row % copies), "rollouts of one instance");
            let told = &x[(row * pitch + column) as usize..][..features as usize];
            assert!(of(row).iter().zip(told).all(|(&mark, &told)| told == f64::from(mark == UNAVAILABLE)));
            let closed = of(row).iter().filter(|&&mark| mark == UNAVAILABLE).count();
            if closed > 0 && row % copies == 0 {
                restricted += 1;
                shares.push(closed as f64 / f64::from(features));
            }
        }
    }
    // A quarter of 3,200 instances; of these one in eleven has a rate so low that all ten can be had after all.
    let share = f64::from(restricted) / (100.0 * f64::from(batch / copies));
    assert!((share - 0.25 * 10.0 / 11.0).abs() < 0.03, "{share}");
    // Any number of ten, each as likely as the next.
    for tenths in 1..=10 {
        let count = shares.iter().filter(|&&share| (share * 10.0).round() as u32 == tenths).count();
        let expected = shares.len() as f64 / 10.0;
        assert!((count as f64 - expected).abs() < 5.0 * expected.sqrt(), "{tenths}: {count} of {expected}");
    }
    rig.set("settings", &restricting(0.0)).run("told");
    assert!(rig.words("acquired_at").iter().all(|&mark| mark == NEVER));
    assert!(rig.get("x").iter().all(|&told| told == 0.0));
    rig.set("settings", &restricting(1.0)).run("untold");
    assert!(rig.words("acquired_at").contains(&UNAVAILABLE));
    assert!(rig.get("x").iter().all(|&told| told == 0.0), "nobody reads it");
}

/// The label, one in four, is a sign that three features show, each less clearly than the one before it; a fourth shows
/// nothing.
fn table() -> Dataset {
    let mut random = Random::new(5);
    let mut split = |rows: usize| {
        let noise: Vec<f32> = random.normals(5 * rows).into_iter().map(|value| value as f32).collect();
        let y: Vec<u32> = noise.chunks_exact(5).map(|row| u32::from(row[4] > 0.6745)).collect();
        let signs = y.iter().map(|&y| if y == 1 { 1.0 } else { -1.0 });
        let x = noise
            .chunks_exact(5)
            .zip(signs)
            .flat_map(|(row, sign)| [sign + 0.3 * row[0], sign + 0.6 * row[1], sign + 0.9 * row[2], row[3]])
            .collect();
        Split { x, y }
    };
    let problem = Problem::ungrouped(&[1.5, 1.0, 1.0, 1.0], 2).expect("valid");
    let [train, validation, test] = [3_000, 500, 300].map(&mut split);
    Dataset::new(problem, train, validation, test).expect("valid")
}

fn trained(engine: &Engine, data: &Dataset) -> Model {
    let config = Config::new(0.05).with(|c| {
        c.unavailable = 0.25;
        c.networks.policy = [32, 32];
        c.networks.predictor = [32, 32];
        c.schedule.temperatures = vec![0.8, 0.2];
        c.schedule.stage_epochs = 6;
        c.schedule.epoch_steps = 100;
        c.schedule.ema = 0.02;
    });
    let mut trainer = Trainer::new(engine, data, config).unwrap_or_else(|error| panic!("{error}"));
    while trainer.epoch_blocking().unwrap_or_else(|error| panic!("{error}")).is_some() {}
    trainer.finish_blocking().unwrap_or_else(|error| panic!("{error}"))
}

/// The next best is asked for as long as one is worth its price, on both engines.
#[test]
fn the_next_best_is_asked_for() {
    let data = table();
    for (name, engine) in engines() {
        let model = trained(&engine, &data);
        let mut session = model.session();
        let mut asked = Vec::new();
        while let Step::Acquire(feature) = session.next() {
            asked.push(feature);
            session.unavailable(feature).expect("it is open");
        }
        assert_eq!(asked, [0, 1, 2], "{name}: the clearest first, and not what shows nothing");
        // Nothing was seen, so all there is to say is how frequent the classes are.
        let labels = &data.splits()[0].y;
        let frequent = labels.iter().sum::<u32>() as f32 / labels.len() as f32;
        assert!((session.predict()[1] - frequent).abs() < 0.04, "{name}: {:?}", session.predict());
        // Where everything can be had, one clear answer is enough.
        let mut session = model.session();
        session.observe(0, 1.2).expect("fits");
        assert_eq!((session.next(), session.best()), (Step::Stop, 1), "{name}");
    }
}

/// How much each thing is wanted, stopping last.
fn wanted(session: &Session) -> Vec<(Option<usize>, f32)> {
    let why = session.why();
    let Stopping::Share(stop) = why.stopping else { panic!("stopping has a weight of its own") };
    let features = why.wanted.iter().map(|w| (Some(w.feature), w.share.expect("a weight")));
    features.chain([(None, stop)]).collect()
}

/// What turns up after all is as if it had never been missing; what cannot be paid is as if it could not be had.
#[test]
fn what_was_missing_may_turn_up() {
    let data = table();
    let model = trained(&Engine::cpu(), &data);
    let alike = |a: &Session, b: &Session| {
        let (a, b) = (wanted(a), wanted(b));
        a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a.0 == b.0 && (a.1 - b.1).abs() < 1e-4)
    };
    let mut missed = model.session();
    missed.unavailable(0).expect("it is open");
    let without = missed.clone();
    missed.observe(0, 0.4).expect("it turned up");
    let mut seen = model.session();
    seen.observe(0, 0.4).expect("fits");
    assert!(alike(&missed, &seen), "{:?} and {:?}", wanted(&missed), wanted(&seen));
    assert_eq!(missed.predict(), seen.predict());
    missed.reset();
    assert_eq!(missed.next(), Step::Acquire(0), "a new case has everything again");
    // The first costs 1.5.
    let mut poor = model.session().with_budget(1.2).expect("a budget");
    assert!(alike(&poor, &without), "{:?} and {:?}", wanted(&poor), wanted(&without));
    let rich = poor.clone().with_budget(f64::INFINITY).expect("a budget");
    assert!(alike(&rich, &model.session()), "a larger budget can have it again");
    poor.observe(1, 0.1).expect("fits");
    assert_eq!(poor.next(), Step::Stop);
    poor.reset();
    assert!(alike(&poor, &without), "the next case has the same budget");
}
