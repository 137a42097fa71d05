//! Matrix products by the `gemm` crate, on one core: the engine's lanes already use all of them.

use super::real::Real;

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

/// `out = keep·out + scale·a·b`; with `keep` zero, what was in `out` does not matter.
pub fn matmul<T: Real>(out: &mut [T], c: Shape, keep: T, scale: T, a: (&[T], Shape), b: (&[T], Shape)) {
    let ((a, a_shape), (b, b_shape)) = (a, b);
    assert!(
        a_shape.rows == c.rows && b_shape.columns == c.columns && a_shape.columns == b_shape.rows,
        "the shapes of a product do not fit"
    );
    assert!(
        c.fits(out.len()) && a_shape.fits(a.len()) && b_shape.fits(b.len()),
        "a matrix reaches past its buffer"
    );
    // SAFETY: the pointers are valid for the shapes, as just checked; `out` is borrowed mutably and
    // so overlaps neither `a` nor `b`.
    unsafe {
        gemm::gemm(
            c.rows,
            c.columns,
            a_shape.columns,
            out.as_mut_ptr(),
            c.column_stride as isize,
            c.row_stride as isize,
            keep != T::ZERO,
            a.as_ptr(),
            a_shape.column_stride as isize,
            a_shape.row_stride as isize,
            b.as_ptr(),
            b_shape.column_stride as isize,
            b_shape.row_stride as isize,
            keep,
            scale,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_with_pitches_and_transposition() {
        // A is 2×3 in rows of 4, B is 3×2 stored transposed (2×3).
        let a = [1.0, 2.0, 3.0, 99.0, 4.0, 5.0, 6.0, 99.0];
        let b = [1.0, 0.0, -1.0, 2.0, 1.0, 0.5];
        let mut out = [10.0f64; 4];
        let c = Shape::rows(2, 2, 2);
        matmul(&mut out, c, 1.0, 2.0, (&a, Shape::rows(2, 3, 4)), (&b, Shape::rows(2, 3, 3).transposed()));
        assert_eq!(out, [6.0, 21.0, 6.0, 42.0]);
        matmul(&mut out, c, 0.0, 1.0, (&a, Shape::rows(2, 3, 4)), (&b, Shape::rows(2, 3, 3).transposed()));
        assert_eq!(out, [-2.0, 5.5, -2.0, 16.0]);
    }
}
