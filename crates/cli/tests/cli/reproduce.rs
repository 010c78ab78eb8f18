//! What the documentation claims, as data: that it is claimed there, and that a miss is a miss.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::{pipestep, printed, root};

fn claims() -> Vec<Value> {
    let text =
        fs::read_to_string(root().join("scenarios/claims.json")).expect("it is part of the repository");
    serde_json::from_str(&text).expect("a list of claims")
}

/// The numbers of a text, as they are written: `1,024`, `36.5`.
fn numbers(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == ',' || c == '.';
    let words = text.split(|c| !is_part(c)).map(|word| word.trim_matches([',', '.']));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn every_number_of_a_claim_stands_where_it_is_claimed() {
    for claim in claims() {
        let place = claim["in"].as_str().expect("a file");
        let text = fs::read_to_string(root().join(place)).expect("it is part of the repository");
        let there = numbers(&text);
        let says = claim["says"].as_str().expect("a sentence");
        let missing: Vec<String> =
            numbers(says).into_iter().filter(|number| !there.contains(number)).collect();
        assert!(missing.is_empty(), "`{says}`: {place} has no {missing:?}");
    }
}

/// Runs `reproduce` on one claim about the headline; its exit code, and what it writes as JSON.
fn reproduce(expected: &str) -> (Option<i32>, Value) {
    let place = tempfile::tempdir().expect("there is room for temporary files");
    fs::copy(root().join("scenarios/qwen3-8b-1f1b.toml"), place.path().join("step.toml")).expect("room");
    let claim = format!(
        r#"[{{"says": "a step", "in": "here", "scenario": "step.toml", "value": "/step/makespan_ns", {expected}}}]"#
    );
    let file = place.path().join("claims.json");
    fs::write(&file, claim).expect("there is room");
    let path = file.to_str().expect("it is made here");
    let output = pipestep(&["reproduce", path, "--json", "-"]).output().expect("it starts");
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or(Value::Null))
}

#[test]
fn a_miss_is_exit_code_1_and_says_by_how_much() {
    let (code, found) = reproduce(r#""is": 347000000, "unit": "ns""#);
    assert_eq!((code, &found["claims"][0]["holds"]), (Some(0), &Value::from(true)));
    let (code, found) = reproduce(r#""is": 337000000, "within": 1000, "unit": "ns""#);
    let claim = &found["claims"][0];
    assert_eq!((code, claim["holds"].as_bool()), (Some(1), Some(false)));
    assert_eq!(claim["difference"].as_f64(), Some(1e7));
    let times = r#""is": 2, "unit": "times", "divided_by": 0.5, "against": { "scenario": "step.toml" }"#;
    assert_eq!(reproduce(times).0, Some(0));
}

#[test]
fn what_cannot_be_answered_is_exit_code_2() {
    assert_eq!(reproduce(r#""at_least": 1, "minus": "/step/nowhere_ns""#).0, Some(2));
    assert_eq!(reproduce(r#""at_least": 1, "set": ["pipeline.ranks=0"]"#).0, Some(2));
    assert_eq!(reproduce(r#""at_least": 1, "at_most": 2"#).0, Some(2));
}

#[test]
fn exported_orders_that_claims_point_at_are_what_export_writes() {
    for name in ["1f1b-v-2-4", "1f1b-v-4-8", "v-half-4-8", "v-min-4-8"] {
        let (rest, micro_batches) = name.rsplit_once('-').expect("it has numbers");
        let (schedule, ranks) = rest.rsplit_once('-').expect("it has numbers");
        let written = printed(&[
            "schedule",
            "export",
            "--schedule",
            schedule,
            "--ranks",
            ranks,
            "--micro-batches",
            micro_batches,
        ]);
        let path = root().join("scenarios/pytorch").join(format!("{name}.csv"));
        assert_eq!(fs::read_to_string(path).expect("it is part of the repository"), written, "{name}");
    }
}
