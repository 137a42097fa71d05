//! The README's tutorial, command by command, as it stands there.
#![cfg(all(feature = "cli", unix))]

use crate::common::{TempDir, assets};
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands of the tutorial, each with the output that is shown below it, all of it. Lines that begin with
/// `$ ` are commands.
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

/// Whether training ends in the README's bits on this machine, if the CPU engine does it: with AVX2 and fused
/// products it does, and where `ln` and `cos` are those of the same library.
fn has_known_bits() -> bool {
    #[cfg(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu"))]
    return pulp::x86::V3::try_new().is_some();
    #[cfg(not(all(target_arch = "x86_64", target_os = "linux", target_env = "gnu")))]
    false
}

/// What is wrong with what a command printed, if anything is: with known bits, every difference from what is shown.
fn complaint(command: &str, shown: &[String], out: &str, known: bool) -> Option<String> {
    let printed: Vec<&str> = out.lines().collect();
    // `init` trains nothing.
    if known || command.contains(" init ") {
        let pair = |at: usize| (shown.get(at).map(String::as_str), printed.get(at).copied());
        let mut pairs = (0..shown.len().max(printed.len())).map(pair);
        let (shown, printed) = pairs.find(|(shown, printed)| shown != printed)?;
        return Some(format!("shown is {shown:?}, printed {printed:?}"));
    }
    // What is asked of rows, and the answers, are the model's business; their columns are not.
    let shown = if command.contains(" predict ") { &shown[..shown.len().min(1)] } else { shown };
    // Numbers of a trained model differ between machines; words and layout do not.
    let plain = |line: &str| -> String {
        let kept = line.chars().filter(|c| !c.is_ascii_digit() && !"█.,%- ←".contains(*c));
        kept.collect()
    };
    // Which questions are asked is the model's business; how one is asked, and its cost, is not.
    let is_question = |line: &str| {
        let is_other = line.contains('%') || line.starts_with("Known ") || line.starts_with("answer: ");
        command.contains(" ask ") && !is_other
    };
    let name = |line: &str| line.trim_start().split([' ', ',']).next().map(String::from);
    let absent = shown.iter().find(|line| match is_question(line) {
        true => printed.iter().any(|l| name(l) == name(line)) && !printed.contains(&line.as_str()),
        false => !line.is_empty() && !printed.iter().any(|l| plain(l) == plain(line)),
    });
    absent.map(|line| format!("{line:?} is not printed"))
}

/// Runs a line of shell, with this on its standard input.
fn run(folder: &Path, command: &str, input: &str) -> String {
    use std::io::Write;
    let binary = Path::new(env!("CARGO_BIN_EXE_querent"));
    let path = format!(
        "{}:{}",
        binary.parent().expect("its folder").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    let mut child = Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", &path)
        .env_remove("RUST_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a shell");
    // A command that needs no input may have ended before it is written.
    let _ = child.stdin.take().expect("piped").write_all(input.as_bytes());
    let done = child.wait_with_output().expect("it ends");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(0), "{command}\n{out}{err}");
    out.into_owned()
}

#[test]
fn the_tutorial_works_as_written() {
    let dir = TempDir::new("readme");
    std::fs::create_dir_all(dir.0.join("assets/clinic")).expect("a folder");
    for name in ["clinic.csv", "prices.csv"] {
        std::fs::copy(assets().join("clinic").join(name), dir.0.join("assets/clinic").join(name))
            .expect("copies");
    }
    let steps = tutorial();
    for verb in ["init", "train", "eval", "ask", "page", "predict", "report"] {
        assert!(
            steps.iter().any(|(command, _)| command.contains(&format!("querent {verb} "))),
            "no `{verb}`"
        );
    }
    let mut dialogue = String::new();
    for (command, shown) in steps {
        let out = run(&dir.0, &command, "");
        if command.contains(" page ") {
            // The page asks the same patient the same way, whatever the numbers are on this machine.
            assert!(!dialogue.is_empty(), "the page comes after the dialogue");
            crate::page::goes_the_same_way(&dir.0.join("ask.html"), &dialogue);
        }
        let trained = querent::run::Run::load(&dir.0.join("runs/clinic"));
        let known = has_known_bits() && trained.is_ok_and(|run| run.engine.starts_with("cpu"));
        if let Some(complaint) = complaint(&command, &shown, &out, known) {
            panic!("{command}: {complaint}; all of it:\n{out}");
        }
        if !command.contains(" ask ") {
            continue;
        }
        dialogue.clone_from(&out);
        if !known {
            eprintln!(
                "SKIPPED: the README's numbers and its dialogue are those of the CPU engine on Linux with AVX2"
            );
            continue;
        }
        // The same answers typed, when they are asked for.
        let answers: String = shown
            .iter()
            .filter_map(|line| line.split_once("? "))
            .map(|(_, answer)| format!("{answer}\n"))
            .collect();
        let (asking, _) = command.split_once(" --answer ").expect("answers in advance");
        assert_eq!(run(&dir.0, asking, &answers), out, "typed");
    }
    assert!(dir.0.join("runs/clinic/report.html").is_file());
}

/// The control: a change of the dialogue is noticed, wherever it is. On other machines a belief's number and the choice
/// of questions may differ, the rest may not.
#[test]
fn the_comparison_can_fail() {
    let steps = tutorial();
    let (command, shown) = steps.iter().find(|(command, _)| command.contains(" ask ")).expect("there");
    let dialogue = shown.join("\n");
    let told = |printed: &str| [true, false].map(|known| complaint(command, shown, printed, known).is_some());
    assert_eq!(told(&dialogue), [false, false]);
    let question = shown.iter().find(|line| line.contains(", cost 1 (")).expect("a question");
    let belief = shown.iter().find(|line| line.ends_with('█')).expect("a belief");
    let number = belief.split_whitespace().nth(1).expect("a number");
    let answer = shown.last().expect("an answer");
    let class = answer.split_whitespace().nth(1).expect("a class");
    for (what, from, to, expected) in [
        ("a cost", question, question.replace("cost 1 ", "cost 2 "), [true, true]),
        ("a question's words", question, question.replace(" (", " ["), [true, true]),
        ("another question", question, question.replacen(char::is_alphabetic, "other_", 1), [true, false]),
        ("a belief", belief, belief.replace(number, "12.3%"), [true, false]),
        ("a bar", belief, belief.replacen('█', "", 1), [true, false]),
        ("an answer", answer, answer.replace(class, "measles"), [true, true]),
        ("what was spent", answer, answer.replace(" spent", "0 spent"), [true, false]),
        ("no answer", answer, String::new(), [true, true]),
    ] {
        assert_ne!(*from, to, "{what}");
        assert_eq!(told(&dialogue.replacen(from.as_str(), &to, 1)), expected, "{what}");
    }
    assert_eq!(told(&format!("{dialogue}\nmore")), [true, false]);
    assert_eq!(told(""), [true, true]);
}

/// The linter builds the examples, so that what stands in the README is code that compiles.
#[test]
fn the_library_is_shown_by_an_example() {
    let read = |name: &str| {
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("reads")
    };
    let (readme, example) = (read("README.md"), read("examples/library.rs"));
    let (_, code) = example.split_once("\n\n").expect("a line about it, then the code");
    assert!(readme.contains(&format!("```rust\n{code}```")), "README.md does not show examples/library.rs");
}
