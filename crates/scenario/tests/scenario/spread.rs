//! Scatter, slow ranks and links, micro-batches of other sizes, a fixed global batch.

use pipestep_engine::Duration;
use pipestep_scenario::{Curve, LinkScatter, Scatter};

use crate::{MINIMAL, job_of, parse, step};

/// Forward and activation times of each stage in ns.
fn lengths(text: &str, sets: &[&str]) -> Vec<(u64, u64)> {
    let step = step(text, sets);
    let stages = step.inputs.costs().stages.iter();
    stages.map(|stage| (stage.forward.as_nanos(), stage.activation.time.as_nanos())).collect()
}

const TRANSFER: [&str; 1] = ["transfer.activation=[\"1 ms\", \"2 ms\", \"3 ms\"]"];

#[test]
fn slow_ranks_and_links_are_longer_in_every_run() {
    let slow = [&TRANSFER[..], &["jitter.rank_factor=[1, 1, 1.2, \"4/3\"]", "jitter.link_factor=[1, 3, 1]"]]
        .concat();
    let expected =
        [(10_000_000, 1_000_000), (10_000_000, 6_000_000), (12_000_000, 3_000_000), (13_333_333, 0)];
    assert_eq!(lengths(MINIMAL, &slow), expected);
    let step = step(MINIMAL, &slow);
    let last = step.inputs.costs().stages[3];
    assert_eq!(last.backward, Duration::from_nanos(26_666_667));
    assert_eq!(last.input_gradient.plus(last.weight_gradient), Ok(last.backward));
    assert_eq!(step.jitter.expect("there is one").forward, vec![Scatter::NONE; 4]);
}

#[test]
fn scatter_by_kind_and_rank() {
    let text = format!(
        "{MINIMAL}
[jitter]
forward = {{ distribution = \"normal\", deviation = 0.05 }}
backward = [1, {{ distribution = \"uniform\", low = 0.9, high = 1.1 }}, {{ distribution = \"empirical\", values = [1, 2, 1.5] }}, {{ distribution = \"exponential\" }}]
weight_gradient = {{ distribution = \"lognormal\", mean = 2, variation = 0.5 }}
activation = {{ distribution = \"empirical\", file = \"factors.txt\" }}
gradient = [1, 1, {{ distribution = \"lognormal\", variation = 0.1 }}]
runs = 1000
seed = 7
"
    );
    let jitter = step(&text, &[]).jitter.expect("there is one");
    assert_eq!((jitter.runs, jitter.seed), (1000, 7));
    assert_eq!(jitter.forward, vec![Scatter::Normal { mean: 1.0, deviation: 0.05 }; 4]);
    let backward = [
        Scatter::NONE,
        Scatter::Uniform { low: 0.9, high: 1.1 },
        Scatter::Empirical([1.0, 2.0, 1.5].into()),
        Scatter::Exponential { mean: 1.0 },
    ];
    assert_eq!((&jitter.backward[..], &jitter.input_gradient[..]), (&backward[..], &backward[..]));
    assert_eq!(jitter.weight_gradient, vec![Scatter::Lognormal { mean: 2.0, variation: 0.5 }; 4]);
    assert_eq!(jitter.update, vec![Scatter::NONE; 4]);
    let measured = Scatter::Empirical([0.9, 1.0, 1.25].into());
    let expected = LinkScatter { boundaries: vec![measured.clone(); 3], others: measured };
    assert_eq!(jitter.activation, expected);
    let lognormal = Scatter::Lognormal { mean: 1.0, variation: 0.1 };
    let boundaries = vec![Scatter::NONE, Scatter::NONE, lognormal];
    assert_eq!(jitter.gradient, LinkScatter { boundaries, others: Scatter::NONE });
    assert_eq!(step(MINIMAL, &[]).jitter, None);
}

/// 1F1B on the 8-billion model with micro-batches of `size` times 128 tokens.
fn sized(size: u64, efficiency: &str) -> Vec<(u64, u64)> {
    let model = format!("[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\nmicro_batch_size = {size}\n");
    lengths(&format!("{MINIMAL}{model}[efficiency]\n{efficiency}"), &TRANSFER)
}

#[test]
fn lengths_follow_the_tokens_of_a_micro_batch() {
    let points = "reference_tokens = 512\npoints = [{ tokens = 128, time_per_token = 1.6 }, { tokens = 512, time_per_token = 1 }, { tokens = 1024, time_per_token = 0.8 }]";
    // At the reference nothing changes.
    assert_eq!(sized(4, points)[..2], [(10_000_000, 1_000_000), (10_000_000, 2_000_000)]);
    // A quarter of the tokens at 1.6 times the time each; messages go by tokens.
    assert_eq!(sized(1, points)[0], (4_000_000, 250_000));
    // Twice the tokens at 0.8.
    assert_eq!(sized(8, points)[0], (16_000_000, 2_000_000));
    // Half way between two points: 1.4 at 256 - 128 = 1/3 of the way.
    assert_eq!(sized(2, points)[0], (7_000_000, 500_000));
    // 512 tokens cost as 768; 256 as 512.
    assert_eq!(sized(2, "reference_tokens = 512\nfixed_tokens = 256")[0], (6_666_667, 500_000));
}

#[test]
fn the_curve_is_there_to_be_drawn() {
    let sets = [
        "model.preset=qwen3-8b",
        "model.sequence_length=128",
        "efficiency.reference_tokens=512",
        "efficiency.fixed_tokens=256",
    ];
    let efficiency = step(MINIMAL, &sets).efficiency.expect("there is one");
    assert_eq!((&efficiency.curve, efficiency.tokens), (&Curve::Fixed { fixed_tokens: 256 }, 128));
    assert!((efficiency.time_per_token(128) - 2.0).abs() < 1e-12);
}

#[test]
fn a_global_batch_is_cut_into_micro_batches() {
    let text = MINIMAL.replace("micro_batches = 8", "global_batch = 512");
    let sets =
        ["parallel.data=8", "model.preset=qwen3-8b", "model.sequence_length=128", "model.micro_batch_size=4"];
    let cut = step(&text, &sets);
    assert_eq!((cut.inputs.shape().micro_batches(), cut.data_parallel), (16, 8));
    assert_eq!(cut.tokens(), Some(512 * 128));
    let uneven = [&sets[..], &["model.micro_batch_size=3"]].concat();
    let uneven: Vec<_> = uneven.iter().map(|&set| pipestep_scenario::Override::set(set)).collect();
    let text = parse(&text, "test.toml", &uneven).expect_err("512 is no multiple of 24").to_string();
    assert!(text.contains("do not divide into micro-batches of 3 on 8 data-parallel copies"), "{text}");
}

#[test]
fn the_ranks_of_a_job_are_the_copies() {
    let text = "[job]\nsteps = 10\nstep = \"1 s\"\n[parallel]\ndata = 8\n[stragglers]\noverhead = \"0.1 s\"";
    let ranks = job_of(text).inputs(None).expect("legal").stragglers.ranks.expect("there are");
    assert_eq!(ranks.count, 8);
}
