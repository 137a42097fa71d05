//! Letters for the host's window: an atlas of the crate's font, made once.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Source;
use resvg::usvg::{Options, Tree};
use skrifa::instance::{LocationRef, Size};
use skrifa::{FontRef, MetadataProvider};
use std::sync::Arc;

const FONT: &[u8] = include_bytes!("../../assets/fonts/LiberationSans-Regular.ttf");
/// Pixels of the letters.
pub const SIZE: f32 = 15.0;
/// A letter's cell in the atlas, and where the base line is in it.
const CELL: [f32; 2] = [24.0, 22.0];
const BASE: f32 = 16.0;
const COLUMNS: usize = 16;

/// The letters' picture (alpha only) and their widths.
pub struct Letters {
    pub pixels: Vec<u8>,
    pub size: [u32; 2],
    letters: Vec<char>,
    widths: Vec<f32>,
}

impl Letters {
    pub fn new() -> Result<Self, String> {
        let letters: Vec<char> = (' '..='~').chain("αλτ·–−×…".chars()).collect();
        let rows = (letters.len() + 1).div_ceil(COLUMNS);
        let size = [COLUMNS as u32 * CELL[0] as u32, rows as u32 * CELL[1] as u32];
        let mut svg =
            format!("<svg xmlns='http://www.w3.org/2000/svg' width='{}' height='{}'>", size[0], size[1]);
        for (index, letter) in letters.iter().enumerate() {
            let [x, y] = cell(index);
            let letter = match letter {
                '<' => "&lt;".to_string(),
                '&' => "&amp;".to_string(),
                letter => letter.to_string(),
            };
            let (x, y) = (x + 2.0, y + BASE);
            svg += &format!("<text x='{x}' y='{y}' font-size='{SIZE}' fill='white'>{letter}</text>");
        }
        let [x, y] = cell(letters.len());
        svg +=
            &format!("<rect x='{x}' y='{y}' width='{}' height='{}' fill='white'/></svg>", CELL[0], CELL[1]);

        let mut options = Options { font_family: "Liberation Sans".into(), ..Options::default() };
        options.fontdb_mut().load_font_source(Source::Binary(Arc::new(FONT)));
        let tree = Tree::from_str(&svg, &options).map_err(|error| error.to_string())?;
        let mut picture = Pixmap::new(size[0], size[1]).ok_or("an atlas without a size")?;
        resvg::render(&tree, Transform::identity(), &mut picture.as_mut());

        let font = FontRef::new(FONT).map_err(|error| error.to_string())?;
        let (map, metrics) = (font.charmap(), font.glyph_metrics(Size::new(SIZE), LocationRef::default()));
        let advance = |&letter: &char| map.map(letter).and_then(|glyph| metrics.advance_width(glyph));
        let widths = letters.iter().map(|letter| advance(letter).unwrap_or(SIZE / 2.0)).collect();
        Ok(Self { pixels: picture.take(), size, letters, widths })
    }

    /// Where the white spot is, from which plain rectangles are filled.
    pub fn white(&self) -> [f32; 4] {
        let [x, y] = cell(self.letters.len());
        [x + CELL[0] / 2.0, y + CELL[1] / 2.0, 0.0, 0.0]
    }

    /// How wide a text is.
    pub fn width(&self, text: &str) -> f32 {
        text.chars().map(|letter| self.find(letter).map_or(0.0, |index| self.widths[index])).sum()
    }

    /// The letters of a text with its base line's left end at a point: where each goes, and where it is in
    /// the atlas.
    pub fn lay_out(&self, text: &str, [mut x, y]: [f32; 2]) -> Vec<[[f32; 4]; 2]> {
        let mut placed = Vec::new();
        for index in text.chars().filter_map(|letter| self.find(letter)) {
            let [u, v] = cell(index);
            // On whole pixels, so that they stay sharp.
            let to = [x.round() - 2.0, (y - BASE).round(), CELL[0], CELL[1]];
            placed.push([to, [u, v, CELL[0], CELL[1]]]);
            x += self.widths[index];
        }
        placed
    }

    fn find(&self, letter: char) -> Option<usize> {
        self.letters.iter().position(|&other| other == letter)
    }
}

fn cell(index: usize) -> [f32; 2] {
    [(index % COLUMNS) as f32 * CELL[0], (index / COLUMNS) as f32 * CELL[1]]
}
