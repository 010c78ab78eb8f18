//! Jitter, slow ranks and what is done about them, against the oracle's closed forms.

use pipestep_engine::{Duration, Time};
use pipestep_job::{
    Backlog, Detail, Estimate, InputError, Jitter, JobError, JobInputs, JobOutcome, Mode, Ranks, Ratio,
    Recovery, Response, SlowDetection, SlowRanks, SlowWindow, Spread, simulate,
};
use proptest::prelude::*;

use crate::support::{adds_up, data, number, queued, seconds, until};

const STEP: f64 = 10.0;

fn ranks(count: u32, step: f64, overhead: f64, jitter: Jitter) -> Ranks {
    Ranks {
        count,
        step: seconds(step),
        overhead: seconds(overhead),
        jitter,
        slow: None,
        detection: None,
        response: Response::Wait,
    }
}

fn job(ranks: Ranks, steps: u64) -> JobInputs {
    let mut job = JobInputs::of_work(ranks.step.times(steps).unwrap());
    job.stragglers.ranks = Some(ranks);
    job
}

fn slow_from_the_start(factor: f64) -> SlowRanks {
    SlowRanks { at: vec![Time::ZERO], between: None, factor: Ratio::from_f64(factor).unwrap(), lasts: None }
}

/// Mean lengths of a step, one for each run.
fn step_times(job: &JobInputs, runs: u64) -> Vec<f64> {
    let mean = |run| {
        let outcome = simulate(job, run, Detail::Summary).unwrap();
        adds_up(&outcome);
        outcome.elapsed.as_secs_f64() / outcome.stragglers.unwrap().steps as f64
    };
    (0..runs).map(mean).collect()
}

fn agrees(what: &str, job: &JobInputs, want: f64) {
    let Estimate { mean, standard_error, .. } = Estimate::of(&step_times(job, 20)).unwrap();
    assert!(standard_error <= 0.005 * want, "{what}: {standard_error}");
    assert!(
        (mean - want).abs() <= 4.0 * standard_error,
        "{what}: {mean} ± {standard_error}, expected {want}"
    );
}

#[test]
fn a_request_for_which_there_is_no_buffer_starts_no_second_step() {
    // A write takes three intervals, and its snapshot cannot be replaced: two of three requests are dropped.
    let mut job = job(ranks(8, STEP, 0.0, Jitter::None), 120);
    job.stragglers.ranks.as_mut().unwrap().slow = Some(slow_from_the_start(1.5));
    for backlog in [Backlog::Replace { buffers: 1 }, Backlog::Skip { buffers: 1 }] {
        let mut checkpoint = queued(seconds(4.0 * STEP), seconds(1.0), seconds(14.0 * STEP));
        checkpoint.mode = Mode::Async { staging: seconds(1.0), backlog, buffer: None };
        job.checkpoint = Some(checkpoint);
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        assert!(outcome.saves.unwrap().skipped > 0, "{backlog:?}");
        assert_eq!(outcome.stragglers.unwrap().steps, 120, "{backlog:?}");
        assert_eq!(outcome.lost.straggler_nanos, seconds(60.0 * STEP).as_nanos() as i64, "{backlog:?}");
    }
}

#[test]
fn a_step_waits_for_the_slowest_of_its_ranks() {
    for row in data("stragglers.json")["textbook"].as_array().unwrap() {
        let (count, compute) = (row["ranks"].as_u64().unwrap() as u32, number(row, "mean_compute_s"));
        let overhead = number(row, "overhead_s");
        let jitter = Jitter::Normal { deviation: number(row, "sigma_s") / compute };
        let healthy = ranks(count, compute + overhead, overhead, jitter);
        agrees(&row.to_string(), &job(healthy.clone(), 500), number(row, "expected_step_s"));
        // One rank three deviations slow: waited for, or its work given to the others.
        let mut one_slow = healthy;
        one_slow.slow = Some(slow_from_the_start(1.0 + 3.0 * number(row, "sigma_s") / compute));
        let want = number(&row["one_rank_fixed_at_plus_3_sigma"], "step_exact_s");
        agrees(&format!("slow, {row}"), &job(one_slow.clone(), 500), want);
        one_slow.detection = Some(SlowDetection { threshold: 0.0, window: 40 });
        one_slow.response = Response::Redistribute { pause: Duration::ZERO };
        // The first forty steps of each run still wait; long runs make that little.
        let want = number(row, "redistribute_over_n_minus_1_s");
        let times = step_times(&job(one_slow, 20_000), 3);
        let mean = Estimate::of(&times).unwrap().mean;
        assert!((mean / want - 1.0).abs() < 1e-3, "spread, {row}: {mean}");
    }
}

#[test]
fn other_jitters_slow_a_step_down_as_expected() {
    let tables = data("stragglers.json");
    for row in tables["two_point"].as_array().unwrap() {
        let (factor, probability) = (number(row, "slow_factor"), number(row, "p_slow_per_worker"));
        let jitter = Jitter::TwoPoint { factor, probability };
        let two = ranks(row["workers"].as_u64().unwrap() as u32, STEP, 0.0, jitter);
        let times = step_times(&job(two, 4_000), 20);
        let Estimate { mean, .. } = Estimate::of(&times).unwrap();
        let want = number(row, "expected_slowdown");
        // A binomial number of slow steps, of which there may be few.
        let slow = number(row, "p_any_slow");
        let error = (factor - 1.0) * (slow * (1.0 - slow) / 80_000.0).sqrt();
        assert!((mean / STEP - want).abs() <= 4.5 * error + 1e-9, "{row}: {}", mean / STEP);
    }
    for row in tables["lognormal_jitter"].as_array().unwrap() {
        let jitter = Jitter::Lognormal { variation: number(row, "cv") };
        let many = ranks(row["workers"].as_u64().unwrap() as u32, STEP, 0.0, jitter);
        agrees(&row.to_string(), &job(many, 400), STEP * number(row, "expected_slowdown"));
    }
    for row in tables["shifted_exponential"].as_array().unwrap() {
        let base = number(row, "base_s");
        let jitter = Jitter::Exponential { tail: number(row, "tail_mean_s") / base };
        let many = ranks(row["workers"].as_u64().unwrap() as u32, base, 0.0, jitter);
        agrees(&row.to_string(), &job(many, 400), number(row, "expected_step_s"));
    }
}

#[test]
fn healthy_ranks_are_taken_for_slow_as_often_as_expected() {
    const STEPS: u64 = 20_000;
    for row in data("stragglers.json")["detection_false_alarm"].as_array().unwrap() {
        let deviation = 0.02;
        let threshold = deviation * number(row, "threshold_sigma");
        let keys = [(1, "p_false_alarm_per_step"), (2, "p_false_alarm_two_consecutive_same_rank")];
        for (window, key) in keys {
            let jitter = Jitter::Normal { deviation };
            let mut watched = ranks(row["ranks"].as_u64().unwrap() as u32, STEP, 0.0, jitter);
            watched.detection = Some(SlowDetection { threshold, window });
            let totals = simulate(&job(watched, STEPS), 0, Detail::Summary).unwrap().stragglers.unwrap();
            let (want, steps) = (number(row, key), totals.steps as f64);
            let got = totals.false_alarm_steps as f64 / steps;
            let error = (want * (1.0 - want) / steps).sqrt();
            assert!((got - want).abs() <= 4.0 * error + 1.0 / steps, "{key} {row}: {got} ± {error}");
        }
    }
}

/// Replacing a slow rank pays after as many steps as the oracle says, averaged over where in the interval
/// between two saves it becomes slow.
#[test]
fn the_break_even_of_eviction_is_found_by_simulation() {
    for row in data("stragglers.json")["evict_break_even"].as_array().unwrap() {
        let (step, interval) = (number(row, "healthy_step_s"), number(row, "checkpoint_interval_s"));
        let factor = number(row, "slow_factor");
        let loss = |response, start: f64| {
            let mut slow = ranks(8, step, 0.0, Jitter::None);
            slow.slow = Some(SlowRanks {
                at: vec![Time::from_nanos(seconds(start).as_nanos())],
                ..slow_from_the_start(factor)
            });
            slow.detection = Some(SlowDetection { threshold: 1e-3, window: 1 });
            slow.response = response;
            let mut job = until(Time::from_nanos(seconds(interval * 20.0).as_nanos()));
            job.stragglers.ranks = Some(slow);
            let mut checkpoint = queued(seconds(interval), Duration::ZERO, Duration::ZERO);
            checkpoint.mode = Mode::Sync;
            job.checkpoint = Some(checkpoint);
            job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(number(row, "recovery_s"))));
            let outcome = simulate(&job, 0, Detail::Full).unwrap();
            adds_up(&outcome);
            outcome.elapsed.as_secs_f64() - outcome.useful.as_secs_f64()
        };
        let starts = (0..40).map(|part| interval * (5.0 + (f64::from(part) + 0.5) / 40.0));
        let costs: Vec<f64> = starts.map(|start| loss(Response::Evict, start)).collect();
        // Being noticed takes a slow step and a bit: part of the cost that the formula leaves out.
        let cost = Estimate::of(&costs).unwrap().mean;
        let want = number(row, "evict_cost_s");
        assert!((cost - want).abs() <= 0.01 * want + 1.1 * step * factor, "{row}: {cost}");
        let waited = loss(Response::Wait, interval * 5.0) / (interval * 15.0 / (step * factor));
        assert!((waited / number(row, "wait_cost_per_step_s") - 1.0).abs() < 1e-6, "{row}: {waited}");
    }
}

fn totals(outcome: &JobOutcome) -> (f64, f64, f64) {
    adds_up(outcome);
    let dropped = outcome.lost.dropped.as_secs_f64();
    (outcome.elapsed.as_secs_f64(), outcome.lost.straggler_nanos as f64 / 1e9, dropped)
}

#[test]
fn every_response_has_its_cost() {
    let mut slow = ranks(4, STEP, 0.0, Jitter::None);
    slow.slow = Some(slow_from_the_start(3.0));
    let run = |ranks: &Ranks| simulate(&job(ranks.clone(), 100), 0, Detail::Full).unwrap();
    assert_eq!(totals(&run(&slow)), (3_000.0, 2_000.0, 0.0));
    assert_eq!(run(&slow).stragglers.unwrap().steps, 100);
    // Without its slowest rank a step is as fast as ever, and a quarter of its gradients is lost.
    slow.response = Response::Drop { slowest: 1 };
    let (elapsed, straggler, dropped) = totals(&run(&slow));
    assert!((elapsed - 1_000.0 / 0.75).abs() < 1e-6, "{elapsed}");
    assert!((dropped - 250.0 / 0.75).abs() < 1e-6 && straggler.abs() < 1e-6, "{dropped} {straggler}");
    assert_eq!(run(&slow).stragglers.unwrap().gradients_lost, 133);
    // Two slow steps until it is noticed, then its gradient comes with every third step.
    slow.detection = Some(SlowDetection { threshold: 0.5, window: 2 });
    slow.response = Response::Stale { bound: 8 };
    let outcome = run(&slow);
    let late = outcome.stragglers.unwrap();
    assert_eq!((late.noticed, late.lateness_max), (1, 2));
    let (elapsed, ..) = totals(&outcome);
    assert!((elapsed - (60.0 + 980.0 / (10.0 / 12.0))).abs() < 20.0, "{elapsed}");
    // A bound of one step makes every second step wait until it is half as long again.
    slow.response = Response::Stale { bound: 1 };
    let outcome = run(&slow);
    assert_eq!(outcome.stragglers.unwrap().lateness_max, 1);
    let (elapsed, ..) = totals(&outcome);
    assert!((elapsed - (60.0 + 980.0 / (7.0 / 4.0 * 10.0) * 30.0)).abs() < 31.0, "{elapsed}");
    // Its work given to the other three: a third longer, after a pause.
    slow.response = Response::Redistribute { pause: seconds(7.0) };
    let (elapsed, straggler, _) = totals(&run(&slow));
    assert!((elapsed - (60.0 + 7.0 + 98.0 * STEP * 4.0 / 3.0)).abs() < 1e-6, "{elapsed}");
    assert!((straggler - (elapsed - 1_000.0)).abs() < 1e-6);
    // Replaced: what it had done is done again.
    slow.response = Response::Evict;
    let outcome = run(&slow);
    assert_eq!(outcome.elapsed, seconds(60.0 + 1_000.0));
    assert_eq!((outcome.lost.redo, outcome.failures_counted), (seconds(20.0), 0));
}

#[test]
fn slow_ranks_come_and_go_at_random_and_in_slow_windows_alike() {
    let mut coming = ranks(64, STEP, 1.0, Jitter::None);
    coming.slow = Some(SlowRanks {
        at: Vec::new(),
        between: Some(Spread::Exponential { mean: seconds(64.0 * 20_000.0) }),
        factor: Ratio::from_f64(1.5).unwrap(),
        lasts: Some(Spread::Fixed(seconds(5_000.0))),
    });
    let mut job = until(Time::from_nanos(seconds(2e6).as_nanos()));
    job.stragglers.ranks = Some(coming);
    // Some rank is slow for 1 − exp(−1/4) of the time, and 9 of 10 seconds of a step are computing.
    let fractions: Vec<f64> = (0..20)
        .map(|run| {
            let outcome = simulate(&job, run, Detail::Summary).unwrap();
            adds_up(&outcome);
            outcome.useful_fraction()
        })
        .collect();
    let slow = 1.0 - (-0.25_f64).exp();
    let want = (1.0 - slow) + slow / 1.45;
    let Estimate { mean, standard_error, .. } = Estimate::of(&fractions).unwrap();
    assert!((mean - want).abs() <= 4.0 * standard_error, "{mean} ± {standard_error}, expected {want}");
    // A slow window makes everything, jitter included, that much longer.
    let mut windowed = job.clone();
    windowed.stragglers.ranks = Some(ranks(64, STEP, 1.0, Jitter::Normal { deviation: 0.03 }));
    let plain = simulate(&windowed, 0, Detail::Summary).unwrap();
    windowed.stragglers.windows = vec![SlowWindow {
        from: Time::ZERO,
        to: Time::from_nanos(seconds(1e6).as_nanos()),
        factor: Ratio::from_f64(2.0).unwrap(),
    }];
    let halved = simulate(&windowed, 0, Detail::Summary).unwrap();
    adds_up(&halved);
    let ratio = halved.useful.as_secs_f64() / plain.useful.as_secs_f64();
    assert!((ratio - 0.75).abs() < 2e-3, "{ratio}");
}

#[test]
fn a_year_of_jittered_steps_with_failures_is_quick_and_adds_up() {
    let mut many = job(ranks(2_048, 5.0, 0.5, Jitter::Normal { deviation: 0.03 }), 50_000);
    many.checkpoint = Some(queued(seconds(600.0), seconds(0.5), seconds(60.0)));
    let spread = Spread::Exponential { mean: seconds(11_135.0) };
    many.faults.sources = vec![pipestep_job::FaultSource::single("any", spread, 1, true)];
    many.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(300.0)));
    let outcome = simulate(&many, 0, Detail::Full).unwrap();
    adds_up(&outcome);
    assert_eq!(outcome, simulate(&many, 0, Detail::Full).unwrap());
    assert!(outcome.finished && outcome.failures_counted > 5);
    assert_eq!(outcome.useful, seconds(250_000.0));
    let captured = outcome.checkpoints.iter().find_map(|record| record.capture).unwrap();
    assert!(captured > Time::from_nanos(seconds(600.0).as_nanos()));
}

#[test]
fn responses_that_cannot_be_are_refused_and_endless_ones_found() {
    let mut four = ranks(4, STEP, 0.0, Jitter::Normal { deviation: 0.1 });
    four.response = Response::Evict;
    assert_eq!(job(four.clone(), 1).check(), Err(InputError::NoDetection));
    four.response = Response::Drop { slowest: 4 };
    assert!(matches!(job(four.clone(), 1).check(), Err(InputError::TooManyTaken { .. })));
    four.jitter = Jitter::Normal { deviation: -0.1 };
    assert!(matches!(job(four.clone(), 1).check(), Err(InputError::Distribution { .. })));
    // Healthy ranks are evicted faster than the job can save.
    four.jitter = Jitter::Normal { deviation: 0.1 };
    four.response = Response::Evict;
    four.detection = Some(SlowDetection { threshold: 0.01, window: 1 });
    let error = simulate(&job(four, 1_000), 0, Detail::Summary).unwrap_err();
    assert!(matches!(error, JobError::NoProgress { .. }), "{error}");
}

#[test]
fn ranks_taken_for_slow_that_become_slow_meanwhile_are_taken_out_once() {
    // All three are suspect in every step, and two of them become slow during the first.
    let mut three = ranks(3, STEP, 0.0, Jitter::TwoPoint { factor: 2.0, probability: 1.0 });
    three.detection = Some(SlowDetection { threshold: 0.5, window: 1 });
    three.response = Response::Redistribute { pause: Duration::ZERO };
    let instants = [seconds(5.0), seconds(6.0)].map(|at| Time::from_nanos(at.as_nanos()));
    three.slow = Some(SlowRanks { at: instants.to_vec(), ..slow_from_the_start(3.0) });
    let outcome = simulate(&job(three, 5), 0, Detail::Full).unwrap();
    adds_up(&outcome);
    // One is left in the end, whatever becomes of it.
    assert_eq!(outcome.stragglers.unwrap().taken_out, 2);
}

fn any_ranks() -> impl Strategy<Value = Ranks> {
    let sizes = (2_u32..9, 5_u64..400, 0_u64..5);
    let slow =
        (proptest::collection::vec(0_u64..9_000, 0..3), 100_u64..500, proptest::option::of(1_u64..3_000));
    (sizes, slow, 0..3, 0..5, 1_u32..4, 0.0..0.5_f64).prop_map(
        |((count, step, overhead), (at, percent, lasts), jitter, response, window, threshold)| Ranks {
            count,
            step: Duration::from_nanos(step),
            overhead: Duration::from_nanos(overhead),
            jitter: match jitter {
                0 => Jitter::None,
                1 => Jitter::Normal { deviation: 0.2 },
                _ => Jitter::TwoPoint { factor: 2.0, probability: 0.1 },
            },
            slow: Some(SlowRanks {
                at: at.into_iter().take(count as usize).map(Time::from_nanos).collect(),
                between: Some(Spread::Exponential { mean: Duration::from_nanos(20_000) }),
                factor: Ratio::new(percent, 100).unwrap(),
                lasts: lasts.map(|lasts| Spread::Fixed(Duration::from_nanos(lasts))),
            }),
            detection: Some(SlowDetection { threshold, window }),
            response: match response {
                0 => Response::Wait,
                1 => Response::Redistribute { pause: Duration::from_nanos(30) },
                2 => Response::Evict,
                3 => Response::Drop { slowest: 1 },
                _ => Response::Stale { bound: window },
            },
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn whatever_is_done_about_slow_ranks_every_second_is_accounted_for(
        job in crate::faults::any_job(),
        ranks in any_ranks(),
        seed in any::<u64>(),
    ) {
        let mut job = job;
        job.seed = seed;
        job.stragglers.ranks = Some(ranks);
        let outcome = simulate(&job, 0, Detail::Full).unwrap();
        adds_up(&outcome);
        prop_assert_eq!(&outcome, &simulate(&job, 0, Detail::Full).unwrap());
        let mut end = Time::ZERO;
        for span in outcome.timeline.iter() {
            prop_assert_eq!(span.interval.start, end);
            end = span.interval.end;
        }
        prop_assert_eq!(end.since(Time::ZERO), outcome.elapsed);
        if outcome.finished {
            prop_assert_eq!(Some(outcome.useful), job.work);
        }
    }
}
