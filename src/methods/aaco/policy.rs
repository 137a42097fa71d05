//! What AACO has trained, without a device: a predictor, the training rows, and the search among them.

use super::config::Config;
use super::rows::Rows;
use super::search::{Found, How, Known, Oracle};
use crate::data::Normalization;
use crate::error::{Error, Result};
use crate::nn::Tensors;
use crate::policy::belief;
use crate::policy::history::Epoch;
use crate::policy::{
    Activations, AlphaRange, Case, Model, Perceptron, Policy, Stored, Tensor, Tradeoffs, Trained, storable,
};
use crate::problem::Problem;
use crate::random::threefry;
use crate::train::Settings;
use std::sync::{Arc, Mutex, PoisonError};

/// Puts a model together: the predictor's layers, in PyTorch's layout, rounded to f32; and the trade-offs it has, of which
/// one is enough.
pub(super) fn model_of(
    (problem, normalization): (Problem, Normalization),
    config: &Config,
    range: Option<AlphaRange>,
    predictor: &[Tensors],
    rows: Rows,
    history: Vec<Epoch>,
) -> Result<Model> {
    config.check(&problem)?;
    let (settings, horizon) = (storable("the configuration", config)?, config.steps(&problem));
    let alpha = config.alpha.one().unwrap_or(0.0);
    let policy = put_together(&problem, config, range, predictor, rows)?;
    Model::new(Trained {
        method: super::NAME,
        settings,
        problem,
        normalization,
        horizon,
        alpha,
        policy: Box::new(policy),
        history,
        // The search reads α itself, so there is no scale to tell it on.
        tradeoffs: range.map(|range| Tradeoffs { scale: range, trained: range }),
    })
}

/// The same model with the search of other settings: its neighbours, candidates and the like, which training does not
/// decide. Its curve is not that of the new search and is left out.
///
/// # Errors
/// The model is of another method, or a setting is out of range.
pub fn searching(model: &Model, search: &Config) -> Result<Model> {
    if model.method() != super::NAME {
        return Err(Error::Config(format!("the model is of {}, not of {}", model.method(), super::NAME)));
    }
    let config: Config = crate::methods::usual::read(super::NAME, model.settings())?;
    let config = Config {
        neighbours: search.neighbours,
        start_rows: search.start_rows,
        candidates: search.candidates,
        pick: search.pick,
        whole_neighbours: search.whole_neighbours,
        ..config
    };
    let tensors = model.tensors();
    let values = |name: &str| {
        let tensor = tensors.iter().find(|tensor| tensor.name == name);
        tensor.map_or(&[][..], |tensor| &tensor.values)
    };
    let problem = model.problem();
    let rows = Rows::read(values("rows.x"), values("rows.y"), problem.columns(), problem.classes().len())?;
    let what = (problem.clone(), model.normalization().clone());
    let predictor = model.network("predictor");
    let changed = model_of(what, &config, model.alphas(), &predictor, rows, model.history().to_vec())?;
    let changed = changed.with_tradeoff(model.alpha())?;
    match model.encoding() {
        Some(encoding) => changed.with_encoding(encoding.clone()),
        None => Ok(changed),
    }
}

/// Reads a policy from its file.
///
/// # Errors
/// Settings or tensors that do not fit the problem.
pub(super) fn load(stored: &mut Stored) -> Result<Box<dyn Policy>> {
    let config: Config = stored.config()?;
    config.check(&stored.problem)?;
    if config.alpha.one().is_none() && stored.tradeoffs.is_none() {
        return Err(Error::Config("the model is one of a range of α, but has no `tradeoffs`".into()));
    }
    let (columns, classes) = (stored.problem.columns(), stored.problem.classes().len());
    let [x, y] = ["rows.x", "rows.y"].map(|name| stored.take_any(name));
    let (x, y) = (x?, y?);
    if y.shape.len() != 1 || x.shape != [y.values.len(), columns] {
        return Err(Error::Config(format!(
            "tensor `rows.x` has shape {:?} and `rows.y` {:?}, but there must be rows of {columns} columns, and a label \
             for each",
            x.shape, y.shape
        )));
    }
    let rows = Rows::read(&x.values, &y.values, columns, classes)?;
    let predictor = stored.take_network("predictor", &widths(&stored.problem, &config))?;
    let range = stored.tradeoffs.map(|tradeoffs| tradeoffs.trained);
    Ok(Box::new(put_together(&stored.problem, &config, range, &predictor, rows)?))
}

/// Inputs, hidden units and outputs of the predictor.
fn widths(problem: &Problem, config: &Config) -> Vec<usize> {
    let inputs = problem.columns() + problem.features().len();
    [&[inputs][..], &config.hidden, &[problem.classes().len()]].concat()
}

pub(super) fn put_together(
    problem: &Problem,
    config: &Config,
    range: Option<AlphaRange>,
    predictor: &[Tensors],
    rows: Rows,
) -> Result<Search> {
    let predictor = Perceptron::new("predictor", &widths(problem, config), predictor)?;
    let how = How {
        neighbours: config.neighbours,
        start_rows: config.start_rows,
        candidates: config.candidates,
        whole_neighbours: config.whole_neighbours,
        pick: config.pick,
        seed: config.seed,
    };
    let alpha = config.alpha.one().or(range.map(|range| range.middle())).unwrap_or(0.0);
    let oracle = Oracle::new(problem, predictor, rows, how);
    Ok(Search { oracle: Arc::new(oracle), alpha, starts: Arc::default() })
}

/// A search of what is open, by α and the features that are.
type Key = (u64, Vec<usize>);

/// Searches with nothing known that are remembered at most.
const STARTS: usize = 64;

/// The search as a policy.
#[derive(Clone, Debug)]
pub(super) struct Search {
    pub oracle: Arc<Oracle>,
    pub alpha: f64,
    /// What was found with nothing known: the same for every case, and dearer than any other, as it tries more rows.
    starts: Arc<Mutex<Vec<(Key, Found)>>>,
}

impl Search {
    /// One instance's state, with nothing seen; a training row is not to be its own neighbour.
    pub fn instance(&self, alpha: f64, left_out: Option<usize>) -> Instance<'_> {
        let oracle = &*self.oracle;
        let mut instance = Instance {
            of: self,
            alpha,
            left_out,
            predictor: Activations::new(&oracle.predictor),
            distances: vec![0.0; oracle.rows.len()],
            seen: vec![false; oracle.features],
            given: false,
            mark: 0,
            belief: vec![0.0; oracle.classes],
            found: Mutex::default(),
        };
        instance.believe();
        instance
    }
}

/// A price that makes sense.
fn checked(alpha: f64) -> Result<f64> {
    if alpha.is_finite() && alpha >= 0.0 {
        return Ok(alpha);
    }
    Err(Error::Config(format!("alpha is {alpha}, but it must be a finite number, zero or more")))
}

impl Policy for Search {
    fn case(&self) -> Box<dyn Case + '_> {
        Box::new(self.instance(self.alpha, None))
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.alpha = checked(at)?;
        Ok(())
    }

    fn alpha(&self) -> Option<f64> {
        Some(self.alpha)
    }

    fn rows(&self) -> usize {
        self.oracle.rows.len()
    }

    fn tensors(&self) -> Vec<Tensor> {
        let [x, y] = self.oracle.rows.tensors();
        [vec![x, y], self.oracle.predictor.tensors()].concat()
    }

    fn boxed(&self) -> Box<dyn Policy> {
        Box::new(self.clone())
    }
}

/// One instance.
#[derive(Debug)]
pub(super) struct Instance<'p> {
    of: &'p Search,
    alpha: f64,
    left_out: Option<usize>,
    predictor: Activations<'p>,
    distances: Vec<f32>,
    seen: Vec<bool>,
    given: bool,
    mark: u32,
    belief: Vec<f32>,
    /// The last search and what was open: a session asks for the same again and again. It is never held while searching.
    found: Mutex<Option<(Vec<usize>, Found)>>,
}

impl Clone for Instance<'_> {
    fn clone(&self) -> Self {
        Self {
            predictor: self.predictor.clone(),
            distances: self.distances.clone(),
            seen: self.seen.clone(),
            belief: self.belief.clone(),
            found: Mutex::new(self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            ..*self
        }
    }
}

impl Instance<'_> {
    /// The softmax of the predictor's output.
    fn believe(&mut self) {
        let classes = self.of.oracle.classes;
        belief::believe(&self.predictor.output()[..classes], &mut self.belief);
    }

    fn known(&self) -> Known<'_> {
        Known {
            distances: &self.distances,
            left_out: self.left_out,
            seen: &self.seen,
            given: self.given,
            sum: self.predictor.sum(),
            mark: self.mark,
        }
    }

    fn open(&self, open: &dyn Fn(usize) -> bool) -> Vec<usize> {
        (0..self.seen.len()).filter(|&feature| !self.seen[feature] && open(feature)).collect()
    }

    /// The search among the features that are open, or what it found the last time.
    pub fn find(&self, open: &dyn Fn(usize) -> bool) -> Option<Found> {
        let open = self.open(open);
        let last = self.found.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, found)) = last.filter(|(of, _)| *of == open) {
            return Some(found);
        }
        let found = if self.known().is_nothing() { self.start(&open) } else { self.search(&open) }?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some((open, found));
        Some(found)
    }

    fn search(&self, open: &[usize]) -> Option<Found> {
        self.of.oracle.search(self.known(), open, self.alpha)
    }

    /// With nothing known all cases with the same open features are the same: what one has found serves the others. Nobody
    /// waits for a search: two that search at once find the same.
    fn start(&self, open: &[usize]) -> Option<Found> {
        let starts = || self.of.starts.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (self.alpha.to_bits(), open.to_vec());
        let known = starts().iter().find(|(of, _)| *of == key).map(|(_, found)| *found);
        if known.is_some() {
            return known;
        }
        let found = self.search(open)?;
        let mut starts = starts();
        // The first one stays: it is most likely that of a case with everything open.
        if starts.len() >= STARTS {
            starts.remove(1);
        }
        starts.push((key, found));
        Some(found)
    }

    /// What was found for a feature that was the best.
    fn last(&self) -> Option<Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|(_, found)| *found)
    }

    fn forget(&mut self) {
        *self.found.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl<'p> Case for Instance<'p> {
    fn reset(&mut self) {
        self.predictor.reset();
        self.distances.fill(0.0);
        self.seen.fill(false);
        (self.given, self.mark) = (false, 0);
        self.forget();
        self.believe();
    }

    fn set_tradeoff(&mut self, at: f64) -> Result<()> {
        self.alpha = checked(at)?;
        self.reset();
        Ok(())
    }

    fn observe(&mut self, feature: Option<usize>, columns: &[u32], inputs: &[f32]) -> bool {
        let oracle = &*self.of.oracle;
        self.predictor.observe(columns, inputs, feature.map(|feature| oracle.columns + feature));
        if !self.is_finite() {
            self.predictor.undo();
            return false;
        }
        for (&column, &input) in columns.iter().zip(inputs) {
            oracle.rows.add_distances(column as usize, input, &mut self.distances);
            // Other cases try other sets; in whatever order a case's values come, its sets are the same.
            self.mark ^= threefry([column, input.to_bits(), 0, 0], [0; 4])[0];
        }
        match feature {
            Some(feature) => self.seen[feature] = true,
            None => self.given = true,
        }
        self.forget();
        self.believe();
        true
    }

    fn best(&self, open: &dyn Fn(usize) -> bool) -> Option<usize> {
        self.find(open).map(|found| found.feature)
    }

    /// The best first, then what lowers the neighbours' mean loss most alone.
    fn order(&self, open: &dyn Fn(usize) -> bool) -> Vec<usize> {
        let Some(best) = self.best(open) else { return Vec::new() };
        let open = self.open(open);
        let alone = self.of.oracle.alone(self.known(), &open);
        let mut order: Vec<(f32, usize)> = alone.into_iter().zip(open).collect();
        order.sort_by(|a, b| (a.1 != best).cmp(&(b.1 != best)).then(a.0.total_cmp(&b.0)));
        order.into_iter().map(|(_, feature)| feature).collect()
    }

    /// Where going on gains nothing.
    fn stops(&self, best: usize) -> bool {
        self.stop_score(best) <= 0.0
    }

    /// By how much the best set is worth more than nothing.
    fn stop_score(&self, _: usize) -> f32 {
        self.last().map_or(0.0, |found| found.nothing - found.best)
    }

    fn gain(&self, best: usize) -> Option<f32> {
        Some(self.stop_score(best))
    }

    fn belief(&self) -> &[f32] {
        &self.belief
    }

    fn is_finite(&self) -> bool {
        self.predictor.is_finite()
    }

    fn boxed<'a>(&self) -> Box<dyn Case + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}
