//! The input of a job: storage, readers and workers that make items, a buffer, the copy to the device, and what a
//! resume must replay.
//!
//! An item is whatever the buffer counts: a batch, a sequence, or a pack of samples.

use pipestep_engine::{Bytes, Duration, Rate, Time};

use crate::{Packing, Spread};

/// What feeds the steps of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    /// A step without waiting.
    pub step: Duration,
    /// Items that a step takes when it starts.
    pub items_per_step: u32,
    /// Workers that make items, each one delivery at a time.
    pub workers: u32,
    /// The time that a worker takes for a delivery, besides reading it.
    pub make: Spread,
    /// Items in a delivery.
    pub delivery: u32,
    /// A delivery is begun when fewer items than this are on the host: being read or made, in the buffer, or being
    /// copied to the device.
    pub prefetch: u32,
    /// What is read for a delivery; `None`: nothing.
    pub read: Option<InputRead>,
    /// Readers that fetch deliveries for the workers, each one at a time; `None`: a worker reads its own.
    pub readers: Option<u32>,
    /// What items are packed from; `None`: they are as they are.
    pub packing: Option<Packing>,
    /// How items come to the device; `None`: a step takes them from the host.
    pub copy: Option<DeviceCopy>,
    /// Times in which workers start nothing.
    pub stops: Vec<WorkerStop>,
}

/// The copy of the items of a step from the host to the device, one step's after another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceCopy {
    /// How long it takes.
    pub time: Duration,
    /// Steps whose items are on the device at once, each from the start of their copy to the end of the step.
    pub slots: u32,
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
    /// What they were packed from; nothing without packing.
    pub packed: PackTotals,
}

/// Totals of the packs handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackTotals {
    /// Samples begun.
    pub samples: u64,
    /// Their tokens in packs.
    pub tokens: u64,
    /// Token slots of the packs, used or not.
    pub slots: u64,
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
    /// Where packing goes on; `None` without packing.
    pub packer: Option<PackPoint>,
}

/// How far packing has come: what a checkpoint has to hold of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackPoint {
    /// The sample that comes next, counted from the start of the job.
    pub sample: u64,
    /// Its tokens that are in a pack already: the rest is kept for the next one.
    pub offset: u64,
}
