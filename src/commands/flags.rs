//! Numbers in flags: a negative one is a number and no flag, and one with a decimal comma is told so, whichever command
//! it is given to.

use std::any::TypeId;

/// The command with every number of its flags, and of its subcommands' flags, read by the functions below.
pub fn with_clear_numbers(command: clap::Command) -> clap::Command {
    command.mut_subcommands(with_clear_numbers).mut_args(|arg| {
        let of = arg.get_value_parser().type_id();
        let separated = arg.get_value_delimiter().is_some();
        // With hyphens, as `-0,5` has to get here to be told what is wrong with it.
        if of == TypeId::of::<f64>() {
            arg.allow_hyphen_values(true).value_parser(move |said: &str| number(said, separated))
        } else if of == TypeId::of::<usize>() {
            arg.allow_hyphen_values(true).value_parser(whole::<usize>)
        } else if of == TypeId::of::<u64>() {
            arg.allow_hyphen_values(true).value_parser(whole::<u64>)
        } else {
            arg
        }
    })
}

/// A number. In a list, `05` is what is left of `0,05`.
fn number(said: &str, separated: bool) -> Result<f64, String> {
    let plain = said.trim();
    let digits = plain.trim_start_matches(['-', '+']);
    let cut = digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    match plain.parse() {
        Ok(_) if separated && cut => Err(format!(
            "`{plain}` looks like the end of a number with a decimal comma: write a decimal point, such as 0.{digits}; \
             commas separate numbers here"
        )),
        Ok(value) => Ok(value),
        Err(_) if plain.starts_with("--") => {
            Err(format!("a number is needed, and `{plain}` is the next option"))
        }
        Err(_) => {
            let pointed = plain.replacen(',', ".", 1);
            Err(match pointed.parse::<f64>() {
                Ok(_) => format!("write a decimal point, no comma: {pointed}"),
                Err(_) => "it is not a number".to_string(),
            })
        }
    }
}

/// A whole number, zero or more.
fn whole<T: std::str::FromStr>(said: &str) -> Result<T, String> {
    let plain = said.trim();
    plain.parse().map_err(|_| match plain.parse::<f64>() {
        _ if plain.starts_with("--") => format!("a number is needed, and `{plain}` is the next option"),
        Ok(value) if value < 0.0 => format!("{value} is below 0: it must be a whole number, zero or more"),
        Ok(_) => "it must be a whole number, and not too large".to_string(),
        Err(_) => "it must be a whole number, zero or more".to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_and_signs_are_told() {
        assert_eq!(number("-1", false), Ok(-1.0));
        assert_eq!(number("1e-3", true), Ok(0.001));
        assert_eq!(number("0", true), Ok(0.0));
        let says = |said: &str, separated, what: &str| {
            let error = number(said, separated).expect_err("refused");
            assert!(error.contains(what), "{error}");
        };
        says("0,05", false, "no comma: 0.05");
        says("-0,5", false, "no comma: -0.5");
        says("05", true, "such as 0.05");
        says("--json", false, "next option");
        says("many", false, "not a number");
        assert_eq!(whole::<usize>("7"), Ok(7));
        assert!(whole::<usize>("-7").expect_err("refused").contains("below 0"));
        assert!(whole::<u64>("1.5").expect_err("refused").contains("whole number"));
    }
}
