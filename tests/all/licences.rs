//! Everything that is built into Querent may be built into other people's programs: each dependency's licence is one of
//! those that are allowed here, by what its own manifest says.

use std::process::Command;

/// Licences that ask for no more than that they are named.
const ALLOWED: [&str; 10] = [
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "0BSD",
    "Unlicense",
    "BSL-1.0",
    "Unicode-3.0",
];

/// The parts of an SPDX expression between an operator that stands outside of parentheses.
fn parts<'a>(expression: &'a str, operator: &str) -> Vec<&'a str> {
    let (mut parts, mut depth, mut from) = (Vec::new(), 0usize, 0);
    for (at, letter) in expression.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= from && expression[at..].starts_with(operator) => {
                parts.push(&expression[from..at]);
                from = at + operator.len();
            }
            _ => {}
        }
    }
    parts.push(&expression[from..]);
    parts
}

/// Whether an SPDX expression can be met with the allowed ones: of an `OR` one part, of an `AND`, which binds tighter, all.
fn is_allowed(expression: &str) -> bool {
    // Older manifests write a slash.
    let expression = expression.trim().replace('/', " OR ");
    parts(&expression, " OR ").iter().any(|choice| {
        parts(choice, " AND ").iter().all(|part| {
            let part = part.trim();
            match part.strip_prefix('(').and_then(|inside| inside.strip_suffix(')')) {
                Some(inside) => is_allowed(inside),
                None => ALLOWED.contains(&part.trim_end_matches(" WITH LLVM-exception")),
            }
        })
    })
}

#[test]
fn every_dependency_may_be_used() {
    let tree = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--package", "querent", "--edges", "normal,build", "--prefix", "none"])
        .args(["--no-dedupe", "--format", "{p}\t{l}"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let text = String::from_utf8(tree.stdout).expect("text");
    // The crate itself comes first; its font's licence is in assets/fonts.
    let mut lines: Vec<&str> = text.lines().skip(1).collect();
    lines.sort_unstable();
    lines.dedup();
    assert!(lines.len() > 100, "these are not all: {text}");
    for line in lines {
        let (package, licence) = line.split_once('\t').expect("two columns");
        assert!(is_allowed(licence), "{package}: `{licence}` is not among the licences that are allowed");
    }
}

/// The control: what asks for more is seen.
#[test]
fn a_licence_that_asks_for_more_is_seen() {
    assert!(is_allowed("MIT OR GPL-3.0") && is_allowed("(MIT OR Apache-2.0) AND ISC"));
    assert!(!is_allowed("(MIT OR Apache-2.0) AND GPL-3.0") && is_allowed("GPL-3.0 OR (MIT AND ISC)"));
    assert!(!is_allowed("GPL-3.0") && !is_allowed("MIT AND GPL-3.0") && !is_allowed(""));
}
