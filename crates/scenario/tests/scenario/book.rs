//! Scenarios end to end against the book's figures: format, lowering, schedule and step together.

use pipestep_scenario::StepScenario;
use pipestep_step::{Outcome, simulate};
use serde_json::Value;

use crate::parse;

fn cases(text: &str) -> Vec<Value> {
    let document: Value = serde_json::from_str(text).expect("valid JSON");
    document["cases"].as_array().expect("a list of cases").clone()
}

fn read(text: &str) -> StepScenario {
    let scenario = parse(text, "case.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    scenario.step.expect("a step")
}

fn simulated(text: &str) -> (StepScenario, Outcome) {
    let step = read(text);
    let outcome = simulate(&step.inputs, step.plan().expect("legal")).expect("it runs");
    (step, outcome)
}

/// A list of numbers as a TOML list of amounts.
fn amounts(list: &Value, unit: &str) -> String {
    let values = list.as_array().expect("a list").iter();
    let values: Vec<String> = values.map(|value| format!("\"{value} {unit}\"")).collect();
    format!("[{}]", values.join(", "))
}

fn schedule_name(policy: &Value) -> &'static str {
    match policy.as_str().expect("a name") {
        "gpipe" => "fill-drain",
        "1f1b" => "1f1b",
        "interleaved_1f1b" => "interleaved",
        other => panic!("no schedule for {other}"),
    }
}

fn scenario(s: &Value, arbitration: &str) -> String {
    let recompute = match s["activation_policy"].as_str() {
        Some("recompute_silu") => "silu",
        _ => "none",
    };
    let links = match s["link_mode"].as_str() {
        Some("shared_half_duplex") => "shared",
        _ => "directional",
    };
    format!(
        "[model]\npreset = \"qwen3-8b\"\nsequence_length = {}\nmicro_batch_size = {}\n\
         saved = \"nonlinear-fp32\"\nrecompute = \"{recompute}\"\nextra_saved = {}\n\
         [pipeline]\nranks = 4\nmicro_batches = {}\nschedule = \"{}\"\nchunks = {}\n\
         [time]\nforward = {}\nbackward = {}\nupdate = {}\nsetup = \"{} ns\"\n\
         [transfer]\nactivation = {}\ngradient = {}\nwraparound = \"{} ns\"\n\
         links = \"{links}\"\narbitration = \"{arbitration}\"\n",
        s["tokens"],
        s["microbatch_size"],
        amounts(&s["additional_saved_bytes"], "B"),
        s["microbatches"],
        schedule_name(&s["policy"]),
        s["virtual_stages"].as_u64().unwrap_or(1),
        amounts(&s["forward_ns"], "ns"),
        amounts(&s["backward_ns"], "ns"),
        amounts(&s["optimizer_ns"], "ns"),
        s["setup_ns"],
        amounts(&s["activation_transfer_ns"], "ns"),
        amounts(&s["gradient_transfer_ns"], "ns"),
        s["wraparound_transfer_ns"],
    )
}

/// Whether a time is within `slack` ns of the expected one, an integer or a fraction `"n/d"`.
fn near(found: u64, expected: &Value, slack: i128) -> bool {
    let (n, d) = match expected {
        Value::String(text) => {
            let (n, d) = text.split_once('/').expect("a fraction");
            (n.parse().expect("a number"), d.parse().expect("a number"))
        }
        number => (i128::from(number.as_u64().expect("a number")), 1_i128),
    };
    (i128::from(found) * d - n).abs() <= slack * d
}

#[test]
fn the_four_stage_example_in_all_its_variants() {
    let cases = cases(include_str!("../data/pipeline.json"));
    assert!(cases.len() > 100);
    for case in &cases {
        check(case, "fifo", &case["alternative_tiebreaks"]["fifo_tiebreak"]);
        if case["alternative_tiebreaks"].is_object() {
            check(case, "by-stage", &case["alternative_tiebreaks"]["numeric_name_tiebreak"]);
        }
    }
}

/// Holds one case under one arbitration; `changed` replaces what it expects.
fn check(case: &Value, arbitration: &str, changed: &Value) {
    let (s, id) = (&case["scenario"], &case["id"]);
    let want = |key: &str| match &changed[key] {
        Value::Null => &case["expect"][key],
        value => value,
    };
    let (step, outcome) = simulated(&scenario(s, arbitration));
    let summary = &outcome.summary;
    let chunks = s["virtual_stages"].as_i64().unwrap_or(1);
    let slack = i128::from(4 * s["microbatches"].as_i64().expect("a number") * chunks);
    let times = [
        ("step_makespan_ns", summary.makespan.as_nanos()),
        ("gradient_ready_ns", summary.gradient_ready.as_nanos()),
        ("zero_transfer_makespan_ns", summary.zero_transfer_makespan.as_nanos()),
    ];
    for (key, found) in times {
        assert!(near(found, want(key), slack), "{id} {arbitration} {key}: {found}, expected {}", want(key));
    }
    let peaks: Vec<u64> = summary.ranks.iter().map(|rank| rank.peak.bytes.get()).collect();
    assert_eq!(Value::from(peaks), *want("peak_bytes"), "{id} {arbitration}");
    let saved = step.inputs.costs().stages.iter().enumerate().map(|(stage, cost)| {
        cost.saved.get() - s["additional_saved_bytes"][stage % 4].as_u64().expect("a number")
    });
    assert_eq!(Value::from(saved.collect::<Vec<_>>()), *want("saved_bytes_per_microbatch"), "{id}");
}

#[test]
fn matrix_inputs_and_their_recomputation() {
    for case in cases(include_str!("../data/gemm_memory.json")) {
        let s = &case["scenario"];
        let recompute = match (s["activation_policy"].as_str(), s["gemm_policy"].as_str()) {
            (Some("recompute_silu"), Some("recompute_products")) => "silu+products",
            (Some("recompute_silu"), _) => "silu",
            (_, Some("recompute_products")) => "products",
            _ => "none",
        };
        let text = format!(
            "[model]\npreset = \"qwen3-8b\"\nsequence_length = {}\nmicro_batch_size = {}\n\
             saved = \"gemm-inputs-fp32\"\nrecompute = \"{recompute}\"\n\
             [pipeline]\nranks = 4\nmicro_batches = {}\nschedule = \"{}\"\n\
             [time]\nforward = \"10 ms\"\nbackward = \"20 ms\"\nupdate = \"1 ms\"\n\
             [transfer]\nactivation = \"1 ms\"\ngradient = \"1 ms\"\n",
            s["tokens"],
            s["microbatch_size"],
            s["microbatches"],
            schedule_name(&s["policy"]),
        );
        let (_, Outcome { summary, .. }) = simulated(&text);
        let peaks: Vec<u64> = summary.ranks.iter().map(|rank| rank.peak.bytes.get()).collect();
        assert_eq!(Value::from(peaks), case["expect"]["peak_bytes"], "{}", case["id"]);
        assert!(near(summary.makespan.as_nanos(), &case["expect"]["step_makespan_ns"], 0), "{}", case["id"]);
    }
}
