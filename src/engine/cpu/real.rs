//! The CPU engine's real numbers: f32 to train with, f64 to check gradients with.

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
    /// Rounds an f64.
    fn of(value: f64) -> Self;
    /// As f64.
    fn to_f64(self) -> f64;
    /// A count as a real.
    fn count(value: u32) -> Self {
        Self::of(f64::from(value))
    }
    /// eˣ.
    fn exp(self) -> Self;
    /// Natural logarithm.
    fn ln(self) -> Self;
    /// Square root.
    fn sqrt(self) -> Self;
    /// Neither infinite nor NaN.
    fn is_finite(self) -> bool;

    /// The larger of two.
    fn larger(self, other: Self) -> Self {
        if self > other { self } else { other }
    }
    /// eˣ, zero far below zero.
    fn exp_down(self) -> Self {
        if self < Self::EXP_FLOOR { Self::ZERO } else { self.exp() }
    }
    /// Whether a logit is blocked.
    fn is_blocked(self) -> bool {
        self < Self::BLOCKED * Self::of(0.1)
    }
}

macro_rules! real {
    ($type:ident, $floor:literal) => {
        impl Real for $type {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            const BLOCKED: Self = -1e30;
            const EXP_FLOOR: Self = $floor;
            fn of(value: f64) -> Self {
                value as $type
            }
            fn to_f64(self) -> f64 {
                f64::from(self)
            }
            fn exp(self) -> Self {
                $type::exp(self)
            }
            fn ln(self) -> Self {
                $type::ln(self)
            }
            fn sqrt(self) -> Self {
                $type::sqrt(self)
            }
            fn is_finite(self) -> bool {
                $type::is_finite(self)
            }
        }
    };
}

real!(f32, -87.0);
real!(f64, -700.0);
