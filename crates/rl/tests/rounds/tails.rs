//! Long tails against `order_statistics.json`: means within four standard errors, those within half a percent.

use crate::common::*;
use pipestep_engine::Duration;
use pipestep_rl::*;
use serde_json::Value;

/// A median of a million tokens of a nanosecond each, so that rounding to tokens does not show.
const MEDIAN: f64 = 1e6;

fn statistics() -> Value {
    oracle(include_str!("../data/order_statistics.json"))
}

fn lengths(shape: Shape, cap: Option<u64>, count: u32, slots: u32) -> RlInputs {
    let mut inputs = plain(Mode::Sync, count, shape);
    inputs.rollout.lengths.cap = cap;
    inputs.rollout.slots = slots;
    inputs.rollout.token_time = TokenTime::Linear { base: nanos(1), per_response: Duration::ZERO };
    inputs.warmup = 0;
    inputs
}

fn lognormal(sigma: f64) -> Shape {
    Shape::Lognormal { median: MEDIAN, sigma }
}

/// Generation time of every round, over `unit`.
fn generations(inputs: &RlInputs, unit: f64) -> Vec<f64> {
    let outcome = simulate(inputs).unwrap();
    let times = outcome.rounds.iter().map(|round| round.generation.unwrap());
    times.map(|time| time.as_nanos() as f64 / unit).collect()
}

/// The mean lies within four standard errors; `std` is the known one, or the sample's is used.
fn within_four_errors(times: &[f64], expected: f64, std: Option<f64>, what: &Value) {
    four_errors_of(times, expected, std, 0.005, what);
}

/// As above, the standard error within `tolerance` of the expectation.
fn four_errors_of(times: &[f64], expected: f64, std: Option<f64>, tolerance: f64, what: &Value) {
    let count = times.len() as f64;
    let mean = times.iter().sum::<f64>() / count;
    let sample = (times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt();
    // A sample in which nearly all are at the cap shows no spread; the last term stands for it.
    let error = std.unwrap_or(sample) / count.sqrt();
    assert!((mean - expected).abs() <= 4.0 * error + 1e-5 * expected, "{what}: {mean} +- {error}");
    assert!(error <= tolerance * expected, "{what}: {error} is too much of {expected}");
}

/// Rounds needed for a standard error of 0.45 percent, at most so many samples in all.
fn enough(std: f64, mean: f64, samples: u64, most: u64) -> Option<u32> {
    let rounds = (std / (0.0048 * mean)).powi(2).ceil().max(50.0);
    (rounds * samples as f64 <= most as f64).then_some(rounds as u32)
}

#[test]
fn the_longest_of_many_lognormal_responses() {
    let mut checked = 0;
    for row in statistics()["lognormal"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let (mean, std) = (number("mean_of_max_over_median"), number("std_of_max_over_median"));
        let count = row["n"].as_u64().unwrap();
        if count > 512 {
            continue;
        }
        let Some(rounds) = enough(std, mean, count, 50_000) else {
            continue;
        };
        let mut inputs = lengths(lognormal(number("sigma_log")), None, count as u32, count as u32);
        inputs.rounds = rounds;
        within_four_errors(&generations(&inputs, MEDIAN), mean, Some(std), row);
        checked += 1;
    }
    assert!(checked >= 10, "only {checked} rows are cheap enough");
}

#[test]
fn the_longest_of_many_capped_responses_and_the_share_of_slots_at_work() {
    let mut checked = 0;
    for row in statistics()["lognormal_capped"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let (sigma, cap, count) = (number("sigma_log"), number("cap_over_median"), number("n") as u32);
        if count > 1024 || sigma * sigma * cap > 8.0 {
            continue;
        }
        let cap = (cap * MEDIAN) as u64;
        let mut inputs = lengths(lognormal(sigma), Some(cap), count, count);
        inputs.rounds = 100_000 / count.max(40);
        let times = generations(&inputs, MEDIAN);
        // Where the cap is rarely hit, half a percent would take too many rounds for a test.
        let tolerance = if number("p_any_hits_cap") > 0.5 { 0.005 } else { 0.03 };
        four_errors_of(&times, number("mean_of_max_over_median"), None, tolerance, row);
        let share = simulate(&inputs).unwrap().slots;
        let busy = share.busy.as_secs_f64() / (share.busy.as_secs_f64() + share.idle.as_secs_f64());
        assert!((busy / number("sync_busy_share") - 1.0).abs() < 0.04, "{row}: {busy}");
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} rows");
}

#[test]
fn the_first_of_more_launches_than_needed() {
    let mut checked = 0;
    for row in statistics()["lognormal_oversampling"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let (keep, launch) = (number("keep") as u32, number("launch") as u32);
        if keep == launch {
            continue;
        }
        let mut inputs = lengths(lognormal(number("sigma_log")), None, keep, launch);
        inputs.launch = launch;
        inputs.rounds = match (keep, launch - keep) {
            (512, 8) => 1_000,
            (512, _) => 400,
            (64, _) => 2_000,
            _ => 15_000,
        };
        let times = generations(&inputs, MEDIAN);
        within_four_errors(&times, number("mean_finish_over_median"), None, row);
        checked += 1;
    }
    assert!(checked >= 8, "only {checked} rows");
}

#[test]
fn jobs_that_fill_slots_as_they_fall_free() {
    let mut checked = 0;
    for row in statistics()["exponential_slots"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let (jobs, slots) = (number("jobs") as u32, number("slots") as u32);
        let (mean, std) = (number("mean_makespan_over_mean_job"), number("std"));
        let Some(rounds) = enough(std, mean, u64::from(jobs), 300_000) else {
            continue;
        };
        let mut inputs = lengths(Shape::Exponential { mean: MEDIAN }, None, jobs, slots);
        inputs.rounds = rounds;
        within_four_errors(&generations(&inputs, MEDIAN), mean, Some(std), row);
        // The same slots spread over engines take the same time.
        inputs.rollout.engines = 4;
        inputs.rollout.slots = slots / 4;
        within_four_errors(&generations(&inputs, MEDIAN), mean, Some(std), row);
        checked += 1;
    }
    assert!(checked >= 2, "only {checked} rows");
}

#[test]
fn rounds_with_a_long_tail() {
    let file = oracle(include_str!("../data/rl_rounds.json"));
    for row in file["long_tail_rounds"].as_array().unwrap() {
        let number = |key: &str| row[key].as_f64().unwrap();
        let count = number("sequences") as u32;
        if count > 512 || number("sigma_log") > 0.5 {
            continue;
        }
        let token = (number("seconds_per_token") * 1e9 / 1000.0) as u64;
        let mut inputs = lengths(lognormal(number("sigma_log")), None, count, count);
        inputs.rollout.token_time = TokenTime::Linear { base: nanos(token), per_response: Duration::ZERO };
        // A thousand tokens of 20 ms: a million of 20 us.
        inputs.update.time = UpdateTime::Fixed(seconds(number("train_s") as u64));
        inputs.sync.time = SyncTime::Fixed(seconds(number("sync_s") as u64));
        inputs.rounds = if count > 100 { 1_200 } else { 2_000 };
        let outcome = simulate(&inputs).unwrap();
        let times: Vec<f64> =
            outcome.rounds.iter().map(|round| round.end.since(round.start).as_secs_f64()).collect();
        within_four_errors(&times, number("sync_round_s"), None, row);
        let waiting = outcome.tail.waiting_share;
        assert!((waiting / number("generation_idle_share_in_sync") - 1.0).abs() < 0.01, "{row}: {waiting}");
        inputs.mode = Mode::OneStepOff;
        inputs.warmup = 1;
        let times: Vec<f64> = simulate(&inputs)
            .unwrap()
            .rounds
            .iter()
            .map(|round| round.end.since(round.start).as_secs_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        // A lower bound by Jensen, nearly reached since generation nearly always exceeds training.
        let bound = number("one_step_off_round_s");
        assert!((mean / bound - 1.0).abs() < 0.02, "{row}: {mean} against {bound}");
    }
}
