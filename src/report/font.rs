//! The font of the pictures, and how wide text is in it.

use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};

/// Liberation Sans: as wide, letter by letter, as Arial and Helvetica, so that what is laid out with
/// it fits wherever an SVG is shown. Its licence lies beside it.
pub(super) const FILE: &[u8] = include_bytes!("../../assets/fonts/LiberationSans-Regular.ttf");
/// The name inside the file.
#[cfg(feature = "report")]
pub(super) const NAME: &str = "Liberation Sans";
/// Fonts to show an SVG with, best first.
pub(super) const FAMILY: &str = "Liberation Sans, Arial, Helvetica, sans-serif";

/// How wide a text is at a size in pixels. Letters that the font has not count as a square.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let Ok(font) = FontRef::new(FILE) else {
        return 0.6 * size * text.chars().count() as f64;
    };
    let letters = font.charmap();
    let metrics = font.glyph_metrics(Size::unscaled(), LocationRef::default());
    let em = f64::from(font.metrics(Size::unscaled(), LocationRef::default()).units_per_em).max(1.0);
    text.chars()
        .map(|letter| {
            let advance = letters.map(letter).and_then(|glyph| metrics.advance_width(glyph));
            advance.map_or(size, |advance| f64::from(advance) / em * size)
        })
        .sum()
}

/// Whether the font has all letters of a text.
#[cfg(any(test, feature = "report"))]
pub(super) fn covers(text: &str) -> bool {
    FontRef::new(FILE).is_ok_and(|font| {
        let letters = font.charmap();
        text.chars().all(|letter| letter.is_control() || letters.map(letter).is_some())
    })
}

/// The text, or its beginning and end around an ellipsis, no wider than asked for.
pub(super) fn fit(text: &str, size: f64, room: f64) -> String {
    if width(text, size) <= room {
        return text.into();
    }
    let letters: Vec<char> = text.chars().collect();
    let shortened = |kept: usize| -> String {
        let (head, tail) = (kept.div_ceil(2), kept / 2);
        letters[..head].iter().chain(&['…']).chain(&letters[letters.len() - tail..]).collect()
    };
    // The most letters that fit; one that fits is a text shorter than another that does.
    let (mut fits, mut wide) = (0, letters.len());
    while wide - fits > 1 {
        let middle = fits.midpoint(wide);
        if width(&shortened(middle), size) <= room { fits = middle } else { wide = middle }
    }
    shortened(fits)
}

/// The text in at most so many lines, broken between words.
pub(super) fn wrap(text: &str, size: f64, room: f64, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if line.is_empty() || lines.len() == most || width(&longer, size) <= room {
            lines[last] = longer;
        } else {
            lines.push(word.into());
        }
    }
    lines.iter().map(|line| fit(line, size, room)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_the_pictures_write() {
        assert!(covers("0123456789 −–…·×± αλτσ ≤≥≠√∞ äöüß éñ Ж Ω"));
        assert!(!covers("温度"));
    }

    #[test]
    fn text_fits_where_it_is_put() {
        assert_eq!(fit("short", 12.0, 100.0), "short");
        assert_eq!(fit("any", 12.0, 0.0), "…");
        assert_eq!(fit("", 12.0, -1.0), "…");
        let long = fit("a_feature_with_a_very_long_name_number_12", 12.0, 90.0);
        assert!(long.starts_with("a_fea") && long.ends_with("_12") && width(&long, 12.0) <= 90.0, "{long}");
        assert_eq!(wrap("one two three", 12.0, 50.0, 3), ["one two", "three"]);
        assert_eq!(wrap("", 12.0, 50.0, 2), [""]);
        assert_eq!(wrap("one two three", 12.0, 50.0, 1).len(), 1);
    }
}
