//! The tables that a job prints: where its time went, its checkpoints, its failures, its many runs.

use comfy_table::Table;
use pipestep_engine::{Bytes, Duration, Time};
use pipestep_job::{CheckpointRecord, Estimate, FailureRecord, RunsSummary};

use super::JobView;
use super::make_result::{cause_name, has_two_places, place_name, state_name};
use crate::table::{align, new_table};
use crate::units::{bytes_short, counted, trimmed};

/// More checkpoints or failures than this are not listed one by one.
pub(super) const LISTED: usize = 12;

/// Every second of run 0 with its cause.
pub(super) fn time_table(view: &JobView) -> Table {
    let outcome = view.outcome;
    let elapsed = outcome.elapsed.as_nanos() as f64;
    let mut table = new_table(&["where the time went", "time", "share", ""]);
    let mut row = |name: &str, nanos: i64, what: &str| {
        let share = if elapsed > 0.0 { nanos as f64 / elapsed } else { 0.0 };
        table.add_row([name.to_owned(), signed_time(nanos), share_of_wall(share), what.to_owned()]);
    };
    row("useful", outcome.useful.as_nanos() as i64, "work done for the first time");
    for (name, nanos) in outcome.lost.by_cause() {
        if nanos != 0 {
            row(&name.replace('_', " "), nanos, meaning(name));
        }
    }
    row("all", outcome.elapsed.as_nanos() as i64, "on the clock");
    align(&mut table, &[0, 3]);
    table
}

/// What a loss is, in a few words.
pub(super) fn meaning(cause: &str) -> &'static str {
    match cause {
        "save_stall" => "paused for saves, or waiting for a buffer",
        "redo" => "work done again after failures",
        "detection" => "failed, and nobody has noticed",
        "downtime" => "down",
        "spare_wait" => "waiting for a machine: the spares have run out",
        "recovery" => "reading the checkpoint and restarting",
        "fewer_replicas" => "fewer replicas at work, or taking them back",
        "straggler" => "what slow ranks and windows added",
        "dropped" => "work thrown away: gradients that no step waited for",
        "input_wait" => "waiting for input",
        _ => "",
    }
}

/// A time that may be below zero.
fn signed_time(nanos: i64) -> String {
    let time = Duration::from_nanos(nanos.unsigned_abs());
    if nanos < 0 { format!("-{time}") } else { time.to_string() }
}

/// A share of wall time in percent, as fine as a loss needs.
pub(super) fn share_of_wall(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// The first and the last ones where there are many; each with whether a gap follows it.
fn listed<T>(all: &[T]) -> Vec<(usize, &T)> {
    let numbered = all.iter().enumerate();
    if all.len() <= LISTED {
        return numbered.collect();
    }
    let half = LISTED / 2;
    numbered.filter(|(index, _)| *index < half || index + half >= all.len()).collect()
}

/// What became of each request for a checkpoint.
pub(super) fn checkpoint_table(view: &JobView) -> Table {
    let two_places = has_two_places(view);
    let mut header =
        vec!["", "asked at", "captured", "training on", "write from", "write to", "usable", "state"];
    header.extend(two_places.then_some("place"));
    let mut table = new_table(&header);
    for (index, record) in listed(&view.outcome.checkpoints) {
        let mut row = checkpoint_row(index, record);
        row.extend(two_places.then(|| place_name(record.place).to_owned()));
        table.add_row(row);
    }
    align(&mut table, &[7, 8]);
    table
}

fn checkpoint_row(index: usize, record: &CheckpointRecord) -> Vec<String> {
    let at = |time: Option<Time>| time.map_or_else(|| "-".to_owned(), |time| time.to_string());
    vec![
        (index + 1).to_string(),
        record.requested.to_string(),
        at(record.capture),
        at(record.staging_end),
        at(record.upload_start),
        at(record.upload_end),
        at(record.durable),
        state_name(record.state).to_owned(),
    ]
}

/// What each failure cost. The two meanings of redo stand side by side.
pub(super) fn failure_table(view: &JobView) -> Table {
    let mut header = vec!["", "failed at", "cause", "back to", "redo, clock", "redo, work", "saves lost"];
    let has_replay = view.outcome.failures.iter().any(|record| record.replay.is_some());
    header.extend(has_replay.then_some("replayed items"));
    let mut table = new_table(&header);
    for (index, record) in listed(&view.outcome.failures) {
        let mut row = failure_row(view, index, record);
        row.extend(has_replay.then(|| {
            let replay = record.replay.map(|replay| replay.handed_out.saturating_sub(replay.restored));
            replay.map_or_else(|| "-".to_owned(), |items| items.to_string())
        }));
        table.add_row(row);
    }
    align(&mut table, &[2]);
    table
}

fn failure_row(view: &JobView, index: usize, record: &FailureRecord) -> Vec<String> {
    let back_to = match (record.recovered_to, has_two_places(view)) {
        (Time::ZERO, _) => "the start".to_owned(),
        (time, true) => format!("{time}, {}", place_name(record.place)),
        (time, false) => time.to_string(),
    };
    let lost = match (record.snapshots_lost, record.pending_bytes) {
        (0, _) => "-".to_owned(),
        (count, Bytes::ZERO) => count.to_string(),
        (count, bytes) => format!("{count}, {} unwritten", bytes_short(bytes)),
    };
    vec![
        (index + 1).to_string(),
        record.at.to_string(),
        cause_name(view.outcome, record.origin).to_owned(),
        back_to,
        record.redo_wall.to_string(),
        record.redo_useful.to_string(),
        lost,
    ]
}

/// What all runs came to.
pub(super) fn runs_table(summary: &RunsSummary) -> Table {
    let name = counted(summary.runs as u64, "run");
    let mut table = new_table(&[name.as_str(), "mean", "std. error", "p5", "median", "p95"]);
    let mut row = |name: &str, estimate: &Estimate, shown: &dyn Fn(f64) -> String| {
        let [_, p5, _, p50, _, p95, _] = estimate.percentiles;
        let cells = [estimate.mean, estimate.standard_error, p5, p50, p95].map(shown);
        table.add_row(std::iter::once(name.to_owned()).chain(cells));
    };
    let time = |nanos: f64| signed_time(nanos.round() as i64);
    row("wall time", &summary.elapsed, &time);
    row("useful", &summary.useful, &time);
    row("useful fraction", &summary.useful_fraction, &|share| format!("{:.3} %", share * 100.0));
    row("failures", &summary.failures, &|count| trimmed(count, 2));
    for (name, estimate) in &summary.lost {
        let is_shown = estimate.min != 0.0 || estimate.max != 0.0;
        if is_shown {
            row(&name.replace('_', " "), estimate, &time);
        }
    }
    align(&mut table, &[0]);
    table
}
