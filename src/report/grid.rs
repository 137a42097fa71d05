//! Many curves of performance against cost, a panel a table.

use super::axis::{X_AXIS, Y_AXIS, shown};
use super::canvas::{Canvas, PLAIN, Style, title_height};
use super::curve::{Line, Look, Plot};
use super::font;
use super::style::{LABEL, MARGIN};
use super::{CurvePoint, Series};

/// A panel.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub name: String,
    /// The name of its y axis.
    pub y_label: String,
    /// Its lines. Those of the same name look the same in every panel.
    pub series: Vec<Series>,
    /// A dashed line, such as what all features give.
    pub reference: Option<(String, f64)>,
    /// How far its x axis goes; lines end there.
    pub to: f64,
}

/// Size of a plot.
const PLOT: (f64, f64) = (440.0, 300.0);
/// How wide a line's name may be.
const WIDEST: f64 = 130.0;
/// Above a panel, for its name, and below it.
const HEAD: f64 = 30.0;
const FOOT: f64 = 22.0;

/// Panels in two columns, each with its lines' names beside it, and one standard deviation around each line.
pub fn grid(title: &str, x_label: &str, panels: &[Panel]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for series in panels.iter().flat_map(|panel| &panel.series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let room = names.iter().map(|name| font::width(name, LABEL)).fold(0.0, f64::max).min(WIDEST);
    let across = panels.len().clamp(1, 2);
    let cell = (Y_AXIS - 8.0 + PLOT.0 + 34.0 + room, HEAD + PLOT.1 + X_AXIS + FOOT);
    let width = 2.0 * MARGIN + across as f64 * (cell.0 + MARGIN) - MARGIN;
    let top = title_height(title, width);
    let lines = panels.len().div_ceil(across).max(1) as f64;
    let mut canvas = Canvas::new(title, width, top + lines * cell.1 + MARGIN);
    if panels.is_empty() {
        canvas.nothing((width / 2.0, top + cell.1 / 2.0), "nothing to show");
    }
    for (index, panel) in panels.iter().enumerate() {
        let left = MARGIN + (index % across) as f64 * (cell.0 + MARGIN) + Y_AXIS - 8.0;
        let top = top + (index / across) as f64 * cell.1;
        canvas.fitted(left, top + HEAD / 2.0, &panel.name, PLOT.0, Style { size: LABEL + 2.0, ..PLAIN });
        let cut: Vec<Series> = panel.series.iter().map(|series| ending(series, panel.to)).collect();
        let look = |series: &Series| names.iter().position(|name| *name == series.name).unwrap_or(0);
        let lines: Vec<Line> =
            cut.iter().map(|series| Line::of_many(look(series), series, Look::default())).collect();
        let reference = panel.reference.as_ref().filter(|(_, value)| shown(*value));
        let labels = [x_label, &panel.y_label];
        let plot = Plot { labels, lines: &lines, reference, look: Look::default(), names: room };
        plot.draw(&mut canvas, (left, top + HEAD), PLOT);
    }
    canvas.finish()
}

/// A line up to some x: between the two points around it, it ends there.
fn ending(series: &Series, to: f64) -> Series {
    let mut points = series.points.clone();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    let inside = points.partition_point(|point| point.x <= to);
    let beyond = points.get(inside).cloned();
    points.truncate(inside);
    let last = points.last().cloned().filter(|last| last.x < to);
    if let (Some(beyond), Some(last)) = (beyond, last) {
        let share = (to - last.x) / (beyond.x - last.x);
        let between = |a: f64, b: f64| a + (b - a) * share;
        let (y, y_sd) = (between(last.y, beyond.y), between(last.y_sd, beyond.y_sd));
        points.push(CurvePoint { x: to, y, y_sd, label: None });
    }
    Series { name: series.name.clone(), points }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_its_panel_does() {
        let point = |x: f64, y: f64| CurvePoint { x, y, y_sd: 0.0, label: None };
        let series =
            Series { name: "a".into(), points: vec![point(4.0, 0.8), point(0.0, 0.4), point(2.0, 0.6)] };
        let xs = |to: f64| ending(&series, to).points.iter().map(|p| (p.x, p.y)).collect::<Vec<_>>();
        assert_eq!(xs(3.0), [(0.0, 0.4), (2.0, 0.6), (3.0, 0.7)]);
        assert_eq!(xs(9.0).len(), 3);
        assert_eq!(xs(-1.0), []);
        assert_eq!(xs(2.0), [(0.0, 0.4), (2.0, 0.6)]);
    }
}
