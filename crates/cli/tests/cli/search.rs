//! What a search answers: the same as trying everything, the same on any number of threads, and it can be run again.

use serde_json::Value;

use crate::{pipestep, printed};

const HEADLINE: &str = "scenarios/qwen3-8b-1f1b.toml";

fn found(scenario: &str, more: &[&str]) -> Value {
    let arguments = [&["search", scenario, "--quiet", "--json", "-"], more].concat();
    serde_json::from_str(&printed(&arguments)).expect("it prints JSON")
}

/// The makespan that `run` finds for a setting.
fn run_again(scenario: &str, setting: &Value) -> (u64, u64) {
    let sets = setting["set"].as_array().expect("it has settings");
    let sets: Vec<&str> = sets.iter().filter_map(Value::as_str).collect();
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let json = printed(&[&["run", scenario, "--quiet", "--json", "-"], &sets[..]].concat());
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

#[test]
fn what_cannot_be_varied_is_said() {
    for (set, said) in [
        ("search.ranks=[2,4]", "`search.ranks` needs lengths by layer"),
        ("search.micro_batch_sizes=[1,2]", "needs `[efficiency]`"),
        ("search.schedules=[\"1f1c\"]", "did you mean `\"1f1b\"`"),
    ] {
        let output = pipestep(&["search", HEADLINE, "--set", set]).output().expect("it starts");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), errors.contains(said)), (Some(2), true), "{errors}");
    }
    let small = pipestep(&["search", HEADLINE, "--set", "memory.budget=1 MB"]).output().expect("it starts");
    assert_eq!(small.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&small.stdout).contains("nothing fits 1.00 MB a rank; the smallest is"));
}
