//! The report of a run in the studio: the page that the library draws natively of the same model and rows, shown under the
//! studio's policy.

use super::{assert_well, is_shown, opened, press, saved, saves_to, set, wait_for_model};
use crate::browser::Browser;
use crate::common::{TempDir, assets};
use querent::Model;
use querent::data::table::{Schema, TableReader, prepare};
use querent::report::page;
use querent::run::Trained;
use serde_json::json;
use std::path::Path;

const FRAME: &str = "document.querySelector('#report-here iframe')?.contentDocument";
const QUICK: &str =
    "warm_up_epochs=2\ntemperatures=[1.0]\nstage_epochs=4\nepoch_steps=60\npolicy=[32,32]\npredictor=[32,32]";

/// The text between two others, the first time.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).unwrap_or_else(|| panic!("there is no {before}")).1;
    rest.split_once(after).unwrap_or_else(|| panic!("there is no {after} behind {before}")).0
}

/// The pictures of a report whose title begins with some words.
fn pictures<'a>(report: &'a str, title: &str) -> Vec<&'a str> {
    let all = report.split("<figure>").skip(1).filter_map(|rest| rest.split_once("</figure>"));
    all.map(|(picture, _)| picture).filter(|picture| picture.contains(&format!("<title>{title}"))).collect()
}

/// The report that the library makes here, of the model and the table with the problem that were saved.
fn natively(folder: &Path, report: &str) -> String {
    let problem = std::fs::read_to_string(folder.join("problem.toml")).expect("reads");
    let schema = Schema::parse(&problem).expect("a problem");
    let reader = TableReader::open(assets().join("clinic/clinic.csv")).expect("opens");
    let prepared = prepare(reader, &schema).expect("prepares");
    let model = Model::load(folder.join("model.safetensors")).expect("loads");
    let history = model.history();
    let epochs = between(report, " of at most ", " epochs").parse().expect("a number");
    let trained = Trained {
        file: "model.safetensors".into(),
        seed: model.seed(),
        seconds: history.last().map_or(0.0, |epoch| epoch.seconds),
        epochs: [history.len(), epochs],
        model: model.clone(),
    };
    let engine = "CPU, WebAssembly with SIMD";
    let run = trained.run("clinic.csv", engine, &prepared.data, &prepared.encoding).expect("tested");
    page(&run, &run.models(|_| Ok(model.clone())).expect("at its trade-offs"))
}

/// Shows the report, and waits for it.
fn show(browser: &mut Browser) {
    press(browser, "report");
    browser.wait(&format!("{FRAME}?.readyState === 'complete' && {FRAME}.querySelector('h1') !== null"));
}

#[test]
fn the_report_of_a_run_is_the_one_that_is_drawn_natively() {
    let dir = TempDir::new("studio-report");
    let Some((mut browser, address)) = opened("studio-report", false) else { return };
    saves_to(&mut browser, &dir.0);
    press(&mut browser, "clinic");
    browser.wait(&is_shown("training"));
    set(&mut browser, "#settings", "value", &json!(QUICK));
    press(&mut browser, "begin");
    wait_for_model(&mut browser);
    show(&mut browser);
    let report =
        String::from_utf8(saved(&mut browser, "save-report", &dir.0.join("report.html"))).expect("text");
    saved(&mut browser, "save-model", &dir.0.join("model.safetensors"));
    saved(&mut browser, "problem", &dir.0.join("problem.toml"));
    let expected = natively(&dir.0, &report);
    let [curves, heat_maps] = ["clinic: performance against cost", "Questions step by step"].map(|title| {
        let (here, there) = (pictures(&report, title), pictures(&expected, title));
        assert_eq!(here.len(), 7, "{title}: one for each α that is tested");
        assert!(here == there, "{title}: other pictures than natively");
        here
    });
    assert!(curves[0] != curves[6] && heat_maps[0] != heat_maps[6], "the α differ");
    assert!(report == expected, "another page than natively");
    shows_it(&mut browser);

    // A later visit has the same.
    browser.go_to(&format!("http://{address}/?again"));
    browser.wait(&is_shown("kept-go"));
    press(&mut browser, "kept-go");
    wait_for_model(&mut browser);
    std::fs::remove_file(dir.0.join("report.html")).expect("removes");
    let again = saved(&mut browser, "save-report", &dir.0.join("report.html"));
    assert!(again == report.as_bytes(), "another report than before");
    assert_well(&mut browser, address);
}

/// The studio's policy lets the report's style and script in, and what it draws is to be seen.
fn shows_it(browser: &mut Browser) {
    let of = |what: &str| format!("{FRAME}.{what}");
    assert_eq!(browser.text(&of("querySelector('h1').textContent")), "clinic");
    assert_eq!(
        browser.eval(
            "getComputedStyle(document.querySelector('#report-here iframe').contentDocument.body).maxWidth"
        ),
        "960px"
    );
    let visible = of("querySelectorAll('.along > section:not([hidden])').length");
    assert_eq!(browser.eval(&visible), 1, "the slider's script runs");
    let name = of("querySelector('.along output').textContent");
    let move_to = |browser: &mut Browser, place: usize| {
        browser.eval(&format!(
            "(() => {{ const slider = {FRAME}.querySelector('.along input'); slider.value = {place}; \
             slider.dispatchEvent(new Event('input')); }})()"
        ));
        browser.text(&name)
    };
    // It ends where most is asked.
    let [last, first] = [6, 0].map(|place| move_to(browser, place));
    assert!(first.starts_with("α = ") && last.starts_with("α = ") && first != last, "{first}, {last}");
    // Curve and heat map have a size, bars and shades a colour.
    for title in ["clinic: performance", "Questions step by step"] {
        let wide = browser.eval(&format!(
            "[...{FRAME}.querySelectorAll('section:not([hidden]) figure svg')]\
             .find((svg) => svg.querySelector('title').textContent.startsWith({})).getBoundingClientRect().width > 200",
            json!(title)
        ));
        assert_eq!(wide, true, "{title}");
    }
    let bar = browser.eval(&format!(
        "[...{FRAME}.querySelectorAll('section:not([hidden]) figure rect')].some((rect) => rect.getAttribute('fill').startsWith('url'))"
    ));
    assert_eq!(bar, false, "what is named is taken from the first picture of the page, which may be hidden");
    for (what, colour) in [
        (".bar .asked", "rgb(0, 114, 178)"),
        (".bar .spent", "rgb(213, 94, 0)"),
        (".right rect", "rgb(0, 114, 178)"),
        (".wrong rect", "rgb(213, 94, 0)"),
    ] {
        let fill = browser.eval(&format!(
            "(() => {{ const all = [...{FRAME}.querySelectorAll('section:not([hidden]) {what}')]; \
             return all.some((one) => one.getBoundingClientRect().width > 1) ? getComputedStyle(all[0]).fill : 'none seen'; }})()"
        ));
        assert_eq!(fill, colour, "{what}");
    }
    let link = browser.text("document.querySelector('#report-here a').href");
    assert!(link.starts_with("blob:"), "{link}");
}
