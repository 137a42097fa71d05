//! Pictures: right labels, well-formed SVG, PNG of the right size, and no panic whatever the values.
//! They are left in `target/tmp/report/`, to be looked at.
#![cfg(feature = "report")]

use querent::Error;
use querent::nmppg::Evaluation;
use querent::policy::history::{Epoch, Phase};
use querent::report::{CurvePoint, Panel, PathPanel, Series, bars, curve, dynamics, grid, paths, save};
use resvg::tiny_skia::Pixmap;
use resvg::usvg::roxmltree;
use std::path::{Path, PathBuf};

/// The folder of the pictures.
fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report");
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    folder
}

/// Checks the text of a picture, keeps it to be looked at, and gives back all that is written in it.
fn check(name: &str, svg: &str) -> Vec<String> {
    let tree = roxmltree::Document::parse(svg).unwrap_or_else(|error| panic!("{name}: {error}\n{svg}"));
    for word in ["NaN", "nan", "inf"] {
        let bad = tree.descendants().flat_map(|node| node.attributes()).find(|a| a.value().contains(word));
        assert!(bad.is_none(), "{name}: {bad:?}");
    }
    let size = |side: &str| -> u32 {
        tree.root_element().attribute(side).and_then(|value| value.parse().ok()).expect("a whole number")
    };
    let (width, height) = (size("width"), size("height"));
    assert!((200..=1500).contains(&width) && (100..=3000).contains(&height), "{name}: {width} x {height}");
    for text in tree.descendants().filter(|node| node.has_tag_name("text")) {
        let letters: f64 = text.attribute("font-size").and_then(|v| v.parse().ok()).expect("a size");
        assert!(letters >= 12.0, "{name}: {text:?}");
    }

    std::fs::write(folder().join(format!("{name}.svg")), svg).expect("keeps the SVG");
    tree.descendants()
        .filter(|node| node.is_text())
        .filter_map(|node| node.text())
        .filter(|text| !text.trim().is_empty())
        .map(str::to_string)
        .collect()
}

/// Checks a picture, and both files that it is saved as.
fn check_saved(name: &str, svg: &str) -> Vec<String> {
    let texts = check(name, svg);
    let tree = roxmltree::Document::parse(svg).expect("checked");
    let side = |side: &str| -> u32 {
        tree.root_element().attribute(side).and_then(|value| value.parse().ok()).expect("checked")
    };
    let path = folder().join(name);
    save(svg, &path).expect("saves");
    let written = std::fs::read_to_string(path.with_extension("svg")).expect("the SVG");
    assert_eq!(written, svg);
    let png = std::fs::read(path.with_extension("png")).expect("the PNG");
    assert_eq!(png[..8], *b"\x89PNG\r\n\x1a\n");
    let pixels = Pixmap::decode_png(&png).expect("a PNG");
    assert_eq!((pixels.width(), pixels.height()), (2 * side("width"), 2 * side("height")), "{name}");
    texts
}

fn has(texts: &[String], expected: &[&str]) {
    for expected in expected {
        assert!(texts.iter().any(|text| text == expected), "no {expected:?} in {texts:?}");
    }
}

/// Numbers between 0 and 1 that look random.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// A run with a warm-up and stages of these lengths.
fn run(warm_up: usize, stages: &[usize]) -> Vec<Epoch> {
    let mut random = Random(7);
    let mut history: Vec<Epoch> = Vec::new();
    let (mut best, mut progress) = (f64::INFINITY, 0.0f64);
    let phases = std::iter::repeat_n(Phase::WarmUp, warm_up)
        .chain(stages.iter().enumerate().flat_map(|(i, &n)| std::iter::repeat_n(Phase::Stage(i), n)));
    for (index, phase) in phases.enumerate() {
        let warm = phase == Phase::WarmUp;
        let tau_soft = if let Phase::Stage(i) = phase { 2.0 * 0.6f64.powi(i as i32) } else { 0.0 };
        progress += if warm { 0.0 } else { 1.0 };
        let fading = (-progress / 8.0).exp();
        let loss = 0.39 + 0.25 * fading + 0.01 * random.next() + if warm { 0.03 } else { 0.0 };
        let cost = 3.4 + 4.0 * fading + 0.3 * random.next();
        let objective = loss + 0.02 * cost;
        let stage_best = !warm && objective < best;
        best = if stage_best { objective } else { best };
        history.push(Epoch {
            index,
            phase,
            settings: [("tau_soft".to_string(), tau_soft)].into(),
            train: [
                ("objective", objective + 0.01),
                ("loss_and_cost", if warm { 0.0 } else { objective + 0.03 * fading + 0.008 }),
                ("entropy", 0.4),
                ("prediction_loss", loss + 0.05),
                ("instances", 60_000.0),
            ]
            .into(),
            passes: Vec::new(),
            judged: None,
            validation: Evaluation {
                objective,
                loss,
                accuracy: 0.8,
                cost,
                acquisitions: cost,
                instances: 10_000.0,
                ..Evaluation::default()
            },
            best: stage_best,
            seconds: index as f64,
        });
    }
    history
}

#[test]
fn training_dynamics() {
    let history = run(5, &[14, 12, 9, 11]);
    let chosen = history.iter().rposition(|epoch| epoch.best).expect("a best epoch");
    let svg = dynamics("Syn1, α = 0.02, seed 0: training dynamics", &history);
    let texts = check_saved("dynamics", &svg);
    let chosen = format!("chosen epoch: {chosen}");
    has(&texts, &["objective (nats)", "loss (nats)", "mean cost", "epoch", "warm-up", "training"]);
    has(&texts, &["τ 2", "τ 1.2", "τ 0.72", "τ 0.432", &chosen]);
    has(&texts, &["Syn1, α = 0.02, seed 0: training dynamics"]);
}

#[test]
fn dynamics_of_long_and_short_runs() {
    let texts = check("dynamics_long", &dynamics("300 epochs in 40 stages", &run(20, &[7; 40])));
    assert!(texts.iter().filter(|text| text.starts_with("τ ")).count() < 40, "labels must not overlap");
    has(&check("dynamics_empty", &dynamics("Nothing yet", &[])), &["no epochs yet"]);
    has(&check("dynamics_one", &dynamics("One epoch", &run(0, &[1]))), &["chosen epoch: 0", "τ 2"]);
    let texts = check("dynamics_warm_up", &dynamics("Warm-up only", &run(6, &[])));
    has(&texts, &["warm-up"]);
    assert!(!texts.iter().any(|text| text.starts_with("chosen")));
    // The warm-up may go without validation.
    let mut history = run(6, &[6]);
    history[..6].iter_mut().for_each(|epoch| epoch.validation = Evaluation::default());
    check("dynamics_unvalidated", &dynamics("No validation in the warm-up", &history));
}

#[test]
fn dynamics_of_broken_runs() {
    for (name, bad) in [("nan", f64::NAN), ("infinite", f64::INFINITY), ("huge", f64::MAX), ("tiny", 5e-324)]
    {
        let mut history = run(2, &[8, 8]);
        for epoch in &mut history[7..10] {
            epoch.validation.objective = bad;
            epoch.train = epoch.train.clone().with("prediction_loss", -bad);
            epoch.settings.insert("tau_soft".into(), bad);
        }
        history[12].validation.cost = bad;
        check(&format!("dynamics_{name}"), &dynamics("Broken", &history));
        for epoch in &mut history {
            epoch.validation =
                Evaluation { objective: bad, loss: bad, cost: bad, instances: bad, ..epoch.validation };
            epoch.train = epoch.train.clone().with("loss_and_cost", bad).with("prediction_loss", bad);
        }
        check(&format!("dynamics_all_{name}"), &dynamics("Broken", &history));
    }
}

/// A panel of Syn1: x11 first, then the features of its branch.
fn syn1(name: &str, order: &[usize], instances: usize) -> PathPanel {
    let mut rows: Vec<String> = (1..=11).map(|i| format!("x{i}")).collect();
    rows.push("STOP".into());
    let mut shares = vec![vec![0.0; 12]; 12];
    let mut left = 1.0;
    for (step, &feature) in order.iter().enumerate() {
        let stopping: f64 = if step == 0 { 0.0 } else { 0.04 + 0.05 * step as f64 };
        shares[11][step] = left * stopping;
        let going = left * (1.0 - stopping);
        shares[feature][step] = going * 0.93;
        shares[order[(step + 1) % order.len()]][step] += going * 0.07;
        left = going;
    }
    shares[11][order.len()] = left;
    PathPanel { name: name.into(), rows, shares, instances }
}

/// Fourteen methods: no two look the same, and each has its name in every panel.
#[test]
fn grids_of_curves() {
    let methods: Vec<String> = (1..=14).map(|i| format!("method {i}")).collect();
    let panel = |name: &str, skipped: usize| {
        let series = methods.iter().enumerate().filter(|(i, _)| *i != skipped).map(|(i, name)| {
            let point = |step: usize| CurvePoint {
                x: step as f64,
                y: 0.5 + 0.4 * (1.0 - (-(step as f64) / (2.0 + i as f64)).exp()),
                y_sd: 0.02,
                label: None,
            };
            Series { name: name.clone(), points: (0..12).map(point).collect() }
        });
        let reference = Some(("everything asked".to_string(), 0.93));
        Panel { name: name.into(), y_label: "accuracy".into(), series: series.collect(), reference, to: 10.0 }
    };
    let svg = grid("All of them", "mean cost", &[panel("one", 99), panel("two", 3), panel("three", 0)]);
    let texts = check_saved("grid", &svg);
    has(&texts, &["All of them", "one", "two", "three", "accuracy", "mean cost", "everything asked"]);
    assert_eq!(texts.iter().filter(|text| *text == "method 14").count(), 3);
    assert_eq!(texts.iter().filter(|text| *text == "method 4").count(), 2);
    // Colour, dashes and shape together tell each from the others.
    let svg = grid("All of them", "mean cost", &[panel("one", 99)]);
    let look = |name: &String| {
        let at = svg.find(&format!(">{name}</text>")).expect("its name");
        // What stands before its name: its mark, and before that a dash if it has one.
        let before: Vec<&str> = svg[..at].lines().rev().skip(1).take(2).collect();
        let colour = before[0].split("fill=").nth(1).unwrap_or_default();
        let shape: String = before[0].chars().filter(|c| c.is_ascii_alphabetic()).collect();
        // Of the shapes that are paths, the triangle has three corners and the diamond four.
        let corners = before[0].matches('L').count();
        format!("{colour} {shape} {corners} {}", before[1].contains("dasharray"))
    };
    let looks: std::collections::BTreeSet<String> = methods.iter().map(look).collect();
    assert_eq!(looks.len(), 14, "{looks:#?}");
    for odd in [Vec::new(), vec![Panel::default()], vec![Panel { to: f64::NAN, ..panel("x", 1) }]] {
        check("grid_odd", &grid("Odd", "x", &odd));
    }
}

#[test]
fn acquisition_paths() {
    let panels = [syn1("x11 < 0", &[10, 0, 1], 5_021), syn1("x11 ≥ 0", &[10, 2, 3, 4, 5], 4_979)];
    let svg = paths("Syn1, α = 0.02: what is asked when", &panels);
    let texts = check_saved("paths", &svg);
    has(&texts, &["x11 < 0", "x11 ≥ 0", "n = 5,021", "x1", "x11", "STOP", "step", "93"]);
    has(&texts, &["share of instances (%)", "100"]);
    assert!(svg.contains("x11 &lt; 0"));
    assert_eq!(texts.iter().filter(|text| *text == "x7").count(), 1, "shared rows are named once");
    // The last step anybody took is the sixth.
    let ends: Vec<&[String]> = texts.windows(2).filter(|pair| pair[1] == "step").collect();
    assert!(ends.len() == 2 && ends.iter().all(|pair| pair[0] == "6"), "{texts:?}");
}

/// Cube-NM: a context of five, then the active block of ten.
fn cube(context: usize, features: usize, steps: usize, noise: f64) -> PathPanel {
    let mut random = Random(context as u64 + 3);
    let mut rows: Vec<String> = (1..=5).map(|i| format!("context {i}")).collect();
    rows.extend((5..features).map(|i| format!("block {} · {}", (i - 5) / 10 + 1, (i - 5) % 10 + 1)));
    rows.push("STOP".into());
    let mut shares = vec![vec![0.0; steps]; features + 1];
    for step in 0..steps {
        if step <= context.min(3) {
            shares[step][step] = 0.995;
        } else {
            for entry in 0..10 {
                let place = 5 + 10 * context + entry;
                if place < features && random.next() < 0.6 {
                    shares[place][step] = 0.3 * random.next() / (1.0 + 0.3 * step as f64);
                }
            }
            shares[features][step] = 0.4 / (1.0 + step as f64 / 3.0) * random.next();
        }
        for row in &mut shares {
            row[step] += noise * random.next() * random.next();
        }
    }
    PathPanel { name: format!("context {}", context + 1), rows, shares, instances: 300 + context }
}

#[test]
fn paths_of_many_features() {
    let five: Vec<PathPanel> = (0..5).map(|context| cube(context, 55, 10, 0.0)).collect();
    has(&check("paths_cube", &paths("Cube-NM, σ 0.1, α = 0.05", &five)), &["context 5", "n = 304"]);
    let one = [cube(2, 55, 30, 0.0)];
    let texts = check("paths_55_by_30", &paths("55 features in 30 steps", &one));
    assert!(texts.iter().any(|text| text.ends_with("features never asked")), "{texts:?}");
    let six: Vec<PathPanel> = (0..6).map(|context| cube(context % 5, 55, 30, 0.01)).collect();
    check("paths_six_by_30", &paths("Six contexts, 30 steps, every feature asked sometimes", &six));
    let texts = check("paths_200", &paths("200 features", &[cube(4, 200, 20, 0.03)]));
    assert!(texts.iter().any(|text| text.contains("not shown")), "{texts:?}");
}

#[test]
fn paths_of_odd_panels() {
    has(&check("paths_empty", &paths("No panels", &[])), &["no paths to show"]);
    let nothing = PathPanel { name: "nobody".into(), ..PathPanel::default() };
    check("paths_nobody", &paths("An empty panel", std::slice::from_ref(&nothing)));
    let long = "a <very> long & \"quoted\" feature name that goes on and on, number 12";
    let odd = PathPanel {
        name: format!("{long} & {long}"),
        rows: vec![long.into(), "温度".into(), "\u{1}line\nbreak".into(), "STOP".into()],
        shares: vec![vec![f64::NAN, 0.3], vec![-1.0, f64::INFINITY, 7.0], vec![1.0]],
        instances: 1_234_567,
    };
    let texts = check_saved(
        "paths_odd",
        &paths(&format!("{long}, {long}, {long}"), &[odd, nothing, syn1("x11 < 0", &[10, 0], 9)]),
    );
    has(&texts, &["温度", "n = 1,234,567", " line break"]);
    assert!(texts.iter().any(|text| text.contains('…') && text.ends_with("number 12")), "{texts:?}");
}

fn point(x: f64, y: f64, y_sd: f64, label: &str) -> CurvePoint {
    CurvePoint { x, y, y_sd, label: (!label.is_empty()).then(|| label.into()) }
}

#[test]
fn cost_performance_curves() {
    let ours = Series {
        name: "NM-PPG".into(),
        points: vec![
            point(4.9, 0.368, 0.004, "α 0.005"),
            point(4.1, 0.383, 0.003, "α 0.01"),
            point(3.3, 0.397, 0.005, "α 0.02"),
            point(2.2, 0.465, 0.012, "α 0.05"),
            point(0.0, 0.693, 0.0, "α 0.1"),
        ],
    };
    let soft = Series {
        name: "soft rollout".into(),
        points: vec![point(5.6, 0.372, 0.01, ""), point(3.9, 0.43, 0.02, ""), point(1.4, 0.62, 0.03, "")],
    };
    let myopic = Series {
        name: "best myopic policy".into(),
        points: vec![point(0.0, std::f64::consts::LN_2, 0.0, "")],
    };
    let all = Some(("all features, cost 11".to_string(), 0.352));
    let svg = curve("Syn1: loss against cost", "mean cost", "loss (nats)", &[ours, soft, myopic], all);
    let texts = check_saved("curve", &svg);
    has(&texts, &["mean cost", "loss (nats)", "NM-PPG", "soft rollout", "all features, cost 11", "α 0.02"]);

    let many: Vec<Series> = (0..9)
        .map(|i| Series {
            name: format!("series {i} with a rather long name & more <of it>"),
            points: (0..8)
                .map(|j| point(f64::from(j), 0.5 + 0.01 * f64::from(i * j % 7), 0.01, "same"))
                .collect(),
        })
        .collect();
    check("curve_many", &curve("Nine series", "x", "y", &many, None));
    has(&check("curve_empty", &curve("No points", "x", "y", &[], None)), &["no points to show"]);
    let one = Series { name: "one".into(), points: vec![point(2.0, 0.9, 0.05, "α 0.1")] };
    has(&check("curve_one", &curve("One point", "cost", "accuracy", &[one], None)), &["one", "α 0.1"]);
    let flat =
        Series { name: "flat".into(), points: vec![point(1.0, 0.0, 0.0, ""), point(1.0, 0.0, 0.0, "")] };
    check("curve_flat", &curve("All alike", "cost", "loss", &[flat], Some(("none".into(), f64::NAN))));
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 1e99, -1e99, 1e-320, 0.5];
    let points = bad.iter().flat_map(|&x| bad.iter().map(move |&y| point(x, y, x - y, "?"))).collect();
    check(
        "curve_bad",
        &curve("Bad", "cost", "loss", &[Series { name: "bad".into(), points }], Some(("bad".into(), 1e99))),
    );
}

#[test]
fn ablation_bars() {
    let bar = |name: &str, value: f64, sd: f64| (name.to_string(), value, sd);
    let groups = [
        (
            "Syn1, α 0.02".to_string(),
            vec![
                bar("full", 0.468, 0.003),
                bar("soft rollout", 0.497, 0.011),
                bar("no entropy", 0.546, 0.08),
            ],
        ),
        (
            "Syn3, α 0.02".to_string(),
            vec![
                bar("full", 0.474, 0.002),
                bar("soft rollout", 0.501, 0.007),
                bar("no entropy", 0.532, 0.03),
            ],
        ),
        (
            "Cube-NM σ 0.1, α 0.05".to_string(),
            vec![bar("full", 0.163, 0.006), bar("soft rollout", 0.21, 0.02), bar("no entropy", 0.39, 0.12)],
        ),
    ];
    let svg = bars(
        "Ablations",
        "test objective (nats)",
        &groups,
        Some(("stop at once".into(), std::f64::consts::LN_2)),
    );
    let texts = check_saved("bars", &svg);
    has(&texts, &["full", "soft rollout", "no entropy", "Syn1, α 0.02", "0.468", "stop at once, 0.693"]);
    has(&texts, &["test objective (nats)"]);

    has(&check("bars_empty", &bars("No bars", "y", &[], None)), &["no values to show"]);
    let one = [("one & <only>".to_string(), vec![bar("", -0.5, 0.1)])];
    has(&check("bars_one", &bars("One bar below zero", "change", &one, None)), &["one & <only>", "−0.500"]);
    let many: Vec<_> = (0..14)
        .map(|i| {
            let bars =
                (0..8).map(|j| bar(&format!("variant {j}"), f64::from((i * 3 + j * 5) % 11) - 3.0, 0.5));
            (format!("a group with a long name {i}"), bars.collect())
        })
        .collect();
    check("bars_many", &bars("Many", "y", &many, None));
    let bad = [(
        "bad".to_string(),
        [f64::NAN, f64::INFINITY, 1e99, -1e99, 5e-324].map(|v| bar("v", v, v)).to_vec(),
    )];
    check("bars_bad", &bars("Bad", "y", &bad, Some(("bad".into(), f64::NAN))));
}

/// The PNG has letters in it although no font of the machine is read.
#[test]
fn text_is_drawn_with_the_font_inside() {
    let svg = bars("MMMMMMMMMMMM", "", &[], None);
    let path = folder().join("text");
    save(&svg, &path).expect("saves");
    let png = std::fs::read(path.with_extension("png")).expect("the PNG");
    let pixels = Pixmap::decode_png(&png).expect("a PNG");
    let dark = |x: u32, y: u32| pixels.pixel(x, y).is_some_and(|pixel| pixel.red() < 100);
    let inked = (40..300).flat_map(|x| (40..84).map(move |y| (x, y))).filter(|&(x, y)| dark(x, y)).count();
    assert!(inked > 500, "{inked} dark pixels where the title should be");
}

#[test]
fn nothing_is_half_written() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("taken.svg/inside")).expect("a folder");
    std::fs::create_dir_all(folder.join("half.png/inside")).expect("a folder");
    std::fs::write(folder.join("file"), "old").expect("a file");
    let svg = "<svg xmlns='http://www.w3.org/2000/svg' width='20' height='10'/>";

    // No such folder, a file instead of a folder, a folder where the SVG or the PNG should go.
    for (place, complaint) in
        [("missing/a", "missing"), ("file/a", "file"), ("taken", "taken.svg"), ("half", "half.png")]
    {
        let error = save(svg, folder.join(place)).expect_err(place);
        assert!(matches!(error, Error::Io { .. }), "{error}");
        assert!(error.to_string().contains(complaint), "{error}");
    }
    // Not a picture: refused before anything is written.
    for text in ["", "no picture", "<svg", "<svg xmlns='http://www.w3.org/2000/svg' width='0' height='0'/>"] {
        let error = save(text, folder.join("bad")).expect_err(text);
        assert!(matches!(error, Error::File { .. }), "{error}");
    }
    let huge = "<svg xmlns='http://www.w3.org/2000/svg' width='1e9' height='1e9'/>";
    assert!(save(huge, folder.join("bad")).expect_err("too large").to_string().contains("too large"));

    let mut left: Vec<_> =
        std::fs::read_dir(&folder).expect("lists").flatten().map(|e| e.file_name()).collect();
    left.sort();
    assert_eq!(left, ["file", "half.png", "half.svg", "taken.svg"]);
    assert_eq!(std::fs::read_to_string(folder.join("half.svg")).expect("reads"), svg);

    // A dot in the name is not an ending.
    save(svg, folder.join("alpha_0.05")).expect("saves");
    assert!(folder.join("alpha_0.05.svg").exists() && folder.join("alpha_0.05.png").exists());
    std::fs::remove_dir_all(&folder).expect("cleans up");
}
