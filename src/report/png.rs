//! A picture's files: the SVG, and the PNG made from it.

use super::font;
use crate::error::{Error, ErrorKind, Result};
use crate::files::write_atomically;
use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::fontdb::Source;
use resvg::usvg::{Options, Tree};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Pixels of the PNG for one of the SVG.
const SCALE: f32 = 2.0;

/// Writes a picture as `<path>.svg` and, at twice the size in pixels, as `<path>.png`. The endings
/// are added to whatever the path's last part is: `alpha_0.05` becomes `alpha_0.05.svg`.
///
/// # Errors
/// Text that is not an SVG picture, or a file that cannot be written. No file is ever half-written.
pub fn save(svg: &str, path_without_extension: impl AsRef<Path>) -> Result<()> {
    let path = path_without_extension.as_ref();
    let (svg_path, png_path) = (with_ending(path, ".svg"), with_ending(path, ".png"));
    // Drawn before anything is written: a picture that cannot be drawn leaves no file.
    let png = render(svg).map_err(|error| error.at(&png_path))?;
    write_atomically(&svg_path, svg.as_bytes())?;
    write_atomically(&png_path, &png)
}

/// The path with an ending added to its last part.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut whole = path.as_os_str().to_os_string();
    whole.push(ending);
    whole.into()
}

/// The bytes of the PNG file, or why there are none.
fn render(svg: &str) -> Result<Vec<u8>> {
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
