//! Micro-batches of unequal cost, memory as measured, and a first stage without an input gradient.

use pipestep_engine::{Bytes, Duration};

use crate::{MINIMAL, step};

const MEASURED: &str = "
[memory.change]
forward = \"12 MB\"
input_gradient = [\"-3 MB\", \"3 MB\", \"0 B\", \"-12 MB\"]
weight_gradient = [\"-9 MB\", \"-15 MB\", \"-12 MB\", \"0 B\"]
";

#[test]
fn micro_batches_scale_times_and_bytes_exactly() {
    let sets = ["pipeline.micro_batches=3", "time.micro_batch_scale=[3, \"1/3\", 0.25]"];
    let step = step(MINIMAL, &sets);
    let costs = step.inputs.costs();
    assert_eq!(costs.micro_batch_scale, [(3, 1), (1, 3), (1, 4)]);
    let forward = pipestep_schedule::Op::forward(0, 1);
    assert_eq!(costs.duration(forward), Duration::from_nanos(3_333_333));
}

#[test]
fn measured_changes_may_free_or_keep_bytes_at_the_input_gradient() {
    let step = step(&format!("{MINIMAL}{MEASURED}"), &[]);
    let stages = &step.inputs.costs().stages;
    assert!(stages.iter().all(|stage| stage.saved == Bytes::new(12_000_000)));
    let released: Vec<i64> = stages.iter().map(|stage| stage.released_at_input_gradient).collect();
    assert_eq!(released, [3_000_000, -3_000_000, 0, 12_000_000]);
}

#[test]
fn a_chunk_takes_its_layers_share_of_the_changes() {
    let sets = ["pipeline.schedule=interleaved", "pipeline.chunks=2"];
    let step = step(&format!("{MINIMAL}{MEASURED}"), &sets);
    let stage = step.inputs.costs().stages[5];
    assert_eq!((stage.saved, stage.released_at_input_gradient), (Bytes::new(6_000_000), -1_500_000));
}

#[test]
fn without_a_first_input_gradient_w_is_the_whole_backward() {
    let sets = [
        "time.first_stage_input_gradient=none",
        "time.weight_gradient_fraction=0.25",
        "memory.saved_per_micro_batch=8 MB",
        "memory.released_at_input_gradient=0.5",
    ];
    let step = step(MINIMAL, &sets);
    let parts: Vec<(u64, u64, i64)> = step
        .inputs
        .costs()
        .stages
        .iter()
        .map(|stage| {
            let (input, weight) = (stage.input_gradient.as_nanos(), stage.weight_gradient.as_nanos());
            (input, weight, stage.released_at_input_gradient)
        })
        .collect();
    assert_eq!(parts[0], (0, 20_000_000, 0));
    assert_eq!(parts[1], (15_000_000, 5_000_000, 4_000_000));
    assert_eq!(step.inputs.costs().stages[0].backward.as_nanos(), 20_000_000);
}

#[test]
fn the_limit_of_memory_is_the_budget_unless_it_is_given() {
    let bytes = |count: u64| Some(vec![Bytes::new(count); 4]);
    let given = step(MINIMAL, &["memory.budget=80 GB", "memory.limit=10 GB"]);
    assert_eq!((given.budget, given.limit), (bytes(80_000_000_000), bytes(10_000_000_000)));
    let budget = step(MINIMAL, &["memory.budget=80 GB"]);
    assert_eq!(budget.limit, bytes(80_000_000_000));
    assert_eq!(step(MINIMAL, &["memory.limit=1 GB"]).budget, None);
    assert_eq!(step(MINIMAL, &[]).limit, None);
}
