//! What plans are made of. A kernel is one WGSL file in `shaders/` and one `kernel!` entry beside its twin, the
//! same computation in Rust: parameters, bindings, grid, work and twin stand in one place, and the shader's header is
//! written from it. General kernels are here, a file a family; a method's own are in its folder.

mod available;
mod block;
mod clip;
mod condition;
mod episode;
mod evaluate;
mod flow;
mod gather;
mod grid;
mod latent;
mod linear;
mod loss;
mod mask;
mod masked;
mod noise;
mod norm;
mod optim;
mod replay;
pub mod words;

pub use available::Available;
pub use block::{BlockGradInput, BlockGradWeight, BlockInputs, BlockLinear};
pub use clip::{GradNorm, GradScale};
pub use condition::Condition;
pub use episode::{Advantage, ClippedChoice, ValueError, kept};
pub use evaluate::{Asked, Greedy, Tally};
pub use flow::{
    Coupling, CouplingGrad, CouplingInverse, FlowDensity, FlowDensityGrad, FlowInput, FlowInputGrad,
    FlowStart,
};
pub(crate) use flow::{SCALE_BOUND, SLOPE_BOUND};
pub(crate) use gather::places;
pub use gather::{Gather, GatherBytes};
pub(crate) use grid::folded;
pub use grid::{Grid, area, each, line, tiles, workgroups};
pub(crate) use latent::{DEVIATION, deviation, normal_score};
pub use latent::{LatentGrad, Latents, NormalScores};
pub use linear::{BiasGrad, CopyBlock, FillBlock, Linear, LinearGradInput, LinearGradWeight, Transpose};
pub use loss::{Loss, MeanLoss, MixtureLoss};
pub(crate) use mask::through_input;
pub use mask::{Expand, MaskGrad, SeenMask};
pub use masked::{Embed, EmbedGrad, EmbedSuffix};
pub use noise::{Dropout, Gumbel, InputNoise, Normals, RandomMask, UniformMask};
pub(crate) use noise::{normal, source};
pub(crate) use norm::fold_layer;
pub use norm::{Fold, Moments, NormGrad, NormGradInput, Normalize};
pub use optim::{Adam, Advance, AdvancePowers, Average};
pub use replay::{GatherAt, GatherAtBytes, ReplayDraw, ReplayStore, ReplayTurn, returns, taken};

use super::cpu::{Args, Real};
use super::plan::Elem;
use words::Words;

/// Words of a call's parameter block.
pub const WORDS: usize = 16;

/// Rows of a workgroup of the same kernels where a thread works alone. Same as `GROUP` in lib/alone.wgsl.
const ALONE_GROUP: u32 = 16;

/// Blocks of a workgroup of a product on a software driver. Same as `PRODUCT_WIDTH` in lib/tile_software.wgsl.
const TILE_GROUP: u32 = 8;

/// What a kernel's source is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Target {
    /// Many threads that work in step.
    #[default]
    Gpu,
    /// A driver that runs on the CPU.
    Software,
}

/// What a kernel does with a binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Reads only.
    Read,
    /// Writes, and may read.
    Write,
}

/// What a shader sees a buffer as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Reals.
    F32,
    /// Reals, four at a time.
    Vec4,
    /// Integers.
    U32,
    /// Integers that several threads change at the same time.
    Atomic,
}

impl View {
    /// The buffer's element type.
    pub const fn elem(self) -> Elem {
        match self {
            View::F32 | View::Vec4 => Elem::F32,
            View::U32 | View::Atomic => Elem::U32,
        }
    }

    pub(crate) fn wgsl(self) -> &'static str {
        match self {
            View::F32 => "f32",
            View::Vec4 => "vec4<f32>",
            View::U32 => "u32",
            View::Atomic => "atomic<u32>",
        }
    }
}

/// One storage buffer of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The variable's name in the shader.
    pub name: &'static str,
    /// What the shader sees it as.
    pub view: View,
    /// What is done with it.
    pub access: Access,
}

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

/// How much work a call is: budgets need no more than the right order of magnitude, as what a device makes of it is
/// learned (`budget.rs`); docs/gpu.md reckons with both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Floating-point operations.
    pub flops: u64,
    /// Numbers that have to be read and written at least, of four bytes each.
    pub numbers: u64,
}

/// Threads of a workgroup: 64 in nearly every kernel.
const WORKGROUP: u64 = 64;
/// Operations of a thread of a kernel that does not count them.
const OF_A_THREAD: u64 = 16;

impl Work {
    /// Of a kernel that is not worth counting: a little for each thread.
    pub fn of_threads(grid: Grid) -> Self {
        let threads = WORKGROUP * product(&grid.groups());
        Self { flops: OF_A_THREAD * threads, numbers: threads }
    }

    /// A little for each thread, and so many numbers.
    pub fn of_numbers(grid: Grid, numbers: u64) -> Self {
        Self { numbers, ..Self::of_threads(grid) }
    }
}

/// The product of some sizes.
pub fn product(sizes: &[u32]) -> u64 {
    sizes.iter().map(|&size| u64::from(size)).product()
}

/// A twin as the CPU engine calls it, for each of its reals.
#[derive(Clone, Copy)]
pub struct Twin {
    /// For f32.
    pub f32: fn(pulp::Arch, &[u32; WORDS], Args<f32>),
    /// For f64.
    pub f64: fn(pulp::Arch, &[u32; WORDS], Args<f64>),
}

impl std::fmt::Debug for Twin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Twin")
    }
}

/// A kernel. Calls point to it; there is no list that all kernels stand in.
#[derive(Clone, Copy, Debug)]
pub struct Kernel {
    /// Its shader's path under `shaders/`, without the ending.
    pub name: &'static str,
    /// What it computes, in a line.
    pub about: &'static str,
    /// The text of its own file.
    pub body: &'static str,
    /// What the shader needs besides.
    pub parts: &'static [Part],
    /// The fields of its parameter block.
    pub fields: &'static [&'static str],
    /// Its storage buffers.
    pub bindings: &'static [Binding],
    /// The same in Rust.
    pub twin: Twin,
}

impl Kernel {
    /// The complete WGSL source for a kind of device: the header (parameters and bindings), the library files, the body.
    pub fn source(&self, target: Target) -> String {
        [vec![self.header()], self.pieces(target, false)].concat().join("\n")
    }

    /// The library files and the body, for a kind of device; `of_a_chain`: products of a few rows by one workgroup of
    /// a GPU.
    pub fn pieces(&self, target: Target, of_a_chain: bool) -> Vec<String> {
        let piece = |part: &Part| match (part, target) {
            (Part::Text(text), _) => text.to_string(),
            (Part::Words(words), _) => words.wgsl(),
            (Part::Product, Target::Gpu) if of_a_chain => PRODUCT_ROWS.into(),
            (Part::Product, Target::Gpu) => PRODUCT.into(),
            (Part::Product, Target::Software) => PRODUCT_SOFTWARE.into(),
            (Part::Outer, Target::Gpu) => OUTER.into(),
            (Part::Outer, Target::Software) => OUTER_SOFTWARE.into(),
            (Part::Team, Target::Gpu) => TEAM.into(),
            (Part::Team, Target::Software) => ALONE.into(),
        };
        self.parts.iter().map(piece).chain([self.body.into()]).collect()
    }

    fn header(&self) -> String {
        let mut text = String::from("struct Params {\n");
        self.fields.iter().for_each(|field| text += &format!("    {field}: u32,\n"));
        text += "}\n@group(0) @binding(0) var<uniform> p: Params;\n";
        for (index, Binding { name, view, access }) in self.bindings.iter().enumerate() {
            let access = if *access == Access::Read { "read" } else { "read_write" };
            text += &format!(
                "@group(0) @binding({}) var<storage, {access}> {name}: array<{}>;\n",
                index + 1,
                view.wgsl()
            );
        }
        text
    }

    /// Workgroups to dispatch on a kind of device.
    pub(crate) fn groups(&self, target: Target, grid: Grid) -> [u32; 3] {
        let groups = grid.groups();
        let [x, y, _] = groups;
        if target == Target::Gpu {
            groups
        } else if self.parts.contains(&Part::Team) {
            folded(x * y, ALONE_GROUP)
        } else if self.parts.contains(&Part::Product) || self.parts.contains(&Part::Outer) {
            // At most eight blocks of 8 × 16 instead of one of 32 × 32, one a thread.
            folded(x * y * 8, TILE_GROUP)
        } else {
            groups
        }
    }

    /// Whether these are one kernel.
    pub fn is(&self, other: &Kernel) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A kernel's parameters.
pub trait Params: Copy {
    /// The kernel they are for.
    const KERNEL: &'static Kernel;
    /// As the shader's uniform block.
    fn words(&self) -> [u32; WORDS];
    /// Back from the uniform block.
    fn from_words(words: &[u32; WORDS]) -> Self;
    /// What its threads are over.
    fn grid(&self) -> Grid;
    /// How much work it is.
    fn work(&self) -> Work;
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

/// Declares a kernel: its parameters as a struct of that name, its bindings in the order of the shader's, the grid,
/// the work and the twin. The twin is a function of the parameters and the buffers; one that is `simd` also gets
/// the instruction set; one by `rows` works on sixteen numbers of a row at a time, whatever a register holds: their
/// sums are added up in the same order then, so machines with AVX2 and with AVX-512 give the same bits.
macro_rules! kernel {
    (
        $(#[doc = $about:literal])+
        pub $id:ident $file:literal [$($part:expr),* $(,)?]
        { $($field:ident),* $(,)? }
        ( $($binding:ident: $view:ident $access:ident),* $(,)? )
        grid |$g:ident| $grid:expr;
        work |$w:ident| $work:expr;
        twin $($twin:ident)+;
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[allow(missing_docs)] // the fields are explained where they are used: in the shader
        pub struct $id { $(pub $field: u32),* }

        const _: () = {
            use $crate::engine::cpu::{Args, Real};
            use $crate::engine::kernels::{Access, Binding, Kernel, Params, Twin, View, WORDS};

            static KERNEL: Kernel = Kernel {
                name: $file,
                about: concat!($($about),+),
                body: include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/shaders/", $file, ".wgsl")),
                parts: &[$($part),*],
                fields: &[$(stringify!($field)),*],
                bindings: &[$(Binding {
                    name: stringify!($binding), view: View::$view, access: Access::$access
                }),*],
                twin: Twin { f32: twin::<f32>, f64: twin::<f64> },
            };

            impl Params for $id {
                const KERNEL: &'static Kernel = &KERNEL;
                fn words(&self) -> [u32; WORDS] {
                    let mut words = [0; WORDS];
                    let fields = [$(self.$field),*];
                    words[..fields.len()].copy_from_slice(&fields);
                    words
                }
                fn from_words(words: &[u32; WORDS]) -> Self {
                    let mut words = words.iter().copied();
                    Self { $($field: words.next().unwrap_or_default()),* }
                }
                fn grid(&self) -> $crate::engine::kernels::Grid { let $g = self; $grid }
                fn work(&self) -> $crate::engine::kernels::Work { let $w = self; $work }
            }

            /// Run through `pulp`, the twin is compiled for several instruction sets and the best one this
            /// machine has is taken; that is why twins are inlined.
            fn twin<T: Real>(arch: pulp::Arch, words: &[u32; WORDS], args: Args<T>) {
                struct Run<'a, T>($id, Args<'a, T>);
                impl<T: Real> pulp::WithSimd for Run<'_, T> {
                    type Output = ();
                    #[inline(always)]
                    fn with_simd<S: pulp::Simd>(self, simd: S) {
                        $crate::engine::kernels::twin_call!(simd, T, S, &self.0, self.1, $($twin)+);
                    }
                }
                arch.dispatch(Run($id::from_words(words), args));
            }
        };
    };
}

macro_rules! twin_call {
    ($simd:ident, $t:ident, $s:ident, $p:expr, $args:expr, simd $twin:ident) => {
        $twin($simd, $p, $args)
    };
    ($simd:ident, $t:ident, $s:ident, $p:expr, $args:expr, rows $twin:ident) => {{
        use $crate::engine::cpu::{Pack, Pair};
        let (set, p, args) = ($t::set($simd), $p, $args);
        match <$t::Pack<$s> as Pack>::WIDTH {
            4 => $twin::<Pair<Pair<$t::Pack<$s>>>>(set, p, args),
            8 => $twin::<Pair<$t::Pack<$s>>>(set, p, args),
            _ => $twin::<$t::Pack<$s>>(set, p, args),
        }
    }};
    ($simd:ident, $t:ident, $s:ident, $p:expr, $args:expr, $twin:ident) => {{
        let _ = $simd;
        $twin($p, $args)
    }};
}

pub(crate) use kernel;
pub(crate) use twin_call;

/// The kernels that belong to no method.
pub static GENERAL: &[&Kernel] = &[
    Gather::KERNEL,
    GatherBytes::KERNEL,
    InputNoise::KERNEL,
    Condition::KERNEL,
    Available::KERNEL,
    Gumbel::KERNEL,
    Dropout::KERNEL,
    RandomMask::KERNEL,
    UniformMask::KERNEL,
    Expand::KERNEL,
    MaskGrad::KERNEL,
    Embed::KERNEL,
    EmbedSuffix::KERNEL,
    EmbedGrad::KERNEL,
    Linear::KERNEL,
    Transpose::KERNEL,
    LinearGradInput::KERNEL,
    LinearGradWeight::KERNEL,
    BiasGrad::KERNEL,
    Loss::KERNEL,
    Adam::KERNEL,
    Average::KERNEL,
    Advance::KERNEL,
    Greedy::KERNEL,
    Tally::KERNEL,
    Asked::KERNEL,
    MeanLoss::KERNEL,
    FillBlock::KERNEL,
    CopyBlock::KERNEL,
    AdvancePowers::KERNEL,
    ReplayStore::KERNEL,
    ReplayTurn::KERNEL,
    ReplayDraw::KERNEL,
    GatherAt::KERNEL,
    GatherAtBytes::KERNEL,
    SeenMask::KERNEL,
    GradNorm::KERNEL,
    GradScale::KERNEL,
    FlowStart::KERNEL,
    FlowInput::KERNEL,
    FlowInputGrad::KERNEL,
    Coupling::KERNEL,
    CouplingGrad::KERNEL,
    CouplingInverse::KERNEL,
    FlowDensity::KERNEL,
    FlowDensityGrad::KERNEL,
    Advantage::KERNEL,
    ClippedChoice::KERNEL,
    ValueError::KERNEL,
    MixtureLoss::KERNEL,
    Moments::KERNEL,
    Normalize::KERNEL,
    NormGrad::KERNEL,
    NormGradInput::KERNEL,
    Fold::KERNEL,
    BlockInputs::KERNEL,
    BlockLinear::KERNEL,
    BlockGradInput::KERNEL,
    BlockGradWeight::KERNEL,
    NormalScores::KERNEL,
    Normals::KERNEL,
    Latents::KERNEL,
    LatentGrad::KERNEL,
];

impl Twin {
    pub(crate) fn run<T: Real>(&self, arch: pulp::Arch, words: &[u32; WORDS], args: Args<T>) {
        T::twin(self)(arch, words, args);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_survive_the_way_through_words() {
        let p = Embed {
            rows: 1,
            first_step: 2,
            steps: 3,
            columns: 4,
            features: 5,
            hidden_pitch: 6,
            x_pitch: 7,
            weight: 8,
            bias: 9,
            dropout: 10,
            tape: 11,
        };
        assert_eq!(Embed::from_words(&p.words()), p);
        assert_eq!(Embed::KERNEL.name, "embed");
        assert_eq!(GENERAL.iter().filter(|kernel| Embed::KERNEL.is(kernel)).count(), 1);
    }

    #[test]
    fn work_grows_with_the_shape() {
        let linear = |rows| Linear { rows, inputs_pitch: 16, outputs_pitch: 8, ..Linear::default() }.work();
        assert_eq!(linear(10), Work { flops: 2 * 10 * 16 * 8, numbers: 10 * (16 + 8) + 16 * 8 });
        assert_eq!(linear(30).flops, 3 * linear(10).flops);
        let greedy = |rows| Greedy { rows, features: 3, logit_pitch: 4, ..Greedy::default() }.work().flops;
        assert!(greedy(8) > greedy(1) && greedy(1) > 0);
    }
}
