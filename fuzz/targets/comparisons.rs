#![no_main]

#[path = "../readers.rs"]
#[allow(dead_code)] // the other readers
mod readers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    readers::comparisons(bytes);
});
