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
