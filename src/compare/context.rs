//! Test rows by the answer to one question: what a method asks next should depend on it.

use crate::data::encoding::{Code, Encoding, short};
use crate::data::{Dataset, Part};

/// Answers that are told apart, at most; the rarer ones of more words are one group.
const MOST: usize = 4;

/// Rows that have something in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Context {
    /// What, such as `season = winter` or `x11 < 0.02`.
    pub name: String,
    /// For each test row, whether it is one of them.
    pub holds: Vec<bool>,
}

/// The test rows by their answers to a feature: words by themselves, numbers of which there are many by whether they are below
/// the middle one. Of a feature with several fields, by the first. None where everybody answers alike, or rows are bytes.
pub fn contexts(data: &Dataset, encoding: Option<&Encoding>, feature: usize) -> Vec<Context> {
    let (problem, rows) = (data.problem(), &data.splits()[Part::Test as usize]);
    let columns = problem.columns();
    let Some(first) = problem.group_of_column().iter().position(|&group| group as usize == feature) else {
        return Vec::new();
    };
    let (mean, scale) = (&data.normalization().mean, &data.normalization().scale);
    // A column as it was before it was normalized, rounded to what single precision can give back.
    let values = |column: usize| -> Vec<f64> {
        let of = |row: &[f32]| f64::from(row[column] * scale[column] + mean[column]);
        rows.x.chunks_exact(columns).map(|row| (of(row) * 1e5).round() / 1e5).collect()
    };
    let field = encoding.and_then(|encoding| encoding.features.get(feature)?.first());
    let name = field.map_or(&problem.features()[feature].name, |field| &field.name);
    let is = |word: &str, holds: Vec<bool>| Context { name: format!("{name} = {word}"), holds };
    let mut groups: Vec<Context> = match field.map(|field| &field.code) {
        Some(Code::Categories { values: words }) => (words.iter().enumerate())
            .map(|(at, word)| is(word, values(first + at).iter().map(|&v| v > 0.5).collect()))
            .collect(),
        Some(Code::Levels { levels, .. }) => {
            let values = values(first);
            let at = |level: usize| values.iter().map(|&v| v == level as f64).collect();
            levels.iter().enumerate().map(|(level, word)| is(word, at(level))).collect()
        }
        _ => by_number(name, &values(first)),
    };
    groups.retain(|group| group.holds.contains(&true));
    let size = |group: &Context| group.holds.iter().filter(|&&holds| holds).count();
    if groups.len() > MOST {
        groups.sort_by_key(|group| std::cmp::Reverse(size(group)));
        groups.truncate(MOST - 1);
    }
    // What is in none: rarer words, those that no training row has, and what is missing.
    let others: Vec<bool> =
        (0..rows.y.len()).map(|row| !groups.iter().any(|group| group.holds[row])).collect();
    if !groups.is_empty() && others.contains(&true) {
        groups.push(Context { name: format!("{name}: other"), holds: others });
    }
    if groups.len() < 2 { Vec::new() } else { groups }
}

/// Rows by a number: each of a few, else below the middle one or not.
fn by_number(name: &str, values: &[f64]) -> Vec<Context> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.get(sorted.len() / 2).copied();
    sorted.dedup();
    let where_ = |name: String, holds: &dyn Fn(f64) -> bool| Context {
        name,
        holds: values.iter().map(|&value| holds(value)).collect(),
    };
    match middle {
        Some(middle) if sorted.len() > MOST => vec![
            where_(format!("{name} < {}", short(middle)), &|value| value < middle),
            where_(format!("{name} ≥ {}", short(middle)), &|value| value >= middle),
        ],
        _ => sorted
            .iter()
            .map(|&each| where_(format!("{name} = {}", short(each)), &|value| value == each))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Split;
    use crate::data::encoding::Field;
    use crate::problem::{Feature, Problem};

    fn table(group_of_column: Vec<u32>, x: Vec<f32>) -> Dataset {
        let features = group_of_column.iter().max().map_or(0, |&last| last + 1);
        let feature = |i: u32| Feature { name: format!("f{i}"), cost: 1.0 };
        let classes = vec!["a".to_string(), "b".to_string()];
        let rows = x.len() / group_of_column.len();
        let problem =
            Problem::new((0..features).map(feature).collect(), group_of_column, classes).expect("valid");
        let split = Split { x, y: (0..rows as u32).map(|row| row % 2).collect() };
        Dataset::new(problem, split.clone(), Split::default(), split).expect("valid").standardized()
    }

    fn told(data: &Dataset, encoding: Option<&Encoding>, feature: usize) -> Vec<(String, usize)> {
        let size = |group: &Context| group.holds.iter().filter(|&&holds| holds).count();
        contexts(data, encoding, feature).iter().map(|group| (group.name.clone(), size(group))).collect()
    }

    #[test]
    fn numbers_are_halved_or_told_apart() {
        let data = table(vec![0, 1, 2], (0..8u8).flat_map(|i| [i.into(), f32::from(i % 2), 7.0]).collect());
        assert_eq!(told(&data, None, 0), [("f0 < 4".into(), 4), ("f0 ≥ 4".into(), 4)]);
        assert_eq!(told(&data, None, 1), [("f1 = 0".into(), 4), ("f1 = 1".into(), 4)]);
        // Everybody answers alike.
        assert_eq!(told(&data, None, 2), []);
    }

    #[test]
    fn words_keep_their_names_and_the_rare_ones_are_others() {
        // Six words, the first three times, the others once; a row with a word that is not known; levels beside them.
        let word = |row: usize| row.saturating_sub(2);
        let x = (0..9).flat_map(|row| {
            let mut x = [0.0f32; 7];
            if row < 8 {
                x[word(row)] = 1.0;
            }
            x[6] = f32::from(u8::from(row < 3));
            x
        });
        let data = table(vec![0, 0, 0, 0, 0, 0, 1], x.collect());
        let field = |code| vec![Field { name: "word".into(), unit: String::new(), code, flag: false }];
        let values = ["a", "b", "c", "d", "e", "f"].map(String::from).to_vec();
        let levels = ["no", "yes"].map(String::from).to_vec();
        let encoding = Encoding {
            target: "y".into(),
            missing: Vec::new(),
            features: vec![field(Code::Categories { values }), field(Code::Levels { levels, fill: 0.5 })],
            known: Vec::new(),
            metric: Default::default(),
            ranges: None,
        };
        let groups = told(&data, Some(&encoding), 0);
        assert_eq!(groups.len(), MOST);
        assert_eq!(groups[0], ("word = a".to_string(), 3));
        assert_eq!(groups[MOST - 1], ("word: other".to_string(), 4));
        assert_eq!(groups.iter().map(|(_, size)| size).sum::<usize>(), 9);
        assert_eq!(told(&data, Some(&encoding), 1), [("word = no".into(), 6), ("word = yes".into(), 3)]);
    }
}
