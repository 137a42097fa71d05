//! The CPU engine has code for AVX2 and for AVX-512; a run ends with the same bits with either, so what the README
//! prints is what its readers get. On a machine without AVX-512 both runs are the same and this shows nothing.
#![cfg(feature = "report")] // the example draws

use crate::common::{TempDir, example, weights};
use querent::Model;
use std::process::{Command, Stdio};

#[test]
fn avx2_and_avx512_end_with_equal_bits() {
    // 55 features: three registers and a part of one, or six and a part.
    let (program, folder) = (example("cube_nm"), TempDir::new("instructions"));
    let model = |name: &str, instructions: Option<&str>, seed: &str| {
        let out = folder.0.join(name);
        let mut command = Command::new(&program);
        command.args(["--engine", "cpu", "--quick", "--epochs", "1", "--test-size", "200", "--seed", seed]);
        command.args(["--set", "epoch_steps=20", "--set", "horizon=8"]);
        command.arg("--out").arg(&out).stdout(Stdio::null());
        match instructions {
            Some(name) => command.env("QUERENT_CPU", name),
            None => command.env_remove("QUERENT_CPU"),
        };
        assert!(command.status().expect("the example starts").success());
        Model::load(out.join("model.safetensors")).unwrap_or_else(|error| panic!("{error}"))
    };
    let best = weights(&model("best", None, "0"));
    assert_eq!(weights(&model("avx2", Some("avx2"), "0")), best);
    // The control: another seed gives other bits.
    assert_ne!(weights(&model("other", None, "1")), best);
}
