//! A few neighbouring numbers of a row at once: vectors of the best instruction set for f32, one number for f64.
//!
//! Loops over fixed-size arrays would be simpler, but what compilers make of them depends on their surroundings:
//! sums and maxima ended up in memory, which cost `select` more than half of its time.

use super::real::Real;
use crate::engine::kernels::words::NEVER;
use pulp::{MemMask, Simd};
use std::ops::{Add, Mul, Sub};

/// Some numbers of type `Real`, all treated alike.
pub trait Pack: Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> {
    /// What they are.
    type Real: Real;
    /// The instructions they are worked on with.
    type Set: Copy;
    /// A yes or no for each.
    type Mask: Copy;
    /// How many there are.
    const WIDTH: usize;

    /// The same number everywhere.
    fn splat(set: Self::Set, value: Self::Real) -> Self;
    /// 0, 1, 2, …
    fn indices(set: Self::Set) -> Self;
    /// The first numbers of a slice, with `pad` beyond its end.
    fn load(set: Self::Set, from: &[Self::Real], pad: Self::Real) -> Self;
    /// Writes as many as there is room for.
    fn store(self, to: &mut [Self::Real]);
    /// Which of some features have not been acquired; those beyond the slice's end have.
    fn open(set: Self::Set, acquired_at: &[u32]) -> Self::Mask;
    /// Where these are larger than others.
    fn above(self, other: Self) -> Self::Mask;
    /// These where the mask says so, others elsewhere.
    fn where_or(self, mask: Self::Mask, other: Self) -> Self;
    /// The larger of two; the other, if this is not a number.
    fn larger(self, other: Self) -> Self;
    /// [`Real::exp_down`].
    fn exp_down(self) -> Self;
    /// [`Real::flush`].
    fn flush(self) -> Self;
    /// The sum.
    fn total(self) -> Self::Real;
    /// The largest.
    fn largest(self) -> Self::Real;
    /// The smallest.
    fn smallest(self) -> Self::Real;
}

/// Where the parts of a row of so many numbers start and end.
#[inline(always)]
pub fn parts<V: Pack>(len: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..len).step_by(V::WIDTH).map(move |at| at..(at + V::WIDTH).min(len))
}

/// Part of a row, with zeros beyond its end. (A closure would not always be inlined, and so not be vector code.)
#[inline(always)]
pub fn part_of<V: Pack>(set: V::Set, row: &[V::Real], part: &std::ops::Range<usize>) -> V {
    V::load(set, &row[part.clone()], V::Real::ZERO)
}

impl Pack for f64 {
    type Real = f64;
    type Set = ();
    type Mask = bool;
    const WIDTH: usize = 1;

    fn splat((): (), value: f64) -> f64 {
        value
    }
    fn indices((): ()) -> f64 {
        0.0
    }
    fn load((): (), from: &[f64], pad: f64) -> f64 {
        from.first().copied().unwrap_or(pad)
    }
    fn store(self, to: &mut [f64]) {
        to[0] = self;
    }
    fn open((): (), when: &[u32]) -> bool {
        when.first() == Some(&NEVER)
    }
    fn above(self, other: f64) -> bool {
        self > other
    }
    fn where_or(self, mask: bool, other: f64) -> f64 {
        if mask { self } else { other }
    }
    fn larger(self, other: f64) -> f64 {
        Real::larger(self, other)
    }
    fn exp_down(self) -> f64 {
        Real::exp_down(self)
    }
    fn flush(self) -> f64 {
        Real::flush(self)
    }
    fn total(self) -> f64 {
        self
    }
    fn largest(self) -> f64 {
        self
    }
    fn smallest(self) -> f64 {
        self
    }
}

/// A vector of f32.
#[derive(Clone, Copy)]
pub struct Vector<S: Simd> {
    simd: S,
    value: S::f32s,
}

impl<S: Simd> Vector<S> {
    #[inline(always)]
    fn with(self, value: S::f32s) -> Self {
        Self { value, ..self }
    }
    #[inline(always)]
    fn same(self, value: f32) -> S::f32s {
        self.simd.splat_f32s(value)
    }
}

impl<S: Simd> Add for Vector<S> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.with(self.simd.add_f32s(self.value, other.value))
    }
}

impl<S: Simd> Sub for Vector<S> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.with(self.simd.sub_f32s(self.value, other.value))
    }
}

impl<S: Simd> Mul for Vector<S> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.with(self.simd.mul_f32s(self.value, other.value))
    }
}

/// A mask of the first so many numbers. (As `pulp` makes it, with functions to load and store through, every access
/// would be a call.)
#[inline(always)]
pub fn first<S: Simd>(simd: S, len: usize) -> S::m32s {
    simd.mask_between_m32s(0, len as u32).mask()
}

/// No vector has more numbers than this.
const WIDEST: usize = 16;

impl<S: Simd> Pack for Vector<S> {
    type Real = f32;
    type Set = S;
    type Mask = S::m32s;
    const WIDTH: usize = S::F32_LANES;

    #[inline(always)]
    fn splat(simd: S, value: f32) -> Self {
        Self { simd, value: simd.splat_f32s(value) }
    }
    #[inline(always)]
    fn indices(simd: S) -> Self {
        const INDICES: [f32; WIDEST] =
            [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
        Self::load(simd, &INDICES[..Self::WIDTH], 0.0)
    }
    #[inline(always)]
    fn load(simd: S, from: &[f32], pad: f32) -> Self {
        let value = match S::as_simd_f32s(from).0.first() {
            Some(&whole) => whole,
            None => {
                let there = first(simd, from.len());
                // SAFETY: only numbers of the slice are read.
                let part = unsafe { simd.mask_load_ptr_f32s(MemMask::new(there), from.as_ptr()) };
                simd.select_f32s(there, part, simd.splat_f32s(pad))
            }
        };
        Self { simd, value }
    }
    #[inline(always)]
    fn store(self, to: &mut [f32]) {
        match S::as_mut_simd_f32s(to).0.first_mut() {
            Some(whole) => *whole = self.value,
            None => {
                let there = MemMask::new(first(self.simd, to.len()));
                // SAFETY: only numbers of the slice are written.
                unsafe { self.simd.mask_store_ptr_f32s(there, to.as_mut_ptr(), self.value) }
            }
        }
    }
    #[inline(always)]
    fn open(simd: S, when: &[u32]) -> S::m32s {
        let when = match S::as_simd_u32s(when).0.first() {
            Some(&whole) => whole,
            // SAFETY: only numbers of the slice are read.
            None => unsafe { simd.mask_load_ptr_u32s(MemMask::new(first(simd, when.len())), when.as_ptr()) },
        };
        simd.greater_than_or_equal_u32s(when, simd.splat_u32s(NEVER))
    }
    #[inline(always)]
    fn above(self, other: Self) -> S::m32s {
        self.simd.greater_than_f32s(self.value, other.value)
    }
    #[inline(always)]
    fn where_or(self, mask: S::m32s, other: Self) -> Self {
        self.with(self.simd.select_f32s(mask, self.value, other.value))
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.where_or(self.above(other), other)
    }
    /// The same polynomial as `real::exp_f32`, with fused products where there are any.
    #[inline(always)]
    fn exp_down(self) -> Self {
        const ROUND: f32 = 12_582_912.0;
        let simd = self.simd;
        let number = |value| self.same(value);
        // By comparison, so that what is not a number stays so.
        let (least, most) = (self.with(number(-87.3)), self.with(number(88.0)));
        let x = most.where_or(self.above(most), least.where_or(least.above(self), self)).value;
        let shifted = simd.mul_add_e_f32s(x, number(std::f32::consts::LOG2_E), number(ROUND));
        let n = simd.sub_f32s(shifted, number(ROUND));
        let r = simd.mul_add_e_f32s(n, number(-0.693_359_4), x);
        let r = simd.mul_add_e_f32s(n, number(2.121_944_4e-4), r);
        let mut p = number(1.987_569_1e-4);
        for coefficient in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 5e-1] {
            p = simd.mul_add_e_f32s(p, r, number(coefficient));
        }
        let value = simd.mul_add_e_f32s(simd.mul_f32s(p, r), r, simd.add_f32s(r, number(1.0)));
        let exponent =
            simd.sub_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(ROUND.to_bits() - 127));
        let power = simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23));
        let value = self.with(simd.mul_f32s(value, simd.transmute_f32s_u32s(power)));
        let zero = self.with(number(0.0));
        zero.where_or(self.with(number(f32::EXP_FLOOR)).above(self), value)
    }
    #[inline(always)]
    fn flush(self) -> Self {
        let simd = self.simd;
        let below = simd.less_than_f32s(self.value, self.same(f32::TINY));
        let above = simd.greater_than_f32s(self.value, self.same(-f32::TINY));
        self.with(self.same(0.0)).where_or(simd.and_m32s(below, above), self)
    }
    #[inline(always)]
    fn total(self) -> f32 {
        self.simd.reduce_sum_f32s(self.value)
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        self.simd.reduce_max_f32s(self.value)
    }
    #[inline(always)]
    fn smallest(self) -> f32 {
        self.simd.reduce_min_f32s(self.value)
    }
}

/// Two of the same, one after the other: more numbers than a register holds.
#[derive(Clone, Copy)]
pub struct Pair<V>(V, V);

impl<V: Pack> Pair<V> {
    #[inline(always)]
    fn each(self, other: Self, operation: impl Fn(V, V) -> V) -> Self {
        Self(operation(self.0, other.0), operation(self.1, other.1))
    }
}

impl<V: Pack> Add for Pair<V> {
    type Output = Self;
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.each(other, V::add)
    }
}

impl<V: Pack> Sub for Pair<V> {
    type Output = Self;
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.each(other, V::sub)
    }
}

impl<V: Pack> Mul for Pair<V> {
    type Output = Self;
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.each(other, V::mul)
    }
}

impl<V: Pack> Pack for Pair<V> {
    type Real = V::Real;
    type Set = V::Set;
    type Mask = [V::Mask; 2];
    const WIDTH: usize = 2 * V::WIDTH;

    #[inline(always)]
    fn splat(set: V::Set, value: V::Real) -> Self {
        Self(V::splat(set, value), V::splat(set, value))
    }
    #[inline(always)]
    fn indices(set: V::Set) -> Self {
        let first = V::indices(set);
        Self(first, first + V::splat(set, V::Real::count(V::WIDTH as u32)))
    }
    #[inline(always)]
    fn load(set: V::Set, from: &[V::Real], pad: V::Real) -> Self {
        let (first, second) = from.split_at(V::WIDTH.min(from.len()));
        Self(V::load(set, first, pad), V::load(set, second, pad))
    }
    #[inline(always)]
    fn store(self, to: &mut [V::Real]) {
        let (first, second) = to.split_at_mut(V::WIDTH.min(to.len()));
        self.0.store(first);
        if !second.is_empty() {
            self.1.store(second);
        }
    }
    #[inline(always)]
    fn open(set: V::Set, when: &[u32]) -> Self::Mask {
        let (first, second) = when.split_at(V::WIDTH.min(when.len()));
        [V::open(set, first), V::open(set, second)]
    }
    #[inline(always)]
    fn above(self, other: Self) -> Self::Mask {
        [self.0.above(other.0), self.1.above(other.1)]
    }
    #[inline(always)]
    fn where_or(self, [first, second]: Self::Mask, other: Self) -> Self {
        Self(self.0.where_or(first, other.0), self.1.where_or(second, other.1))
    }
    #[inline(always)]
    fn larger(self, other: Self) -> Self {
        self.each(other, V::larger)
    }
    #[inline(always)]
    fn exp_down(self) -> Self {
        Self(self.0.exp_down(), self.1.exp_down())
    }
    #[inline(always)]
    fn flush(self) -> Self {
        Self(self.0.flush(), self.1.flush())
    }
    // As a register of twice the width does it: its two halves first.
    #[inline(always)]
    fn total(self) -> V::Real {
        (self.0 + self.1).total()
    }
    #[inline(always)]
    fn largest(self) -> V::Real {
        self.0.larger(self.1).largest()
    }
    #[inline(always)]
    fn smallest(self) -> V::Real {
        self.0.where_or(self.1.above(self.0), self.1).smallest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Check;

    impl pulp::WithSimd for Check {
        type Output = ();

        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) {
            check::<Vector<S>>(simd);
            check::<Pair<Vector<S>>>(simd);
            check::<Pair<Pair<Vector<S>>>>(simd);
        }
    }

    /// Every operation of a vector against the same on its numbers one by one, with rows of any length.
    #[inline(always)]
    fn check<V: Pack<Real = f32>>(set: V::Set) {
        let numbers: Vec<f32> = (0..50).map(|i| (i as f32 - 30.0) * 1.7).collect();
        let other: Vec<f32> = (0..50).map(|i| ((i * 7) % 50) as f32 - 25.0).collect();
        let when: Vec<u32> = (0..50).map(|i| if i % 3 == 0 { NEVER } else { i }).collect();
        for len in [1, 15, 16, 17, 40, 50] {
            let mut out = [7.0; 50];
            for part in parts::<V>(len) {
                let (a, b) = (&numbers[part.clone()], &other[part.clone()]);
                let (x, y) = (V::load(set, a, -1e30), V::load(set, b, -1e30));
                let open = V::open(set, &when[part.clone()]);
                let both = x * y - x + y;
                both.larger(x).where_or(open, y).flush().store(&mut out[part.clone()]);
                let scalar = |i: usize| {
                    let (x, y) = (numbers[i], other[i]);
                    let larger = Real::larger(x * y - x + y, x);
                    Real::flush(if when[i] == NEVER { larger } else { y })
                };
                part.clone().for_each(|i| assert_eq!(out[i], scalar(i), "{i} of {len}"));
                assert_eq!(x.largest(), a.iter().copied().fold(f32::MIN, f32::max));
                let padded = part.len() < V::WIDTH;
                let least = a.iter().copied().fold(f32::MAX, f32::min);
                assert_eq!(x.smallest(), if padded { -1e30 } else { least });
                let sum: f32 = a.iter().sum();
                assert!((V::load(set, a, 0.0).total() - sum).abs() < 1e-3);
                x.exp_down().store(&mut out[part.clone()]);
                for i in part {
                    let want = Real::exp_down(numbers[i]);
                    assert!(
                        (out[i] - want).abs() <= 3e-7 * want,
                        "exp({}): {} not {want}",
                        numbers[i],
                        out[i]
                    );
                }
            }
            assert!(out[len..].iter().all(|&value| value == 7.0));
        }
        let mut indices = vec![0.0; V::WIDTH];
        V::indices(set).store(&mut indices);
        assert!(indices.iter().enumerate().all(|(i, &index)| index == i as f32), "{indices:?}");
        let odd = [f32::NAN, -0.0, 1e-19, -1e-19, -88.0];
        let mut out = [0.0; 5];
        for part in parts::<V>(5) {
            V::load(set, &odd[part.clone()], 0.0).exp_down().store(&mut out[part]);
        }
        assert!(out[0].is_nan() && out[1] == 1.0 && out[4] == 0.0);
        for part in parts::<V>(5) {
            V::load(set, &odd[part.clone()], 0.0).flush().store(&mut out[part]);
        }
        assert!(out[0].is_nan() && out[2..4] == [0.0, 0.0]);
    }

    #[test]
    fn vectors_do_what_numbers_do() {
        pulp::Arch::new().dispatch(Check);
        pulp::WithSimd::with_simd(Check, pulp::Scalar::new());
    }

    struct Sums<'a>(&'a [f32]);

    impl pulp::WithSimd for Sums<'_> {
        type Output = [u32; 3];

        /// Of a row, sixteen numbers at a time.
        #[inline(always)]
        fn with_simd<S: Simd>(self, simd: S) -> [u32; 3] {
            match S::F32_LANES {
                8 => sums::<Pair<Vector<S>>>(simd, self.0),
                _ => sums::<Vector<S>>(simd, self.0),
            }
        }
    }

    #[inline(always)]
    fn sums<V: Pack<Real = f32>>(set: V::Set, row: &[f32]) -> [u32; 3] {
        let (mut plain, mut exp, mut square) = (V::splat(set, 0.0), V::splat(set, 0.0), V::splat(set, 0.0));
        for part in parts::<V>(row.len()) {
            let x = V::load(set, &row[part], 0.0);
            (plain, exp, square) = (plain + x, exp + x.exp_down(), square + x * x);
        }
        [plain, exp, square].map(|sum| sum.total().to_bits())
    }

    /// On a machine without AVX-512 there is nothing to compare.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn two_registers_add_up_to_the_bits_of_one_of_twice_the_width() {
        let (Some(avx2), Some(avx512)) = (pulp::x86::V3::try_new(), pulp::x86::V4::try_new()) else { return };
        let row: Vec<f32> = (0..100).map(|i| ((i * 37) % 100) as f32 / -7.0).collect();
        for len in 0..row.len() {
            let (two, one) = (Sums(&row[..len]), Sums(&row[..len]));
            assert_eq!(Simd::vectorize(avx2, two), Simd::vectorize(avx512, one), "{len} numbers");
        }
    }
}
