//! Input of a job against `data_loading.json`: random producers, bursts, a pause, a local copy.

use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_job::{
    Detail, Estimate, Input, InputCache, InputRead, JobInputs, ReadFrom, Spread, WorkerStop, simulate,
};
use serde_json::Value;

use crate::input::{fed, feed};
use crate::support::{adds_up, data, is_long_run, seconds};

/// Steps, and how many of them waited how long altogether, of one run after it has been warmed up: what a longer run
/// has more than a shorter one, which is its beginning.
fn warmed_up(job: &JobInputs, run: u64, warm_up: Duration) -> [f64; 3] {
    let counts = |horizon| {
        let job = JobInputs { horizon, ..job.clone() };
        let outcome = simulate(&job, run, Detail::Summary).unwrap();
        adds_up(&outcome);
        let input = outcome.input.unwrap();
        [input.steps as f64, input.steps_waited as f64, outcome.lost.input_wait.as_secs_f64()]
    };
    let end = job.horizon.unwrap();
    let (before, after) = (counts(Some(Time::from_nanos(warm_up.as_nanos()))), counts(Some(end)));
    [after[0] - before[0], after[1] - before[1], after[2] - before[2]]
}

/// Rare stalls, and long buffers that seldom run empty, are known to half a percent from a long run only.
#[test]
fn a_random_producer_stalls_the_steps_as_often_as_its_chain_says() {
    let (frequent, each) = if is_long_run() { (0.001, 200_000.0) } else { (0.11, 10_000.0) };
    for row in data("data_loading.json")["exponential_producer"].as_array().unwrap() {
        let part = |key: &str| row[key].as_f64().unwrap();
        let buffer = row["buffer_batches"].as_u64().unwrap() as u32;
        let input = feed(Spread::Exponential { mean: seconds(1.0 / part("supply_over_demand")) }, buffer);
        let warm_up = 1_000.0 + 5.0 * f64::from(buffer).powi(2);
        let job = fed(input, warm_up + each);
        let (want, wait) = (part("p_stall"), part("mean_stall_over_step"));
        let mut runs: Vec<[f64; 3]> = Vec::new();
        let sample = |runs: &[[f64; 3]], value: &dyn Fn(&[f64; 3]) -> f64| {
            Estimate::of(&runs.iter().map(value).collect::<Vec<f64>>()).unwrap()
        };
        loop {
            let more = runs.len() as u64..runs.len() as u64 + 20;
            runs.extend(more.map(|run| warmed_up(&job, run, seconds(warm_up))));
            let stalls = sample(&runs, &|run| run[1] / run[0]);
            if want < frequent || stalls.standard_error <= 0.005 * want {
                break;
            }
        }
        let agrees = |what: &str, want: f64, value: &dyn Fn(&[f64; 3]) -> f64| {
            let Estimate { mean, standard_error, .. } = sample(&runs, value);
            assert!((mean - want).abs() <= 4.0 * standard_error, "{what}, {row}: {mean} ± {standard_error}");
            standard_error / want
        };
        // The steps take a second each, the waits come on top.
        let throughput = |run: &[f64; 3]| run[0] / (run[0] + run[2]);
        let steps: f64 = runs.iter().map(|run| run[0]).sum();
        if want * steps < 100.0 {
            let stalls: f64 = runs.iter().map(|run| run[1]).sum();
            assert!(stalls <= 200.0, "{row}: {stalls} stalls in {steps} steps");
            let Estimate { mean, .. } = sample(&runs, &throughput);
            assert!((mean - part("throughput_over_ideal")).abs() < 1e-3, "{row}: {mean}");
            continue;
        }
        assert!(agrees("throughput", part("throughput_over_ideal"), &throughput) <= 0.005, "{row}");
        agrees("stalls", want, &|run| run[1] / run[0]);
        agrees("waits", wait, &|run| run[2] / run[0]);
    }
}

#[test]
fn deliveries_of_many_batches_stall_when_a_window_takes_longer_than_its_steps() {
    for row in data("data_loading.json")["burst"]["rows"].as_array().unwrap() {
        let part = |key: &str| row[key].as_f64().unwrap();
        let mut input = feed(Spread::Fixed(seconds(part("fetch_window_s"))), 1);
        input.step = seconds(part("step_s"));
        input.delivery = row["window_batches"].as_u64().unwrap() as u32;
        input.prefetch = input.delivery;
        let windows = 200.0;
        let mut job = fed(input, 1.0);
        job.horizon = None;
        job.work = Some(seconds(part("window_batches") * windows * part("step_s")));
        let outcome = simulate(&job, 0, Detail::Summary).unwrap();
        adds_up(&outcome);
        // The first window has nothing to overlap with.
        let mean =
            (outcome.elapsed.as_secs_f64() - part("fetch_window_s")) / (part("window_batches") * windows);
        assert!((mean / part("mean_step_s") - 1.0).abs() < 0.01, "{row}: {mean}");
    }
}

#[test]
fn a_pause_of_a_worker_needs_the_prefetch_that_the_textbook_says() {
    let file = data("data_loading.json");
    let (given, want) = (&file["textbook"]["inputs"], &file["textbook"]["expected"]);
    let part = |of: &Value, key: &str| of[key].as_f64().unwrap();
    let sequences = part(given, "sequences_per_step");
    let workers = given["workers"].as_u64().unwrap() as u32;
    // Sequence by sequence, as the textbook's rates have it.
    let mut input = feed(Spread::Fixed(seconds(1.0 / part(given, "sequences_per_worker_s"))), 1);
    (input.workers, input.step) = (workers, seconds(part(given, "step_s") / sequences));
    let pause = part(given, "pause_s");
    let (from, to) = (600.0, 600.0 + pause);
    input.stops = vec![WorkerStop {
        from: Time::from_nanos(seconds(from).as_nanos()),
        to: Time::from_nanos(seconds(to).as_nanos()),
        workers: given["paused_workers"].as_u64().unwrap() as u32,
    }];
    let waits = |prefetch: u32| {
        let job = fed(Input { prefetch, ..input.clone() }, 2_000.0);
        simulate(&job, 0, Detail::Summary).unwrap().input.unwrap().steps_waited
    };
    // The first step waits, and others while the buffer is too small for the pause. What the workers have in hand,
    // and the one that finishes what it has begun, count for a few.
    let needed = (1..400).find(|&prefetch| waits(prefetch) <= 1).unwrap();
    let prefetch = want["prefetch_needed_sequences"].as_u64().unwrap() as u32;
    assert!(needed.abs_diff(prefetch) <= workers + 1, "{needed}, expected about {prefetch}");
    // How far the buffer falls, and how long it takes to fill up again.
    let outcome = simulate(&fed(Input { prefetch: 200, ..input.clone() }, 2_000.0), 0, Detail::Full).unwrap();
    let level = |at: f64| {
        let at = Time::from_nanos(seconds(at).as_nanos());
        outcome.buffer_curve.iter().find(|level| level.from <= at && at < level.to).unwrap().mean
    };
    let full = level(from - 10.0);
    assert!((full - level(to) - part(want, "prefetch_needed_exact")).abs() <= 2.0, "{full} {}", level(to));
    let refill = (0..400).map(f64::from).find(|after| level(to + after) >= full - 0.5).unwrap();
    assert!((refill - part(want, "refill_seconds")).abs() <= 3.0, "{refill}");
    // Fewer workers than it says cannot feed the steps at all.
    let fewest = want["min_workers"].as_u64().unwrap() as u32;
    let feeds = |workers: u32| {
        let job = fed(Input { workers, prefetch: 200, stops: Vec::new(), ..input.clone() }, 2_000.0);
        simulate(&job, 0, Detail::Summary).unwrap().input.unwrap().steps_waited <= 1
    };
    assert!(feeds(fewest) && !feeds(fewest - 1));
}

#[test]
fn a_local_copy_makes_later_epochs_as_fast_as_the_device() {
    for row in data("data_loading.json")["cache"].as_array().unwrap() {
        let part = |key: &str| row[key].as_f64().unwrap();
        let items = 1_000_u32;
        let bytes = (part("dataset_bytes") / f64::from(items)) as u64;
        let rate = |key: &str| Rate::per_second(part(key) as u64).unwrap();
        let mut input = feed(Spread::ZERO, 4);
        input.step = seconds(bytes as f64 / part("demand_bytes_per_s"));
        input.read = Some(InputRead {
            bytes: Bytes::new(bytes),
            from: ReadFrom::Rate(rate("shared_read_bytes_per_s")),
            cache: Some(InputCache { epoch_items: items.into(), rate: rate("local_read_bytes_per_s") }),
        });
        let time = |epochs: u64| {
            let mut job = fed(input.clone(), 1.0);
            job.horizon = None;
            job.work = Some(input.step.times(u64::from(items) * epochs).unwrap());
            simulate(&job, 0, Detail::Summary).unwrap().elapsed.as_secs_f64()
        };
        let (first, both) = (time(1), time(2));
        assert!((first / part("first_epoch_s") - 1.0).abs() < 0.005, "{row}: {first}");
        let later = both - first;
        assert!((later / part("later_epoch_s") - 1.0).abs() < 0.005, "{row}: {later}");
    }
}
