//! A kernel's text taken apart into functions that can stand beside another kernel's: names get the kernel's own prefix,
//! parameters and buffers come from the table of calls and from the arenas.

use super::arena::Home;
use crate::engine::kernels::{Kernel, Target, View};
use crate::error::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Vectors of a call in the table: what it is; the kernel's words; where its buffers begin; how long they are.
pub(super) const STRIDE: usize = 9;
/// Where in it the kernel's words begin.
pub(super) const FIELDS: usize = 1;
/// Where the buffers' beginnings do.
pub(super) const BASES: usize = 5;
/// Where the buffers' lengths do.
pub(super) const LENGTHS: usize = 7;

/// A kernel with the homes of its buffers: calls that agree in both share its functions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Variant {
    pub kernel: Named,
    pub homes: Vec<Home>,
}

/// A kernel, compared by what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named(pub &'static Kernel);

impl PartialEq for Named {
    fn eq(&self, other: &Self) -> bool {
        self.0.is(other.0)
    }
}

impl Eq for Named {}

/// A variant's functions as text, and how its entry is to be called.
#[derive(Debug)]
pub(super) struct Functions {
    /// Constants and functions.
    pub text: String,
    /// Structures and workgroup variables by name: one for all kernels.
    pub shared: BTreeMap<String, String>,
    /// What the entry's arguments are.
    pub builtins: Vec<String>,
    /// Threads of a workgroup of the entry, across and down.
    pub size: [u32; 2],
}

impl Functions {
    /// Whether its threads meet.
    pub fn meets(&self) -> bool {
        self.shared.values().any(|text| text.starts_with("var<workgroup>"))
    }
}

type Tokens<'a> = Vec<&'a str>;

/// Whether a character may be in a name or a number.
fn in_word(c: char) -> bool {
    c == '_' || c.is_ascii_digit() || c.is_ascii_lowercase() || c.is_ascii_uppercase()
}

/// Words, runs of white space, and single signs. Comments are left out.
fn tokens(text: &str) -> Tokens<'_> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if in_word(first) {
            rest.find(|c| !in_word(c)).unwrap_or(rest.len())
        } else if first.is_whitespace() {
            rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len())
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(len);
        if !token.starts_with("//") {
            all.push(token);
        }
        rest = after;
    }
    all
}

/// A declaration of a module.
struct Item<'a> {
    /// `fn`, `const`, `struct` or `var`.
    kind: &'a str,
    name: &'a str,
    tokens: Tokens<'a>,
}

fn is_blank(token: &str) -> bool {
    token.trim().is_empty()
}

/// The declarations of a text, one after the other: each ends with its outermost brace or with a semicolon.
fn items<'a>(tokens: &[&'a str]) -> Vec<Item<'a>> {
    let mut found = Vec::new();
    let mut current: Tokens = Vec::new();
    let mut depth = 0usize;
    for &token in tokens {
        if current.is_empty() && is_blank(token) {
            continue;
        }
        current.push(token);
        match token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 && (token == ";" || token == "}") {
            let tokens = std::mem::take(&mut current);
            let kind_at = tokens.iter().position(|t| ["fn", "const", "struct", "var"].contains(t));
            let Some(kind_at) = kind_at else { continue };
            let words = |t: &&&str| t.chars().all(in_word);
            let kind = tokens[kind_at];
            // Behind `var` its address space comes first.
            let skipped = if kind == "var" { 1 } else { 0 };
            let name = tokens[kind_at + 1..].iter().filter(words).nth(skipped).copied().unwrap_or_default();
            found.push(Item { kind, name, tokens });
        }
    }
    found
}

/// Where the bracket that opens at `open` closes.
fn closing(tokens: &[&str], open: usize) -> usize {
    let mut depth = 0usize;
    for (at, &token) in tokens.iter().enumerate().skip(open) {
        match token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    tokens.len() - 1
}

/// The first token that is not white space from `at` on.
fn next<'a>(tokens: &[&'a str], at: usize) -> (usize, &'a str) {
    tokens.iter().copied().enumerate().skip(at).find(|(_, t)| !is_blank(t)).unwrap_or((tokens.len(), ""))
}

/// What a function uses of the table of calls.
#[derive(Default)]
struct Used {
    fields: BTreeSet<usize>,
    bases: BTreeSet<usize>,
    lengths: BTreeSet<usize>,
}

struct Rewriter<'a> {
    prefix: String,
    variant: &'a Variant,
    functions: BTreeSet<&'a str>,
    constants: BTreeSet<&'a str>,
}

/// Takes a variant's text apart.
///
/// # Errors
/// The text is not what the rewriting knows: a mistake in a shader, found by the tests of all shaders.
pub(super) fn functions(variant: &Variant, prefix: &str, of_a_chain: bool) -> Result<Functions> {
    let kernel = variant.kernel.0;
    let source = kernel.pieces(Target::Gpu, of_a_chain).join("\n");
    let all = tokens(&source);
    let items = items(&all);
    let named = |kind: &str| items.iter().filter(|i| i.kind == kind).map(|i| i.name).collect();
    let rewriter =
        Rewriter { prefix: prefix.into(), variant, functions: named("fn"), constants: named("const") };
    let mut made =
        Functions { text: String::new(), shared: BTreeMap::new(), builtins: Vec::new(), size: [0; 2] };
    for item in &items {
        match item.kind {
            "struct" | "var" => {
                let text = rewriter.rewrite(&item.tokens, &mut Used::default());
                made.shared.insert(item.name.to_string(), text);
            }
            "const" => {
                made.text += &rewriter.rewrite(&item.tokens, &mut Used::default());
                made.text.push('\n');
            }
            _ => {
                if item.name == "main" {
                    made.builtins = builtins(&item.tokens);
                    made.size = workgroup_size(&item.tokens, &items).ok_or_else(|| {
                        Error::Internal(format!("{}: a workgroup of unknown size", kernel.name))
                    })?;
                }
                made.text += &rewriter.function(item);
            }
        }
    }
    Ok(made)
}

/// The entry's arguments, by what they are.
fn builtins(tokens: &[&str]) -> Vec<String> {
    let marked = tokens.iter().enumerate().filter(|(_, t)| **t == "builtin");
    marked.map(|(at, _)| tokens[at + 2].to_string()).collect()
}

/// `@workgroup_size(…)` as numbers.
fn workgroup_size(tokens: &[&str], items: &[Item]) -> Option<[u32; 2]> {
    let at = tokens.iter().position(|t| *t == "workgroup_size")? + 1;
    let inside = &tokens[at + 1..closing(tokens, at)];
    let value = |word: &str| -> Option<u32> {
        if let Ok(number) = word.parse() {
            return Some(number);
        }
        let constant = items.iter().find(|item| item.kind == "const" && item.name == word)?;
        let at = constant.tokens.iter().position(|t| *t == "=")?;
        next(&constant.tokens, at + 1).1.trim_end_matches('u').parse().ok()
    };
    let mut numbers = inside.split(|t| *t == ",").map(|part| value(part.concat().trim()));
    Some([numbers.next()??, numbers.next().unwrap_or(Some(1))?])
}

impl<'a> Rewriter<'a> {
    /// A function with the call's place in the table as its first argument, and what it uses of it at its beginning.
    fn function(&self, item: &Item) -> String {
        let start = item.tokens.iter().position(|t| *t == "fn").unwrap_or(0);
        let tokens = &item.tokens[start..];
        let open = tokens.iter().position(|t| *t == "(").unwrap_or(0);
        let close = closing(tokens, open);
        let body = close + tokens[close..].iter().position(|t| *t == "{").unwrap_or(0);
        let mut used = Used::default();
        let arguments = without_attributes(&tokens[open + 1..close]);
        let arguments = self.rewrite(&arguments, &mut used);
        let returns = self.rewrite(&tokens[close + 1..body], &mut used);
        let inside = self.rewrite(&tokens[body + 1..tokens.len() - 1], &mut used);
        let kernel = self.variant.kernel.0;
        let mut text =
            format!("fn {}{}(op_at: u32, {}){returns}{{", self.prefix, item.name, arguments.trim());
        let mut fetch = |name: String, first: usize, index: usize| {
            let component = ["x", "y", "z", "w"][index % 4];
            let _ = write!(text, "\n    let {name} = ops[op_at + {}u].{component};", first + index / 4);
        };
        used.fields.iter().for_each(|&i| fetch(format!("p_{}", kernel.fields[i]), FIELDS, i));
        used.bases.iter().for_each(|&i| fetch(format!("base_{}", kernel.bindings[i].name), BASES, i));
        used.lengths.iter().for_each(|&i| fetch(format!("length_{}", kernel.bindings[i].name), LENGTHS, i));
        text + &inside + "}\n"
    }

    fn rewrite(&self, tokens: &[&str], used: &mut Used) -> String {
        let kernel = self.variant.kernel.0;
        let mut text = String::new();
        let mut at = 0;
        while at < tokens.len() {
            let token = tokens[at];
            let is_member = at > 0 && tokens[at - 1] == ".";
            let binding = kernel.bindings.iter().position(|b| b.name == token).filter(|_| !is_member);
            let (following, sign) = next(tokens, at + 1);
            if token == "p" && sign == "." && !is_member {
                let (field_at, field) = next(tokens, following + 1);
                if let Some(field) = kernel.fields.iter().position(|name| *name == field) {
                    used.fields.insert(field);
                }
                text += &format!("p_{field}");
                at = field_at + 1;
            } else if let (Some(binding), "[") = (binding, sign) {
                let close = closing(tokens, following);
                let index = self.rewrite(&tokens[following + 1..close], used);
                let (after, assign) = next(tokens, close + 1);
                let is_assigned = assign == "=" && tokens.get(after + 1) != Some(&"=");
                at = close + 1;
                if is_assigned && self.is_split(binding) {
                    // A vector into an arena of single numbers: written by a function.
                    let end = at + tokens[at..].iter().position(|t| *t == ";").unwrap_or(0);
                    let value = self.rewrite(&tokens[after + 1..end], used);
                    text += &self.store_split(binding, &index, value.trim(), used);
                    at = end;
                } else {
                    text += &self.place(binding, &index, used);
                }
            } else if token == "arrayLength" {
                let close = closing(tokens, following);
                let name = tokens[following + 1..close].iter().copied().find(|t| *t != "&" && !is_blank(t));
                match kernel.bindings.iter().position(|b| Some(b.name) == name) {
                    Some(binding) => {
                        used.lengths.insert(binding);
                        text += &format!("length_{}", kernel.bindings[binding].name);
                    }
                    None => text += &tokens[at..=close].concat(),
                }
                at = close + 1;
            } else if self.functions.contains(token) && sign == "(" && !is_member {
                text += &format!("{}{token}(op_at, ", self.prefix);
                at = following + 1;
            } else if self.constants.contains(token) && !is_member {
                text += &format!("{}{token}", self.prefix);
                at += 1;
            } else {
                text += token;
                at += 1;
            }
        }
        text
    }

    /// Whether a binding is seen as vectors but lies in an arena of single numbers.
    fn is_split(&self, binding: usize) -> bool {
        let view = self.variant.kernel.0.bindings[binding].view;
        matches!((view, self.variant.homes[binding]), (View::Vec4, Home::Scalars(_)))
    }

    fn store_split(&self, binding: usize, index: &str, value: &str, used: &mut Used) -> String {
        used.bases.insert(binding);
        let name = self.variant.kernel.0.bindings[binding].name;
        format!("{}_store(base_{name} + ({index}) * 4u, {value})", self.variant.homes[binding])
    }

    /// A number or a vector of a buffer.
    fn place(&self, binding: usize, index: &str, used: &mut Used) -> String {
        let declared = self.variant.kernel.0.bindings[binding];
        let (name, home) = (declared.name, self.variant.homes[binding]);
        if matches!(home, Home::Alone(_)) {
            return format!("{home}[{index}]");
        }
        used.bases.insert(binding);
        match (declared.view, home) {
            (View::F32, Home::Vectors(_)) => format!("{home}[base_{name} + ({index}) / 4u][({index}) % 4u]"),
            (View::Vec4, Home::Scalars(_)) => format!("{home}_load(base_{name} + ({index}) * 4u)"),
            _ => format!("{home}[base_{name} + ({index})]"),
        }
    }
}

/// Arguments without `@builtin(…)`.
fn without_attributes<'a>(tokens: &[&'a str]) -> Tokens<'a> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at] == "@" {
            at = closing(tokens, at + 2) + 1;
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::kernels::{BiasGrad, Linear, Params};

    fn made(kernel: &'static Kernel, homes: &[Home]) -> Functions {
        functions(&Variant { kernel: Named(kernel), homes: homes.to_vec() }, "k0_", true).expect("known")
    }

    #[test]
    fn numbers_and_buffers_come_from_the_table_and_the_arenas() {
        let (a, s) = (Home::Vectors(0), Home::Scalars(0));
        let made = made(BiasGrad::KERNEL, &[s, a]);
        assert_eq!(
            (made.size, made.builtins.as_slice()),
            ([64, 1], &["global_invocation_id".to_string()][..])
        );
        let text = &made.text;
        assert!(text.starts_with("fn k0_main(op_at: u32, id: vec3<u32>) {"), "{text}");
        // `rows` is the first field, `divisor` the fifth: the second vector of the fields.
        assert!(text.contains("let p_rows = ops[op_at + 1u].x;"), "{text}");
        assert!(text.contains("let p_divisor = ops[op_at + 2u].x;"), "{text}");
        assert!(text.contains("total += scalars0_load(base_dy + (row * pitch4 + output4) * 4u);"), "{text}");
        assert!(text.contains("vectors0[base_grad + (at)] = total;"), "{text}");
        assert!(!text.contains("p."), "{text}");
    }

    #[test]
    fn vectors_are_stored_number_by_number_where_they_lie_so() {
        let (a, s) = (Home::Vectors(0), Home::Scalars(1));
        let made = made(Linear::KERNEL, &[a, a, s, s]);
        assert!(made.meets() && made.shared.contains_key("left_rows"));
        let text = &made.text;
        assert!(text.contains("scalars1_store(base_y + (at) * 4u, value);"), "{text}");
        assert!(text.contains("value *= scalars1_load(base_multiplier + (at) * 4u);"), "{text}");
        assert!(text.contains("k0_product(op_at, group, thread, p_rows"), "{text}");
    }
}
