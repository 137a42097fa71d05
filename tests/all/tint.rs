//! What a browser compiles shaders with (tint, in Chromium) has rules of its own, above all that barriers are met by all threads:
//! every kernel, and every fused shader, is put to it.

use crate::browser::Browser;
use crate::common::TempDir;
use crate::rig;
use querent::Engine;
use querent::engine::gpu::fused_sources;
use querent::engine::kernels::Target;
use querent::nmppg::{Config, Rollout, Stepper};
use serde_json::{Value, json};

/// What tint has against some shaders, one after the other.
fn complaints(browser: &mut Browser, sources: &[(String, String)]) -> Vec<String> {
    let texts: Vec<&str> = sources.iter().map(|(_, source)| source.as_str()).collect();
    let asked = format!(
        "(async () => {{
            const adapter = await navigator.gpu.requestAdapter({{ featureLevel: 'core' }});
            const device = await adapter.requestDevice();
            const found = [];
            for (const code of {}) {{
                const module = device.createShaderModule({{ code }});
                const info = await module.getCompilationInfo();
                const words = info.messages.map((m) => m.type + ' ' + m.lineNum + ': ' + m.message);
                found.push(words.join('; '));
            }}
            return found;
        }})()",
        json!(texts)
    );
    let found = browser.eval(&asked);
    let words = found.as_array().expect("a list").iter().map(|text| text.as_str().expect("text"));
    let named = sources.iter().zip(words).filter(|(_, words)| !words.is_empty());
    named.map(|((name, _), words)| format!("{name}: {words}")).collect()
}

/// Those of the plans there are.
fn fused() -> Vec<(String, String)> {
    let relaxed = Config { rollout: Rollout::Soft, ..Config::paper(0.02) };
    let mut all = Vec::new();
    for (name, config, data) in [
        ("published", Config::paper(0.02), rig::toy(5, 40)),
        ("default", Config::new(0.02), rig::toy(5, 40)),
        ("bytes", Config::new(0.02), rig::toy_of_bytes(4, 40)),
        ("relaxed", relaxed, rig::toy(5, 40)),
    ] {
        let stepper = Stepper::new(&Engine::cpu(), &data, config).expect("valid");
        all.push((name, fused_sources(stepper.program().plan()).expect("fused")));
    }
    let data = rig::toy(5, 40);
    for entry in querent::methods::METHODS {
        let mut training = (entry.start)(&Engine::cpu(), &data, (entry.defaults)(&data)).expect("starts");
        if let Some(program) = training.program() {
            all.push((entry.name, fused_sources(program.plan()).expect("fused")));
        }
    }
    assert!(all.iter().filter(|(_, sources)| !sources.is_empty()).count() >= 6, "nothing is fused");
    let named = |(name, sources): (&str, Vec<(String, String)>)| {
        sources.into_iter().map(move |(what, source)| (format!("{name}: {what}"), source)).collect::<Vec<_>>()
    };
    all.into_iter().flat_map(named).collect()
}

#[test]
fn a_browser_compiles_every_shader() {
    let dir = TempDir::new("tint");
    let Some(mut browser) = Browser::start_local("tint", true) else { return };
    let page = dir.0.join("page.html");
    std::fs::write(&page, "<!doctype html><title>tint</title>").expect("written");
    browser.open(&page);
    if browser.eval("navigator.gpu.requestAdapter().then((a) => a !== null)") != Value::Bool(true) {
        return eprintln!("SKIPPED: the browser has no adapter");
    }
    let kernels = querent::methods::kernels();
    let mut sources: Vec<(String, String)> =
        kernels.map(|kernel| (kernel.name.to_string(), kernel.source(Target::Gpu))).collect();
    sources.extend(fused());
    println!("{} shaders", sources.len());
    let wrong = complaints(&mut browser, &sources);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // The control: a barrier that not all threads meet.
    let source = "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) { \
                  if (i > 3u) { workgroupBarrier(); } }";
    let wrong = complaints(&mut browser, &[("barrier".into(), source.into())]);
    assert!(wrong.len() == 1 && wrong[0].contains("uniform"), "{wrong:?}");
}
