//! The layers of docs/architecture.md: a module uses only those below it, so there is no cycle. What counts is what a
//! file names, `crate::…` in its code and not in its comments: one by one, in groups (`use crate::{…}`), or by what the
//! front page re-exports (`crate::Model` is of `policy`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// From the lowest to the highest; those of one line do not use each other.
const LAYERS: &[&[&str]] = &[
    &["error"],
    &["files", "memory", "random", "problem"],
    &["data"],
    &["engine"],
    &["nn"],
    &["policy"],
    &["asking"],
    &["train"],
    &["methods"],
    &["measure"],
    &["digest"],
    &["run"],
    &["compare"],
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

/// A text's code: without its comments and its tests.
fn code(text: &str) -> String {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.take_while(|line| !line.contains("#[cfg(test)]")).collect::<Vec<_>>().join("\n")
}

fn word(text: &str) -> String {
    text.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// What a path leads to in its first step: one name, or those of a group.
fn first_names(path: &str) -> Vec<String> {
    let Some(group) = path.trim_start().strip_prefix('{') else { return vec![word(path)] };
    let (mut depth, mut begins, mut names) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => begins = true,
            c if begins && !c.is_whitespace() => {
                names.push(word(&group[at..]));
                begins = false;
            }
            _ => {}
        }
    }
    names
}

/// What the front page re-exports, by name, and the module that each is of.
fn reexports(front: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for path in code(front).split("pub use ").skip(1) {
        let path = path.split(';').next().unwrap_or_default();
        let Some((module, _)) = path.split_once("::") else { continue };
        let last =
            path.split_once('{').map_or(path.rsplit("::").next(), |(before, _)| path.get(before.len()..));
        let names = first_names(last.unwrap_or_default());
        found.extend(names.into_iter().map(|name| (name, module.trim().to_string())));
    }
    found
}

/// The modules of the crate that a text names.
fn named(text: &str) -> BTreeSet<String> {
    let reexports = reexports(include_str!("../../src/lib.rs"));
    let code = code(text);
    let names = code.split("crate::").skip(1).flat_map(first_names);
    let names = names.map(|name| reexports.get(&name).cloned().unwrap_or(name));
    // What the library takes from outside and hands on is of no layer.
    names.filter(|name| !name.is_empty() && name != "wgpu").collect()
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

/// A clock that somebody sets must not change a run: only the one that never goes back is looked at.
#[test]
fn nobody_asks_what_time_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (mut all, mut asked) = (Vec::new(), 0);
    files(&root.join("src"), &mut all);
    files(&root.join("web"), &mut all);
    for path in all {
        let text = std::fs::read_to_string(&path).expect("reads");
        for word in ["SystemTime", "UNIX_EPOCH", "Date::now"] {
            assert!(!text.contains(word), "{} asks for `{word}`", path.display());
        }
        asked += text.matches("Instant::now()").count();
    }
    assert!(asked > 10, "the control: times are measured, and found by this");
}

/// The control.
#[test]
fn a_wrong_use_is_seen() {
    assert_eq!(
        violations("engine", "use crate::nn::Stack;\n// crate::train is only talked about"),
        ["engine uses nn"]
    );
    assert!(violations("nn", "use crate::{engine::Engine}; fn f() { crate::engine::g() }").is_empty());
    let group = "use crate::{\n    data::{Dataset, Part},\n    train::{Method, Trainer}, methods,\n};";
    assert_eq!(violations("nn", group), ["nn uses methods", "nn uses train"]);
    assert_eq!(violations("engine", "fn f() -> crate::Result<crate::Model> {}"), ["engine uses policy"]);
    assert_eq!(violations("train", "use crate::{Engine, nmppg::Config};"), ["train uses methods"]);
    assert_eq!(violations("policy", "fn f() { crate::methods::find(\"x\") }"), ["policy uses methods"]);
    assert_eq!(
        violations("policy", "use crate::commands::x;"),
        ["policy uses commands, which is in no layer"]
    );
}
