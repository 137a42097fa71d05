//! A model's file that was dropped: what it is, and what its curve says.

use crate::{report, said};
use querent::Model;
use querent::data::encoding::short;
use querent::methods::{Tradeoff, reader};
use querent::policy::tradeoff::rounded;
use serde_json::Value;
use wasm_bindgen::prelude::*;

/// Whether a file is a model, by its first bytes: it begins with the length of its header, which is below 4 GB, and the
/// header with a brace. No table has four zeros there, not even in UTF-16.
#[wasm_bindgen]
pub fn is_model(first: &[u8]) -> bool {
    first.get(4..8) == Some(&[0; 4]) && first.get(8) == Some(&b'{')
}

/// A model that was read, and has not replaced anything yet.
#[wasm_bindgen]
pub struct Opened {
    model: Model,
}

#[wasm_bindgen]
impl Opened {
    /// Reads the bytes of a model's file.
    ///
    /// # Errors
    /// What the command says of such a file: they are not a model, or are one of another version.
    pub fn read(name: &str, bytes: &[u8]) -> Result<Self, JsError> {
        Ok(Self { model: Model::from_bytes_of(name, bytes).map_err(said)? })
    }
}

impl Opened {
    pub fn into_model(self) -> Model {
        self.model
    }
}

/// A model for the page: in words, and its curve on the validation rows, if it has one.
pub fn told(model: &Model) -> Value {
    let mut told = report::curve(model);
    told["about"] = about(model).into();
    told
}

fn about(model: &Model) -> String {
    let problem = model.problem();
    let (features, classes) = (problem.features(), problem.classes().len());
    let all: f64 = features.iter().map(|feature| feature.cost).sum();
    let tradeoff = match (model.alphas(), reader(model.method()).map(|method| method.tradeoff)) {
        (Some(range), _) => {
            format!("; for every α from {} to {}", rounded(range.from()), rounded(range.to()))
        }
        // Training did not know what a unit of cost is worth.
        (None, Ok(Tradeoff::Threshold)) => String::new(),
        (None, _) => format!("; for α {} alone", rounded(model.alpha())),
    };
    let rows = match model.policy().rows() {
        0 => String::new(),
        rows => format!(
            " It holds {rows} rows of the training table, which it compares a case with: whoever has it has them."
        ),
    };
    format!(
        "A model of {}, trained by querent {}: {} can be asked for, {} for all; {classes} classes{tradeoff}.{rows}",
        model.method(),
        model.version(),
        if features.len() == 1 { "1 feature".into() } else { format!("{} features", features.len()) },
        short(all),
    )
}
