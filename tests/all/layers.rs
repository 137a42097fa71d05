//! The layers of docs/architecture.md: a module uses only those below it, so there is no cycle. What counts is what a
//! file names, `crate::…` in its code and not in its comments.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From the lowest to the highest; those of one line do not use each other.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["files", "random", "problem"],
    &["data"],
    &["engine"],
    &["nn"],
    &["policy"],
    &["train"],
    &["methods", "nmppg"],
    &["digest"],
    &["run"],
    &["report"],
];

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("lists").flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The modules of the crate that a text names. `Error`, `Result` and the like are re-exports of the lowest layer.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .map(|line| line.split("//").next().unwrap_or_default())
        .take_while(|line| !line.contains("#[cfg(test)]"))
        .collect::<Vec<_>>()
        .join("\n");
    let words = code.split("crate::").skip(1);
    words
        .map(|rest| rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>())
        .filter(|name| name.chars().next().is_some_and(char::is_lowercase))
        .collect()
}

/// Where a module uses a higher one.
fn violations(module: &str, text: &str) -> Vec<String> {
    let Some(mine) = layer(module) else { return vec![format!("{module} is in no layer")] };
    named(text)
        .into_iter()
        .filter(|used| used != module)
        .filter_map(|used| match layer(&used) {
            None => Some(format!("{module} uses {used}, which is in no layer")),
            Some(theirs) if theirs >= mine => Some(format!("{module} uses {used}")),
            Some(_) => None,
        })
        .collect()
}

#[test]
fn lower_layers_use_no_higher_ones() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for path in &all {
        let inside = path.strip_prefix(&source).expect("inside");
        let first = inside.components().next().expect("a name").as_os_str().to_string_lossy();
        let module = first.trim_end_matches(".rs").to_string();
        // The command uses the library from outside; the front page is not a layer.
        if ["main", "lib", "commands"].contains(&module.as_str()) {
            continue;
        }
        let text = std::fs::read_to_string(path).expect("reads");
        wrong.extend(
            violations(&module, &text).into_iter().map(|what| format!("{}: {what}", inside.display())),
        );
        seen.insert(module);
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(seen.len() >= LAYERS.len(), "{seen:?}");
}

/// Engines run kernels; what they are for is no business of theirs.
#[test]
fn engines_know_no_word_of_policies() {
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine");
    let mut all = Vec::new();
    files(&engine, &mut all);
    for path in all {
        let text = std::fs::read_to_string(&path).expect("reads").to_lowercase();
        for word in ["alpha", "temperature", "nmppg", "gdfs", "reinforce", "hazard", "price"] {
            assert!(!text.contains(word), "{} says `{word}`", path.display());
        }
    }
}

/// The control.
#[test]
fn a_wrong_use_is_seen() {
    assert_eq!(
        violations("engine", "use crate::nn::Stack;\n// crate::train is only talked about"),
        ["engine uses nn"]
    );
    assert!(violations("nn", "use crate::{engine::Engine}; fn f() { crate::engine::g() }").is_empty());
    assert_eq!(violations("policy", "fn f() { crate::methods::find(\"x\") }"), ["policy uses methods"]);
    assert_eq!(
        violations("policy", "use crate::commands::x;"),
        ["policy uses commands, which is in no layer"]
    );
}
