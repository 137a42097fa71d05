//! What shaders are put together from besides their own files: `shaders/lib`, and names of words.

use super::kernel::Target;
use super::words::Words;

/// A piece of a shader besides its own file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Part {
    /// A file of `shaders/lib`.
    Text(&'static str),
    /// Names of words of a buffer, as Rust has them.
    Words(&'static Words),
    /// Products out = left · right.
    Product,
    /// Products out = leftᵀ · right.
    Outer,
    /// A workgroup a row, where a software driver has a thread.
    Team,
}

impl Part {
    /// Its text for a kind of device; `of_a_chain`: as [`Kernel::pieces`](super::Kernel::pieces) has it.
    pub(super) fn wgsl(&self, target: Target, of_a_chain: bool) -> String {
        match (self, target) {
            (Part::Text(text), _) => text.to_string(),
            (Part::Words(words), _) => words.wgsl(),
            (Part::Product, Target::Gpu) if of_a_chain => PRODUCT_ROWS.into(),
            (Part::Product, Target::Gpu) => PRODUCT.into(),
            (Part::Product, Target::Software) => PRODUCT_SOFTWARE.into(),
            (Part::Outer, Target::Gpu) => OUTER.into(),
            (Part::Outer, Target::Software) => OUTER_SOFTWARE.into(),
            (Part::Team, Target::Gpu) => TEAM.into(),
            (Part::Team, Target::Software) => ALONE.into(),
        }
    }
}

macro_rules! library {
    ($($(#[$doc:meta])* $name:ident $file:literal;)*) => { $(
        $(#[$doc])*
        pub const $name: Part = Part::Text(include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/lib/", $file, ".wgsl")));
    )* };
}

library! {
    /// The best of several candidates.
    BEST "best";
    /// Which columns a coupling moves, and bounds of what its network says.
    COUPLING "coupling";
    /// What the rows of a flow are given and asked for; with `GROUPS`.
    FLOW "flow";
    /// Which columns a feature reveals.
    GROUPS "groups";
    /// Exponentials and logarithms that are exact enough.
    MATH "math";
    /// Where a row lies in the data set.
    PLACE "place";
    /// Counter-based random bits.
    RANDOM "random";
    /// Sums over a workgroup.
    REDUCE "reduce";
    /// A mask's gradient through the first layer's input; with `GROUPS`.
    THROUGH_INPUT "through_input";
}

const ALONE: &str = include_str!("../../../shaders/lib/alone.wgsl");
const OUTER: &str = include_str!("../../../shaders/lib/outer.wgsl");
const OUTER_SOFTWARE: &str = concat!(
    include_str!("../../../shaders/lib/tile_software.wgsl"),
    "\n",
    include_str!("../../../shaders/lib/outer_software.wgsl")
);
const PRODUCT: &str = include_str!("../../../shaders/lib/product.wgsl");
const PRODUCT_ROWS: &str = include_str!("../../../shaders/lib/product_rows.wgsl");
const PRODUCT_SOFTWARE: &str = concat!(
    include_str!("../../../shaders/lib/tile_software.wgsl"),
    "\n",
    include_str!("../../../shaders/lib/product_software.wgsl")
);
const TEAM: &str = concat!(
    include_str!("../../../shaders/lib/reduce.wgsl"),
    "\n",
    include_str!("../../../shaders/lib/team.wgsl")
);
