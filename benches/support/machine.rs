//! What the machine can do at most: single-precision matrix products on all cores.

use super::stats::median;
use std::time::Instant;

/// Side lengths of the products that are tried.
const SIDES: [usize; 4] = [256, 384, 512, 768];

/// The machine's peak, measured again in every round.
pub struct Machine {
    operands: Vec<[Vec<f32>; 3]>,
    peaks: Vec<f64>,
}

impl Machine {
    /// A product's operands for each core.
    pub fn new() -> Self {
        let most = SIDES.iter().max().map_or(0, |side| side * side);
        let operands =
            (0..rayon::current_num_threads()).map(|_| [1.0, 0.5, 0.0].map(|value| vec![value; most]));
        Self { operands: operands.collect(), peaks: Vec::new() }
    }

    /// GFLOP/s of products of one size: each core has its own, and none waits for another.
    fn gflops(&mut self, side: usize, seconds: f64) -> f64 {
        let rates: Vec<f64> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .operands
                .iter_mut()
                .map(|[a, b, c]| {
                    scope.spawn(move || {
                        multiply(side, a, b, c);
                        let (start, mut times) = (Instant::now(), 0u32);
                        while start.elapsed().as_secs_f64() < seconds {
                            multiply(side, a, b, c);
                            times += 1;
                        }
                        f64::from(times) * 2.0 * (side as f64).powi(3) / start.elapsed().as_secs_f64() / 1e9
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(0.0)).collect()
        });
        rates.iter().sum()
    }

    /// Measures the peak once more, the best over the sizes, and returns it.
    pub fn measure(&mut self, seconds: f64) -> f64 {
        let each = seconds / SIDES.len() as f64;
        let peak = SIDES.iter().map(|&side| self.gflops(side, each)).fold(0.0, f64::max);
        self.peaks.push(peak);
        peak
    }

    /// The median of all measurements.
    pub fn peak(&self) -> Option<f64> {
        median(self.peaks.iter().copied())
    }

    /// One line about it.
    pub fn describe(&self) -> String {
        let peak = self.peak().unwrap_or(0.0);
        let cores = self.operands.len();
        format!("SGEMM peak {peak:.0} GFLOP/s on {cores} cores (best of {SIDES:?}, median of the rounds)")
    }
}

/// c = a b, all square, on one core.
fn multiply(side: usize, a: &[f32], b: &[f32], c: &mut [f32]) {
    assert!([a.len(), b.len(), c.len()].iter().all(|&len| len >= side * side), "operands too small");
    let row = side as isize;
    // SAFETY: the three matrices lie in their slices, as just checked, and `c` is borrowed mutably.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            side,
            side,
            side,
            c.as_mut_ptr(),
            1,
            row,
            false,
            a.as_ptr(),
            1,
            row,
            b.as_ptr(),
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            gemm_common::Parallelism::None,
        );
    }
}
