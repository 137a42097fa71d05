//! The README's tutorial, command by command, as it stands there.
#![cfg(all(feature = "cli", unix))]

use crate::common::{TempDir, assets};
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands of the tutorial, each with the output that is shown below it. Lines that begin with `$ `
/// are commands; `…` in the output stands for anything.
fn tutorial() -> Vec<(String, Vec<String>)> {
    let readme =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("reads");
    let mut steps: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in readme.lines() {
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ if !inside => {}
            line => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push((command.to_string(), Vec::new())),
                (None, Some((_, output))) => output.push(line.to_string()),
                (None, None) => panic!("output without a command: {line}"),
            },
        }
    }
    steps
}

#[test]
fn the_tutorial_works_as_written() {
    let dir = TempDir::new("readme");
    std::fs::create_dir_all(dir.0.join("assets/clinic")).expect("a folder");
    for name in ["clinic.csv", "prices.csv"] {
        std::fs::copy(assets().join("clinic").join(name), dir.0.join("assets/clinic").join(name))
            .expect("copies");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_querent"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("its folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let steps = tutorial();
    for verb in ["init", "train", "eval", "ask", "report"] {
        assert!(
            steps.iter().any(|(command, _)| command.contains(&format!("querent {verb} "))),
            "no `{verb}`"
        );
    }
    for (command, shown) in steps {
        let done = Command::new("sh")
            .args(["-c", &command])
            .current_dir(&dir.0)
            .env("PATH", &path)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{command}\n{out}{err}");
        // Numbers of a trained model differ between machines; words and layout do not.
        let plain = |line: &str| -> String {
            let kept = line.chars().filter(|c| !c.is_ascii_digit() && !"█.,%- ←".contains(*c));
            kept.collect()
        };
        let exact = command.contains(" init ") || command.starts_with("head ");
        let lines: Vec<&str> = out.lines().collect();
        for line in shown.iter().filter(|line| !line.contains('…') && !line.is_empty()) {
            let there = lines.iter().any(|l| if exact { l == line } else { plain(l) == plain(line) });
            // What was asked, and the path through it, is the model's business.
            let is_talk = command.contains(" ask ") && !line.starts_with("Known");
            assert!(there || is_talk, "{command}: `{line}` is not in:\n{out}");
        }
        if command.contains(" ask ") {
            assert!(out.lines().last().is_some_and(|line| line.starts_with("answer: ")), "{out}");
        }
    }
    assert!(dir.0.join("runs/clinic/report.html").is_file());
}
