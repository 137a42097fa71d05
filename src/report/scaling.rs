//! What something takes against what it is given: small logarithmic plots side by side.

use super::axis::{Frame, Range, X_AXIS, Y_AXIS, short, shown, thousands};
use super::canvas::{Anchor, Canvas, Key, Mark, NOTE, PLAIN, Style, legend_height, title_height};
use super::style::{EDGE, MARGIN, QUIET, series};

/// A size that was varied while the others stayed, and what was measured at each of its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sweep {
    /// The size's name.
    pub name: String,
    /// A value above zero, and the measures there: one for each that [`scaling`] is given a name of.
    pub points: Vec<(f64, Vec<f64>)>,
}

const PANEL: (f64, f64) = (188.0, 190.0);
const BETWEEN: f64 = 34.0;
/// The least factor that an axis covers.
const LEAST: f64 = 4.0;

/// Measures against sizes, on logarithmic axes: a row of plots for each measure, one plot a size; all plots
/// of a row have the same scale. A dashed line goes through each last point as if the measure were
/// proportional to the size. Values that are not above zero are left out.
pub fn scaling(title: &str, measures: &[&str], sweeps: &[Sweep]) -> String {
    let columns = sweeps.len().max(1) as f64;
    let left = MARGIN + Y_AXIS - 8.0;
    let width = left + columns * PANEL.0 + (columns - 1.0) * BETWEEN + MARGIN;
    let entries = [
        (Key::Line(series(0)), "measured".to_owned()),
        (Key::Dashes(QUIET), "as if proportional to the size".to_owned()),
    ];
    let legend_top = title_height(title, width);
    let top = legend_top + legend_height(&entries, width - 2.0 * MARGIN) + 12.0;
    let row = PANEL.1 + X_AXIS + 12.0;
    let mut canvas = Canvas::new(title, width, top + row * measures.len() as f64 + MARGIN - 12.0);
    canvas.legend((left, legend_top), width - left - MARGIN, &entries);
    for (index, name) in measures.iter().enumerate() {
        let y = logarithmic(sweeps.iter().flat_map(|sweep| sweep.line(index)).map(|(_, y)| y));
        for (column, sweep) in sweeps.iter().enumerate() {
            let line = sweep.line(index);
            let x = logarithmic(line.iter().map(|&(x, _)| x));
            let corner = (left + column as f64 * (PANEL.0 + BETWEEN), top + index as f64 * row);
            let frame = Frame::new(corner, (corner.0 + PANEL.0, corner.1 + PANEL.1), x, y);
            y_axis(&mut canvas, frame, (column == 0).then_some(*name));
            x_axis(&mut canvas, frame, &sweep.name, &line);
            draw(&mut canvas, frame, &line);
        }
    }
    canvas.finish()
}

impl Sweep {
    /// The points of a measure that can be drawn, by size.
    fn line(&self, measure: usize) -> Vec<(f64, f64)> {
        let value = |(x, measures): &(f64, Vec<f64>)| Some((*x, *measures.get(measure)?));
        let drawable = |&(x, y): &(f64, f64)| shown(x) && shown(y) && x > 1e-100 && y > 1e-100;
        let mut points: Vec<(f64, f64)> = self.points.iter().filter_map(value).filter(drawable).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    }
}

/// The range of the logarithms of some values, with a little room.
fn logarithmic(values: impl IntoIterator<Item = f64>) -> Range {
    let range = Range::of(values.into_iter().map(f64::log10)).unwrap_or(Range { low: 0.0, high: 1.0 });
    let missing = (LEAST.log10() - (range.high - range.low)).max(0.0) / 2.0;
    let room = 0.06 * (range.high - range.low + 2.0 * missing);
    Range { low: range.low - missing - room, high: range.high + missing + room }
}

/// 1, 2 and 5 times the powers of ten in a range of logarithms, or only the powers where these are many.
fn round_values(range: Range) -> Vec<f64> {
    let (low, high) = (range.low.floor() as i32, range.high.ceil() as i32);
    let times: &[f64] = if high - low > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    (low..=high)
        .flat_map(|power| times.iter().map(move |times| times * 10f64.powi(power)))
        .filter(|value| (range.low..=range.high).contains(&value.log10()))
        .collect()
}

fn y_axis(canvas: &mut Canvas, frame: Frame, name: Option<&str>) {
    for value in round_values(frame.y.range) {
        let y = frame.y.at(value.log10());
        canvas.grid((frame.left(), y), (frame.right(), y));
        if name.is_some() {
            canvas.text(frame.left() - 8.0, y, &whole(value), Style { anchor: Anchor::End, ..NOTE });
        }
    }
    if let Some(name) = name {
        frame.y_name(canvas, name);
    }
}

/// A number of the axis, without decimals where it has none.
fn whole(value: f64) -> String {
    if value >= 1.0 { thousands(value) } else { short(value).trim_end_matches('0').to_owned() }
}

/// The measured sizes under the plot: the largest, and as many of the others as there is room for.
fn x_axis(canvas: &mut Canvas, frame: Frame, name: &str, line: &[(f64, f64)]) {
    let mut free = f64::INFINITY;
    for &(value, _) in line.iter().rev() {
        let x = frame.x.at(value.log10());
        canvas.line((x, frame.bottom()), (x, frame.bottom() + 4.0), EDGE, 1.0);
        let text = thousands(value);
        let half = super::font::width(&text, NOTE.size) / 2.0;
        if x + half < free {
            canvas.text(x, frame.bottom() + 15.0, &text, Style { anchor: Anchor::Middle, ..NOTE });
            free = x - half - 6.0;
        }
    }
    let middle = frame.left().midpoint(frame.right());
    let style = Style { anchor: Anchor::Middle, colour: QUIET, ..PLAIN };
    canvas.fitted(middle, frame.bottom() + 36.0, name, PANEL.0, style);
    frame.base(canvas);
}

fn draw(canvas: &mut Canvas, frame: Frame, line: &[(f64, f64)]) {
    let points: Vec<(f64, f64)> = line.iter().map(|&(x, y)| frame.at(x.log10(), y.log10())).collect();
    let (Some(&(x, y)), Some(&(first, _))) = (line.last(), line.first()) else {
        let middle = (frame.left().midpoint(frame.right()), frame.top().midpoint(frame.bottom()));
        return canvas.nothing(middle, "no points to show");
    };
    // Down to the first size, or to where the plot ends.
    let (x, y) = (x.log10(), y.log10());
    let down = (x - first.log10()).min(y - frame.y.range.low);
    canvas.dashes(frame.at(x - down, y - down), frame.at(x, y), QUIET, 1.25);
    canvas.polyline(&points, series(0), 2.0);
    points.iter().for_each(|&point| canvas.mark(Mark::Disc, point, series(0)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!(round_values(Range { low: 0.1, high: 1.5 }), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(round_values(Range { low: -0.5, high: 4.0 }), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert_eq!(["0.5", "0.02", "20", "1,000"], [0.5, 0.02, 20.0, 1000.0].map(whole));
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let points = vec![(4.0, vec![1.0]), (2.0, vec![f64::NAN]), (1.0, vec![0.0]), (8.0, vec![])];
        let sweep = Sweep { name: "d".into(), points };
        assert_eq!(sweep.line(0), [(4.0, 1.0)]);
        assert!(scaling("one point", &["ms"], &[sweep]).contains("<svg"));
        assert!(scaling("nothing", &["ms"], &[Sweep::default()]).contains("no points"));
        assert!(scaling("no sweeps", &[], &[]).contains("<svg"));
    }
}
