//! What a typed line means.

use crate::data::encoding::{Field, Notice, canonical};
use crate::data::nearest::{but_for_case, did_you_mean};

/// What somebody may say instead of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Undo the last answer.
    Back,
    /// Say why this is asked.
    Why,
    /// Say what can be answered.
    Help,
    /// It cannot be had.
    Unavailable,
    /// It was measured, without a result.
    Missing,
}

/// The words for it.
const WISHES: [(&str, Wish); 8] = [
    ("back", Wish::Back),
    ("why", Wish::Why),
    ("?", Wish::Help),
    ("help", Wish::Help),
    ("n/a", Wish::Unavailable),
    ("na", Wish::Unavailable),
    ("-", Wish::Unavailable),
    ("missing", Wish::Missing),
];

/// What a line means.
#[derive(Clone, Debug, PartialEq)]
pub enum Meant {
    /// Not an answer.
    Wish(Wish),
    /// A cell that the field takes.
    Cell(String),
    /// Nothing that can be taken: why.
    Nothing(String),
    /// A word that could be taken but looks mistyped: why.
    Doubtful(String),
}

/// Tells what a line means as an answer for a field. A word of the field's own goes before everything else.
pub fn understand(field: &Field, line: &str) -> Meant {
    let said = line.trim();
    let words = || field.words().iter().map(String::as_str);
    if words().any(|word| word == canonical(said)) {
        return Meant::Cell(said.to_string());
    }
    if let Some(word) = but_for_case(canonical(said), words()) {
        return Meant::Cell(word.to_string());
    }
    let lower = said.to_lowercase();
    let plain = lower.strip_prefix(':').unwrap_or(&lower);
    if let Some((_, wish)) = WISHES.iter().find(|(word, _)| *word == plain) {
        return Meant::Wish(*wish);
    }
    if said.is_empty() {
        return Meant::Nothing("an answer is needed".into());
    }
    match field.encode(said, &mut Vec::new()) {
        Ok(Notice::Unseen) => match did_you_mean(said, words()) {
            meant if meant.is_empty() => Meant::Cell(said.to_string()),
            meant => Meant::Doubtful(format!("no training row has `{said}`{meant}")),
        },
        Ok(_) => Meant::Cell(said.to_string()),
        Err(error) if field.words().is_empty() => {
            Meant::Nothing(error.message() + &did_you_mean(said, WISHES.map(|(word, _)| word)))
        }
        Err(error) => Meant::Nothing(error.message()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::encoding::Code;

    fn field(code: Code) -> Field {
        Field { name: "f".into(), unit: String::new(), code, flag: false }
    }

    #[test]
    fn answers_wishes_and_slips_are_told_apart() {
        let words = |words: &[&str]| words.iter().map(|word| word.to_string()).collect::<Vec<_>>();
        let place = field(Code::Categories { values: words(&["back", "Chest", "2"]) });
        let cell = |text: &str| Meant::Cell(text.into());
        assert_eq!(understand(&place, " back "), cell("back"), "its own word");
        assert_eq!(understand(&place, ":back"), Meant::Wish(Wish::Back));
        assert_eq!(understand(&place, "CHEST"), cell("Chest"));
        assert_eq!(understand(&place, "BACK"), cell("back"), "its own word, whatever the case");
        assert_eq!(understand(&place, "2.0"), cell("2.0"));
        assert_eq!(understand(&place, "N/A"), Meant::Wish(Wish::Unavailable));
        assert_eq!(understand(&place, "Why"), Meant::Wish(Wish::Why));
        assert_eq!(understand(&place, "knee"), cell("knee"), "nothing is near");
        let doubtful = Meant::Doubtful("no training row has `chst`; did you mean `Chest`?".into());
        assert_eq!(understand(&place, "chst"), doubtful);
        let levels = field(Code::Levels { levels: words(&["none", "mild"]), fill: 0.5 });
        assert_eq!(understand(&levels, "Mild"), cell("mild"));
        let refused = |field: &Field, line: &str| match understand(field, line) {
            Meant::Nothing(why) => why,
            other => panic!("{line}: {other:?}"),
        };
        assert!(refused(&levels, "midl").contains("did you mean `mild`?"));
        assert!(refused(&levels, "").contains("an answer is needed"));
        let number = field(Code::Number {
            low: 0.0,
            high: 1.0,
            fill: 0.5,
            seen: [0.0, 1.0],
            missing_above: None,
            decimal: None,
            knots: Vec::new(),
        });
        assert_eq!(understand(&number, "?"), Meant::Wish(Wish::Help));
        assert_eq!(understand(&number, "-"), Meant::Wish(Wish::Unavailable));
        assert_eq!(understand(&number, "-1"), cell("-1"));
        assert!(refused(&number, "mising").contains("did you mean `missing`?"));
    }
}
