//! The page that `querent page` makes, in a browser: it asks as the command does, with the keyboard alone and without a
//! network, and takes whatever a table says for text.
#![cfg(all(feature = "cli", unix))]

use crate::browser::Browser;
use crate::command::{querent, train_quickly};
use crate::common::TempDir;
use crate::{conversation, using};
use querent::Model;
use querent::methods::METHODS;
use serde_json::Value;
use std::path::Path;

const MODEL: &str = "run/model.safetensors";
/// The first question is there, and the code that takes answers.
const IS_READY: &str = "document.querySelector('#all:not([hidden], [aria-busy])') !== null";

/// Makes a page and opens it; `None` if there is no browser.
fn opened(dir: &TempDir, name: &str, arguments: &[&str]) -> Option<Browser> {
    let made = querent(&dir.0, &[&["page", MODEL, "-o", "ask.html"], arguments].concat(), "");
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(made.out.ends_with("written: ask.html\n"), "{}", made.out);
    let mut browser = Browser::start(name)?;
    browser.open(&dir.0.join("ask.html"));
    browser.wait(&format!("{IS_READY} || !document.getElementById('trouble').hidden"));
    Some(browser)
}

/// Nothing went wrong in the page, and it has asked for nothing but itself.
fn assert_well(browser: &Browser) {
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    let requests = browser.requests();
    let is_own = |address: &&str| address.starts_with("file://") && address.ends_with("ask.html");
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert!(requests.iter().all(is_own), "{requests:?}");
}

fn shown(browser: &mut Browser, id: &str) -> String {
    browser.text(&format!("document.getElementById('{id}').textContent"))
}

fn press(browser: &mut Browser, id: &str) {
    browser.eval(&format!("document.getElementById('{id}').click()"));
}

/// Types an answer into a field, or chooses the word, as somebody does who has only a keyboard: the focus is where the
/// answer goes, Tab leads on.
fn answer_by_keyboard(browser: &mut Browser, answer: &str) {
    let focused = "document.activeElement";
    if browser.eval(&format!("{focused}.matches('input[type=text]')")) == true {
        browser.type_in(answer);
        return;
    }
    let label = format!("({focused}.closest('label') ?? {focused}).textContent");
    for _ in 0..12 {
        if browser.text(&label) == answer {
            let is_button = browser.eval(&format!("{focused}.matches('button')")) == true;
            browser.key(if is_button { "Enter" } else { " " });
            return;
        }
        let is_radio = browser.eval(&format!("{focused}.matches('input[type=radio]')")) == true;
        browser.key(if is_radio { "ArrowRight" } else { "Tab" });
    }
    panic!("{answer} cannot be chosen; the page says {}", browser.eval("document.body.innerText"));
}

fn percent(text: &str) -> f32 {
    text.trim_end_matches('%').parse().expect("a number")
}

/// The belief as the page shows it, in per cent.
fn bars(browser: &mut Browser) -> Vec<(String, f32)> {
    let items = browser.eval(
        "[...document.querySelectorAll('#belief li')].map((li) => [li.children[0].innerText, li.children[1].innerText])",
    );
    let item = |item: &Value| {
        (item[0].as_str().expect("a class").to_string(), percent(item[1].as_str().expect("per cent")))
    };
    items.as_array().expect("a list").iter().map(item).collect()
}

/// Goes through a dialogue that `querent ask` has printed, with the keyboard alone, and compares what is asked, what is
/// believed at each step and the answer. Skipped without a browser.
pub fn goes_the_same_way(page: &Path, dialogue: &str) {
    let Some(mut browser) = Browser::start("dialogue") else { return };
    browser.open(page);
    browser.wait(IS_READY);
    let mut expected: Vec<(&str, f32)> = Vec::new();
    let mut lines = dialogue.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some((class, rest)) =
            line.trim().split_once(char::is_whitespace).filter(|(_, rest)| rest.contains('%'))
        {
            expected.push((class, percent(rest.split_whitespace().next().expect("a number"))));
            if !lines.peek().is_some_and(|next| next.contains('%')) {
                let bars = bars(&mut browser);
                // The last digits are those of another processor.
                let is_near =
                    |(bar, of): (&(String, f32), &(&str, f32))| bar.0 == of.0 && (bar.1 - of.1).abs() < 0.11;
                let all = bars.len() == expected.len() && bars.iter().zip(&expected).all(is_near);
                assert!(all, "{bars:?} instead of {expected:?}");
                expected.clear();
            }
        } else if let Some((question, answer)) = line.split_once("? ") {
            // Of a group or of what is known from the start, each field has a label; else it is the heading.
            let name = question.trim().split([',', ' ']).next().expect("a name");
            let page = browser.text("document.getElementById('asking').innerText");
            assert!(page.contains(name), "{name} is not asked for: {page}");
            let is_last = lines.peek().is_none_or(|next| !next.contains("? "));
            let has_next = browser.eval("!document.getElementById('next').hidden") == true;
            answer_by_keyboard(&mut browser, answer);
            match (is_last, has_next) {
                (true, true) => {
                    let in_text = browser.eval("document.activeElement.matches('input')") == true;
                    assert!(in_text, "Enter answers");
                    browser.key("Enter");
                }
                (true, false) => {}
                // To the next field, over the button beside this one.
                (false, _) => {
                    let here = browser.text("document.activeElement.closest('.field').textContent");
                    for _ in 0..4 {
                        if browser.text("document.activeElement.closest('.field')?.textContent ?? ''") == here
                        {
                            browser.key("Tab");
                        }
                    }
                }
            }
        } else if let Some(answer) = line.strip_prefix("answer: ") {
            let (label, sums) = answer.split_once(" (").expect("what was spent");
            assert_eq!(shown(&mut browser, "question"), label);
            assert_eq!(format!("{})", shown(&mut browser, "sums")), sums);
        }
    }
    let first = browser.eval("performance.getEntriesByName('first question')[0].startTime");
    eprintln!("the first question was there after {first} ms");
    let requests = browser.requests();
    assert!(requests.len() == 1 && requests[0].starts_with("file://"), "{requests:?}");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}

/// A case can be put off, refused, undone, begun anew and limited; its trace is a table.
#[test]
fn every_button_does_what_it_says() {
    let dir = using::clinic("page-buttons");
    let Some(mut browser) = opened(&dir, "buttons", &["--budget", "40"]) else { return };
    assert_eq!(shown(&mut browser, "title"), "diagnosis?");
    assert_eq!(shown(&mut browser, "question"), "Known from the start");
    assert_eq!(shown(&mut browser, "sums"), "0 asked, 0 spent, 40 left of 40");
    // Nothing was typed: the command's own complaint, where it belongs.
    press(&mut browser, "next");
    assert_eq!(shown(&mut browser, "refusal"), "an answer is needed");
    browser.type_in("31");
    browser.eval(
        "[...document.querySelectorAll('#fields .choice')].find((c) => c.textContent === 'winter').click()",
    );
    press(&mut browser, "next");
    let first = shown(&mut browser, "question");
    // Put off: something else is asked, and this comes back once nothing else is left.
    press(&mut browser, "later");
    let second = shown(&mut browser, "question");
    assert_ne!(first, second);
    assert!(shown(&mut browser, "put-off").starts_with("For later: "));
    press(&mut browser, "back");
    assert_eq!(shown(&mut browser, "question"), first);
    // Cannot be had: it is not asked for again, costs nothing, and is in the trace.
    press(&mut browser, "unavailable");
    assert_ne!(shown(&mut browser, "question"), first);
    assert_eq!(shown(&mut browser, "sums"), "0 asked, 0 spent, 40 left of 40");
    assert!(shown(&mut browser, "trace").contains("cannot be had"));
    press(&mut browser, "back");
    assert_eq!(shown(&mut browser, "question"), first);
    press(&mut browser, "back");
    assert_eq!(shown(&mut browser, "question"), "Known from the start");
    assert_eq!(browser.eval("document.querySelector('#fields input').value"), "31", "to be corrected");
    assert_eq!(browser.eval("document.getElementById('back').disabled"), true);
    // A budget in which nothing fits ends the case.
    browser.eval("(() => { const b = document.getElementById('budget'); b.value = '-1'; b.dispatchEvent(new Event('change')); })()");
    assert!(shown(&mut browser, "budget-refusal").contains("zero or more"));
    press(&mut browser, "next");
    browser.eval("(() => { const b = document.getElementById('budget'); b.value = '0'; b.dispatchEvent(new Event('change')); })()");
    assert_eq!(shown(&mut browser, "sums"), "0 asked, 0 spent, 0 left of 0");
    assert_eq!(browser.eval("document.getElementById('form').hidden"), true);
    assert!(shown(&mut browser, "why-words").contains("nothing more can be asked for"));
    press(&mut browser, "restart");
    assert_eq!(shown(&mut browser, "question"), "Known from the start");
    assert_eq!(browser.eval("document.querySelector('#fields input').value"), "", "another case");
    // Narrow: nothing sticks out. And whatever can be worked has a name that is read out.
    browser.look(360, 740, false);
    assert_eq!(browser.eval("document.documentElement.scrollWidth"), 360);
    let tree = browser.call("Accessibility.getFullAXTree", serde_json::json!({}));
    let nodes = tree["nodes"].as_array().expect("nodes");
    let works = ["textbox", "button", "radio", "slider", "combobox"];
    let role = |node: &Value| node["role"]["value"].as_str().unwrap_or_default().to_string();
    let worked: Vec<&Value> = nodes.iter().filter(|node| works.contains(&role(node).as_str())).collect();
    assert!(worked.len() > 6, "{}", worked.len());
    let nameless = worked.iter().filter(|node| node["name"]["value"].as_str().unwrap_or_default().is_empty());
    assert_eq!(nameless.count(), 0);
    assert_well(&browser);
}

/// The code of the page and that of the command are of the same sources: each method's model asks the same.
#[test]
fn each_method_asks_in_the_page_as_in_the_command() {
    for entry in METHODS {
        let dir = conversation::trained(&format!("page-{}", entry.name), entry.name);
        let model = Model::load(dir.0.join(MODEL)).expect("loads");
        let made = querent(&dir.0, &["page", MODEL], "");
        assert_eq!(made.code, Some(0), "{}", made.err);
        // Rows of the table are in the page of a method that needs them, which says so, and in no other.
        let says = made.out.contains("rows of the training table");
        assert_eq!(says, model.policy().rows() > 0, "{}: {}", entry.name, made.out);
        assert_eq!(
            says,
            model.tensors().iter().any(|tensor| tensor.name.starts_with("rows.")),
            "{}",
            entry.name
        );
        assert!(says || entry.name != "aaco");
        let Some(mut browser) = opened(&dir, entry.name, &[]) else { return };
        assert_eq!(browser.eval("!document.getElementById('rows').hidden"), says);
        let mut session = model.session();
        let cells = |name: &str| match name {
            "word" => "o",
            "a" => "3",
            _ => "9",
        };
        while let Some(question) = session.question() {
            assert_eq!(shown(&mut browser, "question"), question.name, "{}", entry.name);
            let (feature, cell) = (question.feature, cells(question.name));
            session.tell(feature, &[cell]).expect("taken");
            answer_by_keyboard(&mut browser, cell);
            if browser.eval(
                "document.activeElement.matches('input[type=text]') && document.activeElement.value !== ''",
            ) == true
            {
                browser.key("Enter");
            }
        }
        assert_eq!(shown(&mut browser, "question"), session.label(), "{}", entry.name);
        for ((class, page), command) in bars(&mut browser).iter().zip(session.predict()) {
            assert!((page - 100.0 * command).abs() < 0.11, "{}: {class} {page} for {command}", entry.name);
        }
        assert_well(&browser);
    }
}

/// Names and words of a table are text, whatever they look like.
#[test]
fn markup_in_a_table_stays_text() {
    let dir = TempDir::new("page-markup");
    let script = "<script>window.hit = 1</script>";
    let image = "<img src=x onerror='window.hit = 2'>";
    let rows = (0..200).map(|i| {
        format!("{},{},{}\n", i % 9, ["yes", image][i % 2], ["good", image][usize::from(i % 9 + i % 5 > 6)])
    });
    let table = format!("{script},{image},</script><b>label\n") + &rows.collect::<String>();
    std::fs::write(dir.0.join("t.csv"), table).expect("writes");
    assert_eq!(querent(&dir.0, &["init", "t.csv", "--target", "</script><b>label"], "").code, Some(0));
    train_quickly(&dir.0, &["problem.toml", "--method", "gdfs", "--set", "warm_up_epochs=1", "--out", "run"]);
    let path = dir.0.join(MODEL);
    Model::load(&path).and_then(|m| m.with_tradeoff(0.0)).and_then(|m| m.save(&path)).expect("asks for all");
    let Some(mut browser) = opened(&dir, "markup", &[]) else { return };
    let page = std::fs::read_to_string(dir.0.join("ask.html")).expect("written");
    assert!(!page.contains("window.hit"), "no name is part of the file's text");
    assert_eq!(shown(&mut browser, "title"), "</script><b>label?");
    for _ in 0..2 {
        let question = shown(&mut browser, "question");
        assert!(question == script || question == image, "{question}");
        answer_by_keyboard(&mut browser, if question == script { "3" } else { image });
        if question == script {
            browser.key("Enter");
        }
    }
    assert!(shown(&mut browser, "trace").contains(image) && shown(&mut browser, "belief").contains(image));
    assert_eq!(browser.eval("window.hit === undefined"), true);
    assert_eq!(browser.eval("document.querySelectorAll('img, b').length"), 0);
    // The control: the policy keeps markup from doing anything even where it gets in.
    browser.eval("try { document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.hit = 3'>\") } catch {}");
    assert_eq!(browser.eval("window.hit === undefined"), true);
    assert!(!browser.complaints().is_empty(), "the policy has refused it");
}

/// A model that cannot be used: the command's own words, from the command and in the page.
#[test]
fn a_bad_model_is_refused_in_the_commands_words() {
    let dir = using::clinic("page-bad");
    let whole = std::fs::read(dir.0.join(MODEL)).expect("reads");
    let text = String::from_utf8_lossy(&whole[..]).into_owned();
    assert!(text.contains("querent model 2"));
    let at = whole.windows(15).position(|w| w == b"querent model 2").expect("there");
    let mut other = whole.clone();
    other[at + 14] = b'9';
    let other_version = "it says it is a `querent model 9`, but this version reads a `querent model 2`";
    for (bytes, what) in [(&other[..], other_version), (&whole[..1000], "not a model of querent, or cut off")]
    {
        let bad = dir.0.join("bad.safetensors");
        std::fs::write(&bad, bytes).expect("writes");
        let made = querent(&dir.0, &["page", "bad.safetensors"], "");
        assert_eq!(made.code, Some(2));
        assert!(made.err.contains(what) && made.err.contains("bad.safetensors"), "{}", made.err);
        let asked = querent(&dir.0, &["ask", "bad.safetensors"], "");
        assert_eq!(made.err, asked.err);
        assert!(!dir.0.join("ask.html").exists(), "no page was written");
        // The same bytes in a page that was made of another model: as if it were of another version of the page.
        let made = querent(&dir.0, &["page", MODEL], "");
        assert_eq!(made.code, Some(0), "{}", made.err);
        let page = std::fs::read_to_string(dir.0.join("run/ask.html")).expect("written");
        let (before, rest) = page.split_once("id=\"model\">").expect("the model");
        let (_, after) = rest.split_once("</script>").expect("its end");
        let spoilt = format!("{before}id=\"model\">{}</script>{after}", packed(bytes));
        std::fs::write(dir.0.join("spoilt.html"), spoilt).expect("writes");
        let Some(mut browser) = Browser::start("bad") else { return };
        browser.open(&dir.0.join("spoilt.html"));
        browser.wait("!document.getElementById('trouble').hidden");
        let said = shown(&mut browser, "trouble");
        assert!(said.contains(what), "{said}");
        assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    }
    let budget = querent(&dir.0, &["page", MODEL, "--budget=-1"], "");
    assert!(budget.code == Some(2) && budget.err.contains("it must be zero or more"), "{}", budget.err);
}

/// Bytes as the page holds them, by the tools of the system.
fn packed(bytes: &[u8]) -> String {
    use std::io::Write;
    let mut child = std::process::Command::new("sh")
        .args(["-c", "gzip -c | base64 | tr -d '\\n'"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("a shell");
    child.stdin.take().expect("piped").write_all(bytes).expect("takes it");
    String::from_utf8(child.wait_with_output().expect("ends").stdout).expect("letters")
}
