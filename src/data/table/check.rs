//! What is wrong with a `problem.toml`, as far as that can be told without its table.

use super::schema::{Column, Kind, MOST_CLASSES, Schema, Split, Target, Weights, fail};
use crate::data::ranges::Ranges;
use crate::error::Result;
use std::path::Path;

/// Pieces of a number at most.
const MOST_PIECES: usize = 256;

impl Schema {
    /// Checks what can be checked without the table.
    ///
    /// # Errors
    /// What is wrong.
    pub fn check(&self) -> Result<()> {
        if self.table.path == Path::new("-") {
            return fail(
                "[table] path is `-`, as the table came from standard input: write the name of its file there"
                    .into(),
            );
        }
        self.check_target()?;
        self.check_split()?;
        if let Some(pieces) = self.preprocessing.pieces.filter(|&pieces| pieces > MOST_PIECES) {
            return fail(format!(
                "[preprocessing] pieces is {pieces}, but there can be {MOST_PIECES} at most, as each becomes a column or two"
            ));
        }
        let [low, high] = self.preprocessing.winsorize;
        if !(0.0 <= low && low < high && high <= 1.0) {
            return fail(format!(
                "[preprocessing] winsorize is [{low}, {high}], but it must be two quantiles, 0 ≤ low < high ≤ 1"
            ));
        }
        for (index, column) in self.features.iter().enumerate() {
            if let Some(other) = self.features[..index].iter().position(|c| c.name == column.name) {
                return fail(format!(
                    "features {} and {} are both named `{}`",
                    other + 1,
                    index + 1,
                    column.name
                ));
            }
            self.check_column(column)?;
        }
        let groups = self.groups()?;
        if groups.is_empty() {
            return fail("no feature can be asked for: all are known or ignored, or there is none".into());
        }
        Ok(())
    }

    fn check_target(&self) -> Result<()> {
        let Target { column, classes, weights, bins, edges, decimal, .. } = &self.target;
        if self.features.iter().any(|feature| feature.name == *column && !feature.ignore) {
            return fail(format!("`{column}` is the target, so it cannot be a feature as well"));
        }
        if usize::from(!classes.is_empty()) + usize::from(bins.is_some()) + usize::from(edges.is_some()) > 1 {
            return fail(format!(
                "[target] only one of classes, bins and edges can be: `{column}` has classes, or it is a number that is \
                 cut into so many ranges or at these edges"
            ));
        }
        if let Some(edges) = edges {
            let ranges = Ranges { edges: edges.clone(), decimal: *decimal };
            ranges.check().or_else(|error| fail(format!("[target] {}", error.message())))?;
            if edges.len() >= MOST_CLASSES {
                let most = MOST_CLASSES - 1;
                return fail(format!(
                    "[target] there are {} edges, but there can be {most} at most",
                    edges.len()
                ));
            }
        }
        if let Some(bins) = bins.filter(|bins| !(2..=MOST_CLASSES).contains(bins)) {
            return fail(format!("[target] bins is {bins}, but it must be between 2 and {MOST_CLASSES}"));
        }
        let is_number = bins.is_some() || edges.is_some();
        if decimal.is_some() && !is_number {
            return fail("[target] decimal is of numbers, which need bins or edges".into());
        }
        if classes.len() < 2 && !is_number {
            return fail(format!(
                "[target] there are {} classes; at least two are needed to have anything to predict (of a number, bins or \
                 edges)",
                classes.len()
            ));
        }
        if classes.len() > MOST_CLASSES {
            return fail(format!(
                "[target] there are {} classes; at most {MOST_CLASSES} can be: is `{column}` a number or an id?",
                classes.len()
            ));
        }
        if let Some(twice) = classes.iter().enumerate().find(|(i, c)| classes[..*i].contains(c)) {
            return fail(format!("[target] the class `{}` is there twice", twice.1));
        }
        if let Weights::Each(weights) = weights {
            let count = edges.as_ref().map(|edges| edges.len() + 1).or(*bins).unwrap_or(classes.len());
            if weights.len() != count {
                return fail(format!("[target] {} weights for {count} classes", weights.len()));
            }
            if let Some(class) = weights.iter().position(|w| !w.is_finite() || *w <= 0.0) {
                let name =
                    classes.get(class).map_or_else(|| format!("number {}", class + 1), |c| format!("`{c}`"));
                return fail(format!(
                    "[target] the weight of class {name} is {}, but it must be a number above 0",
                    weights[class]
                ));
            }
        }
        Ok(())
    }

    fn check_split(&self) -> Result<()> {
        let Split { train, validation, test, .. } = &self.split;
        let sizes = [*train, *validation, *test];
        let bad = sizes.iter().any(|size| !size.is_finite() || *size < 0.0);
        let shares = sizes.iter().all(|size| *size <= 1.0);
        if bad || *train == 0.0 || *validation == 0.0 {
            return fail(format!(
                "[split] train {train}, validation {validation}, test {test}: each must be a share or a number of \
                 rows, and training and validation need some"
            ));
        }
        if shares && (sizes.iter().sum::<f64>() - 1.0).abs() > 1e-6 {
            return fail(format!("[split] the shares {train} + {validation} + {test} do not add up to 1"));
        }
        if !shares && sizes.iter().any(|size| size.fract() != 0.0) {
            return fail(format!(
                "[split] train {train}, validation {validation}, test {test}: either all are shares that add up \
                 to 1, or all are numbers of rows"
            ));
        }
        Ok(())
    }

    fn check_column(&self, column: &Column) -> Result<()> {
        let name = &column.name;
        if name.trim() != name || name.is_empty() {
            return fail(format!("feature `{name}`: a name is not empty and has no spaces around it"));
        }
        if let Some(cost) = column.cost
            && !(cost.is_finite() && cost >= 0.0)
        {
            return fail(format!(
                "feature `{name}`: its cost is {cost}, but a cost is a finite number, zero or more"
            ));
        }
        if column.missing_above.is_some_and(|most| !most.is_finite()) {
            return fail(format!("feature `{name}`: missing_above must be a finite number"));
        }
        let values = column.values.as_deref().unwrap_or_default();
        if let Some((_, twice)) = values.iter().enumerate().find(|(i, v)| values[..*i].contains(v)) {
            return fail(format!("feature `{name}`: the value `{twice}` is there twice"));
        }
        if column.decimal.is_some() && column.kind != Kind::Numeric {
            return fail(format!("feature `{name}`: decimal is of numbers, and its kind is not numeric"));
        }
        if column.dates.is_some() && column.kind != Kind::Date {
            return fail(format!("feature `{name}`: dates is of dates, and its kind is not date"));
        }
        match column.kind {
            Kind::Numeric | Kind::Date if column.values.is_some() => {
                fail(format!("feature `{name}` is of numbers or dates: it has no list of values"))
            }
            Kind::Binary if values.len() != 2 && !column.ignore => {
                fail(format!("feature `{name}` is binary: it needs values = [\"first\", \"second\"]"))
            }
            Kind::Ordinal if values.len() < 2 && !column.ignore => {
                fail(format!("feature `{name}` is ordinal: it needs values = [\"lowest\", …, \"highest\"]"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "[table]\npath = \"t.csv\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\"]\n";

    fn refused(text: &str) -> String {
        Schema::parse(&format!("{HEAD}{text}")).expect_err("should have been refused").message()
    }

    #[test]
    fn what_is_wrong_is_named() {
        let feature = |rest: &str| format!("[[feature]]\nname = \"u\"\nkind = \"numeric\"\n{rest}\n");
        let says = |text: &str, what: &str| {
            let error = refused(text);
            assert!(error.contains(what), "`{what}` is not in: {error}");
        };
        says("", "no feature can be asked for");
        says(&feature("known = true"), "no feature can be asked for");
        says(&feature(""), "`u` has no cost");
        says(&feature("cost = -1"), "`u`: its cost is -1");
        says(&feature("cost = nan"), "`u`: its cost is NaN");
        says(&feature("cost = \"cheap\""), "line 9");
        says(&feature("price = 3"), "unknown field `price`");
        let second = "[[feature]]\nname = \"v\"\nkind = \"numeric\"\ngroup = \"u\"\ncost = 3\n";
        says(&(feature("cost = 2") + second), "group `u` has two costs, 2 (`u`) and 3 (`v`)");
        says(&(feature("cost = 2") + &feature("cost = 2")), "both named `u`");
        says(&(feature("known = true") + second), "either both are known or none");
        says("[[feature]]\nname = \"u\"\nkind = \"ordinal\"\ncost = 1", "needs values");
        says("weights = \"heavy\"\n", "must be \"none\", \"root\", \"balanced\" or a list");
        says("weights = [1.0]\n", "1 weights for 2 classes");
        says("bins = 3\n", "only one of classes, bins and edges");
        let number = |text: &str, what: &str| {
            let head = HEAD.replace("classes = [\"a\", \"b\"]\n", text);
            let error =
                Schema::parse(&format!("{head}{}", feature("cost = 1"))).expect_err("refused").message();
            assert!(error.contains(what), "`{what}` is not in: {error}");
        };
        number("", "there are 0 classes");
        number("bins = 1\n", "bins is 1, but it must be between 2 and 256");
        number("edges = []\n", "there are no edges");
        number("edges = [3, 2]\n", "the edges 3 and 2 are not in order");
        number("edges = [1, nan]\n", "an edge is NaN");
        let many: Vec<String> = (0..300).map(|edge| edge.to_string()).collect();
        number(&format!("edges = [{}]\n", many.join(", ")), "there are 300 edges, but there can be 255");
        number("bins = 3\nweights = [1, 2]\n", "2 weights for 3 classes");
        number("edges = [1, 2]\ndecimal = \";\"\n", "line 6");
        says(&feature("cost = 1\ndates = \"dmy\""), "its kind is not date");
        says(
            "[[feature]]\nname = \"u\"\nkind = \"date\"\ncost = 1\ndecimal = \",\"",
            "its kind is not numeric",
        );
        says("[[feature]]\nname = \"y\"\nkind = \"numeric\"\ncost = 1", "is the target");
        says(&format!("{}[split]\ntrain = 0.9", feature("cost = 1")), "do not add up to 1");
        says(&format!("{}[preprocessing]\nwinsorize = [0.9, 0.1]", feature("cost = 1")), "two quantiles");
        says(&format!("{}[preprocessing]\npieces = 5000", feature("cost = 1")), "there can be 256 at most");
    }
}
