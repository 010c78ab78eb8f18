//! The `job` part of the JSON contract: run 0 in full, and what all runs came to.
//!
//! Keys that design section 6 names, in its units: integer ns and bytes. What does not apply is left out.

use std::collections::BTreeMap;

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    CheckpointRecord, CheckpointState, Estimate, FailureOrigin, FailureRecord, JobOutcome, PERCENTILES,
    Place, Reference, ReferenceUnit, RunsSummary, StragglerTotals, days,
};
use serde::Serialize;

use super::JobView;

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
    /// The longest wait.
    pub longest_wait_ns: u64,
    /// Items taken from the data set, those taken again included.
    pub handed_out: u64,
    /// Items taken again.
    pub replayed: u64,
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

/// Causes that are always listed; others only where they cost something.
pub(super) const ALWAYS: [&str; 6] =
    ["save_stall", "redo", "downtime", "recovery", "straggler", "input_wait"];

impl JobResult {
    /// The contract's view of a job.
    pub fn new(view: &JobView) -> Self {
        let outcome = view.outcome;
        let two_places = has_two_places(view);
        let summary = view.summary();
        let checkpoints = outcome.checkpoints.iter();
        let failures = outcome.failures.iter();
        Self {
            elapsed_ns: outcome.elapsed.as_nanos(),
            useful_ns: outcome.useful.as_nanos(),
            useful_fraction: outcome.useful_fraction(),
            finished: outcome.finished,
            lost: lost(outcome),
            pause_total_ns: outcome.pause_total.as_nanos(),
            checkpoints: outcome
                .saves
                .map(|_| checkpoints.map(|record| CheckpointResult::new(record, two_places)).collect()),
            saves: outcome.saves.map(|saves| SavesResult {
                requested: saves.requested,
                captured: saves.captured,
                durable: saves.durable,
                skipped: saves.skipped,
                lost: saves.lost,
                mean_commit_lag_ns: saves.commit_lag.as_nanos() / saves.durable.max(1),
                mean_writer_wait_ns: saves.writer_wait.as_nanos() / saves.writes_started.max(1),
            }),
            backlog: outcome.saves.map(|saves| BacklogResult {
                grows: saves.backlog_grows,
                peak_bytes: saves.peak_bytes.map(pipestep_engine::Bytes::get),
                peak_at_ns: saves.peak_bytes.map(|_| saves.peak_at.as_nanos()),
            }),
            failures: failures.map(|record| FailureResult::new(outcome, record, two_places)).collect(),
            failures_ignored: outcome.failures_ignored,
            causes: causes(outcome),
            stragglers: outcome.stragglers.map(|totals| LateStepsResult::new(&totals)),
            input: outcome.input.as_ref().map(|totals| InputResult {
                steps: totals.steps,
                steps_waited: totals.steps_waited,
                longest_wait_ns: totals.longest_wait.as_nanos(),
                handed_out: totals.handed_out,
                replayed: totals.replayed,
            }),
            target: target(view),
            checks: view.inputs.references().iter().map(CheckResult::new).collect(),
            warnings: outcome.warnings.iter().map(ToString::to_string).collect(),
            runs: summary.as_ref().map(|summary| summary.runs),
            mean: summary.as_ref().map(|summary| Quantities::of(summary, |estimate| estimate.mean)),
            standard_error: summary
                .as_ref()
                .map(|summary| Quantities::of(summary, |estimate| estimate.standard_error)),
            percentiles: summary.as_ref().map(|summary| Quantities::of(summary, percentiles)),
        }
    }
}

/// Whether checkpoints go to two places, so that it matters which.
pub(super) fn has_two_places(view: &JobView) -> bool {
    view.inputs.checkpoint.as_ref().is_some_and(|checkpoint| checkpoint.near.is_some())
}

fn lost(outcome: &JobOutcome) -> BTreeMap<&'static str, i64> {
    let by_cause = outcome.lost.by_cause().into_iter();
    by_cause.filter(|(name, nanos)| *nanos != 0 || ALWAYS.contains(name)).collect()
}

fn causes(outcome: &JobOutcome) -> Vec<CauseResult> {
    let causes = outcome.causes.iter().map(|total| CauseResult {
        source: total.source.clone(),
        cause: total.cause.clone(),
        count: total.count,
    });
    causes.collect()
}

fn target(view: &JobView) -> Option<TargetResult> {
    let target = view.target;
    let counted = target.steps.is_some() || target.set_aside > Duration::ZERO;
    if !counted || !view.finishes() {
        return None;
    }
    let (elapsed, useful) = view.mean_times();
    Some(TargetResult {
        tokens: target.tokens.map(|(tokens, _)| tokens),
        steps: target.steps,
        step_ns: target.step.map(Duration::as_nanos),
        set_aside_ns: target.set_aside.as_nanos(),
        useful_days: useful / 86_400e9,
        loss_over_useful: if useful > 0.0 { elapsed / useful - 1.0 } else { 0.0 },
        expected_days: days(Duration::from_nanos(elapsed.round() as u64), target.set_aside),
    })
}

fn percentiles(estimate: &Estimate) -> BTreeMap<String, f64> {
    let named = PERCENTILES.iter().zip(estimate.percentiles);
    named.map(|(percent, value)| (format!("p{percent}"), value)).collect()
}

pub(super) const fn place_name(place: Place) -> &'static str {
    match place {
        Place::Far => "far",
        Place::Near => "near",
    }
}

pub(super) const fn state_name(state: CheckpointState) -> &'static str {
    match state {
        CheckpointState::Durable => "durable",
        CheckpointState::Unfinished => "unfinished",
        CheckpointState::Skipped => "skipped",
    }
}

/// What a failure is put down to.
pub(super) fn cause_name(outcome: &JobOutcome, origin: FailureOrigin) -> &str {
    match origin {
        FailureOrigin::Fixed => "listed",
        FailureOrigin::Eviction => "eviction",
        FailureOrigin::Cause(index) => {
            outcome.causes.get(index).map_or("unknown", |total| total.cause.as_str())
        }
    }
}

impl CheckpointResult {
    fn new(record: &CheckpointRecord, two_places: bool) -> Self {
        let nanos = |time: Option<Time>| time.map(Time::as_nanos);
        Self {
            requested_ns: record.requested.as_nanos(),
            capture_ns: nanos(record.capture),
            staging_end_ns: nanos(record.staging_end),
            upload_start_ns: nanos(record.upload_start),
            upload_end_ns: nanos(record.upload_end),
            durable_ns: nanos(record.durable),
            state: state_name(record.state),
            place: two_places.then_some(place_name(record.place)),
            work_ns: record.work.as_nanos(),
        }
    }
}

impl FailureResult {
    fn new(outcome: &JobOutcome, record: &FailureRecord, two_places: bool) -> Self {
        Self {
            at_ns: record.at.as_nanos(),
            recovered_to_ns: record.recovered_to.as_nanos(),
            redo_wall_ns: record.redo_wall.as_nanos(),
            redo_useful_ns: record.redo_useful.as_nanos(),
            cause: cause_name(outcome, record.origin).to_owned(),
            place: two_places.then_some(place_name(record.place)),
            snapshots_lost: record.snapshots_lost,
            pending_bytes: record.pending_bytes.get(),
            replay: record.replay.map(|replay| ReplayResult {
                handed_out: replay.handed_out,
                trained: replay.trained,
                restored: replay.restored,
            }),
        }
    }
}

impl LateStepsResult {
    fn new(totals: &StragglerTotals) -> Self {
        Self {
            steps: totals.steps,
            became_slow: totals.became_slow,
            noticed: totals.noticed,
            false_alarms: totals.false_alarms,
            false_alarm_steps: totals.false_alarm_steps,
            evicted: totals.evicted,
            taken_out: totals.taken_out,
            gradients_lost: totals.gradients_lost,
            gradients_late: totals.gradients_late,
            lateness: totals.lateness,
            lateness_max: totals.lateness_max,
        }
    }
}

impl CheckResult {
    fn new(reference: &Reference) -> Self {
        let unit = match reference.unit {
            ReferenceUnit::Interval => "interval_s",
            ReferenceUnit::UsefulFraction => "useful_fraction",
            ReferenceUnit::Loss => "loss",
        };
        Self { name: reference.name, value: reference.value, unit, note: reference.note }
    }
}

impl<T> Quantities<T> {
    fn of(summary: &RunsSummary, value: impl Fn(&Estimate) -> T) -> Self {
        let lost = summary.lost.iter();
        let shown = lost
            .filter(|(name, estimate)| ALWAYS.contains(name) || estimate.min != 0.0 || estimate.max != 0.0);
        Self {
            elapsed_ns: value(&summary.elapsed),
            useful_ns: value(&summary.useful),
            useful_fraction: value(&summary.useful_fraction),
            failures: value(&summary.failures),
            lost: shown.map(|(name, estimate)| (*name, value(estimate))).collect(),
        }
    }
}
