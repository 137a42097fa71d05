//! What passes between a session and whoever answers it.

/// What a session wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The value of this feature.
    Acquire(usize),
    /// Nothing: no further feature is worth its cost, or none can be had.
    Stop,
}

/// A feature that a session asks for, with what a person needs to answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Question<'a> {
    /// Its index.
    pub feature: usize,
    /// Its name.
    pub name: &'a str,
    /// What it costs.
    pub cost: f64,
    /// How many values it has.
    pub values: usize,
    /// What is believed before the answer: the probability of each class.
    pub probabilities: &'a [f32],
}

/// How a session came to know about a feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was known at no cost.
    Known,
    /// It was observed, as the session had asked.
    Asked,
    /// It was observed although the session had not asked for it.
    Offered,
    /// It cannot be had.
    Unavailable,
}

/// Something that happened in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event<'a> {
    /// The feature it is about.
    pub feature: usize,
    /// How the session came to know.
    pub answer: Answer,
    /// What it cost.
    pub cost: f64,
    /// The feature's values in the user's units; none if it is unavailable.
    pub values: &'a [f32],
    /// What was believed after it: the probability of each class.
    pub probabilities: &'a [f32],
}

/// The values of a feature's columns: an `f32` where there is one column, a slice, an array or a vector
/// of as many values as columns elsewhere.
pub trait Values {
    /// The values, in the order of the columns.
    fn values(&self) -> &[f32];
}

impl Values for f32 {
    fn values(&self) -> &[f32] {
        std::slice::from_ref(self)
    }
}

impl Values for [f32] {
    fn values(&self) -> &[f32] {
        self
    }
}

impl<const N: usize> Values for [f32; N] {
    fn values(&self) -> &[f32] {
        self
    }
}

impl Values for Vec<f32> {
    fn values(&self) -> &[f32] {
        self
    }
}

impl<V: Values + ?Sized> Values for &V {
    fn values(&self) -> &[f32] {
        (**self).values()
    }
}
