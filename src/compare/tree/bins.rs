//! Values by their place among the training rows, in a byte each: a split is then looked for among few.

use crate::data::{Dataset, Part};

/// Bins of a column, at most.
const MOST: usize = 64;
/// Rows that bins are made from, at most.
const LOOKED_AT: usize = 20_000;

/// The training rows in bins.
#[derive(Clone, Debug)]
pub struct Bins {
    /// Row after row.
    cells: Vec<u8>,
    /// For each column, the largest value of each bin but the last.
    edges: Vec<Vec<f32>>,
}

impl Bins {
    /// Of a table's training rows.
    pub fn of(data: &Dataset) -> Self {
        let (rows, columns) = (data.sizes()[0], data.problem().columns());
        let every = rows.div_ceil(LOOKED_AT).max(1);
        let mut seen: Vec<Vec<f32>> = vec![Vec::new(); columns];
        for row in (0..rows).step_by(every) {
            let row = data.row(Part::Train, row);
            seen.iter_mut().zip(row.iter()).for_each(|(seen, &value)| seen.push(value));
        }
        let edges: Vec<Vec<f32>> = seen.into_iter().map(edges).collect();
        let mut cells = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            let row = data.row(Part::Train, row);
            cells.extend(row.iter().zip(&edges).map(|(&value, edges)| bin(edges, value)));
        }
        Self { cells, edges }
    }

    /// A row's bins, column by column.
    pub fn row(&self, row: usize) -> &[u8] {
        let columns = self.edges.len();
        &self.cells[row * columns..][..columns]
    }

    /// The bins of a column.
    pub fn count(&self, column: usize) -> usize {
        self.edges[column].len() + 1
    }

    /// The most bins of any column.
    pub fn most(&self) -> usize {
        self.edges.iter().map(|edges| edges.len() + 1).max().unwrap_or(1)
    }

    /// The largest value of a bin that is not the last.
    pub fn edge(&self, column: usize, bin: usize) -> f32 {
        self.edges[column][bin]
    }
}

/// Edges between bins: between any two values if there are few, else so that each bin has as many rows.
fn edges(mut values: Vec<f32>) -> Vec<f32> {
    values.sort_by(f32::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    let count = if distinct.len() <= MOST { distinct.len() } else { MOST };
    let from = if distinct.len() <= MOST { &distinct } else { &values };
    let mut edges: Vec<f32> = (1..count)
        .map(|i| {
            let at = i * from.len() / count;
            // Halfway to the next value, so that rows between two that were seen are dealt evenly.
            from[at - 1] + (from[at] - from[at - 1]) / 2.0
        })
        .collect();
    edges.dedup();
    edges
}

/// The bin of a value: it goes below an edge that it equals.
fn bin(edges: &[f32], value: f32) -> u8 {
    edges.partition_point(|&edge| edge < value) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_about_as_many_rows() {
        assert_eq!(edges(vec![3.0, 1.0, 1.0, 2.0]), [1.5, 2.5]);
        assert_eq!(edges(vec![5.0; 9]), [0f32; 0]);
        let many = edges((0..1_000u16).map(f32::from).collect());
        assert_eq!(many.len(), MOST - 1);
        let counts: Vec<usize> = (0..MOST)
            .map(|b| (0..1_000u16).filter(|&v| usize::from(bin(&many, f32::from(v))) == b).count())
            .collect();
        assert!(counts.iter().all(|&n| (15..=16).contains(&n)), "{counts:?}");
        // Many equal values are one bin.
        let heavy = edges((0..1_000u16).map(|v| f32::from(v.max(900))).collect());
        assert!(heavy.windows(2).all(|pair| pair[0] < pair[1]) && heavy.len() < MOST, "{heavy:?}");
    }
}
