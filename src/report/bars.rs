//! Values side by side, for ablations.

use super::axis::{Frame, Range, Y_AXIS, short, shown};
use super::canvas::{Anchor, Canvas, Key, NOTE, PLAIN, Style, legend_height, title_height};
use super::font;
use super::style::{EDGE, INK, LABEL, MARGIN, SMALL, series};

const HEIGHT: f64 = 340.0;
/// Height of a line of a group's name.
const LINE: f64 = 17.0;

/// A group's name and its bars, each with its name, its value and the standard deviation of that (0 if
/// there is none).
pub type BarGroup = (String, Vec<(String, f64, f64)>);

/// Groups of bars from zero, each bar with its name, its value and the standard deviation of that,
/// and a dashed reference line. Bars of the same name have the same colour in every group.
pub fn bars(title: &str, y_label: &str, groups: &[BarGroup], reference: Option<(String, f64)>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for (name, _, _) in groups.iter().flat_map(|(_, bars)| bars) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let reference = reference.filter(|(_, value)| shown(*value));
    let legend = legend(&names, reference.as_ref());

    let most = groups.iter().map(|(_, bars)| bars.len()).max().unwrap_or(0).max(1) as f64;
    let count = groups.len().max(1) as f64;
    let bar = (1000.0 / (count * (most + 1.0))).clamp(3.0, 46.0);
    let group = ((most + 1.0) * bar).max(70.0f64.min(1000.0 / count));
    let plot = (count * group).max(400.0);
    let group = plot / count;
    let width = MARGIN + Y_AXIS - 8.0 + plot + MARGIN;
    let inner = width - 2.0 * MARGIN;
    let head = title_height(title, width);
    let top = head + legend_height(&legend, inner) + 18.0;
    let labels: Vec<Vec<String>> =
        groups.iter().map(|(name, _)| font::wrap(name, LABEL, group - 8.0, 3)).collect();
    let lines = labels.iter().map(Vec::len).max().unwrap_or(0) as f64;
    let mut canvas = Canvas::new(title, width, top + HEIGHT + 10.0 + LINE * lines + MARGIN);
    canvas.legend((MARGIN, head), inner, &legend);

    let values = groups.iter().flat_map(|(_, bars)| bars).filter(|(_, value, _)| shown(*value));
    let values = values.flat_map(|&(_, value, sd)| [value - spread(sd), value + spread(sd)]);
    let range = Range::of(values.chain(reference.iter().map(|(_, value)| *value)));
    let empty = range.is_none();
    let range = range.map_or(Range { low: 0.0, high: 1.0 }, |range| range.with_zero().padded());
    let left = MARGIN + Y_AXIS - 8.0;
    let frame = Frame::new((left, top), (left + plot, top + HEIGHT), Range { low: 0.0, high: count }, range);
    if empty {
        frame.y_name(&mut canvas, y_label);
    } else {
        frame.y_axis(&mut canvas, y_label);
    }
    if names.is_empty() {
        canvas.nothing((left + plot / 2.0, top + HEIGHT / 2.0), "no values to show");
    }
    for (i, ((_, bars), label)) in groups.iter().zip(&labels).enumerate() {
        let middle = frame.x.at(i as f64 + 0.5);
        let first = middle - bar * bars.len() as f64 / 2.0;
        for (j, (name, value, sd)) in bars.iter().enumerate() {
            let colour = series(names.iter().position(|other| other == name).unwrap_or(0));
            draw(&mut canvas, frame, (first + j as f64 * bar, bar), (*value, spread(*sd)), colour);
        }
        for (line, text) in label.iter().enumerate() {
            let y = frame.bottom() + 15.0 + LINE * line as f64;
            canvas.text(middle, y, text, Style { anchor: Anchor::Middle, ..PLAIN });
        }
    }
    let zero = frame.y.at(0.0);
    canvas.line((frame.left(), zero), (frame.right(), zero), EDGE, 1.0);
    if let Some((_, value)) = reference {
        let y = frame.y.at(value);
        canvas.dashes((frame.left(), y), (frame.right(), y), INK, 1.25);
    }
    canvas.finish()
}

/// A standard deviation, 0 if there is none.
fn spread(sd: f64) -> f64 {
    if shown(sd) { sd.abs() } else { 0.0 }
}

/// The bars' names, unless there is only one, and the reference's.
fn legend(names: &[&str], reference: Option<&(String, f64)>) -> Vec<(Key, String)> {
    let mut entries = Vec::new();
    if names.len() > 1 {
        entries.extend(names.iter().enumerate().map(|(i, name)| (Key::Area(series(i)), name.to_string())));
    }
    entries.extend(reference.map(|(name, value)| (Key::Dashes(INK), format!("{name}, {}", short(*value)))));
    entries
}

/// A bar with its deviation, and its value where that can be read.
fn draw(canvas: &mut Canvas, frame: Frame, (x, wide): (f64, f64), (value, sd): (f64, f64), colour: &str) {
    let middle = x + wide / 2.0;
    let style = Style { anchor: Anchor::Middle, colour: INK, ..NOTE };
    if !shown(value) {
        canvas.text(middle, frame.y.at(0.0) - 10.0, "–", style);
        return;
    }
    let (zero, y) = (frame.y.at(0.0), frame.y.at(value));
    let gap = if wide > 8.0 { 1.5 } else { 0.0 };
    canvas.rect((x + gap, zero.min(y)), (wide - 2.0 * gap, (zero - y).abs()), colour);
    if sd > 0.0 {
        canvas.whisker(middle, frame.y.at(value - sd), frame.y.at(value + sd), INK);
    }
    let text = short(value);
    if font::width(&text, SMALL) <= wide - 2.0 {
        let beyond = if value >= 0.0 { frame.y.at(value + sd) - 10.0 } else { frame.y.at(value - sd) + 10.0 };
        canvas.text(middle, beyond, &text, Style { halo: true, ..style });
    }
}
