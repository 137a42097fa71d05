//! Good input for each reader, to begin from.

use crate::readers::{self, asked_model, asking_model, clinic, open, rows, start};
use querent::asking::fields::fields_of;
use querent::compare::{Cell, Curve, Outcome, Point, Table};
use querent::data::encoding::Metric;
use querent::data::table::{draft, profile};
use querent::data::{Dataset, Split};
use querent::methods::METHODS;
use querent::{Model, Problem, Step};
use std::io::Write;
use std::path::Path;

/// A table whose target is a number, with dates and decimal commas.
fn numbers() -> Vec<u8> {
    let row = |i: usize| {
        format!("\"{},{}\",{}.{}.2024,{}.5\n", i * 7 % 13, i % 10, 1 + i % 28, 1 + i % 12, i * 31 % 97)
    };
    let rows: String = (0..60).map(row).collect();
    format!("x,day,diagnosis\n{rows}").into_bytes()
}

/// Gzipped.
pub fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(bytes).expect("memory takes it");
    packed.finish().expect("memory takes it")
}

fn saved(model: &Model) -> Vec<u8> {
    let dir = crate::common::TempDir::new("fuzz-model");
    model.save(dir.0.join("m")).expect("saves");
    std::fs::read(dir.0.join("m")).expect("reads")
}

/// A model of each method, one with a table's encoding, one of two columns of which one is known.
fn models() -> Vec<Vec<u8>> {
    let trained = |method: usize, data: &Dataset| {
        let mut training = start(method, data);
        while training.epoch_blocking().expect("trains").is_some() {}
        saved(&training.finish_blocking().expect("finishes"))
    };
    let split = Split { x: vec![0.5; 20], y: vec![0, 1, 0, 1, 0, 1, 0, 1, 0, 1] };
    let problem = Problem::ungrouped(&[1.0], 2).expect("valid").with_known_columns(1);
    let plain = Dataset::new(problem, split.clone(), split.clone(), split).expect("valid");
    let data = rows();
    let mut models: Vec<Vec<u8>> = (0..METHODS.len()).map(|method| trained(method, &data)).collect();
    models.push(trained(0, &plain));
    models.push(saved(&asked_model(0).expect("trains")));
    models
}

fn checkpoint() -> Vec<u8> {
    let dir = crate::common::TempDir::new("fuzz-checkpoint");
    let path = dir.0.join("checkpoint");
    let mut training = start(0, &rows());
    training.epoch_blocking().expect("trains");
    training.epoch_blocking().expect("trains");
    training.save_blocking(&path).expect("saves");
    std::fs::read(path).expect("reads")
}

/// A comparison of three cells on a table, as [`readers::comparisons`] has it.
fn comparison() -> Vec<u8> {
    let methods = ["nmppg", "gdfs", "nothing"];
    let cell = |method: &str| Cell {
        table: "t".into(),
        method: method.into(),
        seed: 0,
        alpha: None,
        hash: format!("hash of {method}"),
        folder: format!("cells/{method}"),
    };
    let point = |index: u32| Point {
        tradeoff: 0.01 * f64::from(index),
        cost: 4.0 - f64::from(index),
        score: 0.9 - 0.1 * f64::from(index),
        score_error: 0.01,
        accuracy: 0.9,
        macro_f1: 0.8,
        loss: 0.3,
        acquisitions: 2.0,
        first: vec![("x".into(), 0.75)],
    };
    let outcome = |cell: &Cell| Outcome {
        hash: cell.hash.clone(),
        table: cell.table.clone(),
        method: cell.method.clone(),
        seed: cell.seed,
        metric: Metric::Accuracy,
        sizes: [100, 20, 20],
        features: 4,
        classes: 2,
        full_cost: 4.0,
        epochs: 3,
        curves: vec![Curve { name: cell.method.clone(), points: (0..4).map(point).collect(), paths: None }],
    };
    let cells = methods.map(cell);
    let table = Table { name: "t".into(), problem: "t.toml".into(), content: "c".into() };
    let mut lines = vec![serde_json::json!({ "tables": [table], "cells": &cells })];
    lines.extend(cells.iter().map(|cell| serde_json::to_value(outcome(cell)).expect("JSON")));
    lines.iter().map(|line| format!("{line}\n")).collect::<String>().into_bytes()
}

/// Cases of `ask --json --repeat` to their end: nothing can be had, with a wish or two in between; or the first word of each
/// field, or a number where it has none.
fn conversations() -> Vec<Vec<u8>> {
    let model = asking_model().expect("trains");
    let (mut nothing, mut session) = (String::new(), model.session());
    while let Step::Acquire(feature) = session.next() {
        session.unavailable(feature).expect("it was asked for");
        nothing += "{\"answer\":null}\n";
    }
    let (mut words, mut session) = (String::new(), model.session());
    while let Step::Acquire(feature) = session.next() {
        let fields = fields_of(&model, feature);
        let cells: Vec<String> =
            fields.iter().map(|field| field.words().first().cloned().unwrap_or("1.5".into())).collect();
        let told: Vec<&str> = cells.iter().map(String::as_str).collect();
        let answer = session.tell(feature, &told).map_or(serde_json::Value::Null, |_| cells.into());
        if answer.is_null() {
            session.unavailable(feature).expect("it was asked for");
        }
        words += &format!("{}\n", serde_json::json!({ "answer": answer }));
    }
    assert!(nothing.lines().count() > 2, "nothing is asked for");
    let wishes = "{\"why\":true}\n{\"next\":true}\n";
    vec![format!("{nothing}{wishes}{words}").into_bytes(), words.into_bytes()]
}

/// The good input of a reader.
pub fn of(reader: &str) -> Vec<Vec<u8>> {
    let images = [&[0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 2][..], &[1, 2, 3, 4, 5, 6, 7, 8]].concat();
    match reader {
        "tables" => vec![
            clinic(40),
            clinic(60).iter().map(|&byte| if byte == b',' { b';' } else { byte }).collect(),
            numbers(),
            b"x,diagnosis\n\"1\n\",a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n".to_vec(),
            packed(&clinic(40)),
        ],
        "problems" => {
            let found = profile(open(&clinic(120)).expect("reads"), readers::TARGET).expect("reads");
            vec![draft(Path::new("t.csv"), readers::TARGET, &found, &[]).into_bytes()]
        }
        "prices" => {
            let found = profile(open(&clinic(40)).expect("reads"), readers::TARGET).expect("reads");
            let name = &found.columns[0].name;
            vec![format!("column,cost,group,unit,known\n{name},2.5,g,mm,no\n").into_bytes()]
        }
        "models" => models(),
        "checkpoints" => vec![checkpoint()],
        "images" => vec![packed(&images), images],
        "runs" => vec![include_bytes!("corpus/runs/seed").to_vec()],
        "answers" => {
            vec![b"1.5\n\nyes\n2\t3\n36,6\n2024-01-31\nwinter\n".to_vec(), b"1\n2\n3\n4\n5\n6\n".to_vec()]
        }
        "lines" => conversations(),
        "comparisons" => vec![comparison()],
        other => panic!("there is no reader {other}"),
    }
}
