//! What a kernel is: its name, its parameters and buffers, its source for a kind of device, and its twin.

use super::library::Part;
use super::{Grid, Work, folded};
use crate::engine::cpu::{Args, Real};
use crate::engine::plan::Elem;

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
        let pieces = self.parts.iter().map(|part| part.wgsl(target, of_a_chain));
        pieces.chain([self.body.into()]).collect()
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
            // At most two blocks of 16 × 32 instead of one of 32 × 32, one a thread.
            folded(x * y * 2, TILE_GROUP)
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

impl Twin {
    pub(crate) fn run<T: Real>(&self, arch: pulp::Arch, words: &[u32; WORDS], args: Args<T>) {
        T::twin(self)(arch, words, args);
    }
}
