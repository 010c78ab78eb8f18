//! Orders of operations of pipeline-parallel training: which rank runs what, in which order.
//!
//! A [`Schedule`] turns a [`Shape`] (ranks, chunks, micro-batches, placement) into [`Orders`], a list of [`Op`]
//! for each rank; those that look at costs get them as plain numbers ([`Weights`]). [`all`] lists every
//! schedule, [`find`] looks one up.
//!
//! ```
//! use pipestep_schedule::{Options, Plan, Rank, Shape, Weights, find};
//!
//! let schedule = find("1f1b").expect("it is in the registry");
//! let shape = Shape::new(2, 1, 3, schedule.entry().placement)?;
//! let Plan::Fixed(orders) = schedule.plan(&shape, &Weights::unit(&shape), &Options::default())? else {
//!     unreachable!("1F1B does not decide online");
//! };
//! let first: Vec<String> = orders.rank(Rank(0)).iter().map(ToString::to_string).collect();
//! assert_eq!(first, ["0F0", "0F1", "0B0", "0F2", "0B1", "0B2"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! **To add a schedule**: write `schedules/my_schedule.rs` with a `SCHEDULE` that implements [`Schedule`], and
//! add the line `my_schedule,` in `registry.rs`. Everything else follows, tests included.
//!
//! [`csv`] reads and writes PyTorch's schedule files, [`time`] gives start and end of every operation in plain
//! numbers.
//!
//! Deliberately absent: links and memory accounts (they are `pipestep-step`'s), files, printing.

mod construct;
pub mod csv;
mod deadlock;
mod op;
mod order;
mod policy;
mod registry;
mod schedule;
mod shape;
mod timing;

pub use op::{Kind, Op, OpError};
pub use order::{Deadlock, OrderError, Orders, Stuck};
pub use policy::InOrder;
pub use registry::{all, find};
pub use schedule::{
    Choice, Chunks, Entry, OptionSpec, Options, Plan, Policy, Ready, Refusal, Schedule, Weights,
};
pub use shape::{MicroBatch, Placement, Rank, Shape, ShapeError, Stage};
pub use timing::{Timed, peaks, settle, time};
