//! A training job: checkpoints, faults, stragglers, and what remains as progress.
//!
//! A step's time says little about when a training run ends. This crate simulates the job around the step,
//! event by event on `pipestep-engine`: [`simulate`] takes plain [`JobInputs`] and returns a [`JobOutcome`]
//! in which every second is either useful or lost to one named cause.
//!
//! ```
//! use pipestep_engine::{Bytes, Duration, Rate, Time};
//! use pipestep_job::{
//!     Backlog, Checkpoint, Detail, JobInputs, Mode, Requests, Spread, Trigger, Write, simulate,
//! };
//!
//! let seconds = |count: u64| Duration::from_nanos(count * 1_000_000_000);
//! let mut job = JobInputs::of_work(seconds(100));
//! job.checkpoint = Some(Checkpoint {
//!     mode: Mode::Async {
//!         staging: Duration::from_nanos(500_000_000),
//!         backlog: Backlog::Block { buffers: 2 },
//!         buffer: None,
//!     },
//!     size: Some(Bytes::new(112_000_000_000)),
//!     write: Write::Rate(Rate::per_second(7_000_000_000).expect("not zero")),
//!     requests: Requests { trigger: Trigger::Wall, first: None, every: Spread::Fixed(seconds(20)), count: None },
//!     commit_delay: Duration::ZERO,
//!     near: None,
//! });
//! job.faults.at = vec![Time::from_nanos(50_000_000_000)];
//! let outcome = simulate(&job, 0, Detail::Full)?;
//! // The snapshot of 20 s was usable from 36.5 s on, that of 40 s was not yet: 30 s on the clock are lost.
//! assert_eq!(outcome.failures[0].redo_wall, seconds(30));
//! assert_eq!(outcome.failures[0].redo_useful, seconds(29));
//! # Ok::<(), pipestep_job::JobError>(())
//! ```
//!
//! Invariants of this crate:
//!
//! * useful time and losses add up to the wall time, to the nanosecond;
//! * a run is a function of its inputs and its number: no order of runs, no threads, no clock;
//! * a job that can never end is an error, not an endless loop.
//!
//! Deliberately absent: what a step consists of (`pipestep-step`), TOML, files, printing, threads.

mod calendar;
mod causes;
mod check;
pub mod closed_form;
mod error;
mod input;
mod inputs;
mod jitter;
mod optimum;
mod outcome;
mod packing;
mod progress;
mod ratio;
mod references;
mod replicas;
mod spread;
mod storage;
mod stragglers;
mod supply;
mod target;
mod timeline;
mod warning;
mod world;

pub use calendar::{CalendarStart, NotADate};
pub use causes::{FAILURE_PRESETS, FailurePreset, LLAMA3};
pub use error::{InputError, JobError};
pub use input::{
    DeviceCopy, Input, InputCache, InputRead, InputTotals, PackPoint, PackTotals, ReadFrom, Replay, Storage,
    WorkerStop,
};
pub use inputs::{
    Backlog, Cause, Checkpoint, FaultSource, Faults, JobInputs, Mode, NearTier, Recovery, Requests, Shrink,
    Spares, Trigger, WhenOut, Write,
};
pub use optimum::{SimulatedCost, best_interval};
pub use outcome::{
    Activity, BufferLevel, CauseTotal, CheckpointRecord, CheckpointState, Detail, FailureOrigin,
    FailureRecord, JobOutcome, Losses, Newest, Place, ReplicaTotals, Replicas, SaveTotals, Span,
    StragglerTotals,
};
pub use packing::{Packing, Rest, Sample, Samples, TokenLengths};
pub use ratio::Ratio;
pub use references::{Reference, ReferenceUnit};
pub use replicas::{Estimate, PERCENTILES, RunsSummary};
pub use spread::Spread;
pub use storage::{STORAGE_PRESETS, StoragePreset, storage_preset};
pub use stragglers::{Jitter, Ranks, Response, SlowDetection, SlowRanks, SlowWindow, Stragglers};
pub use supply::{Supply, SupplyCheckpoints, SupplyOutcome, supply};
pub use target::{TokenTarget, days};
pub use timeline::Timeline;
pub use warning::Warning;
pub use world::{simulate, simulate_every_step};
