//! How large everything of a run is, and how a batch and a split are cut.

/// Where noise and dropout come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Drawn on the device, a pure function of the seed; batches are shuffled.
    Drawn,
    /// Written into the tape by the host, for replaying a given step; the batch is the data in order.
    Given,
}

/// One split's place in the data on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRange {
    /// Its first row.
    pub start: usize,
    /// Its rows.
    pub len: usize,
}

/// Sizes of a run.
#[derive(Clone, Debug)]
pub struct Sizes {
    /// Columns of the table.
    pub columns: usize,
    /// Those of them that are known from the start.
    pub known_columns: usize,
    /// Columns of the feature, or of what is known from the start, that has most.
    pub widest: usize,
    /// Features that can be acquired, d.
    pub features: usize,
    /// Classes.
    pub classes: usize,
    /// Acquisitions of an evaluated path, at most.
    pub horizon: usize,
    /// Columns behind the table's that tell the networks an instance's condition; 0: there is none.
    pub conditions: usize,
    /// Behind these, a column for each feature that tells the networks whether it cannot be had.
    pub availability: bool,
    /// Passes over the validation rows, each under a condition of its own.
    pub passes: usize,
    /// Instances of a training step.
    pub batch: usize,
    /// Training steps of a pass over the training rows.
    pub batches: usize,
    /// Instances of a micro-batch.
    pub rows: usize,
    /// Lanes.
    pub lanes: usize,
    /// Instances of a lane in an evaluation chunk.
    pub evaluation_rows: usize,
    /// Training, validation and test rows.
    pub splits: [SplitRange; 3],
    /// Training rows get noise.
    pub input_noise: bool,
    /// Where noise comes from.
    pub noise: Noise,
    /// The data are bytes, to be divided by this.
    pub bytes: Option<u32>,
}

impl Sizes {
    /// The micro-batches of a batch: first instance and number of instances of each.
    pub fn micro_batches(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (batch, rows) = (self.batch, self.rows);
        (0..batch).step_by(rows).map(move |first| (first, rows.min(batch - first)))
    }

    /// Columns of a row: the table's, then what tells its condition and what cannot be had.
    pub fn row_columns(&self) -> usize {
        self.columns + self.told()
    }

    /// Columns that networks may be told besides the table's: all are known from the start.
    pub(super) fn told(&self) -> usize {
        self.conditions + if self.availability { self.features } else { 0 }
    }

    /// Chunks of a split.
    pub fn chunks(&self, split: usize) -> usize {
        self.splits[split].len.div_ceil(self.chunk_rows())
    }

    /// Instances of an evaluation chunk, all lanes together.
    pub fn chunk_rows(&self) -> usize {
        self.lanes * self.evaluation_rows
    }
}
