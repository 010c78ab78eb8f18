//! Runs of a step whose lengths are drawn: the same seed gives the same runs on any number of threads.

use serde_json::Value;

use crate::{pipestep, printed};

const SCENARIO: &str = "scenarios/scatter.toml";

fn jitter(more: &[&str]) -> Value {
    let text = printed(&[&["run", SCENARIO, "--quiet", "--json", "-"], more].concat());
    let json: Value = serde_json::from_str(&text).expect("it prints JSON");
    json["step"]["jitter"].clone()
}

#[test]
fn threads_change_no_run_and_seeds_change_all() {
    let on = |threads: &str| {
        let mut command = pipestep(&["run", SCENARIO, "--quiet", "--json", "-"]);
        command.env("RAYON_NUM_THREADS", threads).output().expect("it starts").stdout
    };
    assert_eq!(on("1"), on("5"));
    let (one, other) = (jitter(&["--runs", "50"]), jitter(&["--runs", "50", "--set", "jitter.seed=2"]));
    assert_eq!((&one["runs"], &one["seed"]), (&50.into(), &1.into()));
    assert_ne!(one["mean_ns"], other["mean_ns"]);
}

#[test]
fn scatter_makes_the_mean_step_longer() {
    let runs = jitter(&[]);
    let usual = printed(&["run", SCENARIO, "--quiet", "--json", "-"]);
    let usual: Value = serde_json::from_str(&usual).expect("it prints JSON");
    let usual = usual["step"]["makespan_ns"].as_f64().expect("a number");
    let number = |key: &str| runs[key].as_f64().expect("a number");
    assert!(number("mean_ns") > usual + 10.0 * number("standard_error_ns"), "{runs} against {usual}");
    // A slow rank is slow in every run.
    let slow = jitter(&["--set", "jitter.rank_factor=[1, 1, 1.2, 1]"]);
    assert!(slow["mean_ns"].as_f64() > Some(1.03 * number("mean_ns")), "{slow}");
}

#[test]
fn a_sweep_has_the_means_that_run_has() {
    let place = tempfile::tempdir().expect("there is room");
    let out = place.path().join("out");
    let out = out.to_str().expect("temporary paths are UTF-8");
    printed(&[
        "sweep",
        SCENARIO,
        "--set",
        "jitter.runs=40",
        "--vary",
        "pipeline.micro_batches=4,8",
        "--out",
        out,
    ]);
    let results = std::fs::read_to_string(place.path().join("out/results.csv")).expect("it is there");
    let header: Vec<&str> = results.lines().next().expect("a header").split(',').collect();
    let column = header.iter().position(|name| *name == "jitter_mean_ns").expect("it has means");
    let row = results.lines().nth(4).expect("two times two points");
    let set = ["--set", "pipeline.micro_batches=8", "--set", "pipeline.schedule=zb-h1", "--runs", "40"];
    let expected = jitter(&set)["mean_ns"].as_f64();
    assert_eq!(row.split(',').nth(column).and_then(|cell| cell.parse::<f64>().ok()), expected, "{row}");
}

#[test]
fn what_draws_nothing_has_no_runs() {
    let output =
        pipestep(&["run", "scenarios/qwen3-8b-1f1b.toml", "--runs", "10"]).output().expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), errors.contains("`--runs` needs a `[jitter]`")),
        (Some(2), true),
        "{errors}"
    );
    for command in ["search", "explain"] {
        let output = pipestep(&[command, SCENARIO]).output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("which only `run` and `sweep` do"), "{errors}");
    }
}
