//! The catalog's data sets, where their files are: sizes as their notes say, and a short training of each.
//! Without the files the tests skip, aloud; `QUERENT_DATA` says where they are.
#![cfg(feature = "table")]

use querent::Engine;
use querent::data::Part;
use querent::data::catalog::{CATALOG, Entry, State};
use querent::nmppg::{Config, Trainer};
use querent::policy::evaluate::outcomes;
use std::path::PathBuf;
use std::time::Instant;

/// The data folder, seen from the repository's root; where nothing says it, one that is not there.
fn folder() -> PathBuf {
    let set = std::env::var_os("QUERENT_DATA").unwrap_or("QUERENT_DATA-is-not-set".into());
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(set)
}

/// The data sets whose files are all there.
fn there() -> Vec<&'static Entry> {
    let dir = folder();
    CATALOG
        .iter()
        .filter(|entry| {
            let found = entry.look(&dir).expect("looks");
            let absent = found.iter().find(|file| file.state == State::Absent);
            if let Some(file) = absent {
                eprintln!("SKIPPED {}: no {}", entry.name, dir.join(entry.name).join(file.name).display());
            }
            absent.is_none()
        })
        .collect()
}

#[test]
fn sizes_are_as_published() {
    let columns =
        [("connect4", 126), ("splice", 480), ("metabric", 662), ("mnist", 784), ("fashion_mnist", 784)];
    for entry in there() {
        let started = Instant::now();
        let prepared = entry.load(&folder(), 0).unwrap_or_else(|error| panic!("{error}"));
        let problem = prepared.data.problem();
        assert_eq!(prepared.data.sizes(), entry.sizes, "{}", entry.name);
        assert_eq!(problem.features().len(), entry.features, "{}", entry.name);
        assert_eq!(problem.classes().len(), entry.classes, "{}", entry.name);
        if let Some((_, wide)) = columns.iter().find(|(name, _)| *name == entry.name) {
            assert_eq!(problem.columns(), *wide, "{}", entry.name);
        }
        let costs: f64 = problem.features().iter().map(|feature| feature.cost).sum();
        match entry.name {
            "diabetes" => assert_eq!((costs, problem.columns()), (155.0, 45)),
            "mortality" => assert!((costs - 113.69029411764706 - 0.026).abs() < 1e-9, "{costs}"),
            _ => {}
        }
        // Every split has every class, in the same proportion.
        for split in prepared.data.splits() {
            let share = |labels: &[u32]| {
                labels.iter().filter(|&&label| label == 0).count() as f64 / labels.len() as f64
            };
            let difference = share(&split.y) - share(&prepared.data.splits()[0].y);
            assert!(difference.abs() < 0.02 || entry.is_synthetic() || entry.is_images(), "{}", entry.name);
        }
        assert_eq!(prepared.data.images().is_some(), entry.is_images());
        println!("{}: {} columns, {:.1} s", entry.name, problem.columns(), started.elapsed().as_secs_f64());
    }
}

/// Class counts as the data sets' notes have them.
#[test]
fn classes_are_as_published() {
    let published: [(&str, &[usize]); 5] = [
        ("connect4", &[6_449, 16_635, 44_473]),
        ("splice", &[767, 768, 1_655]),
        ("metabric", &[679, 461, 220, 199, 199, 140]),
        ("mortality", &[10_071, 3_371]),
        ("diabetes", &[17_608, 71_710, 2_744]),
    ];
    for entry in there() {
        let Some((_, wanted)) = published.iter().find(|(name, _)| *name == entry.name) else { continue };
        let prepared = entry.load(&folder(), 0).unwrap_or_else(|error| panic!("{error}"));
        let mut counts = vec![0; entry.classes];
        for split in prepared.data.splits() {
            split.y.iter().for_each(|&label| counts[label as usize] += 1);
        }
        assert_eq!(counts, *wanted, "{}", entry.name);
    }
}

/// A few steps on each: it trains, asks, and its session agrees with the engine.
#[test]
#[ignore = "trains on every data set that is there: some minutes"]
fn every_data_set_trains() {
    for entry in there() {
        let prepared = entry.load(&folder(), 0).unwrap_or_else(|error| panic!("{error}"));
        let config = Config::new(0.01).with(|c| {
            c.schedule.warm_up_epochs = 1;
            c.schedule.stage_epochs = 1;
            c.schedule.epoch_steps = 1;
            c.schedule.temperatures = vec![0.5];
            c.networks.policy = [32, 32];
            c.networks.predictor = [32, 32];
            c.horizon = Some(5);
            c.batch = 512;
            c.schedule.ema = 0.1;
        });
        let started = Instant::now();
        let mut trainer = Trainer::new(&Engine::cpu(), &prepared.data, config).expect("fits");
        while trainer.epoch_blocking().expect("trains").is_some() {}
        let model = trainer.finish_blocking().expect("finishes");
        let traces = trainer.stepper_mut().traces_blocking(Part::Test).expect("evaluates");
        let asked = outcomes(&model, &prepared.data, Part::Test, f64::INFINITY).expect("asks");
        let same = traces.guess.iter().zip(&asked.traces.guess).filter(|(a, b)| a == b).count();
        assert!(same as f64 > 0.99 * traces.len() as f64, "{}: {same} of {}", entry.name, traces.len());
        println!("{}: {:.1} s", entry.name, started.elapsed().as_secs_f64());
    }
}
