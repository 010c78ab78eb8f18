//! From an outcome to the `job` part of the JSON contract.

use std::collections::BTreeMap;

use pipestep_engine::{Bytes, Duration, Time};
use pipestep_job::{
    CheckpointRecord, CheckpointState, Estimate, FailureOrigin, FailureRecord, InputTotals, JobOutcome,
    PERCENTILES, Place, Reference, ReferenceUnit, RunsSummary, SaveTotals, StragglerTotals, days,
};

use super::JobView;
use super::result::{
    BacklogResult, CauseResult, CheckResult, CheckpointResult, FailureResult, InputResult, JobResult,
    LateStepsResult, PackedResult, Quantities, ReplayResult, ReplicasResult, SavesResult, TargetResult,
};

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
            saves: outcome.saves.as_ref().map(saves),
            backlog: outcome.saves.as_ref().map(backlog),
            failures: failures.map(|record| FailureResult::new(outcome, record, two_places)).collect(),
            failures_ignored: outcome.failures_ignored,
            causes: causes(outcome),
            replicas: outcome.replicas.map(|totals| ReplicasResult {
                all: totals.all,
                fewest: totals.fewest,
                shrunk: totals.shrunk,
                short_ns: totals.short.as_nanos(),
            }),
            stragglers: outcome.stragglers.map(|totals| LateStepsResult::new(&totals)),
            input: outcome.input.as_ref().map(|totals| input(totals, outcome.lost.input_wait)),
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

fn saves(totals: &SaveTotals) -> SavesResult {
    SavesResult {
        requested: totals.requested,
        captured: totals.captured,
        durable: totals.durable,
        skipped: totals.skipped,
        lost: totals.lost,
        mean_commit_lag_ns: totals.commit_lag.as_nanos() / totals.durable.max(1),
        mean_writer_wait_ns: totals.writer_wait.as_nanos() / totals.writes_started.max(1),
    }
}

fn backlog(totals: &SaveTotals) -> BacklogResult {
    BacklogResult {
        grows: totals.backlog_grows,
        peak_bytes: totals.peak_bytes.map(Bytes::get),
        peak_at_ns: totals.peak_bytes.map(|_| totals.peak_at.as_nanos()),
    }
}

fn input(totals: &InputTotals, waited: Duration) -> InputResult {
    InputResult {
        steps: totals.steps,
        steps_waited: totals.steps_waited,
        mean_wait_ns: waited.as_nanos() / totals.steps.max(1),
        longest_wait_ns: totals.longest_wait.as_nanos(),
        handed_out: totals.handed_out,
        replayed: totals.replayed,
        packed: (totals.packed.slots > 0).then_some(PackedResult {
            samples: totals.packed.samples,
            tokens: totals.packed.tokens,
            slots: totals.packed.slots,
        }),
    }
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
    let matters = target.steps.is_some() || target.set_aside > Duration::ZERO || target.start.is_some();
    if !matters || !view.finishes() {
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
        start_date: target.start.map(|start| start.to_string()),
        expected_date: view.date_after(elapsed).map(|date| date.to_string()),
        date_percentiles: date_percentiles(view),
    })
}

fn date_percentiles(view: &JobView) -> BTreeMap<String, String> {
    let Some(summary) = view.summary() else { return BTreeMap::new() };
    let walls = PERCENTILES.iter().zip(summary.elapsed.percentiles);
    walls.filter_map(|(p, wall)| Some((format!("p{p}"), view.date_after(wall)?.to_string()))).collect()
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
                next_sample: replay.packer.map(|point| point.sample),
                next_token: replay.packer.map(|point| point.offset),
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
