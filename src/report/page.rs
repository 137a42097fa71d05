//! A run as one HTML page: pictures inside, nothing loaded from anywhere.

use super::curve::{Look, curve_as};
use super::scores::{performance, results};
use super::{CurvePoint, PathPanel, Series, dynamics, paths};
use crate::data::encoding::short;
use crate::digest::{Digest, Node};
use crate::policy::Model;
use crate::policy::uncertainty::of_share;
use crate::run::{Point, Run};
use std::fmt::Write;

// The studio knows both by their hashes, so each is between its tags as it is; and it lets no `style=` in.
pub(super) const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of a run and its models, one for each of its points.
pub fn page(run: &Run, models: &[Model]) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, run, models);
    out
}

/// Text as it may stand between tags.
pub(super) fn text(raw: &str) -> String {
    raw.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn percent(share: f64) -> String {
    let value = 100.0 * share;
    if value == 0.0 || value >= 9.95 { format!("{value:.0}%") } else { format!("{value:.1}%") }
}

fn title(run: &Run) -> String {
    let path = std::path::Path::new(&run.problem);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    match path.parent().and_then(|folder| folder.file_name()) {
        Some(folder) if stem == "problem" => folder.to_string_lossy().into_owned(),
        _ => stem,
    }
}

fn write_page(out: &mut String, run: &Run, models: &[Model]) -> std::fmt::Result {
    let title = title(run);
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(out, "<title>{} – querent</title>\n<style>{STYLE}</style>\n</head>\n<body>", text(&title))?;
    writeln!(out, "<h1>{}</h1>", text(&title))?;
    let [train, validation, test] = run.sizes;
    writeln!(
        out,
        "<p>{train} training, {validation} validation and {test} test rows; {} features that can be asked for, {} for all of \
         them; {} classes. Judged by {}. Trained by querent {} on {}.</p>",
        run.features,
        short(run.full_cost),
        run.classes.len(),
        run.metric,
        text(&run.querent),
        text(&run.engine)
    )?;
    if !run.known.is_empty() {
        writeln!(out, "<p>Known before asking starts: {}.</p>", text(&run.known.join(", ")))?;
    }
    if !run.command.is_empty() {
        writeln!(out, "<p><code>querent {}</code></p>", text(&run.command))?;
    }
    results(out, run)?;
    let points: Vec<(&Point, &Model)> = run.points.iter().zip(models).collect();
    let of_one_model: Vec<_> = points.chunk_by(|a, b| a.0.model == b.0.model).collect();
    if of_one_model.iter().any(|group| group.len() == 1) {
        writeln!(out, "<figure>{}</figure>", performance(run, &title, None))?;
    }
    for (index, group) in of_one_model.iter().enumerate() {
        let open = if index == 0 { " open" } else { "" };
        match group {
            [(point, model)] => {
                let name = format!("{} = {}, seed {}", point.symbol(), point.alpha, point.seed);
                writeln!(out, "<details{open}><summary>{name}</summary>")?;
                details(out, run, point, model)?;
                training(out, point, model, &format!("{} = {}", point.symbol(), point.alpha))?;
            }
            many => {
                let (point, model) = many[0];
                let name = format!("one model, every {}, seed {}", point.symbol(), point.seed);
                writeln!(out, "<details{open}><summary>{name}</summary>")?;
                along(out, run, &title, many)?;
                training(out, point, model, &format!("seed {}", point.seed))?;
            }
        }
        writeln!(out, "</details>")?;
    }
    tried(out, run, models)?;
    if of_one_model.iter().any(|group| group.len() > 1) {
        writeln!(out, "<script>{SCRIPT}</script>")?;
    }
    writeln!(out, "</body>\n</html>")
}

/// One model at several trade-offs: a slider chooses which is shown. Without scripts all are, one below the other.
fn along(out: &mut String, run: &Run, title: &str, points: &[(&Point, &Model)]) -> std::fmt::Result {
    let symbol = points[0].0.symbol();
    // The slider begins where the model asks by itself, if that is one of them.
    let own = Model::choices(points[0].1).map(|choices| choices.knee.alpha);
    let near = |alpha: f64| own.map_or(0.0, |own| (alpha / own).ln().abs());
    let all = points.iter().enumerate();
    let first =
        all.min_by(|a, b| near(a.1.0.alpha).total_cmp(&near(b.1.0.alpha))).map_or(0, |(index, _)| index);
    writeln!(
        out,
        "<div class=\"along\"><p class=\"slider\"><label>{symbol}: <input type=\"range\" min=\"0\" max=\"{}\" step=\"1\" \
         value=\"{first}\"></label> <output></output></p>",
        points.len() - 1
    )?;
    for (point, model) in points {
        let t = &point.test;
        let name = format!("{symbol} = {}", point.alpha);
        writeln!(out, "<section data-name=\"{name}\"><h2>{name}</h2>")?;
        writeln!(
            out,
            "<p>{} {:.4} ± {:.4}, mean cost {:.3}, {:.2} questions, loss {:.4}.</p>",
            run.metric,
            t.score(run.metric),
            t.score_error(run.metric),
            t.cost,
            t.acquisitions,
            t.loss
        )?;
        writeln!(out, "<figure>{}</figure>", performance(run, title, Some(point)))?;
        details(out, run, point, model)?;
        writeln!(out, "</section>")?;
    }
    writeln!(out, "</div>")
}

fn details(out: &mut String, run: &Run, point: &Point, model: &Model) -> std::fmt::Result {
    let digest = &point.digest;
    let name = format!("{} = {}", point.symbol(), point.alpha);
    writeln!(out, "<h2>What is asked, and why</h2>")?;
    writeln!(
        out,
        "<p>The most common ways through the questions. Behind an arrow: the values of the question before (the middle \
         80% of numbers) of those who go that way. Branches of less than 3% are summed up.</p>"
    )?;
    writeln!(out, "<ul class=\"flow\">")?;
    digest.flow.iter().try_for_each(|first| node(out, first))?;
    if digest.flow_rest > 0.0005 {
        writeln!(out, "<li class=\"quiet\">other ways: {}</li>", percent(digest.flow_rest))?;
    }
    writeln!(out, "</ul>")?;
    let panel = PathPanel {
        name: "all of them".into(),
        rows: digest.rows.clone(),
        shares: digest.shares.clone(),
        instances: digest.instances,
    };
    writeln!(out, "<figure>{}</figure>", paths(&format!("Questions step by step, {name}"), &[panel]))?;
    usage(out, digest)?;
    confusion(out, &run.classes, digest)?;
    let bins = digest.calibration.iter().map(|bin| CurvePoint {
        x: bin.confidence,
        y: bin.right,
        y_sd: of_share(bin.right, bin.count),
        label: Some(format!("{} rows", bin.count)),
    });
    let ideal = [0.0, 1.0].map(|p| CurvePoint { x: p, y: p, y_sd: 0.0, label: None }).to_vec();
    let series = [
        Series { name: "answers".into(), points: bins.collect() },
        Series { name: "as it should be".into(), points: ideal },
    ];
    writeln!(out, "<h2>Calibration</h2>")?;
    if model.problem().class_weights().iter().any(|&weight| weight != 1.0) {
        writeln!(
            out,
            "<p>The classes are weighted, so the model believes in a world where they are as frequent as their weights \
             make them: frequent classes are right more often than it says.</p>"
        )?;
    }
    let title = "How often answers of a confidence are right, with one standard error";
    let look = Look { shares: true, ..Look::default() };
    let drawn = curve_as(title, "confidence", "share right", &series, None, look);
    writeln!(out, "<figure>{drawn}</figure>")
}

fn training(out: &mut String, point: &Point, model: &Model, name: &str) -> std::fmt::Result {
    writeln!(out, "<h2>Training</h2>")?;
    writeln!(
        out,
        "<p>{} of at most {} epochs in {:.0} s.</p>",
        point.epochs[0], point.epochs[1], point.seconds
    )?;
    writeln!(out, "<figure>{}</figure>", dynamics(&format!("Training, {name}"), model.history()))
}

/// A question or answer of the decision flow, and what follows.
fn node(out: &mut String, of: &Node) -> std::fmt::Result {
    let because = if of.because.is_empty() {
        String::new()
    } else {
        format!("<span class=\"because\">{} →</span> ", text(&of.because))
    };
    let what = match (&of.ask, &of.answer) {
        (Some(ask), _) => format!("<span class=\"ask\">{}?</span>", text(ask)),
        (None, Some((answer, right))) => {
            format!(
                "<span class=\"answer\">{}</span> <span class=\"quiet\">{} right</span>",
                text(answer),
                percent(*right)
            )
        }
        (None, None) => String::new(),
    };
    write!(
        out,
        "<li>{because}{what} {} <span class=\"quiet\">{}</span>",
        bar(of.share.clamp(0.005, 1.0), "asked"),
        percent(of.share)
    )?;
    let rest = of.rest > 0.0005;
    if !of.next.is_empty() || rest {
        writeln!(out, "<ul>")?;
        of.next.iter().try_for_each(|next| node(out, next))?;
        if rest {
            writeln!(out, "<li class=\"quiet\">other ways: {}</li>", percent(of.rest))?;
        }
        write!(out, "</ul>")?;
    }
    writeln!(out, "</li>")
}

/// Features asked for, of those that were asked for at all.
fn usage(out: &mut String, digest: &Digest) -> std::fmt::Result {
    const SHOWN: usize = 40;
    let asked: Vec<_> = digest.usage.iter().filter(|usage| usage.asked > 0.0).collect();
    let most = asked.iter().map(|usage| usage.spent).fold(0.0, f64::max).max(1e-12);
    writeln!(out, "<h2>Features and spending</h2>")?;
    writeln!(
        out,
        "<table><tr><th>feature</th><th>cost</th><th>asked of</th><th></th><th>mean place</th><th>spent on it</th><th></th></tr>"
    )?;
    for usage in asked.iter().take(SHOWN) {
        writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.1}</td><td>{:.3}</td><td>{}</td></tr>",
            text(&usage.name),
            short(usage.cost),
            percent(usage.asked),
            bar(usage.asked, "asked"),
            usage.position,
            usage.spent,
            bar(usage.spent / most, "spent")
        )?;
    }
    writeln!(out, "</table>")?;
    if asked.len() > SHOWN {
        writeln!(
            out,
            "<p class=\"quiet\">and {} more that were asked for less often</p>",
            asked.len() - SHOWN
        )?;
    }
    let never: Vec<&str> =
        digest.usage.iter().filter(|usage| usage.asked == 0.0).map(|usage| usage.name.as_str()).collect();
    if !never.is_empty() {
        let shown = never.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
        let more =
            if never.len() > SHOWN { format!(" and {} more", never.len() - SHOWN) } else { String::new() };
        writeln!(out, "<p>Never asked for: {}{more}.</p>", text(&shown))?;
    }
    Ok(())
}

fn bar(share: f64, kind: &str) -> String {
    format!(
        "<svg class=\"bar\" aria-hidden=\"true\"><rect class=\"{kind}\" width=\"{:.1}%\" height=\"100%\"/></svg>",
        100.0 * share
    )
}

fn confusion(out: &mut String, classes: &[String], digest: &Digest) -> std::fmt::Result {
    writeln!(
        out,
        "<h2>Answers by true class</h2>\n<table class=\"confusion\"><tr><th>true \\ answered</th>"
    )?;
    classes.iter().try_for_each(|class| write!(out, "<th>{}</th>", text(class)))?;
    writeln!(out, "<th>recall</th></tr>")?;
    for (truth, row) in digest.confusion.iter().enumerate() {
        let rows = row.iter().sum::<usize>();
        let total = rows.max(1) as f64;
        write!(out, "<tr><th>{}</th>", text(&classes[truth]))?;
        for (answer, &count) in row.iter().enumerate() {
            let share = count as f64 / total;
            let kind = if answer == truth { "right" } else { "wrong" };
            let deep = if share > 0.6 { " deep" } else { "" };
            write!(
                out,
                "<td class=\"{kind}{deep}\"><svg class=\"shade\" aria-hidden=\"true\"><rect width=\"100%\" height=\"100%\" \
                 fill-opacity=\"{share:.2}\"/></svg>{count}</td>"
            )?;
        }
        let recall = row[truth] as f64 / total;
        match rows {
            0 => writeln!(out, "<td>no rows</td></tr>")?,
            _ => writeln!(out, "<td>{} ± {}</td></tr>", percent(recall), percent(of_share(recall, rows)))?,
        }
    }
    writeln!(out, "</table>")
}

/// What was and what was not tried: a result is worth as much as what it was compared with.
fn tried(out: &mut String, run: &Run, models: &[Model]) -> std::fmt::Result {
    let mut alphas: Vec<String> = run.points.iter().map(|point| point.alpha.to_string()).collect();
    alphas.dedup();
    let mut seeds: Vec<u64> = run.points.iter().map(|point| point.seed).collect();
    seeds.sort();
    seeds.dedup();
    let symbol = run.points.first().map_or("α", |point| point.symbol());
    let flag = if symbol == "α" { "alphas" } else { "thresholds" };
    writeln!(out, "<h2>What was tried, and what was not</h2>\n<ul>")?;
    writeln!(out, "<li>Tried: {symbol} = {}; {} seed(s): {:?}.</li>", alphas.join(", "), seeds.len(), seeds)?;
    if let Some(model) = models.first() {
        writeln!(
            out,
            "<li>Each model: method {}, at most {} questions; all settings: <code>{}</code>.</li>",
            text(model.method()),
            model.steps(),
            text(&model.settings().to_string())
        )?;
    }
    if let Some([from, to]) = run.points.first().and_then(|point| point.range) {
        writeln!(
            out,
            "<li>The model was trained for α from {from} to {to}: <code>--range</code> says another range.</li>"
        )?;
    }
    if alphas.len() < 2 {
        writeln!(
            out,
            "<li>Not tried: another {symbol}. <code>--{flag}</code> shows what more or less spending would reach.</li>"
        )?;
    }
    if seeds.len() < 3 {
        writeln!(
            out,
            "<li>Not tried: more seeds. How much of a difference is chance is not known from {}.</li>",
            seeds.len()
        )?;
    }
    if run.nothing.is_none() {
        writeln!(
            out,
            "<li>Not tried: <code>--baselines</code>. Without them it is not known whether the policy beats a fixed set \
             of features.</li>"
        )?;
    } else {
        writeln!(
            out,
            "<li>Tried: a fixed set of features of the same cost, chosen one by one on validation rows, each with a \
             predictor of its own. Not tried: every set.</li>"
        )?;
    }
    writeln!(
        out,
        "<li>Not tried: other network sizes, rates or splits of the rows; other rows than this table's.</li>"
    )?;
    if run.points.iter().any(|point| point.epochs[0] == point.epochs[1]) {
        writeln!(
            out,
            "<li>Some training used all of its epochs: more (<code>--epochs</code>) may reach more.</li>"
        )?;
    }
    writeln!(out, "</ul>")
}
