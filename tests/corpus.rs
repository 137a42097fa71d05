//! What the fuzzer has found worth keeping (`fuzz/corpus`), and bombs made here, through every reader: no panic, and no
//! more memory than a stated multiple of the input. A binary of its own, since memory is counted by its allocator.
#![cfg(feature = "table")]

#[path = "all/common/mod.rs"]
mod common;
mod counting;
#[path = "../fuzz/readers.rs"]
mod readers;
#[path = "../fuzz/seeds.rs"]
mod seeds;

use std::io::Write;
use std::path::Path;

/// Bytes that a reader may hold for each byte of its input, and whatever the input. docs/reliability.md promises it.
const MULTIPLE: usize = 1_000;
const ANYWAY: usize = 128 << 20;

/// Reads, and says how much memory that took.
fn read(reader: &readers::Reader, what: &str, bytes: &[u8]) -> bool {
    let mut accepted = false;
    let peak = counting::peak(|| accepted = (reader.read)(bytes));
    let most = ANYWAY + MULTIPLE * bytes.len();
    assert!(peak <= most, "{}: {what} of {} bytes takes {peak}, more than {most}", reader.name, bytes.len());
    accepted
}

fn json(depth: usize) -> Vec<u8> {
    [vec![b'['; depth], vec![b']'; depth]].concat()
}

/// A safetensors file whose header promises a tensor of so many numbers.
fn promises(metadata: &str, numbers: u64) -> Vec<u8> {
    let header = format!(
        r#"{{"__metadata__":{metadata},"policy.0.weight":{{"dtype":"F32","shape":[{numbers}],"data_offsets":[0,{}]}}}}"#,
        numbers.saturating_mul(4)
    );
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[0; 64]].concat()
}

/// Bytes that unpack to very many: a word over and over.
fn bomb(word: &[u8], times: usize) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let block = word.repeat(4096);
    for _ in 0..times / 4096 {
        packed.write_all(&block).expect("memory takes it");
    }
    packed.finish().expect("memory takes it")
}

#[test]
fn everything_kept_is_read_or_refused_within_its_memory() {
    // What is made once, on first use, is nobody's input.
    for reader in &readers::READERS {
        (reader.read)(b"x");
    }
    let reader = |name: &str| readers::READERS.iter().find(|reader| reader.name == name).expect("a reader");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    let (mut files, mut accepted) = (0, 0);
    for reader in &readers::READERS {
        for seed in seeds::of(reader.name) {
            assert!(read(reader, "a seed", &seed), "{}: a seed is refused", reader.name);
        }
        let Ok(folder) = std::fs::read_dir(corpus.join(reader.name)) else { continue };
        for entry in folder {
            let path = entry.expect("lists").path();
            let bytes = std::fs::read(&path).expect("reads");
            accepted += usize::from(read(reader, &path.display().to_string(), &bytes));
            files += 1;
        }
    }
    println!("{files} files of the corpus, {accepted} of them accepted");
    assert!(files > accepted && accepted > 0, "the corpus is not there, or all alike");

    // 1 GiB of one cell, of one cell that is quoted, of columns, and of zeros, in a megabyte or so.
    let giant = 1 << 30;
    for word in [&b"a"[..], b"\"a", b"a,", b"\0"] {
        assert!(!read(reader("tables"), "a packed bomb", &bomb(word, giant / word.len())));
        assert!(!read(reader("prices"), "a packed bomb", &bomb(word, giant / word.len())));
    }
    let header = [&[0u8, 0, 8, 3][..], &[0, 0, 0xff, 0xff], &[0, 0, 0, 28], &[0, 0, 0, 28]].concat();
    assert!(!read(reader("images"), "promised images", &header));
    assert!(!read(reader("images"), "a packed bomb", &bomb(&[0, 0, 8, 1, 0, 0, 0, 1], giant / 8)));
    for depth in [1_000, 1_000_000] {
        for name in ["runs", "problems", "answers", "models", "checkpoints", "lines", "comparisons"] {
            assert!(!read(reader(name), "deep brackets", &json(depth)), "{name}");
        }
        let deep = String::from_utf8(json(depth)).expect("text");
        let nested = format!("a = {deep}");
        assert!(!read(reader("problems"), "deep TOML", nested.as_bytes()));
        // As far as it is looked into: a model's description, and each part of a checkpoint.
        let model = format!(r#"{{"format":"querent model 2","querent":"0","model":{deep:?}}}"#);
        assert!(!read(reader("models"), "deep metadata", &promises(&model, 16)));
        for part in ["config", "progress", "stage"] {
            let said = |key: &str| if key == part { deep.as_str() } else { "null" };
            let metadata = format!(
                r#"{{"format":"querent checkpoint 4","method":"nmppg","config":{:?},"progress":{:?},"stage":{:?}}}"#,
                said("config"),
                said("progress"),
                said("stage")
            );
            assert!(!read(reader("checkpoints"), "deep metadata", &promises(&metadata, 16)), "{part}");
        }
    }
    for numbers in [1 << 40, u64::MAX / 4, u64::MAX] {
        for name in ["models", "checkpoints"] {
            assert!(!read(reader(name), "terabytes", &promises("{}", numbers)), "{name}");
            let length = [&numbers.to_le_bytes()[..], b"{}"].concat();
            assert!(!read(reader(name), "a header of terabytes", &length), "{name}");
        }
    }
    // A checkpoint of another architecture, and one of another method.
    let data = readers::rows();
    let folder = common::TempDir::new("corpus");
    for method in 1..querent::methods::METHODS.len() {
        let mut training = readers::start(method, &data);
        training.epoch_blocking().expect("trains");
        let path = folder.0.join("other");
        training.save_blocking(&path).expect("saves");
        let bytes = std::fs::read(&path).expect("reads");
        assert!(!read(reader("checkpoints"), "another method's checkpoint", &bytes));
    }
}

/// Writes the good input where the fuzzer begins: `QUERENT_FUZZ_SEEDS=fuzz/seeds cargo test --release --test corpus -- --ignored`.
#[test]
#[ignore = "writes files for the fuzzer"]
fn write_the_seeds() {
    let folder = std::env::var("QUERENT_FUZZ_SEEDS").expect("QUERENT_FUZZ_SEEDS says where");
    for reader in &readers::READERS {
        let place = Path::new(&folder).join(reader.name);
        std::fs::create_dir_all(&place).expect("a folder");
        for (index, seed) in seeds::of(reader.name).iter().enumerate() {
            std::fs::write(place.join(format!("seed-{index}")), seed).expect("writes");
        }
    }
}
