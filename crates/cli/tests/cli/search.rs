//! What a search answers: the same as trying everything, the same on any number of threads, and it can be run again.

use serde_json::Value;

use crate::{one_line, pipestep, printed};

const HEADLINE: &str = "scenarios/qwen3-8b-1f1b.toml";

fn found(scenario: &str, more: &[&str]) -> Value {
    let arguments = [&["search", scenario, "--quiet", "--json", "-"], more].concat();
    serde_json::from_str(&printed(&arguments)).expect("it prints JSON")
}

/// The makespan that `run` finds for a setting.
fn run_again(scenario: &str, setting: &Value) -> (u64, u64) {
    let json = printed(&[&["run", scenario, "--quiet", "--json", "-"], &sets(setting)[..]].concat());
    let json: Value = serde_json::from_str(&json).expect("it prints JSON");
    let peaks = json["step"]["per_rank"].as_array().expect("it has ranks");
    let peak = peaks.iter().filter_map(|rank| rank["peak_bytes"].as_u64()).max();
    (json["step"]["makespan_ns"].as_u64().expect("a number"), peak.expect("there are ranks"))
}

#[test]
fn the_headline_under_a_gigabyte_has_the_answer_that_trying_everything_has() {
    let pruned = found(HEADLINE, &[]);
    let everything = found(HEADLINE, &["--exhaustive"]);
    assert_eq!(everything["left_out"], 0);
    for part in ["best", "front"] {
        assert_eq!(pruned[part], everything[part]);
    }
    let best = &pruned["best"][0];
    let (makespan, peak) = run_again(HEADLINE, best);
    assert_eq!((best["makespan_ns"].as_u64(), best["peak_bytes"].as_u64()), (Some(makespan), Some(peak)));
    assert!(peak <= 1_000_000_000 && makespan < 347_000_000, "{best}");
    // Nothing that was simulated fits and is shorter.
    let simulated = everything["simulated"].as_array().expect("a list");
    let fitting = simulated.iter().filter(|one| one["fits"] == true);
    assert_eq!(fitting.filter_map(|one| one["makespan_ns"].as_u64()).min(), Some(makespan));
}

#[test]
fn threads_change_nothing() {
    assert_eq!(found(HEADLINE, &["--jobs", "1"]), found(HEADLINE, &["--jobs", "4"]));
}

#[test]
fn layers_move_away_from_a_heavy_head() {
    let scenario = "scenarios/unequal-layers.toml";
    let found = found(scenario, &[]);
    let best = &found["best"][0];
    assert_eq!(run_again(scenario, best).0, best["makespan_ns"].as_u64().expect("a number"));
    let written = printed(&["run", scenario, "--quiet", "--json", "-"]);
    let written: Value = serde_json::from_str(&written).expect("it prints JSON");
    assert!(best["makespan_ns"].as_u64() < written["step"]["makespan_ns"].as_u64(), "{best}");
    assert!(found["best"].to_string().contains("layers 9+9+9+5"), "{}", found["best"]);
}

#[test]
fn the_best_size_of_a_micro_batch_is_between_the_extremes() {
    let scenario = "scenarios/micro-batch-size.toml";
    let found = found(scenario, &["--set", "search.schedules=[\"1f1b\"]"]);
    let best = &found["best"][0];
    assert!(best["name"].as_str().is_some_and(|name| name.contains("8 micro-batches of 8")), "{best}");
    assert_eq!(run_again(scenario, best).0, best["makespan_ns"].as_u64().expect("a number"));
}

const INTERVAL: &str = "scenarios/search-interval.toml";

/// `--set` for each of the keys of a setting.
fn sets(setting: &Value) -> Vec<&str> {
    let sets = setting["set"].as_array().expect("it has settings");
    sets.iter().filter_map(Value::as_str).flat_map(|set| ["--set", set]).collect()
}

#[test]
fn the_best_interval_is_near_the_formulas_and_run_agrees_with_it() {
    let found = found(INTERVAL, &["--runs", "60"]);
    let along = &found["along"][0];
    let near = |seconds: &Value, of: f64| (seconds.as_f64().expect("a number") / of - 1.0).abs() < 0.05;
    let curve = along["curve"].as_f64().expect("it has a minimum") / 1e9;
    assert!(near(&curve.into(), 954.3), "{along}");
    assert!(near(&along["checks"]["young_interval_s"], 965.2), "{along}");
    let [low, high] =
        [0, 1].map(|end| along["not_told_apart"][end].as_f64().expect("it is flat there") / 1e9);
    assert!(low < 954.3 && 954.3 < high, "{along}");
    let best = &found["best"][0];
    let again =
        [&["run", INTERVAL, "--quiet", "--json", "-", "--set", "faults.runs=60"], &sets(best)[..]].concat();
    let again: Value = serde_json::from_str(&printed(&again)).expect("it prints JSON");
    assert_eq!(again["job"]["mean"]["elapsed_ns"], best["mean"]);
    assert_eq!(again["job"]["standard_error"]["elapsed_ns"], best["standard_error"]);
    let parts: f64 = best["parts_ns"].as_object().expect("parts").values().filter_map(Value::as_f64).sum();
    assert!((parts / best["mean"].as_f64().expect("a number") - 1.0).abs() < 1e-9, "{best}");
}

#[test]
fn threads_change_nothing_over_keys_either() {
    let few = ["--runs", "5", "--set", "job.work=3 d"];
    let on = |jobs| found(INTERVAL, &[&few[..], &["--jobs", jobs]].concat());
    assert_eq!(on("1"), on("4"));
}

#[test]
fn devices_are_shared_where_rollout_and_training_keep_up_with_each_other() {
    let found = found("scenarios/search-rl-split.toml", &["--runs", "3"]);
    let best = &found["best"][0];
    let again =
        [&["run", "scenarios/search-rl-split.toml", "--quiet", "--json", "-"], &sets(best)[..]].concat();
    let again: Value = serde_json::from_str(&printed(&again)).expect("it prints JSON");
    // Run 0 of the search has the seed of the scenario.
    let (rate, mean) = (&again["rl"]["useful_samples_per_s"], &best["mean"]);
    assert!((rate.as_f64().expect("a rate") / mean.as_f64().expect("a mean") - 1.0).abs() < 0.02, "{best}");
    let simulated = found["simulated"].as_array().expect("a list");
    assert_eq!((simulated.len(), found["settings"].as_u64()), (45, Some(45)));
    let most = simulated.iter().filter_map(|one| one["mean"].as_f64()).fold(0.0, f64::max);
    assert_eq!(best["mean"].as_f64(), Some(most));
    // Both ends of the split are far worse.
    let of =
        |name: &str| simulated.iter().find(|one| one["name"] == name).expect("it was tried")["mean"].as_f64();
    for end in ["staleness 2, rollout 2 + training 30", "staleness 2, rollout 30 + training 2"] {
        assert!(of(end) < Some(most / 2.0), "{end}");
    }
}

#[test]
fn a_search_over_keys_draws_what_it_found() {
    let place = tempfile::tempdir().expect("there is room");
    let out = place.path().join("out");
    let out = out.to_str().expect("temporary paths are UTF-8");
    let few = ["search", INTERVAL, "--runs", "3", "--set", "job.work=2 d", "--out", out];
    let text = printed(&few);
    assert!(text.lines().all(|line| line.chars().count() <= 100 || line.contains("pipestep run")), "{text}");
    let names: Vec<String> = std::fs::read_dir(out)
        .expect("it was made")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned())
        .collect();
    for name in ["search.png", "search.svg", "search.json"] {
        assert!(names.iter().any(|there| there == name), "{names:?}");
    }
    // Without a number among the keys there is nothing to draw.
    let words = ["search", "scenarios/rl-async.toml", "--vary", "rl.kv_cache=kept,recomputed", "--runs", "1"];
    printed(&[&words[..], &["--out", &format!("{out}/words")]].concat());
    assert!(!std::path::Path::new(out).join("words/search.png").exists());
}

#[test]
fn what_is_wrong_with_a_search_over_keys_is_said() {
    let interval = |more: &[&'static str]| [&["search", INTERVAL], more].concat();
    let refused = |arguments: &[&str], said: &str| {
        let output = pipestep(arguments).output().expect("it starts");
        let errors = one_line(&output.stderr);
        assert_eq!((output.status.code(), errors.contains(said)), (Some(2), true), "{arguments:?}: {errors}");
    };
    refused(&["search", "scenarios/rl-async.toml"], "write what to try in `[search.vary]`");
    refused(&interval(&["--vary", "checkpoint.evry=1 s"]), "did you mean `\"checkpoint.every\"`");
    refused(&interval(&["--vary", "checkpoint.every=5 s..1 s"]), "its start is above its end");
    refused(&interval(&["--set", "search.objective=cost-per-sample"]), "needs a `[rl]`, and there is none");
    refused(&interval(&["--set", "search.objective=cheapest"]), "expected one of");
    refused(
        &interval(&["--set", "search.schedules=[\"1f1b\"]"]),
        "write \"pipeline.schedule\" in `[search.vary]`",
    );
    refused(&interval(&["--set", "search.split={ devices = 4, parts = [] }"]), "two parts or more");
    let split = "search.split={ devices = 5, by = 2, parts = [{ name = \"a\", each = { \"job.steps\" = 1 } }, \
                 { name = \"b\", each = { \"job.work\" = 1 } }] }";
    refused(&interval(&["--set", split]), "cannot be shared by 2 parts in multiples of 2");
    let none =
        pipestep(&["search", "scenarios/rl-colocated-memory.toml", "--vary", "rl.memory.capacity=40 GB"])
            .output()
            .expect("it starts");
    let said = String::from_utf8_lossy(&none.stdout);
    assert!(said.contains("changing phase needs 63.63 GB of the 40.00 GB of a device"), "{said}");
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn what_cannot_be_varied_is_said() {
    for (set, said) in [
        ("search.ranks=[2,4]", "`search.ranks` needs lengths by layer"),
        ("search.micro_batch_sizes=[1,2]", "needs `[efficiency]`"),
        ("search.schedules=[\"1f1c\"]", "did you mean `\"1f1b\"`"),
        ("search.recompute=[]", "`search.recompute`: expected at least one value, found an empty list"),
    ] {
        let output = pipestep(&["search", HEADLINE, "--set", set]).output().expect("it starts");
        let errors = one_line(&output.stderr);
        assert_eq!((output.status.code(), errors.contains(said)), (Some(2), true), "{errors}");
    }
    let small = pipestep(&["search", HEADLINE, "--set", "memory.budget=1 MB"]).output().expect("it starts");
    assert_eq!(small.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&small.stdout).contains("nothing fits 1.00 MB a rank; the smallest is"));
}
