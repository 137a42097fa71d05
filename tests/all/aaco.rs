//! AACO: the search against a plain one in f64, what decides where values are equal, prices, what cannot be had; runs
//! that go on after a checkpoint, in frames and on any number of threads with equal bits; the model's file.

use crate::common::{self, TempDir, engines, gpu, weights};
use crate::rig;
use querent::data::{Dataset, Part, Split};
use querent::engine::Program;
use querent::engine::plan::BufferId;
use querent::methods::aaco::{Config, Pick, Trainer};
use querent::policy::Stopping;
use querent::policy::evaluate::{self, Episodes, Rules};
use querent::policy::history::Phase;
use querent::random::{Source, unit};
use querent::train::Training;
use querent::{Budget, Engine, Feature, Model, Problem, Step, wgpu};

/// Six features in seven columns, and one more column that is known from the start: the sum of a, b and the second
/// column of `pair` makes the label; `dear` is a again, but costs more. The classes have weights.
fn data(rows: [usize; 3]) -> Dataset {
    let costs = [("dear", 3.0), ("noise", 1.0), ("a", 1.0), ("pair", 1.0), ("b", 1.0), ("free", 0.0)];
    let features = costs.map(|(name, cost)| Feature { name: name.into(), cost }).to_vec();
    let problem = Problem::new(features, COLUMNS.to_vec(), vec!["no".into(), "yes".into()])
        .map(|problem| problem.with_known_columns(1))
        .and_then(|problem| problem.with_class_weights(vec![1.0, 1.5]))
        .expect("valid");
    let mut split = 0;
    let [train, validation, test] = rows.map(|rows| {
        split += 1;
        let source = Source::new(5, 99, split);
        let mut to = Split::default();
        for row in 0..rows as u32 {
            let draw = |i: u32| (2.0 * unit(source.bits(row, i, 0)[0]) - 1.0) as f32;
            let (a, b, c) = (draw(0), 0.8 * draw(1), 0.5 * draw(2));
            to.x.extend([a, draw(3), a, draw(4), c, b, draw(5), draw(6)]);
            to.y.push(u32::from(a + b + c > 0.0));
        }
        to
    });
    Dataset::new(problem, train, validation, test).expect("valid")
}

/// The feature of each column but the last, which is known from the start.
const COLUMNS: [u32; 7] = [0, 1, 2, 3, 3, 4, 5];
const KNOWN: usize = 7;

fn config() -> Config {
    Config {
        alpha: 0.05.into(),
        horizon: Some(4),
        hidden: vec![24, 20],
        batch: 50,
        dropout: 0.0,
        rate: 3e-3,
        warm_up_epochs: 2,
        stage_epochs: 1,
        epoch_steps: 120,
        rollouts: 60,
        neighbours: 7,
        start_rows: 40,
        seed: 3,
        ..Config::default()
    }
}

fn start(engine: &Engine, data: &Dataset, config: Config) -> Trainer {
    Trainer::new(engine, data, config).unwrap_or_else(|error| panic!("{error}"))
}

fn run(engine: &Engine, data: &Dataset, config: Config) -> (Trainer, Model) {
    let mut trainer = start(engine, data, config);
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("a model");
    (trainer, model)
}

/// The columns of a feature.
fn columns(feature: usize) -> Vec<usize> {
    (0..COLUMNS.len()).filter(|&column| COLUMNS[column] as usize == feature).collect()
}

/// The search, written down once more: in f64, row by row, without anything clever. It knows all sets.
struct Plain<'a> {
    model: &'a Model,
    rows: Vec<Vec<f64>>,
    labels: Vec<usize>,
    neighbours: usize,
    whole: bool,
    pick: Pick,
    alpha: f64,
}

/// What it finds: the feature, the gain, and how near to another choice it was.
struct PlainFound {
    feature: usize,
    gain: f64,
    margin: f64,
}

impl<'a> Plain<'a> {
    fn new(model: &'a Model, config: &Config, alpha: f64) -> Self {
        let tensors = model.tensors();
        let find = |name: &str| tensors.iter().find(|tensor| tensor.name == name).expect("there");
        let (x, y) = (find("rows.x"), find("rows.y"));
        Self {
            model,
            rows: x.values.chunks(x.shape[1]).map(|row| row.iter().map(|&v| v.into()).collect()).collect(),
            labels: y.values.iter().map(|&label| label as usize).collect(),
            neighbours: config.neighbours,
            whole: config.whole_neighbours,
            pick: config.pick,
            alpha,
        }
    }

    /// The predictor's loss on values under a mask of the features.
    fn loss(&self, values: &[f64], mask: u32, label: usize) -> f64 {
        let mut units: Vec<f64> = values.to_vec();
        for (column, value) in units.iter_mut().enumerate().take(KNOWN) {
            *value *= f64::from(mask >> COLUMNS[column] & 1);
        }
        units.extend((0..6).map(|feature| f64::from(mask >> feature & 1)));
        let layers = self.model.network("predictor");
        for (index, layer) in layers.iter().enumerate() {
            let inputs = units.len();
            let mut next = layer.bias.clone();
            for (output, to) in next.iter_mut().enumerate() {
                *to += (0..inputs).map(|i| layer.weight[output * inputs + i] * units[i]).sum::<f64>();
                if index + 1 < layers.len() {
                    *to = to.max(0.0);
                }
            }
            units = next;
        }
        let mass: f64 = units.iter().map(|unit| unit.exp()).sum();
        self.model.problem().class_weights()[label] * (mass.ln() - units[label])
    }

    fn find(&self, row: &[f32], seen: u32, open: &[usize]) -> PlainFound {
        let known = |column: usize| column == KNOWN || seen >> COLUMNS[column] & 1 == 1;
        let distance = |other: &Vec<f64>| -> f64 {
            (0..8).filter(|&c| known(c)).map(|c| (other[c] - f64::from(row[c])).powi(2)).sum()
        };
        let mut nearest: Vec<(f64, usize)> = self.rows.iter().map(distance).zip(0..).collect();
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mean = |set: u32| {
            let losses = nearest[..self.neighbours].iter().map(|&(_, other)| {
                let of = |c: usize| {
                    if known(c) && !self.whole { f64::from(row[c]) } else { self.rows[other][c] }
                };
                self.loss(&(0..8).map(of).collect::<Vec<_>>(), seen | set, self.labels[other])
            });
            losses.sum::<f64>() / self.neighbours as f64
        };
        let cost = |set: u32| -> f64 {
            let features = self.model.problem().features().iter().enumerate();
            features.filter(|(feature, _)| set >> feature & 1 == 1).map(|(_, feature)| feature.cost).sum()
        };
        let sets = (1u32..1 << open.len()).map(|bits| {
            open.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, f)| 1 << f).sum::<u32>()
        });
        let mut values: Vec<(f64, u32)> = sets.map(|set| (mean(set) + self.alpha * cost(set), set)).collect();
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (best, set) = values[0];
        let value = |f: usize| match self.pick {
            Pick::Alone => mean(1 << f),
            Pick::Needed => -mean(set & !(1 << f)),
        };
        let mut alone: Vec<(f64, usize)> =
            open.iter().filter(|&&f| set >> f & 1 == 1).map(|&f| (value(f), f)).collect();
        alone.sort_by(|a, b| a.0.total_cmp(&b.0));
        let second = |values: Option<f64>, first: f64| values.map_or(1.0, |value| value - first);
        let margin =
            second(values.get(1).map(|v| v.0), best).min(second(alone.get(1).map(|v| v.0), alone[0].0));
        let cut = nearest[self.neighbours].0 - nearest[self.neighbours - 1].0;
        PlainFound { feature: alone[0].1, gain: mean(0) - best, margin: margin.min(cut) }
    }
}

/// Rounding may decide where two values are nearer than this.
const NEAR: f64 = 1e-5;

/// Every step of several walks: what is asked, and what it is expected to gain, with features that cannot be had, prices
/// and a budget, groups of columns, columns that are known from the start, class weights.
#[test]
fn the_search_is_a_plain_one() {
    let data = data([300, 60, 40]);
    for (whole_neighbours, pick) in [(false, Pick::Alone), (true, Pick::Needed)] {
        let settings = Config { whole_neighbours, pick, ..config() };
        let (_, model) = run(&Engine::cpu(), &data, settings.clone());
        let (mut compared, mut stopped) = (0, 0);
        for row in 0..40 {
            let alpha = [0.0, 0.02, 0.1][row % 3];
            let plain = Plain::new(&model, &settings, alpha);
            let values = data.row(Part::Test, row).into_owned();
            let budget = if row % 4 == 3 { 2.0 } else { f64::INFINITY };
            let session = model.session().with_alpha(alpha).expect("any α");
            let mut session = session.with_budget(budget).expect("a budget").without_stop();
            session.given(values[KNOWN]).expect("known");
            let missing = [None, Some(2), Some(4)][row % 3];
            missing.into_iter().for_each(|feature| session.unavailable(feature).expect("open"));
            let (mut seen, mut spent) = (0, 0.0);
            while let Step::Acquire(feature) = session.next() {
                let features = data.problem().features();
                let is_open = |f: &usize| {
                    seen >> f & 1 == 0 && Some(*f) != missing && spent + features[*f].cost <= budget
                };
                let open: Vec<usize> = (0..6).filter(is_open).collect();
                let found = plain.find(&values, seen, &open);
                let why = session.why();
                let Stopping::Gain(gain) = why.stopping else { panic!("{why:?}") };
                if found.margin > NEAR {
                    assert_eq!(feature, found.feature, "row {row}, seen {seen:b}, {open:?}");
                    assert!((f64::from(gain) - found.gain).abs() < NEAR, "{gain} {}", found.gain);
                    assert_eq!(why.wanted[0].feature, feature);
                    assert_eq!(why.wanted.len(), open.len());
                    compared += 1;
                    stopped += usize::from(found.gain < 0.0);
                }
                let of: Vec<f32> = columns(feature).iter().map(|&column| values[column]).collect();
                session.observe(feature, of).expect("observes");
                seen |= 1 << feature;
                spent += features[feature].cost;
            }
        }
        assert!(compared > 80 && stopped > 10, "{compared} compared, {stopped} of them would stop");
    }
}

/// The bytes of a model's file, and where each tensor of a name lies in them.
fn zeroed(model: &Model, folder: &TempDir, prefix: &str) -> Model {
    let file = folder.0.join("zeroed.safetensors");
    model.save(&file).expect("saves");
    let mut bytes = std::fs::read(&file).expect("reads");
    let header = u64::from_le_bytes(bytes[..8].try_into().expect("eight")) as usize;
    let text: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).expect("a header");
    for (name, tensor) in text.as_object().expect("tensors") {
        if name.starts_with(prefix) {
            let ends =
                [0, 1].map(|i| 8 + header + tensor["data_offsets"][i].as_u64().expect("a place") as usize);
            bytes[ends[0]..ends[1]].fill(0);
        }
    }
    Model::from_bytes(&bytes).expect("a model")
}

/// To a predictor that says the same of everything all sets are worth the same: the first counts, which is none, and of the
/// others that of the first feature.
#[test]
fn of_equal_values_the_first_counts() {
    let folder = TempDir::new("aaco-ties");
    let data = data([200, 50, 10]);
    let (_, model) = run(&Engine::cpu(), &data, Config { epoch_steps: 4, ..config() });
    let model = zeroed(&model, &folder, "predictor.2.weight");
    for alpha in [0.0, 0.1] {
        let mut session = model.session().with_alpha(alpha).expect("any α");
        session.given(0.3).expect("known");
        assert_eq!(session.next(), Step::Stop, "α {alpha}: nothing comes first");
        // `free` has no price: with α it ties with nothing, and is the first set there is without a price.
        let session = session.without_stop();
        let expected = if alpha == 0.0 { 0 } else { 5 };
        assert_eq!(session.next(), Step::Acquire(expected), "α {alpha}");
        assert_eq!(session.why().stopping, Stopping::Gain(0.0));
    }
}

/// What costs more is asked less, of two that say the same the cheaper one is, and one model serves any α.
#[test]
fn prices_count() {
    let data = data([2_000, 300, 150]);
    let settings = Config { epoch_steps: 400, ..config() };
    let (trainer, model) = run(&Engine::cpu(), &data, settings);
    let phases: Vec<Phase> = trainer.history().iter().map(|epoch| epoch.phase).collect();
    assert_eq!(phases, [Phase::WarmUp, Phase::WarmUp, Phase::Stage(0)]);
    assert!(trainer.history()[2].validation.cost > 0.0, "the validation follows the visited paths");
    let labels = &data.splits()[2].y;
    let mut before = f64::INFINITY;
    for alpha in [0.0, 0.05, 0.2, 2.0] {
        let at = model.clone().with_tradeoff(alpha).expect("any α");
        assert_eq!(at.alpha(), alpha);
        let traces = episodes(&at, &data).ended();
        let summary = traces.summary(data.problem(), labels, alpha);
        assert!(summary.cost <= before, "α {alpha}: {} after {before}", summary.cost);
        before = summary.cost;
        if alpha == 0.05 {
            assert!(summary.accuracy > 0.85, "{summary:?}");
            let asked = |feature: u32| traces.path.iter().filter(|&&asked| asked == feature).count();
            assert!(4 * asked(0) < asked(2), "`dear`, asked {} times, says what `a` says", asked(0));
        }
        if alpha == 2.0 {
            // What is free may still be asked for.
            assert_eq!(summary.cost, 0.0);
        }
    }
    // Another search in the same model.
    let other = Config { neighbours: 3, candidates: 5, ..config() };
    let other = querent::methods::aaco::searching(&model, &other).expect("searches");
    assert_eq!((other.settings()["neighbours"].as_u64(), other.alpha()), (Some(3), 0.05));
    assert_eq!(other.network("predictor"), model.network("predictor"));
    assert_ne!(episodes(&other, &data), episodes(&model, &data));
    assert!(model.clone().with_tradeoff(-0.1).is_err() && model.session().with_alpha(f64::NAN).is_err());
}

fn episodes(model: &Model, data: &Dataset) -> Episodes {
    evaluate::episodes(model, data, Part::Test, &Rules::default()).expect("asks")
}

/// A checkpoint at the end of any epoch: before the rollouts, and after.
#[test]
fn a_run_goes_on_with_equal_bits() {
    let folder = TempDir::new("aaco-resume");
    let data = data([400, 150, 20]);
    let settings = Config { epoch_steps: 16, dropout: 0.2, stage_epochs: 2, rounds: 2, ..config() };
    for (name, engine) in engines() {
        let (whole, expected) = run(&engine, &data, settings.clone());
        assert_eq!(whole.history().len(), 6);
        for stopped in 0..6 {
            let mut first = start(&engine, &data, settings.clone());
            for _ in 0..stopped {
                first.epoch_blocking().expect("trains");
            }
            let file = folder.0.join(format!("{name}-{stopped}.safetensors"));
            first.save_blocking(&file).expect("saves");
            drop(first);
            let mut second = start(&engine, &data, settings.clone());
            second.resume(&file).expect("resumes");
            while second.epoch_blocking().expect("trains").is_some() {}
            let model = second.finish_blocking().expect("a model");
            assert_eq!(weights(&model), weights(&expected), "{name}: stopped after {stopped} epochs");
            assert_eq!(second.epochs_behind(), second.epochs_at_most());
        }
    }
}

/// In a host's frames, the rollouts on a thread of their own, the weights are the same bits.
#[test]
fn frames_give_the_same_model() {
    let Some(engine) = gpu() else { return };
    let (device, queue) = engine.device().expect("a GPU engine");
    let data = data([400, 150, 10]);
    let settings = Config { epoch_steps: 16, ..config() };
    let (_, expected) = run(&engine, &data, settings.clone());
    let mut trainer = start(&engine, &data, settings);
    let mut epochs = 0;
    loop {
        let mut encoder = device.create_command_encoder(&Default::default());
        trainer.encode(&mut encoder, Budget::Dispatches(101)).expect("records");
        queue.submit([encoder.finish()]);
        device.poll(wgpu::PollType::wait_indefinitely()).expect("polls");
        let progress = trainer.try_progress().expect("goes on");
        epochs += usize::from(progress.epoch.is_some());
        if progress.finished {
            break;
        }
        assert!(trainer.try_model().expect("no error").is_none());
    }
    assert_eq!(epochs, 3);
    let model = trainer.try_model().expect("no error").expect("a model");
    assert_eq!(weights(&model), weights(&expected));
}

/// The number of threads decides nothing: not what is rolled out, not what is asked.
#[test]
fn threads_do_not_matter() {
    let data = data([300, 80, 60]);
    let on = |threads: usize| {
        let pool = rayon_pool(threads);
        pool.install(|| {
            let (_, model) = run(&Engine::cpu(), &data, Config { epoch_steps: 16, ..config() });
            let asked = episodes(&model, &data);
            (weights(&model), asked)
        })
    };
    assert_eq!(on(1), on(3));
}

fn rayon_pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads")
}

/// What is stored is what was trained: for one α, moved to another, and for a range that was found.
#[test]
fn models_are_stored() {
    let folder = TempDir::new("aaco-file");
    let file = folder.0.join("model.safetensors");
    let data = data([300, 80, 30]);
    let (_, one) = run(&Engine::cpu(), &data, Config { epoch_steps: 16, rows: Some(200), ..config() });
    let moved = one.clone().with_tradeoff(0.5).expect("any α");
    let auto = serde_json::from_str("\"auto\"").expect("a word");
    let (_, range) = run(&Engine::cpu(), &data, Config { epoch_steps: 60, alpha: auto, ..config() });
    let alphas = range.alphas().expect("a range was found");
    assert!(alphas.from() > 0.0 && alphas.to() < 10.0, "{alphas}");
    for model in [&one, &moved, &range] {
        model.save(&file).expect("saves");
        let loaded = Model::load(&file).expect("loads");
        assert_eq!(&loaded, model);
        assert_eq!(loaded.alpha(), model.alpha());
        assert_eq!(episodes(&loaded, &data), episodes(model, &data));
    }
    assert_eq!((one.alpha(), moved.alpha()), (0.05, 0.5));
    let rows = one.tensors().into_iter().find(|tensor| tensor.name == "rows.x").expect("rows");
    assert_eq!(rows.shape, [200, 8]);

    // A file that says it is another method's, and another method's that says it is AACO's.
    one.save(&file).expect("saves");
    let bytes = std::fs::read(&file).expect("reads");
    let renamed = |bytes: &[u8], from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|part| part == from.as_bytes()).expect("there");
        let mut bytes = bytes.to_vec();
        bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
        Model::from_bytes(&bytes).expect_err("refused").to_string()
    };
    let error = renamed(&bytes, r#"\"method\":\"aaco\""#, r#"\"method\":\"gdfs\""#);
    assert!(error.contains("`config` cannot be read"), "{error}");
    // Labels that are none, and rows that are cut off.
    let error = renamed(&bytes, "rows.y", "rows.z");
    assert!(error.contains("tensor `rows.y` is missing"), "{error}");
}

/// The kernel's masks: the beginnings of what was visited, or random ones, the same bits on both engines.
#[test]
fn recalled_masks_are_what_was_visited() {
    let data = data([300, 70, 20]);
    let mut masks: Vec<Vec<f64>> = Vec::new();
    for (name, engine) in engines() {
        let settings = Config { epoch_steps: 2, warm_up_epochs: 1, visited: 0.5, ..config() };
        let mut trainer = start(&engine, &data, settings);
        let program = trainer.program().expect("a plan");
        let find = |program: &Program, name: &str| program.plan().find(name).expect("declared");
        let [slots, visited] = ["slots", "visited"].map(|name| find(program, name));
        // Rollout r asks r % 6, then the next, and so on, r % 5 features; of three rows one has none.
        let rollouts = program.plan().buffer(visited).len / 4;
        let paths: Vec<u32> = (0..rollouts)
            .flat_map(|r| (0..4).map(move |t| if t < r % 5 { ((r + t) % 6 + 1) as u32 } else { 0 }))
            .collect();
        let own: Vec<u32> =
            (0..390).map(|row| if row % 3 == 0 { 0 } else { row % rollouts as u32 + 1 }).collect();
        program.write_words(slots, 0, &own);
        program.write_words(visited, 0, &paths);
        let calls = common::section(program.plan(), "step");
        let is_recall = |call: &usize| program.plan().calls()[*call].kernel.name == "aaco/recall";
        let call = calls.clone().find(is_recall).expect("recalls");
        let rows = program.plan().find("path").map(|id| program.plan().buffer(id).len / 4).expect("declared");
        program.run(call..call + 1, 1);
        let read = |program: &Program, name: &str| program.read_blocking(find(program, name)).expect("reads");
        let drawn = read(program, "masks");
        let path = words(program, find(program, "path"));
        let (mut followed, mut other) = (0, 0);
        for row in 0..rows {
            let mask: Vec<bool> = drawn[row * 8..][..6].iter().map(|&seen| seen == 1.0).collect();
            let asked: Vec<usize> =
                (0..4).map(|t| path[t * rows + row] as usize).take_while(|&f| f < 6).collect();
            let is_beginning = (0..=asked.len())
                .any(|length| (0..6).all(|feature| mask[feature] == asked[..length].contains(&feature)));
            (followed, other) = if is_beginning { (followed + 1, other) } else { (followed, other + 1) };
        }
        assert!(followed > rows / 5 && other > rows / 5, "{name}: {followed} follow, {other} do not");
        masks.push(drawn[..rows * 8].to_vec());
        // The validation is at the paths' ends.
        let chunk = common::section(program.plan(), "validate");
        program.run(chunk, 1);
        let path = words(program, find(program, "evaluation.path"));
        let per_lane = program.plan().buffer(find(program, "evaluation.path")).len / 4;
        let slot = |row: usize| own[300 + row].checked_sub(1);
        for row in 0..per_lane.min(70) {
            for t in 0..4 {
                let asked = slot(row).map_or(0, |slot| paths[slot as usize * 4 + t]);
                assert_eq!(path[t * per_lane + row], asked.checked_sub(1).unwrap_or(6), "{name}: {row}, {t}");
            }
        }
    }
    let rows = masks.iter().map(Vec::len).min().expect("an engine");
    assert!(masks.iter().all(|other| other[..rows] == masks[0][..rows]), "engines draw other masks");
}

fn words(program: &Program, id: BufferId) -> Vec<u32> {
    program.read_words_blocking(id).expect("reads")
}

/// Bytes are rows like any others.
#[test]
fn bytes_are_searched() {
    let data = rig::toy_of_bytes(4, 40);
    let settings = Config { horizon: Some(3), batch: 20, epoch_steps: 8, ..config() };
    let (_, model) = run(&Engine::cpu(), &data, settings);
    let tensors = model.tensors();
    let rows = tensors.iter().find(|tensor| tensor.name == "rows.x").expect("rows");
    assert!(rows.values.iter().all(|value| (0.0..=1.0).contains(value)));
    let rules = Rules { may_stop: false, ..Rules::default() };
    let all = evaluate::episodes(&model, &data, Part::Train, &rules).expect("asks");
    assert!(all.episodes.iter().all(|episode| episode.path.len() == 3));
}

#[test]
fn settings_out_of_range_are_refused() {
    let small = data([40, 15, 10]);
    for (settings, says) in [
        (Config { horizon: Some(7), ..config() }, "must be 1 to 6"),
        (Config { hidden: vec![], ..config() }, "at least one layer"),
        (Config { neighbours: 0, ..config() }, "neighbours is 0"),
        (Config { candidates: 0, ..config() }, "candidates is 0"),
        (Config { neighbours: usize::MAX, ..config() }, "must be at most 1048576"),
        (Config { candidates: 1 << 40, ..config() }, "candidates is 1099511627776"),
        (Config { rounds: usize::MAX, ..config() }, "must be at most"),
        (Config { start_rows: 0, ..config() }, "start_rows is 0"),
        (Config { rows: Some(0), ..config() }, "rows is 0"),
        (Config { rollouts: 0, ..config() }, "rollouts is 0"),
        (Config { visited: 1.5, ..config() }, "visited is 1.5"),
        (Config { alpha: (-1.0).into(), ..config() }, "alpha is -1"),
        (Config { alpha: [0.5, 0.1].into(), ..config() }, "the range of α is 0.5 to 0.1"),
    ] {
        let error = Trainer::new(&Engine::cpu(), &small, settings).err().expect("refused").to_string();
        assert!(error.contains(says), "{error}");
    }
    // Rows that are too many to travel.
    let problem = Problem::ungrouped(&[1.0; 1_000], 2).expect("valid");
    let labels = |rows: usize| (0..rows as u32).map(|row| row % 2).collect::<Vec<_>>();
    let splits = [67_109, 2, 0].map(|rows| (vec![0; rows * 1_000], labels(rows)));
    let large = Dataset::of_bytes(problem, splits).expect("valid");
    let error = config().check_table(&large).expect_err("horizon");
    assert!(error.to_string().contains("67109 rows of 1000 columns"), "{error}");
    assert!(error.to_string().contains("--set rows=67108"), "{error}");
    Config { rows: Some(67_108), ..config() }.check_table(&large).expect("fits");
}
