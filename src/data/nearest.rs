//! What somebody may have meant who mistyped a name: the nearest of those that there are.

/// The words that a mistyped one may stand for, the nearest first, three at most: those that differ in case, spaces,
/// `-` and `_` only, in a few letters, or by an end that was left out.
///
/// ```
/// use querent::data::nearest::nearest;
///
/// assert_eq!(nearest("wintr", ["autumn", "winter"]), ["winter"]);
/// assert_eq!(nearest("Sore throat", ["cough", "sore_throat"]), ["sore_throat"]);
/// assert!(nearest("monsoon", ["autumn", "winter"]).is_empty());
/// ```
pub fn nearest<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    const MOST: usize = 3;
    let said = plain(word);
    if said.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<(usize, &str)> =
        among.into_iter().filter_map(|known| Some((how_far(&said, &plain(known))?, known))).collect();
    found.sort_by_key(|(far, _)| *far);
    // What differs in nothing that counts leaves no question.
    if found.first().is_some_and(|(far, _)| *far == 0) {
        found.retain(|(far, _)| *far == 0);
    }
    found.into_iter().take(MOST).map(|(_, known)| known).collect()
}

/// The end of a complaint about a word: `; did you mean …?`, or nothing if no known one is near.
pub fn did_you_mean<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, among)[..] {
        [] => String::new(),
        [one] => format!("; did you mean `{one}`?"),
        [ref some @ .., last] => {
            let some: Vec<String> = some.iter().map(|word| format!("`{word}`")).collect();
            format!("; did you mean {} or `{last}`?", some.join(", "))
        }
    }
}

/// The one word that differs from what was said in its case only: `None` if there is none, or more than one.
pub fn but_for_case<'a>(word: &str, among: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let said = word.trim().to_lowercase();
    let mut same = among.into_iter().filter(|known| known.to_lowercase() == said);
    same.next().filter(|_| same.next().is_none())
}

/// A word without what people do not care about. A sign in front of it is no such thing.
fn plain(word: &str) -> Vec<char> {
    let lower = word.trim().to_lowercase();
    let kept = |&(at, c): &(usize, char)| !c.is_whitespace() && c != '_' && (c != '-' || at == 0);
    lower.char_indices().filter(kept).map(|(_, c)| c).collect()
}

/// How far two words are from each other, if they are near.
fn how_far(said: &[char], known: &[char]) -> Option<usize> {
    // Letters that may be wrong: a third of the shorter word, so that `a` is not taken for `b`, nor a number for another.
    let allowed = said.len().min(known.len()) / 3;
    let is_number = |word: &[char]| word.iter().all(|c| c.is_ascii_digit() || ".+-".contains(*c));
    if is_number(said) || is_number(known) {
        return (said == known).then_some(0);
    }
    // Very different lengths need no comparison, however long the words are.
    if said.len().abs_diff(known.len()) <= allowed {
        let far = distance(said, known);
        if far <= allowed {
            return Some(far);
        }
    }
    (said.len() >= 3 && known.starts_with(said)).then_some(allowed + 1)
}

/// Letters to be changed, added, left out or swapped with their neighbour to make one word of the other.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before = vec![0; b.len() + 1];
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_misses_are_found_and_nothing_else_is() {
        let words = ["temperature_c", "cough", "sore_throat", "aches", "12", "13", "no"];
        for (said, meant) in [
            ("temprature_c", "temperature_c"),
            ("Temperature C", "temperature_c"),
            ("temperature", "temperature_c"),
            ("coguh", "cough"),
            ("COUGH", "cough"),
            ("sorethroat", "sore_throat"),
            ("NO", "no"),
        ] {
            assert_eq!(nearest(said, words), [meant], "{said}");
        }
        for said in ["", "  ", "x", "11", "-12", "monsoon", "na", "co", &"cough".repeat(50)] {
            assert!(nearest(said, words).is_empty(), "{said}: {:?}", nearest(said, words));
        }
    }

    #[test]
    fn the_question_is_put_in_words() {
        assert_eq!(did_you_mean("wintr", ["winter", "summer"]), "; did you mean `winter`?");
        assert_eq!(did_you_mean("blood 3", ["blood_1", "blood_2"]), "; did you mean `blood_1` or `blood_2`?");
        assert_eq!(did_you_mean("abcde", ["winter"]), "");
        assert_eq!(but_for_case(" Winter ", ["winter", "summer"]), Some("winter"));
        assert_eq!(but_for_case("A", ["a", "b"]), Some("a"));
        assert_eq!(but_for_case("aA", ["AA", "aa"]), None, "either may be meant");
    }
}
