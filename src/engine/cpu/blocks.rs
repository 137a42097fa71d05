//! Rows in blocks of sixteen: fixed-size arrays, whose loops compilers turn into vector code. Sums and
//! maxima are kept lane by lane, as compilers may not reorder them by themselves.

use super::real::Real;

/// Numbers of a block: what the widest vectors hold in f32.
pub const WIDTH: usize = 16;

/// A block of a row.
pub type Block<T> = [T; WIDTH];

/// Where the blocks of a row of so many numbers start.
pub fn starts(len: usize) -> impl Iterator<Item = usize> {
    (0..len).step_by(WIDTH)
}

/// The block of a row that starts at `at`, with `pad` beyond the row's end.
#[inline(always)]
pub fn load<T: Copy>(row: &[T], at: usize, pad: T) -> Block<T> {
    let rest = &row[at..];
    match rest.first_chunk() {
        Some(block) => *block,
        None => {
            let mut block = [pad; WIDTH];
            block[..rest.len()].copy_from_slice(rest);
            block
        }
    }
}

/// Writes the block that starts at `at`, up to the row's end.
#[inline(always)]
pub fn store<T: Copy>(row: &mut [T], at: usize, block: &Block<T>) {
    let rest = &mut row[at..];
    match rest.first_chunk_mut() {
        Some(to) => *to = *block,
        None => {
            for (to, &from) in rest.iter_mut().zip(block) {
                *to = from;
            }
        }
    }
}

/// The sum of a block's numbers.
#[inline(always)]
pub fn total<T: Real>(block: Block<T>) -> T {
    halved(block, |a, b| a + b)
}

/// The largest of a block's numbers.
#[inline(always)]
pub fn largest<T: Real>(block: Block<T>) -> T {
    halved(block, T::larger)
}

#[inline(always)]
fn halved<T: Real>(mut block: Block<T>, combine: impl Fn(T, T) -> T) -> T {
    let mut width = WIDTH / 2;
    while width > 0 {
        for lane in 0..width {
            block[lane] = combine(block[lane], block[lane + width]);
        }
        width /= 2;
    }
    block[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_rows_of_any_length() {
        for len in [1, 15, 16, 17, 40] {
            let row: Vec<f64> = (0..len).map(|i| i as f64).collect();
            let mut copy = vec![-1.0; len];
            let (mut sum, mut top) = ([0.0; WIDTH], [f64::NEG_INFINITY; WIDTH]);
            for at in starts(len) {
                let block = load(&row, at, 0.0);
                for (lane, &value) in block.iter().enumerate() {
                    sum[lane] += value;
                    top[lane] = value.larger(top[lane]);
                }
                store(&mut copy, at, &block);
            }
            assert_eq!(copy, row);
            assert_eq!(total(sum), (len * (len - 1) / 2) as f64);
            assert_eq!(largest(top), (len - 1) as f64);
        }
    }
}
