//! Pictures of a run: training dynamics, acquisition paths, cost–performance curves, ablations, and what it
//! takes; and the page of a run and of a comparison.
//!
//! Every function returns the picture as the text of an SVG file; with the feature `report`, `save` writes it, together
//! with a PNG made from the very same drawing. The font is part of the library, so a machine without any
//! fonts gives the same pictures. Values that are not finite numbers are left out of a picture.
//!
//! ```
//! use querent::report::{CurvePoint, Series, curve};
//!
//! let point = |x, y, alpha: f64| CurvePoint { x, y, y_sd: 0.01, label: Some(format!("α {alpha}")) };
//! let series = Series { name: "NM-PPG".into(), points: vec![point(1.2, 0.51, 0.05), point(3.4, 0.42, 0.02)] };
//! let svg = curve("Syn1", "cost", "loss (nats)", &[series], Some(("all features".into(), 0.38)));
//! assert!(svg.starts_with("<svg"));
//! ```

mod axis;
mod bars;
mod canvas;
mod comparison;
mod curve;
mod dynamics;
mod font;
mod grid;
mod labels;
mod page;
mod paths;
#[cfg(feature = "report")]
mod png;
mod published;
mod scaling;
mod scores;
mod style;

pub use bars::{BarGroup, bars};
pub use comparison::{Notes, comparison, curves};
pub use curve::{CurvePoint, Series, curve};
pub use dynamics::dynamics;
pub use grid::{Panel, grid};
pub use page::page;
pub use paths::{PathPanel, paths};
pub use scaling::{Sweep, scaling};

#[cfg(feature = "report")]
pub use png::save;
