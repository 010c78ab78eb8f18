//! The largest of many ranks is what a step waits for: the oracle's order statistics, row by row.

use pipestep_engine::Duration;
use pipestep_job::{Detail, Jitter, JobInputs, Ranks, simulate};
use serde_json::Value;

use crate::support::{adds_up, data, number, seconds};

/// The mean of the largest of so many ranks over so many steps, where a rank takes 1 on average (or at least).
fn mean_of_largest(jitter: Jitter, count: u32, steps: u64) -> f64 {
    let step = seconds(1.0);
    let mut job = JobInputs::of_work(step.times(steps).unwrap());
    job.stragglers.ranks = Some(Ranks { count, jitter, ..Ranks::steady(step) });
    let outcome = simulate(&job, 0, Detail::Summary).unwrap();
    adds_up(&outcome);
    assert_eq!(outcome.stragglers.unwrap().steps, steps);
    assert_eq!(outcome.lost.dropped, Duration::ZERO);
    outcome.elapsed.as_secs_f64() / steps as f64
}

/// Agrees within four standard errors, of which one is at most half a percent of the value.
fn agrees(what: &str, jitter: Jitter, row: &Value, value: impl Fn(f64) -> f64, (want, std): (f64, f64)) {
    let wanted = (std / (0.005 * want)).powi(2);
    let steps = wanted.clamp(1_000.0, 2e6).ceil() as u64;
    let got = value(mean_of_largest(jitter, row["n"].as_u64().unwrap() as u32, steps));
    let error = std / (steps as f64).sqrt();
    assert!(error <= 0.005 * want * 1.001, "{what} {row}: ± {error}");
    assert!((got - want).abs() <= 4.0 * error, "{what} {row}: {got} ± {error}");
}

#[test]
fn the_largest_of_normal_ranks() {
    const DEVIATION: f64 = 0.05;
    let jitter = Jitter::Normal { deviation: DEVIATION };
    // The largest of one is zero on average, of which nothing is half a percent.
    for row in data("order_statistics.json")["normal"].as_array().unwrap().iter().skip(1) {
        let stated = (number(row, "mean"), number(row, "std"));
        agrees("normal", jitter, row, |mean| (mean - 1.0) / DEVIATION, stated);
    }
}

#[test]
fn the_largest_of_exponential_tails() {
    const TAIL: f64 = 0.1;
    for row in data("order_statistics.json")["exponential"].as_array().unwrap() {
        let stated = (number(row, "mean"), number(row, "std"));
        agrees("exponential", Jitter::Exponential { tail: TAIL }, row, |mean| (mean - 1.0) / TAIL, stated);
    }
}

#[test]
fn the_largest_of_lognormal_ranks() {
    for row in data("order_statistics.json")["lognormal"].as_array().unwrap() {
        let square = number(row, "sigma_log").powi(2);
        let jitter = Jitter::Lognormal { variation: square.exp_m1().sqrt() };
        // A rank has the mean 1, and so the median exp(-sigma² / 2).
        let std = number(row, "std_of_max_over_median") * (-square / 2.0).exp();
        agrees("lognormal", jitter, row, |mean| mean, (number(row, "mean_of_max_over_mean"), std));
    }
}
