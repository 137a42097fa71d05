//! Ranges, ticks and the frame of a plot.

use super::canvas::{Anchor, Canvas, NOTE, PLAIN, Style};
use super::style::{EDGE, QUIET};

/// A number that a picture can show.
pub(super) fn shown(value: f64) -> bool {
    value.abs() < 1e100
}

/// The values that an axis covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub low: f64,
    pub high: f64,
}

impl Range {
    /// All that can be shown, or nothing if there is nothing.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        values.into_iter().filter(|&value| shown(value)).fold(None, |range, value| {
            let value = if value.abs() < 1e-100 { 0.0 } else { value };
            let range = range.unwrap_or(Range { low: value, high: value });
            Some(Range { low: range.low.min(value), high: range.high.max(value) })
        })
    }

    /// A little wider on both sides, but not past zero, and never empty.
    pub(super) fn padded(self) -> Self {
        let Range { low, high } = self;
        let room = if high - low > 1e-9 * high.abs().max(low.abs()) {
            0.06 * (high - low)
        } else if high == 0.0 {
            1.0
        } else {
            0.1 * high.abs()
        };
        let below = if low >= 0.0 { (low - room).max(0.0) } else { low - room };
        let above = if high <= 0.0 && low < 0.0 { (high + room).min(0.0) } else { high + room };
        Range { low: below, high: above }
    }

    /// At least so wide, around its middle; a range of shares stays between 0 and 1.
    pub(super) fn at_least(self, width: f64) -> Self {
        let Range { low, high } = self;
        let room = (width - (high - low)).max(0.0);
        let mut below = low - room / 2.0;
        if low >= 0.0 && high <= 1.0 && width <= 1.0 {
            below = below.min(1.0 - (high - low) - room).max(0.0);
        }
        Range { low: below, high: below + (high - low) + room }
    }

    /// With zero in it.
    pub(super) fn with_zero(self) -> Self {
        Range { low: self.low.min(0.0), high: self.high.max(0.0) }
    }
}

/// A range laid along pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub range: Range,
    pub from: f64,
    pub to: f64,
}

impl Scale {
    /// The pixel of a value.
    pub(super) fn at(self, value: f64) -> f64 {
        let Range { low, high } = self.range;
        self.from + (value - low) / (high - low) * (self.to - self.from)
    }
}

/// Round values in a range, with their labels.
pub(super) fn ticks(range: Range, most: usize, whole: bool) -> Vec<(f64, String)> {
    let rough = (range.high - range.low) / most.max(1) as f64;
    let power = 10f64.powf(rough.log10().floor());
    let mut step = [1.0, 2.0, 5.0, 10.0]
        .iter()
        .map(|times| times * power)
        .find(|&s| s >= 0.999 * rough)
        .unwrap_or(rough);
    if whole {
        step = step.max(1.0);
    }
    let first = (range.low / step - 1e-6).ceil();
    let count = ((range.high / step + 1e-6).floor() - first).clamp(-1.0, 4.0 * most as f64) as i64;
    (0..=count)
        .map(|i| {
            let value = (first + i as f64) * step;
            (value, label(value, step))
        })
        .collect()
}

/// A tick's value with the digits that tell it from its neighbours.
fn label(value: f64, step: f64) -> String {
    let digits = (-step.log10()).ceil().max(0.0);
    let text = if value == 0.0 {
        "0".into()
    } else if value.abs() >= 1e6 || digits > 6.0 {
        let places = ((value.abs() / step).log10().ceil()).clamp(0.0, 6.0) as usize;
        scientific(value, places)
    } else if digits == 0.0 {
        return thousands(value);
    } else {
        format!("{value:.0$}", digits as usize)
    };
    text.replace('-', "−")
}

fn scientific(value: f64, places: usize) -> String {
    let text = format!("{value:.places$e}");
    match text.split_once('e') {
        Some((digits, power)) if digits.contains('.') => {
            format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// A whole number with its thousands apart.
pub(super) fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    if value <= -0.5 { format!("−{text}") } else { text }
}

/// A value with about three digits.
pub(super) fn short(value: f64) -> String {
    let size = value.abs();
    let text = if size < 1e-100 {
        return "0".into();
    } else if !(1e-4..1e6).contains(&size) {
        scientific(value, 2)
    } else if size >= 1000.0 {
        return thousands(value);
    } else {
        let places = if size >= 100.0 {
            0
        } else if size >= 10.0 {
            1
        } else if size >= 1.0 {
            2
        } else {
            3
        };
        let places = if size < 0.01 { 5 } else { places };
        format!("{value:.places$}")
    };
    text.replace('-', "−")
}

/// A plot's rectangle and its two axes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub x: Scale,
    pub y: Scale,
}

impl Frame {
    /// Over the pixels from left to right and from top to bottom.
    pub(super) fn new((left, top): (f64, f64), (right, bottom): (f64, f64), x: Range, y: Range) -> Self {
        Frame { x: Scale { range: x, from: left, to: right }, y: Scale { range: y, from: bottom, to: top } }
    }

    /// The pixel of a pair of values.
    pub(super) fn at(self, x: f64, y: f64) -> (f64, f64) {
        (self.x.at(x), self.y.at(y))
    }

    pub(super) fn left(self) -> f64 {
        self.x.from
    }

    pub(super) fn right(self) -> f64 {
        self.x.to
    }

    pub(super) fn top(self) -> f64 {
        self.y.to
    }

    pub(super) fn bottom(self) -> f64 {
        self.y.from
    }

    /// The y axis' name, left of the plot.
    pub(super) fn y_name(self, canvas: &mut Canvas, name: &str) {
        let middle = self.top().midpoint(self.bottom());
        let style = Style { anchor: Anchor::Middle, upright: true, colour: QUIET, ..PLAIN };
        let room = self.bottom() - self.top() + 20.0;
        canvas.fitted(self.left() - Y_AXIS + 14.0, middle, name, room, style);
    }

    /// Grid lines, numbers and the axis' name at the left.
    pub(super) fn y_axis(self, canvas: &mut Canvas, name: &str) {
        let height = self.bottom() - self.top();
        let most = ((height / 32.0) as usize).max(2);
        for (value, text) in ticks(self.y.range, most, false) {
            let y = self.y.at(value);
            canvas.grid((self.left(), y), (self.right(), y));
            canvas.text(self.left() - 8.0, y, &text, Style { anchor: Anchor::End, ..NOTE });
        }
        self.y_name(canvas, name);
    }

    /// Numbers under the plot, and the line they stand under.
    pub(super) fn x_axis(self, canvas: &mut Canvas, name: &str, whole: bool, grid: bool) {
        let width = self.right() - self.left();
        let most = ((width / 80.0) as usize).max(2);
        for (value, text) in ticks(self.x.range, most, whole) {
            let x = self.x.at(value);
            if grid {
                canvas.grid((x, self.top()), (x, self.bottom()));
            }
            canvas.line((x, self.bottom()), (x, self.bottom() + 4.0), EDGE, 1.0);
            canvas.text(x, self.bottom() + 15.0, &text, Style { anchor: Anchor::Middle, ..NOTE });
        }
        let style = Style { anchor: Anchor::Middle, colour: QUIET, ..PLAIN };
        canvas.fitted(self.left().midpoint(self.right()), self.bottom() + 36.0, name, width, style);
        self.base(canvas);
    }

    /// The line under the plot.
    pub(super) fn base(self, canvas: &mut Canvas) {
        canvas.line((self.left(), self.bottom()), (self.right(), self.bottom()), EDGE, 1.0);
    }
}

/// Room for the numbers and the name of a y axis.
pub(super) const Y_AXIS: f64 = 72.0;
/// Room for the numbers and the name of an x axis.
pub(super) const X_AXIS: f64 = 48.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(low: f64, high: f64, whole: bool) -> Vec<String> {
        ticks(Range { low, high }, 5, whole).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(
            labels(0.0, 1.0, false),
            ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"].map(|t| if t == "0.0" { "0" } else { t })
        );
        assert_eq!(labels(-0.5, 1.5, true), ["0", "1"]);
        assert_eq!(labels(0.0, 20_000.0, true), ["0", "5,000", "10,000", "15,000", "20,000"]);
        assert_eq!(labels(-1.0, 1.0, false), ["−1.0", "−0.5", "0", "0.5", "1.0"]);
        assert_eq!(labels(0.0, 5e8, false)[1], "1e8");
        assert_eq!(labels(0.0, 5e-9, false)[1], "1e−9");
        assert!(labels(0.4630001, 0.4630002, false).len() < 20);
    }

    #[test]
    fn ranges_are_never_empty() {
        for values in
            [vec![0.0], vec![3.0, 3.0], vec![-2.0], vec![1e-300], vec![f64::NAN, 1.0], vec![-1e99, 1e99]]
        {
            let Some(range) = Range::of(values.clone()) else { panic!("{values:?}") };
            let range = range.padded();
            assert!(range.high > range.low, "{values:?} {range:?}");
            assert!(ticks(range, 5, false).len() < 30, "{values:?}");
        }
        assert_eq!(Range::of([f64::NAN, f64::INFINITY]), None);
    }

    #[test]
    fn ranges_are_as_wide_as_wanted() {
        let close = |range: Range, low: f64, high: f64| {
            assert!((range.low - low).abs() < 1e-12 && (range.high - high).abs() < 1e-12, "{range:?}");
        };
        close(Range { low: 0.5, high: 0.6 }.at_least(0.3), 0.4, 0.7);
        close(Range { low: 0.5, high: 0.6 }.at_least(0.05), 0.5, 0.6);
        close(Range { low: 0.96, high: 1.0 }.at_least(0.3), 0.7, 1.0);
        close(Range { low: 0.0, high: 0.0 }.at_least(0.4), 0.0, 0.4);
        // Not a share: nothing to stay within.
        close(Range { low: 1.0, high: 1.5 }.at_least(1.0), 0.75, 1.75);
    }

    #[test]
    fn numbers_are_short() {
        assert_eq!(short(0.46301), "0.463");
        assert_eq!(short(-3.16227), "−3.16");
        assert_eq!(short(12_345.6), "12,346");
        assert_eq!(short(0.0), "0");
        assert_eq!(short(2.5e9), "2.5e9");
        assert_eq!(thousands(1_234_567.0), "1,234,567");
    }
}
