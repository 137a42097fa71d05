//! Which instructions the twins run with.

use pulp::Arch;
use std::sync::OnceLock;

/// Set to `avx2`, AVX-512 is left alone, and set to `scalar`, all vectors: to measure, and test, on one machine what another
/// does.
const VARIABLE: &str = "QUERENT_CPU";

/// The best instructions of this machine that twins are compiled for.
pub fn best() -> Arch {
    static BEST: OnceLock<Arch> = OnceLock::new();
    *BEST.get_or_init(|| match std::env::var_os(VARIABLE) {
        None => Arch::new(),
        Some(name) if name == "avx2" => without_avx512(),
        Some(name) if name == "scalar" => Arch::Scalar,
        Some(name) => {
            log::warn!(
                "{VARIABLE} is {name:?}, which means nothing: it can be avx2 or scalar, or not be set"
            );
            Arch::new()
        }
    })
}

#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn without_avx512() -> Arch {
    pulp::x86::V3::try_new().map_or(Arch::Scalar, Arch::V3)
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn without_avx512() -> Arch {
    Arch::new()
}
