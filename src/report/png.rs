//! The PNG of a picture, made from its SVG.

use super::font;
use crate::error::{Error, ErrorKind, Result};
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Source;
use resvg::usvg::{Options, Tree};
use std::sync::Arc;

/// Pixels of the PNG for one of the SVG.
const SCALE: f32 = 2.0;

/// The bytes of the PNG file, or why there are none.
pub(super) fn render(svg: &str) -> Result<Vec<u8>> {
    let fail = |what: String| Error::content(ErrorKind::File, what);
    let mut options = Options { font_family: font::NAME.into(), ..Options::default() };
    let fonts = options.fontdb_mut();
    fonts.load_font_source(Source::Binary(Arc::new(font::FILE)));
    fonts.set_sans_serif_family(font::NAME);
    if !font::covers(svg) {
        // A name in a script that the font lacks: the machine's own fonts may have it.
        fonts.load_system_fonts();
    }
    let tree = Tree::from_str(svg, &options)
        .map_err(|error| fail(format!("not an SVG picture: {error}")).because(error))?;
    let (width, height) = (tree.size().width() * SCALE, tree.size().height() * SCALE);
    let mut pixels = Pixmap::new(width.ceil() as u32, height.ceil() as u32)
        .ok_or_else(|| fail(format!("a picture of {width} by {height} pixels is too large")))?;
    resvg::render(&tree, Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels
        .encode_png()
        .map_err(|error| fail(format!("the picture could not be encoded: {error}")).because(error))
}
