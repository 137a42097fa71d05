//! Colours and sizes, the same in every picture.

/// Text and marks that matter.
pub(super) const INK: &str = "#222222";
/// Axis labels and notes.
pub(super) const QUIET: &str = "#595959";
/// The edges of a plot.
pub(super) const EDGE: &str = "#b3b3b3";
/// Grid lines.
pub(super) const GRID: &str = "#e8e8e8";
/// Ground of a part that is set apart.
pub(super) const BAND: &str = "#f3f3f3";

/// What was measured on the training rows.
pub(super) const TRAIN: &str = SERIES[0];
/// What was measured on the validation rows.
pub(super) const VALIDATION: &str = SERIES[1];

/// The colours of Okabe and Ito, told apart by colour-blind readers; last the yellow, which is hard to
/// see on white, and a grey for their black.
const SERIES: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#4d4d4d", "#f0e442"];

/// Height of a title's letters in pixels.
pub(super) const TITLE: f64 = 17.0;
/// Height of a label's letters in pixels.
pub(super) const LABEL: f64 = 13.0;
/// Height of the smallest letters in pixels.
pub(super) const SMALL: f64 = 12.0;
/// White space around a picture.
pub(super) const MARGIN: f64 = 20.0;

/// The colour of the n-th series.
pub(super) fn series(index: usize) -> &'static str {
    SERIES[index % SERIES.len()]
}

/// A colour for a share between 0 and 1: white for nothing, then through blues of evenly falling
/// lightness. The smallest share differs visibly from none.
pub(super) fn shade(share: f64) -> String {
    if share <= 0.0 {
        return "#ffffff".into();
    }
    let depth = 0.05 + 0.95 * share.min(1.0);
    // A straight line of lightness in Oklab, where equal distances look equal.
    let lightness = 1.0 - 0.70 * depth;
    let chroma = 0.12 * (std::f64::consts::PI * depth).sin() + 0.05 * depth;
    let hue = (242.0 + 20.0 * depth).to_radians();
    let [red, green, blue] = from_oklab(lightness, chroma * hue.cos(), chroma * hue.sin());
    format!("#{red:02x}{green:02x}{blue:02x}")
}

/// The sRGB bytes of a colour in Oklab.
fn from_oklab(lightness: f64, a: f64, b: f64) -> [u8; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
    ]
    .map(|linear| {
        let linear = linear.clamp(0.0, 1.0);
        let encoded =
            if linear <= 0.003_130_8 { 12.92 * linear } else { 1.055 * linear.powf(1.0 / 2.4) - 0.055 };
        (encoded * 255.0).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shades_darken_evenly() {
        assert_eq!(shade(0.0), "#ffffff");
        assert_eq!(shade(f64::NAN.max(0.0)), "#ffffff");
        let luminance = |share: f64| -> f64 {
            let colour = shade(share);
            (0..3)
                .map(|i| u8::from_str_radix(&colour[1 + 2 * i..3 + 2 * i], 16).map_or(0.0, f64::from))
                .zip([0.299, 0.587, 0.114])
                .map(|(value, weight)| value * weight)
                .sum()
        };
        let steps: Vec<f64> = (0..=10).map(|i| luminance(f64::from(i) / 10.0)).collect();
        for pair in steps.windows(2) {
            assert!((10.0..45.0).contains(&(pair[0] - pair[1])), "{steps:?}");
        }
    }
}
