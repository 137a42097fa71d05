//! The studio page in a browser: a table is dropped, looked at, trained on and asked, in WebAssembly on the CPU or on
//! WebGPU, and what it leaves is what the command reads and makes.
//!
//! It is built by `sh web/studio/build.sh`, which `tests/run.sh` does. Without it these tests are skipped, aloud, unless
//! `QUERENT_GPU` is `require`.
#![cfg(all(feature = "cli", unix))]

use crate::browser::Browser;
use crate::command::{clinic, querent, querent_with};
use crate::common::{TempDir, assets};
use querent::data::{Part, synthetic};
use querent::{Model, Step};
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

mod model;
mod report;
#[path = "../../web/serve/src/server.rs"]
mod server;

fn dist() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("web/dist")
}

/// Whether the studio is built, as it must be where everything is tested.
fn is_built() -> bool {
    let is_there = dist().join("index.html").is_file();
    let required = std::env::var("QUERENT_GPU").is_ok_and(|value| value == "require");
    assert!(is_there || !required, "there is no web/dist: sh web/studio/build.sh makes it");
    if !is_there {
        eprintln!("SKIPPED: there is no web/dist");
    }
    is_there
}

/// The studio in a browser; `None` where that cannot be and need not.
fn opened(name: &str, has_webgpu: bool) -> Option<(Browser, SocketAddr)> {
    if !is_built() {
        return None;
    }
    let mut browser = Browser::start_local(name, has_webgpu)?;
    let (server, address) = server::listen(&dist(), 0).expect("listens");
    std::thread::spawn(move || server.serve());
    browser.go_to(&format!("http://{address}/"));
    Some((browser, address))
}

fn shown(browser: &mut Browser, id: &str) -> String {
    browser.text(&format!("document.getElementById('{id}').textContent"))
}

fn press(browser: &mut Browser, id: &str) {
    browser.eval(&format!("document.getElementById('{id}').click()"));
}

fn is_shown(id: &str) -> String {
    format!("!document.getElementById('{id}').closest('[hidden]')")
}

/// Sets a field as somebody does who changes it.
fn set(browser: &mut Browser, selector: &str, property: &str, value: &Value) {
    browser.eval(&format!(
        "(() => {{ const field = document.querySelector({}); field[{}] = {value}; field.dispatchEvent(new Event('change')); }})()",
        json!(selector),
        json!(property)
    ));
}

/// Drops a file of these bytes.
fn drop_file(browser: &mut Browser, name: &str, bytes: &[u8]) {
    let bytes = json!(bytes);
    browser.eval(&format!(
        "(() => {{ const all = new DataTransfer(); all.items.add(new File([new Uint8Array({bytes})], {})); \
         document.getElementById('drop').dispatchEvent(new DragEvent('drop', {{ dataTransfer: all, bubbles: true, cancelable: true }})); }})()",
        json!(name)
    ));
}

/// Waits until the run is over; if it is refused or fails, that is told.
fn wait_for_model(browser: &mut Browser) {
    browser.wait(&format!(
        "{} || document.getElementById('train-refusal').textContent !== ''",
        is_shown("tested")
    ));
    assert_eq!(shown(browser, "train-refusal"), "");
}

/// Nothing went wrong in the page or its worker, and neither has asked for anything elsewhere.
fn assert_well(browser: &mut Browser, address: SocketAddr) {
    browser.listen_to_workers();
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    assert!(
        browser.eval("document.getElementById('trouble').hidden") == true,
        "{}",
        shown(browser, "trouble")
    );
    let own = format!("http://{address}/");
    let is_own = |at: &&str| at.starts_with(&own) || at.starts_with("blob:") || at.starts_with("data:");
    let requests = browser.requests();
    assert!(requests.len() > 3 && requests.iter().all(is_own), "{requests:?}");
}

/// Lets the browser save files into a folder.
fn saves_to(browser: &mut Browser, folder: &Path) {
    let into = json!({ "behavior": "allow", "downloadPath": folder.display().to_string() });
    browser.call("Page.setDownloadBehavior", into);
}

/// Presses a button that saves a file, and waits for the file.
fn saved(browser: &mut Browser, button: &str, file: &Path) -> Vec<u8> {
    press(browser, button);
    for _ in 0..400 {
        if file.is_file() {
            return std::fs::read(file).expect("reads");
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    panic!("{} was not saved; the page says {}", file.display(), shown(browser, "result-refusal"));
}

/// Settings for a run of ten training steps, five without a policy and five with one. All that `querent train` would try out
/// is said.
const TEN_STEPS: &[&str] = &[
    "batch=120",
    "warm_up_epochs=1",
    "temperatures=[1.0]",
    "stage_epochs=1",
    "epoch_steps=5",
    "horizon=4",
    "input_noise=0",
    "policy=[32,32]",
    "predictor=[32,32]",
];
const ALPHA: &str = "0.02";

/// A table of 600 training rows of Syn1, and some to validate and test.
fn syn1_table() -> String {
    let data = synthetic::syn1(0, [600, 100, 100]).expect("valid");
    let names: Vec<&str> = data.problem().features().iter().map(|feature| feature.name.as_str()).collect();
    let mut text = format!("{},y,split\n", names.join(","));
    for (part, name) in [(Part::Train, "train"), (Part::Validation, "validation"), (Part::Test, "test")] {
        for (row, label) in data.splits()[part as usize].y.iter().enumerate() {
            let cells: Vec<String> = data.row(part, row).iter().map(f32::to_string).collect();
            text += &format!("{},{},{name}\n", cells.join(","), ["no", "yes"][*label as usize]);
        }
    }
    text
}

/// The same run by the command.
fn natively(dir: &TempDir, variables: &[(&str, &Path)], engine: &str) -> Model {
    std::fs::write(dir.0.join("syn1.csv"), syn1_table()).expect("writes");
    let init = querent(&dir.0, &["init", "syn1.csv", "--target", "y", "--force"], "");
    assert_eq!(init.code, Some(0), "{}", init.err);
    let mut arguments =
        vec!["--quiet", "train", "problem.toml", "--engine", engine, "--out", "run", "--alpha", ALPHA];
    TEN_STEPS.iter().for_each(|assignment| arguments.extend(["--set", assignment]));
    let done = querent_with(&dir.0, variables, &arguments, "");
    assert_eq!(done.code, Some(0), "{}", done.err);
    Model::load(dir.0.join("run/model.safetensors")).expect("loads")
}

/// The largest difference between the weights of two models.
fn apart(a: &Model, b: &Model) -> f64 {
    let (a, b) = (a.tensors(), b.tensors());
    assert_eq!(a.len(), b.len());
    let values = a.iter().zip(&b).flat_map(|(a, b)| {
        assert_eq!((&a.name, a.values.len()), (&b.name, b.values.len()));
        a.values.iter().zip(&b.values)
    });
    values.map(|(a, b)| (f64::from(*a) - f64::from(*b)).abs()).fold(0.0, f64::max)
}

/// Trains Syn1's table for ten steps in the page and gives the model; `between` is done as soon as it has begun.
fn ten_steps(
    browser: &mut Browser,
    dir: &TempDir,
    engine: &str,
    between: impl FnOnce(&mut Browser),
) -> Model {
    saves_to(browser, &dir.0);
    drop_file(browser, "syn1.csv", syn1_table().as_bytes());
    browser.wait(&is_shown("training"));
    set(browser, "#target", "value", &json!("y"));
    browser.wait("document.getElementById('look-words').textContent.includes('Split by split')");
    set(browser, "#engine", "value", &json!(engine));
    set(browser, "#settings", "value", &json!(format!("{}\nalpha={ALPHA}", TEN_STEPS.join("\n"))));
    press(browser, "begin");
    between(browser);
    wait_for_model(browser);
    let bytes = saved(browser, "save-model", &dir.0.join("model.safetensors"));
    Model::from_bytes(&bytes).expect("the command reads it")
}

/// The CPU engine in WebAssembly computes what the native one does without vectors, also if the tab is closed after the first
/// epoch and opened again.
#[test]
fn syn1_on_the_cpu_in_webassembly_is_syn1_natively() {
    let dir = TempDir::new("studio-syn1");
    let Some((mut browser, address)) = opened("studio-syn1", false) else { return };
    let here = ten_steps(&mut browser, &dir, "auto", |browser| {
        browser.wait(&format!(
            "document.getElementById('epoch-words').textContent !== '' || {}",
            is_shown("tested")
        ));
        assert!(shown(browser, "engine-words").contains("CPU, WebAssembly with SIMD"));
        assert!(
            shown(browser, "engine-words").contains("no WebGPU adapter"),
            "{}",
            shown(browser, "engine-words")
        );
        // As if the tab had been closed.
        browser.go_to(&format!("http://{address}/?again"));
        browser.wait(&is_shown("kept-go"));
        let kept = shown(browser, "kept-words");
        assert!(kept.starts_with("syn1.csv: "), "{kept}");
        press(browser, "kept-go");
    });
    let there = natively(&dir, &[("QUERENT_CPU", Path::new("scalar"))], "cpu");
    assert_eq!(here.history().len(), 2);
    let (apart, moved) = (apart(&here, &there), there.tensors().len());
    eprintln!("after ten steps the largest difference of {moved} tensors is {apart:.2e}");
    assert!(apart < 1e-5, "{apart}");
    assert_well(&mut browser, address);
}

/// On WebGPU by the browser's software adapter, SwiftShader: the bits of the native GPU engine on the same driver.
#[test]
fn syn1_on_webgpu_is_syn1_natively() {
    let dir = TempDir::new("studio-webgpu");
    let Some((mut browser, address)) = opened("studio-webgpu", true) else { return };
    let here = ten_steps(&mut browser, &dir, "gpu", |_| ());
    assert!(
        shown(&mut browser, "engine-words").contains("WebGPU"),
        "{}",
        shown(&mut browser, "engine-words")
    );
    assert_eq!(here.history().len(), 2);
    let rects = browser.eval("document.querySelectorAll('#heat .cell').length");
    assert!(rects.as_u64().is_some_and(|rects| rects > 0), "there is no heat map: {rects}");
    let driver = Path::new("/usr/lib/chromium/vk_swiftshader_icd.json");
    if driver.is_file() {
        let there = natively(&dir, &[("VK_DRIVER_FILES", driver)], "gpu");
        let apart = apart(&here, &there);
        eprintln!("after ten steps on SwiftShader the largest difference is {apart:.2e}");
        assert_eq!(apart, 0.0);
    } else {
        eprintln!("SKIPPED: {} is not there: not compared with the native engine", driver.display());
    }
    assert_well(&mut browser, address);
}

/// A device that is lost in the middle costs time, not the run: the CPU goes on from the last epoch that was kept.
#[test]
fn a_lost_device_does_not_lose_the_run() {
    let dir = TempDir::new("studio-lost");
    let Some((mut browser, _)) = opened("studio-lost", true) else { return };
    // Before it has begun, a worker knows nothing of GPUs.
    press(&mut browser, "syn1");
    browser.wait(&is_shown("training"));
    browser.eval_in_worker(
        "(() => { const asked = GPUAdapter.prototype.requestDevice; GPUAdapter.prototype.requestDevice = async function (...more) { \
         self.device = await asked.apply(this, more); return self.device; }; })()",
    );
    let model = ten_steps(&mut browser, &dir, "gpu", |browser| {
        browser.wait("document.getElementById('engine-words').textContent.includes('WebGPU')");
        browser.eval_in_worker("self.device.destroy()");
    });
    assert_eq!(model.history().len(), 2);
    let said = shown(&mut browser, "engine-words");
    assert!(said.contains("CPU, WebAssembly") && said.contains("lost"), "{said}");
}

/// The clinic's table from the drop to an answer; the files that are saved are those of the command.
#[test]
fn the_clinic_goes_from_a_drop_to_an_answer() {
    let dir = TempDir::new("studio-clinic");
    let Some((mut browser, address)) = opened("studio-clinic", false) else { return };
    saves_to(&mut browser, &dir.0);
    let table = std::fs::read(assets().join("clinic/clinic.csv")).expect("reads");
    drop_file(&mut browser, "clinic.csv", &table);
    browser.wait(&is_shown("training"));
    // The last column is to be predicted; ids and what gives the answer away are left out, as by the command.
    assert_eq!(browser.eval("document.getElementById('target').value"), "diagnosis");
    let beside = clinic("studio-clinic-init");
    let init = querent(&beside.0, &["init", "clinic.csv", "--target", "diagnosis", "--force"], "");
    let out = browser.eval(
        "[...document.querySelectorAll('#columns tr.out strong')].map((name) => name.textContent).join(', ')",
    );
    let ignored = init.out.lines().find_map(|line| line.strip_prefix("ignored: ")).expect("said");
    assert_eq!(out.as_str().expect("text"), ignored);
    // What is changed counts: a cost, a group, a kind; and what cannot be is refused as by the command.
    set(&mut browser, "[aria-label='Cost of xray']", "value", &json!("-2"));
    press(&mut browser, "begin");
    browser.wait("document.getElementById('train-refusal').textContent !== ''");
    assert!(
        shown(&mut browser, "train-refusal").contains("xray"),
        "{}",
        shown(&mut browser, "train-refusal")
    );
    set(&mut browser, "[aria-label='Cost of xray']", "value", &json!("25"));
    set(&mut browser, "[aria-label='Known of age']", "checked", &json!(true));
    // Severe coughs first, which is the wrong way round, and a word too few is refused.
    set(&mut browser, "[aria-label^='Words of cough']", "value", &json!("severe | mild"));
    press(&mut browser, "begin");
    browser.wait("document.getElementById('train-refusal').textContent.includes('cough')");
    set(&mut browser, "[aria-label^='Words of cough']", "value", &json!("severe | mild | none"));
    for column in ["crp_mg_l", "white_cells"] {
        set(&mut browser, &format!("[aria-label='Group of {column}']"), "value", &json!("blood"));
        set(&mut browser, &format!("[aria-label='Cost of {column}']"), "value", &json!("8"));
    }
    let problem = saved(&mut browser, "problem", &dir.0.join("problem.toml"));
    let problem = String::from_utf8(problem).expect("text");
    for part in ["cost = 25.0", "group = \"blood\"", "values = [\"severe\", \"mild\", \"none\"]"] {
        assert!(problem.contains(part), "{part}: {problem}");
    }
    let quick = "warm_up_epochs=1\ntemperatures=[1.0]\nstage_epochs=2\nepoch_steps=20\npolicy=[16,16]\npredictor=[16,16]";
    set(&mut browser, "#settings", "value", &json!(quick));
    press(&mut browser, "begin");
    wait_for_model(&mut browser);
    let model = saved(&mut browser, "save-model", &dir.0.join("model.safetensors"));
    let page = saved(&mut browser, "save-page", &dir.0.join("ask.html"));
    let made = querent(&dir.0, &["page", "model.safetensors", "-o", "other.html"], "");
    assert_eq!(made.code, Some(0), "{}", made.err);
    assert!(std::fs::read(dir.0.join("other.html")).expect("written") == page, "the same page");
    let model = Model::from_bytes(&model).expect("loads");
    assert_eq!(model.problem().features().iter().find(|f| f.name == "xray").map(|f| f.cost), Some(25.0));
    asks_the_same(&mut browser, &model, &table);
    assert_well(&mut browser, address);
}

/// Asks the first patient through, in the page's frame and by the model: question by question the same, and the answer.
fn asks_the_same(browser: &mut Browser, model: &Model, table: &[u8]) {
    let mut rows = csv::Reader::from_reader(table);
    let header = rows.headers().expect("a header").clone();
    let first = rows.records().next().expect("a row").expect("reads");
    let cell = |name: &str| {
        let at = header.iter().position(|column| column == name).expect("a column");
        first[at].to_string()
    };
    press(browser, "ask");
    browser.wait("!!document.querySelector('iframe')?.contentDocument?.querySelector('#all:not([hidden], [aria-busy])')");
    let frame = "document.querySelector('iframe').contentDocument";
    let answer = |browser: &mut Browser, cells: &[String]| {
        browser.eval(&format!(
            "(() => {{ const page = {frame}; const cells = {}; [...page.querySelectorAll('#fields .field')].forEach((field, index) => {{ \
             const word = [...field.querySelectorAll('.choices button, .choice')].find((choice) => choice.textContent === cells[index]); \
             if (word) word.click(); else field.querySelector('input[type=text]').value = cells[index]; }}); \
             if (!page.getElementById('next').hidden) page.getElementById('next').click(); }})()",
            json!(cells)
        ));
    };
    let mut session = model.session();
    answer(browser, &[cell("age")]);
    session.tell_given(&[&cell("age")]).expect("taken");
    while let Some(question) = session.question() {
        let (feature, name) = (question.feature, question.name.to_string());
        assert_eq!(browser.text(&format!("{frame}.getElementById('question').textContent")), name);
        let cells =
            if name == "blood" { vec![cell("crp_mg_l"), cell("white_cells")] } else { vec![cell(&name)] };
        session.tell(feature, &cells.iter().map(String::as_str).collect::<Vec<_>>()).expect("taken");
        answer(browser, &cells);
    }
    assert!(matches!(session.next(), Step::Stop));
    assert_eq!(browser.text(&format!("{frame}.getElementById('question').textContent")), session.label());
}

/// Tables that cannot be are refused in the words of the command, and the page takes the next one.
#[test]
fn bad_tables_are_refused_in_the_commands_words() {
    let dir = TempDir::new("studio-bad");
    let Some((mut browser, address)) = opened("studio-bad", false) else { return };
    let many: String = (0..5000).map(|row| format!("{},class {row}\n", row % 7)).collect();
    let tables: &[(&str, &[u8])] = &[
        ("0 bytes", b""),
        ("a header alone", b"u,y\n"),
        ("a ragged row", b"u,y\n1,a\n2\n"),
        ("a longer row", b"u,y\n1,a\n2,b,c\n"),
        ("a duplicate header", b"u,u,y\n1,2,a\n"),
        ("an empty header", b"u,,y\n1,2,a\n"),
        ("one class", b"u,y\n1,a\n2,a\n"),
        ("5,000 classes", &[b"u,y\n", many.as_bytes()].concat()),
        ("not UTF-8", b"u,y\n\xff\xff,a\n"),
        ("UTF-16", b"\xff\xfeu\0,\0y\0"),
        ("a truncated gzip", b"\x1f\x8b\x08\x00\x00"),
        ("Parquet", b"PAR1\x15\x00\x15"),
        ("a quote that is never closed", b"u,y\n1,\"a\n2,b\n"),
    ];
    for (what, bytes) in tables {
        std::fs::write(dir.0.join("t.csv"), bytes).expect("writes");
        let done = querent(&dir.0, &["init", "t.csv", "--target", "y"], "");
        assert_eq!(done.code, Some(2), "{what}: {}", done.out);
        let expected = done.err.trim_end().strip_prefix("error: ").expect("an error").to_string();
        drop_file(&mut browser, "t.csv", bytes);
        let refusals = "document.getElementById('source-refusal').textContent + document.getElementById('look-refusal').textContent";
        browser.wait(&format!("{refusals} === {}", json!(expected)));
        assert!(browser.eval(&is_shown("training")) == false, "{what}");
    }
    // A cell that does not fit its kind is found when it is prepared.
    let rows: String = (0..60).map(|i| format!("{},{}\n", i % 7, ["no", "yes"][i % 2])).collect();
    drop_file(&mut browser, "t.csv", format!("u,y\n{rows}").as_bytes());
    browser.wait(&is_shown("training"));
    set(&mut browser, "[aria-label='Kind of u']", "value", &json!("date"));
    press(&mut browser, "begin");
    browser.wait("document.getElementById('train-refusal').textContent !== ''");
    let said = shown(&mut browser, "train-refusal");
    assert!(said.contains("t.csv: row 1 (line 2), column `u`"), "{said}");
    // Settings that cannot be, too.
    set(&mut browser, "[aria-label='Kind of u']", "value", &json!("numeric"));
    set(&mut browser, "#settings", "value", &json!("stage_epoch=1"));
    press(&mut browser, "begin");
    browser.wait("document.getElementById('train-refusal').textContent.includes('stage_epoch=1')");
    assert_well(&mut browser, address);
}

/// Names of a table are text, whatever they look like, and the policy keeps markup from doing anything.
#[test]
fn markup_in_a_header_stays_text() {
    let Some((mut browser, _)) = opened("studio-markup", false) else { return };
    let script = "<script>window.hit = 1</script>";
    let image = "<img src=x onerror='window.hit = 2'>";
    let rows: String = (0..60).map(|i| format!("{},{},{}\n", i % 9, i % 4, ["good", image][i % 2])).collect();
    drop_file(&mut browser, "<b>t.csv", format!("{script},{image},</select><b>label\n{rows}").as_bytes());
    browser.wait(&is_shown("training"));
    let names =
        browser.eval("[...document.querySelectorAll('#columns strong')].map((name) => name.textContent)");
    assert_eq!(names, json!([script, image]));
    assert_eq!(browser.eval("document.getElementById('target').value"), "</select><b>label");
    assert!(shown(&mut browser, "look-words").contains(image));
    assert_eq!(browser.eval("document.querySelectorAll('img, b').length + (window.hit ?? 0)"), 0);
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
    // The control.
    browser.eval("try { document.body.insertAdjacentHTML('beforeend', \"<img src=x onerror='window.hit = 3'>\") } catch {}");
    assert_eq!(browser.eval("window.hit === undefined"), true);
    assert!(!browser.complaints().is_empty(), "the policy has refused it");
}

/// What a visitor loads: 2.5 MB is what it may have, as web servers pack it.
#[test]
fn it_is_small() {
    if !is_built() {
        return;
    }
    let mut size = 0;
    for entry in std::fs::read_dir(dist()).expect("lists").flatten() {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&std::fs::read(entry.path()).expect("reads")).expect("packs");
        size += packed.finish().expect("packs").len();
    }
    eprintln!("the studio has {size} bytes, each file packed by gzip");
    assert!(size < 2_500_000, "{size} bytes");
    assert!(size > 300_000, "the code is in it: {size} bytes");
}

/// Syn1 itself, with everything as it is by default: it can be stopped and goes on, and the page works meanwhile.
#[test]
fn a_run_is_stopped_and_goes_on() {
    let Some((mut browser, address)) = opened("studio-stop", false) else { return };
    press(&mut browser, "syn1");
    browser.wait(&is_shown("training"));
    assert!(shown(&mut browser, "size").contains("60000 rows train"), "{}", shown(&mut browser, "size"));
    press(&mut browser, "begin");
    let step = "Number(document.getElementById('rate').textContent.match(/step (\\d+)/)?.[1] ?? -1)";
    browser.wait(&format!("{step} > 2"));
    press(&mut browser, "stop");
    browser.wait(&is_shown("go"));
    let stopped = browser.eval(step).as_f64().expect("a number");
    std::thread::sleep(std::time::Duration::from_millis(400));
    assert_eq!(browser.eval(step), stopped, "it stands");
    press(&mut browser, "go");
    browser.wait(&format!("{step} > {stopped}"));
    assert_well(&mut browser, address);
}
