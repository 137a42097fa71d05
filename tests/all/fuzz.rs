//! Spoilt input of random kinds: the readers of tables, problems and models must refuse or read it, never
//! panic, hang or ask for all memory. Inputs are mutations of good ones, from a fixed seed; there is no
//! guidance by coverage (that needs a nightly compiler).
//!
//! Each test runs for two seconds, or for `QUERENT_FUZZ_SECONDS`; it prints how many inputs it tried:
//! `QUERENT_FUZZ_SECONDS=600 cargo test --release --test all fuzz:: -- --nocapture --test-threads 1`
#![cfg(feature = "table")]

use crate::common::{self, assets};
use querent::data::table::{Schema, TableReader, draft, prepare, profile};
use querent::data::{Dataset, Split};
use querent::nmppg::{Config, Trainer};
use querent::{Engine, Model, Problem, Step};
use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// One to eight changes: bytes flipped, set, cut out, doubled, moved, words put in, the end cut off.
fn mutate(random: &mut Random, seeds: &[Vec<u8>], words: &[&[u8]]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(8) {
        let at = random.below(bytes.len() + 1);
        let to = (at + random.below(24)).min(bytes.len());
        match random.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            1 if at < bytes.len() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..to)),
            3 => {
                let part = bytes[at..to].to_vec();
                let place = random.below(bytes.len() + 1);
                bytes.splice(place..place, part);
            }
            4 | 5 => {
                let word = words[random.below(words.len())];
                bytes.splice(at..at, word.iter().copied());
            }
            6 => {
                let word = words[random.below(words.len())];
                bytes.splice(at..to, word.iter().copied());
            }
            7 if random.below(8) == 0 => bytes.truncate(at),
            _ => {
                // A line of another seed.
                let other = &seeds[random.below(seeds.len())];
                let start = random.below(other.len());
                let end =
                    other[start..].iter().position(|&b| b == b'\n').map_or(other.len(), |n| start + n + 1);
                let part = other[start..end.min(start + 400)].to_vec();
                bytes.splice(at..at, part);
            }
        }
    }
    bytes
}

/// Tries mutations until the time is over; what panics is shown. Says how many were tried and how many were
/// accepted.
fn fuzz(name: &str, seeds: &[Vec<u8>], words: &[&[u8]], accepts: impl Fn(&[u8]) -> bool) {
    let seconds = std::env::var("QUERENT_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2);
    for seed in seeds {
        assert!(accepts(seed), "{name}: a seed is refused");
    }
    let mut random = Random(7);
    let (mut tried, mut accepted, mut longest) = (0u64, 0u64, Duration::ZERO);
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(seconds) {
        let input = mutate(&mut random, seeds, words);
        let begun = Instant::now();
        match catch_unwind(AssertUnwindSafe(|| accepts(&input))) {
            Ok(yes) => accepted += u64::from(yes),
            Err(_) => panic!("{name}: input {tried} panics: {:?}", String::from_utf8_lossy(&input)),
        }
        longest = longest.max(begun.elapsed());
        tried += 1;
    }
    println!("{name}: {tried} inputs in {seconds} s, {accepted} accepted, the slowest took {longest:?}");
    assert!(tried > 0 && accepted > 0 && accepted < tried, "{name}: the mutations are all alike");
}

fn clinic(rows: usize) -> Vec<u8> {
    let text = std::fs::read_to_string(assets().join("clinic/clinic.csv")).expect("reads");
    text.lines().take(rows + 1).flat_map(|line| [line, "\n"]).collect::<String>().into_bytes()
}

/// A table whose target is a number, with dates and decimal commas.
fn numbers() -> Vec<u8> {
    let row = |i: usize| {
        format!("\"{},{}\",{}.{}.2024,{}.5\n", i * 7 % 13, i % 10, 1 + i % 28, 1 + i % 12, i * 31 % 97)
    };
    let rows: String = (0..60).map(row).collect();
    format!("x,day,diagnosis\n{rows}").into_bytes()
}

fn open(bytes: &[u8]) -> querent::Result<TableReader> {
    TableReader::read(Path::new("t.csv"), Cursor::new(bytes.to_vec()), None)
}

#[test]
fn tables() {
    let seeds = [
        clinic(40),
        clinic(60).iter().map(|&byte| if byte == b',' { b';' } else { byte }).collect(),
        numbers(),
        b"x,diagnosis\n\"1\n\",a\n2,b\n3,a\n4,b\n5,a\n6,b\n7,a\n8,b\n".to_vec(),
    ];
    let words: [&[u8]; 21] = [
        b"1.234,5",
        b"$-",
        b"30.02.2024",
        b",",
        b"\"",
        b"\n",
        b"\r\n",
        b"\"\"",
        b"\xef\xbb\xbf",
        b"\xff",
        b"\0",
        b"NA",
        b"nan",
        b"inf",
        b"-1e400",
        b"1e38",
        b"99999999999999999999",
        b";",
        b"\t",
        b"diagnosis",
        b"0.0",
    ];
    fuzz("tables", &seeds, &words, |bytes| {
        let Ok(found) = open(bytes).and_then(|table| profile(table, "diagnosis")) else { return false };
        let text = draft(Path::new("t.csv"), "diagnosis", &found, &[]);
        // What is drafted is always TOML; it may be refused only for what it says.
        match Schema::parse(&text) {
            Ok(schema) => open(bytes).and_then(|table| prepare(table, &schema)).is_ok(),
            Err(error) => {
                assert!(!error.message().contains("TOML parse error"), "{error}\n{text}");
                false
            }
        }
    });
}

#[test]
fn problems() {
    let table = clinic(120);
    let found = profile(open(&table).expect("reads"), "diagnosis").expect("reads");
    let drafted = draft(Path::new("t.csv"), "diagnosis", &found, &[]).into_bytes();
    let words: [&[u8]; 24] = [
        b"bins = 3\n",
        b"edges = [1, 2]\n",
        b"decimal = \",\"\n",
        b"kind = \"date\"\n",
        b"=",
        b"[",
        b"]",
        b"\"",
        b"\n",
        b"nan",
        b"-inf",
        b"1e999",
        b"-1",
        b"true",
        b"ignore = true\n",
        b"known = true\n",
        b"kind = \"ordinal\"\n",
        b"values = [\"a\"]\n",
        b"[[feature]]\n",
        b"[split]\n",
        b"cost = 0\n",
        b"group = \"g\"\n",
        b"'''",
        b"18446744073709551616",
    ];
    fuzz("problems", &[drafted], &words, |bytes| {
        let Ok(text) = std::str::from_utf8(bytes) else { return false };
        let Ok(schema) = Schema::parse(text) else { return false };
        open(&table).and_then(|table| prepare(table, &schema)).is_ok()
    });
}

#[test]
fn models() {
    let table = clinic(200);
    let found = profile(open(&table).expect("reads"), "diagnosis").expect("reads");
    let schema = Schema::parse(&draft(Path::new("t.csv"), "diagnosis", &found, &[])).expect("valid");
    let prepared = prepare(open(&table).expect("reads"), &schema).expect("valid");
    let config = Config::new(0.02).with(|c| {
        c.schedule.warm_up_epochs = 0;
        c.schedule.stage_epochs = 1;
        c.schedule.epoch_steps = 1;
        c.schedule.temperatures = vec![0.5];
        c.networks.policy = [4, 4];
        c.networks.predictor = [4, 4];
    });
    let bytes_of = |data: &Dataset, encoding| {
        let mut trainer = Trainer::new(&Engine::cpu(), data, config.clone()).expect("valid");
        while trainer.epoch_blocking().expect("trains").is_some() {}
        let model = trainer.finish_blocking().expect("finishes");
        let model = match encoding {
            Some(encoding) => model.with_encoding(encoding).expect("fits"),
            None => model,
        };
        let dir = common::TempDir::new("fuzz-model");
        model.save(dir.0.join("m")).expect("saves");
        std::fs::read(dir.0.join("m")).expect("reads")
    };
    let split = Split { x: vec![0.5; 20], y: vec![0, 1, 0, 1, 0, 1, 0, 1, 0, 1] };
    let problem = Problem::ungrouped(&[1.0], 2).expect("valid").with_known_columns(1);
    let plain = Dataset::new(problem, split.clone(), split.clone(), split).expect("valid");
    let seeds = [bytes_of(&prepared.data, Some(prepared.encoding.clone())), bytes_of(&plain, None)];
    let words: [&[u8]; 16] = [
        b"0",
        b"9",
        b"-",
        b"null",
        b"1e999",
        b"4294967296",
        b"[]",
        b"{}",
        b"\\\"",
        b",",
        b"\xff\xff\xff\x7f",
        b"\0\0\0\0",
        b"F32",
        b"known_columns\\\":9",
        b"\\\"flag\\\":true",
        b"\\\"columns\\\":[0,0]",
    ];
    fuzz("models", &seeds, &words, |bytes| {
        let Ok(model) = Model::from_bytes(bytes) else { return false };
        // A model that is read can be asked.
        let mut session = model.session();
        while let Step::Acquire(feature) = session.next() {
            let told = match model.encoding() {
                Some(encoding) => {
                    let cells = vec!["1"; encoding.features[feature].len()];
                    session.tell(feature, &cells).is_ok()
                }
                None => session.observe(feature, 0.5).is_ok(),
            };
            if !told && session.unavailable(feature).is_err() {
                break;
            }
        }
        assert!(session.best() < model.problem().classes().len());
        true
    });
}
