//! What can be wrong with a schedule file, with the row and the column. Rows and columns count from 1.

use std::fmt;

use crate::{Op, ShapeError};

/// Why a schedule file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// The file as a whole.
    #[error("{0}")]
    File(String),
    /// A row as a whole.
    #[error("row {row} {reason}")]
    Row {
        /// The row.
        row: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// One cell.
    #[error("row {row}, column {column}: `{cell}` {reason}")]
    Cell {
        /// The row.
        row: usize,
        /// The column.
        column: usize,
        /// What stands there.
        cell: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An operation that its row does not have.
    #[error("row {row}: `{op}` is missing")]
    Missing {
        /// The row of its stage.
        row: usize,
        /// The operation.
        op: Op,
    },
    /// Rows that wait for one another for ever.
    #[error("deadlock: {}", Circle(cells))]
    Deadlock {
        /// Cells each of which waits for something further down another row.
        cells: Vec<StuckCell>,
    },
    /// More than can be simulated.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// A cell that can never start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckCell {
    /// The row.
    pub row: usize,
    /// The column.
    pub column: usize,
    /// What stands there.
    pub cell: String,
    /// What it waits for.
    pub waits_for: String,
}

/// The cells of a deadlock, in words.
struct Circle<'a>(&'a [StuckCell]);

impl fmt::Display for Circle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stuck) in self.0.iter().enumerate() {
            let joint = if index == 0 { "" } else { "; " };
            let StuckCell { row, column, cell, waits_for } = stuck;
            write!(f, "{joint}row {row}, column {column}: `{cell}` waits for `{waits_for}`")?;
        }
        Ok(())
    }
}
