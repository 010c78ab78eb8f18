//! Failures at fixed instants: the oracle's traces exactly, and the accounts of any job.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Backlog, Detail, JobInputs, Mode, Ratio, Recovery, SlowWindow, Spread, Trigger, simulate,
};
use proptest::prelude::*;

use crate::support::{adds_up, cases, instant, length, queued, seconds};

fn trace(inputs: &serde_json::Value) -> JobInputs {
    let mut job = JobInputs::of_work(length(&inputs["useful_seconds_to_do"]));
    job.checkpoint = Some(queued(
        length(&inputs["capture_every_useful_s"]),
        length(&inputs["staging_pause_s"]),
        length(&inputs["background_write_s"]),
    ));
    job.faults.at = inputs["failures_wall_s"].as_array().unwrap().iter().map(instant).collect();
    job.faults.downtime = Spread::Fixed(length(&inputs["downtime_s"]));
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(length(&inputs["recovery_s"])));
    job.faults.recovery_can_fail = inputs["recovery_vulnerable"].as_bool().unwrap();
    let window = |row: &serde_json::Value| SlowWindow {
        from: instant(&row["start_s"]),
        to: instant(&row["end_s"]),
        factor: Ratio::from_f64(row["factor"].as_f64().unwrap()).unwrap(),
    };
    job.stragglers.windows = inputs["slow_windows"].as_array().unwrap().iter().map(window).collect();
    job
}

#[test]
fn fixed_failures_walk_the_oracles_traces() {
    for case in cases("fault_traces.json") {
        let id = case["id"].as_str().unwrap();
        let want = &case["expected"];
        let outcome = simulate(&trace(&case["inputs"]), 0, Detail::Full).unwrap();
        adds_up(&outcome);
        assert_eq!(outcome.elapsed, length(&want["finish_wall_s"]), "{id}");
        let parts = &want["breakdown_s"];
        assert_eq!(outcome.useful, length(&parts["useful_first_time"]), "{id}");
        let lost = outcome.lost;
        let pairs = [
            ("redo", lost.redo),
            ("staging", lost.save_stall),
            ("downtime", lost.downtime),
            ("recovery", lost.recovery),
            ("slow_loss", Duration::from_nanos(lost.straggler_nanos as u64)),
        ];
        for (key, got) in pairs {
            assert_eq!(got, length(&parts[key]), "{id} {key}");
        }
        assert_eq!(outcome.failures.len() as u64, want["failures_counted"].as_u64().unwrap(), "{id}");
        assert_eq!(outcome.failures_ignored, want["failures_ignored"].as_u64().unwrap(), "{id}");
        let captures = want["log"].as_array().unwrap().iter().filter(|row| row["event"] == "capture");
        let captures: Vec<Time> = captures.map(|row| instant(&row["t"])).collect();
        let got: Vec<Time> = outcome.checkpoints.iter().filter_map(|record| record.capture).collect();
        // The oracle's logs stop after forty lines.
        assert!(got.starts_with(&captures) && (got.len() == captures.len() || got.len() > 20), "{id}");
    }
}

#[test]
fn a_failure_during_recovery_starts_the_downtime_again_if_recovery_can_fail() {
    let mut job = JobInputs::of_work(seconds(100.0));
    job.faults.at = vec![Time::from_nanos(10_000_000_000), Time::from_nanos(45_000_000_000)];
    job.faults.downtime = Spread::Fixed(seconds(20.0));
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(30.0)));
    let safe = simulate(&job, 0, Detail::Full).unwrap();
    assert_eq!((safe.failures.len(), safe.failures_ignored, safe.elapsed), (1, 1, seconds(160.0)));
    job.faults.recovery_can_fail = true;
    let hit = simulate(&job, 0, Detail::Full).unwrap();
    // 10 s of work, 20 down, 15 of recovery in vain, 20 down, 30 of recovery, 100 of work.
    assert_eq!((hit.failures.len(), hit.elapsed), (2, seconds(195.0)));
    assert_eq!(hit.failures[1].redo_wall, Duration::ZERO);
    assert_eq!(hit.failures[1].redo_useful, Duration::ZERO);
    adds_up(&hit);
}

#[test]
fn a_capture_at_the_horizon_counts_and_one_at_the_last_useful_second_does_not() {
    let mut job = JobInputs::of_work(seconds(100.0));
    job.checkpoint = Some(queued(seconds(20.0), Duration::ZERO, seconds(1.0)));
    let done = simulate(&job, 0, Detail::Full).unwrap();
    assert_eq!(done.checkpoints.len(), 4);
    job.horizon = Some(Time::from_nanos(40_000_000_000));
    let cut = simulate(&job, 0, Detail::Full).unwrap();
    assert_eq!(cut.checkpoints.len(), 2);
    assert!(!cut.finished && done.finished);
}

/// The rules of the traces once more, in floats and with none of the simulation's machinery: returns the end
/// and the work done again.
fn walk(job: &JobInputs, every: f64, staging: f64, write: f64, down: f64) -> (f64, f64) {
    let secs = |at: Time| at.as_nanos() as f64 / 1e9;
    let work = job.work.unwrap().as_secs_f64();
    let factor_at = |at: f64| {
        let inside = |window: &&SlowWindow| secs(window.from) <= at && at < secs(window.to);
        let factors = job.stragglers.windows.iter().filter(inside).map(|window| window.factor.as_f64());
        factors.fold(1.0, f64::max)
    };
    let mut edges: Vec<f64> =
        job.stragglers.windows.iter().flat_map(|w| [secs(w.from), secs(w.to)]).collect();
    edges.sort_by(f64::total_cmp);
    // When `amount` of work is done from `start` on, and how much of it is by `stop`.
    let run = |mut at: f64, mut amount: f64, stop: f64| loop {
        let edge = edges.iter().copied().find(|&edge| edge > at + 1e-12).unwrap_or(f64::INFINITY).min(stop);
        let factor = factor_at(at);
        if at + amount * factor <= edge {
            return (at + amount * factor, 0.0);
        }
        amount -= (edge - at) / factor;
        at = edge;
        if at >= stop {
            return (at, amount);
        }
    };
    let (mut now, mut done, mut furthest, mut redone, mut writer) = (0.0, 0.0, 0.0_f64, 0.0, 0.0_f64);
    let mut usable: Vec<(f64, f64)> = vec![(0.0, 0.0)];
    let mut failures = job.faults.at.iter().map(|&at| secs(at)).peekable();
    loop {
        while failures.next_if(|&at| at < now - 1e-9).is_some() {}
        let failure = failures.peek().copied().unwrap_or(f64::INFINITY);
        let target = (done + every).min(work);
        let (at, left) = run(now, target - done, failure);
        let reached = target - left;
        redone += (reached.min(furthest) - done).max(0.0);
        furthest = furthest.max(reached);
        let staged = at + staging;
        if left > 0.0 || (reached < work && staged > failure) {
            done = usable.iter().rev().find(|&&(durable, _)| durable <= failure).unwrap().1;
            usable.retain(|&(durable, _)| durable <= failure);
            (writer, now) = (0.0, failure + down);
            continue;
        }
        if reached >= work {
            return (at, redone);
        }
        done = reached;
        writer = writer.max(staged) + write;
        usable.push((writer, done));
        now = staged;
    }
}

pub(crate) fn any_job() -> impl Strategy<Value = JobInputs> {
    let saves = (1_u64..40, 0_u64..8, 0_u64..60, 0_u64..10, 0..5, 0_usize..3, 1_u32..4);
    let faults = (proptest::collection::vec(0_u64..900, 0..12), 0_u64..20, 0_u64..20, any::<bool>());
    let windows = proptest::collection::vec((0_u64..600, 1_u64..200, 100_u64..400), 0..4);
    (saves, faults, windows, 50_u64..600, 100_u64..1500).prop_map(
        |(saves, faults, windows, work, horizon)| {
            let units = |count: u64| Duration::from_nanos(count * 10 + 7);
            let (every, staging, write, delay, policy, trigger, buffers) = saves;
            let mut checkpoint = queued(units(every), units(staging), units(write));
            checkpoint.commit_delay = Duration::from_nanos(delay);
            checkpoint.requests.trigger = [Trigger::Work, Trigger::Wall, Trigger::WallSinceResume][trigger];
            let backlog = match policy {
                0 => Backlog::Queue,
                1 => Backlog::Block { buffers },
                2 => Backlog::Skip { buffers },
                _ => Backlog::Replace { buffers },
            };
            checkpoint.mode = if policy == 4 {
                Mode::Sync
            } else {
                Mode::Async { staging: units(staging), backlog, buffer: None }
            };
            let mut job = JobInputs::of_work(units(work));
            job.horizon = Some(Time::from_nanos(units(horizon).as_nanos()));
            job.checkpoint = Some(crate::support::with_size(checkpoint, 1_000));
            job.faults.at = faults.0.into_iter().map(|at| Time::from_nanos(at * 10)).collect();
            job.faults.downtime = Spread::Fixed(units(faults.1));
            job.faults.recovery = Recovery::Fixed(Spread::Fixed(units(faults.2)));
            job.faults.recovery_can_fail = faults.3;
            let window = |(from, length, percent): (u64, u64, u64)| SlowWindow {
                from: Time::from_nanos(from * 10),
                to: Time::from_nanos((from + length) * 10),
                factor: Ratio::new(percent, 100).unwrap(),
            };
            job.stragglers.windows = windows.into_iter().map(window).collect();
            job
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_happens_every_second_is_accounted_for(job in any_job()) {
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        prop_assert_eq!(&outcome, &simulate(&job, 0, Detail::Full).unwrap());
        let mut end = Time::ZERO;
        for span in outcome.timeline.iter() {
            prop_assert_eq!(span.interval.start, end);
            end = span.interval.end;
        }
        prop_assert_eq!(end.since(Time::ZERO), outcome.elapsed);
        // Durable checkpoints hold work in the order of their captures, and writes never overlap.
        let mut writer_free = Time::ZERO;
        for record in outcome.checkpoints.iter().filter(|record| record.durable.is_some()) {
            prop_assert!(record.upload_start.unwrap() >= writer_free);
            writer_free = record.upload_end.unwrap();
            prop_assert!(record.durable.unwrap() >= writer_free);
        }
        for failure in &outcome.failures {
            prop_assert!(failure.redo_wall >= failure.redo_useful || failure.redo_wall == Duration::ZERO);
        }
    }

    #[test]
    fn traces_agree_with_a_plain_walk(
        times in (10_u64..200, 0_u64..10, 1_u64..300, 1_u64..90),
        work in 100_u64..3_000,
        failures in proptest::collection::btree_set(0_u64..6_000, 0..8),
        windows in proptest::collection::vec((0_u64..4_000, 1_u64..2_000, 100_u64..300), 0..4),
    ) {
        let (every, staging, write, down) = times;
        let mut job = JobInputs::of_work(Duration::from_nanos(work * 1_000_000_000));
        let length = |count: u64| Duration::from_nanos(count * 1_000_000_000 + 7);
        job.checkpoint = Some(queued(length(every), length(staging), length(write)));
        // Off the grid of everything else, so that floats decide nothing.
        let off_grid = |at: u64| Time::from_nanos(at * 1_000_000_000 + 123_456_789);
        job.faults.at = failures.into_iter().map(off_grid).collect();
        job.faults.downtime = Spread::Fixed(length(down));
        let window = |(from, length, percent): (u64, u64, u64)| SlowWindow {
            from: Time::from_nanos(from * 1_000_000_000),
            to: Time::from_nanos((from + length) * 1_000_000_000),
            factor: Ratio::new(percent, 100).unwrap(),
        };
        job.stragglers.windows = windows.into_iter().map(window).collect();
        let outcome = simulate(&job, 0, Detail::Summary).unwrap();
        let secs = |count: u64| count as f64 + 7e-9;
        let (end, redone) = walk(&job, secs(every), secs(staging), secs(write), secs(down));
        prop_assert!((outcome.elapsed.as_secs_f64() - end).abs() < 2e-8, "{} {end}", outcome.elapsed);
        prop_assert!((outcome.lost.redo.as_secs_f64() - redone).abs() < 2e-8, "{redone}");
    }

    #[test]
    fn a_summary_has_the_same_totals_as_a_full_record(job in any_job()) {
        let full = simulate(&job, 0, Detail::Full).unwrap();
        let summary = simulate(&job, 0, Detail::Summary).unwrap();
        prop_assert_eq!(full.lost, summary.lost);
        prop_assert_eq!(full.saves, summary.saves);
        prop_assert!(summary.checkpoints.is_empty() && summary.timeline.is_empty());
    }
}
