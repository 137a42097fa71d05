//! Places for labels inside a plot.

use super::axis::Frame;
use super::canvas::{Anchor, Canvas, Style};
use super::font;

/// A rectangle of the picture.
#[derive(Clone, Copy)]
struct Place {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Place {
    fn around((x, y): (f64, f64), wide: f64, high: f64) -> Self {
        Place { left: x - wide / 2.0, top: y - high / 2.0, right: x + wide / 2.0, bottom: y + high / 2.0 }
    }

    fn meets(&self, other: &Place) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn holds(&self, (x, y): (f64, f64)) -> bool {
        (self.left..self.right).contains(&x) && (self.top..self.bottom).contains(&y)
    }
}

/// What labels must not cover, and what they had better not.
pub(super) struct Taken {
    pub frame: Frame,
    /// How far right labels may reach.
    pub right: f64,
    places: Vec<Place>,
    /// Points along the lines.
    along: Vec<(f64, f64)>,
}

impl Taken {
    pub(super) fn new(frame: Frame) -> Self {
        Taken { frame, right: frame.right(), places: Vec::new(), along: Vec::new() }
    }

    /// A mark, which is never covered.
    pub(super) fn mark(&mut self, at: (f64, f64)) {
        self.places.push(Place::around(at, 10.0, 10.0));
    }

    /// A line, which is covered as little as possible.
    pub(super) fn line(&mut self, points: &[(f64, f64)]) {
        for pair in points.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
            let count = ((x1 - x0).hypot(y1 - y0) / 3.0).ceil().max(1.0);
            self.along.extend((0..count as usize).map(|i| {
                let part = i as f64 / count;
                (x0 + part * (x1 - x0), y0 + part * (y1 - y0))
            }));
        }
    }

    /// Writes a text around the best of some points: inside the plot, covering no mark and no other
    /// label, and as little of the lines as possible; the first of equals. Nothing if none will do.
    pub(super) fn write(&mut self, canvas: &mut Canvas, middles: &[(f64, f64)], text: &str, style: Style) {
        let wide = font::width(text, style.size);
        let high = style.size + 2.0;
        let places = middles.iter().map(|&middle| Place::around(middle, wide, high));
        let free = |place: &Place| {
            place.left >= self.frame.left()
                && place.right <= self.right
                && place.top >= self.frame.top()
                && place.bottom <= self.frame.bottom()
                && !self.places.iter().any(|other| place.meets(other))
        };
        let covered = |place: &Place| self.along.iter().filter(|&&point| place.holds(point)).count();
        if let Some(place) = places.filter(free).min_by_key(covered) {
            let style = Style { anchor: Anchor::Start, halo: true, ..style };
            canvas.text(place.left, place.top.midpoint(place.bottom), text, style);
            self.places.push(place);
        }
    }
}
