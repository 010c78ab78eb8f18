//! The book's whole-job budgets and its stragglers: by formula exactly, and simulated.

use pipestep_engine::Duration;
use pipestep_job::closed_form::Poisson;
use pipestep_job::{
    Detail, Estimate, FaultSource, Jitter, JobInputs, Mode, Ranks, Ratio, Recovery, Response, SlowDetection,
    SlowRanks, Spread, TokenTarget, days, simulate,
};
use serde_json::Value;

use crate::support::{adds_up, close, data, number, queued, ratio, seconds};

const DAY: f64 = 86_400.0;
const SAVE_EVERY: f64 = 1_800.0;
const RECOVERY: f64 = 120.0;
const DEVICE_MTBF: f64 = 29_122_560.0;

/// Within four standard errors, of which one is at most half a percent.
fn agrees(what: &str, sample: &[f64], want: f64) {
    let Estimate { mean, standard_error, .. } = Estimate::of(sample).unwrap();
    assert!(standard_error <= 0.005 * want, "{what}: ± {standard_error}");
    assert!(
        (mean - want).abs() <= 4.0 * standard_error,
        "{what}: {mean} ± {standard_error}, expected {want}"
    );
}

/// The book's job on so many cards: 31,790 steps, a save of 114.67 GB at 7 GB/s every 1,800 s.
fn budget(task: &Value, cards: u32, step: f64) -> JobInputs {
    let tokens_per_step = task["tokens_per_step"].as_u64().unwrap();
    let target = TokenTarget { tokens: 100_000_000_000, tokens_per_step, step: seconds(step) };
    assert_eq!(Some(target.steps().unwrap()), task["steps"].as_u64());
    let mut job = JobInputs::of_work(target.work().unwrap());
    let save = seconds(ratio(&task["checkpoint_save_s"]));
    let mut checkpoint = queued(seconds(SAVE_EVERY), Duration::ZERO, save);
    checkpoint.mode = Mode::Sync;
    job.checkpoint = Some(checkpoint);
    let between = Spread::Exponential { mean: seconds(DEVICE_MTBF) };
    job.faults.sources = vec![FaultSource::single("card", between, cards, false)];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(RECOVERY)));
    job
}

fn loss(task: &Value, cards: u32) -> Poisson {
    Poisson {
        mtbf: DEVICE_MTBF / f64::from(cards),
        interval: SAVE_EVERY,
        save_cost: ratio(&task["checkpoint_save_s"]),
        downtime: RECOVERY,
        exposed_recovery: 0.0,
    }
}

/// Days to the end, five of them set aside, one for each run.
fn finish_days(job: &JobInputs) -> Vec<f64> {
    let days = |run| {
        let outcome = simulate(job, run, Detail::Summary).unwrap();
        adds_up(&outcome);
        assert!(outcome.finished);
        days(outcome.elapsed, seconds(5.0 * DAY))
    };
    (0..100).map(days).collect()
}

#[test]
fn the_budget_of_a_whole_job_is_that_of_the_book() {
    let file = data("progress.json");
    let task = &file["task"];
    for row in file["design_rows"].as_array().unwrap() {
        let (cards, step) = (row["devices"].as_u64().unwrap() as u32, number(row, "base_step_s"));
        let first = loss(task, cards).first_order_loss();
        close("save", first.save, number(row, "save_loss"));
        close("redo", first.redo, number(row, "redo_loss"));
        close("recovery", first.recovery, number(row, "recovery_loss"));
        close("loss", first.total(), number(row, "total_loss"));
        let job = budget(task, cards, step);
        let mut undisturbed = job.clone();
        (undisturbed.checkpoint, undisturbed.faults.sources) = (None, Vec::new());
        let base = simulate(&undisturbed, 0, Detail::Summary).unwrap();
        close("base", days(base.elapsed, Duration::ZERO), number(row, "base_days"));
        agrees(&format!("{cards} cards"), &finish_days(&job), number(row, "finish_days"));
    }
}

#[test]
fn one_input_changed_moves_the_end_as_the_book_says() {
    let file = data("progress.json");
    let task = &file["task"];
    for row in file["sensitivity_48"].as_array().unwrap() {
        let (case, step) = (row["case"].as_str().unwrap(), number(row, "step_s"));
        let mut job = budget(task, 48, step);
        if case == "normal_5pct" {
            // The base step, its computing scattered by 5 % over 48 ranks: the longer step comes out by itself.
            let base = number(&file["sensitivity_48"][0], "step_s");
            let overhead = number(row, "communication_s") + number(row, "input_s");
            job = budget(task, 48, base);
            job.stragglers.ranks = Some(Ranks {
                count: 48,
                overhead: seconds(overhead),
                jitter: Jitter::Normal { deviation: 0.05 },
                ..Ranks::steady(seconds(base))
            });
            // 1,800 s on the clock, on average.
            let every = Spread::Fixed(seconds(SAVE_EVERY * base / step));
            job.checkpoint.as_mut().unwrap().requests.every = every;
        }
        agrees(case, &finish_days(&job), number(row, "finish_days"));
        let formula = 5.0 + 31_790.0 * step * (1.0 + loss(task, 48).first_order_loss().total()) / DAY;
        close(case, formula, number(row, "finish_days"));
    }
}

/// More cards at a larger batch need fewer steps, S(B) = S (1 + noise / B): the work of a job, before its losses.
#[test]
fn a_larger_batch_pays_up_to_its_noise() {
    let file = data("progress.json");
    let base = &file["batch_scaling_cases"][1];
    for row in file["batch_scaling_cases"].as_array().unwrap() {
        let (scenario, want) = (&row["scenario"], &row["expect"]);
        let (noise, tokens) = (number(scenario, "noise_tokens"), number(want, "weak_batch_tokens"));
        let base_tokens = number(&base["expect"], "weak_batch_tokens");
        let fewest = 31_790.0 / (1.0 + noise / base_tokens);
        let steps = fewest * (1.0 + noise / tokens);
        close("steps", steps, number(want, "weak_steps"));
        close("ceiling", 31_790.0 / fewest, number(want, "weak_speedup_ceiling"));
        let done = |steps: f64, step: f64| {
            let job = JobInputs::of_work(seconds(steps * step));
            days(simulate(&job, 0, Detail::Summary).unwrap().elapsed, Duration::ZERO)
        };
        close("weak", done(steps, number(&file["design_rows"][1], "base_step_s")), number(want, "weak_days"));
        close("strong", done(31_790.0, number(want, "strong_step_s")), number(want, "strong_days"));
    }
}

/// The expected larger of `slow` and of the largest of `count` standard normals, by Simpson's rule.
fn larger_of(slow: f64, count: u32) -> f64 {
    use statrs::distribution::{ContinuousCDF, Normal};
    const PARTS: u32 = 20_000;
    let normal = Normal::standard();
    let top = 12.0;
    let width = (top - slow) / f64::from(PARTS);
    let above = |z: f64| -f64::exp_m1(f64::from(count) * (-normal.sf(z)).ln_1p());
    let sum: f64 = (0..=PARTS)
        .map(|part| {
            let weight = match part {
                0 | PARTS => 1.0,
                part if part % 2 == 1 => 4.0,
                _ => 2.0,
            };
            weight * above(slow + width * f64::from(part))
        })
        .sum();
    slow + sum * width / 3.0
}

/// Mean lengths of a step, one for each run.
fn step_times(ranks: &Ranks, steps: u64) -> Vec<f64> {
    let mut job = JobInputs::of_work(ranks.step.times(steps).unwrap());
    job.stragglers.ranks = Some(ranks.clone());
    let mean = |run| {
        let outcome = simulate(&job, run, Detail::Summary).unwrap();
        adds_up(&outcome);
        outcome.elapsed.as_secs_f64() / outcome.stragglers.unwrap().steps as f64
    };
    (0..20).map(mean).collect()
}

/// Steps, and the share of them in which some rank was taken for slow.
fn alarms(ranks: &Ranks, steps: u64) -> (f64, f64) {
    let mut job = JobInputs::of_work(ranks.step.times(steps).unwrap());
    job.stragglers.ranks = Some(ranks.clone());
    let totals = simulate(&job, 0, Detail::Summary).unwrap().stragglers.unwrap();
    (totals.steps as f64, totals.false_alarm_steps as f64 / totals.steps as f64)
}

/// Replacing a rank costs half an interval of redo and the recovery, wherever in the interval it is noticed.
#[test]
fn an_eviction_costs_half_an_interval_and_the_recovery() {
    const PLACES: u32 = 200;
    for row in data("book_straggler.json")["evict_cases"].as_array().unwrap() {
        let (interval, recovery) = (number(row, "interval_seconds"), number(row, "recovery_seconds"));
        let costs = (0..PLACES).map(|place| {
            let start = interval * (3.0 + (f64::from(place) + 0.5) / f64::from(PLACES));
            let mut job = JobInputs::of_work(seconds(interval * 10.0));
            let mut checkpoint = queued(seconds(interval), Duration::ZERO, Duration::ZERO);
            checkpoint.mode = Mode::Sync;
            job.checkpoint = Some(checkpoint);
            job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(recovery)));
            // Steps so short that being noticed takes no time.
            job.stragglers.ranks = Some(Ranks {
                count: 8,
                slow: Some(SlowRanks {
                    at: vec![pipestep_engine::Time::from_nanos(seconds(start).as_nanos())],
                    between: None,
                    factor: Ratio::from_f64(1.5).unwrap(),
                    lasts: None,
                }),
                detection: Some(SlowDetection { threshold: 0.1, window: 1 }),
                response: Response::Evict,
                ..Ranks::steady(seconds(interval / 6_000.0))
            });
            let outcome = simulate(&job, 0, Detail::Summary).unwrap();
            adds_up(&outcome);
            assert_eq!(outcome.stragglers.unwrap().evicted, 1);
            (outcome.elapsed.as_nanos() - outcome.useful.as_nanos()) as f64 / 1e9
        });
        let mean = costs.sum::<f64>() / f64::from(PLACES);
        let want = number(row, "evict_cost_seconds");
        assert!((mean - want).abs() <= interval / 2_000.0, "{row}: {mean}");
    }
}

/// The time of one step: its slowest rank is ready, then come the exchange and what follows it; a failure at the start
/// is recovered from first.
fn barrier_step(earliest: f64, latest: f64, after: f64, recovery: f64) -> f64 {
    let nanos = |count: f64| Duration::from_nanos(count.round() as u64);
    // A rank that is ready at once has nothing to be slower than: then all but one take half as long as the last.
    let compute = if earliest > 0.0 { earliest } else { latest / 2.0 };
    let mut job = JobInputs::of_work(nanos(compute + after));
    let is_late = latest > compute;
    job.stragglers.ranks = Some(Ranks {
        count: 4,
        overhead: nanos(after),
        slow: is_late.then(|| SlowRanks {
            at: vec![pipestep_engine::Time::ZERO],
            between: None,
            factor: Ratio::from_f64(latest / compute).unwrap(),
            lasts: None,
        }),
        ..Ranks::steady(nanos(compute + after))
    });
    if recovery > 0.0 {
        job.faults.at = vec![pipestep_engine::Time::ZERO];
        job.faults.recovery = Recovery::Fixed(Spread::Fixed(nanos(recovery)));
    }
    let outcome = simulate(&job, 0, Detail::Summary).unwrap();
    adds_up(&outcome);
    assert_eq!(outcome.stragglers.unwrap().steps, 1);
    outcome.elapsed.as_nanos() as f64
}

/// A faster exchange helps only once the ranks are ready, a faster recovery only those that had to recover.
#[test]
fn a_step_ends_after_its_last_rank_its_exchange_and_its_recovery() {
    for case in data("book_straggler.json")["barrier_cases"].as_array().unwrap() {
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let ready: Vec<f64> =
            scenario["ready_ns"].as_array().unwrap().iter().map(|at| at.as_f64().unwrap()).collect();
        let first = ready.iter().copied().fold(f64::INFINITY, f64::min);
        let last = ready.iter().copied().fold(0.0, f64::max);
        let (exchange, recovery) = (number(scenario, "exchange_ns"), number(scenario, "recovery_ns"));
        let post = number(scenario, "post_compute_ns");
        let faster = exchange / number(scenario, "exchange_speedup");
        for (key, step) in [
            ("baseline_ns", barrier_step(first, last, exchange + post, recovery)),
            ("faster_exchange_ns", barrier_step(first, last, faster + post, recovery)),
            ("aligned_ready_ns", barrier_step(first, first, exchange + post, recovery)),
            ("no_recovery_ns", barrier_step(first, last, exchange + post, 0.0)),
        ] {
            // Steps of late ranks, and a third of an exchange, are rounded to whole nanoseconds.
            assert!((step - ratio(&want[key])).abs() <= 1.0, "{key} of {case}: {step}");
        }
    }
}

#[test]
fn normal_ranks_and_what_is_done_about_a_slow_one() {
    for case in data("book_straggler.json")["normal_max_cases"].as_array().unwrap() {
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        let id = case["id"].as_str().unwrap();
        let (mean, sigma) = (number(scenario, "mean_compute_seconds"), number(scenario, "sigma_seconds"));
        let (overhead, count) =
            (number(scenario, "overhead_seconds"), scenario["ranks"].as_u64().unwrap() as u32);
        let deviations = number(scenario, "k_sigma");
        let healthy = Ranks {
            count,
            overhead: seconds(overhead),
            jitter: Jitter::Normal { deviation: sigma / mean },
            ..Ranks::steady(seconds(mean + overhead))
        };
        let times = step_times(&healthy, 4_000);
        agrees(&format!("{id} step"), &times, number(want, "expected_step_seconds"));
        // What the mean rank waits for at the reduction.
        if sigma > 0.0 && count > 1 {
            let waits: Vec<f64> = times.iter().map(|time| time - overhead - mean).collect();
            agrees(&format!("{id} wait"), &waits, number(want, "mean_rank_wait_seconds"));
        }
        if count == 1 {
            continue;
        }
        let mut one_slow = healthy.clone();
        one_slow.slow = Some(SlowRanks {
            at: vec![pipestep_engine::Time::ZERO],
            between: None,
            factor: Ratio::from_f64(1.0 + deviations * sigma / mean).unwrap(),
            lasts: None,
        });
        // The book waits for the larger of two means; a step waits for the larger of what is drawn.
        let times = step_times(&one_slow, 1_000);
        let exact = mean + sigma * larger_of(deviations, count - 1) + overhead;
        agrees(&format!("{id} slow"), &times, exact);
        assert!(exact >= number(want, "wait_response_step_seconds") - 1e-6, "{id}");
        assert!(exact <= number(want, "wait_response_step_seconds") + 0.7 * sigma, "{id}");
        // Its share given to the others, once it has been noticed: sixty steps in a row above a threshold that no
        // healthy rank exceeds so often.
        one_slow.response = Response::Redistribute { pause: Duration::ZERO };
        one_slow.detection = Some(SlowDetection { threshold: 2.9 * sigma / mean, window: 60 });
        // Long runs make little of those sixty.
        let times = step_times(&one_slow, 30_000);
        let Estimate { mean: got, .. } = Estimate::of(&times).unwrap();
        let spread = number(want, "redistribute_step_seconds");
        assert!((got / spread - 1.0).abs() < 1e-3, "{id} spread: {got}, expected {spread}");
        // How often some healthy rank lies that far out.
        let mut watched = healthy;
        watched.detection = Some(SlowDetection { threshold: deviations * sigma / mean, window: 1 });
        let far_out = number(want, "probability_some_rank_beyond_k");
        let (steps, alarms) = alarms(&watched, 40_000);
        let error = (far_out * (1.0 - far_out) / steps).sqrt();
        assert!((alarms - far_out).abs() <= 4.0 * error + 1.0 / steps, "{id}: {alarms}, expected {far_out}");
    }
}
