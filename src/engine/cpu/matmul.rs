//! Matrix products on one core: the engine's lanes already use all of them.
//!
//! All our products have a right factor whose rows lie whole in memory (weights, transposed weights, output
//! gradients) and few enough numbers to stay in the caches. So nothing is packed and nothing allocated: a tile
//! of the result is kept in registers while k goes by, a vector of the right factor's row times one broadcast
//! number of the left factor. On the shapes of a training step this is 1.01 to 1.8 times as fast as the `gemm`
//! crate, which packs (docs/benchmarks.md).

use super::real::Real;
use super::{instructions, pack};
use pulp::{MemMask, Simd};
use std::ops::Range;

/// A matrix in a slice: `rows` × `columns`, with the distances between neighbours.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// Distance of neighbouring rows.
    pub row_stride: usize,
    /// Distance of neighbouring columns.
    pub column_stride: usize,
}

impl Shape {
    /// Rows one after the other, `pitch` apart.
    pub fn rows(rows: usize, columns: usize, pitch: usize) -> Self {
        Self { rows, columns, row_stride: pitch, column_stride: 1 }
    }

    /// The same numbers, read as the transposed matrix.
    pub fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
        }
    }

    fn fits(&self, len: usize) -> bool {
        self.rows == 0
            || self.columns == 0
            || (self.rows - 1) * self.row_stride + (self.columns - 1) * self.column_stride < len
    }
}

/// What a product is added to.
#[derive(Clone, Copy)]
pub enum Start<'a, T> {
    /// Nothing; what was in the result does not matter.
    Zero,
    /// What is in the result.
    Kept,
    /// A row, the same for all.
    Bias(&'a [T]),
}

/// What is done to a result before it is written.
#[derive(Clone, Copy)]
pub enum Finish<'a, T> {
    /// Nothing.
    Nothing,
    /// Zero where it is negative.
    Relu,
    /// Zero where this matrix, of the result's shape, is not positive.
    Gate(&'a [T]),
}

/// Dropout's multipliers, a matrix of the result's shape, if there are any.
pub type Times<'a, T> = Option<&'a [T]>;

/// `out = finish(start + scale·a·b)`. The rows of `b` and of `out` lie whole in memory.
pub fn matmul<T: Real>(
    (out, c): (&mut [T], Shape),
    start: Start<T>,
    scale: T,
    (a, a_shape): (&[T], Shape),
    (b, b_shape): (&[T], Shape),
    (finish, times): (Finish<T>, Times<T>),
) {
    assert!(
        a_shape.rows == c.rows && b_shape.columns == c.columns && a_shape.columns == b_shape.rows,
        "the shapes of a product do not fit"
    );
    assert!(c.column_stride == 1 && b_shape.column_stride == 1, "rows that do not lie whole in memory");
    let bias_fits = !matches!(start, Start::Bias(bias) if bias.len() < c.columns);
    let gate_fits = !matches!(finish, Finish::Gate(gate) if !c.fits(gate.len()));
    let times_fit = times.is_none_or(|times| c.fits(times.len()));
    assert!(
        c.fits(out.len())
            && a_shape.fits(a.len())
            && b_shape.fits(b.len())
            && bias_fits
            && gate_fits
            && times_fit,
        "a matrix reaches past its buffer"
    );
    T::product(Product { out, c, start, scale, a, a_shape, b, b_shape, finish, times });
}

/// A product whose shapes have been checked.
pub struct Product<'a, T> {
    out: &'a mut [T],
    c: Shape,
    start: Start<'a, T>,
    scale: T,
    a: &'a [T],
    a_shape: Shape,
    b: &'a [T],
    b_shape: Shape,
    finish: Finish<'a, T>,
    times: Times<'a, T>,
}

/// Row by row, in the plainest way: what checks the rest.
pub fn plain_product<T: Real>(p: Product<T>) {
    for i in 0..p.c.rows {
        let at = i * p.c.row_stride;
        let row = &mut p.out[at..][..p.c.columns];
        match p.start {
            Start::Zero => row.fill(T::ZERO),
            Start::Kept => {}
            Start::Bias(bias) => row.copy_from_slice(&bias[..p.c.columns]),
        }
        for k in 0..p.b_shape.rows {
            let a = p.scale * p.a[i * p.a_shape.row_stride + k * p.a_shape.column_stride];
            for (c, &b) in row.iter_mut().zip(&p.b[k * p.b_shape.row_stride..]) {
                *c += a * b;
            }
        }
        match p.finish {
            Finish::Nothing => {}
            Finish::Relu => row.iter_mut().for_each(|c| *c = c.larger(T::ZERO)),
            Finish::Gate(gate) => {
                for (c, &gate) in row.iter_mut().zip(&gate[at..]) {
                    *c = if gate > T::ZERO { *c } else { T::ZERO };
                }
            }
        }
        if let Some(times) = p.times {
            row.iter_mut().zip(&times[at..]).for_each(|(c, &times)| *c *= times);
        }
    }
}

/// In vectors.
pub fn vector_product(p: Product<f32>) {
    instructions::best().dispatch(p);
}

impl pulp::WithSimd for Product<'_, f32> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // Tiles that fill the registers: 24 of 32, or 8 of 16, hold the result.
        let mut p = self;
        if S::REGISTER_COUNT >= 32 { p.all_rows::<S, 8>(simd, 3) } else { p.all_rows::<S, 4>(simd, 2) }
    }
}

/// Rows of the result that are finished before the next: they stay in the nearest caches.
const BLOCK: usize = 64;

impl Product<'_, f32> {
    /// The result in blocks of rows, each in columns of at most `most` vectors, in tiles of `TALL` rows.
    #[inline(always)]
    fn all_rows<S: Simd, const TALL: usize>(&mut self, simd: S, most: usize) {
        let rows = self.c.rows;
        for first in (0..rows).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(rows);
            self.all_columns::<S, TALL>(simd, most, block.clone());
            self.multiply(block);
        }
    }

    /// Dropout, on rows that are still in the caches.
    #[inline(always)]
    fn multiply(&mut self, rows: Range<usize>) {
        let Some(times) = self.times else { return };
        for row in rows {
            let out = &mut self.out[row * self.c.row_stride..][..self.c.columns];
            for (out, &times) in out.iter_mut().zip(&times[row * self.c.row_stride..]) {
                *out *= times;
            }
        }
    }

    #[inline(always)]
    fn all_columns<S: Simd, const TALL: usize>(&mut self, simd: S, most: usize, rows: Range<usize>) {
        let width = S::F32_LANES;
        let mut first = 0;
        while first < self.c.columns {
            let left = self.c.columns - first;
            let vectors = left.div_ceil(width).min(most);
            let last = (left - (vectors - 1) * width).min(width);
            let mask = MemMask::new(pack::first(simd, last));
            let at = (first, rows.clone());
            // SAFETY: the columns are within the matrices, and `mask` leaves out what is not.
            unsafe {
                match (vectors, last == width) {
                    (1, true) => self.column::<S, TALL, 1, true>(simd, at, mask),
                    (1, false) => self.column::<S, TALL, 1, false>(simd, at, mask),
                    (2, true) => self.column::<S, TALL, 2, true>(simd, at, mask),
                    (2, false) => self.column::<S, TALL, 2, false>(simd, at, mask),
                    (_, true) => self.column::<S, TALL, 3, true>(simd, at, mask),
                    (_, false) => self.column::<S, TALL, 3, false>(simd, at, mask),
                }
            }
            first += vectors * width;
        }
    }

    /// # Safety
    /// `VECTORS` vectors from column `first` on must be within the matrices; unless they are `WHOLE`, only
    /// what `mask` has of the last one. The rows must be among those that are computed.
    #[inline(always)]
    unsafe fn column<S: Simd, const TALL: usize, const VECTORS: usize, const WHOLE: bool>(
        &mut self,
        simd: S,
        (first, rows): (usize, Range<usize>),
        mask: MemMask<S::m32s>,
    ) {
        let (mut row, rows) = (rows.start, rows.end);
        // SAFETY: this function's contract; the rows are within the matrices.
        unsafe {
            while row + TALL <= rows {
                self.tile::<S, TALL, VECTORS, WHOLE>(simd, [row, first], mask);
                row += TALL;
            }
            if TALL > 4 && row + 4 <= rows {
                self.tile::<S, 4, VECTORS, WHOLE>(simd, [row, first], mask);
                row += 4;
            }
            if row + 2 <= rows {
                self.tile::<S, 2, VECTORS, WHOLE>(simd, [row, first], mask);
                row += 2;
            }
            if row < rows {
                self.tile::<S, 1, VECTORS, WHOLE>(simd, [row, first], mask);
            }
        }
    }

    /// # Safety
    /// As `column`, and `TALL` of the rows that are computed, from `row` on, must be there.
    #[inline(always)]
    unsafe fn tile<S: Simd, const TALL: usize, const VECTORS: usize, const WHOLE: bool>(
        &mut self,
        simd: S,
        [row, first]: [usize; 2],
        mask: MemMask<S::m32s>,
    ) {
        let lanes = S::F32_LANES;
        let zero = simd.splat_f32s(0.0);
        let load = |from: *const f32, vector: usize| -> S::f32s {
            // SAFETY: this function's contract. Vectors may lie anywhere.
            unsafe {
                let from = from.add(vector * lanes);
                if WHOLE || vector + 1 < VECTORS {
                    from.cast::<S::f32s>().read_unaligned()
                } else {
                    simd.mask_load_ptr_f32s(mask, from)
                }
            }
        };
        let mut sums = [[zero; VECTORS]; TALL];
        // SAFETY: this function's contract, and `matmul` has checked the shapes. Of the pointers one step past
        // the last row, none is read from.
        unsafe {
            let mut b = self.b.as_ptr().add(first);
            let mut a = self.a.as_ptr().add(row * self.a_shape.row_stride);
            for _ in 0..self.b_shape.rows {
                let mut factors = [zero; VECTORS];
                for (vector, factor) in factors.iter_mut().enumerate() {
                    *factor = load(b, vector);
                }
                for (i, sums) in sums.iter_mut().enumerate() {
                    let factor = simd.splat_f32s(*a.add(i * self.a_shape.row_stride));
                    for (sum, &other) in sums.iter_mut().zip(&factors) {
                        *sum = simd.mul_add_e_f32s(factor, other, *sum);
                    }
                }
                b = b.wrapping_add(self.b_shape.row_stride);
                a = a.wrapping_add(self.a_shape.column_stride);
            }
            let scale = simd.splat_f32s(self.scale);
            for (i, sums) in sums.iter().enumerate() {
                let at = (row + i) * self.c.row_stride + first;
                let out = self.out.as_mut_ptr().add(at);
                for (vector, &sum) in sums.iter().enumerate() {
                    let start = match self.start {
                        Start::Zero => zero,
                        Start::Kept => load(out, vector),
                        Start::Bias(bias) => load(bias.as_ptr().add(first), vector),
                    };
                    let value = simd.mul_add_e_f32s(sum, scale, start);
                    let value = match self.finish {
                        Finish::Nothing => value,
                        Finish::Relu => simd.max_f32s(value, zero),
                        Finish::Gate(gate) => {
                            let open = simd.greater_than_f32s(load(gate.as_ptr().add(at), vector), zero);
                            simd.select_f32s(open, value, zero)
                        }
                    };
                    let to = out.add(vector * lanes);
                    if WHOLE || vector + 1 < VECTORS {
                        to.cast::<S::f32s>().write_unaligned(value);
                    } else {
                        simd.mask_store_ptr_f32s(mask, to, value);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let source = crate::random::Source::new(seed, 99, 0);
        (0..n as u32).map(|i| crate::random::unit(source.bits(i, 0, 0)[0]) as f32 - 0.5).collect()
    }

    #[test]
    fn products_with_pitches_and_transposition() {
        // A is 2×3 stored transposed in rows of 4, B is 3×2 in rows of 3.
        let a = [1.0, 4.0, 99.0, 99.0, 2.0, 5.0, 99.0, 99.0, 3.0, 6.0, 99.0, 99.0];
        let b = [1.0, 2.0, 99.0, 0.0, 1.0, 99.0, -1.0, 0.5, 99.0];
        let (a, b) = ((&a[..], Shape::rows(3, 2, 4).transposed()), (&b[..], Shape::rows(3, 2, 3)));
        let c = Shape::rows(2, 2, 2);
        let mut out = [10.0f64; 4];
        matmul((&mut out, c), Start::Kept, 2.0, a, b, (Finish::Nothing, None));
        assert_eq!(out, [6.0, 21.0, 6.0, 42.0]);
        matmul((&mut out, c), Start::Zero, 1.0, a, b, (Finish::Nothing, None));
        assert_eq!(out, [-2.0, 5.5, -2.0, 16.0]);
        matmul((&mut out, c), Start::Bias(&[1.0, -6.0]), 1.0, a, b, (Finish::Relu, None));
        assert_eq!(out, [0.0, 0.0, 0.0, 10.0]);
        matmul((&mut out, c), Start::Zero, 1.0, a, b, (Finish::Gate(&[1.0, 0.0, -1.0, 2.0]), None));
        assert_eq!(out, [-2.0, 0.0, 0.0, 16.0]);
    }

    /// Every kind of tile, at the edges too: vectors against the plain way, and nothing beside the result is
    /// touched.
    #[test]
    fn vectors_give_what_the_plain_way_does() {
        // 70 are more than a block.
        for rows in [1, 2, 3, 7, 8, 15, 32, 70] {
            for columns in [1, 4, 12, 16, 17, 31, 48, 49, 100] {
                let (k, pitch) = (2 + rows * columns % 37, columns + 3);
                let a = numbers(rows * k, 1);
                let b = numbers(k * pitch, 2);
                let gate = numbers(rows * pitch, 3);
                let before = numbers(rows * pitch, 4);
                let times = numbers(rows * pitch, 6);
                let bias = numbers(columns, 5);
                let c = Shape::rows(rows, columns, pitch);
                for transposed in [false, true] {
                    let whole = Shape::rows(rows, k, k);
                    let a_shape = if transposed { Shape::rows(k, rows, rows).transposed() } else { whole };
                    for start in [Start::Zero, Start::Kept, Start::Bias(&bias)] {
                        for (finish, times) in [
                            (Finish::Nothing, None),
                            (Finish::Relu, Some(&times[..])),
                            (Finish::Gate(&gate), None),
                            (Finish::Gate(&gate), Some(&times[..])),
                            (Finish::Relu, None),
                        ] {
                            let product = |out| Product {
                                out,
                                c,
                                start,
                                scale: 0.3,
                                a: &a,
                                a_shape,
                                b: &b,
                                b_shape: Shape::rows(k, columns, pitch),
                                finish,
                                times,
                            };
                            let (mut got, mut want) = (before.clone(), before.clone());
                            vector_product(product(&mut got));
                            plain_product(product(&mut want));
                            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                                assert!((got - want).abs() < 1e-5, "{rows}×{columns}, {i}: {got} {want}");
                                assert!(i % pitch < columns || got == want, "touched the padding");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    #[should_panic(expected = "past its buffer")]
    fn matrices_must_be_within_their_buffers() {
        let (a, b) = ([1.0f32; 6], [1.0f32; 5]);
        let (a, b) = ((&a[..], Shape::rows(2, 3, 3)), (&b[..], Shape::rows(3, 2, 2)));
        matmul((&mut [0.0; 4], Shape::rows(2, 2, 2)), Start::Zero, 1.0, a, b, (Finish::Nothing, None));
    }
}
