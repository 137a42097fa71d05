//! Asking row by row on the host gives what the engine's greedy evaluation gives: also where columns are
//! known from the start, and where rows are bytes.

use crate::rig;
use querent::Engine;
use querent::data::Dataset;
use querent::data::Part;
use querent::methods::{METHODS, Tradeoff, set};
use querent::nmppg::{Config, Trainer};
use querent::policy::evaluate::{Rules, episodes, outcomes, outcomes_below};

fn compare(name: &str, data: &Dataset) {
    let config = Config::new(0.0).with(|c| {
        c.schedule.warm_up_epochs = 1;
        c.schedule.stage_epochs = 1;
        c.schedule.epoch_steps = 60;
        c.schedule.temperatures = vec![0.5];
        c.networks.policy = [16, 16];
        c.networks.predictor = [16, 16];
        c.batch = 32;
        c.schedule.ema = 0.1;
        // Asking is free and stopping rare: there is something to compare.
        c.exploration.initial_stop = Some(0.01);
    });
    let mut trainer = Trainer::new(&Engine::cpu(), data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("finishes");
    let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
    let asked = outcomes(&model, data, Part::Test, f64::INFINITY).expect("asks");
    assert_eq!(asked.traces.path, traces.path, "{name}");
    assert_eq!(asked.traces.guess, traces.guess, "{name}");
    for (a, b) in asked.traces.loss.iter().zip(&traces.loss) {
        assert!((a - b).abs() < 1e-4 * b.abs().max(1.0), "{name}: {a} {b}");
    }
    assert!(
        traces.path.iter().any(|&action| (action as usize) < traces.features),
        "{name}: nothing was asked"
    );
    // Without a budget for anything, nothing is asked; what is known is still seen.
    let nothing = outcomes(&model, data, Part::Test, 0.0).expect("asks");
    assert!(nothing.traces.path.iter().all(|&action| action as usize == traces.features));
    let classes = data.problem().classes().len();
    let first = &nothing.beliefs[..classes];
    let differ = nothing.beliefs.chunks_exact(classes).any(|belief| belief != first);
    assert_eq!(differ, data.problem().known_columns() > 0, "{name}");
}

#[test]
fn sessions_agree_with_the_engine() {
    compare("known columns", &rig::toy(6, 300));
    compare("bytes", &rig::toy_of_bytes(6, 300));
    let plain = querent::data::synthetic::syn1(1, [500, 100, 100]).expect("valid").standardized();
    compare("nothing known", &plain);
}

/// Of a stop rule, one way through a row has every threshold in it.
#[test]
fn one_way_through_a_row_has_all_thresholds() {
    let data = querent::data::synthetic::syn1(1, [400, 100, 40]).expect("valid").standardized();
    let mut differing = 0;
    for entry in METHODS.iter().filter(|entry| entry.tradeoff == Tradeoff::Threshold) {
        let mut settings = (entry.defaults)(&data);
        for assignment in ["epoch_steps=3", "stage_epochs=1", "warm_up_epochs=1"] {
            set::set(&mut settings, assignment, entry.renamed).expect("every method has it");
        }
        (entry.widen)(&mut settings, 8);
        let mut training = (entry.start)(&Engine::cpu(), &data, settings).expect("fits");
        while training.epoch_blocking().expect("trains").is_some() {}
        let model = training.finish_blocking().expect("finishes");
        // Thresholds that tell rows apart: quartiles of what the rule looks at.
        let rules = Rules { may_stop: false, ..Rules::default() };
        let whole = episodes(&model, &data, Part::Test, &rules).expect("asks");
        let moments = whole.episodes.iter().flat_map(|episode| &episode.moments);
        let mut scores: Vec<f32> = moments.filter_map(|moment| moment.stop_score).collect();
        scores.sort_by(f32::total_cmp);
        let thresholds = [3, 1, 2].map(|quarter| f64::from(scores[quarter * scores.len() / 4].max(0.0)));
        let together = outcomes_below(&model, &data, Part::Test, &thresholds).expect("asks");
        for (threshold, together) in thresholds.iter().zip(&together) {
            let model = model.clone().with_tradeoff(*threshold).expect("a threshold");
            let alone = outcomes(&model, &data, Part::Test, f64::INFINITY).expect("asks");
            assert_eq!(&alone, together, "{} at {threshold}", entry.name);
        }
        differing += usize::from(together[0] != together[1]);
        assert!(outcomes_below(&model, &data, Part::Test, &[]).expect("nothing to ask").is_empty());
    }
    // A fixed list of so short a run stops at once, whatever the threshold.
    assert!(differing >= 4, "thresholds do the same, of all but {differing} methods");
}

/// A session in raw units, with what is known given first, agrees with one in the networks' units.
#[test]
fn what_is_known_changes_the_belief() {
    let data = rig::toy(4, 200);
    let config = Config::new(0.01).with(|c| {
        c.schedule.warm_up_epochs = 1;
        c.schedule.stage_epochs = 1;
        c.schedule.epoch_steps = 30;
        c.schedule.ema = 0.1;
    });
    let mut trainer = Trainer::new(&Engine::cpu(), &data, config).expect("fits");
    while trainer.epoch_blocking().expect("trains").is_some() {}
    let model = trainer.finish_blocking().expect("finishes");
    let columns = data.problem().columns();
    let row = &data.splits()[2].x[..columns];
    let mut session = model.session();
    let before = session.predict().to_vec();
    assert!(session.given([1.0]).expect_err("two are known").to_string().contains("has 2 value(s)"));
    assert!(session.given([f32::NAN, 0.0]).is_err());
    assert_eq!(session.predict(), before, "a refused value changes nothing");
    session.given([row[columns - 2], row[columns - 1]]).expect("given");
    assert_ne!(session.predict(), before);
    assert!(session.given([0.0, 0.0]).expect_err("once").to_string().contains("once"));
    let expected = outcomes(&model, &data, Part::Test, 0.0).expect("asks");
    let classes = data.problem().classes().len();
    assert_eq!(session.predict(), &expected.beliefs[..classes]);
    session.reset();
    assert_eq!(session.predict(), before, "forgotten");
    assert!(session.tell(0, &["1"]).expect_err("no encoding").to_string().contains("numbers only"));
}
