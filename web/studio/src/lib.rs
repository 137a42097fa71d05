//! The code behind the studio page, in a worker of it: from a table's bytes to a problem, a training run in slices, and the
//! files that are left of it. Everything that decides anything is the library's; here texts in JSON go in and out.

mod model;
mod report;
mod run;
mod table;

use js_sys::Promise;
pub use model::Opened;
use querent::asking::html;
use querent::data::catalog;
use querent::data::table::Prepared;
use querent::{Error, Model};
use report::Origin;
use run::Run;
use serde_json::{Value, json};
use std::path::Path;
use table::{Edit, Table};
use wasm_bindgen::prelude::*;

/// What the worker holds.
#[wasm_bindgen]
#[derive(Default)]
pub struct Studio {
    /// The table's file, or the data set's name.
    name: String,
    table: Option<Table>,
    prepared: Option<Prepared>,
    run: Option<Run>,
    model: Option<Model>,
    /// Of a model that was trained here.
    origin: Option<Origin>,
}

/// An error in the words of the command, which says them without the kind of error in front.
fn said(error: Error) -> JsError {
    JsError::new(&error.message())
}

fn missing(what: &str) -> JsError {
    JsError::new(&format!("there is no {what} yet"))
}

#[wasm_bindgen]
impl Studio {
    /// Nothing yet. What a panic says is thrown, so that the page can show it; else it would only be `unreachable`.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        std::panic::set_hook(Box::new(|panic| wasm_bindgen::throw_str(&panic.to_string())));
        Self::default()
    }

    /// Takes a table's file; gives the names of its columns.
    ///
    /// # Errors
    /// It is no table.
    pub fn read(&mut self, name: &str, bytes: Vec<u8>) -> Result<String, JsError> {
        *self = Self::default();
        let table = Table::new(name, bytes);
        let header = table.header().map_err(said)?;
        (self.name, self.table) = (name.into(), Some(table));
        Ok(json!(header).to_string())
    }

    /// Looks at the table as `querent init` does: what each column seems to be. Prices are those of a price list's file.
    ///
    /// # Errors
    /// The table or the list cannot be read, or the target cannot be one.
    pub fn look(&mut self, target: &str, prices: Option<Vec<u8>>) -> Result<String, JsError> {
        let table = self.table.as_mut().ok_or_else(|| missing("table"))?;
        table.look(target, prices).map(|told| told.to_string()).map_err(said)
    }

    /// Makes a problem of the table as it was looked at, with what was changed; gives its size.
    ///
    /// # Errors
    /// What is wrong with the problem, or with a cell.
    pub fn prepare(&mut self, edits: &str) -> Result<String, JsError> {
        let table = self.table.as_mut().ok_or_else(|| missing("table"))?;
        let edits: Vec<Edit> =
            serde_json::from_str(edits).map_err(|error| JsError::new(&error.to_string()))?;
        self.prepared = Some(table.prepare(&edits).map_err(said)?);
        self.size()
    }

    /// A synthetic data set of the catalog, such as syn1, instead of a table.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn synthetic(&mut self, name: &str) -> Result<String, JsError> {
        *self = Self::default();
        self.prepared =
            Some(catalog::find(name).and_then(|entry| entry.load(Path::new(""), 0)).map_err(said)?);
        self.name = name.into();
        self.size()
    }

    fn size(&self) -> Result<String, JsError> {
        let prepared = self.prepared.as_ref().ok_or_else(|| missing("problem"))?;
        let (problem, [train, validation, test]) = (prepared.data.problem(), prepared.data.sizes());
        let features: Vec<Value> =
            problem.features().iter().map(|f| json!({ "name": f.name, "cost": f.cost })).collect();
        let told = json!({
            "train": train, "validation": validation, "test": test,
            "features": features, "columns": problem.columns(), "classes": problem.classes(),
        });
        Ok(told.to_string())
    }

    /// The problem as the text of a `problem.toml`; empty for what is no table.
    pub fn problem(&self) -> String {
        self.table.as_ref().map(Table::problem).unwrap_or_default()
    }

    /// Begins a run, or goes on with one from a checkpoint's bytes. `engine` is `auto`, `gpu` or `cpu`; `settings` are
    /// lines such as `stage_epochs=3`. Tells what computes, and why.
    pub fn start(&mut self, engine: String, settings: String, checkpoint: Option<Vec<u8>>) -> Promise {
        let Some(prepared) = self.prepared.clone() else {
            return Promise::reject(&missing("problem").into());
        };
        (self.run, self.model, self.origin) = (None, None, None);
        wasm_bindgen_futures::future_to_promise(async move {
            let begun = Run::start(prepared, &engine, &settings, checkpoint).await;
            begun.map(|run| Started { run: Some(run) }.into()).map_err(|error| said(error).into())
        })
    }

    /// Takes a run that has begun; tells how far it is.
    ///
    /// # Errors
    /// It was taken before.
    pub fn take(&mut self, started: Started) -> Result<String, JsError> {
        let run = started.run.ok_or_else(|| missing("run"))?;
        let told = run.begun().to_string();
        self.run = Some(run);
        Ok(told)
    }

    /// Goes on for about so many milliseconds; tells how far the run is.
    ///
    /// # Errors
    /// The training failed.
    pub fn step(&mut self, millis: f64) -> Result<String, JsError> {
        let run = self.run.as_mut().ok_or_else(|| missing("run"))?;
        run.step(millis).map(|told| told.to_string()).map_err(said)
    }

    /// Is there when the device has done what it was given; at once without a device.
    pub fn done(&self) -> Promise {
        let waiting = self.run.as_ref().map(Run::submitted);
        wasm_bindgen_futures::future_to_promise(async move {
            if let Some(waiting) = waiting {
                waiting.await;
            }
            Ok(JsValue::UNDEFINED)
        })
    }

    /// What was asked on the validation rows of the last epoch: counts by step, then feature, the last for having stopped.
    pub fn paths(&self) -> Promise {
        match &self.run {
            Some(run) => run.paths(),
            None => Promise::resolve(&JsValue::UNDEFINED),
        }
    }

    /// The bytes of the newest checkpoint, if there is one.
    ///
    /// # Errors
    /// None that is known.
    pub fn checkpoint(&self) -> Result<Option<Vec<u8>>, JsError> {
        let newest = self.run.as_ref().and_then(Run::checkpoint);
        newest.map(|checkpoint| checkpoint.to_bytes().map_err(said)).transpose()
    }

    /// Ends the run: makes the model, measures its curve, and tests it.
    ///
    /// # Errors
    /// There is no model yet, or it cannot be measured.
    pub fn finish(&mut self) -> Result<String, JsError> {
        let run = self.run.as_mut().ok_or_else(|| missing("run"))?;
        let model = run.finish().map_err(said)?;
        let mut told = report::report(&model, run.data()).map_err(said)?;
        // What the storage keeps, for `reopen`.
        (told["engine"], told["epochs"]) = (run.name().into(), run.epochs_at_most().into());
        self.origin = Some(run.origin(&self.name));
        self.model = Some(model);
        Ok(told.to_string())
    }

    /// The bytes of the model's file: the one that the command reads.
    ///
    /// # Errors
    /// There is no model yet.
    pub fn model(&self) -> Result<Vec<u8>, JsError> {
        self.model.as_ref().ok_or_else(|| missing("model"))?.to_bytes().map_err(said)
    }

    /// Takes the bytes of the model of a run that was kept, beside the rows that it was trained on, and what `finish` has
    /// told: what computed it, and its epochs at most. Runs of older versions have not kept that.
    ///
    /// # Errors
    /// They are not a model, or one of another version.
    pub fn reopen(&mut self, bytes: &[u8], engine: Option<String>, epochs: usize) -> Result<(), JsError> {
        self.model = Some(Model::from_bytes(bytes).map_err(said)?);
        self.origin = engine.zip(self.prepared.clone()).map(|(engine, prepared)| Origin {
            name: self.name.clone(),
            engine,
            epochs,
            prepared,
        });
        Ok(())
    }

    /// Takes a model that was dropped, instead of a table; tells what it is.
    pub fn hold(&mut self, opened: Opened) -> String {
        *self = Self::default();
        let model = opened.into_model();
        let told = model::told(&model).to_string();
        self.model = Some(model);
        told
    }

    /// The report of a model that was trained here: the page that `querent report` draws.
    ///
    /// # Errors
    /// There is no such model, or it cannot be tested.
    pub fn report(&self) -> Result<String, JsError> {
        let model = self.model.as_ref().ok_or_else(|| missing("model"))?;
        let origin = self.origin.as_ref().ok_or_else(|| missing("run of the model"))?;
        origin.page(model).map_err(said)
    }

    /// The page that asks: the file that `querent page` makes.
    ///
    /// # Errors
    /// There is no model yet.
    pub fn page(&self) -> Result<String, JsError> {
        let model = self.model.as_ref().ok_or_else(|| missing("model"))?;
        html::page(model, f64::INFINITY).map_err(said)
    }
}

/// A run on its way to the studio: what a promise can hold.
#[wasm_bindgen]
pub struct Started {
    run: Option<Run>,
}
