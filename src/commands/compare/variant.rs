//! Methods under other settings, beside the methods themselves: ablations, and whatever else somebody wants to know of a
//! setting.

use super::cell::{ALONE, FIXED_SET};
use super::options::INSTEAD;
use crate::commands::Failure;
use querent::data::nearest::did_you_mean;
use querent::methods::{self, METHODS};
use serde::{Deserialize, Serialize};

/// A method under other settings. Which they are stands with those of the methods, under the variant's name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Its name in pictures and tables.
    pub name: String,
    /// The method.
    pub method: String,
}

/// Reads `NAME=METHOD`, each of them.
///
/// # Errors
/// One that is not of that form, of a method that is not there or has no settings, or with a name that something else has.
pub fn read(said: &[String]) -> Result<Vec<Variant>, Failure> {
    let mut variants: Vec<Variant> = Vec::new();
    for said in said {
        let refused = |why: String| Err(Failure::Refused(format!("--variant {said}: {why}")));
        let Some((name, method)) = said.split_once('=').map(|(name, method)| (name.trim(), method.trim()))
        else {
            return refused(
                "give it a name, and say which method it is of, as in --variant soft=nmppg".into(),
            );
        };
        if INSTEAD.contains(&method) {
            return refused(format!("`{method}` has no settings that could be others"));
        }
        if let Err(error) = methods::find(method) {
            let known = METHODS.iter().map(|entry| entry.name);
            return refused(format!("{error}{}", did_you_mean(method, known)));
        }
        let taken = METHODS.iter().map(|entry| entry.name).chain(INSTEAD.iter().copied());
        let taken = taken.chain(["all", FIXED_SET]).chain(variants.iter().map(|other| other.name.as_str()));
        if name.is_empty()
            || name.contains([':', ','])
            || name.ends_with(ALONE)
            || taken.into_iter().any(|other| other == name)
        {
            return refused(format!(
                "`{name}` cannot be its name: it must be one that nothing else in the comparison has, without `:` and `,`"
            ));
        }
        variants.push(Variant { name: name.into(), method: method.into() });
    }
    Ok(variants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variant_has_a_name_of_its_own_and_a_method() {
        let of = |said: &[&str]| match read(&said.iter().map(|said| said.to_string()).collect::<Vec<_>>()) {
            Ok(variants) => variants.into_iter().map(|v| format!("{} of {}", v.name, v.method)).collect(),
            Err(Failure::Refused(why)) => vec![why],
            Err(_) => Vec::new(),
        };
        assert_eq!(of(&["no bonus = nmppg", "warm=gdfs"]), ["no bonus of nmppg", "warm of gdfs"]);
        for (said, why) in [
            (&["soft"][..], "give it a name"),
            (&["soft=nmpg"], "did you mean `nmppg`?"),
            (&["deep=tree"], "`tree` has no settings"),
            (&["=nmppg"], "cannot be its name"),
            (&["gdfs=nmppg"], "cannot be its name"),
            (&["fixed set=fixed"], "cannot be its name"),
            (&["a:b=nmppg"], "cannot be its name"),
            (&["nmppg (each α alone)=gdfs"], "cannot be its name"),
            (&["a=nmppg", "a=gdfs"], "cannot be its name"),
        ] {
            assert!(of(said).concat().contains(why), "{said:?}: {:?}", of(said));
        }
    }
}
