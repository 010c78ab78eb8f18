//! What is said of a step that does not fit with its micro-batches: whether it would with smaller ones.

use crate::units::grouped;
use crate::wrap::wrapped;

/// The size of the micro-batches of a step that does not fit its budget, and one that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallerMicroBatch {
    /// Sequences in a micro-batch as it is.
    pub size: u64,
    /// The most with which every rank fits; `None` if a single one is too much.
    pub fits: Option<u64>,
}

impl SmallerMicroBatch {
    /// The line that `run` prints below its table.
    pub fn text(&self) -> String {
        let size = grouped(self.size);
        let value = match self.fits {
            Some(fits) => format!(
                "{size} sequences are too many; with {} it fits (`--set model.micro_batch_size={fits}`)",
                grouped(fits)
            ),
            None => format!("{size} sequences are too many, and so is one"),
        };
        wrapped("micro-batch", &value)
    }
}
