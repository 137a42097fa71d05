//! Puts a static folder of the studio page together: its files, the page's content security policy, the examples, and the
//! code with the JavaScript that loads it. That JavaScript is what the command `wasm-bindgen --target web` makes, here of the
//! version in Cargo.lock: nothing has to be installed, and the two cannot be of different versions.
//!
//!     querent-pack FILE.wasm FOLDER     from the project's folder

#[path = "../../page/lean.rs"]
mod lean;

use base64::Engine;
use lean::lean;
use sha2::{Digest, Sha256};
use std::error::Error;
use std::fs;
use std::path::Path;
use wasm_bindgen_cli_support::Bindgen;

/// What is copied as it is.
const FILES: &[&str] = &[
    "web/page/page.css",
    "web/studio/page/studio.css",
    "web/studio/page/studio.js",
    "web/studio/page/worker.js",
    "web/studio/page/dom.js",
    "web/studio/page/plots.js",
    "web/studio/page/store.js",
    "assets/clinic/clinic.csv",
    "assets/clinic/prices.csv",
];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [code, folder] = arguments.as_slice() else {
        return Err("it takes two arguments: FILE.wasm FOLDER".into());
    };
    let folder = Path::new(folder);
    fs::create_dir_all(folder)?;
    for file in FILES.iter().map(Path::new) {
        let name = file.file_name().ok_or("a file has no name")?;
        fs::copy(file, folder.join(name)).map_err(|error| format!("{}: {error}", file.display()))?;
    }
    let page = fs::read_to_string("web/studio/page/index.html")?;
    fs::write(folder.join("index.html"), page.replace("{policy}", &policy()?))?;
    let mut bindgen = Bindgen::new();
    bindgen.web(true)?.input_path(code).out_name("code").typescript(false);
    // Names are for debuggers; what made the file is in the repository.
    bindgen.remove_name_section(true).remove_producers_section(true);
    bindgen.generate(folder)?;
    Ok(())
}

/// Nothing but the folder's own files, and in a frame the pages that are made there, which have its policy: the one that asks
/// and the report, whose scripts and styles are known by their hashes.
fn policy() -> Result<String, Box<dyn Error>> {
    let read = |file: &str| fs::read_to_string(file).map_err(|error| format!("{file}: {error}"));
    let hash = |text: String| {
        let digest = Sha256::digest(text);
        format!("'sha256-{}'", base64::engine::general_purpose::STANDARD.encode(digest))
    };
    let scripts = [lean(&read("web/page/page.js")?), read("src/report/page.js")?];
    let styles = [read("web/page/page.css")?, read("src/report/page.css")?];
    Ok(format!(
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval' {}; style-src 'self' {}; connect-src 'self'; \
         worker-src 'self'; frame-src blob:; img-src data:; base-uri 'none'; form-action 'none'; \
         require-trusted-types-for 'script'; trusted-types studio",
        scripts.map(hash).join(" "),
        styles.map(hash).join(" ")
    ))
}
