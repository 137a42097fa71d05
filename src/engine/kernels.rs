//! The table of kernels: for each its shader, its bindings and its parameters, once, for both
//! engines. The shader's uniform block `Params` has the same fields in the same order, and its
//! storage buffers are the bindings in order, from `@binding(1)`; a test compares both with what
//! naga reflects.

use super::plan::Elem;

/// Words of a call's parameter block.
pub const WORDS: usize = 16;

/// Threads of a workgroup that works on one row together. Same as `WIDTH` in lib/reduce.wgsl.
const ROW_WIDTH: u32 = 64;

/// Rows of a workgroup of the same kernels where a thread works alone. Same as `GROUP` in lib/alone.wgsl.
const ALONE_GROUP: u32 = 16;

/// Blocks of a workgroup of a product on a software driver. Same as `PRODUCT_WIDTH` in lib/tile_software.wgsl.
const TILE_GROUP: u32 = 8;

/// What a kernel's source is made for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
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

/// One storage buffer of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Binding {
    /// The variable's name in the shader.
    pub name: &'static str,
    /// Element type.
    pub elem: Elem,
    /// What is done with it.
    pub access: Access,
}

/// A kernel's entry in the table.
#[derive(Debug)]
pub struct Kernel {
    /// The shader file's stem, and the name of its twin.
    pub name: &'static str,
    /// What it computes, in a line.
    pub about: &'static str,
    /// The shader with the library files it uses, as given to the driver.
    pub parts: &'static [&'static str],
    /// The fields of its parameter block.
    pub fields: &'static [&'static str],
    /// Its storage buffers.
    pub bindings: &'static [Binding],
}

impl Kernel {
    /// The complete WGSL source for a kind of device.
    pub fn source(&self, device: Device) -> String {
        let part = |part: &&'static str| match (device, *part) {
            (Device::Software, TEAM) => ALONE,
            (Device::Software, REDUCE) if self.has_teams() => "",
            (Device::Software, PRODUCT) => PRODUCT_SOFTWARE,
            (Device::Software, OUTER) => OUTER_SOFTWARE,
            (_, part) => part,
        };
        self.parts.iter().map(part).collect::<Vec<_>>().join("\n")
    }

    /// Workgroups to dispatch on a kind of device, where it is `grid` on a GPU.
    pub(crate) fn grid(&self, device: Device, grid: [u32; 3]) -> [u32; 3] {
        let [x, y, _] = grid;
        if device == Device::Gpu {
            grid
        } else if self.has_teams() {
            line(x * y, ALONE_GROUP)
        } else if self.is_product() {
            // At most eight blocks of 8 × 16 instead of one of 32 × 32, one a thread.
            line(x * y * 8, TILE_GROUP)
        } else {
            grid
        }
    }

    fn is_product(&self) -> bool {
        self.parts.contains(&PRODUCT) || self.parts.contains(&OUTER)
    }

    /// Whether a GPU has a workgroup work on a row, where a software driver has a thread.
    fn has_teams(&self) -> bool {
        self.parts.contains(&TEAM)
    }
}

/// A kernel's parameters.
pub trait Params: Copy {
    /// Which kernel they are for.
    const ID: KernelId;
    /// As the shader's uniform block.
    fn words(&self) -> [u32; WORDS];
    /// Back from the uniform block.
    fn from_words(words: &[u32; WORDS]) -> Self;
    /// Workgroups to dispatch.
    fn grid(&self) -> [u32; 3];
}

const ALONE: &str = include_str!("../../shaders/lib/alone.wgsl");
const BEST: &str = include_str!("../../shaders/lib/best.wgsl");
const GROUPS: &str = include_str!("../../shaders/lib/groups.wgsl");
const MATH: &str = include_str!("../../shaders/lib/math.wgsl");
const PLACE: &str = include_str!("../../shaders/lib/place.wgsl");
const OUTER: &str = include_str!("../../shaders/lib/outer.wgsl");
const OUTER_SOFTWARE: &str = concat!(
    include_str!("../../shaders/lib/tile_software.wgsl"),
    "\n",
    include_str!("../../shaders/lib/outer_software.wgsl")
);
const PRODUCT: &str = include_str!("../../shaders/lib/product.wgsl");
const PRODUCT_SOFTWARE: &str = concat!(
    include_str!("../../shaders/lib/tile_software.wgsl"),
    "\n",
    include_str!("../../shaders/lib/product_software.wgsl")
);
const RANDOM: &str = include_str!("../../shaders/lib/random.wgsl");
const REDUCE: &str = include_str!("../../shaders/lib/reduce.wgsl");
const STATE: &str = include_str!("../../shaders/lib/state.wgsl");
const TAPE: &str = include_str!("../../shaders/lib/tape.wgsl");
const TEAM: &str = include_str!("../../shaders/lib/team.wgsl");

/// Workgroups for `n` threads in a row of `width`, folded into two dimensions where one has not
/// enough (65,535 is WebGPU's limit).
fn line(n: u32, width: u32) -> [u32; 3] {
    let groups = n.div_ceil(width).max(1);
    let x = groups.min(65_535);
    [x, groups.div_ceil(x), 1]
}

/// Workgroups of 8 × 8 threads over a `width` × `height` area.
fn area(width: u32, height: u32) -> [u32; 3] {
    [width.div_ceil(8).max(1), height.div_ceil(8).max(1), 1]
}

/// Workgroups of 32 × 32 numbers of a product.
fn tiles(columns: u32, rows: u32) -> [u32; 3] {
    [columns.div_ceil(32).max(1), rows.div_ceil(32).max(1), 1]
}

/// One workgroup a row.
fn each(rows: u32) -> [u32; 3] {
    line(rows * ROW_WIDTH, ROW_WIDTH)
}

macro_rules! kernels {
    ($(
        $(#[doc = $about:literal])+
        $id:ident $file:literal [$($part:ident)*]
        { $($field:ident),* $(,)? }
        ( $($binding:ident: $elem:ident $access:ident),* $(,)? )
        |$p:ident| $grid:expr;
    )*) => {
        /// Names a kernel; its position in [`KERNELS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum KernelId { $( $(#[doc = $about])+ $id, )* }

        /// Every kernel.
        pub static KERNELS: &[Kernel] = &[ $( Kernel {
            name: $file,
            about: concat!($($about),+),
            parts: &[$($part,)* include_str!(concat!("../../shaders/", $file, ".wgsl"))],
            fields: &[$(stringify!($field)),*],
            bindings: &[$( Binding { name: stringify!($binding), elem: Elem::$elem, access: Access::$access } ),*],
        }, )* ];

        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
            #[allow(missing_docs)] // the fields are explained where they are used: in the shader
            pub struct $id { $(pub $field: u32),* }

            impl Params for $id {
                const ID: KernelId = KernelId::$id;
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
                fn grid(&self) -> [u32; 3] { let $p = self; $grid }
            }
        )*
    };
}

kernels! {
    /// Copies the batch's rows out of the data set, shuffled or in order.
    Gather "gather" [STATE RANDOM TAPE PLACE]
        { rows, columns, pitch, first, batch, split_start, split_len, shuffled }
        (clock: U32 Read, data_x: F32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
        |p| area(p.pitch, p.rows);

    /// The same out of a data set of bytes, four to a word: x = byte / divisor.
    GatherBytes "gather_bytes" [STATE RANDOM TAPE PLACE]
        { rows, columns, pitch, first, batch, split_start, split_len, shuffled, divisor }
        (clock: U32 Read, data_x: U32 Read, data_y: U32 Read, x: F32 Write, y: U32 Write)
        |p| area(p.pitch, p.rows);

    /// Adds noise to the batch's rows.
    Blur "blur" [STATE RANDOM]
        { rows, columns, pitch, first }
        (clock: U32 Read, spread: F32 Read, hyper: F32 Read, x: F32 Write)
        |p| area(p.columns.div_ceil(4), p.rows);

    /// Fills the noise tape with Gumbel(0, 1) numbers.
    Noise "noise" [STATE MATH RANDOM]
        { rows, steps, actions, pitch, first }
        (clock: U32 Read, gumbel: F32 Write)
        |p| area(p.pitch / 4, p.rows * p.steps);

    /// Fills a layer's dropout multipliers.
    Dropout "dropout" [STATE RANDOM]
        { rows, steps, pitch, first, threshold, stream }
        (clock: U32 Read, multiplier: F32 Write)
        |p| area(p.pitch.div_ceil(8), p.rows * p.steps);

    /// Draws the warm-up's masks, each feature seen with probability one half; or sees everything.
    RandomMask "random_mask" [STATE RANDOM TAPE]
        { rows, features, pitch, first, all }
        (clock: U32 Read, relax: F32 Write)
        |p| area(p.features.div_ceil(32), p.rows);

    /// Draws masks for the predictor from what the rollout asked.
    PartMask "part_mask" [STATE RANDOM TAPE]
        { rows, steps, features, pitch, first }
        (clock: U32 Read, when: U32 Read, hyper: F32 Read, scalars: F32 Write, relax: F32 Write)
        |p| line(p.rows, 64);

    /// Writes the networks' dense input (x ⊙ m, m) for relaxed masks.
    Expand "expand" [GROUPS TAPE]
        { rows, step, columns, features, x_pitch, relax_pitch, input_pitch, nothing_seen }
        (groups: U32 Read, x: F32 Read, relax: F32 Read, input: F32 Write)
        |p| area(p.input_pitch, p.rows);

    /// First layer under hard masks: a running sum of the acquired features' weight rows.
    Embed "embed" [GROUPS]
        { rows, first_step, steps, columns, features, hidden_pitch, x_pitch, weight, bias, dropout, tape }
        (groups: U32 Read, x: F32 Read, path: U32 Read, weights: F32 Read, multiplier: F32 Read,
         sum: F32 Write, hidden: F32 Write)
        |p| area(p.hidden_pitch / 4, p.rows);

    /// Suffix sums over the steps of the first layer's gradient, in place.
    EmbedSuffix "embed_suffix" []
        { rows, steps, pitch }
        (grad_hidden: F32 Write)
        |p| area(p.pitch / 4, p.rows);

    /// First layer's weight gradient from the suffix sums: each acquired row gets its suffix.
    EmbedGrad "embed_grad" [GROUPS]
        { rows, steps, columns, features, hidden_pitch, x_pitch, weight, bias, accumulate, divisor }
        (groups: U32 Read, x: F32 Read, when: U32 Read, suffix: F32 Read, grad: F32 Write)
        |p| area(p.hidden_pitch / 4, p.columns + p.features + 1);

    /// Linear layer forward: y = x·W + b, then ReLU and dropout if asked for.
    Linear "linear" [PRODUCT]
        { rows, inputs_pitch, outputs_pitch, x_row, y_row, weight, bias, relu, dropout }
        (x: F32 Read, weights: F32 Read, multiplier: F32 Read, y: F32 Write)
        |p| tiles(p.outputs_pitch, p.rows);

    /// A layer's weight the other way round, for the way back to its input.
    Transpose "transpose" []
        { inputs_pitch, outputs_pitch, weight }
        (weights: F32 Read, transposed: F32 Write)
        |p| area(p.outputs_pitch / 4, p.inputs_pitch / 4);

    /// Linear layer backward to its input: dx = dy·Wᵀ, through the ReLU and dropout before it.
    LinearGradInput "linear_grad_input" [PRODUCT]
        { rows, inputs_pitch, outputs_pitch, dy_row, dx_row, hidden_row, weight, gate, dropout }
        (dy: F32 Read, transposed: F32 Read, hidden: F32 Read, multiplier: F32 Read,
         dx: F32 Write)
        |p| tiles(p.inputs_pitch, p.rows);

    /// Linear layer backward to its weights: dW = xᵀ·dy / divisor.
    LinearGradWeight "linear_grad_weight" [OUTER]
        { rows, inputs_pitch, outputs_pitch, weight, accumulate, divisor }
        (x: F32 Read, dy: F32 Read, grad: F32 Write)
        |p| tiles(p.outputs_pitch, p.inputs_pitch);

    /// Linear layer backward to its bias: the column sums of dy / divisor.
    BiasGrad "bias_grad" []
        { rows, pitch, bias, accumulate, divisor }
        (dy: F32 Read, grad: F32 Write)
        |p| line(p.pitch, 64);

    /// One acquisition of the rollout: block, temper, perturb, choose; masks, survival, entropy.
    Select "select" [MATH BEST REDUCE TEAM STATE TAPE]
        { rows, step, steps, features, logit_pitch, relax_pitch, soft, relaxed }
        (logits: F32 Write, gumbel: F32 Read, when: U32 Write, relax: F32 Write, path: U32 Write,
         scalars: F32 Write, costs: F32 Read, hyper: F32 Read)
        |p| each(p.rows);

    /// Backward through one acquisition: the logits become their gradient.
    SelectGrad "select_grad" [MATH BEST REDUCE TEAM STATE TAPE]
        { rows, step, steps, features, logit_pitch, relax_pitch, relaxed }
        (logits: F32 Write, relax: F32 Read, mask_grad: F32 Read, scalars: F32 Write, losses: F32 Read,
         costs: F32 Read, hyper: F32 Read, path: U32 Read)
        |p| each(p.rows);

    /// Weighted cross-entropy of each row; the logits become the loss's unit gradient.
    Loss "loss" [MATH TAPE]
        { rows, batch, classes, pitch, weights, weighted }
        (logits: F32 Write, y: U32 Read, costs: F32 Read, losses: F32 Write, scalars: F32 Read)
        |p| line(p.rows, 64);

    /// The gradient of a loss with respect to the mask, from the gradient of the first layer's input.
    MaskGrad "mask_grad" [GROUPS]
        { rows, batch, columns, features, x_pitch, input_pitch, pitch }
        (groups: U32 Read, x: F32 Read, grad_input: F32 Read, grad_mask: F32 Write)
        |p| area(p.pitch, p.rows);

    /// Carries the mask gradient M one step back through the rollout.
    MaskCarry "mask_carry" [GROUPS MATH TAPE]
        { rows, step, steps, columns, features, x_pitch, input_pitch, pitch }
        (groups: U32 Read, x: F32 Read, grad_input: F32 Read, relax: F32 Read, scalars: F32 Read,
         loss_mask_grad: F32 Read, mask_grad: F32 Write)
        |p| area(p.pitch, p.rows);

    /// Adds a micro-batch's objective, its parts and the predictor's loss to the metrics.
    Outcome "outcome" [REDUCE STATE TAPE]
        { rows, steps, mark0, mark1, mark2 }
        (scalars: F32 Read, losses: F32 Read, hyper: F32 Read, metrics: F32 Write)
        |_p| [1, 1, 1];

    /// Adam, with the micro-batches' gradients added up; notes a gradient that is not finite.
    Adam "adam" [MATH STATE]
        { len, lanes, rate, power }
        (values: F32 Write, mean: F32 Write, variance: F32 Write, grad: F32 Read, hyper: F32 Read,
         powers: F32 Read, clock: U32 Read, status: U32 Write)
        |p| line(p.len, 64);

    /// The moving average of a network's weights, which evaluation uses.
    Average "average" [STATE]
        { len }
        (values: F32 Read, average: F32 Write, hyper: F32 Read)
        |p| line(p.len, 64);

    /// Moves the clock on: the next step, the next batch, Adam's powers, the next evaluation chunk.
    Advance "advance" [STATE]
        { what, batches }
        (clock: U32 Write, powers: F32 Write, hyper: F32 Read)
        |_p| [1, 1, 1];

    /// One step of the greedy policy: acquire the best feature, or stop for good.
    Greedy "greedy" [BEST REDUCE TEAM TAPE]
        { rows, step, features, logit_pitch }
        (logits: F32 Read, when: U32 Write, path: U32 Write)
        |p| each(p.rows);

    /// Adds a chunk of greedily evaluated rows to the metrics.
    Score "score" [REDUCE TAPE]
        { rows, steps, features }
        (losses: F32 Read, path: U32 Read, y: U32 Read, costs: F32 Read, metrics: F32 Write)
        |_p| [1, 1, 1];

    /// Adds to the counts of what was asked at each step of the greedy policy.
    Asked "asked" [TAPE]
        { rows, steps, features }
        (path: U32 Read, y: U32 Read, counts: U32 Write)
        |p| area(p.features + 1, p.steps);
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
        assert_eq!(KERNELS[KernelId::Embed as usize].name, "embed");
    }

    #[test]
    fn grids_cover_their_work_within_the_limit() {
        assert_eq!(line(1, 64), [1, 1, 1]);
        assert_eq!(line(65, 64), [2, 1, 1]);
        let [x, y, _] = line(64 * 70_000, 64);
        assert!(x <= 65_535 && y <= 65_535 && x * y >= 70_000);
        assert_eq!(area(9, 8), [2, 1, 1]);
    }
}
