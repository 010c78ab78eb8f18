//! PyTorch's schedule files: `compute_only` (orders alone) and `compute_comms` (with sends, receives and waits),
//! read and written as `torch.distributed.pipelining` does.
//!
//! One row a rank, cells like `2F0`, `(0F3;3B1)OVERLAP_F_B` or `1SEND_F0`; no header, no rank column. The reader
//! forgives what PyTorch's forgives: blanks round a cell, leading zeros, quotes, any newline, rows of different
//! length, empty cells in `compute_only`, and anything after a complete action. Where PyTorch loads a file that it
//! could not run, the reader is stricter, since such a file has no times:
//!
//! * micro-batches are numbered from 0 without gaps (PyTorch only counts them);
//! * no operation stands twice, and a micro-batch's backward is one `B` or one `I` and one `W` (PyTorch compares
//!   totals);
//! * an overlapped bracket has at least one part;
//! * in `compute_comms`, every input from another rank has its receive, every send its receive in the same order on
//!   the same pair of ranks, and the rows do not wait for one another (PyTorch finds out when the step hangs).
//!
//! Opening files is the caller's; this takes and gives text.

mod action;
mod check;
mod comms;
mod error;
mod lower;
mod read;
mod write;

pub use action::{Message, Parameters};
pub use comms::{CommsOrders, CommsStep, Post};
pub use error::{CsvError, StuckCell};
pub use lower::lower_orders;
pub use read::{CsvFile, Expected, read};
pub use write::{compute_comms, compute_only};
