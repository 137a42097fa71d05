//! A price list: what each column costs, and what else is known about it.

use super::profile::Profile;
use super::reader::{Cells, TableReader};
use crate::data::nearest::did_you_mean;
use crate::data::numbers::number;
use crate::error::{Error, Result};

/// What a price list says about a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Price {
    /// Its cost.
    pub cost: f64,
    /// The group it is asked for with.
    pub group: Option<String>,
    /// Its unit.
    pub unit: Option<String>,
    /// Whether it is there before asking starts.
    pub known: bool,
}

/// Reads a price list, a table with the columns `column` and `cost` and, if there are such, `group`,
/// `unit` and `known`: for each column of the profile its price, if the list has one.
///
/// # Errors
/// A column that the table does not have or that is listed twice, or a cost that is no number, zero or
/// more.
pub fn read_prices(mut list: TableReader, found: &Profile) -> Result<Vec<Option<Price>>> {
    let path = list.path().to_path_buf();
    let (name_at, cost_at) = (list.column("column")?, list.column("cost")?);
    let optional = |name: &str| list.header().iter().position(|column| column == name);
    let (group_at, unit_at, known_at) = (optional("group"), optional("unit"), optional("known"));
    let mut prices: Vec<Option<Price>> = vec![None; found.columns.len()];
    let mut cells = Cells::default();
    while list.next(&mut cells)? {
        let fail =
            |what: String| Error::table(&path, format!("row {} (line {}): {what}", cells.row, cells.line));
        let name = cells.cells[name_at].trim();
        let Some(at) = found.columns.iter().position(|column| column.name == name) else {
            let near = did_you_mean(name, found.columns.iter().map(|column| column.name.as_str()));
            return Err(fail(format!("the table has no column `{name}` that could be asked for{near}")));
        };
        let cost = number(&cells.cells[cost_at])
            .map_err(|error| fail(format!("the cost of `{name}`: {}", error.message())))?;
        if cost < 0.0 {
            return Err(fail(format!("the cost of `{name}` is {cost}, but a cost is zero or more")));
        }
        let said = |at: Option<usize>| {
            at.map(|at| cells.cells[at].trim()).filter(|cell| !cell.is_empty()).map(String::from)
        };
        let known = match said(known_at).as_deref() {
            None | Some("false" | "no" | "0") => false,
            Some("true" | "yes" | "1") => true,
            Some(other) => return Err(fail(format!("known is `{other}`, but it must be true or false"))),
        };
        let price = Price { cost, group: said(group_at), unit: said(unit_at), known };
        if prices[at].replace(price).is_some() {
            return Err(fail(format!("`{name}` has a price already")));
        }
    }
    Ok(prices)
}
