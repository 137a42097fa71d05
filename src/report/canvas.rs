//! Draws lines, shapes and text as SVG.

use super::font;
use super::style::{EDGE, GRID, INK, LABEL, MARGIN, QUIET, SMALL, TITLE};

/// Where a text lies from its x.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Style {
    pub size: f64,
    pub colour: &'static str,
    pub anchor: Anchor,
    /// Runs upwards.
    pub upright: bool,
    /// Stands out from what it covers.
    pub halo: bool,
}

/// A label.
pub(super) const PLAIN: Style =
    Style { size: LABEL, colour: INK, anchor: Anchor::Start, upright: false, halo: false };
/// A number at an axis, or a note.
pub(super) const NOTE: Style = Style { size: SMALL, colour: QUIET, ..PLAIN };

/// The shapes of the marks of series, so that colour is not the only difference.
#[derive(Clone, Copy, Debug)]
pub(super) enum Mark {
    Disc,
    Square,
    Triangle,
    Diamond,
}

impl Mark {
    /// The mark of the n-th series.
    pub(super) fn nth(index: usize) -> Self {
        [Mark::Disc, Mark::Square, Mark::Triangle, Mark::Diamond][index % 4]
    }
}

/// What stands before an entry of a legend.
#[derive(Clone, Copy, Debug)]
pub(super) enum Key {
    Line(&'static str),
    Dashes(&'static str),
    Ring,
    Area(&'static str),
}

impl Key {
    /// Its width and the space after it.
    fn width(self) -> f64 {
        match self {
            Key::Line(_) | Key::Dashes(_) => 28.0,
            Key::Area(_) => 20.0,
            Key::Ring => 18.0,
        }
    }
}

/// A picture being drawn.
pub(super) struct Canvas {
    width: f64,
    height: f64,
    title: String,
    body: String,
}

/// Height of a line of the title.
const TITLE_LINE: f64 = 22.0;
/// Height of a line of the legend.
const LEGEND_LINE: f64 = 22.0;
/// Between entries of the legend.
const BETWEEN: f64 = 24.0;

/// How much height the title takes, in a picture of some width.
pub(super) fn title_height(title: &str, width: f64) -> f64 {
    MARGIN + TITLE_LINE * title_lines(title, width).len() as f64 + 8.0
}

fn title_lines(title: &str, width: f64) -> Vec<String> {
    font::wrap(title, TITLE, width - 2.0 * MARGIN, 2)
}

/// How much height a legend takes in some width.
pub(super) fn legend_height(entries: &[(Key, String)], width: f64) -> f64 {
    legend_places(entries, width).last().map_or(0.0, |&(_, y)| y + LEGEND_LINE)
}

/// Where each entry of a legend begins.
fn legend_places(entries: &[(Key, String)], width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (0.0, 0.0);
    entries
        .iter()
        .map(|(key, text)| {
            let wide = (key.width() + font::width(text, LABEL)).min(width);
            if x > 0.0 && x + wide > width {
                (x, y) = (0.0, y + LEGEND_LINE);
            }
            let place = (x, y);
            x += wide + BETWEEN;
            place
        })
        .collect()
}

impl Canvas {
    /// A white canvas with a title at its top left.
    pub(super) fn new(title: &str, width: f64, height: f64) -> Self {
        let mut canvas = Canvas { width, height, title: escape(title), body: String::new() };
        for (line, text) in title_lines(title, width).iter().enumerate() {
            let y = MARGIN + TITLE_LINE * (line as f64 + 0.5);
            canvas.text(MARGIN, y, text, Style { size: TITLE, ..PLAIN });
        }
        canvas
    }

    /// The SVG file.
    pub(super) fn finish(self) -> String {
        let Canvas { width, height, title, body } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" font-family=\"{family}\">\n\
             <title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n{body}</svg>\n",
            family = font::FAMILY,
        )
    }

    fn put(&mut self, element: &str) {
        self.body.push_str(element);
        self.body.push('\n');
    }

    /// A text whose middle line is at `y`.
    pub(super) fn text(&mut self, x: f64, y: f64, text: &str, style: Style) {
        self.text_for(x, y, text, text, style);
    }

    /// A text, shortened to the room there is. The whole text is shown where the pointer rests.
    pub(super) fn fitted(&mut self, x: f64, y: f64, text: &str, room: f64, style: Style) {
        let shown = font::fit(text, style.size, room);
        self.text_for(x, y, &shown, text, style);
    }

    fn text_for(&mut self, x: f64, y: f64, shown: &str, whole: &str, style: Style) {
        let Style { size, colour, anchor, upright, halo } = style;
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let halo = if halo { " stroke=\"#ffffff\" stroke-width=\"3.5\" paint-order=\"stroke\"" } else { "" };
        // Letters reach from the base line to about 0.7 of their size.
        let drop = 0.35 * size;
        let place = if upright {
            format!("transform=\"translate({:.1} {y:.1}) rotate(-90)\"", x + drop)
        } else {
            format!("x=\"{x:.1}\" y=\"{:.1}\"", y + drop)
        };
        let hint = if shown == whole { String::new() } else { format!("<title>{}</title>", escape(whole)) };
        let shown = escape(shown);
        self.put(&format!(
            "<text {place} font-size=\"{size}\" fill=\"{colour}\"{anchor}{halo}>{hint}{shown}</text>"
        ));
    }

    /// A straight line.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.stroke(&[from, to], colour, width, "");
    }

    /// A straight line of dashes.
    pub(super) fn dashes(&mut self, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        self.stroke(&[from, to], colour, width, " stroke-dasharray=\"5 4\"");
    }

    /// A line through points.
    pub(super) fn polyline(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        self.stroke(points, colour, width, " stroke-linejoin=\"round\" stroke-linecap=\"round\"");
    }

    /// A line of dashes through points.
    pub(super) fn dashed(&mut self, points: &[(f64, f64)], colour: &str, width: f64) {
        self.stroke(points, colour, width, " stroke-linejoin=\"round\" stroke-dasharray=\"7 4\"");
    }

    fn stroke(&mut self, points: &[(f64, f64)], colour: &str, width: f64, more: &str) {
        self.put(&format!(
            "<path d=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{more}/>",
            path(points)
        ));
    }

    /// A filled shape that lets through what is under it.
    pub(super) fn area(&mut self, points: &[(f64, f64)], colour: &str, opacity: f64) {
        self.put(&format!("<path d=\"{}Z\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>", path(points)));
    }

    /// A filled rectangle from its top left corner.
    pub(super) fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
        let (width, height) = (width.max(0.0), height.max(0.0));
        self.put(&format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"{fill}\"/>"
        ));
    }

    /// The outline of a rectangle.
    pub(super) fn outline(&mut self, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.put(&format!(
            "<rect x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" height=\"{height:.2}\" fill=\"none\" \
             stroke=\"{EDGE}\"/>"
        ));
    }

    /// A rectangle that goes through colours from left to right. Each covers all that is right of it, so that there are no
    /// seams. (A gradient would need a name, and in a page of many pictures browsers take the one of that name that comes
    /// first, also if it is hidden, and then draw nothing.)
    pub(super) fn gradient(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), colours: &[String]) {
        for (index, colour) in colours.iter().enumerate() {
            let done = width * index as f64 / colours.len() as f64;
            self.rect((x + done, y), (width - done, height), colour);
        }
        self.outline((x, y), (width, height));
    }

    /// A ring around a point.
    pub(super) fn ring(&mut self, (x, y): (f64, f64)) {
        self.put(&format!(
            "<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"5\" fill=\"#ffffff\" fill-opacity=\"0.6\" \
             stroke=\"{INK}\" stroke-width=\"1.75\"/>"
        ));
    }

    /// A filled circle.
    pub(super) fn dot(&mut self, (x, y): (f64, f64), radius: f64, colour: &str) {
        self.put(&format!("<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"{radius}\" fill=\"{colour}\"/>"));
    }

    /// The mark of a series, with a white edge.
    pub(super) fn mark(&mut self, mark: Mark, (x, y): (f64, f64), colour: &str) {
        let shape = match mark {
            Mark::Disc => format!("<circle cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"4.5\""),
            Mark::Square => {
                format!("<rect x=\"{:.2}\" y=\"{:.2}\" width=\"8.4\" height=\"8.4\"", x - 4.2, y - 4.2)
            }
            Mark::Triangle => {
                let corners = [(x, y - 5.6), (x + 5.2, y + 3.8), (x - 5.2, y + 3.8)];
                format!("<path d=\"{}Z\"", path(&corners))
            }
            Mark::Diamond => {
                let corners = [(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)];
                format!("<path d=\"{}Z\"", path(&corners))
            }
        };
        self.put(&format!("{shape} fill=\"{colour}\" stroke=\"#ffffff\"/>"));
    }

    /// A bar from one standard deviation below to one above, in the y of the picture.
    pub(super) fn whisker(&mut self, x: f64, low: f64, high: f64, colour: &str) {
        self.line((x, low), (x, high), colour, 1.25);
        for y in [low, high] {
            self.line((x - 3.5, y), (x + 3.5, y), colour, 1.25);
        }
    }

    /// Entries in a row, or in more where one is too narrow.
    pub(super) fn legend(&mut self, (left, top): (f64, f64), width: f64, entries: &[(Key, String)]) {
        for ((key, text), (x, y)) in entries.iter().zip(legend_places(entries, width)) {
            let (x, y) = (left + x, top + y + LEGEND_LINE / 2.0);
            match *key {
                Key::Line(colour) => self.line((x, y), (x + 22.0, y), colour, 2.5),
                Key::Dashes(colour) => self.dashes((x, y), (x + 22.0, y), colour, 1.25),
                Key::Area(colour) => self.rect((x, y - 7.0), (14.0, 14.0), colour),
                Key::Ring => self.ring((x + 6.0, y)),
            }
            self.fitted(x + key.width(), y, text, width - key.width(), PLAIN);
        }
    }

    /// A sentence where there is nothing to draw.
    pub(super) fn nothing(&mut self, (x, y): (f64, f64), text: &str) {
        self.text(x, y, text, Style { anchor: Anchor::Middle, colour: QUIET, ..PLAIN });
    }

    /// A grid line.
    pub(super) fn grid(&mut self, from: (f64, f64), to: (f64, f64)) {
        self.line(from, to, GRID, 1.0);
    }
}

/// The commands of a path through points.
fn path(points: &[(f64, f64)]) -> String {
    points
        .iter()
        .enumerate()
        .map(|(i, (x, y))| format!("{}{x:.2} {y:.2}", if i == 0 { "M" } else { "L" }))
        .collect()
}

/// Text as XML may hold it.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML has no way to hold most of these.
            '\u{fffe}' | '\u{ffff}' => safe.push(' '),
            letter if letter.is_control() => safe.push(' '),
            letter => safe.push(letter),
        }
    }
    safe
}
