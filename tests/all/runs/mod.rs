//! What holds for a run of any method that learns in steps: it goes on after a checkpoint with equal bits, and a host's
//! frames give those of a plain run.

use crate::common::{self, TempDir, engines, weights};
use crate::host::{Host, Patience};
use querent::data::Dataset;
use querent::methods::{Entry, find};
use querent::policy::history::{Epoch, Phase};
use querent::train::Training;
use querent::{Budget, Engine, wgpu};
use serde_json::{Value, json};

/// A short run of a method on a table.
pub struct Run<'a> {
    pub entry: &'static Entry,
    pub data: &'a Dataset,
    pub settings: Value,
}

/// A method's settings for a table, with some changed.
pub fn settings(method: &str, data: &Dataset, changed: &[(&str, Value)]) -> Value {
    let mut settings = (find(method).expect("there is one").defaults)(data);
    for (key, value) in changed {
        assert!(settings.get(key).is_some(), "no `{key}`");
        settings[key] = value.clone();
    }
    settings
}

/// What an epoch came to, but for the time it took.
fn timeless(history: &[Epoch]) -> Vec<Epoch> {
    history.iter().map(|epoch| Epoch { seconds: 0.0, ..epoch.clone() }).collect()
}

/// The rest of a run: its history, and what it ended in.
pub fn finish(training: &mut dyn Training) -> (Vec<Epoch>, Vec<f64>) {
    while training.epoch_blocking().expect("trains").is_some() {}
    (timeless(training.history()), weights(&training.finish_blocking().expect("reads")))
}

impl<'a> Run<'a> {
    pub fn new(method: &str, data: &'a Dataset, settings: Value) -> Self {
        Self { entry: find(method).expect("there is one"), data, settings }
    }

    pub fn start(&self, engine: &Engine) -> Box<dyn Training> {
        let start = self.entry.start;
        start(engine, self.data, self.settings.clone()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// On both engines, stopped in the pretraining, at its end, and in the first two stages.
    pub fn goes_on_with_equal_bits(mut self) {
        let folder = TempDir::new(self.entry.name);
        for (name, engine) in engines() {
            let mut whole = self.start(&engine);
            let mut files = Vec::new();
            while whole.epoch_blocking().expect("trains").is_some() {
                let file = folder.0.join(format!("{name}-{}.safetensors", whole.history().len()));
                whole.save_blocking(&file).expect("saves");
                files.push(file);
            }
            let end = finish(&mut *whole);
            assert!(finish(&mut *self.start(&engine)) == end, "{name}: the same seed");

            let of = |wanted: Phase| {
                (0..files.len()).find(|&file| end.0[file].phase == wanted).expect("such an epoch")
            };
            for stopped in [0, 1, of(Phase::Stage(0)), of(Phase::Stage(1))] {
                let mut resumed = self.start(&engine);
                resumed.resume(&files[stopped]).expect("resumes");
                assert_eq!(resumed.history().len(), stopped + 1);
                assert!(finish(&mut *resumed) == end, "{name}: resumed after epoch {stopped}");
                // Nothing is left of what a run was at when it went back.
                resumed.resume(&files[stopped]).expect("resumes");
                assert!(finish(&mut *resumed) == end, "{name}: once more after epoch {stopped}");
            }

            // The control: another seed gives other bits.
            let seed = std::mem::replace(&mut self.settings["seed"], json!(6));
            assert_ne!(seed, json!(6));
            assert!(finish(&mut *self.start(&engine)).1 != end.1, "{name}: another seed");
            self.settings["seed"] = seed;
        }
    }

    /// A host's frames, with slices that end inside steps.
    pub fn is_the_same_in_frames(&self) {
        let Some(host) = Host::open(wgpu::Features::empty()) else { return };
        let expected = finish(&mut *self.start(&host.engine()));
        let mut training = self.start(&host.engine());
        let step = common::section(training.program().expect("it has a plan").plan(), "step").len();
        assert!(!step.is_multiple_of(37), "the frames would end with the steps");
        let (mut patience, mut epochs) = (Patience::default(), 0);
        loop {
            let mut encoder = host.encoder();
            let recorded = training.encode(&mut encoder, Budget::Dispatches(37)).expect("records");
            assert!(recorded.dispatches <= 37, "{recorded:?}");
            host.draw(&mut encoder);
            host.queue.submit([encoder.finish()]);
            host.poll();
            let seen = training.try_progress().expect("no error");
            epochs += usize::from(seen.epoch.is_some());
            if seen.finished {
                break;
            }
            patience.after(&recorded);
        }
        assert_eq!((epochs, timeless(training.history())), (expected.0.len(), expected.0));
        let model = training.try_model().expect("no error").expect("the run is over");
        assert!(weights(&model) == expected.1, "other bits");
        assert_eq!(host.errors(), 0, "uncaptured errors");
    }

    /// Each of these is refused, with its name.
    pub fn refuses(&self, wrong: &[(&str, Value)]) {
        let check = |settings: &Value| (self.entry.check)(self.data, settings);
        check(&self.settings).expect("the settings are valid");
        for (key, value) in wrong {
            let mut settings = self.settings.clone();
            settings[*key] = value.clone();
            let error = check(&settings).expect_err(key).to_string();
            assert!(error.contains(key), "{error}");
        }
    }
}
