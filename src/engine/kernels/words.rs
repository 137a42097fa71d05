//! Names of the words of buffers, declared once: as constants for Rust, as text for WGSL.

use crate::random::stream;

/// Named words of a buffer, or other numbers that Rust and shaders share.
#[derive(Debug, PartialEq)]
pub struct Words {
    /// Each name and its number.
    pub numbers: &'static [(&'static str, u32)],
}

impl Words {
    /// As WGSL constants.
    pub fn wgsl(&self) -> String {
        self.numbers.iter().map(|(name, number)| format!("const {name}: u32 = {number}u;\n")).collect()
    }
}

/// Declares a module of words, numbered one after the other from `first` on. For shaders they have the same names,
/// behind a prefix if there is one, and `LEN`, how many words the buffer has up to there, is the name given.
macro_rules! words {
    (
        $(#[doc = $about:literal])+
        pub mod $module:ident: $type:ty, first $first:expr, prefix $prefix:literal, len $len:literal {
            $( $(#[doc = $doc:literal])+ $name:ident, )*
        }
    ) => {
        $(#[doc = $about])+
        pub mod $module {
            #[allow(clippy::upper_case_acronyms, non_camel_case_types, dead_code)]
            enum Index { $($name,)* COUNT }
            const FIRST: $type = $first as $type;
            $( $(#[doc = $doc])+ pub const $name: $type = FIRST + Index::$name as $type; )*
            /// How many words there are.
            #[allow(dead_code)]
            pub const LEN: $type = FIRST + Index::COUNT as $type;
            /// For shaders.
            pub static WORDS: $crate::engine::kernels::words::Words = $crate::engine::kernels::words::Words {
                numbers: &[$((concat!($prefix, stringify!($name)), $name as u32),)* ($len, LEN as u32)],
            };
        }
    };
}

pub(crate) use words;

words! {
    /// The clock: where a run is.
    pub mod clock: usize, first 0, prefix "", len "CLOCK" {
        /// The seed's lower half.
        SEED_LO,
        /// The seed's upper half.
        SEED_HI,
        /// Training steps done, warm-up included.
        STEP,
        /// Passes over the data done: keys the shuffle.
        EPOCH,
        /// Batches done in this pass.
        BATCH,
        /// Chunks of a split evaluated.
        CHUNK,
        /// Rows that an instance has in a batch, one after the other; 0 is 1.
        COPIES,
        /// Not used: keeps the length even.
        SPARE,
    }
}

impl Words {
    /// The seed in a clock.
    pub fn seed(clock: &[u32]) -> u64 {
        u64::from(clock[clock::SEED_LO]) | u64::from(clock[clock::SEED_HI]) << 32
    }
}

words! {
    /// Settings that general kernels read; a method's own follow them in the same buffer.
    pub mod settings: usize, first 0, prefix "", len "SETTINGS" {
        /// Adam's decay of the mean.
        BETA1,
        /// Adam's decay of the variance.
        BETA2,
        /// Adam's ε.
        EPSILON,
        /// Share of the newest weights in their exponential moving average.
        AVERAGE,
        /// Noise on the training rows, in standard deviations of each column.
        INPUT_NOISE,
        /// The condition's place on its scale from 0 to 1, at the least.
        CONDITION_FROM,
        /// The same, at the most.
        CONDITION_TO,
        /// How far beyond these conditions are drawn in training, so that the ends are learned as well as what lies between.
        CONDITION_MARGIN,
        /// Where a condition's factor is 1.
        CONDITION_UNIT,
        /// The logarithm of the factor from one end of the scale to the other; 0: every factor is 1.
        CONDITION_SPAN,
        /// Share of the training instances of which a part of the features cannot be had.
        RESTRICTED,
    }
}

/// The general settings at the beginning of a buffer of so many words: Adam's usual decays, the moving average's share
/// of the newest weights, and noise on the rows.
pub fn general(len: usize, average: f64, input_noise: f64) -> Vec<f64> {
    let mut values = vec![0.0; len];
    values[settings::BETA1] = 0.9;
    values[settings::BETA2] = 0.999;
    values[settings::EPSILON] = 1e-8;
    values[settings::AVERAGE] = average;
    values[settings::INPUT_NOISE] = input_noise;
    values
}

words! {
    /// Words of a row's losses.
    pub mod losses: usize, first 0, prefix "", len "LOSSES" {
        /// The loss.
        LOSS,
        /// The class the predictor takes for the most likely.
        GUESS,
    }
}

words! {
    /// Words of the training metrics that general kernels add to. A method's own are the two between them and, in an
    /// evaluation, those behind them.
    pub mod metrics: usize, first 0, prefix "", len "COUNTED" {
        /// What training lowers.
        OBJECTIVE,
        /// A method's own.
        OWN,
        /// The same.
        OWN_TOO,
        /// The predictor's loss.
        LOST,
        /// Instances.
        INSTANCES,
    }
}

/// The numbers of the uses of randomness, for shaders.
pub static STREAMS: Words = Words {
    numbers: &[
        ("STREAM_GUMBEL", stream::GUMBEL),
        ("STREAM_MASK", stream::MASK),
        ("STREAM_SHUFFLE", stream::SHUFFLE),
        ("STREAM_INPUT_NOISE", stream::INPUT_NOISE),
        ("STREAM_CONDITION", stream::CONDITION),
        ("STREAM_AVAILABLE", stream::AVAILABLE),
    ],
};

/// In `acquired_at`: the feature was not acquired.
pub const NEVER: u32 = u32::MAX;
/// In `acquired_at`: the feature cannot be had. Later than any step, as that of one that was never acquired.
pub const UNAVAILABLE: u32 = u32::MAX - 1;
/// In `y`: there is no instance in this row.
pub const NO_LABEL: u32 = u32::MAX;

/// All of them for shaders.
pub static MARKS: Words =
    Words { numbers: &[("NEVER", NEVER), ("UNAVAILABLE", UNAVAILABLE), ("NO_LABEL", NO_LABEL)] };

/// Words of the metrics of a lane. Which they are, a method's objective and the evaluation's tally say.
pub const METRICS: usize = 8;

/// The same for shaders.
pub static METRICS_LEN: Words = Words { numbers: &[("METRICS", METRICS as u32)] };
