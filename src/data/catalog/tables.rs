//! The catalog's tables: their schemas, and what has to be done to their rows. What each choice follows is
//! said in the data sets' own notes: groups, costs, classes and split sizes are the publications'.

use crate::data::encoding::Metric;
use crate::data::table::TableReader;
use crate::data::table::schema::{
    Column, Kind, Missing, NamedWeights, Preprocessing, Schema, Split, Table, Target, Weights, missing_words,
};
use crate::error::{Error, Result};
use serde::Deserialize;
use std::path::Path;

type Opened = Result<(Schema, TableReader)>;

/// A schema without features.
fn schema(target: &str, classes: &[&str], metric: Metric, sizes: [usize; 3]) -> Schema {
    let weights = match metric {
        Metric::MacroF1 => NamedWeights::Balanced,
        Metric::Accuracy => NamedWeights::None,
    };
    Schema {
        table: Table { path: "table.csv".into(), missing: missing_words() },
        target: Target {
            column: target.into(),
            classes: classes.iter().map(|class| class.to_string()).collect(),
            weights: Weights::Named(weights),
            metric,
            drop: Vec::new(),
            bins: None,
            edges: None,
            decimal: None,
        },
        split: Split {
            train: sizes[0] as f64,
            validation: sizes[1] as f64,
            test: sizes[2] as f64,
            seed: 0,
            column: None,
        },
        // As published: each number is one column.
        preprocessing: Preprocessing { pieces: Some(0), ..Preprocessing::default() },
        features: Vec::new(),
    }
}

fn categorical(name: &str, values: &[&str]) -> Column {
    let values = values.iter().map(|value| value.to_string()).collect();
    Column { values: Some(values), ..Column::new(name, Kind::Categorical) }
}

pub(super) fn connect4(folder: &Path) -> Opened {
    let rows = TableReader::open(folder.join("connect-4.tsv.gz"))?;
    let mut schema = schema("target", &["draw", "loss", "win"], Metric::MacroF1, [47_290, 10_133, 10_134]);
    let header = rows.header().to_vec();
    schema.features = header[..42].iter().map(|name| categorical(name, &["blank", "o", "x"])).collect();
    let rows = rows.mapped(header, |from, to| {
        for (index, cell) in from.iter().enumerate() {
            let words = if index < 42 { ["blank", "o", "x"] } else { ["draw", "loss", "win"] };
            let code = cell.parse::<usize>().ok().and_then(|code| words.get(code));
            to.push_field(code.ok_or_else(|| Error::Data(format!("`{cell}` is not 0, 1 or 2")))?);
        }
        Ok(true)
    });
    Ok((schema, rows))
}

pub(super) fn splice(folder: &Path) -> Opened {
    const LETTERS: [&str; 8] = ["A", "C", "D", "G", "N", "R", "S", "T"];
    const POSITIONS: usize = 60;
    let path = folder.join("splice.data.gz");
    let rows = TableReader::open_headless(&path, &["class", "instance", "sequence"])?;
    let mut schema = schema("class", &["EI", "IE", "N"], Metric::Accuracy, [2_233, 478, 479]);
    // 30 bases before the junction, 30 after it.
    let names: Vec<String> = (0..POSITIONS as i32)
        .map(|i| if i < 30 { format!("base {}", i - 30) } else { format!("base +{}", i - 29) })
        .collect();
    schema.features = names.iter().map(|name| categorical(name, &LETTERS)).collect();
    let header = names.into_iter().chain(["class".to_string()]).collect();
    let rows = rows.mapped(header, |from, to| {
        let sequence = from[2].trim();
        if sequence.len() != POSITIONS || !sequence.is_ascii() {
            return Err(Error::Data(format!(
                "a sequence of {} letters instead of {POSITIONS}",
                sequence.len()
            )));
        }
        (0..POSITIONS).for_each(|i| to.push_field(&sequence[i..=i]));
        to.push_field(from[0].trim());
        Ok(true)
    });
    Ok((schema, rows))
}

pub(super) fn enginefaultdb(folder: &Path) -> Opened {
    let rows = TableReader::open(folder.join("EngineFaultDB_Final.csv"))?;
    Ok((engine_schema(&rows)?, rows))
}

/// The schema of EngineFaultDB for a table with its header.
pub(super) fn engine_schema(rows: &TableReader) -> Result<Schema> {
    const SENSORS: [(&str, &str); 14] = [
        ("MAP", ""),
        ("TPS", ""),
        ("Force", "N"),
        ("Power", "kW"),
        ("RPM", "1/min"),
        ("Consumption L/H", "l/h"),
        ("Consumption L/100KM", "l/100 km"),
        ("Speed", "km/h"),
        ("CO", "%"),
        ("HC", "ppm"),
        ("CO2", "%"),
        ("O2", "%"),
        ("Lambda", ""),
        ("AFR", ""),
    ];
    // no fault, rich mixture, lean mixture, low voltage
    let mut schema = schema("Fault", &["0", "1", "2", "3"], Metric::Accuracy, [39_200, 8_400, 8_399]);
    for (name, unit) in SENSORS {
        rows.column(name)?;
        schema.features.push(Column { unit: unit.into(), ..Column::new(name, Kind::Numeric) });
    }
    Ok(schema)
}

pub(super) fn metabric(folder: &Path) -> Opened {
    const CLINICAL: usize = 31;
    const TARGET: &str = "pam50_+_claudin-low_subtype";
    let path = folder.join("METABRIC_RNA_Mutation.csv.gz");
    let rows = TableReader::open(&path)?;
    let target = rows.column(TARGET)?;
    let classes = ["LumA", "LumB", "Her2", "Basal", "claudin-low", "Normal"];
    let mut schema = schema("subtype", &classes, Metric::MacroF1, [1_329, 285, 284]);
    schema.target.drop = vec!["NC".into()];
    let genes = rows.header()[CLINICAL..].to_vec();
    let mutations: Vec<bool> = genes.iter().map(|name| name.ends_with("_mut")).collect();
    schema.features = genes
        .iter()
        .map(|name| {
            if name.ends_with("_mut") {
                // The text names the mutation; what counts is that there is one.
                let values = vec!["no".into(), "yes".into()];
                Column { values: Some(values), ..Column::new(name, Kind::Binary) }
            } else {
                Column::new(name, Kind::Numeric)
            }
        })
        .collect();
    let header = genes.into_iter().chain(["subtype".to_string()]).collect();
    let rows = rows.mapped(header, move |from, to| {
        for (cell, is_mutation) in from.iter().skip(CLINICAL).zip(&mutations) {
            to.push_field(match is_mutation {
                true if cell == "0" => "no",
                true => "yes",
                false => cell,
            });
        }
        to.push_field(&from[target]);
        Ok(true)
    });
    Ok((schema, rows))
}

/// A description of groups as the data sets' folders have it.
#[derive(Deserialize)]
struct Groups<G> {
    groups: Vec<G>,
}

fn groups<G: for<'de> Deserialize<'de>>(path: &Path) -> Result<Vec<G>> {
    let text = std::fs::read_to_string(path).map_err(|error| Error::io(path, error))?;
    let all: Groups<G> =
        serde_json::from_str(&text).map_err(|error| Error::table(path, error.to_string()).because(error))?;
    Ok(all.groups)
}

pub(super) fn mortality(folder: &Path) -> Opened {
    #[derive(Deserialize)]
    struct Group {
        name: String,
        cost_with_floor: f64,
        columns: Vec<String>,
    }
    const TARGET: &str = "died_within_15y";
    let rows = TableReader::open(folder.join("nhanes1_mortality.csv.gz"))?;
    let mut schema = schema(TARGET, &["0", "1"], Metric::MacroF1, [9_409, 2_016, 2_017]);
    for group in groups::<Group>(&folder.join("groups_26.json"))? {
        for name in group.columns {
            let (kind, values) = if name.contains("_is") {
                (Kind::Binary, Some(vec!["0".into(), "1".into()]))
            } else {
                (Kind::Numeric, None)
            };
            schema.features.push(Column {
                group: Some(group.name.clone()),
                cost: Some(group.cost_with_floor),
                values,
                ..Column::new(name, kind)
            });
        }
    }
    Ok((schema, rows))
}

/// What the diabetes table's variables are called, whether they are codes (`Codes`) or numbers (`Real`, with
/// the largest one that is no code for "refused" or "don't know"), and what they cost: 2 for demographics, 4
/// for income and questions, 5 for examinations, 9 for the laboratory.
enum Variable {
    Real(Option<f64>),
    Codes(&'static [&'static str]),
}
use Variable::{Codes, Real};

const DIABETES: [(&str, &str, Variable, f64); 33] = [
    ("RIAGENDR", "Gender", Real(None), 2.0),
    ("RIDAGEYR", "Age at screening", Real(None), 2.0),
    ("RIDRETH3", "Race/ethnicity incl. NH Asian (2011+)", Codes(&["1", "2", "3", "4", "6", "7"]), 2.0),
    ("RIDRETH1", "Race/ethnicity", Codes(&["1", "2", "3", "4", "5"]), 2.0),
    ("INDHHINC", "Annual household income (1999-2006)", Real(Some(11.0)), 4.0),
    ("DMDEDUC2", "Education level 20+", Real(Some(5.0)), 2.0),
    ("BPXSY1", "Systolic BP reading 1", Real(None), 5.0),
    ("BPXDI1", "Diastolic BP reading 1", Real(None), 5.0),
    ("BPXSY2", "Systolic BP reading 2", Real(None), 5.0),
    ("BPXDI2", "Diastolic BP reading 2", Real(None), 5.0),
    ("BPXSY3", "Systolic BP reading 3", Real(None), 5.0),
    ("BPXDI3", "Diastolic BP reading 3", Real(None), 5.0),
    ("BPXSY4", "Systolic BP reading 4", Real(None), 5.0),
    ("BPXDI4", "Diastolic BP reading 4", Real(None), 5.0),
    ("BMXBMI", "BMI", Real(None), 5.0),
    ("BMXWAIST", "Waist circumference", Real(None), 5.0),
    ("BMXHT", "Standing height", Real(None), 5.0),
    ("BMXLEG", "Upper leg length", Real(None), 5.0),
    ("BMXWT", "Weight", Real(None), 5.0),
    ("LBXTC", "Total cholesterol", Real(None), 9.0),
    ("LBXTR", "Triglyceride", Real(None), 9.0),
    ("LBXFB", "Fibrinogen (1999-2002)", Real(None), 9.0),
    ("LBDLDL", "LDL cholesterol", Real(None), 9.0),
    ("ALQ101", "12 or more alcohol drinks a year", Real(Some(2.0)), 4.0),
    ("ALQ120Q", "How often drink alcohol past 12 mo", Real(Some(365.0)), 4.0),
    ("PAQ605", "Vigorous work activity (2007+)", Real(Some(2.0)), 4.0),
    ("PAQ620", "Moderate work activity (2007+)", Real(Some(2.0)), 4.0),
    ("PAQ180", "Avg physical activity level (1999-2006)", Real(Some(4.0)), 4.0),
    ("SLD010H", "Hours of sleep (2005-2014)", Real(Some(12.0)), 4.0),
    ("SMQ020", "Smoked 100 or more cigarettes", Codes(&["1", "2", "7", "9"]), 4.0),
    ("SMD030", "Age started smoking", Real(Some(72.0)), 4.0),
    ("MCQ250A", "Blood relatives have diabetes (1999-2004)", Real(Some(2.0)), 4.0),
    ("BPQ020", "Ever told high blood pressure", Real(Some(2.0)), 4.0),
];

pub(super) fn diabetes(folder: &Path) -> Opened {
    const GLUCOSE: &str = "LBXGLU";
    const CLASSES: [&str; 3] = ["normal", "prediabetes", "diabetes"];
    let rows = TableReader::open(folder.join("nhanes_1999_2016_diabetes_raw.csv.gz"))?;
    let mut schema = schema("glucose", &CLASSES, Metric::MacroF1, [64_443, 13_809, 13_810]);
    // As published. A flag would give the label away: whose glucose was not measured has no triglycerides either.
    schema.preprocessing.missing = Missing::Impute;
    let mut fields = Vec::new();
    for (field, name, variable, cost) in &DIABETES {
        fields.push(rows.column(field)?);
        let column = match variable {
            Codes(codes) => categorical(name, codes),
            Real(most) => Column { missing_above: *most, ..Column::new(*name, Kind::Numeric) },
        };
        schema.features.push(Column { cost: Some(*cost), ..column });
    }
    let glucose = rows.column(GLUCOSE)?;
    let names = schema.features.iter().map(|feature| feature.name.clone());
    let header = names.chain(["glucose".to_string()]).collect();
    let rows = rows.mapped(header, move |from, to| {
        fields.iter().for_each(|&at| to.push_field(&from[at]));
        // The benchmark's rule: glucose that was not measured counts as the mean, which is in the middle.
        let class = match from[glucose].trim() {
            "" => 1,
            cell => match cell.parse::<f64>() {
                Ok(value) if value <= 100.0 => 0,
                Ok(value) if value < 125.0 => 1,
                Ok(_) => 2,
                Err(_) => {
                    return Err(Error::Data(format!("column `{GLUCOSE}`: `{cell}` is not a number")));
                }
            },
        };
        to.push_field(CLASSES[class]);
        Ok(true)
    });
    Ok((schema, rows))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::table::prepare;

    /// The data file is not shipped: a small one of its shape stands in for it.
    #[test]
    fn enginefaultdb_is_read_by_its_shape() {
        let mut text = String::from(
            "Fault,MAP,TPS,Force,Power,RPM,Consumption L/H,Consumption L/100KM,Speed,CO,HC,CO2,O2,Lambda,AFR\n",
        );
        for row in 0..80 {
            let cells: Vec<String> =
                (0..14).map(|i| format!("{}", (row * (7 + i) % 31) as f64 / 3.0)).collect();
            text += &format!("{},{}\n", row % 4, cells.join(","));
        }
        let read = |text: &str| {
            let bytes = std::io::Cursor::new(text.as_bytes().to_vec());
            TableReader::read(Path::new("EngineFaultDB_Final.csv"), bytes, None).expect("reads")
        };
        let mut schema = engine_schema(&read(&text)).expect("its columns are there");
        assert_eq!((schema.features.len(), schema.target.classes.len()), (14, 4));
        (schema.split.train, schema.split.validation, schema.split.test) = (0.7, 0.15, 0.15);
        let prepared = prepare(read(&text), &schema).expect("prepares");
        assert_eq!(prepared.data.sizes(), [56, 12, 12]);
        assert_eq!(prepared.data.problem().columns(), 14);
        let other = text.replacen("Lambda", "lambda", 1);
        let error = engine_schema(&read(&other)).expect_err("a column is missing").to_string();
        assert!(error.contains("`Lambda`"), "{error}");
    }
}
