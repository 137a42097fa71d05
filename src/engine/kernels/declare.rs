//! The entry of a kernel: everything about it in one place.

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
