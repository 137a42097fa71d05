//! Which columns a feature reveals: reads the buffer that `lib/groups.wgsl` describes.

/// A view of the `groups` buffer.
#[derive(Clone, Copy)]
pub struct Groups<'a> {
    starts: &'a [u32],
    columns: &'a [u32],
    features: &'a [u32],
}

impl<'a> Groups<'a> {
    /// Over the buffer's words.
    pub fn new(words: &'a [u32], features: u32, columns: u32) -> Self {
        let (starts, rest) = words.split_at(features as usize + 1);
        let (columns, features) = rest.split_at(columns as usize);
        Self { starts, columns, features }
    }

    /// The columns of a feature.
    pub fn columns_of(&self, feature: usize) -> &'a [u32] {
        &self.columns[self.starts[feature] as usize..self.starts[feature + 1] as usize]
    }

    /// The columns that are known from the start.
    pub fn known(&self) -> &'a [u32] {
        &self.columns[self.starts[self.starts.len() - 1] as usize..]
    }

    /// Whether column i is feature i, for all of them, and nothing is known from the start.
    pub fn are_columns(&self) -> bool {
        let order = |words: &[u32]| words.iter().zip(0..).all(|(&word, index)| word == index);
        self.starts.len() == self.columns.len() + 1 && order(self.starts) && order(self.columns)
    }

    /// The feature of each column; as many as there are features for what is known from the start.
    pub fn features(&self) -> &'a [u32] {
        &self.features[..self.columns.len()]
    }
}

/// The buffer's words, from the feature of each column.
pub fn words(features: usize, group_of_column: &[u32]) -> Vec<u32> {
    let mut starts = vec![0u32; features + 2];
    for &group in group_of_column {
        starts[group as usize + 1] += 1;
    }
    for i in 0..=features {
        starts[i + 1] += starts[i];
    }
    let mut next = starts.clone();
    let mut columns = vec![0u32; group_of_column.len()];
    for (column, &group) in group_of_column.iter().enumerate() {
        columns[next[group as usize] as usize] = column as u32;
        next[group as usize] += 1;
    }
    [&starts[..=features], &columns, group_of_column].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_may_come_in_any_order() {
        let of_column = [2, 0, 1, 0, 2];
        let words = words(3, &of_column);
        let groups = Groups::new(&words, 3, 5);
        assert_eq!(groups.columns_of(0), [1, 3]);
        assert_eq!(groups.columns_of(1), [2]);
        assert_eq!(groups.columns_of(2), [0, 4]);
        assert_eq!(groups.features(), of_column);
        assert_eq!(groups.known(), [0; 0]);
        assert!(!groups.are_columns());
    }

    #[test]
    fn features_may_be_the_columns() {
        for (features, of_column, expected) in
            [(3, vec![0, 1, 2], true), (3, vec![0, 2, 1], false), (2, vec![0, 1, 2], false)]
        {
            let words = words(features, &of_column);
            let groups = Groups::new(&words, features as u32, of_column.len() as u32);
            assert_eq!(groups.are_columns(), expected, "{of_column:?}");
        }
    }

    #[test]
    fn columns_known_from_the_start_belong_to_no_feature() {
        let words = words(2, &[2, 0, 1, 0, 2]);
        let groups = Groups::new(&words, 2, 5);
        assert_eq!(groups.columns_of(0), [1, 3]);
        assert_eq!(groups.columns_of(1), [2]);
        assert_eq!(groups.known(), [0, 4]);
    }
}
