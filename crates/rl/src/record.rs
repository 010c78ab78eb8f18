//! What a picture of the rounds is drawn from: spans with their row, if recording is on.
//!
//! One idea: a run is generic over a [`Recorder`]; [`NoRecord`] keeps nothing and costs nothing, a
//! `Vec<Span>` keeps everything.

use pipestep_engine::{Interval, Time};

/// A bar of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it lies.
    pub row: Row,
    /// What it is.
    pub kind: SpanKind,
    /// From when to when.
    pub interval: Interval,
}

/// A row of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// A slot of an engine.
    Slot {
        /// Which engine.
        engine: u32,
        /// Which of its slots.
        slot: u32,
    },
    /// An engine as a whole.
    Engine(u32),
    /// A worker of a scoring pool.
    Worker {
        /// Which pool.
        pool: u32,
        /// Which worker.
        worker: u32,
    },
    /// The trainer.
    Trainer,
    /// All of them.
    Everything,
}

/// What a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A response (or a stint of it) in its slot.
    Response {
        /// Number of its sample, in order of launch.
        sample: u64,
        /// How the stint ended.
        end: StintEnd,
    },
    /// A sample being scored.
    Scoring {
        /// Its number.
        sample: u64,
    },
    /// A mini-step of an update.
    MiniStep {
        /// Updates finished before.
        update: u32,
        /// Which mini-step.
        step: u32,
    },
    /// The end of an update (reduction, optimizer).
    Finish {
        /// Updates finished before.
        update: u32,
    },
    /// Weights on their way: of one engine, or (row [`Row::Everything`]) of all.
    WeightSync {
        /// Updates in the weights.
        version: u32,
    },
    /// Colocated devices change to rollout or to training.
    Switch,
    /// In use by another job.
    OtherJob {
        /// Which, from 1.
        job: u32,
    },
    /// Down after a fault.
    Down,
}

/// How a stint of a response in its slot ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StintEnd {
    /// The response ended.
    Finished,
    /// The response ended, but its sample was dropped: too old, surplus, without use to its group, or lost.
    Dropped,
    /// It was aborted: the batch was full, a rival was faster, or its weights were too old.
    Aborted,
    /// It was interrupted and thrown away.
    Interrupted,
    /// Its engine went down or it is generated anew.
    Lost,
    /// The simulation ended.
    Open,
}

/// What a run does with its spans.
pub(crate) trait Recorder {
    /// Whether spans are wanted at all.
    const ON: bool;

    /// Takes a span.
    fn span(&mut self, span: Span);

    /// A sample is dropped whose response had ended.
    fn drop(&mut self, sample: u64);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NoRecord;

impl Recorder for NoRecord {
    const ON: bool = false;

    fn span(&mut self, _span: Span) {}

    fn drop(&mut self, _sample: u64) {}
}

impl Recorder for Vec<Span> {
    const ON: bool = true;

    fn span(&mut self, span: Span) {
        self.push(span);
    }

    fn drop(&mut self, sample: u64) {
        let ended = SpanKind::Response { sample, end: StintEnd::Finished };
        if let Some(span) = self.iter_mut().rev().find(|span| span.kind == ended) {
            span.kind = SpanKind::Response { sample, end: StintEnd::Dropped };
        }
    }
}

/// Records a bar from `start` to `end`, if bars are wanted.
pub(crate) fn bar<R: Recorder>(record: &mut R, row: Row, kind: SpanKind, start: Time, end: Time) {
    if R::ON {
        record.span(Span { row, kind, interval: Interval { start, end } });
    }
}
