//! What the NM-PPG paper says its methods took, to be put beside ours.

/// Seconds of training and of evaluation on an NVIDIA A40, by the catalog's names and those of our methods.
type Row = (&'static str, [Option<(f64, f64)>; 8]);

const METHODS: [&str; 8] = ["nmppg", "difa", "dime", "gdfs", "aaco", "sefa", "gsmrl", "ol"];

const fn s(training: f64, evaluation: f64) -> Option<(f64, f64)> {
    Some((training, evaluation))
}

#[rustfmt::skip]
const TIMES: [Row; 12] = [
    ("cube_nm", [s(3328., 12.6), s(426., 9.1), s(466., 10.4), s(1288., 10.3), s(4123., 241.), s(1491., 159.), s(3876., 17.9), s(1146., 8.7)]),
    ("cube_nm_0.2", [s(3337., 15.3), s(428., 9.2), s(450., 9.3), s(515., 10.1), s(2604., 166.), s(1483., 130.), s(6751., 19.5), s(813., 9.7)]),
    ("syn1", [s(7583., 44.2), s(5587., 38.8), s(3473., 31.1), s(5499., 31.9), s(7616., 333.), s(2594., 316.), s(15616., 55.), s(5061., 78.1)]),
    ("syn3", [s(8624., 59.9), s(3262., 35.9), s(2671., 35.9), s(2864., 30.7), s(8691., 371.), s(2778., 281.), s(13766., 59.1), s(5740., 77.4)]),
    ("connect4", [s(6875., 92.3), s(2520., 67.3), s(2367., 62.1), s(3041., 78.3), s(18000., 1653.), s(5302., 460.), s(18000., 110.), s(3083., 105.)]),
    ("splice", [s(1246., 2.1), s(306., 2.1), s(271., 1.8), s(294., 2.0), s(1190., 53.6), s(762., 15.8), s(766., 3.7), s(758., 2.4)]),
    ("enginefaultdb", [s(7663., 22.6), s(1250., 17.6), s(2319., 16.6), s(2667., 18.6), s(4806., 260.), s(1979., 133.), s(7344., 38.3), s(1184., 12.4)]),
    ("metabric", [s(1214., 2.7), s(267., 2.6), s(182., 2.1), s(225., 3.0), s(1028., 63.9), s(1167., 106.), s(1437., 3.2), s(326., 2.3)]),
    ("mortality", [s(3084., 13.0), s(528., 8.1), s(443., 7.3), s(524., 7.8), s(2910., 146.), s(1274., 74.9), s(5326., 19.1), s(763., 3.3)]),
    ("diabetes", [s(10286., 38.7), s(2277., 31.2), s(1796., 28.9), s(2151., 30.4), s(7579., 398.), s(4896., 211.), s(7726., 65.3), s(6038., 35.8)]),
    ("mnist", [s(11334., 98.2), s(7803., 93.3), s(8011., 79.6), s(9776., 88.7), None, None, s(18000., 174.), s(12451., 69.1)]),
    ("fashion_mnist", [s(10499., 86.9), s(9062., 83.3), s(8091., 65.4), s(10084., 78.7), None, None, s(15387., 120.), s(12512., 73.6)]),
];

/// Seconds of training and evaluation that were published for a method on a table.
pub(super) fn times(table: &str, method: &str) -> Option<(f64, f64)> {
    let column = METHODS.iter().position(|name| *name == method)?;
    TIMES.iter().find(|(name, _)| *name == table)?.1[column]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_by_name() {
        assert_eq!(times("splice", "dime"), Some((271.0, 1.8)));
        assert_eq!(times("mnist", "aaco"), None);
        assert_eq!(times("clinic", "nmppg"), None);
        assert_eq!(times("splice", "tree"), None);
    }
}
