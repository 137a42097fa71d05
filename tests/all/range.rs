//! One model for a range of α: what it is told, that it is the same on every way through a run, and what comes out.

use crate::common::{TempDir, engines, weights};
use crate::rig::{Random, Rig};
use querent::data::{Dataset, Part, Split};
use querent::engine::kernels as k;
use querent::engine::kernels::words::{clock, settings};
use querent::engine::plan::{Elem, PlanBuilder, Scope};
use querent::nmppg::{Alpha, Config, Trainer, traces_blocking};
use querent::policy::evaluate::{Rules, episodes};
use querent::policy::tradeoff::COLUMNS;
use querent::policy::{AlphaRange, history::Phase};
use querent::{Budget, Engine, Model, Problem};

/// Four features, each worth less than the one before it: what is asked depends on what asking costs.
fn table(rows: [usize; 3]) -> Dataset {
    let mut random = Random::new(5);
    let mut split = |rows: usize| {
        let x: Vec<f32> = random.normals(4 * rows).into_iter().map(|value| value as f32).collect();
        let weighed = |row: &[f32]| row[0] + 0.6 * row[1] + 0.4 * row[2] + 0.1 * row[3];
        let y = x.chunks_exact(4).map(|row| u32::from(weighed(row) > 0.0)).collect();
        Split { x, y }
    };
    let problem = Problem::ungrouped(&[1.0; 4], 2).expect("valid");
    let [train, validation, test] = rows.map(&mut split);
    Dataset::new(problem, train, validation, test).expect("valid")
}

fn data() -> Dataset {
    table([300, 150, 100])
}

/// A run of a second.
fn short(alpha: impl Into<Alpha>) -> Config {
    Config::new(alpha).with(|c| {
        c.networks.policy = [24, 16];
        c.networks.predictor = [16, 16];
        c.batch = 64;
        c.schedule.temperatures = vec![0.8, 0.2];
        c.schedule.warm_up_epochs = 2;
        c.schedule.stage_epochs = 2;
        c.schedule.epoch_steps = 8;
        c.schedule.ema = 0.1;
        c.seed = 4;
    })
}

/// A run that learns to ask less where it costs more.
fn enough() -> Config {
    Config::new([0.002, 0.8]).with(|c| {
        c.networks.policy = [32, 32];
        c.networks.predictor = [32, 32];
        c.schedule.temperatures = vec![0.8, 0.2];
        c.schedule.stage_epochs = 4;
        c.schedule.epoch_steps = 60;
        c.schedule.ema = 0.02;
    })
}

fn train(trainer: &mut Trainer) -> Model {
    while trainer.epoch_blocking().unwrap_or_else(|error| panic!("{error}")).is_some() {}
    trainer.finish_blocking().unwrap_or_else(|error| panic!("{error}"))
}

/// The kernel alone: a stratum for each instance, the same α for its rollouts, and the host's own columns.
#[test]
fn every_instance_is_told_its_own_trade_off() {
    let (batch, copies, columns) = (24u32, 3u32, 5u32);
    let pitch = (columns + COLUMNS as u32).div_ceil(4) * 4;
    let mut b = PlanBuilder::new(1);
    let [clock_id, settings_id, x, factors] = [
        ("clock", Elem::U32, clock::LEN),
        ("settings", Elem::F32, settings::LEN),
        ("x", Elem::F32, (batch * pitch) as usize),
        ("factors", Elem::F32, 4 * batch as usize),
    ]
    .map(|(name, elem, len)| b.buffer(name, elem, len, Scope::Shared));
    let drawn = k::Condition {
        rows: batch,
        columns,
        extra: COLUMNS as u32,
        pitch,
        batch,
        stride: 4,
        word: 1,
        ..Default::default()
    };
    let evaluated = k::Condition { passes: 5, chunks: 3, ..drawn };
    for (name, call) in [("drawn", drawn), ("evaluated", evaluated)] {
        b.section(name, |b| b.call(call, &[clock_id, settings_id, x, factors]));
    }
    let mut rig = Rig::new(b);
    let scale = AlphaRange::try_from([0.01, 1.0]).expect("a range");
    let (from, to, unit, margin) = (0.25, 0.75, 0.5, 0.05);
    let mut words = vec![0.0; settings::LEN];
    words[settings::CONDITION_FROM] = from;
    words[settings::CONDITION_TO] = to;
    words[settings::CONDITION_UNIT] = unit;
    words[settings::CONDITION_MARGIN] = margin;
    words[settings::CONDITION_SPAN] = scale.span();
    rig.set("settings", &words);
    let columns_of = |x: &[f64], row: u32| x[(row * pitch + columns) as usize..][..COLUMNS].to_vec();
    let mut seen = Vec::new();
    for step in 0..40 {
        let mut now = [0; clock::LEN];
        (now[clock::STEP], now[clock::COPIES], now[clock::SEED_LO]) = (step, copies, 7);
        rig.set_words("clock", &now).run("drawn");
        let (x, factors) = (rig.get("x"), rig.get("factors"));
        for row in 0..batch {
            let factor = factors[(4 * row + 1) as usize];
            let place = unit + factor.ln() / scale.span();
            let instances = f64::from(batch / copies);
            let stratum = (place - from + margin) / (to - from + 2.0 * margin) * instances;
            assert_eq!(stratum.floor(), f64::from(row / copies), "step {step}, row {row}");
            let told: Vec<f64> = scale
                .columns(scale.from() * (place * scale.span()).exp())
                .iter()
                .map(|&c| c.into())
                .collect();
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-5);
            assert!(close(&columns_of(&x, row), &told), "{:?} instead of {told:?}", columns_of(&x, row));
            assert_eq!(columns_of(&x, row), columns_of(&x, row - row % copies), "rollouts of one instance");
            seen.push(stratum.fract());
        }
    }
    let mean = seen.iter().sum::<f64>() / seen.len() as f64;
    assert!((mean - 0.5).abs() < 0.02, "uniform within a stratum: {mean}");
    // Chunk 7 of three a pass is of the third pass of five: half way.
    let mut now = [0; clock::LEN];
    now[clock::CHUNK] = 7;
    let x = rig.set_words("clock", &now).run("evaluated").get("x");
    let told: Vec<f64> = scale.columns(0.1).iter().map(|&c| c.into()).collect();
    assert!(columns_of(&x, 5).iter().zip(&told).all(|(a, b)| (a - b).abs() < 1e-5));
    // Without a span every factor is exactly 1.
    words[settings::CONDITION_SPAN] = 0.0;
    let factors = rig.set("settings", &words).run("drawn").get("factors");
    assert!(factors.chunks(4).all(|row| row[1] == 1.0));
}

/// Given and found ranges; killed after every epoch; and in a host's frames on a device.
#[test]
fn equal_bits_on_every_way_through_a_run() {
    let (data, folder) = (data(), TempDir::new("range"));
    for (name, engine) in engines() {
        for alpha in [Alpha::Range([0.005, 0.1]), Alpha::Auto] {
            let fresh =
                || Trainer::new(&engine, &data, short(alpha)).unwrap_or_else(|error| panic!("{error}"));
            let mut whole = fresh();
            let expected = train(&mut whole);
            for after in [1, 2, 3, 5] {
                let file = folder.0.join(format!("{name}-{after}.safetensors"));
                let mut first = fresh();
                (0..after).for_each(|_| drop(first.epoch_blocking().expect("trains")));
                first.save_blocking(&file).expect("saves");
                let mut resumed = fresh();
                resumed.resume(&file).expect("resumes");
                let model = train(&mut resumed);
                assert_eq!(weights(&model), weights(&expected), "{name}, {alpha}, killed after {after}");
                assert_eq!(model.alphas(), expected.alphas());
                let passes = |t: &Trainer| t.history().iter().map(|e| e.passes.clone()).collect::<Vec<_>>();
                assert_eq!(passes(&resumed), passes(&whole));
            }
            if let Some(gpu) = whole.stepper().program().gpu().map(|program| program.gpu().clone()) {
                let mut framed = fresh();
                while !framed.try_progress().expect("goes on").finished {
                    let mut encoder = gpu.device().create_command_encoder(&Default::default());
                    framed.encode(&mut encoder, Budget::Dispatches(61)).expect("records");
                    gpu.queue().submit([encoder.finish()]);
                    gpu.wait_blocking().expect("polls");
                }
                let model = framed.try_model().expect("no error").expect("over");
                assert_eq!(weights(&model), weights(&expected), "{alpha} in frames");
            }
        }
    }
}

/// The engine's evaluation of each α is what sessions do at that α.
#[test]
fn a_session_at_an_alpha_does_what_the_engine_does() {
    let data = table([2_000, 200, 100]);
    for (name, engine) in engines() {
        let mut trainer = Trainer::new(&engine, &data, enough()).expect("valid");
        let model = train(&mut trainer);
        let best = trainer.history().iter().rfind(|epoch| epoch.best).expect("one is best");
        assert_eq!(best.passes.len(), 6);
        let mut costs = Vec::new();
        for pass in &best.passes {
            let at = model.clone().with_tradeoff(pass.alpha).expect("in the range");
            let labels = &data.splits()[1].y;
            let ended = episodes(&at, &data, Part::Validation, &Rules::default()).expect("goes").ended();
            let s = ended.summary(data.problem(), labels, pass.alpha);
            let there = pass.evaluation;
            for (a, b) in [(s.loss, there.loss), (s.cost, there.cost), (s.objective, there.objective)] {
                assert!((a - b).abs() < 1e-4, "{name}, α {}: {a} and {b}", pass.alpha);
            }
            costs.push(s.cost);
            // The same by the engine, path for path but for ties that rounding decides.
            let rows = data.splits()[1].clone();
            let on_engine = traces_blocking(&engine, &at, &rows).expect("runs");
            let same = (0..ended.len()).filter(|&i| ended.path_of(i) == on_engine.path_of(i)).count();
            assert!(same + 2 >= ended.len(), "{name}, α {}: {same} of {} paths", pass.alpha, ended.len());
        }
        assert!(costs.iter().any(|&cost| cost != costs[0]), "{name}: every α asks the same: {costs:?}");
    }
}

/// Asked more where cost weighs less, by one model; and a given range is the model's.
#[test]
fn what_is_asked_falls_as_alpha_rises() {
    let data = table([2_000, 500, 1_000]);
    let model = train(&mut Trainer::new(&Engine::cpu(), &data, enough()).expect("valid"));
    let asked: Vec<f64> = [0.002, 0.06, 0.8]
        .map(|alpha| {
            let model = model.clone().with_tradeoff(alpha).expect("in the range");
            let ended = episodes(&model, &data, Part::Test, &Rules::default()).expect("goes").ended();
            ended.summary(data.problem(), &data.splits()[2].y, alpha).cost
        })
        .to_vec();
    assert!(asked[0] > 2.0 && asked[0] > asked[1] && asked[1] > asked[2] && asked[2] < 0.5, "{asked:?}");
}

#[test]
fn a_range_travels_with_the_model() {
    let (data, folder) = (data(), TempDir::new("range-file"));
    let mut trainer = Trainer::new(&Engine::cpu(), &data, short(Alpha::Auto)).expect("valid");
    let model = train(&mut trainer);
    let found = model.alphas().expect("a range was found");
    let staged = trainer.history().iter().find(|epoch| epoch.phase == Phase::Stage(0)).expect("a stage");
    assert!(found.from() >= staged.passes[0].alpha * 0.999 && found.to() <= staged.passes[5].alpha * 1.001);
    let file = folder.0.join("model.safetensors");
    model.save(&file).expect("saves");
    let loaded = Model::load(&file).expect("loads");
    assert_eq!(loaded, model);
    assert_eq!(loaded.alpha(), loaded.choices().expect("it has a curve").knee.alpha);
    assert!(found.contains(loaded.alpha()));
    let moved = loaded.clone().with_tradeoff(found.from()).expect("in the range");
    assert_eq!(moved.alpha(), found.from());
    moved.save(&file).expect("saves");
    assert_eq!(Model::load(&file).expect("loads").alpha(), found.from());
    for outside in [found.from() / 2.0, found.to() * 2.0, 0.0, -1.0, f64::NAN] {
        let said = loaded.clone().with_tradeoff(outside).expect_err("outside").to_string();
        assert!(said.contains(&found.to_string()), "{said}");
        assert!(loaded.session().with_alpha(outside).is_err());
    }
    // A session may choose as well, but not in the middle.
    let mut session = loaded.session().with_alpha(found.to()).expect("in the range");
    session.observe(0, 0.5).expect("fits");
    assert!(
        session
            .with_alpha(found.from())
            .expect_err("too late")
            .to_string()
            .contains("before the first answer")
    );
}

/// The range is narrowed after the first of several stages; weights that were kept before stay kept.
#[test]
fn narrowing_loses_no_weights() {
    let data = table([2_000, 200, 100]);
    for temperatures in [vec![0.5], vec![0.8, 0.2]] {
        let several = temperatures.len() > 1;
        let config = enough().with(|c| {
            c.alpha = Alpha::Auto;
            c.schedule.temperatures = temperatures;
        });
        let stage_epochs = config.schedule.stage_epochs;
        let mut trainer = Trainer::new(&Engine::cpu(), &data, config.clone()).expect("valid");
        for _ in 0..config.schedule.warm_up_epochs + stage_epochs {
            trainer.epoch_blocking().expect("trains");
        }
        let at_first = trainer.history().last().expect("epochs").passes.clone();
        assert_eq!(trainer.best().is_none(), several, "what is judged has changed, or not");
        let model = trainer.finish_blocking().expect("kept weights");
        let range = model.alphas().expect("a range");
        assert!(range.from() >= at_first[0].alpha && range.to() <= at_first[5].alpha);
        assert!(!model.curve().is_empty() && model.curve().iter().all(|point| range.contains(point.alpha)));
        assert!(range.contains(model.alpha()));
    }
}

#[test]
fn ranges_that_are_none_are_refused() {
    let data = data();
    for (ends, words) in [
        ([0.1, 0.1], "0.1 to 0.1"),
        ([0.2, 0.1], "0.2 to 0.1"),
        ([0.0, 0.1], "0 to 0.1"),
        ([f64::NAN, 0.1], "NaN to 0.1"),
    ] {
        let said = Trainer::new(&Engine::cpu(), &data, short(ends)).err().expect("refused").to_string();
        assert!(said.contains(words), "{said}");
    }
    let cold = short(Alpha::Auto).with(|c| c.schedule.warm_up_epochs = 0);
    let said = Trainer::new(&Engine::cpu(), &data, cold).err().expect("refused").to_string();
    assert!(said.contains("needs a warm-up"), "{said}");
    // Before the warm-up is over there is no range, and so no model.
    let mut young = Trainer::new(&Engine::cpu(), &data, short(Alpha::Auto)).expect("valid");
    young.epoch_blocking().expect("trains");
    let said = young.finish_blocking().expect_err("too early").to_string();
    assert!(said.contains("has not found its range"), "{said}");
    let free = Problem::ungrouped(&[0.0; 4], 2).expect("valid");
    let [train, validation, test] = data.splits().clone();
    let free = Dataset::new(free, train, validation, test).expect("valid");
    let said = Trainer::new(&Engine::cpu(), &free, short(Alpha::Auto)).err().expect("refused").to_string();
    assert!(said.contains("no feature costs anything"), "{said}");
}
