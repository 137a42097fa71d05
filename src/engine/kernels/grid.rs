//! Which threads a kernel has: what they are over, from which the workgroups follow.

/// Threads of a workgroup that works on one row together. Same as `WIDTH` in lib/reduce.wgsl.
const ROW_WIDTH: u32 = 64;
/// Threads of a workgroup in a line.
const LINE: u32 = 64;
/// A side of a workgroup over an area.
const SIDE: u32 = 8;
/// A side of what a workgroup computes of a product.
const TILE: u32 = 32;
/// Workgroups in one dimension: WebGPU's default limit.
const MOST: u32 = 65_535;

/// What the threads of a call are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grid {
    /// A thread for each place of an area.
    Area {
        /// Its columns.
        width: u32,
        /// Its rows.
        height: u32,
    },
    /// So many threads.
    Line(u32),
    /// A workgroup, or a thread where those work alone, for each of so many rows.
    Each(u32),
    /// The outputs of a product.
    Tiles {
        /// Columns of the product.
        columns: u32,
        /// Rows of the product.
        rows: u32,
    },
    /// Workgroups as they are.
    Groups([u32; 3]),
}

impl Grid {
    /// Workgroups to dispatch on a GPU.
    pub fn groups(self) -> [u32; 3] {
        match self {
            Grid::Area { width, height } => [width.div_ceil(SIDE).max(1), height.div_ceil(SIDE).max(1), 1],
            Grid::Line(threads) => folded(threads, LINE),
            Grid::Each(rows) => folded(rows * ROW_WIDTH, ROW_WIDTH),
            Grid::Tiles { columns, rows } => [columns.div_ceil(TILE).max(1), rows.div_ceil(TILE).max(1), 1],
            Grid::Groups(groups) => groups,
        }
    }

    /// Rows, if that is what the threads are over, and threads of a row.
    pub fn rows(self) -> Option<(u32, u32)> {
        match self {
            Grid::Area { width, height } => Some((height, width)),
            Grid::Line(rows) | Grid::Each(rows) => Some((rows, 1)),
            Grid::Tiles { columns, rows } => Some((rows, columns)),
            Grid::Groups(_) => None,
        }
    }
}

/// Workgroups for `n` threads in a row of `width`, folded into two dimensions where one has not enough.
pub(crate) fn folded(n: u32, width: u32) -> [u32; 3] {
    let groups = n.div_ceil(width).max(1);
    let x = groups.min(MOST);
    [x, groups.div_ceil(x), 1]
}

/// So many threads.
pub fn line(n: u32) -> Grid {
    Grid::Line(n)
}

/// A thread for each place of a `width` × `height` area.
pub fn area(width: u32, height: u32) -> Grid {
    Grid::Area { width, height }
}

/// The outputs of a product.
pub fn tiles(columns: u32, rows: u32) -> Grid {
    Grid::Tiles { columns, rows }
}

/// One workgroup a row.
pub fn each(rows: u32) -> Grid {
    Grid::Each(rows)
}

/// So many workgroups.
pub fn workgroups(count: u32) -> Grid {
    Grid::Groups([count, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_their_work_within_the_limit() {
        assert_eq!(line(1).groups(), [1, 1, 1]);
        assert_eq!(line(65).groups(), [2, 1, 1]);
        let [x, y, _] = line(64 * 70_000).groups();
        assert!(x <= MOST && y <= MOST && x * y >= 70_000);
        assert_eq!(area(9, 8).groups(), [2, 1, 1]);
        assert_eq!(each(70_000).groups(), [MOST, 2, 1]);
        assert_eq!(tiles(33, 32).groups(), [2, 1, 1]);
    }

    #[test]
    fn rows_are_what_an_area_is_high() {
        assert_eq!(area(9, 8).rows(), Some((8, 9)));
        assert_eq!(line(7).rows(), Some((7, 1)));
        assert_eq!(workgroups(3).rows(), None);
    }
}
