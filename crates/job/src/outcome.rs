//! What a job came to: totals that add up, and the record that pictures and tables are read from.

use pipestep_engine::{Bytes, Duration, Interval, Level, Time};

use crate::input::{InputTotals, Replay};
use crate::{Timeline, Warning};

/// The outcome of one run of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// Wall time from the start to the end of the run.
    pub elapsed: Duration,
    /// Work done for the first time.
    pub useful: Duration,
    /// The rest of the wall time by cause; with [`JobOutcome::useful`] exactly [`JobOutcome::elapsed`].
    pub lost: Losses,
    /// Whether the work was done (and not only the horizon reached).
    pub finished: bool,
    /// Time in which training stood still for saves: the copies, and the waiting for buffers.
    pub pause_total: Duration,
    /// How the saves went; `None` for a job that never saves.
    pub saves: Option<SaveTotals>,
    /// Failures that counted.
    pub failures_counted: u64,
    /// Failures that struck while the job was down or, unless recovery can fail, recovering.
    pub failures_ignored: u64,
    /// How often each cause of each random source struck and counted, in the order of the inputs.
    pub causes: Vec<CauseTotal>,
    /// What jittered and slow ranks came to; `None` without them.
    pub stragglers: Option<StragglerTotals>,
    /// How the job got by with fewer data-parallel replicas; `None` unless it can.
    pub replicas: Option<ReplicaTotals>,
    /// What the input came to; `None` if it is always there.
    pub input: Option<InputTotals>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
    /// Every capture and skip, in the order of the requests; empty for [`Detail::Summary`].
    pub checkpoints: Vec<CheckpointRecord>,
    /// Every failure that counted; empty for [`Detail::Summary`].
    pub failures: Vec<FailureRecord>,
    /// What the job was doing when, without gaps; empty for [`Detail::Summary`].
    pub timeline: Timeline,
    /// Bytes in snapshot buffers over time; empty for [`Detail::Summary`].
    pub backlog_curve: Vec<Level<1>>,
    /// From when on which capture was the newest to go back to; empty for [`Detail::Summary`]. The age of
    /// the newest usable checkpoint at an instant is the time since that capture.
    pub newest_curve: Vec<Newest>,
    /// How full the input buffer was, in stretches of equal length; empty for [`Detail::Summary`].
    pub buffer_curve: Vec<BufferLevel>,
    /// From when on training went on with how many replicas, where that changed; empty for [`Detail::Summary`].
    pub replica_curve: Vec<Replicas>,
}

/// How much of a run is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Totals only: what a run among thousands needs.
    Summary,
    /// Also every checkpoint, failure, span and curve.
    Full,
}

/// Wall time that was not useful, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Training paused for a copy or a synchronous write, or waiting for a buffer.
    pub save_stall: Duration,
    /// Work done again after a failure.
    pub redo: Duration,
    /// Failed, and nobody has noticed.
    pub detection: Duration,
    /// Down.
    pub downtime: Duration,
    /// Waiting for a machine because the spares have run out.
    pub spare_wait: Duration,
    /// Reading the checkpoint and restarting.
    pub recovery: Duration,
    /// What training with fewer replicas took longer, and pauses to take them back.
    pub fewer_replicas: Duration,
    /// Work done and thrown away: gradients that no step waited for.
    pub dropped: Duration,
    /// What stragglers added to useful work and to redo, and pauses to spread their work, in nanoseconds. It
    /// can be below zero by the scatter of steps that jitter made shorter than they are without it.
    pub straggler_nanos: i64,
    /// Waiting for input.
    pub input_wait: Duration,
}

/// Totals of the saves of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveTotals {
    /// Requests made.
    pub requested: u64,
    /// Snapshots captured.
    pub captured: u64,
    /// Snapshots that became usable at the far (or only) place.
    pub durable: u64,
    /// Requests dropped and snapshots overwritten.
    pub skipped: u64,
    /// Snapshots lost to failures before they were usable.
    pub lost: u64,
    /// Sum over the written snapshots of the time from the copy's end to the write's start.
    pub writer_wait: Duration,
    /// Snapshots whose write has started: what [`SaveTotals::writer_wait`] is the sum of.
    pub writes_started: u64,
    /// Sum over the durable snapshots of the time from capture to usable.
    pub commit_lag: Duration,
    /// Whether a write takes longer than the interval between requests.
    pub backlog_grows: bool,
    /// Most bytes in buffers at once, each held from capture to the end of its write; `None` without a size.
    pub peak_bytes: Option<Bytes>,
    /// When that was.
    pub peak_at: Time,
}

/// Totals of the ranks of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StragglerTotals {
    /// Steps done, those done again included.
    pub steps: u64,
    /// Ranks that became slow.
    pub became_slow: u64,
    /// Slow ranks that were noticed.
    pub noticed: u64,
    /// Healthy ranks that were taken for slow.
    pub false_alarms: u64,
    /// Steps in which that happened.
    pub false_alarm_steps: u64,
    /// Ranks that were replaced, healthy ones included.
    pub evicted: u64,
    /// Ranks whose work was spread over the others, healthy ones included.
    pub taken_out: u64,
    /// Gradients that steps went without.
    pub gradients_lost: u64,
    /// Gradients of ranks that no step waited for and that were applied.
    pub gradients_late: u64,
    /// By how many steps they were late in all.
    pub lateness: u64,
    /// By how many steps the latest was late.
    pub lateness_max: u32,
}

/// Totals of a job that can go on with fewer replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaTotals {
    /// The replicas of the whole job.
    pub all: u32,
    /// How often a failure left fewer than before.
    pub shrunk: u64,
    /// The fewest that trained.
    pub fewest: u32,
    /// Wall time in training with fewer than all.
    pub short: Duration,
}

/// From an instant on, the number of replicas that train.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replicas {
    /// From when on.
    pub at: Time,
    /// How many.
    pub count: u32,
}

/// Items in the input buffer during a stretch of time, those being copied to the device included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferLevel {
    /// Its start.
    pub from: Time,
    /// Its end.
    pub to: Time,
    /// The fewest.
    pub low: u64,
    /// The most.
    pub high: u64,
    /// The mean over its time.
    pub mean: f64,
}

/// How often a cause struck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseTotal {
    /// The source it belongs to.
    pub source: String,
    /// Its name.
    pub cause: String,
    /// Failures that counted.
    pub count: u64,
}

/// One request for a checkpoint, and what became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// When it was asked for.
    pub requested: Time,
    /// When training stopped for it; the state that it holds.
    pub capture: Option<Time>,
    /// When training went on.
    pub staging_end: Option<Time>,
    /// When its write began.
    pub upload_start: Option<Time>,
    /// When its write ended and its buffer was free.
    pub upload_end: Option<Time>,
    /// From when on it could be used.
    pub durable: Option<Time>,
    /// What became of it.
    pub state: CheckpointState,
    /// Where it went.
    pub place: Place,
    /// The useful work that it holds, from the start of the job; zero for a dropped request.
    pub work: Duration,
}

/// What became of a request for a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckpointState {
    /// Usable.
    Durable,
    /// Not usable at the end of the run, or lost to a failure.
    Unfinished,
    /// Dropped for want of a buffer, or overwritten by a newer one.
    Skipped,
}

/// Where a checkpoint goes to or comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The far, safe place; also the only one where there are no two.
    Far,
    /// The near place.
    Near,
}

/// One failure that counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureRecord {
    /// When it struck.
    pub at: Time,
    /// Where it came from.
    pub origin: FailureOrigin,
    /// The capture that the job goes back to; zero for the start.
    pub recovered_to: Time,
    /// From where.
    pub place: Place,
    /// Wall time since that capture or the latest resume, whichever is later.
    pub redo_wall: Duration,
    /// Useful work that has to be done again.
    pub redo_useful: Duration,
    /// Snapshots that it destroyed.
    pub snapshots_lost: u64,
    /// Bytes of those that had not been written.
    pub pending_bytes: Bytes,
    /// What the input has to replay; `None` if input is always there.
    pub replay: Option<Replay>,
}

/// Where a failure comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureOrigin {
    /// It was listed.
    Fixed,
    /// It was drawn; its cause is this one of [`JobOutcome::causes`].
    Cause(usize),
    /// The job went down itself, to replace slow ranks. Not counted as a failure.
    Eviction,
}

/// What the job was doing during an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// What.
    pub activity: Activity,
    /// When.
    pub interval: Interval,
}

/// What a job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Activity {
    /// Useful work, or work done again.
    Training,
    /// Waiting for a free buffer, or for its turn in line.
    Waiting,
    /// Copying a snapshot, or writing it while training waits.
    Staging,
    /// Failed, and nobody has noticed.
    Detecting,
    /// Down.
    Down,
    /// Waiting for a spare machine.
    SpareWait,
    /// Reading a checkpoint and restarting.
    Recovering,
    /// Spreading the work of slow ranks over the others.
    Rebalancing,
    /// Taking replicas back whose machines have been repaired.
    Regrouping,
    /// Waiting for input.
    InputWait,
}

/// From an instant on, the newest capture that a failure could go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Newest {
    /// From when on.
    pub at: Time,
    /// The capture.
    pub capture: Time,
}

impl JobOutcome {
    /// Useful time over wall time: goodput, between 0 and 1. The same as the effective training time ratio
    /// (ETTR) of Kokolis et al. (HPCA 2025) for a job that never queues.
    pub fn useful_fraction(&self) -> f64 {
        let elapsed = self.elapsed.as_nanos();
        if elapsed == 0 {
            return 0.0;
        }
        self.useful.as_nanos() as f64 / elapsed as f64
    }
}

impl Losses {
    /// Every cause with its name in the JSON result and its nanoseconds, in a fixed order.
    pub const fn by_cause(&self) -> [(&'static str, i64); 10] {
        [
            ("save_stall", self.save_stall.as_nanos() as i64),
            ("redo", self.redo.as_nanos() as i64),
            ("detection", self.detection.as_nanos() as i64),
            ("downtime", self.downtime.as_nanos() as i64),
            ("spare_wait", self.spare_wait.as_nanos() as i64),
            ("recovery", self.recovery.as_nanos() as i64),
            ("fewer_replicas", self.fewer_replicas.as_nanos() as i64),
            ("straggler", self.straggler_nanos),
            ("dropped", self.dropped.as_nanos() as i64),
            ("input_wait", self.input_wait.as_nanos() as i64),
        ]
    }

    /// The sum of all causes in nanoseconds.
    pub fn total_nanos(&self) -> i64 {
        self.by_cause().iter().map(|(_, nanos)| nanos).sum()
    }
}
