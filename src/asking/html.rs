//! A model as one HTML file that asks: text, style, script, the code, and the model, in one.
//!
//! Its policy lets nothing in but what the file holds: the script and the style by their hashes, WebAssembly, and no
//! address whatsoever. The model and the first question are packed, so no name of a table is part of the HTML.

#[path = "../../web/page/lean.rs"]
mod lean;

use crate::error::{Error, Result};
use crate::policy::Model;
use flate2::Compression;
use flate2::write::GzEncoder;
use lean::lean;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::Write;

const PAGE: &str = include_str!("../../web/page/page.html");
const STYLE: &str = include_str!("../../web/page/page.css");
const SCRIPT: &str = include_str!("../../web/page/page.js");
/// `web/ask` as WebAssembly, gzipped: `web/build.sh` makes it.
const CODE: &[u8] = include_bytes!("../../web/page/ask.wasm.gz");

/// The page of a model, without the history of its training; the budget is infinite if there is none.
///
/// # Errors
/// The budget makes no sense.
pub fn page(model: &Model, budget: f64) -> Result<String> {
    // Whatever is wrong with the budget, the session says.
    let budget = model.session().with_budget(budget)?.budget();
    let model = model.clone().without_history();
    let (_, mut opening) = super::page::open(&model, Some(budget))?;
    for part in ["belief", "why"] {
        round(&mut opening["view"][part]);
    }
    around(&model.to_bytes()?, &opening.to_string(), budget)
}

/// Leaves of each fraction what a bar can show: on another processor its last digits are others, and the page is to be the
/// same file wherever it is made.
fn round(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let rounded = number.as_f64().map(|fraction| (fraction * 1e4).round() / 1e4);
            *value = rounded.into();
        }
        Value::Array(items) => items.iter_mut().for_each(round),
        Value::Object(fields) => fields.values_mut().for_each(round),
        _ => (),
    }
}

/// The page of a model's file. What it is told at first stands in front of the file and its code, so that the first
/// question need not wait for them.
fn around(model: &[u8], opening: &str, budget: f64) -> Result<String> {
    let failed = |error: std::io::Error| Error::Internal(format!("the model cannot be packed: {error}"));
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(model).map_err(failed)?;
    let model = base64(&packed.finish().map_err(failed)?);
    let settings = json!({ "budget": budget.is_finite().then_some(budget) }).to_string();
    let script = lean(SCRIPT);
    let policy = policy(&script);
    let (code, opening) = (base64(CODE), base64(opening.as_bytes()));
    Ok(filled(
        PAGE,
        &[
            ("policy", &policy),
            ("style", STYLE),
            ("opening", &opening),
            ("script", &script),
            ("settings", &settings),
            ("code", &code),
            ("model", &model),
        ],
    ))
}

fn policy(script: &str) -> String {
    let hash = |text: &str| format!("'sha256-{}'", base64(&Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {} 'wasm-unsafe-eval'; style-src {}; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'",
        hash(script),
        hash(STYLE)
    )
}

/// A text with its `{places}` filled, from the first to the last: what was filled in is not looked at again.
fn filled(mut text: &str, places: &[(&str, &str)]) -> String {
    let mut done = String::new();
    for (place, content) in places {
        let Some((before, after)) = text.split_once(&format!("{{{place}}}")) else { continue };
        done += before;
        done += content;
        text = after;
    }
    done + text
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let word =
            three.iter().enumerate().fold(0, |word, (i, &byte)| word | u32::from(byte) << (16 - 8 * i));
        for i in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * i)) as usize & 63];
            text.push(if i <= three.len() { letter.into() } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_letters() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
        }
        assert_eq!(base64(&[0xff, 0xef]), "/+8=");
    }

    #[test]
    fn fractions_are_as_long_as_a_bar_is_fine() {
        let mut value = json!({ "p": 0.123456, "of": [{ "share": 1e-9 }, 3, "0.123456"], "none": null });
        round(&mut value);
        assert_eq!(value, json!({ "p": 0.1235, "of": [{ "share": 0.0 }, 3, "0.123456"], "none": null }));
    }

    #[test]
    fn all_places_are_filled_and_nothing_twice() {
        let text = filled("<{a}|{b}>", &[("a", "{b}"), ("b", "x")]);
        assert_eq!(text, "<{b}|x>");
        let page = around(b"model", "{}", 7.0).expect("packs");
        for place in ["policy", "style", "opening", "settings", "code", "model", "script"] {
            assert!(PAGE.contains(&format!("{{{place}}}")), "{place} has no place");
            assert!(!page.contains(&format!("{{{place}}}")), "{place} is not filled");
        }
        assert!(page.contains("{\"budget\":7.0}"));
    }

    /// What goes around with every model: 400 kB is what it may have.
    #[test]
    fn it_is_small_without_the_model() {
        let size = around(b"", "", f64::INFINITY).expect("packs").len();
        assert!(size < 400_000, "{size} bytes");
        assert!(size > CODE.len(), "the code is in it");
    }
}
