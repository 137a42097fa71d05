//! The CPU engine's real numbers: f32 to train with, f64 to check gradients with.

use super::args::Args;
use super::matmul::{Product, plain_product, vector_product};
use super::pack::{Pack, Vector};
use crate::engine::kernels::{Twin, WORDS};
use pulp::Simd;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, DivAssign, Mul, MulAssign, Neg, Sub, SubAssign};

/// f32 or f64.
pub trait Real:
    Copy
    + Default
    + PartialOrd
    + Send
    + Sync
    + std::fmt::Debug
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
    + DivAssign
    + Sum
    + 'static
{
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// Logits of what cannot be acquired: finite, as in the shaders.
    const BLOCKED: Self;
    /// Below this, exp is taken for zero, as in the shaders.
    const EXP_FLOOR: Self;
    /// Masses and gradients below this are taken for zero, as in the shaders. They could not change a
    /// sum, and their products would be denormal numbers, which are a hundred times slower. None in f64.
    const TINY: Self;
    /// Rounds an f64.
    fn of(value: f64) -> Self;
    /// A count as a real.
    fn count(value: u32) -> Self;
    /// eˣ.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;
    /// A whole number that is not negative, as an index.
    fn index(self) -> usize;
    /// Some of them at once, for an instruction set.
    type Pack<S: Simd>: Pack<Real = Self>;
    /// The instruction set as they want it.
    fn set<S: Simd>(simd: S) -> <Self::Pack<S> as Pack>::Set;
    /// A twin for these numbers.
    fn twin(twin: &Twin) -> fn(pulp::Arch, &[u32; WORDS], Args<Self>);
    /// A matrix product.
    fn product(product: Product<Self>);

    /// The larger of two.
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    /// eˣ, zero far below zero.
    #[inline(always)]
    fn exp_down(self) -> Self {
        if self < Self::EXP_FLOOR { Self::ZERO } else { self.exp() }
    }
    /// Zero if it is tiny.
    #[inline(always)]
    fn flush(self) -> Self {
        // Without a branch, so that loops over it become vectors.
        if (self < Self::TINY) & (-self < Self::TINY) { Self::ZERO } else { self }
    }
    /// Whether a logit is blocked.
    #[inline(always)]
    fn is_blocked(self) -> bool {
        self < Self::BLOCKED * Self::of(0.1)
    }
}

macro_rules! real {
    ($type:ident, $floor:literal, $tiny:literal, $exp:path, $ln:path, $product:path, $pack:ty, $set:expr) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const BLOCKED: Self = -1e30;
            const EXP_FLOOR: Self = $floor;
            const TINY: Self = $tiny;
            #[inline(always)]
            fn of(value: f64) -> Self {
                value as $type
            }
            #[inline(always)]
            fn count(value: u32) -> Self {
                value as $type
            }
            #[inline(always)]
            fn exp(self) -> Self {
                $exp(self)
            }
            #[inline(always)]
            fn ln(self) -> Self {
                $ln(self)
            }
            #[inline(always)]
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            #[inline(always)]
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as usize
            }
            type Pack<S: Simd> = $pack;
            #[inline(always)]
            fn set<S: Simd>(simd: S) -> <Self::Pack<S> as Pack>::Set {
                $set(simd)
            }
            fn twin(twin: &Twin) -> fn(pulp::Arch, &[u32; WORDS], Args<Self>) {
                twin.$type
            }
            fn product(product: Product<Self>) {
                $product(product);
            }
        }
    };
}

real!(f32, -87.0, 1e-18, exp_f32, ln_f32, vector_product, Vector<S>, |simd| simd);
real!(f64, -700.0, 0.0, f64::exp, f64::ln, plain_product, f64, |_| ());

/// eˣ for x in −87 … 88 without a branch or a call, so that loops over it become vector code:
/// x = n ln 2 + r with n whole, eʳ by a polynomial (Cephes), times 2ⁿ by its bits.
#[inline(always)]
fn exp_f32(x: f32) -> f32 {
    // Adding 1.5·2²³ rounds to a whole number and leaves it in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-87.3, 88.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let p = ((((1.987_569_1e-4 * r + 1.398_2e-3) * r + 8.333_452e-3) * r + 4.166_579_6e-2) * r
        + 1.666_666_5e-1)
        * r
        + 5e-1;
    let exponent = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32 - 127);
    let power = f32::from_bits((exponent as u32) << 23);
    (p * r * r + r + 1.0) * power
}

/// ln x for a positive, normal x: the same numbers as `ln_pos` in `shaders/lib/math.wgsl`, where the
/// formula is derived.
#[inline(always)]
fn ln_f32(x: f32) -> f32 {
    let bits = x.to_bits().wrapping_add(0x3f80_0000 - 0x3f35_04f3);
    let e = ((bits >> 23) as i32 - 127) as f32;
    let f = f32::from_bits((bits & 0x7f_ffff) + 0x3f35_04f3) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let w = z * z;
    let r = z * (0.666_666_6 + w * 0.284_987_87) + w * (0.400_009_72 + w * 0.242_790_79);
    let half = 0.5 * f * f;
    s * (half + r) + e * 9.058_001e-6 - half + f + e * 0.693_138_1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_and_ln_are_accurate_to_two_units_in_the_last_place() {
        for i in 0..200_000 {
            let x = -87.0 + 175.0 * (i as f32 / 200_000.0);
            let error = (f64::from(exp_f32(x)) / f64::from(x).exp() - 1.0).abs();
            assert!(error < 2.4e-7, "exp({x}): {error:.1e}");
            // Everywhere, and next to 1, where the relative error is what counts.
            for v in
                [f32::from_bits(0x0080_0000 + i * 10_000), 1.0 - i as f32 * 5.96e-8, 1.0 + i as f32 * 1.2e-7]
            {
                let want = f64::from(v).ln();
                let error = (f64::from(ln_f32(v)) - want).abs() / want.abs().max(1e-30);
                assert!(v == 1.0 || error < 2.4e-7, "ln({v}): {error:.1e}");
            }
        }
        assert_eq!(ln_f32(1.0), 0.0);
        assert_eq!(exp_f32(0.0), 1.0);
        assert_eq!((-100f32).exp_down(), 0.0);
    }
}
