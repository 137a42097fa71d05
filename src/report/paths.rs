//! Acquisition paths: which feature is asked for at which step, by context.

use super::axis::thousands;
use super::canvas::{Anchor, Canvas, NOTE, PLAIN, Style, title_height};
use super::font;
use super::style::{EDGE, INK, MARGIN, QUIET, SMALL, shade};

/// The paths of the instances of one context.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathPanel {
    /// What these instances have in common, for example `x11 < 0`.
    pub name: String,
    /// The features' names, then `STOP`.
    pub rows: Vec<String>,
    /// For each row and step, the share of the instances (0 to 1) that took it.
    pub shares: Vec<Vec<f64>>,
    /// How many instances.
    pub instances: usize,
}

impl PathPanel {
    fn share(&self, row: usize, step: usize) -> f64 {
        let share = self.shares.get(row).and_then(|row| row.get(step)).copied().unwrap_or(0.0);
        if share > 0.0 { share.min(1.0) } else { 0.0 }
    }

    /// The largest share a row has at any step.
    fn most(&self, row: usize) -> f64 {
        let steps = self.shares.get(row).map_or(0, Vec::len);
        (0..steps).map(|step| self.share(row, step)).fold(0.0, f64::max)
    }

    /// The steps up to the last that anybody took.
    fn steps(&self) -> usize {
        let taken = |row: &Vec<f64>| row.iter().rposition(|&share| share > 0.0).map_or(0, |last| last + 1);
        self.shares.iter().map(taken).max().unwrap_or(0)
    }

    /// Whether a row ends the path instead of acquiring something.
    fn stops(&self, row: usize) -> bool {
        row + 1 == self.rows.len() && self.rows[row].eq_ignore_ascii_case("stop")
    }
}

/// Up to so many rows, those of features never asked for are shown as well.
const FEW: usize = 20;
/// More rows than these are never shown.
const MANY: usize = 60;
/// Pictures are about as wide as this, if that is enough for one panel.
const WIDTH: f64 = 1200.0;
/// Between panels, and between the last feature and `STOP`.
const GAP: f64 = 22.0;
const APART: f64 = 5.0;
/// Above and below the cells of a panel.
const HEAD: f64 = 42.0;
const FOOT: f64 = 44.0;
/// Room for the colour bar and notes.
const BAR: f64 = 44.0;

/// Heat maps side by side, one for each context: a row for each feature and one for `STOP`, a column
/// for each step up to the last that anybody took, and as colour the share of the context's
/// instances that took this action at this step.
///
/// With more than 20 rows, features that nobody asked for are left out, and so are the rarest of
/// more than 60; a note then says how many. Panels with the same rows show the same rows.
pub fn paths(title: &str, panels: &[PathPanel]) -> String {
    let layout = Layout::new(title, panels);
    let mut canvas = Canvas::new(title, layout.width, layout.height);
    let steps = layout.steps;
    if panels.is_empty() || steps == 0 {
        canvas.nothing((layout.width / 2.0, layout.top + 30.0), "no paths to show");
        return canvas.finish();
    }
    let mut top = layout.top;
    for (line, several) in panels.chunks(layout.across).enumerate() {
        let mut left = MARGIN;
        let mut tallest: f64 = 0.0;
        for (i, panel) in several.iter().enumerate() {
            let rows = &layout.rows[line * layout.across + i];
            if i == 0 || !layout.shared {
                left += layout.labels;
                row_names(&mut canvas, (left - 8.0, top + HEAD), panel, rows, &layout);
            }
            draw(&mut canvas, (left, top), panel, rows, &layout);
            left += layout.panel() + GAP;
            tallest = tallest.max(layout.panel_height(panel, rows));
        }
        top += tallest;
    }
    colour_bar(&mut canvas, top + 14.0, &layout);
    canvas.finish()
}

/// What goes where.
struct Layout {
    width: f64,
    height: f64,
    top: f64,
    /// Whether all panels have the same rows, named once.
    shared: bool,
    /// For each panel, the rows shown.
    rows: Vec<Vec<usize>>,
    note: String,
    steps: usize,
    cell: (f64, f64),
    /// Width of the rows' names.
    labels: f64,
    /// Panels beside each other.
    across: usize,
}

impl Layout {
    fn new(title: &str, panels: &[PathPanel]) -> Self {
        let shared = panels.windows(2).all(|pair| pair[0].rows == pair[1].rows);
        let (rows, note) = choose_rows(panels, shared);
        let steps = panels.iter().map(PathPanel::steps).max().unwrap_or(0);
        let most_rows = rows.iter().map(Vec::len).max().unwrap_or(0);
        let longest = panels
            .iter()
            .zip(&rows)
            .flat_map(|(panel, rows)| rows.iter().map(|&row| font::width(&panel.rows[row], SMALL)))
            .fold(0.0, f64::max);
        let labels = (longest + 8.0).min(170.0);

        let count = panels.len().max(1) as f64;
        let named = if shared { 1.0 } else { count };
        let room = (WIDTH - 2.0 * MARGIN - named * labels - (count - 1.0) * GAP) / count;
        let cell_height = if most_rows <= 16 {
            24.0
        } else if most_rows <= 30 {
            18.0
        } else {
            14.0
        };
        let narrowest = if steps <= 12 { 14.0 } else { 9.0 };
        let cell = ((room / steps.max(1) as f64).floor().clamp(narrowest, 44.0), cell_height);

        let mut layout =
            Layout { width: 0.0, height: 0.0, top: 0.0, shared, rows, note, steps, cell, labels, across: 1 };
        let width_of = |across: usize| {
            let named = if shared { 1 } else { across } as f64;
            2.0 * MARGIN + named * labels + across as f64 * (layout.panel() + GAP) - GAP
        };
        let most = panels.len().max(1);
        let across = (1..=most).rev().find(|&n| width_of(n) <= WIDTH + 1.0).unwrap_or(1);
        let width = width_of(across).max(520.0);
        layout.across = across;
        layout.width = width;
        layout.top = title_height(title, width);
        let lines: f64 = panels
            .chunks(across)
            .zip(layout.rows.chunks(across))
            .map(|(panels, rows)| {
                let heights = panels.iter().zip(rows).map(|(panel, rows)| layout.panel_height(panel, rows));
                heights.fold(0.0, f64::max)
            })
            .sum();
        layout.height = layout.top + if steps == 0 { 60.0 } else { lines + BAR } + MARGIN;
        layout
    }

    /// Width of a panel's cells, or of what must be written above them.
    fn panel(&self) -> f64 {
        (self.cell.0 * self.steps as f64).max(90.0)
    }

    /// The y of a row's cells below the first.
    fn row_top(&self, panel: &PathPanel, place: usize, row: usize) -> f64 {
        place as f64 * self.cell.1 + if place > 0 && panel.stops(row) { APART } else { 0.0 }
    }

    fn cells_height(&self, panel: &PathPanel, rows: &[usize]) -> f64 {
        rows.last().map_or(0.0, |&row| self.row_top(panel, rows.len() - 1, row) + self.cell.1)
    }

    fn panel_height(&self, panel: &PathPanel, rows: &[usize]) -> f64 {
        HEAD + self.cells_height(panel, rows) + FOOT
    }
}

/// The rows to show of each panel, and what to say of the others.
fn choose_rows(panels: &[PathPanel], shared: bool) -> (Vec<Vec<usize>>, String) {
    let together: Vec<&[PathPanel]> =
        if shared { vec![panels] } else { panels.iter().map(std::slice::from_ref).collect() };
    let mut chosen = Vec::new();
    let (mut never, mut rare, mut rarest) = (0, 0, 0.0);
    for panels in together {
        let Some(first) = panels.first() else { continue };
        let most = |row: usize| panels.iter().map(|panel| panel.most(row)).fold(0.0, f64::max);
        let mut rows: Vec<usize> = (0..first.rows.len()).collect();
        if rows.len() > FEW {
            rows.retain(|&row| first.stops(row) || most(row) > 0.0);
            never = never.max(first.rows.len() - rows.len());
        }
        if rows.len() > MANY {
            let mut order = rows.clone();
            order.sort_by(|&a, &b| {
                let key = |row: usize| if first.stops(row) { 2.0 } else { most(row) };
                key(b).total_cmp(&key(a)).then(a.cmp(&b))
            });
            rare = rare.max(order.len() - MANY);
            rarest = order[MANY..].iter().map(|&row| most(row)).fold(rarest, f64::max);
            order.truncate(MANY);
            order.sort_unstable();
            rows = order;
        }
        chosen.extend(std::iter::repeat_n(rows, panels.len()));
    }
    (chosen, note(never, rare, rarest))
}

fn note(never: usize, rare: usize, rarest: f64) -> String {
    let plural = |n: usize| if n == 1 { "" } else { "s" };
    let mut notes = Vec::new();
    if never > 0 {
        notes.push(format!("{never} feature{} never asked", plural(never)));
    }
    if rare > 0 {
        let share = if rarest < 0.001 { "0.1".into() } else { format!("{:.1}", 100.0 * rarest) };
        notes.push(format!("{rare} feature{} asked of at most {share} % not shown", plural(rare)));
    }
    notes.join(", ")
}

/// The names of the rows, left of them.
fn row_names(
    canvas: &mut Canvas,
    (right, top): (f64, f64),
    panel: &PathPanel,
    rows: &[usize],
    layout: &Layout,
) {
    for (place, &row) in rows.iter().enumerate() {
        let y = top + layout.row_top(panel, place, row) + layout.cell.1 / 2.0;
        let style = Style { anchor: Anchor::End, colour: INK, ..NOTE };
        canvas.fitted(right, y, &panel.rows[row], layout.labels - 8.0, style);
    }
}

/// A panel: its name, its cells, its steps.
fn draw(canvas: &mut Canvas, (left, top): (f64, f64), panel: &PathPanel, rows: &[usize], layout: &Layout) {
    let (wide, high) = layout.cell;
    canvas.fitted(left, top + 10.0, &panel.name, layout.panel(), PLAIN);
    canvas.text(left, top + 27.0, &format!("n = {}", thousands(panel.instances as f64)), NOTE);

    let top = top + HEAD;
    let width = wide * layout.steps as f64;
    let bottom = top + layout.cells_height(panel, rows);
    if rows.is_empty() {
        canvas.text(left, top + 12.0, "nothing to show", NOTE);
        return;
    }
    let boxes = boxes(panel, rows, high);
    for &(down, high) in &boxes {
        for step in 1..layout.steps {
            let x = left + step as f64 * wide;
            canvas.grid((x, top + down), (x, top + down + high));
        }
    }
    for (place, &row) in rows.iter().enumerate() {
        let y = top + layout.row_top(panel, place, row);
        if place > 0 && !panel.stops(row) {
            canvas.grid((left, y), (left + width, y));
        }
        for step in 0..layout.steps {
            let share = panel.share(row, step);
            if share > 0.0 {
                cell(canvas, (left + step as f64 * wide, y), layout.cell, share);
            }
        }
    }
    for (down, high) in boxes {
        canvas.outline((left, top + down), (width, high));
    }

    let every = if wide >= 18.0 { 1 } else { 5 };
    for step in 1..=layout.steps {
        if step == 1 || step % every == 0 {
            let x = left + (step as f64 - 0.5) * wide;
            canvas.text(x, bottom + 11.0, &step.to_string(), Style { anchor: Anchor::Middle, ..NOTE });
        }
    }
    let style = Style { anchor: Anchor::Middle, ..NOTE };
    canvas.text(left + width / 2.0, bottom + 28.0, "step", style);
}

/// The rectangles of a panel's features and of its `STOP`: how far down, and how high.
fn boxes(panel: &PathPanel, rows: &[usize], high: f64) -> Vec<(f64, f64)> {
    let stop = rows.last().is_some_and(|&row| panel.stops(row));
    let features = (rows.len() - usize::from(stop)) as f64 * high;
    match (features > 0.0, stop) {
        (true, true) => vec![(0.0, features), (features + APART, high)],
        (true, false) => vec![(0.0, features)],
        (false, _) => vec![(0.0, high)],
    }
}

/// A cell in its colour, with its percentage where that can be read.
fn cell(canvas: &mut Canvas, (x, y): (f64, f64), (wide, high): (f64, f64), share: f64) {
    canvas.rect((x + 0.5, y + 0.5), (wide - 1.0, high - 1.0), &shade(share));
    if share >= 0.05 && wide >= 24.0 && high >= 16.0 {
        let colour = if share > 0.45 { "#ffffff" } else { INK };
        let style = Style { anchor: Anchor::Middle, colour, ..NOTE };
        canvas.text(x + wide / 2.0, y + high / 2.0, &format!("{:.0}", 100.0 * share), style);
    }
}

/// What the colours mean, and what is not shown.
fn colour_bar(canvas: &mut Canvas, y: f64, layout: &Layout) {
    let text = "share of instances (%)";
    canvas.text(MARGIN, y + 6.0, text, Style { colour: QUIET, ..PLAIN });
    let left = MARGIN + font::width(text, PLAIN.size) + 14.0;
    let width = 160.0;
    let colours: Vec<String> = (0..=40).map(|i| shade((f64::from(i) / 40.0).max(1e-9))).collect();
    canvas.gradient((left, y), (width, 12.0), &colours);
    for percent in [0, 25, 50, 75, 100] {
        let x = left + f64::from(percent) / 100.0 * width;
        canvas.line((x, y + 12.0), (x, y + 16.0), EDGE, 1.0);
        canvas.text(x, y + 24.0, &percent.to_string(), Style { anchor: Anchor::Middle, ..NOTE });
    }
    let after = left + width + 30.0;
    if !layout.note.is_empty() {
        canvas.fitted(after, y + 6.0, &layout.note, layout.width - MARGIN - after, NOTE);
    }
}
