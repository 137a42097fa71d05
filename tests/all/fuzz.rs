//! Spoilt input of random kinds: everything that reads bytes others may have written must refuse or read it, never
//! panic, hang or ask for all memory. Inputs are mutations of good ones, from a fixed seed, without guidance by
//! coverage: that is what `fuzz/` is for, whose readers these are, and whose findings `tests/corpus.rs` keeps.
//!
//! Each test runs for two seconds, or for `QUERENT_FUZZ_SECONDS`; it prints how many inputs it tried:
//! `QUERENT_FUZZ_SECONDS=600 cargo test --release --test all fuzz:: -- --nocapture --test-threads 1`
#![cfg(feature = "table")]

use crate::{readers, seeds};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
fn fuzz(name: &str, words: &[&[u8]]) {
    assert!(!words.is_empty(), "{name}: there is nothing to put in");
    let reader = readers::READERS.iter().find(|reader| reader.name == name).expect("a reader");
    let (accepts, seeds) = (reader.read, &*seeds::of(name));
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

#[test]
fn tables() {
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
    fuzz("tables", &words);
}

#[test]
fn problems() {
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
    fuzz("problems", &words);
}

/// What is put into files of tensors, whose headers are JSON with JSON inside.
const TENSORS: [&[u8]; 16] = [
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

#[test]
fn models() {
    fuzz("models", &TENSORS);
}

#[test]
fn prices() {
    let words: [&[u8]; 11] =
        [b",", b"\n", b"-1", b"nan", b"1e400", b"known", b"cost", b"column", b"yes", b"\"", b"\xff"];
    fuzz("prices", &words);
}

#[test]
fn checkpoints() {
    let own: [&[u8]; 2] = [b"\\\"epoch\\\":9", b"\\\"stage\\\":7"];
    fuzz("checkpoints", &[&TENSORS[..], &own].concat());
}

#[test]
fn images() {
    let words: [&[u8]; 4] = [b"\0\0\x08\x03", b"\xff\xff\xff\xff", b"\0\0\0\x01", b"\0"];
    fuzz("images", &words);
}

#[test]
fn runs() {
    let words: [&[u8]; 11] = [
        b"0",
        b"-1",
        b"1e999",
        b"null",
        b"[]",
        b"{}",
        b"\"",
        b",",
        b"\"points\":[]",
        b"18446744073709551616",
        b"1e-400",
    ];
    fuzz("runs", &words);
}

#[test]
fn answers() {
    let words: [&[u8]; 10] =
        [b"\t", b"\n", b"nan", b"inf", b"1e400", b"1,5", b"%", b"31.12.2024", b"\xc3\xa9", b"yes"];
    fuzz("answers", &words);
}

#[test]
fn lines() {
    let words: [&[u8]; 14] = [
        b"{\"answer\":null}\n",
        b"{\"answer\":[null]}\n",
        b"{\"answer\":\"yes\"}\n",
        b"{\"answer\":1e400}\n",
        b"{\"back\":true}\n",
        b"{\"why\":true}\n",
        b"{\"next\":true}\n",
        b"{\"back\":false}\n",
        b"\n",
        b"[",
        b"\"",
        b"-1",
        b"\xff",
        b"\\u0000",
    ];
    fuzz("lines", &words);
}

#[test]
fn comparisons() {
    let words: [&[u8]; 12] = [
        b"0",
        b"-1",
        b"1e999",
        b"1e308",
        b"null",
        b"[]",
        b"{}",
        b"\"points\":[]",
        b"\"name\":\"everything\"",
        b"../",
        b"18446744073709551616",
        b"\n",
    ];
    fuzz("comparisons", &words);
}
