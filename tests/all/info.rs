//! The `querent info` command, as people run it.
#![cfg(feature = "cli")]

use crate::common::{self, TempDir};
use querent::engine::kernels::Target;
use querent::methods::kernels;
use std::process::{Command, Output, Stdio};

fn querent(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_querent"));
    command.args(arguments).env_remove("RUST_LOG").stdin(Stdio::null());
    command
}

/// Runs a command: its exit code, standard output and standard error.
fn run(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the command starts");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (status.code(), text(stdout), text(stderr))
}

/// The line of a table that starts with a word.
fn line<'a>(text: &'a str, start: &str) -> Option<&'a str> {
    text.lines().find(|line| line.trim_start().starts_with(start))
}

#[test]
fn info_lists_adapters_engine_and_limits() {
    let (code, out, err) = run(&mut querent(&["info", "--no-measure"]));
    assert_eq!(code, Some(0), "{err}");
    assert!(
        line(&out, "auto takes:").is_some_and(|line| line.contains("cpu") || line.contains("gpu")),
        "{out}"
    );
    assert!(line(&out, "because:").is_some(), "{out}");
    assert!(!out.contains("per second"), "{out}");
    if common::gpu().is_some() {
        assert!(line(&out, "0 ").is_some_and(|line| line.split_whitespace().count() >= 4), "{out}");
        // Both columns: the default, and the adapter's, which has at least the default.
        let row = line(&out, "max_compute_invocations_per_workgroup").expect("the limit");
        let numbers: Vec<u32> = row.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        assert!(numbers.len() >= 2 && numbers[0] == 256 && numbers[1] >= 256, "{row}");
        for feature in ["TIMESTAMP_QUERY", "SUBGROUP", "SHADER_F16", "PIPELINE_CACHE"] {
            assert!(line(&out, feature).is_some_and(|l| l.ends_with("yes") || l.ends_with("no")), "{out}");
        }
        // The columns line up: every row of the table ends at the same place.
        let rows: Vec<&str> = out.lines().skip_while(|l| !l.starts_with("Limits")).skip(1).collect();
        let rows: Vec<&str> = rows.into_iter().take_while(|l| !l.is_empty()).collect();
        assert!(rows.len() == 10 && rows.iter().all(|row| row.len() == rows[0].len()), "{out}");
    }
}

#[test]
fn info_measures_the_engines() {
    let (code, out, err) = run(&mut querent(&["info"]));
    assert_eq!(code, Some(0), "{err}");
    let rates: Vec<&str> = out.lines().skip_while(|line| !line.contains("per second")).skip(1).collect();
    let rate = |engine: &str| {
        let row = rates.iter().find(|line| line.trim_start().starts_with(engine))?;
        row.split_whitespace().last()?.parse::<f64>().ok()
    };
    assert!(rate("cpu (").is_some_and(|rate| rate > 0.0), "{out}");
    if common::gpu().is_some() {
        assert!(rate("gpu (").is_some_and(|rate| rate > 0.0), "{out}");
        let is_software = line(&out, "0 ").is_some_and(|line| line.contains("  software  "));
        assert_eq!(rates.iter().any(|line| line.contains("a software driver")), is_software, "{out}");
    }
}

/// An adapter, kernel by kernel: a tiny step of a shape, shown and written.
#[test]
fn info_measures_an_adapter() {
    if common::gpu().is_none() {
        return;
    }
    let dir = TempDir::new("info-measure");
    let file = dir.0.join("gpu.json");
    let tiny = [
        "info",
        "--measure",
        "--engine",
        "gpu",
        "--shapes",
        "syn1",
        "--batches",
        "8,16",
        "--seconds",
        "0.01",
    ];
    let (code, out, err) = run(querent(&tiny).arg("-o").arg(&file));
    assert_eq!(code, Some(0), "{err}");
    assert!(err.contains("measuring dispatches") && err.contains("measuring syn1, batch 16"), "{err}");
    assert!(out.contains("a dispatch that waits") && out.contains("syn1, batch 8: its kernels"), "{out}");
    let report: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(&file).expect("reads")).expect("JSON");
    for cost in ["dispatch_microseconds", "round_trip_microseconds", "copy_gigabytes_per_second"] {
        assert!(report["costs"][cost].as_f64().is_some_and(|cost| cost > 0.0), "{cost}: {report}");
    }
    assert!(
        report["device"]["limits"]["max_buffer_size"].as_u64().is_some_and(|limit| limit > 0),
        "{report}"
    );
    let steps = report["steps"].as_array().expect("steps");
    assert_eq!(steps.iter().map(|step| step["batch"].as_u64()).collect::<Vec<_>>(), [Some(8), Some(16)]);
    for step in steps {
        let kernels = step["kernels"].as_array().expect("kernels");
        let sum = |of: &str| kernels.iter().filter_map(|kernel| kernel[of].as_f64()).sum::<f64>();
        // Every dispatch is of a kernel, and all of them together are what the last line says.
        assert_eq!(sum("calls"), step["dispatches"].as_f64().expect("a number"), "{step}");
        assert!((sum("gflop") - step["all_kernels"]["gflop"].as_f64().expect("a number")).abs() < 1e-9);
        assert!(sum("milliseconds") > 0.0 && sum("megabytes") > 0.0, "{step}");
        for speed in ["instances_per_second", "cpu_instances_per_second", "recording_microseconds"] {
            assert!(step[speed].as_f64().is_some_and(|speed| speed > 0.0), "{speed}: {step}");
        }
    }
}

/// What cannot be measured or written is known before anything is measured.
#[test]
fn what_cannot_be_measured_is_refused_at_once() {
    let dir = TempDir::new("info-refused");
    let nowhere = dir.0.join("no").join("gpu.json");
    let nowhere = nowhere.to_str().expect("text");
    for (arguments, what) in [
        (&["--measure", "--engine", "cpu"][..], "--measure is about adapters"),
        (&["--measure", "--engine", "gpu", "--seconds", "0"], "--seconds is 0"),
        (&["--measure", "--engine", "gpu", "--batches", "128,0"], "--batches has a 0"),
        (&["--measure", "--shapes", "syn9"], "no shape is called `syn9`; there are syn1, diabetes"),
        (&["--measure", "--engine", "gpu", "-o", nowhere], "there is no folder"),
        (&["-o", "gpu.json"], "--measure"),
        (&["--measure", "--no-measure"], "cannot be used with"),
    ] {
        let (code, out, err) = run(&mut querent(&[&["info"][..], arguments].concat()));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains(what), "{arguments:?}: {err}");
    }
    // No hardware: a software driver is measured only if that is what was asked for.
    let (code, _, err) = run(querent(&["info", "--measure"])
        .envs([("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")]));
    if cfg!(target_os = "linux") {
        assert_eq!(code, Some(2));
        assert!(err.contains("--engine gpu measures a software driver"), "{err}");
    }
}

/// Adapters come from Vulkan alone on Linux, and its loader can be told to find none.
#[cfg(target_os = "linux")]
#[test]
fn without_an_adapter_info_says_how_to_get_one() {
    let none = [("VK_DRIVER_FILES", "/nonexistent"), ("VK_ICD_FILENAMES", "/nonexistent")];
    let (code, out, err) = run(querent(&["info", "--no-measure"]).envs(none));
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Adapters: none"), "{out}");
    assert!(line(&out, "auto takes: cpu (").is_some(), "{out}");
    assert!(out.contains("mesa-vulkan-drivers") && out.contains("The CPU engine serves"), "{out}");
}

#[test]
fn shaders_are_written_as_compiled() {
    let dir = TempDir::new("info-shaders");
    let folder = dir.0.join("made/for this");
    let (code, out, err) = run(querent(&["info", "--shaders"]).arg(&folder));
    assert_eq!(code, Some(0), "{err}");
    assert_eq!(out, format!("{} shaders written to {}\n", kernels().count(), folder.display()));
    for kernel in kernels() {
        let path = folder.join(format!("{}.wgsl", kernel.name));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        assert_eq!(text, kernel.source(Target::Gpu), "{}", kernel.name);
    }
    // Nothing else is left, and a second time is no different.
    let inside = |folder: &std::path::Path| {
        std::fs::read_dir(folder).expect("lists").flatten().map(|entry| entry.path())
    };
    let count =
        || inside(&folder).map(|path| if path.is_dir() { inside(&path).count() } else { 1 }).sum::<usize>();
    assert_eq!(count(), kernels().count());
    assert_eq!(run(querent(&["info", "--shaders"]).arg(&folder)).0, Some(0));
    assert_eq!(count(), kernels().count());
}

/// Where it is asked for, compiled pipelines are kept and used again; a file that is none, or a folder that
/// cannot be written, is no failure.
#[test]
fn pipelines_are_kept_where_asked_for() {
    if common::gpu().is_none() {
        return;
    }
    let dir = TempDir::new("pipelines");
    let folder = dir.0.join("new").join("cache");
    let measure = |folder: &std::path::Path| {
        let (code, _, err) = run(querent(&["info"]).env("QUERENT_PIPELINE_CACHE", folder));
        assert_eq!(code, Some(0), "{err}");
    };
    let files = || std::fs::read_dir(&folder).map_or(0, |entries| entries.count());
    measure(&folder);
    if files() == 0 {
        return; // a backend without such a cache
    }
    let file = std::fs::read_dir(&folder).expect("lists").next().expect("a file").expect("reads").path();
    let first = std::fs::read(&file).expect("reads");
    // A header at least: software drivers have no more to keep.
    assert!(first.len() > 32, "{} bytes", first.len());
    measure(&folder);
    assert_eq!((files(), std::fs::read(&file).expect("reads").len()), (1, first.len()));
    std::fs::write(&file, "no pipelines").expect("writes");
    measure(&folder);
    assert!(std::fs::read(&file).expect("reads").len() > 32);
    std::fs::write(dir.0.join("file"), "kept").expect("writes");
    measure(&dir.0.join("file"));
    assert_eq!(std::fs::read_to_string(dir.0.join("file")).expect("reads"), "kept");
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let dir = TempDir::new("info-unwritable");
    std::fs::write(dir.0.join("file"), "kept").expect("writes");
    let folder = dir.0.join("file").join("below");
    let (code, out, err) = run(querent(&["info", "--shaders"]).arg(&folder));
    assert_eq!((code, out.as_str()), (Some(2), ""));
    assert!(err.starts_with("error: ") && err.contains(&folder.display().to_string()), "{err}");
    assert_eq!(dir.files(), ["file"]);
    assert_eq!(std::fs::read_to_string(dir.0.join("file")).expect("reads"), "kept");
}

#[test]
fn wrong_arguments_end_with_2() {
    for arguments in [&["nonsense"][..], &["info", "--shaders"], &["info", "--unknown"], &[]] {
        let (code, out, err) = run(&mut querent(arguments));
        assert_eq!((code, out.as_str()), (Some(2), ""), "{arguments:?}");
        assert!(err.contains("--help"), "{arguments:?}: {err}");
    }
}

#[test]
fn help_has_examples() {
    for arguments in [&["--help"][..], &["info", "--help"]] {
        let (code, out, _) = run(&mut querent(arguments));
        assert_eq!(code, Some(0));
        assert!(out.contains("Examples:\n  querent ") && out.contains("\n  querent info"), "{out}");
    }
}

/// A reader that goes away (`querent info | head -1`) is no failure.
#[test]
fn a_broken_pipe_is_no_panic() {
    let mut child = querent(&["info", "--no-measure"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    let err = String::from_utf8_lossy(&stderr);
    assert_eq!(status.code(), Some(0), "{err}");
    assert!(!err.contains("panicked"), "{err}");
}
