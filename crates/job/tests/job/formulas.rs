//! The closed forms that are printed beside a simulation, against the oracle's tables.

use pipestep_job::closed_form::{
    Poisson, async_useful_fraction, daly_interval, exact_interval, kokolis_ettr, simple_rule_loss,
    young_interval,
};
use serde_json::Value;

use crate::support::{self, cases, data, ratio};

fn close(what: &str, got: f64, want: &Value) {
    support::close(what, got, ratio(want));
}

#[test]
fn the_best_intervals_are_those_of_the_tables() {
    for row in data("young_daly.json")["optimum_table"].as_array().unwrap() {
        let (mtbf, cost) = (ratio(&row["mtbf_s"]), ratio(&row["save_cost_s"]));
        close("young", young_interval(cost, mtbf), &row["young_useful_interval_s"]);
        close("daly", daly_interval(cost, mtbf), &row["daly_higher_order_useful_interval_s"]);
        let exact = exact_interval(cost, mtbf);
        close("exact", exact, &row["exact_useful_interval_s"]);
        let poisson =
            Poisson { mtbf, interval: exact, save_cost: cost, downtime: 0.0, exposed_recovery: 0.0 };
        close("fraction", poisson.useful_fraction(), &row["eff_at_exact"]);
    }
    // Aupy et al. 2013, table 2: whole seconds, with the save of 600 s in the period.
    for row in data("young_daly.json")["aupy_table2"]["rows"].as_array().unwrap() {
        let mtbf = ratio(&row["mtbf_s"]);
        let young = young_interval(600.0, mtbf) + 600.0;
        assert!((young - ratio(&row["published"]["young"])).abs() <= 0.51, "{row}");
        assert!(
            (exact_interval(600.0, mtbf) + 600.0 - ratio(&row["recomputed"]["opt"])).abs() <= 0.01,
            "{row}"
        );
    }
    for row in data("young_daly.json")["kokolis_eq3"]["rows"].as_array().unwrap() {
        let (write, mtbf) = (ratio(&row["write_s"]), ratio(&row["mttf_s"]));
        close("kokolis", young_interval(write, mtbf), &row["dt_s"]);
    }
}

#[test]
fn the_books_interval_cases_agree() {
    for case in cases("checkpoint_interval.json") {
        let (scenario, want) = (&case["scenario"], &case["expect"]);
        if want["job_mtbf_seconds"].is_null() {
            continue; // Without failures there is no best interval.
        }
        let (cost, mtbf) = (ratio(&want["save_cost_seconds"]), ratio(&want["job_mtbf_seconds"]));
        close("first order", young_interval(cost, mtbf), &want["first_order_optimal_seconds"]);
        close("exact", exact_interval(cost, mtbf), &want["poisson_optimal_seconds"]);
        for row in want["rows"].as_array().unwrap() {
            let poisson = Poisson {
                mtbf,
                interval: ratio(&row["interval_seconds"]),
                save_cost: cost,
                downtime: ratio(&scenario["recovery_seconds"]),
                exposed_recovery: 0.0,
            };
            let loss = poisson.first_order_loss();
            close("save", loss.save, &row["save_fraction"]);
            close("redo", loss.redo, &row["redo_fraction"]);
            close("recovery", loss.recovery, &row["recovery_fraction"]);
            close("loss", loss.total(), &row["first_order_loss_float"]);
            close("cycle", poisson.segment_time(), &row["poisson_cycle_seconds"]);
            close("useful", poisson.useful_fraction(), &row["poisson_useful_fraction"]);
            let fails = poisson.attempt_failure_probability();
            close("fails", fails, &row["poisson_attempt_failure_probability"]);
        }
    }
}

#[test]
fn first_order_and_simple_rule_are_those_of_the_table() {
    for row in data("effective_progress.json")["table"].as_array().unwrap() {
        let recovery = ratio(&row["recovery_s"]);
        let (mtbf, interval) = (ratio(&row["mtbf_s"]), ratio(&row["useful_interval_s"]));
        let poisson = Poisson {
            mtbf,
            interval,
            save_cost: ratio(&row["save_cost_s"]),
            downtime: recovery,
            exposed_recovery: 0.0,
        };
        close("first order", poisson.first_order_loss().useful_fraction(), &row["eff_first_order"]);
        close("simple", 1.0 - simple_rule_loss(recovery, interval / 2.0, mtbf), &row["eff_seed_formula"]);
    }
    for row in data("effective_progress.json")["async_table"].as_array().unwrap() {
        let part = |key: &str| ratio(&row[key]);
        let got = async_useful_fraction(
            part("mtbf_s"),
            part("useful_interval_s"),
            part("staging_s"),
            part("write_s"),
            part("recovery_s"),
        );
        close("async", got, &row["closed_form_eff"]);
    }
    // 2/79: the rule on the textbook's 1,024 devices.
    assert!((simple_rule_loss(120.0, 600.0, 28_440.0) - 2.0 / 79.0).abs() < 1e-15);
    assert!(
        (kokolis_ettr(8_653.846_153_85, 300.0, 2_278.663_575_94, 300.0) - 0.736_687_764_558).abs() < 1e-9
    );
}
