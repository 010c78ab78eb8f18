//! Runs of a step whose lengths are drawn: the same seed gives the same runs on any number of threads.

use serde_json::Value;

use crate::{one_line, pipestep, printed};

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
    let errors = one_line(&output.stderr);
    assert_eq!(
        (output.status.code(), errors.contains("`--runs` needs a `[jitter]`")),
        (Some(2), true),
        "{errors}"
    );
    for command in [&["search"][..], &["compare", "--schedules", "1f1b"]] {
        let arguments = [command, &["scenarios/qwen3-8b-1f1b.toml", "--runs", "10"]].concat();
        let output = pipestep(&arguments).output().expect("it starts");
        let errors = one_line(&output.stderr);
        let is_refused = errors.contains("`--runs` needs a `[jitter]` that says how lengths scatter");
        assert_eq!((output.status.code(), is_refused), (Some(2), true), "{errors}");
    }
}

/// The runs of a schedule, as `run` makes them.
fn under(schedule: &str, runs: &str) -> Value {
    jitter(&["--runs", runs, "--set", &format!("pipeline.schedule={schedule}")])
}

#[test]
fn a_comparison_has_the_means_that_run_has() {
    let names = ["1f1b", "zb-h1", "fill-drain"];
    let arguments = ["compare", SCENARIO, "--schedules", &names.join(","), "--runs", "30", "--json", "-"];
    let json: Value = serde_json::from_str(&printed(&arguments)).expect("it prints JSON");
    let steps = json["steps"].as_array().expect("it has steps");
    let number = |value: &Value| value.as_f64().expect("a number");
    let best = steps.iter().map(|step| number(&step["jitter"]["mean_ns"])).fold(f64::INFINITY, f64::min);
    for (step, name) in steps.iter().zip(names) {
        let (compared, alone) = (&step["jitter"], under(name, "30"));
        for key in ["mean_ns", "standard_error_ns", "percentiles_ns", "runs", "seed"] {
            assert_eq!(compared[key], alone[key], "{name}: {key}");
        }
        assert!(
            (number(&compared["behind_ns"]) - (number(&compared["mean_ns"]) - best)).abs() < 1e-3,
            "{name}"
        );
        // The same draws for all make differences surer than means.
        let is_first = number(&compared["mean_ns"]) <= best;
        assert_eq!(compared["told_apart"], !is_first, "{name}");
    }
    let text = printed(&arguments[..6]);
    assert!(
        text.lines().all(|line| line.chars().count() <= 100) && text.contains("30 runs, seed 1"),
        "{text}"
    );
}

#[test]
fn a_search_ranks_by_the_mean_and_leaves_nothing_out() {
    let arguments = ["search", SCENARIO, "--runs", "20", "--quiet", "--json", "-"];
    let json: Value = serde_json::from_str(&printed(&arguments)).expect("it prints JSON");
    assert_eq!(json["left_out"], 0);
    let simulated = json["simulated"].as_array().expect("a list");
    let mean = |one: &Value| one["jitter"]["mean_ns"].as_f64().expect("it has runs");
    let least = simulated.iter().map(mean).fold(f64::INFINITY, f64::min);
    let best = &json["best"][0];
    assert!((mean(best) - least).abs() < 1e-6, "{best}");
    let sets = best["set"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let sets: Vec<&str> = sets.flat_map(|set| ["--set", set]).collect();
    assert_eq!(jitter(&[&["--runs", "20"], &sets[..]].concat())["mean_ns"], best["jitter"]["mean_ns"]);
}

#[test]
fn an_explained_run_is_one_of_those_that_are_counted() {
    let explained = |more: &[&str]| {
        let text = printed(&[&["explain", SCENARIO, "--quiet", "--json", "-"], more].concat());
        serde_json::from_str::<Value>(&text).expect("it prints JSON")
    };
    let makespans: Vec<f64> = ["0", "1", "2"]
        .iter()
        .map(|run| explained(&["--run", run])["step"]["makespan_ns"].as_f64().expect("a number"))
        .collect();
    let counted = jitter(&["--runs", "3"]);
    let mean = makespans.iter().sum::<f64>() / 3.0;
    assert!((counted["mean_ns"].as_f64().expect("a number") - mean).abs() < 1e-3, "{counted} {makespans:?}");
    let longest = makespans.iter().copied().fold(0.0, f64::max);
    assert_eq!(counted["max_ns"].as_f64(), Some(longest));
    let number = counted["longest_run"].as_u64().expect("a number");
    assert_eq!(makespans[usize::try_from(number).expect("one of three")].to_bits(), longest.to_bits());
    let explained = explained(&["--run", "1"]);
    assert_eq!(explained["name"], "1F1B with lengths that scatter: run 1 of seed 1");
    for (arguments, said) in [
        (&["explain", SCENARIO][..], "`--run K` explains run K"),
        (&["explain", "scenarios/qwen3-8b-1f1b.toml", "--run", "1"], "`--run` needs a `[jitter]`"),
        (&["explain", SCENARIO, "--run", "99999999999"], "expected a number below 4294967296"),
    ] {
        let output = pipestep(arguments).output().expect("it starts");
        let errors = one_line(&output.stderr);
        assert_eq!((output.status.code(), errors.contains(said)), (Some(2), true), "{errors}");
    }
}
