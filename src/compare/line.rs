//! A curve of score over cost as a function: what is reached at a cost, and on average up to one.

/// A place of a curve: what was reached there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// The mean cost.
    pub cost: f64,
    /// The score.
    pub score: f64,
    /// How uncertain the score is: a standard error over rows, or a deviation between seeds.
    pub error: f64,
}

/// A curve of one training: straight between its points. Beyond the last one it is held, as nobody has to spend more; before
/// the first one it rises from what asking nothing gives, as if each row were asked by chance, or is held where that is
/// not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Line {
    places: Vec<Place>,
    /// Whether the first of them is what asking nothing gives, and no point of the curve.
    begun: bool,
}

impl Line {
    /// Through points in any order, and from what asking nothing gives. Points of the same cost are one, their mean. Those
    /// that are no numbers are left out.
    pub fn new(mut points: Vec<Place>, nothing: Option<f64>) -> Self {
        points.retain(|p| p.cost.is_finite() && p.score.is_finite());
        points.sort_by(|a, b| a.cost.total_cmp(&b.cost));
        let mut places: Vec<Place> = Vec::new();
        for same in points.chunk_by(|a, b| b.cost - a.cost < 1e-9) {
            let mean = |of: fn(&Place) -> f64| same.iter().map(of).sum::<f64>() / same.len() as f64;
            places.push(Place { cost: same[0].cost, score: mean(|p| p.score), error: mean(|p| p.error) });
        }
        let first = places.first().copied().filter(|first| first.cost > 0.0);
        let start = first.zip(nothing).map(|(first, score)| Place { cost: 0.0, score, error: first.error });
        if let Some(start) = start {
            places.insert(0, start);
        }
        Self { places, begun: start.is_some() }
    }

    /// Its points, from the cheapest on.
    pub fn places(&self) -> &[Place] {
        &self.places[usize::from(self.begun)..]
    }

    /// The largest cost.
    pub fn end(&self) -> f64 {
        self.places.last().map_or(0.0, |place| place.cost)
    }

    /// What is reached at a cost; `None` of a line without points.
    pub fn at(&self, cost: f64) -> Option<Place> {
        let after = self.places.partition_point(|place| place.cost < cost);
        let right = self.places.get(after).or(self.places.last())?;
        let left = self.places[after.saturating_sub(1).min(self.places.len() - 1)];
        let share = if right.cost > left.cost { (cost - left.cost) / (right.cost - left.cost) } else { 0.0 };
        let between = |a: f64, b: f64| a + (b - a) * share.clamp(0.0, 1.0);
        Some(Place { cost, score: between(left.score, right.score), error: between(left.error, right.error) })
    }

    /// The mean of score and error over the costs up to one: the area under the curve, over its width. At a cost of 0, what
    /// is reached there.
    pub fn mean_to(&self, cost: f64) -> Option<Place> {
        if cost <= 0.0 {
            return self.at(0.0);
        }
        let inner = self.places.iter().map(|place| place.cost).filter(|&c| c > 0.0 && c < cost);
        let costs: Vec<f64> = [0.0].into_iter().chain(inner).chain([cost]).collect();
        let (mut score, mut error) = (0.0, 0.0);
        for pair in costs.windows(2) {
            let (a, b) = (self.at(pair[0])?, self.at(pair[1])?);
            let width = (pair[1] - pair[0]) / cost;
            score += width * a.score.midpoint(b.score);
            error += width * a.error.midpoint(b.error);
        }
        Some(Place { cost, score, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(cost: f64, score: f64) -> Place {
        Place { cost, score, error: 0.1 }
    }

    #[test]
    fn areas_by_hand() {
        let line = Line::new(vec![place(4.0, 0.8), place(2.0, 0.6), place(f64::NAN, 0.1)], Some(0.5));
        for (cost, score) in [(0.0, 0.5), (1.0, 0.55), (2.0, 0.6), (3.0, 0.7), (4.0, 0.8), (9.0, 0.8)] {
            let at = line.at(cost).expect("has points");
            assert!((at.score - score).abs() < 1e-12, "{cost}: {at:?}");
        }
        assert_eq!(line.end(), 4.0);
        // Trapezoids: 2 · 0.55 + 2 · 0.7 = 2.5, and 2 · 0.8 beyond the end.
        assert!((line.mean_to(4.0).expect("points").score - 0.625).abs() < 1e-12);
        assert!((line.mean_to(6.0).expect("points").score - 4.1 / 6.0).abs() < 1e-12);
        assert!((line.mean_to(1.0).expect("points").score - 0.525).abs() < 1e-12);
        assert!((line.mean_to(6.0).expect("points").error - 0.1).abs() < 1e-12);
        assert_eq!(line.mean_to(0.0).expect("points").score, 0.5);
    }

    #[test]
    fn few_points_are_held() {
        let one = Line::new(vec![place(2.0, 0.6), place(2.0, 0.8)], None);
        assert_eq!(one.places().len(), 1);
        for cost in [0.0, 2.0, 3.0] {
            assert!((one.at(cost).expect("a point").score - 0.7).abs() < 1e-12);
        }
        let none = Line::new(Vec::new(), Some(0.5));
        assert!(none.at(1.0).is_none() && none.mean_to(1.0).is_none() && none.end() == 0.0);
    }
}
