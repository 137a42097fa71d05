//! A model's file that is dropped into the studio: it is read by the library's own reader, asked and saved, and what is kept
//! of a run stays.

use super::{
    TEN_STEPS, assert_well, drop_file, is_shown, opened, press, saved, saves_to, set, shown, syn1_table,
};
use crate::browser::Browser;
use crate::command::{querent, train_quickly};
use crate::common::{TempDir, assets};
use crate::conversation;
use crate::models::random;
use crate::spoil::File;
use querent::Model;
use querent::methods::METHODS;
use serde_json::json;

const FILE: &str = "model.safetensors";

/// Drops a model's file and waits until it is there.
fn drop_model(browser: &mut Browser, bytes: &[u8], about: &str) {
    drop_file(browser, FILE, bytes);
    let words = "document.getElementById('source-words').textContent";
    browser.wait(&format!("{} && {words}.startsWith({})", is_shown("ask"), json!(about)));
    assert_eq!(shown(browser, "source-refusal"), "");
}

/// Whatever the method: what is dropped is asked and saved, as the same file and as the page that the command makes of it.
#[test]
fn a_model_of_each_method_is_asked_and_saved() {
    let saves = TempDir::new("studio-model-saved");
    let Some((mut browser, address)) = opened("studio-model", false) else { return };
    saves_to(&mut browser, &saves.0);
    for entry in METHODS {
        let dir = conversation::trained(&format!("studio-{}", entry.name), entry.name);
        let bytes = std::fs::read(dir.0.join("run").join(FILE)).expect("reads");
        let model = Model::from_bytes(&bytes).expect("loads");
        drop_model(&mut browser, &bytes, &format!("A model of {}, ", entry.name));
        let about = shown(&mut browser, "source-words");
        assert_eq!(about.contains("rows of the training table"), model.policy().rows() > 0, "{about}");
        // There is a dot for each α that its curve knows.
        let dots = browser.eval("document.querySelectorAll('#curve .dot').length");
        assert_eq!(dots, model.curve().len(), "{}", entry.name);
        assert_eq!(browser.eval(&is_shown("curve")), !model.curve().is_empty(), "{}", entry.name);
        assert_eq!(browser.eval(&is_shown("training")), false, "there is no table to train on");
        assert_eq!(browser.eval(&is_shown("report")), false, "nor one to report on");
        let again = saved(&mut browser, "save-model", &saves.0.join(FILE));
        assert!(again == bytes, "{}: another file", entry.name);
        let page = saved(&mut browser, "save-page", &saves.0.join("ask.html"));
        let made = querent(&dir.0, &["page", &format!("run/{FILE}"), "-o", "ask.html"], "");
        assert_eq!(made.code, Some(0), "{}", made.err);
        assert!(
            std::fs::read(dir.0.join("ask.html")).expect("written") == page,
            "{}: another page",
            entry.name
        );
        press(&mut browser, "ask");
        let frame = "document.querySelector('#asking-here iframe')?.contentDocument";
        browser.wait(&format!("{frame}?.getElementById('all')?.hidden === false"));
        let session = model.session();
        let first =
            session.question().map_or(session.label().to_string(), |question| question.name.to_string());
        assert_eq!(browser.text(&format!("{frame}.getElementById('question').textContent")), first);
        for file in [FILE, "ask.html"] {
            std::fs::remove_file(saves.0.join(file)).expect("removes");
        }
    }
    assert_well(&mut browser, address);
}

/// What is no model, is one of a later version or is cut off is refused in the words of the command, which are those of the
/// library, and changes nothing.
#[test]
fn bad_models_are_refused_in_the_commands_words() {
    let dir = TempDir::new("studio-bad-model");
    let Some((mut browser, address)) = opened("studio-bad-model", false) else { return };
    let path = dir.0.join(FILE);
    random(&[0, 1, 1, 2], 2, [[3, 4], [5, 6]], None, 8).save(&path).expect("saves");
    let good = std::fs::read(&path).expect("reads");
    let spoilt = |key: &str, value: &str| {
        let mut file = File::read(&path);
        file.set(key, value);
        file.bytes()
    };
    let later = spoilt("format", "querent model 3");
    let files: &[(&str, &[u8], &str)] = &[
        ("a later version", &later, "it says it is a `querent model 3`, but this version reads"),
        ("a checkpoint", &spoilt("format", "querent checkpoint 1"), "`querent checkpoint 1`"),
        ("another's file", &spoilt("format", "pt"), "not a model of querent"),
        ("contradicting itself", &spoilt("model", "{}"), "`model` cannot be read"),
        ("cut off in its header", &good[..100], "cut off"),
        ("cut off at its end", &good[..good.len() - 1], "cut off"),
        ("0 bytes", b"", "cut off"),
        ("a table under a model's name", b"u,y\n1,a\n", "cut off"),
    ];
    // A table is looked at meanwhile, and stays.
    let clinic = std::fs::read(assets().join("clinic/clinic.csv")).expect("reads");
    drop_file(&mut browser, "clinic.csv", &clinic);
    browser.wait(&is_shown("training"));
    for (what, bytes, fragment) in files {
        std::fs::write(&path, bytes).expect("writes");
        let done = querent(&dir.0, &["ask", FILE], "");
        assert_eq!(done.code, Some(2), "{what}: {}", done.out);
        let expected = done.err.trim_end().strip_prefix("error: ").expect("an error").to_string();
        let library = Model::from_bytes_of(FILE, bytes).expect_err(what).message();
        assert_eq!(expected, library, "{what}");
        assert!(expected.contains(fragment), "{what}: {expected}");
        drop_file(&mut browser, FILE, bytes);
        browser
            .wait(&format!("document.getElementById('source-refusal').textContent === {}", json!(expected)));
        assert_eq!(browser.eval(&is_shown("result")), false, "{what}");
        assert_eq!(browser.eval(&is_shown("training")), true, "{what}: the table is still there");
    }
    // By its first bytes it is a model under any name, and refused as one.
    drop_file(&mut browser, "t.csv", &later);
    let expected = Model::from_bytes_of("t.csv", &later).expect_err("a later version").message();
    browser.wait(&format!("document.getElementById('source-refusal').textContent === {}", json!(expected)));
    // The control: the file that was spoilt is taken, and the table has gone.
    drop_model(&mut browser, &good, "A model of nmppg, ");
    assert_eq!(browser.eval(&is_shown("training")), false);
    assert_well(&mut browser, address);
}

/// A model that is dropped takes the place of what is shown, not of what is kept: the run goes on from there.
#[test]
fn a_dropped_model_leaves_the_kept_run_alone() {
    let dir = TempDir::new("studio-model-kept");
    let Some((mut browser, address)) = opened("studio-model-kept", false) else { return };
    std::fs::write(dir.0.join("syn1.csv"), syn1_table()).expect("writes");
    let init = querent(&dir.0, &["init", "syn1.csv", "--target", "y"], "");
    assert_eq!(init.code, Some(0), "{}", init.err);
    train_quickly(&dir.0, &["problem.toml", "--out", "run"]);
    let other = std::fs::read(dir.0.join("run").join(FILE)).expect("reads");
    saves_to(&mut browser, &dir.0);
    drop_file(&mut browser, "syn1.csv", syn1_table().as_bytes());
    browser.wait(&is_shown("training"));
    set(&mut browser, "#target", "value", &json!("y"));
    browser.wait("document.getElementById('look-words').textContent.includes('Split by split')");
    // Long enough to be in the middle of it.
    let mut long = TEN_STEPS.to_vec();
    long.extend(["stage_epochs=400", "patience=400"]);
    set(&mut browser, "#settings", "value", &json!(long.join("\n")));
    press(&mut browser, "begin");
    browser.wait("document.getElementById('epoch-words').textContent.startsWith('stage')");
    drop_model(&mut browser, &other, "A model of nmppg, ");
    assert_eq!(browser.eval(&is_shown("progress")), false);
    browser.wait(&is_shown("kept-go"));
    let kept = shown(&mut browser, "kept-words");
    let epochs = kept.strip_prefix("syn1.csv: ").and_then(|rest| rest.strip_suffix(" epochs are done."));
    let epochs: usize = epochs.unwrap_or_else(|| panic!("{kept}")).parse().expect("a number");
    assert!(epochs >= 2, "{kept}");
    // Another visit finds the run, not the model.
    browser.go_to(&format!("http://{address}/?again"));
    browser.wait(&is_shown("kept-go"));
    assert_eq!(shown(&mut browser, "kept-words"), kept);
    // And with the model in the page it goes on from there.
    drop_model(&mut browser, &other, "A model of nmppg, ");
    press(&mut browser, "kept-go");
    browser.wait("document.getElementById('rate').textContent.startsWith('epoch ')");
    let rate = shown(&mut browser, "rate");
    let epoch = rate.split(' ').nth(1).and_then(|epoch| epoch.parse::<usize>().ok()).expect("a number");
    assert!(epoch > epochs, "{rate}, after {kept}");
    assert_eq!(browser.eval(&is_shown("result")), false);
    press(&mut browser, "stop");
    browser.wait(&is_shown("go"));
    assert_well(&mut browser, address);
}
