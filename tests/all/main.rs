//! The integration tests, in one binary, because linking one for each file takes most of CI's time. Tests that need a
//! process of their own stand beside it: `tests/*.rs`, each of which says why. Run one file by its name:
//! `cargo test --release --test all golden::`.

// What they share.
#[cfg(all(feature = "cli", unix))]
mod browser;
#[cfg(feature = "cli")]
mod command;
mod common;
mod golden_step;
mod host;
mod models;
#[cfg(feature = "table")]
#[path = "../../fuzz/readers.rs"]
mod readers;
#[path = "../../examples/replay/step/mod.rs"]
mod replay;
mod rig;
mod runs;
#[cfg(feature = "table")]
#[path = "../../fuzz/seeds.rs"]
mod seeds;
mod spoil;

mod aaco;
mod advance;
mod auto;
mod available;
mod bad_input;
mod bad_tables;
mod catalog;
mod commands;
mod compare;
mod conversation;
mod difa;
mod difa_golden;
mod difa_kernels;
mod digests;
mod dime;
mod dime_golden;
mod dime_kernels;
mod embedding;
mod errors;
mod failing;
mod fixed;
mod flow;
mod frames;
mod full_disk;
mod fuzz;
mod gdfs;
mod gdfs_golden;
mod gdfs_kernels;
mod golden;
mod gradients;
mod gsmrl;
mod gsmrl_golden;
mod gsmrl_kernels;
mod info;
mod init;
mod instructions;
mod layers;
mod licences;
mod lockstep;
mod memory;
mod model_file;
mod model_python;
mod noop;
mod ol;
mod ol_golden;
mod ol_kernels;
mod outcomes;
mod page;
mod range;
mod readme;
mod report;
mod resume;
mod same_policy;
mod sefa;
mod sefa_golden;
mod sefa_kernels;
mod selection;
mod session;
mod shaders;
mod steps;
mod studio;
mod threads;
#[cfg(all(feature = "cli", unix))]
mod tint;
mod trainer;
mod training_runs;
mod using;
