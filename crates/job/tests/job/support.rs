//! What the tests share: reading the oracle's numbers and building jobs from them.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_job::{Backlog, Checkpoint, JobInputs, JobOutcome, Mode, Requests, Spread, Trigger, Write};
use serde_json::Value;

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> Value {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

pub(crate) fn cases(name: &str) -> Vec<Value> {
    data(name)["cases"].as_array().unwrap().clone()
}

/// The number under a key of a row.
pub(crate) fn number(row: &Value, key: &str) -> f64 {
    row[key].as_f64().unwrap()
}

/// Equal but for the digits that the oracle was printed without.
pub(crate) fn close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= 1e-9 * want.abs().max(1e-3), "{what}: {got}, expected {want}");
}

pub(crate) fn nanos(seconds: &Value) -> u64 {
    (seconds.as_f64().unwrap() * 1e9).round() as u64
}

pub(crate) fn length(seconds: &Value) -> Duration {
    Duration::from_nanos(nanos(seconds))
}

pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::from_nanos((seconds * 1e9).round() as u64)
}

pub(crate) fn instant(seconds: &Value) -> Time {
    Time::from_nanos(nanos(seconds))
}

/// An integer, or an exact ratio as text, as a float (exact enough below 2^53).
pub(crate) fn ratio(value: &Value) -> f64 {
    let Some(text) = value.as_str() else {
        return value.as_f64().unwrap();
    };
    match text.split_once('/') {
        Some((above, below)) => above.parse::<f64>().unwrap() / below.parse::<f64>().unwrap(),
        None => text.parse().unwrap(),
    }
}

pub(crate) fn rate(value: &Value) -> Rate {
    Rate::per_second(value.as_u64().unwrap()).unwrap()
}

/// A checkpoint asked for every so many useful seconds, written in the background by a writer with a queue.
pub(crate) fn queued(every: Duration, staging: Duration, write: Duration) -> Checkpoint {
    Checkpoint {
        mode: Mode::Async { staging, backlog: Backlog::Queue, buffer: None },
        size: None,
        write: Write::Time(Spread::Fixed(write)),
        requests: Requests { trigger: Trigger::Work, first: None, every: Spread::Fixed(every), count: None },
        commit_delay: Duration::ZERO,
        near: None,
    }
}

pub(crate) fn with_size(mut checkpoint: Checkpoint, size: u64) -> Checkpoint {
    checkpoint.size = Some(Bytes::new(size));
    checkpoint
}

/// A job that only stops at its horizon.
pub(crate) fn until(horizon: Time) -> JobInputs {
    let mut job = JobInputs::of_work(Duration::ZERO);
    job.work = None;
    job.horizon = Some(horizon);
    job
}

/// Whether samples are to be so large that a standard error is half a percent also where that takes minutes: with
/// `PIPESTEP_LONG_RUNS=1`, in a release build.
pub(crate) fn is_long_run() -> bool {
    std::env::var_os("PIPESTEP_LONG_RUNS").is_some()
}

/// Useful time and losses fill the whole run, exactly.
pub(crate) fn adds_up(outcome: &JobOutcome) {
    assert_eq!(
        outcome.useful.as_nanos() as i64 + outcome.lost.total_nanos(),
        outcome.elapsed.as_nanos() as i64,
        "{:?}",
        outcome.lost
    );
}
