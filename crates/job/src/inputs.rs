//! What a job is made of: plain data with public fields, validated by [`JobInputs::check`].
//!
//! The names are those of the scenario (design section 4), so that a TOML layer is a translation of units and
//! nothing else. Combinations that mean nothing cannot be written down: a synchronous save has no buffers.

use pipestep_engine::{Bytes, Duration, Rate, Time};

use crate::Spread;
use crate::input::{Input, Storage};
use crate::stragglers::Stragglers;

/// A job: what it has to do and everything that gets in its way.
#[derive(Clone, Debug, PartialEq)]
pub struct JobInputs {
    /// Useful time to do. At least one of `work` and `horizon` is needed; the first to come ends the run.
    pub work: Option<Duration>,
    /// The wall time at which the run stops, whatever is done by then.
    pub horizon: Option<Time>,
    /// How the job saves; `None`: never, so that a failure goes back to the start.
    pub checkpoint: Option<Checkpoint>,
    /// What breaks, and how it comes back.
    pub faults: Faults,
    /// What slows useful work down.
    pub stragglers: Stragglers,
    /// What feeds the steps; `None`: input is always there.
    pub input: Option<Input>,
    /// Storage that checkpoints and input share; `None`: they have nothing in common.
    pub storage: Option<Storage>,
    /// The seed of every random draw.
    pub seed: u64,
}

/// How and when a job saves its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Whether training waits for the write.
    pub mode: Mode,
    /// The size of one checkpoint; needed for bytes in buffers and for [`Write::Rate`].
    pub size: Option<Bytes>,
    /// How long a write takes.
    pub write: Write,
    /// When saves are asked for.
    pub requests: Requests,
    /// From the end of the write until the checkpoint can be used; occupies nothing.
    pub commit_delay: Duration,
    /// A nearer, faster place that survives some of the failures.
    pub near: Option<NearTier>,
}

/// Whether training waits for the write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// Training is paused during the whole write and the commit delay.
    Sync,
    /// Training is paused while a snapshot is copied into a buffer; one writer then writes the buffers in
    /// the background, first in, first out.
    Async {
        /// The pause for the copy.
        staging: Duration,
        /// What happens when there is no free buffer.
        backlog: Backlog,
        /// The size of one buffer; `None`: as large as needed.
        buffer: Option<Bytes>,
    },
}

/// What a request does when no buffer is free. A buffer is held from the capture to the end of its write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backlog {
    /// Training waits for a buffer.
    Block {
        /// How many buffers there are.
        buffers: u32,
    },
    /// There are as many buffers as it takes.
    Queue,
    /// The request is dropped.
    Skip {
        /// How many buffers there are.
        buffers: u32,
    },
    /// The oldest snapshot whose write has not begun is overwritten; if there is none, the request is dropped.
    Replace {
        /// How many buffers there are.
        buffers: u32,
    },
}

/// How long a write takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Write {
    /// The size over this bandwidth.
    Rate(Rate),
    /// This long, whatever the size; random ones are drawn for each write.
    Time(Spread),
    /// The size over the write rate of [`JobInputs::storage`], shared with whatever else uses it.
    Storage,
}

/// When saves are asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Requests {
    /// What `first` and `every` count.
    pub trigger: Trigger,
    /// The first request; `None`: after one interval.
    pub first: Option<Duration>,
    /// From one request to the next; drawn for each where it is random.
    pub every: Spread,
    /// So many requests, skipped ones included; `None`: without end.
    pub count: Option<u64>,
}

/// What the interval between two requests counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// The clock on the wall: requests at fixed instants, none while the job is down or recovering.
    Wall,
    /// The clock since the start or the latest resume.
    WallSinceResume,
    /// Useful time since the latest capture, skipped request or resume. Saving every n steps is this with
    /// n times the length of a step.
    Work,
}

/// Saves to a near place (a neighbour's memory, a local disk) between the far ones.
///
/// Synchronous saves go to the near place, and every `far_every`-th to the far one instead. With
/// asynchronous saves the staged snapshot is the near copy, and every `far_every`-th is written to the far
/// place in the background. Only the newest near copy is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NearTier {
    /// How long a synchronous near save takes; of no use to asynchronous ones, whose staging it is.
    pub write: Duration,
    /// Every so many saves one goes to the far place.
    pub far_every: u32,
    /// The share of failures that the near copy survives, where the cause does not say.
    pub survives: f64,
    /// How long it takes to come back from the near copy.
    pub recovery: Recovery,
}

/// How long it takes to come back from a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Recovery {
    /// This long; random ones are drawn for each recovery.
    Fixed(Spread),
    /// The size of a checkpoint over the bandwidth, and the restart.
    Read {
        /// The bandwidth of the read.
        bandwidth: Rate,
        /// From the end of the read until training goes on.
        restart: Duration,
    },
    /// The size of a checkpoint over the read rate of [`JobInputs::storage`], and the restart.
    Storage {
        /// From the end of the read until training goes on.
        restart: Duration,
    },
}

/// What breaks, when, and how the job comes back.
#[derive(Clone, Debug, PartialEq)]
pub struct Faults {
    /// Failures at fixed instants, in any order.
    pub at: Vec<Time>,
    /// Random failures; each source draws from its own stream.
    pub sources: Vec<FaultSource>,
    /// From a failure until it is noticed; the job is idle, and further failures are not.
    pub detection: Duration,
    /// From the notice until recovery starts; failures are ignored.
    pub downtime: Spread,
    /// From there until training goes on.
    pub recovery: Recovery,
    /// Whether a failure during recovery counts, and starts the downtime again.
    pub recovery_can_fail: bool,
    /// Machines kept warm to replace failed ones; `None`: a replacement is always there.
    pub spares: Option<Spares>,
}

/// A random source of failures.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSource {
    /// Its name: that of its random stream, and of its failures in the report.
    pub name: String,
    /// Between two failures of one device. What is not exponential is a renewal: a device's clock starts
    /// again when it fails.
    pub between: Spread,
    /// How many devices fail independently of each other; 1 for what hits the whole job at once.
    pub devices: u32,
    /// What a failure can be due to, one of which is drawn for each; must not be empty.
    pub causes: Vec<Cause>,
}

/// What a failure is due to.
#[derive(Clone, Debug, PartialEq)]
pub struct Cause {
    /// Its name.
    pub name: String,
    /// Its weight among the causes of a source.
    pub weight: u32,
    /// The share of its failures that the near copy survives; `None`: as [`NearTier::survives`] says.
    pub near_survives: Option<f64>,
    /// Whether a machine is lost, so that a spare is needed.
    pub loses_machine: bool,
    /// Its own downtime; `None`: as [`Faults::downtime`] says.
    pub downtime: Option<Spread>,
}

/// Machines that wait to replace failed ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spares {
    /// How many there are.
    pub count: u32,
    /// How long a failed machine is away before it is a spare itself.
    pub repair: Spread,
    /// What the job does with no spare left.
    pub when_out: WhenOut,
}

/// What a job does when a machine is lost and there is no spare for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenOut {
    /// It waits for the first machine to come back from repair.
    Wait,
    /// It goes on with fewer data-parallel replicas, until repair gives them back.
    Shrink(Shrink),
}

/// A job that can go on with fewer data-parallel replicas than it has.
///
/// A machine that is missing stops a replica, whose other machines stand in for the next ones to be lost. What
/// is left of R replicas works on its own part of every step, so that useful work is done at (R − missing) / R
/// of the speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shrink {
    /// The replicas of the whole job.
    pub replicas: u32,
    /// With fewer than these the job waits for machines to come back.
    pub least: u32,
    /// Machines of a replica.
    pub machines: u32,
    /// How long training pauses to take replicas back. Going down to fewer takes no longer than the restart
    /// after the failure.
    pub regroup: Duration,
}

impl JobInputs {
    /// A job that does `work` with nothing in its way: the place to start from.
    pub fn of_work(work: Duration) -> Self {
        Self {
            work: Some(work),
            horizon: None,
            checkpoint: None,
            faults: Faults::none(),
            stragglers: Stragglers::default(),
            input: None,
            storage: None,
            seed: 0,
        }
    }
}

impl Faults {
    /// No failures.
    pub const fn none() -> Self {
        Self {
            at: Vec::new(),
            sources: Vec::new(),
            detection: Duration::ZERO,
            downtime: Spread::ZERO,
            recovery: Recovery::Fixed(Spread::ZERO),
            recovery_can_fail: false,
            spares: None,
        }
    }
}

impl FaultSource {
    /// A source of one cause with the source's own name.
    pub fn single(name: &str, between: Spread, devices: u32, loses_machine: bool) -> Self {
        let cause =
            Cause { name: name.to_owned(), weight: 1, near_survives: None, loses_machine, downtime: None };
        Self { name: name.to_owned(), between, devices, causes: vec![cause] }
    }

    /// Failures a second of all devices together, by their mean.
    pub fn rate(&self) -> f64 {
        f64::from(self.devices) * 1e9 / self.between.mean_nanos()
    }
}

impl Backlog {
    /// How many buffers there are; `None`: as many as it takes.
    pub const fn buffers(self) -> Option<u32> {
        match self {
            Self::Queue => None,
            Self::Block { buffers } | Self::Skip { buffers } | Self::Replace { buffers } => Some(buffers),
        }
    }
}
