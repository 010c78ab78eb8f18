//! The `job` part of the JSON contract: run 0 in full, and what all runs came to.
//!
//! Keys that design section 6 names, in its units: integer ns and bytes. What does not apply is left out.

use std::collections::BTreeMap;

use serde::Serialize;

/// One job.
#[derive(Clone, Debug, Serialize)]
pub struct JobResult {
    /// Wall time, from the start to the end of the run.
    pub elapsed_ns: u64,
    /// Work done for the first time.
    pub useful_ns: u64,
    /// The second over the first: goodput; ETTR for a job that never queues.
    pub useful_fraction: f64,
    /// Whether the work was done, and not only the horizon reached.
    pub finished: bool,
    /// The rest of the wall time in ns by cause; with `useful_ns` exactly `elapsed_ns`.
    pub lost: BTreeMap<&'static str, i64>,
    /// Time in which training stood still for saves.
    pub pause_total_ns: u64,
    /// Every request for a checkpoint and what became of it; left out for a job that never saves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<Vec<CheckpointResult>>,
    /// Totals of the saves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saves: Option<SavesResult>,
    /// What lay in buffers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog: Option<BacklogResult>,
    /// Failures that counted, in order.
    pub failures: Vec<FailureResult>,
    /// Failures that struck while the job was down, or recovering.
    pub failures_ignored: u64,
    /// Failures by cause, of random sources.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<CauseResult>,
    /// How a job that can go on with fewer data-parallel replicas did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<ReplicasResult>,
    /// Ranks that scatter or become slow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stragglers: Option<LateStepsResult>,
    /// Steps that waited for input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<InputResult>,
    /// When the work is expected to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<TargetResult>,
    /// Closed forms to hold beside the simulated values.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub checks: Vec<CheckResult>,
    /// What the user should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// How many runs `mean`, `standard_error` and `percentiles` are over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs: Option<usize>,
    /// Means over the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<Quantities<f64>>,
    /// How certain each mean is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<Quantities<f64>>,
    /// Percentiles over the runs: `p1` to `p99`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percentiles: Option<Quantities<BTreeMap<String, f64>>>,
}

/// A request for a checkpoint. Instants after the end of the run, or after the failure that lost it, are left out.
#[derive(Clone, Debug, Serialize)]
pub struct CheckpointResult {
    /// When it was asked for.
    pub requested_ns: u64,
    /// When training stopped for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capture_ns: Option<u64>,
    /// When training went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub staging_end_ns: Option<u64>,
    /// When its write began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_start_ns: Option<u64>,
    /// When its write ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_end_ns: Option<u64>,
    /// From when on it could be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub durable_ns: Option<u64>,
    /// `durable`, `unfinished` or `skipped`.
    pub state: &'static str,
    /// `near` or `far`, where there are two places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    /// The useful work that it holds.
    pub work_ns: u64,
}

/// Totals of the saves.
#[derive(Clone, Debug, Serialize)]
pub struct SavesResult {
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
    /// Mean time from capture to usable.
    pub mean_commit_lag_ns: u64,
    /// Mean time that a snapshot waits for the writer.
    pub mean_writer_wait_ns: u64,
}

/// What lay in buffers, each from capture to the end of its write.
#[derive(Clone, Debug, Serialize)]
pub struct BacklogResult {
    /// Whether a write takes longer than the interval between requests.
    pub grows: bool,
    /// The most at once, where the size of a checkpoint is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_bytes: Option<u64>,
    /// When that was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_at_ns: Option<u64>,
}

/// A failure that counted.
#[derive(Clone, Debug, Serialize)]
pub struct FailureResult {
    /// When it struck.
    pub at_ns: u64,
    /// The capture gone back to, 0 for the start.
    pub recovered_to_ns: u64,
    /// Wall time since that capture or the latest resume, whichever is later.
    pub redo_wall_ns: u64,
    /// Useful work to be done again.
    pub redo_useful_ns: u64,
    /// `listed`, `eviction`, or the name of the cause drawn.
    pub cause: String,
    /// `near` or `far`, where there are two places.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<&'static str>,
    /// Snapshots destroyed before they were usable.
    pub snapshots_lost: u64,
    /// Bytes of those that had not been written.
    pub pending_bytes: u64,
    /// Items the input hands out again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<ReplayResult>,
}

/// What a failure makes the input replay, in items from the start of the data set.
#[derive(Clone, Debug, Serialize)]
pub struct ReplayResult {
    /// Items handed out.
    pub handed_out: u64,
    /// Items in finished steps.
    pub trained: u64,
    /// Items in the checkpoint: where the input goes on.
    pub restored: u64,
    /// Where packing goes on: the sample that comes next, from the start of the data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_sample: Option<u64>,
    /// How many of its tokens are in a pack already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_token: Option<u64>,
}

/// How often a cause struck.
#[derive(Clone, Debug, Serialize)]
pub struct CauseResult {
    /// The source it belongs to.
    pub source: String,
    /// Its name.
    pub cause: String,
    /// Failures that counted.
    pub count: u64,
}

/// How a job got by with fewer data-parallel replicas.
#[derive(Clone, Debug, Serialize)]
pub struct ReplicasResult {
    /// All of them.
    pub all: u32,
    /// The fewest that trained.
    pub fewest: u32,
    /// How often a failure left fewer than before.
    pub shrunk: u64,
    /// Wall time in training with fewer than all.
    pub short_ns: u64,
}

/// Ranks that scatter or become slow.
#[derive(Clone, Debug, Serialize)]
#[expect(
    missing_docs,
    reason = "the names are those of `pipestep_job::StragglerTotals`, which documents them"
)]
pub struct LateStepsResult {
    pub steps: u64,
    pub became_slow: u64,
    pub noticed: u64,
    pub false_alarms: u64,
    pub false_alarm_steps: u64,
    pub evicted: u64,
    pub taken_out: u64,
    pub gradients_lost: u64,
    pub gradients_late: u64,
    pub lateness: u64,
    pub lateness_max: u32,
}

/// What fed the steps.
#[derive(Clone, Debug, Serialize)]
pub struct InputResult {
    /// Steps begun, those done again included.
    pub steps: u64,
    /// Steps that waited.
    pub steps_waited: u64,
    /// The mean wait of all steps.
    pub mean_wait_ns: u64,
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// Items taken from the data set, those taken again included.
    pub handed_out: u64,
    /// Items taken again.
    pub replayed: u64,
    /// What they were packed from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packed: Option<PackedResult>,
}

/// What the items handed out were packed from.
#[derive(Clone, Debug, Serialize)]
pub struct PackedResult {
    /// Samples begun.
    pub samples: u64,
    /// Their tokens in packs.
    pub tokens: u64,
    /// Token slots of the packs, used or not.
    pub slots: u64,
}

/// When the work is expected to be done.
#[derive(Clone, Debug, Serialize)]
pub struct TargetResult {
    /// Tokens to train on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Steps to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// How long a step is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_ns: Option<u64>,
    /// Time put aside.
    pub set_aside_ns: u64,
    /// Days of useful work.
    pub useful_days: f64,
    /// Losses over useful time, by the mean of the runs.
    pub loss_over_useful: f64,
    /// Days to the end, what is put aside included, by the mean of the runs.
    pub expected_days: f64,
    /// When the job starts: a date and time of day in ISO 8601.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_date: Option<String>,
    /// The date after `expected_days`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected_date: Option<String>,
    /// The date at each percentile of the runs: `p1` to `p99`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub date_percentiles: BTreeMap<String, String>,
}

/// A number from a formula.
#[derive(Clone, Debug, Serialize)]
pub struct CheckResult {
    /// Its name.
    pub name: &'static str,
    /// Seconds for an interval, otherwise a share of wall time.
    pub value: f64,
    /// `interval_s`, `useful_fraction` or `loss`.
    pub unit: &'static str,
    /// Where it is from and what it leaves out.
    pub note: &'static str,
}

/// A value for each quantity that differs from run to run.
#[derive(Clone, Debug, Serialize)]
pub struct Quantities<T> {
    /// Wall time.
    pub elapsed_ns: T,
    /// Useful time.
    pub useful_ns: T,
    /// Useful time over wall time.
    pub useful_fraction: T,
    /// Failures that counted.
    pub failures: T,
    /// Losses in ns, by cause.
    pub lost: BTreeMap<&'static str, T>,
}
