//! Images and labels in the IDX format of MNIST, plain or gzipped.

use crate::data::Dataset;
use crate::data::encoding::{Code, Encoding, Field, Metric};
use crate::data::table::{Prepared, open_bytes, stratified};
use crate::error::{Error, Result};
use crate::problem::{Feature, Problem};
use std::io::Read;
use std::path::Path;

/// An array of bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Idx {
    /// Its sizes, the slowest first.
    pub shape: Vec<usize>,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Bytes of an array at most: what a header promises is not always there.
const MOST: usize = 1 << 31;

/// Reads an IDX file of bytes.
///
/// # Errors
/// The file cannot be read, is not IDX, holds something else than bytes, or has more or less of them than
/// its header says.
pub fn read_idx(path: &Path) -> Result<Idx> {
    let mut file = open_bytes(path)?;
    let failed = |error: std::io::Error| Error::io(path, error);
    let cut = |what: &str| Error::table(path, what);
    let mut word = [0; 4];
    file.read_exact(&mut word).map_err(|_| cut("not an IDX file: too short for its header"))?;
    let [0, 0, 0x08, dimensions @ 1..=4] = word else {
        return Err(cut("not an IDX file of bytes: it begins with something else than 00 00 08"));
    };
    let mut shape = Vec::new();
    for _ in 0..dimensions {
        file.read_exact(&mut word).map_err(|_| cut("not an IDX file: too short for its header"))?;
        shape.push(u32::from_be_bytes(word) as usize);
    }
    let len = shape.iter().try_fold(1usize, |len, &size| len.checked_mul(size)).filter(|&len| len <= MOST);
    let Some(len) = len else {
        return Err(cut(&format!("its header promises an array of {shape:?}, which is too large")));
    };
    let mut bytes = Vec::new();
    file.take(len as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() != len {
        let how = if bytes.len() < len { format!("only {}", bytes.len()) } else { "more".into() };
        return Err(cut(&format!("its header promises {len} bytes ({shape:?}), but there are {how}")));
    }
    Ok(Idx { shape, bytes })
}

/// Images with their labels.
fn read_pair(folder: &Path, name: &str) -> Result<(Idx, Vec<u32>)> {
    let images_path = folder.join(format!("{name}-images-idx3-ubyte.gz"));
    let images = read_idx(&images_path)?;
    let labels_path = folder.join(format!("{name}-labels-idx1-ubyte.gz"));
    let labels = read_idx(&labels_path)?;
    if images.shape.len() != 3 || labels.shape != images.shape[..1] {
        return Err(Error::table(
            labels_path,
            format!("labels of shape {:?} for images of shape {:?}", labels.shape, images.shape),
        ));
    }
    Ok((images, labels.bytes.into_iter().map(u32::from).collect()))
}

/// Reads MNIST or one of its kin: the validation rows are cut from the training rows, class by class.
pub(super) fn load(folder: &Path, sizes: [usize; 3], metric: Metric) -> Result<Prepared> {
    let (train, labels) = read_pair(folder, "train")?;
    let (test, test_labels) = read_pair(folder, "t10k")?;
    let classes = labels.iter().chain(&test_labels).max().map_or(0, |&most| most as usize + 1);
    let pixels = train.shape[1] * train.shape[2];
    if test.shape[1..] != train.shape[1..] || sizes[0] + sizes[1] != labels.len() || pixels == 0 {
        return Err(Error::table(
            folder,
            format!("images of shapes {:?} and {:?} are not what was expected", train.shape, test.shape),
        ));
    }
    let splits = stratified(&labels, classes, [sizes[0], sizes[1], 0], 0);
    let pick = |which: u8| {
        let rows: Vec<u32> = (0..labels.len() as u32).filter(|&row| splits[row as usize] == which).collect();
        let mut bytes = Vec::with_capacity(rows.len() * pixels);
        for &row in &rows {
            bytes.extend_from_slice(&train.bytes[row as usize * pixels..][..pixels]);
        }
        let labels = rows.iter().map(|&row| labels[row as usize]).collect::<Vec<u32>>();
        (bytes, labels, rows)
    };
    let (train_bytes, train_labels, train_rows) = pick(0);
    let (validation_bytes, validation_labels, validation_rows) = pick(1);
    let width = train.shape[2];
    let names: Vec<String> =
        (0..pixels).map(|pixel| format!("pixel {},{}", pixel / width, pixel % width)).collect();
    let problem = Problem::new(
        names.iter().map(|name| Feature { name: name.clone(), cost: 1.0 }).collect(),
        (0..pixels as u32).collect(),
        (0..classes).map(|class| class.to_string()).collect(),
    )?;
    let field = |name: &String| Field {
        name: name.clone(),
        unit: String::new(),
        code: Code::Number {
            low: 0.0,
            high: 255.0,
            fill: 0.0,
            seen: [0.0, 255.0],
            missing_above: None,
            decimal: None,
            knots: Vec::new(),
        },
        flag: false,
    };
    let encoding = Encoding {
        target: "label".into(),
        missing: Vec::new(),
        features: names.iter().map(|name| vec![field(name)]).collect(),
        known: Vec::new(),
        metric,
        ranges: None,
    };
    let test_rows = (0..test_labels.len() as u32).collect();
    let data = Dataset::of_bytes(
        problem,
        [(train_bytes, train_labels), (validation_bytes, validation_labels), (test.bytes, test_labels)],
    )?;
    Ok(Prepared { data, encoding, rows: [train_rows, validation_rows, test_rows], metric })
}
