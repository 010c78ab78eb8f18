//! Saves without failures, and what a single failure goes back to: the oracle's cases, exactly.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Backlog, Checkpoint, CheckpointRecord, CheckpointState, Detail, InputError, JobError, Mode, Requests,
    Spread, Trigger, Warning, Write, simulate,
};
use serde_json::Value;

use crate::support::{adds_up, cases, instant, length, nanos, queued, rate, ratio, seconds, until};

fn book_checkpoint(scenario: &Value) -> Checkpoint {
    let count = |key: &str| scenario[key].as_u64().unwrap();
    Checkpoint {
        mode: Mode::Async {
            staging: Duration::from_nanos(count("staging_ns")),
            backlog: Backlog::Block { buffers: count("buffer_slots") as u32 },
            buffer: None,
        },
        size: Some(pipestep_engine::Bytes::new(count("payload_bytes"))),
        write: Write::Rate(rate(&scenario["upload_bytes_per_second"])),
        requests: Requests {
            trigger: Trigger::Wall,
            first: Some(Duration::from_nanos(count("first_capture_ns"))),
            every: Spread::Fixed(Duration::from_nanos(count("interval_ns"))),
            count: Some(count("snapshots")),
        },
        commit_delay: Duration::from_nanos(count("durability_delay_ns")),
        near: None,
    }
}

fn near(id: &str, key: &str, got: Option<Time>, want: f64) {
    let got = got.map(|at| at.as_nanos() as f64);
    assert!(got.is_some_and(|got| (got - want).abs() <= 8.0), "{id} {key}: {got:?}, expected {want}");
}

#[test]
fn finite_buffers_and_one_writer_agree_with_the_book() {
    for case in cases("book_checkpoint.json") {
        let id = case["id"].as_str().unwrap();
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let end = ratio(&want["final_durable_ns"]).ceil() as u64;
        let mut job = until(Time::from_nanos(end));
        job.checkpoint = Some(book_checkpoint(scenario));
        let plan = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&plan);
        let rows = want["snapshots"].as_array().unwrap();
        assert_eq!(plan.checkpoints.len(), rows.len(), "{id}");
        for (got, row) in plan.checkpoints.iter().zip(rows) {
            near(id, "requested", Some(got.requested), ratio(&row["requested_ns"]));
            near(id, "capture", got.capture, ratio(&row["capture_ns"]));
            near(id, "staging_end", got.staging_end, ratio(&row["staging_end_ns"]));
            near(id, "upload_start", got.upload_start, ratio(&row["upload_start_ns"]));
            near(id, "upload_end", got.upload_end, ratio(&row["upload_end_ns"]));
            near(id, "durable", got.durable, ratio(&row["durable_ns"]));
        }
        let pause = plan.pause_total.as_nanos() as f64;
        assert!((pause - ratio(&want["total_pause_union_ns"])).abs() <= 8.0, "{id}: {pause}");
        let peak = plan.saves.unwrap().peak_bytes.unwrap();
        assert_eq!(peak.get(), want["buffer_live_peak_bytes"].as_u64().unwrap(), "{id}");
    }
}

#[test]
fn a_failure_goes_back_to_the_latest_capture_that_is_usable() {
    for case in cases("book_checkpoint.json") {
        let id = case["id"].as_str().unwrap();
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let failure = scenario["failure_ns"].as_u64().unwrap();
        let mut job = until(Time::from_nanos(failure + 1));
        job.checkpoint = Some(book_checkpoint(scenario));
        job.faults.at = vec![Time::from_nanos(failure)];
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        let hit = outcome.failures[0];
        if want["redo_ns"].is_null() {
            assert_eq!(hit.recovered_to, Time::ZERO, "{id}");
        } else {
            near(id, "recovered", Some(hit.recovered_to), ratio(&want["recovery_capture_ns"]));
            let redo = hit.redo_wall.as_nanos() as f64;
            assert!((redo - ratio(&want["redo_ns"])).abs() <= 8.0, "{id}: redo {redo}");
        }
    }
}

fn timeline_checkpoint(inputs: &Value) -> Checkpoint {
    let buffers = inputs["buffer_slots"].as_u64().unwrap_or(2) as u32;
    let backlog = match inputs["policy"].as_str().unwrap() {
        "block" => Backlog::Block { buffers },
        "skip" => Backlog::Skip { buffers },
        _ => Backlog::Queue,
    };
    Checkpoint {
        mode: match inputs["policy"].as_str().unwrap() {
            "sync" => Mode::Sync,
            _ => Mode::Async { staging: length(&inputs["staging_pause_s"]), backlog, buffer: None },
        },
        size: Some(pipestep_engine::Bytes::new(inputs["payload_bytes"].as_u64().unwrap())),
        write: Write::Rate(rate(&inputs["write_bandwidth_bytes_per_s"])),
        requests: Requests {
            trigger: match inputs["trigger"].as_str().unwrap() {
                "wall" => Trigger::Wall,
                _ => Trigger::Work,
            },
            first: None,
            every: Spread::Fixed(length(&inputs["interval_s"])),
            count: None,
        },
        commit_delay: length(&inputs["commit_delay_s"]),
        near: None,
    }
}

#[test]
fn every_policy_agrees_with_the_timelines() {
    for case in cases("checkpoint_timeline.json") {
        let id = case["id"].as_str().unwrap();
        let (inputs, want) = (&case["inputs"], &case["expected"]);
        let mut job = until(instant(&inputs["horizon_s"]));
        job.checkpoint = Some(timeline_checkpoint(inputs));
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        let taken: Vec<&CheckpointRecord> =
            outcome.checkpoints.iter().filter(|record| record.state != CheckpointState::Skipped).collect();
        assert_eq!(taken.len() as u64, want["snapshots_captured"].as_u64().unwrap(), "{id}");
        let skipped = (outcome.checkpoints.len() - taken.len()) as u64;
        assert_eq!(skipped, want["snapshots_skipped"].as_u64().unwrap(), "{id}");
        for (got, row) in taken.iter().zip(want["first_snapshots"].as_array().unwrap()) {
            let instants = [
                ("request", Some(got.requested)),
                ("capture", got.capture),
                ("staging_end", got.staging_end),
                ("upload_end", got.upload_end),
                ("durable", got.durable),
            ];
            for (key, got) in instants {
                if row[key].as_f64().unwrap() <= inputs["horizon_s"].as_f64().unwrap() {
                    assert_eq!(got, Some(instant(&row[key])), "{id} {key}");
                }
            }
            assert_eq!(got.work, length(&row["work_at_capture"]), "{id}");
        }
        assert_eq!(outcome.useful, length(&want["useful_work_by_horizon_s"]), "{id}");
        assert_eq!(outcome.pause_total, length(&want["total_pause_s"]), "{id}");
        assert_eq!(
            outcome.saves.unwrap().backlog_grows,
            want["write_time_over_interval"].as_f64().unwrap() > 1.0,
            "{id}"
        );
    }
}

#[test]
fn a_failure_at_any_instant_of_the_timelines_loses_what_they_say() {
    for case in cases("checkpoint_timeline.json") {
        let id = case["id"].as_str().unwrap();
        for want in case["expected"]["at_failure"].as_array().unwrap() {
            let at = instant(&want["failure_s"]);
            let mut job = until(Time::from_nanos(at.as_nanos() + 1));
            job.checkpoint = Some(timeline_checkpoint(&case["inputs"]));
            job.faults.at = vec![at];
            let outcome = simulate(&job, 0, Detail::Full).unwrap();
            let (hit, saves) = (outcome.failures[0], outcome.saves.unwrap());
            assert_eq!(saves.durable, want["committed"].as_u64().unwrap(), "{id} {at}");
            assert_eq!(saves.captured, want["captured"].as_u64().unwrap(), "{id} {at}");
            assert_eq!(hit.snapshots_lost, want["snapshots_not_durable"].as_u64().unwrap(), "{id} {at}");
            assert_eq!(hit.redo_useful, length(&want["redo_useful_work_s"]), "{id} {at}");
            if !want["recovery_capture_s"].is_null() {
                assert_eq!(hit.recovered_to, instant(&want["recovery_capture_s"]), "{id} {at}");
                assert_eq!(hit.redo_wall, length(&want["rollback_wall_s"]), "{id} {at}");
            }
            let pending = want["pending_bytes"].as_f64().unwrap();
            assert!((hit.pending_bytes.get() as f64 - pending).abs() <= 1.0, "{id} {at}");
        }
    }
}

/// Cycles and useful fractions under the work trigger, in steady state.
#[test]
fn long_runs_settle_at_the_steady_state() {
    let rows = crate::support::data("checkpoint_timeline.json")["steady_state_closed_forms"]["rows"].clone();
    for row in rows.as_array().unwrap() {
        let policies = [
            ("block_1slot", Backlog::Block { buffers: 1 }),
            ("block_2slot", Backlog::Block { buffers: 2 }),
            ("skip_1slot", Backlog::Skip { buffers: 1 }),
            ("queue_unbounded", Backlog::Queue),
        ];
        for (name, backlog) in policies {
            let mut checkpoint =
                queued(length(&row["interval_useful_s"]), length(&row["staging_s"]), length(&row["write_s"]));
            if let Mode::Async { backlog: used, .. } = &mut checkpoint.mode {
                *used = backlog;
            }
            let mut job = until(Time::from_nanos(20_000_000_000_000));
            job.checkpoint = Some(checkpoint);
            let fraction = simulate(&job, 0, Detail::Summary).unwrap().useful_fraction();
            let want = row[name]["useful_fraction"].as_f64().unwrap();
            assert!((fraction - want).abs() < 2e-3, "{name} {row}: {fraction}");
        }
    }
}

#[test]
fn replace_overwrites_the_oldest_snapshot_that_is_not_being_written() {
    use CheckpointState::{Durable, Skipped, Unfinished};
    let mut checkpoint = queued(seconds(10.0), Duration::ZERO, seconds(35.0));
    if let Mode::Async { backlog, .. } = &mut checkpoint.mode {
        *backlog = Backlog::Replace { buffers: 2 };
    }
    let mut job = until(Time::from_nanos(90_000_000_000));
    job.checkpoint = Some(checkpoint);
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    let states: Vec<(u64, CheckpointState)> = outcome
        .checkpoints
        .iter()
        .map(|record| (record.requested.as_nanos() / 1_000_000_000, record.state))
        .collect();
    // Written: 10 s until 45 s, then the newest of those waiting, 40 s, until 80 s, then 70 s.
    let want = [
        (10, Durable),
        (20, Skipped),
        (30, Skipped),
        (40, Durable),
        (50, Skipped),
        (60, Skipped),
        (70, Unfinished),
        (80, Skipped),
        (90, Unfinished),
    ];
    assert_eq!(states, want);
    assert_eq!(outcome.lost.save_stall, Duration::ZERO);
}

#[test]
fn a_clock_that_starves_training_is_an_error_without_a_horizon_and_a_warning_with_one() {
    let starving = cases("checkpoint_timeline.json")
        .into_iter()
        .find(|case| case["id"] == "trap_wall_block_starves")
        .unwrap();
    let mut job = until(instant(&starving["inputs"]["horizon_s"]));
    job.checkpoint = Some(timeline_checkpoint(&starving["inputs"]));
    let warned = simulate(&job, 0, Detail::Summary).unwrap().warnings;
    assert!(warned.iter().any(|warning| matches!(warning, Warning::Starved { .. })), "{warned:?}");
    assert!(warned.iter().any(|warning| matches!(warning, Warning::WriterTooSlow { .. })), "{warned:?}");
    (job.work, job.horizon) = (Some(seconds(100.0)), None);
    let error = simulate(&job, 0, Detail::Summary).unwrap_err();
    assert!(matches!(error, JobError::Starved { .. }), "{error}");
}

#[test]
fn checkpoints_that_are_never_usable_are_warned_of() {
    let mut job = until(Time::from_nanos(100_000_000_000));
    let mut checkpoint = queued(seconds(20.0), Duration::ZERO, seconds(16.0));
    let usable = |checkpoint: &Checkpoint, job: &mut pipestep_job::JobInputs| {
        job.checkpoint = Some(checkpoint.clone());
        simulate(job, 0, Detail::Summary).unwrap().warnings
    };
    assert_eq!(usable(&checkpoint, &mut job), []);
    checkpoint.commit_delay = seconds(1_000.0);
    let never = Warning::NeverUsable { captured: 5, useful: seconds(100.0) };
    assert_eq!(usable(&checkpoint, &mut job), [never]);
    (checkpoint.commit_delay, checkpoint.write) =
        (Duration::ZERO, Write::Time(Spread::Fixed(seconds(1_000.0))));
    assert!(
        usable(&checkpoint, &mut job).iter().any(|warning| matches!(warning, Warning::NeverUsable { .. }))
    );
    // A near copy is usable once it is staged.
    checkpoint.near = Some(pipestep_job::NearTier {
        write: Duration::ZERO,
        far_every: 10,
        survives: 1.0,
        recovery: pipestep_job::Recovery::Fixed(Spread::ZERO),
    });
    assert!(
        !usable(&checkpoint, &mut job).iter().any(|warning| matches!(warning, Warning::NeverUsable { .. }))
    );
}

#[test]
fn inputs_that_mean_nothing_are_refused() {
    let mut job = until(Time::from_nanos(nanos(&serde_json::json!(100.0))));
    let mut checkpoint = queued(Duration::ZERO, Duration::ZERO, Duration::ZERO);
    job.checkpoint = Some(checkpoint.clone());
    assert!(matches!(job.check(), Err(InputError::Zero { .. })));
    checkpoint = crate::support::with_size(queued(seconds(1.0), Duration::ZERO, Duration::ZERO), 100);
    if let Mode::Async { buffer, .. } = &mut checkpoint.mode {
        *buffer = Some(pipestep_engine::Bytes::new(99));
    }
    job.checkpoint = Some(checkpoint);
    assert!(matches!(job.check(), Err(InputError::Buffer { .. })));
    job.checkpoint = None;
    job.horizon = None;
    assert_eq!(job.check(), Err(InputError::NoEnd));
}
