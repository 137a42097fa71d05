//! Performance against cost.

use super::axis::{Frame, Range, X_AXIS, Y_AXIS, shown};
use super::canvas::{Canvas, Mark, NOTE, PLAIN, Style, title_height};
use super::font;
use super::labels::Taken;
use super::style::{INK, LABEL, MARGIN, QUIET, SMALL, series};

/// A point of a cost–performance curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurvePoint {
    /// Usually the mean cost.
    pub x: f64,
    /// What was reached with it, the mean over repetitions.
    pub y: f64,
    /// The standard deviation of `y`, 0 if there is none.
    pub y_sd: f64,
    /// A few words to stand beside the point, for example `α 0.02`.
    pub label: Option<String>,
}

/// A line of a cost–performance curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What stands beside the line.
    pub name: String,
    /// Its points, in any order.
    pub points: Vec<CurvePoint>,
}

const PLOT: (f64, f64) = (600.0, 380.0);
/// Height of a line's name, and how wide it may be.
const NAME: f64 = 19.0;
const WIDEST: f64 = 230.0;

/// Performance against cost: a line with marks for each series, one standard deviation around it,
/// and, as a dashed line, a reference such as the predictor that sees all features. Points are
/// joined in the order of their `x`.
pub fn curve(
    title: &str,
    x_label: &str,
    y_label: &str,
    series: &[Series],
    reference: Option<(String, f64)>,
) -> String {
    curve_as(title, x_label, y_label, series, reference, Look::default())
}

/// How values and their uncertainty are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Look {
    /// What the y axis covers, at least: small differences shall look small.
    pub least: f64,
    /// Values are shares, uncertain within 0 and 1, with a bar at each point: lines of few rows cross each other, and
    /// bands would hide one another.
    pub shares: bool,
}

/// The same as [`curve`], with another look.
pub(super) fn curve_as(
    title: &str,
    x_label: &str,
    y_label: &str,
    series: &[Series],
    reference: Option<(String, f64)>,
    look: Look,
) -> String {
    let lines: Vec<Line> = series.iter().enumerate().map(|(i, series)| Line::new(i, series, look)).collect();
    let reference = reference.filter(|(_, value)| shown(*value));
    let names = series.iter().map(|series| font::width(&series.name, LABEL)).fold(0.0, f64::max).min(WIDEST);
    let width = MARGIN + Y_AXIS - 8.0 + PLOT.0 + 34.0 + names + MARGIN;
    let top = title_height(title, width) + 6.0;
    let mut canvas = Canvas::new(title, width, top + PLOT.1 + X_AXIS + MARGIN - 6.0);
    let plot = Plot { labels: [x_label, y_label], lines: &lines, reference: reference.as_ref(), look, names };
    plot.draw(&mut canvas, (MARGIN + Y_AXIS - 8.0, top), PLOT);
    canvas.finish()
}

/// A plot of lines: what is in it.
pub(super) struct Plot<'a> {
    /// Names of the x and of the y axis.
    pub labels: [&'a str; 2],
    pub lines: &'a [Line<'a>],
    pub reference: Option<&'a (String, f64)>,
    pub look: Look,
    /// Room for the lines' names, right of the plot.
    pub names: f64,
}

impl Plot<'_> {
    /// Draws it from its top left corner, the numbers and names of its axes outside of its size.
    pub(super) fn draw(&self, canvas: &mut Canvas, (left, top): (f64, f64), (width, height): (f64, f64)) {
        let Plot { labels: [x_label, y_label], lines, reference, look, names } = *self;
        let points = || lines.iter().flat_map(|line| &line.points);
        let x = Range::of(points().map(|point| point.x)).map_or(Range { low: 0.0, high: 1.0 }, Range::padded);
        let y = points().flat_map(|point| look.around(point));
        let y = Range::of(y.chain(reference.iter().map(|(_, value)| *value)));
        let empty = y.is_none();
        let y = y.map_or(Range { low: 0.0, high: 1.0 }, |range| range.at_least(look.least).padded());
        let frame = Frame::new((left, top), (left + width, top + height), x, y);
        if empty {
            frame.y_name(canvas, y_label);
            frame.base(canvas);
        } else {
            frame.y_axis(canvas, y_label);
            frame.x_axis(canvas, x_label, false, true);
        }
        if points().next().is_none() {
            canvas.nothing((left + width / 2.0, top + height / 2.0), "no points to show");
        }

        lines.iter().for_each(|line| line.spread(canvas, frame));
        if let Some((_, value)) = reference {
            let y = frame.y.at(*value);
            canvas.dashes((frame.left(), y), (frame.right(), y), INK, 1.25);
        }
        lines.iter().for_each(|line| line.trace(canvas, frame));
        let mut taken = Taken::new(frame);
        lines.iter().for_each(|line| line.take(&mut taken));
        if let Some((name, value)) = reference {
            refer(canvas, &mut taken, frame, name, *value);
        }
        for point in lines.iter().flat_map(|line| &line.points) {
            if let Some(text) = &point.label {
                label(canvas, &mut taken, frame.at(point.x, point.y), text);
            }
        }
        name_lines(canvas, frame, lines, names);
    }
}

impl Look {
    /// One standard deviation below a point and above it.
    fn around(self, point: &CurvePoint) -> [f64; 2] {
        let ends = [point.y - point.y_sd, point.y + point.y_sd];
        if self.shares { [ends[0].max(0.0).min(point.y), ends[1].min(1.0).max(point.y)] } else { ends }
    }
}

/// A series as it is drawn.
pub(super) struct Line<'a> {
    look: Look,
    name: &'a str,
    colour: &'static str,
    mark: Mark,
    dashed: bool,
    /// Every so many points have a mark.
    marked: usize,
    points: Vec<CurvePoint>,
}

impl<'a> Line<'a> {
    pub(super) fn new(index: usize, from: &'a Series, look: Look) -> Self {
        let mut points: Vec<CurvePoint> =
            from.points.iter().filter(|point| shown(point.x) && shown(point.y)).cloned().collect();
        for point in &mut points {
            point.y_sd = if shown(point.y_sd) { point.y_sd.abs() } else { 0.0 };
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Line {
            look,
            name: &from.name,
            colour: series(index),
            mark: Mark::nth(index),
            dashed: false,
            marked: 1,
            points,
        }
    }

    /// The n-th of many: after seven colours the lines are dashed, and the marks other ones. Lines of many points have few
    /// marks.
    pub(super) fn of_many(index: usize, from: &'a Series, look: Look) -> Self {
        const COLOURS: usize = 7;
        const MARKS: usize = 6;
        let (colour, dashed) = (series(index % COLOURS), index >= COLOURS);
        // Twice, so that it is another shape than that of the same colour.
        let mark = Mark::nth(index + 2 * (index / COLOURS));
        let line = Self::new(index, from, look);
        let marked = (line.points.len() / MARKS).max(1);
        Line { colour, mark, dashed, marked, ..line }
    }

    /// One standard deviation around the line; around a single point, or if so wanted around each, a bar.
    fn spread(&self, canvas: &mut Canvas, frame: Frame) {
        if self.points.iter().all(|point| point.y_sd == 0.0) {
            return;
        }
        if self.has_bars() {
            for point in self.points.iter().filter(|point| point.y_sd > 0.0) {
                let [low, high] = self.look.around(point).map(|y| frame.y.at(y));
                canvas.whisker(frame.x.at(point.x), low, high, self.colour);
            }
            return;
        }
        let above = self.points.iter().map(|point| frame.at(point.x, point.y + point.y_sd));
        let below = self.points.iter().rev().map(|point| frame.at(point.x, point.y - point.y_sd));
        canvas.area(&above.chain(below).collect::<Vec<_>>(), self.colour, 0.17);
    }

    fn has_bars(&self) -> bool {
        self.look.shares || self.points.len() == 1
    }

    fn trace(&self, canvas: &mut Canvas, frame: Frame) {
        let points: Vec<(f64, f64)> = self.points.iter().map(|point| frame.at(point.x, point.y)).collect();
        if points.len() > 1 {
            match self.dashed {
                true => canvas.dashed(&points, self.colour, 2.0),
                false => canvas.polyline(&points, self.colour, 2.0),
            }
        }
        points.iter().step_by(self.marked).for_each(|&point| canvas.mark(self.mark, point, self.colour));
    }

    /// Keeps labels off the marks and, if possible, off the line.
    fn take(&self, taken: &mut Taken) {
        let frame = taken.frame;
        let line: Vec<(f64, f64)> = self.points.iter().map(|point| frame.at(point.x, point.y)).collect();
        line.iter().for_each(|&point| taken.mark(point));
        taken.line(&line);
        if self.has_bars() {
            for point in &self.points {
                taken.line(&self.look.around(point).map(|y| frame.at(point.x, y)));
            }
        }
    }
}

/// The name of the reference line, at the end where it covers less.
fn refer(canvas: &mut Canvas, taken: &mut Taken, frame: Frame, name: &str, value: f64) {
    let y = frame.y.at(value);
    let name = font::fit(name, SMALL, (frame.right() - frame.left()) / 2.0);
    let half = font::width(&name, SMALL) / 2.0;
    let (left, right) = (frame.left() + 6.0 + half, frame.right() - 6.0 - half);
    let middles = [(left, y - 9.0), (right, y - 9.0), (left, y + 10.0), (right, y + 10.0)];
    taken.write(canvas, &middles, &name, Style { colour: INK, ..NOTE });
}

/// A point's label beside it, unless there is no room for it.
fn label(canvas: &mut Canvas, taken: &mut Taken, (x, y): (f64, f64), text: &str) {
    let side = font::width(text, SMALL) / 2.0 + 9.0;
    let offsets = [
        (0.0, -14.0),
        (0.0, 14.0),
        (side, -9.0),
        (-side, -9.0),
        (side, 9.0),
        (-side, 9.0),
        (side, 0.0),
        (-side, 0.0),
    ];
    let middles = offsets.map(|(dx, dy)| (x + dx, y + dy));
    taken.write(canvas, &middles, text, Style { colour: QUIET, ..NOTE });
}

/// The lines' names at the right, as near to their ends as they fit.
fn name_lines(canvas: &mut Canvas, frame: Frame, lines: &[Line], room: f64) {
    let mut ends: Vec<(f64, &Line)> = lines
        .iter()
        .map(|line| (line.points.last().map_or(frame.bottom(), |point| frame.y.at(point.y)), line))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Down from the top, each below the one before; then up again from the bottom edge.
    let mut free = frame.top() + NAME / 2.0;
    for (y, _) in &mut ends {
        *y = y.max(free);
        free = *y + NAME;
    }
    let mut free = frame.bottom() - NAME / 2.0;
    for (y, _) in ends.iter_mut().rev() {
        *y = y.min(free);
        free = *y - NAME;
    }
    for (y, line) in ends {
        let x = frame.right() + 16.0;
        if line.dashed {
            canvas.dashed(&[(x - 12.0, y), (x + 12.0, y)], line.colour, 2.0);
        }
        canvas.mark(line.mark, (x, y), line.colour);
        let after = if line.dashed { 16.0 } else { 12.0 };
        canvas.fitted(x + after, y, line.name, room, PLAIN);
    }
}
