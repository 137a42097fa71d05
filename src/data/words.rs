//! Words of a table: how they are compared, listed and ordered.

/// A word as it is compared: without spaces around it, and a whole number without its `.0`.
pub fn canonical(word: &str) -> &str {
    let word = word.trim();
    match word.split_once('.') {
        Some((whole, zeros))
            if !zeros.is_empty()
                && zeros.bytes().all(|b| b == b'0')
                && !whole.trim_start_matches('-').is_empty()
                && whole.trim_start_matches('-').bytes().all(|b| b.is_ascii_digit()) =>
        {
            whole
        }
        _ => word,
    }
}

/// Words of a list for a message, shortened.
pub(crate) fn listed(words: &[String]) -> String {
    const SHOWN: usize = 8;
    let mut text = words.iter().take(SHOWN).map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
    if words.len() > SHOWN {
        text += &format!(" and {} more", words.len() - SHOWN);
    }
    text
}

/// The order of words in lists: numbers by their value, then everything else by its letters.
#[cfg(any(feature = "table", test))]
pub(crate) fn in_order(a: &str, b: &str) -> std::cmp::Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y).then_with(|| a.cmp(b)),
        (Ok(_), Err(_)) => std::cmp::Ordering::Less,
        (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        (Err(_), Err(_)) => a.cmp(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_one_order() {
        let mut words = ["b", "10", "a", "9", "-1", "nan", "1e1", "9.5"];
        words.sort_by(|a, b| in_order(a, b));
        assert_eq!(words, ["-1", "9", "9.5", "10", "1e1", "nan", "a", "b"]);
    }

    #[test]
    fn whole_numbers_lose_their_zeros_only() {
        assert_eq!(canonical(" 1.0 "), "1");
        assert_eq!(canonical("-2.00"), "-2");
        for word in ["1.5", "1.", ".0", "v1.0", "-.0", "1.0.0"] {
            assert_eq!(canonical(word), word);
        }
    }
}
