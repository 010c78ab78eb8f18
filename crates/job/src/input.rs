//! The input of a job of weeks: workers that make it, a buffer, and what a resume must replay.
//!
//! An item is whatever the buffer counts: a batch, or a sequence. Between storage and step there are no packs
//! here; see [`crate::supply()`] for those.

use pipestep_engine::{Bytes, Duration, Rate, Time};

use crate::Spread;

/// What feeds the steps of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// A step without waiting.
    pub step: Duration,
    /// Items that a step takes out of the buffer when it starts.
    pub items_per_step: u32,
    /// Workers that make items, each one delivery at a time.
    pub workers: u32,
    /// The time that a worker takes for a delivery, besides reading it.
    pub make: Spread,
    /// Items in a delivery.
    pub delivery: u32,
    /// A worker starts a delivery when fewer items than this are in the buffer and under way.
    pub prefetch: u32,
    /// What is read for a delivery; `None`: nothing.
    pub read: Option<InputRead>,
    /// Times in which workers start nothing.
    pub stops: Vec<WorkerStop>,
}

/// What is read for each delivery.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputRead {
    /// Bytes of a delivery.
    pub bytes: Bytes,
    /// From where.
    pub from: ReadFrom,
    /// A local copy of everything read once.
    pub cache: Option<InputCache>,
}

/// Where input is read from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReadFrom {
    /// The storage that checkpoints go to, shared with their writes and reads.
    Storage,
    /// A place of its own, at this bandwidth for each worker.
    Rate(Rate),
}

/// A local copy of what has been read once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputCache {
    /// Items after which everything has been read once.
    pub epoch_items: u64,
    /// The bandwidth of the local copy, for each worker.
    pub rate: Rate,
}

/// Workers that stop for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerStop {
    /// From when on.
    pub from: Time,
    /// Until when; [`Time::MAX`]: for good.
    pub to: Time,
    /// How many.
    pub workers: u32,
}

/// Storage whose bandwidth checkpoint writes, restores and input share: what uses it at the same time gets
/// equal parts of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Storage {
    /// What a single read gets.
    pub read: Rate,
    /// What a single write gets.
    pub write: Rate,
}

/// Totals of the input of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InputTotals {
    /// Steps begun, those done again included.
    pub steps: u64,
    /// Steps that waited for input.
    pub steps_waited: u64,
    /// The longest wait of a step.
    pub longest_wait: Duration,
    /// Items taken from the data set, those taken again included.
    pub handed_out: u64,
    /// Items that failures made the job take again.
    pub replayed: u64,
}

/// What a failure makes the input replay, in items from the start of the data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replay {
    /// Items taken from the data set: the next in order, if nothing is lost.
    pub handed_out: u64,
    /// Items in finished steps.
    pub trained: u64,
    /// Items in the checkpoint: the next in order after the resume.
    pub restored: u64,
}
