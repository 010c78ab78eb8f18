//! Published fleets: how often they failed, and what effective training time follows from that.

use pipestep_engine::Time;
use pipestep_job::closed_form::{Poisson, kokolis_ettr};
use pipestep_job::{
    Detail, Estimate, FaultSource, JobInputs, JobOutcome, LLAMA3, Mode, Ratio, Recovery, STORAGE_PRESETS,
    SlowWindow, Spread, simulate,
};

use crate::support::{adds_up, close, data, number, queued, ratio, seconds, until};

/// The useful fraction agrees within four standard errors, of which one is at most half a percent.
fn agrees(what: &str, job: &JobInputs, want: f64) {
    let outcomes = (0..40).map(|run| simulate(job, run, Detail::Summary).unwrap());
    let fractions: Vec<f64> = outcomes
        .map(|outcome: JobOutcome| {
            adds_up(&outcome);
            outcome.useful_fraction()
        })
        .collect();
    let Estimate { mean, standard_error, .. } = Estimate::of(&fractions).unwrap();
    assert!(standard_error <= 0.005 * want, "{what}: ± {standard_error}");
    assert!(
        (mean - want).abs() <= 4.0 * standard_error,
        "{what}: {mean} ± {standard_error}, expected {want}"
    );
}

/// A job until so many mean times between failures have passed, with saves that pause it.
fn sync_job(mtbf: f64, interval: f64, save: f64, recovery: f64) -> JobInputs {
    let mut job = until(Time::from_nanos(seconds(mtbf * 400.0).as_nanos()));
    let mut checkpoint = queued(seconds(interval), seconds(0.0), seconds(save));
    checkpoint.mode = Mode::Sync;
    job.checkpoint = Some(checkpoint);
    job.faults.sources =
        vec![FaultSource::single("any", Spread::Exponential { mean: seconds(mtbf) }, 1, false)];
    job.faults.recovery = Recovery::Fixed(Spread::Fixed(seconds(recovery)));
    job
}

#[test]
fn effective_training_time_of_metas_clusters() {
    let file = data("reliability_fleet.json");
    for row in file["meta_mttf"]["rows"].as_array().unwrap() {
        let nodes = number(row, "gpus") / 8.0;
        let source = FaultSource::single(
            "node",
            Spread::Exponential { mean: seconds(86_400.0 / number(row, "failures_per_node_day")) },
            nodes as u32,
            true,
        );
        // A lifetime is whole nanoseconds.
        close("mttf", 1.0 / source.rate() / 3_600.0, number(row, "mttf_h"));
    }
    for row in file["meta_ettr"].as_array().unwrap() {
        let (mtbf, interval) = (number(row, "mttf_s"), number(row, "interval_daly_young_s"));
        let (restart, write) = (number(row, "restart_s"), number(row, "write_s"));
        close("eq. 2", kokolis_ettr(mtbf, restart, interval, write), number(row, "ettr_eq2"));
        let exact = number(row, "ettr_exact_poisson");
        let poisson = Poisson { mtbf, interval, save_cost: write, downtime: restart, exposed_recovery: 0.0 };
        close("exact", poisson.useful_fraction(), exact);
        agrees(&row.to_string(), &sync_job(mtbf, interval, write, restart), exact);
    }
    for row in file["meta_ettr_nonblocking"].as_array().unwrap() {
        let mtbf = 86_400.0 / number(row, "failures_per_node_day") / (number(row, "gpus") / 8.0);
        let got = kokolis_ettr(mtbf, number(row, "restart_s"), number(row, "interval_s"), 0.0);
        close("eq. 2 without pauses", got, number(row, "ettr_eq2"));
    }
}

#[test]
fn llama_3s_interruptions_are_those_of_its_table() {
    let llama = &data("reliability_fleet.json")["llama3"];
    let causes = llama["causes"].as_array().unwrap();
    assert_eq!(causes.len(), LLAMA3.causes.len());
    for (ours, row) in LLAMA3.causes.iter().zip(causes) {
        assert_eq!(
            (ours.0, u64::from(ours.1)),
            (row["cause"].as_str().unwrap(), row["count"].as_u64().unwrap())
        );
        close(ours.0, (1e4 * f64::from(ours.1) / 419.0).round() / 100.0, number(row, "percent_from_count"));
    }
    let (published, derived) = (&llama["published"], &llama["derived"]);
    assert_eq!(u64::from(LLAMA3.devices), published["gpus"].as_u64().unwrap());
    assert_eq!(u64::from(LLAMA3.total()), derived["sum_of_counts"].as_u64().unwrap());
    close("mtbf", LLAMA3.job_mtbf_seconds(), number(derived, "mtbf_unexpected_s"));
    let node_days = 86_400.0 / LLAMA3.device_mtbf_seconds() * 8.0;
    close("per node and day", node_days, number(derived, "failures_per_node_day_unexpected"));
    // What an interruption may cost for nine tenths to be useful: a tenth of the time between two.
    close(
        "may cost",
        LLAMA3.job_mtbf_seconds() * 0.1,
        number(derived, "mean_loss_per_unexpected_if_90pct_s"),
    );
}

#[test]
fn the_textbooks_1024_devices_lose_what_its_rows_say() {
    let textbook = &data("young_daly.json")["textbook_1024_devices"];
    let inputs = &textbook["inputs"];
    let (mtbf, save, recovery) =
        (number(inputs, "mtbf_s"), number(inputs, "save_cost_s"), number(inputs, "recovery_s"));
    for row in textbook["rows"].as_array().unwrap() {
        let interval = number(row, "useful_interval_s");
        let poisson = Poisson { mtbf, interval, save_cost: save, downtime: recovery, exposed_recovery: 0.0 };
        let first = poisson.first_order_loss();
        close("save", first.save, number(row, "save"));
        close("redo", first.redo, number(row, "redo"));
        close("recovery", first.recovery, number(row, "recovery"));
        close("added", first.total(), number(row, "first_order_added_fraction"));
        close("first order", first.useful_fraction(), number(row, "first_order_useful_fraction"));
        close("cycle", poisson.segment_time(), number(row, "exact_cycle_s"));
        close("fails", poisson.attempt_failure_probability(), number(row, "p_fail_per_attempt"));
        let exact = number(row, "exact_useful_fraction");
        close("exact", poisson.useful_fraction(), exact);
        agrees(&row.to_string(), &sync_job(mtbf, interval, save, recovery), exact);
    }
}

#[test]
fn storage_presets_are_the_published_tiers() {
    let rows = data("data_loading.json")["storage_tiers"]["rows"].clone();
    let of = |name: &str, end: &str| {
        let item = match end {
            "node" => "single node",
            "1su" => "single SU aggregate",
            _ => "4 SU aggregate",
        };
        let [read, write] = ["read", "write"].map(|way| {
            let row = rows.as_array().unwrap().iter().find(|row| row["item"] == format!("{item} {way}"));
            number(row.unwrap(), name) * 1e9
        });
        (read, write)
    };
    for preset in &STORAGE_PRESETS {
        let (tier, size) = preset.name.strip_prefix("superpod-").unwrap().split_once('-').unwrap();
        let got = (preset.read.per_second_f64(), preset.write.per_second_f64());
        assert_eq!(got, of(tier, size), "{}", preset.name);
    }
    assert_eq!(STORAGE_PRESETS.len() * 2, rows.as_array().unwrap().len() * 3);
}

/// A job that is S times as slow wastes 1 - 1/S of its time, exactly.
#[test]
fn a_slowdown_wastes_the_share_of_time_that_it_says() {
    for row in data("stragglers.json")["bytedance_what_if"]["waste_from_slowdown"].as_array().unwrap() {
        let slowdown = ratio(&row["slowdown_S"]);
        let mut job = JobInputs::of_work(seconds(1e6));
        let factor = Ratio::from_f64(slowdown).unwrap();
        job.stragglers.windows = vec![SlowWindow { from: Time::ZERO, to: Time::MAX, factor }];
        let outcome = simulate(&job, 0, Detail::Summary).unwrap();
        adds_up(&outcome);
        close(
            "waste",
            outcome.lost.straggler_nanos as f64 / outcome.elapsed.as_nanos() as f64,
            number(row, "waste"),
        );
    }
}
