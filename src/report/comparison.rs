//! A comparison as one HTML page: pictures inside, nothing loaded from anywhere.

use super::grid::{Panel, grid};
use super::page::{STYLE, text};
use super::{CurvePoint, PathPanel, Series, paths, published};
use crate::compare::{At, Method, PathsOf, Standing, Times};
use crate::data::encoding::short;
use crate::run::Spread;
use std::fmt::Write;

/// What else the page of a comparison says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Notes {
    /// The version that made it.
    pub querent: String,
    /// What held for all cells, in words.
    pub settings: Vec<String>,
    /// Cells that failed, each with why.
    pub failed: Vec<String>,
    /// Cells that were not run yet.
    pub open: usize,
    /// The method that sentences are about.
    pub about: String,
}

/// How far panels show curves beyond the cost that methods are compared up to.
const BEYOND: f64 = 1.4;
/// Costs of the tables, as shares of that cost.
const SHARES: [f64; 4] = [0.125, 0.25, 0.5, 1.0];

/// The curves of a comparison as a picture: a panel a table.
pub fn curves(standings: &[Standing]) -> String {
    let panels: Vec<Panel> = standings.iter().map(panel).collect();
    let many = standings.iter().flat_map(|s| &s.methods).any(|method| method.lines.len() > 1);
    let title = if many {
        "Performance against cost, with one standard deviation between seeds"
    } else {
        "Performance against cost"
    };
    grid(title, "mean cost", &panels)
}

fn panel(standing: &Standing) -> Panel {
    let point = |p: crate::compare::Place| CurvePoint { x: p.cost, y: p.score, y_sd: p.error, label: None };
    let series = |method: &Method| Series {
        name: method.name.clone(),
        points: method.drawn().into_iter().map(point).collect(),
    };
    let all = |at: &At| (format!("everything asked, {:.3}", at.score.mean), at.score.mean);
    Panel {
        name: standing.table.clone(),
        y_label: standing.metric.to_string(),
        series: standing.methods.iter().map(series).collect(),
        reference: standing.everything.as_ref().map(all),
        to: if standing.reach > 0.0 { BEYOND * standing.reach } else { f64::INFINITY },
    }
}

/// The page of a comparison.
pub fn comparison(standings: &[Standing], notes: &Notes) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_page(&mut out, standings, notes);
    out
}

fn write_page(out: &mut String, standings: &[Standing], notes: &Notes) -> std::fmt::Result {
    writeln!(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">")?;
    writeln!(out, "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">")?;
    writeln!(
        out,
        "<title>Comparison – querent</title>\n<style>\n{STYLE}</style>\n</head>\n<body class=\"wide\">"
    )?;
    let names: Vec<String> = standings.iter().map(|standing| text(&standing.table)).collect();
    writeln!(out, "<h1>Comparison: {}</h1>", names.join(", "))?;
    writeln!(
        out,
        "<p>Every method on the same rows, at the same prices. Points are chosen on the validation rows and scored on the test \
         rows. Made by querent {}{}.</p>",
        text(&notes.querent),
        notes.settings.iter().map(|setting| format!("; {}", text(setting))).collect::<String>()
    )?;
    if notes.open > 0 {
        writeln!(out, "<p>Not run yet: {} cells.</p>", notes.open)?;
    }
    if !notes.failed.is_empty() {
        let list: String = notes.failed.iter().map(|failed| format!("<li>{}</li>", text(failed))).collect();
        writeln!(out, "<p>Failed:</p><ul>{list}</ul>")?;
    }
    writeln!(out, "<ul>")?;
    for standing in standings {
        writeln!(out, "<li>{}</li>", text(&standing.sentence(&notes.about)))?;
    }
    writeln!(out, "</ul>\n<figure>{}</figure>", curves(standings))?;
    writeln!(
        out,
        "<p class=\"quiet\">Pictures end a little beyond the cost that methods are compared up to: where the best of them have 99% \
         of what there is to gain.</p>"
    )?;
    for standing in standings {
        table(out, standing)?;
    }
    runtimes(out, standings)?;
    writeln!(out, "</body>\n</html>")
}

fn score(of: Spread, seeds: usize) -> String {
    if seeds > 1 {
        format!("{:.3} <span class=\"quiet\">± {:.3}</span>", of.mean, of.deviation)
    } else {
        format!("{:.3}", of.mean)
    }
}

fn table(out: &mut String, standing: &Standing) -> std::fmt::Result {
    let [train, validation, test] = standing.sizes;
    writeln!(out, "<h2>{}</h2>", text(&standing.table))?;
    writeln!(
        out,
        "<p>{train} training, {validation} validation and {test} test rows; {} features, {} for all of them; {} classes.</p>",
        standing.features,
        short(standing.full_cost),
        standing.classes
    )?;
    let costs = SHARES.map(|share| share * standing.reach);
    write!(out, "<table><tr><th>{} at a mean cost of</th>", standing.metric)?;
    costs.iter().try_for_each(|cost| write!(out, "<th>{cost:.2}</th>"))?;
    writeln!(out, "<th>mean up to there</th></tr>")?;
    let ranked = standing.ranked();
    for (method, mean) in &ranked {
        let seeds = method.lines.len();
        write!(out, "<tr><td>{}</td>", text(&method.name))?;
        for cost in costs {
            write!(out, "<td>{}</td>", method.at(cost).map_or(String::new(), |at| score(at.score, seeds)))?;
        }
        writeln!(out, "<td>{}</td></tr>", score(*mean, seeds))?;
    }
    for (name, whole) in [("nothing asked", standing.nothing), ("everything asked", standing.everything)] {
        if let Some(at) = whole {
            let span = costs.len() + 1;
            writeln!(
                out,
                "<tr><td>{name}</td><td colspan=\"{span}\">{:.3} at {}</td></tr>",
                at.score.mean,
                short(at.cost)
            )?;
        }
    }
    writeln!(out, "</table>")?;
    areas(out, standing, &ranked)?;
    side_by_side(out, standing)
}

/// What lies between each two curves.
fn areas(out: &mut String, standing: &Standing, ranked: &[(&Method, Spread)]) -> std::fmt::Result {
    if ranked.len() < 2 {
        return Ok(());
    }
    writeln!(
        out,
        "<details open><summary>{}: area between curves</summary>\n<p>By how much the method of the row is better than that of the \
         column, on average over costs up to {:.3}, ± one standard error; bold where it is clear at 95%.</p>",
        text(&standing.table),
        standing.reach
    )?;
    write!(out, "<table><tr><th></th>")?;
    ranked[1..].iter().try_for_each(|(column, _)| write!(out, "<th>{}</th>", text(&column.name)))?;
    writeln!(out, "</tr>")?;
    for (place, (row, _)) in ranked[..ranked.len() - 1].iter().enumerate() {
        write!(out, "<tr><td>{}</td>", text(&row.name))?;
        for (other, (column, _)) in ranked.iter().enumerate().skip(1) {
            let cell = match standing.between(row, column).filter(|_| other > place) {
                Some(d) if d.is_clear() => format!("<b>{:+.3}</b> ± {:.3}", d.mean, d.error),
                Some(d) => format!("{:+.3} ± {:.3}", d.mean, d.error),
                None => String::new(),
            };
            write!(out, "<td>{cell}</td>")?;
        }
        writeln!(out, "</tr>")?;
    }
    writeln!(out, "</table></details>")
}

/// What each method asks, step by step, in the middle of its curve.
fn side_by_side(out: &mut String, standing: &Standing) -> std::fmt::Result {
    let panels: Vec<PathPanel> = standing
        .methods
        .iter()
        .filter_map(|method| {
            let of = method.paths.as_ref()?;
            Some(PathPanel {
                name: method.name.clone(),
                rows: of.rows.clone(),
                shares: of.shares.clone(),
                instances: standing.sizes[2],
            })
        })
        .collect();
    if panels.is_empty() {
        return Ok(());
    }
    let name = text(&standing.table);
    writeln!(out, "<details><summary>{name}: what is asked, step by step</summary>")?;
    writeln!(
        out,
        "<p>The first seed, at the point in the middle of each curve; the most frequent features.</p>"
    )?;
    writeln!(
        out,
        "<figure>{}</figure></details>",
        paths(&format!("{}: questions step by step", standing.table), &panels)
    )?;
    by_first_answer(out, standing)
}

/// The same by the answer to a method's most frequent first question, a picture each: what it makes of what it was told.
fn by_first_answer(out: &mut String, standing: &Standing) -> std::fmt::Result {
    let told = standing.methods.iter().filter_map(|method| Some((&method.name, method.paths.as_ref()?)));
    let told: Vec<_> = told.filter(|(_, of)| !of.contexts.is_empty()).collect();
    if told.is_empty() {
        return Ok(());
    }
    let name = text(&standing.table);
    writeln!(out, "<details><summary>{name}: what is asked after the first answer</summary>")?;
    writeln!(
        out,
        "<p>The same, of the rows that are asked the method's most frequent first question, by what they answer: a number by \
         whether it is below the middle one.</p>"
    )?;
    for (method, of) in told {
        let panel = |context: &PathsOf| PathPanel {
            name: context.name.clone(),
            rows: of.rows.clone(),
            shares: context.shares.clone(),
            instances: context.rows,
        };
        let panels: Vec<PathPanel> = of.contexts.iter().map(panel).collect();
        writeln!(out, "<figure>{}</figure>", paths(&format!("{}: {method}", standing.table), &panels))?;
    }
    writeln!(out, "</details>")
}

/// What trainings and evaluations took, a curve each: of methods that are trained for one α at a time, all of them.
fn runtimes(out: &mut String, standings: &[Standing]) -> std::fmt::Result {
    let mut names: Vec<&str> = Vec::new();
    for method in standings.iter().flat_map(|standing| &standing.methods) {
        if !names.contains(&method.name.as_str()) {
            names.push(&method.name);
        }
    }
    type Which = (&'static str, fn(&Times) -> f64, fn((f64, f64)) -> f64);
    let which: [Which; 2] = [
        ("Training", |times| times.training, |paper| paper.0),
        ("Evaluation", |times| times.evaluation, |paper| paper.1),
    ];
    for (title, ours, theirs) in which {
        writeln!(out, "<h2>{title}, seconds a curve</h2>")?;
        write!(out, "<table><tr><th></th>")?;
        names.iter().try_for_each(|name| write!(out, "<th>{}</th>", text(name)))?;
        writeln!(out, "</tr>")?;
        for standing in standings {
            write!(out, "<tr><td>{}</td>", text(&standing.table))?;
            for name in &names {
                let method = standing.methods.iter().find(|method| method.name == *name);
                let took =
                    method.map(|m| m.times.iter().map(ours).sum::<f64>() / m.lines.len().max(1) as f64);
                let paper = published::times(&standing.table, name).map(theirs);
                let paper =
                    paper.map_or(String::new(), |s| format!(" <span class=\"quiet\">({})</span>", short(s)));
                write!(out, "<td>{}{paper}</td>", took.map_or(String::new(), seconds))?;
            }
            writeln!(out, "</tr>")?;
        }
        writeln!(out, "</table>")?;
    }
    writeln!(
        out,
        "<p class=\"quiet\">One core a cell, other cells beside it. In brackets: what the NM-PPG paper reports, on an NVIDIA A40. Its \
         schedules are not ours.</p>"
    )
}

fn seconds(value: f64) -> String {
    let places = if value < 1.0 { 2 } else { usize::from(value < 10.0) };
    format!("{value:.places$}")
}
