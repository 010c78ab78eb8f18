//! Random failures, two tiers and the writer as a queue against the oracle's closed forms, within four standard
//! errors.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Backlog, Checkpoint, Detail, Estimate, FailureOrigin, FaultSource, JobError, JobInputs, JobOutcome,
    LLAMA3, Mode, NearTier, Place, Recovery, Requests, RunsSummary, SimulatedCost, Spares, Spread,
    TokenTarget, Trigger, Warning, WhenOut, Write, best_interval, closed_form, days, simulate,
};
use serde_json::Value;

use crate::support::{adds_up, data, is_long_run, length, number, queued, seconds, until};

fn exponential(mtbf: f64) -> FaultSource {
    FaultSource::single("any", Spread::Exponential { mean: seconds(mtbf) }, 1, false)
}

/// Synchronous saves after so much useful work.
fn sync(interval: Duration, cost: Duration) -> Checkpoint {
    let mut checkpoint = queued(interval, Duration::ZERO, cost);
    checkpoint.mode = Mode::Sync;
    checkpoint
}

fn runs(job: &JobInputs, numbers: std::ops::Range<u64>) -> Vec<JobOutcome> {
    let outcomes: Vec<JobOutcome> = numbers.map(|run| simulate(job, run, Detail::Summary).unwrap()).collect();
    outcomes.iter().for_each(adds_up);
    outcomes
}

/// The mean over runs agrees with `want` within four standard errors, of which one is at most half a percent.
fn agrees(what: &str, job: &JobInputs, want: f64, value: impl Fn(&JobOutcome) -> f64) {
    agrees_to(0.005, what, job, want, value);
}

/// The same with a standard error of at most this share of `want`.
fn agrees_to(share: f64, what: &str, job: &JobInputs, want: f64, value: impl Fn(&JobOutcome) -> f64) {
    const FIRST: u64 = 20;
    let mut sample: Vec<f64> = runs(job, 0..FIRST).iter().map(&value).collect();
    let precision = |sample: &[f64]| Estimate::of(sample).unwrap().standard_error / (share * want);
    while precision(&sample) > 1.0 {
        let done = sample.len() as u64;
        let more = (done as f64 * (precision(&sample).powi(2) - 1.0) * 1.1).ceil().min(20_000.0) as u64;
        sample.extend(runs(job, done..done + more.max(5)).iter().map(&value));
    }
    let Estimate { mean, standard_error, .. } = Estimate::of(&sample).unwrap();
    let off = (mean - want).abs();
    assert!(off <= 4.0 * standard_error + 1e-9 * want, "{what}: {mean} ± {standard_error}, expected {want}");
}

fn segments_job(row: &Value, segments: u64) -> JobInputs {
    let interval = length(&row["useful_interval_s"]);
    let mut job = JobInputs::of_work(interval.times(segments).unwrap());
    job.checkpoint = Some(sync(interval, length(&row["save_cost_s"])));
    job.faults.sources = vec![exponential(number(row, "mtbf_s"))];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(length(&row["recovery_s"])));
    job
}

/// Expected wall time of `segments` intervals, the last of which needs no save.
fn expected_wall(row: &Value, segments: u64, vulnerable: bool) -> f64 {
    let recovery = number(row, "recovery_s");
    let mut poisson = closed_form::Poisson {
        mtbf: number(row, "mtbf_s"),
        interval: number(row, "useful_interval_s"),
        save_cost: number(row, "save_cost_s"),
        downtime: if vulnerable { 0.0 } else { recovery },
        exposed_recovery: if vulnerable { recovery } else { 0.0 },
    };
    let fraction = number(row, if vulnerable { "eff_recovery_vulnerable" } else { "eff_recovery_immune" });
    assert!((poisson.useful_fraction() / fraction - 1.0).abs() < 1e-9, "{row}");
    let full = poisson.segment_time();
    poisson.save_cost = 0.0;
    full * (segments - 1) as f64 + poisson.segment_time()
}

#[test]
fn synchronous_saves_under_exponential_failures_progress_as_expected() {
    for row in data("effective_progress.json")["table"].as_array().unwrap() {
        // A run long enough for ten failures or so, or rare failures would make skewed samples.
        let segments = (10.0 * number(row, "mtbf_s") / number(row, "segment_mean_s")).max(50.0) as u64;
        let mut job = segments_job(row, segments);
        for vulnerable in [false, true] {
            job.faults.recovery_can_fail = vulnerable;
            let want = expected_wall(row, segments, vulnerable);
            let what = format!("vulnerable {vulnerable}, {row}");
            agrees(&what, &job, want, |outcome| outcome.elapsed.as_secs_f64());
        }
    }
}

#[test]
fn asynchronous_saves_under_exponential_failures_progress_as_expected() {
    for row in data("effective_progress.json")["async_table"].as_array().unwrap() {
        let mtbf = number(row, "mtbf_s");
        let mut job = until(Time::from_nanos(seconds(mtbf * 3_000.0).as_nanos()));
        let (staging, write) = (length(&row["staging_s"]), length(&row["write_s"]));
        job.checkpoint = Some(queued(length(&row["useful_interval_s"]), staging, write));
        job.faults.sources = vec![exponential(mtbf)];
        job.faults.recovery = Recovery::Fixed(Spread::Fixed(length(&row["recovery_s"])));
        agrees(&format!("work, {row}"), &job, number(row, "closed_form_eff"), JobOutcome::useful_fraction);
        if let Some(want) = row["wall_trigger_eff"].as_f64() {
            let mut checkpoint = queued(length(&row["wall_trigger_interval_s"]), staging, write);
            checkpoint.requests.trigger = Trigger::WallSinceResume;
            job.checkpoint = Some(checkpoint);
            agrees(&format!("wall, {row}"), &job, want, JobOutcome::useful_fraction);
        }
    }
}

#[test]
fn a_near_tier_saves_what_it_survives() {
    for row in data("two_tier_checkpoint.json")["table"].as_array().unwrap() {
        let interval = length(&row["useful_interval_s"]);
        let far_every = row["far_every"].as_u64().unwrap();
        let pattern = interval.times(far_every).unwrap();
        let mut checkpoint = sync(interval, length(&row["far_save_s"]));
        checkpoint.near = Some(NearTier {
            write: length(&row["near_save_s"]),
            far_every: far_every as u32,
            survives: number(row, "share_recoverable_from_near_tier"),
            recovery: Recovery::Fixed(Spread::Fixed(length(&row["near_recovery_s"]))),
        });
        let survives = number(row, "share_recoverable_from_near_tier");
        let rare = number(row, "mtbf_s") / (1.0 - survives).max(0.1) / number(row, "expected_pattern_s");
        let mut job = JobInputs::of_work(pattern.times((10.0 * rare).max(400.0) as u64).unwrap());
        job.checkpoint = Some(checkpoint);
        job.faults.sources = vec![exponential(number(row, "mtbf_s"))];
        job.faults.recovery = Recovery::Fixed(Spread::Fixed(length(&row["far_recovery_s"])));
        agrees(&row.to_string(), &job, number(row, "useful_fraction"), JobOutcome::useful_fraction);
        // Without the near place: a far save after each pattern, and every failure comes back from there.
        let alone = closed_form::Poisson {
            mtbf: number(row, "mtbf_s"),
            interval: pattern.as_secs_f64(),
            save_cost: number(row, "far_save_s"),
            downtime: number(row, "far_recovery_s"),
            exposed_recovery: 0.0,
        };
        let want = number(row, "far_tier_only_useful_fraction");
        assert!((alone.useful_fraction() / want - 1.0).abs() < 1e-9, "{row}");
    }
}

fn writer(every: Spread, write: Spread, backlog: Backlog) -> Checkpoint {
    Checkpoint {
        mode: Mode::Async { staging: Duration::ZERO, backlog, buffer: None },
        size: None,
        write: Write::Time(write),
        requests: Requests { trigger: Trigger::Wall, first: None, every, count: None },
        commit_delay: Duration::ZERO,
        near: None,
    }
}

/// A job that only saves, about so many times.
fn saving_job(every: Spread, write: Spread, backlog: Backlog, saves: f64) -> JobInputs {
    let mut job = until(Time::from_nanos((every.mean_nanos() * saves) as u64));
    job.checkpoint = Some(writer(every, write, backlog));
    job
}

#[test]
fn snapshots_wait_for_the_writer_as_queueing_theory_says() {
    let wait = |outcome: &JobOutcome| {
        let saves = outcome.saves.unwrap();
        saves.writer_wait.as_secs_f64() / saves.writes_started as f64
    };
    let lag = |outcome: &JobOutcome| {
        let saves = outcome.saves.unwrap();
        saves.commit_lag.as_secs_f64() / saves.durable as f64
    };
    // By Little's law: the sum of all waits over the time.
    let waiting = |outcome: &JobOutcome| {
        outcome.saves.unwrap().writer_wait.as_secs_f64() / outcome.elapsed.as_secs_f64()
    };
    for row in data("checkpoint_backlog.json")["stochastic"].as_array().unwrap() {
        let load = number(row, "utilisation");
        // A nearly full writer needs tens of millions of requests to be known to half a percent.
        let (share, each) = if load > 0.8 && !is_long_run() { (0.02, 400.0) } else { (0.005, 4_000.0) };
        let (write, every) = (seconds(number(row, "write_s")), seconds(number(row, "mean_interval_s")));
        let (fixed_write, random_write) = (Spread::Fixed(write), Spread::Exponential { mean: write });
        let (regular, poisson) = (Spread::Fixed(every), Spread::Exponential { mean: every });
        let saves = 20_000.0_f64.max(each / (1.0 - load).powi(2));
        let job = |requests, writes| saving_job(requests, writes, Backlog::Queue, saves);
        assert!(wait(&simulate(&job(regular, fixed_write), 0, Detail::Summary).unwrap()) < 1e-9);
        let says = |key: &str, job: &JobInputs, value: &dyn Fn(&JobOutcome) -> f64| {
            agrees_to(share, &format!("{key} at {load}"), job, number(row, key), value);
        };
        says("wait_poisson_requests_fixed_write_s", &job(poisson, fixed_write), &wait);
        says("wait_regular_requests_exponential_write_s", &job(regular, random_write), &wait);
        says("wait_poisson_requests_exponential_write_s", &job(poisson, random_write), &wait);
        if load <= 0.5 {
            // What follows from the wait, at the loads where that is cheap.
            says("commit_lag_poisson_fixed_s", &job(poisson, fixed_write), &lag);
            says("mean_waiting_snapshots_poisson_fixed", &job(poisson, fixed_write), &waiting);
        }
    }
}

#[test]
fn skipping_loses_the_share_of_saves_that_queueing_theory_says() {
    let lost = |outcome: &JobOutcome| {
        let saves = outcome.saves.unwrap();
        saves.skipped as f64 / saves.requested as f64
    };
    for row in data("checkpoint_backlog.json")["stochastic"].as_array().unwrap() {
        let (write, every) = (seconds(number(row, "write_s")), seconds(number(row, "mean_interval_s")));
        for (buffers, key) in [(1, "skip_one_slot_loss_poisson"), (2, "skip_two_slot_loss_poisson_fixed")] {
            let requests = Spread::Exponential { mean: every };
            let job = saving_job(requests, Spread::Fixed(write), Backlog::Skip { buffers }, 20_000.0);
            agrees(&format!("{key} {row}"), &job, number(row, key), lost);
        }
    }
}

#[test]
fn a_writer_that_is_too_slow_falls_behind_at_the_stated_rate() {
    for row in data("checkpoint_backlog.json")["deterministic"].as_array().unwrap() {
        let (every, write) = (seconds(number(row, "interval_s")), seconds(number(row, "write_s")));
        let mut job = until(Time::from_nanos(every.as_nanos() * 50));
        job.checkpoint = Some(writer(Spread::Fixed(every), Spread::Fixed(write), Backlog::Queue));
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        let written = outcome.checkpoints.iter().filter(|record| record.upload_start.is_some());
        for (place, record) in written.enumerate() {
            let wait = record.upload_start.unwrap().since(record.capture.unwrap()).as_secs_f64();
            assert!((wait - place as f64 * number(row, "kth_wait_s_per_k")).abs() < 1e-6, "{row}");
        }
        let keeps_up = row["keeps_up"].as_bool().unwrap();
        assert_eq!(outcome.saves.unwrap().backlog_grows, !keeps_up, "{row}");
    }
}

/// 1,024 devices with 16.4 s a save, and 7.9 h between failures.
fn textbook_job(work: f64, interval: f64) -> JobInputs {
    let mut job = JobInputs::of_work(seconds(work));
    job.checkpoint = Some(sync(seconds(interval), seconds(16.381_470_72)));
    let lifetime = Spread::Exponential { mean: seconds(29_122_560.0) };
    job.faults.sources = vec![FaultSource::single("device", lifetime, 1_024, false)];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(120.0)));
    job
}

#[test]
fn the_best_interval_is_found_by_simulation() {
    // A geometric range, each point with the same failures.
    let points: Vec<SimulatedCost> = (0..9)
        .map(|place| {
            let interval = 400.0 * 1.25_f64.powi(place);
            let costs: Vec<f64> = runs(&textbook_job(4e6, interval), 0..60)
                .iter()
                .map(|run| run.elapsed.as_secs_f64() / run.useful.as_secs_f64() - 1.0)
                .collect();
            let Estimate { mean, standard_error, .. } = Estimate::of(&costs).unwrap();
            SimulatedCost { interval, cost: mean, standard_error }
        })
        .collect();
    let best = best_interval(&points).unwrap();
    assert!((best / 954.4 - 1.0).abs() < 0.05, "{best} {points:?}");
    let references = textbook_job(4e6, 900.0).references();
    let value = |name| references.iter().find(|reference| reference.name == name).unwrap().value;
    assert!((value("young_interval") - 965.286_514_23).abs() < 1e-6);
    assert!((value("exact_interval") - 954.396_563_06).abs() < 1e-6);
    assert!((value("exact_useful_fraction") - 0.962_325_484_093).abs() < 1e-9);
    assert!((value("simple_rule_loss") - 570.0 / 28_440.0).abs() < 1e-12);
}

/// 100e9 tokens, 384 sequences of 8,192 a step, saves of 16.4 s every 1,800 s, five days set aside.
#[test]
fn the_design_case_ends_when_the_book_says() {
    for (devices, step, want) in [(48, 52.799_898_456_853_56, 24.6), (32, 78.910_952_069_280_34, 34.3)] {
        let target =
            TokenTarget { tokens: 100_000_000_000, tokens_per_step: 384 * 8_192, step: seconds(step) };
        assert_eq!(target.steps().unwrap(), 31_790);
        let mut job = textbook_job(1.0, 1_800.0);
        job.work = Some(target.work().unwrap());
        job.faults.sources[0].devices = devices;
        let summary = RunsSummary::of(&runs(&job, 0..40)).unwrap();
        let wall = Duration::from_nanos(summary.elapsed.mean as u64);
        let finish = days(wall, seconds(5.0 * 86_400.0));
        assert!((finish - want).abs() < 0.05, "{finish}");
        let loss = wall.as_secs_f64() / job.work.unwrap().as_secs_f64() - 1.0;
        assert!(devices != 48 || (loss - 0.0108).abs() < 0.0005, "{loss}");
    }
}

#[test]
fn a_staged_snapshot_that_survives_is_what_a_failure_goes_back_to() {
    let mut job = JobInputs::of_work(seconds(100.0));
    let mut checkpoint = queued(seconds(20.0), Duration::ZERO, seconds(16.0));
    let near = NearTier {
        write: Duration::ZERO,
        far_every: 2,
        survives: 1.0,
        recovery: Recovery::Fixed(Spread::Fixed(seconds(3.0))),
    };
    checkpoint.near = Some(near);
    job.checkpoint = Some(checkpoint);
    job.faults.at = vec![Time::from_nanos(50_000_000_000)];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(30.0)));
    let kept = simulate(&job, 0, Detail::Full).unwrap();
    let hit = kept.failures[0];
    assert_eq!((hit.place, hit.redo_useful, kept.lost.recovery), (Place::Near, seconds(10.0), seconds(3.0)));
    // Of the far copies, every second, none was written by then.
    if let Some(checkpoint) = &mut job.checkpoint {
        checkpoint.near = Some(NearTier { survives: 0.0, ..near });
    }
    let lost = simulate(&job, 0, Detail::Full).unwrap();
    let hit = lost.failures[0];
    assert_eq!((hit.place, hit.redo_useful, lost.lost.recovery), (Place::Far, seconds(50.0), seconds(30.0)));
    adds_up(&lost);
}

/// The published record of Llama 3 405B: over 90 % useful with 419 interruptions in 54 days.
#[test]
fn llama_3s_record_is_plausible_and_fast() {
    let mut job = until(Time::from_nanos(seconds(54.0 * 86_400.0).as_nanos()));
    job.checkpoint = Some(queued(seconds(600.0), seconds(1.0), seconds(60.0)));
    job.faults.sources = vec![FaultSource {
        name: "device".to_owned(),
        between: Spread::Exponential { mean: seconds(LLAMA3.device_mtbf_seconds()) },
        devices: LLAMA3.devices,
        causes: LLAMA3.causes(),
    }];
    job.faults.detection = seconds(60.0);
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(300.0)));
    let outcomes = runs(&job, 0..20);
    let summary = RunsSummary::of(&outcomes).unwrap();
    assert!(summary.useful_fraction.mean > 0.9, "{summary:?}");
    // Failures that strike while the job is down are not counted.
    let counted = summary.failures.mean;
    assert!((380.0..425.0).contains(&counted), "{counted}");
    let by_cause: u64 = outcomes[0].causes.iter().map(|cause| cause.count).sum();
    assert_eq!(by_cause, outcomes[0].failures_counted);
}

#[test]
fn lifetimes_of_many_devices_add_up_whatever_their_distribution() {
    // Renewals settle at devices / mean, whatever the shape.
    for between in [
        Spread::Weibull { mean: seconds(10_000.0), shape: 0.8 },
        Spread::Lognormal { mean: seconds(10_000.0), variation: 0.6 },
        Spread::Exponential { mean: seconds(10_000.0) },
    ] {
        let mut job = until(Time::from_nanos(seconds(200_000.0).as_nanos()));
        job.faults.sources = vec![FaultSource::single("device", between, 500, false)];
        let struck: Vec<f64> = runs(&job, 0..10)
            .iter()
            .map(|run| (run.failures_counted + run.failures_ignored) as f64)
            .collect();
        let mean = Estimate::of(&struck).unwrap().mean;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.03, "{between:?}: {mean}");
    }
}

#[test]
fn without_a_spare_the_job_waits_for_a_repair() {
    let mut job = JobInputs::of_work(seconds(1_000.0));
    let at = |seconds: u64| Time::from_nanos(seconds * 1_000_000_000);
    job.checkpoint = Some(queued(seconds(10.0), Duration::ZERO, Duration::ZERO));
    job.faults.at = vec![at(100), at(200), at(300)];
    job.faults.downtime = Spread::Fixed(seconds(5.0));
    job.faults.spares =
        Some(Spares { count: 1, repair: Spread::Fixed(seconds(250.0)), when_out: WhenOut::Wait });
    let outcome = simulate(&job, 0, Detail::Full).unwrap();
    // The first takes the spare; the second waits for the machine that is back at 350 s, so that the third
    // strikes a waiting job.
    assert_eq!(outcome.lost.spare_wait, seconds(145.0));
    assert_eq!((outcome.failures_counted, outcome.failures_ignored), (2, 1));
    assert!(outcome.warnings.contains(&Warning::SparesRanOut { times: 1 }));
    adds_up(&outcome);
}

#[test]
fn a_job_whose_failures_come_faster_than_its_checkpoints_is_said_never_to_end() {
    let mut job = JobInputs::of_work(seconds(10_000.0));
    job.checkpoint = Some(sync(seconds(1_000.0), seconds(10.0)));
    job.faults.sources = vec![exponential(10.0)];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(60.0)));
    let error = simulate(&job, 0, Detail::Summary).unwrap_err();
    assert!(matches!(error, JobError::NoProgress { .. }), "{error}");
    job.faults.recovery_can_fail = true;
    let error = simulate(&job, 0, Detail::Summary).unwrap_err();
    assert!(matches!(error, JobError::NoProgress { .. }), "{error}");
}

#[test]
fn the_same_run_is_the_same_and_another_is_not() {
    let row = data("effective_progress.json")["table"][4].clone();
    let job = segments_job(&row, 20);
    let first = simulate(&job, 3, Detail::Full).unwrap();
    assert_eq!(first, simulate(&job, 3, Detail::Full).unwrap());
    assert_ne!(first.elapsed, simulate(&job, 4, Detail::Full).unwrap().elapsed);
    let mut other = job.clone();
    other.seed = 1;
    assert_ne!(first.elapsed, simulate(&other, 3, Detail::Full).unwrap().elapsed);
}

/// A source added to a job moves none of the draws of the others.
#[test]
fn sources_draw_independently() {
    let mut job = until(Time::from_nanos(seconds(1e5).as_nanos()));
    job.faults.sources = vec![exponential(5_000.0)];
    let alone = simulate(&job, 0, Detail::Full).unwrap();
    let shock = Spread::Exponential { mean: seconds(20_000.0) };
    job.faults.sources.push(FaultSource::single("loss spike", shock, 1, false));
    let both = simulate(&job, 0, Detail::Full).unwrap();
    let own: Vec<Time> =
        both.failures.iter().filter(|hit| hit.origin == FailureOrigin::Cause(0)).map(|hit| hit.at).collect();
    let want: Vec<Time> = alone.failures.iter().map(|hit| hit.at).collect();
    assert_eq!(own, want);
    assert!(both.failures.len() > own.len());
}
