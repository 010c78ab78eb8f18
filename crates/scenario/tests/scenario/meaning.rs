//! What keys mean: defaults, shares, boundaries, overrides, the sweep, the schema.

use pipestep_engine::{Bytes, Duration};
use pipestep_scenario::{Axis, Override, schema};
use pipestep_step::{Arbitration, Links, StageCost, UpdateAfter};
use proptest::prelude::*;
use serde_json::Value;

use crate::{MINIMAL, legal, parse, step};

fn nanos(text: &str, sets: &[&str], of: fn(&StageCost) -> Duration) -> Vec<u64> {
    let step = step(text, sets);
    step.inputs.costs().stages.iter().map(|stage| of(stage).as_nanos()).collect()
}

#[test]
fn what_is_left_out_has_its_default() {
    let scenario = legal(MINIMAL, &[]);
    assert_eq!(scenario.name, "test");
    let step = scenario.step.expect("a step");
    let costs = step.inputs.costs();
    assert_eq!(step.inputs.links, Links::Directional);
    assert_eq!(step.inputs.arbitration, Arbitration::Fifo);
    assert_eq!(step.inputs.update_after, UpdateAfter::All);
    assert_eq!((costs.setup, step.budget), (Duration::ZERO, None));
    for stage in &costs.stages {
        let expected = StageCost {
            forward: Duration::from_nanos(10_000_000),
            backward: Duration::from_nanos(20_000_000),
            input_gradient: Duration::from_nanos(10_000_000),
            weight_gradient: Duration::from_nanos(10_000_000),
            layers: 1,
            ..StageCost::default()
        };
        assert_eq!(*stage, expected);
    }
}

#[test]
fn words_choose_the_rules() {
    let sets = ["transfer.links=shared", "transfer.arbitration=by-stage", "pipeline.update_after=own"];
    let step = step(MINIMAL, &sets);
    assert_eq!(step.inputs.links, Links::Shared);
    assert_eq!(step.inputs.arbitration, Arbitration::ByStage);
    assert_eq!(step.inputs.update_after, UpdateAfter::Own);
}

#[test]
fn a_chunk_takes_its_layers_share_of_its_rank() {
    let model =
        "pipeline.schedule=interleaved pipeline.chunks=2 model.preset=qwen3-8b model.sequence_length=128";
    let sets: Vec<&str> = model.split(' ').collect();
    let forward = nanos(MINIMAL, &sets, |stage| stage.forward);
    assert_eq!(forward, [vec![5_555_556; 4], vec![4_444_444; 4]].concat());

    let listed = [&sets[..], &["pipeline.layers=[1,4,4,4,8,5,5,5]"]].concat();
    let forward = nanos(MINIMAL, &listed, |stage| stage.forward);
    assert_eq!(forward[0], 1_111_111);
    assert_eq!(forward[4], 8_888_889);
    assert_eq!(step(MINIMAL, &listed).layers, Some(vec![1, 4, 4, 4, 8, 5, 5, 5]));
}

#[test]
fn without_layers_chunks_are_alike_and_layers_alone_give_shares() {
    let three = ["pipeline.schedule=interleaved", "pipeline.chunks=3"];
    assert_eq!(nanos(MINIMAL, &three, |stage| stage.forward), [3_333_333; 12]);
    let two = ["pipeline.schedule=interleaved", "pipeline.chunks=2", "pipeline.ranks=1"];
    let listed = [&two[..], &["pipeline.layers=[1, 2]"]].concat();
    assert_eq!(nanos(MINIMAL, &listed, |stage| stage.backward), [6_666_667, 13_333_333]);
}

#[test]
fn a_stage_without_layers_takes_no_time() {
    // The ends of the model alone, as Llama 3 places them.
    let sets = [
        "pipeline.schedule=interleaved",
        "pipeline.chunks=2",
        "pipeline.ranks=2",
        "pipeline.layers=[0, 10, 10, 16]",
        "model.preset=qwen3-8b",
        "model.sequence_length=128",
    ];
    let step = step(MINIMAL, &sets);
    let first = step.inputs.costs().stages[0];
    assert_eq!((first.forward, first.saved), (Duration::ZERO, Bytes::ZERO));
}

#[test]
fn uneven_layers_go_to_the_first_ranks() {
    let sets = ["model.preset=qwen3-8b", "model.sequence_length=128", "pipeline.ranks=5"];
    assert_eq!(step(MINIMAL, &sets).layers, Some(vec![8, 7, 7, 7, 7]));
}

#[test]
fn the_weight_gradient_is_rounded_from_the_exact_backward() {
    let third = ["time.weight_gradient_fraction=\"1/3\"", "time.backward=20 ns"];
    assert_eq!(nanos(MINIMAL, &third, |stage| stage.weight_gradient), [7; 4]);
    assert_eq!(nanos(MINIMAL, &third, |stage| stage.input_gradient), [13; 4]);
    let decimal = ["time.weight_gradient_fraction=0.15", "time.backward=10 ns"];
    assert_eq!(nanos(MINIMAL, &decimal, |stage| stage.weight_gradient), [2; 4], "1.5 to even");
    let all = ["time.weight_gradient_fraction=1"];
    assert_eq!(nanos(MINIMAL, &all, |stage| stage.input_gradient), [0; 4]);
    let each = ["time.weight_gradient_fraction=[0, 0.5, \"1/4\", 1.0]"];
    let found = nanos(MINIMAL, &each, |stage| stage.weight_gradient);
    assert_eq!(found, [0, 10_000_000, 5_000_000, 20_000_000]);
}

#[test]
fn boundaries_hold_both_ways_and_far_ranks_use_the_wraparound() {
    let sets = [
        "pipeline.schedule=interleaved",
        "pipeline.chunks=2",
        "transfer.activation=[\"1 ns\", \"2 ns\", \"3 ns\"]",
        "transfer.gradient=[\"10 ns\", \"20 ns\", \"30 ns\"]",
    ];
    let activation = |stage: &StageCost| stage.activation.time;
    let gradient = |stage: &StageCost| stage.gradient.time;
    assert_eq!(nanos(MINIMAL, &sets, activation), [1, 2, 3, 3, 1, 2, 3, 0], "the longest of its kind");
    assert_eq!(nanos(MINIMAL, &sets, gradient), [0, 10, 20, 30, 30, 10, 20, 30]);
    let set = [&sets[..], &["transfer.wraparound=7 ns"]].concat();
    assert_eq!(nanos(MINIMAL, &set, activation)[3], 7);
    assert_eq!(nanos(MINIMAL, &set, gradient)[4], 7);

    // With two ranks, the way back from the second to the first is the boundary between them.
    let two =
        [&["pipeline.ranks=2", "transfer.activation=5 ns", "transfer.wraparound=7 ns"], &sets[..2]].concat();
    assert_eq!(nanos(MINIMAL, &two, activation), [5, 5, 5, 0]);
    let one = [&two[1..], &["pipeline.ranks=1"]].concat();
    assert_eq!(nanos(MINIMAL, &one, activation), [0, 0]);
}

#[test]
fn bytes_without_a_model_are_shared_like_time() {
    let sets = [
        "pipeline.schedule=interleaved",
        "pipeline.chunks=3",
        "memory.saved_per_micro_batch=[\"10 B\", \"11 B\", \"12 B\", \"13 B\"]",
        "memory.activation_message=1 MiB",
        "memory.gradient_message=[\"2 MiB\", \"3 MiB\", \"4 MiB\"]",
        "memory.released_at_input_gradient=0.5",
        "memory.budget=1 GB",
    ];
    let step = step(MINIMAL, &sets);
    let stages = &step.inputs.costs().stages;
    let saved: Vec<u64> = stages.iter().map(|stage| stage.saved.get()).collect();
    assert_eq!(saved[..4], [3, 4, 4, 4]);
    assert_eq!(stages[0].released_at_input_gradient, 2, "1.5 to even");
    assert_eq!(stages[2].activation.bytes, Bytes::new(1 << 20));
    assert_eq!(stages[4].gradient.bytes, Bytes::new(4 << 20), "around the ring");
    assert_eq!(stages[1].gradient.bytes, Bytes::new(2 << 20));
    assert_eq!(step.budget, Some(vec![Bytes::new(1_000_000_000); 4]));
}

#[test]
fn parameters_are_held_only_when_included() {
    let model = ["model.preset=qwen3-8b", "model.sequence_length=128"];
    let none = step(MINIMAL, &model);
    assert!(none.inputs.costs().ranks.iter().all(|rank| rank.held.weights == Bytes::ZERO));
    let sets = [&model[..], &["memory.include=[\"weights\", \"optimizer\"]"]].concat();
    let held = step(MINIMAL, &sets);
    let ranks = &held.inputs.costs().ranks;
    let weights: u64 = ranks.iter().map(|rank| rank.held.weights.get()).sum();
    let optimizer: u64 = ranks.iter().map(|rank| rank.held.optimizer.get()).sum();
    assert_eq!(weights, 2 * 8_190_735_360);
    assert_eq!(optimizer, 12 * 8_190_735_360);
    assert!(ranks.iter().all(|rank| rank.held.gradients == Bytes::ZERO));
    assert_eq!(ranks[1].held.weights.get(), 2 * 9 * 192_946_432);
}

#[test]
fn a_model_by_its_dimensions_is_the_preset() {
    let dimensions = "[model]\nlayers = 36\nhidden_size = 4096\nattention_heads = 32\nkey_value_heads = 8\n\
        head_dim = 128\nintermediate_size = 12288\nvocabulary_size = 151936\nquery_key_norm = true\n\
        sequence_length = 128\nmicro_batch_size = 2\n";
    let preset = "[model]\npreset = \"qwen3-8b\"\nsequence_length = 128\nmicro_batch_size = 2\n";
    let [by_hand, by_name] = [dimensions, preset].map(|model| step(&format!("{model}{MINIMAL}"), &[]));
    assert_eq!(by_hand.inputs, by_name.inputs);
    assert_eq!(by_name.tokens_per_micro_batch, Some(256));
    let shorter = step(&format!("{preset}{MINIMAL}"), &["model.layers=8"]);
    assert_eq!(shorter.layers, Some(vec![2; 4]));
}

#[test]
fn overrides_win_and_the_last_wins_most() {
    let scenario = legal(MINIMAL, &["pipeline.ranks=2", "name=other", "pipeline.ranks = 3"]);
    assert_eq!(scenario.name, "other");
    assert_eq!(scenario.step.expect("a step").inputs.shape().ranks(), 3);
    // What is replaced need not be right.
    let text = MINIMAL.replace("ranks = 4", "ranks = \"four\"");
    assert_eq!(step(&text, &["pipeline.ranks=4"]).inputs.shape().ranks(), 4);
    // A whole scenario can be set.
    let sets = [
        "pipeline.ranks=2",
        "pipeline.micro_batches=4",
        "pipeline.schedule=gpipe",
        "time={ forward = \"1 ms\", backward = \"2 ms\" }",
    ];
    assert_eq!(step("", &sets).order.name(), "fill-drain");
}

#[test]
fn a_sweep_is_a_list_of_overrides() {
    let text = format!(
        "{MINIMAL}[sweep]\n\"pipeline.micro_batches\" = [1, 2, 4]\ntime.forward = [\"5 ms\", \"10 \\u006Ds\"]\n\
         \"pipeline.layers\" = [[1, 1, 1, 1], 2]\n"
    );
    let scenario = legal(&text, &[]);
    let axes = &scenario.sweep.axes;
    let keys: Vec<&str> = axes.iter().map(|axis| axis.key.as_str()).collect();
    assert_eq!(keys, ["pipeline.micro_batches", "time.forward", "pipeline.layers"]);
    assert_eq!(axes[1].values.iter().collect::<Vec<_>>(), ["\"5 ms\"", "\"10 ms\""]);
    let point: Vec<Override> = axes.iter().filter_map(|axis| axis.at(1)).collect();
    let point = parse(&text, "test.toml", &point).expect("legal").step.expect("a step");
    assert_eq!(point.inputs.shape().micro_batches(), 2);
    assert_eq!(axes[0].at(3), None);
}

#[test]
fn ranges_are_lists() {
    let text = format!(
        "{MINIMAL}[sweep]\n\"pipeline.micro_batches\" = \"1..64*4\"\n\"time.forward\" = \"5 ms..15 ms:5 ms\"\n"
    );
    let mut sweep = legal(&text, &[]).sweep;
    assert_eq!(sweep.axes[0].values.iter().collect::<Vec<_>>(), ["1", "4", "16", "64"]);
    let point: Vec<Override> = sweep.axes.iter().filter_map(|axis| axis.at(2)).collect();
    let point = parse(&text, "test.toml", &point).expect("legal").step.expect("a step");
    assert_eq!(point.inputs.shape().micro_batches(), 16);
    assert_eq!(point.inputs.costs().stages[0].forward.as_nanos(), 15_000_000);
    // What is typed replaces what is written, and adds to it.
    sweep.vary(Axis::vary("pipeline.micro_batches=8..10").expect("a range"));
    sweep.vary(Axis::vary("pipeline.schedule=1f1b, gpipe").expect("a list"));
    sweep.vary(Axis::vary("pipeline.layers=[1, 1, 1, 1],2").expect("a list"));
    let keys: Vec<&str> = sweep.axes.iter().map(|axis| axis.key.as_str()).collect();
    assert_eq!(keys, ["pipeline.micro_batches", "time.forward", "pipeline.schedule", "pipeline.layers"]);
    assert_eq!(sweep.axes[0].values.iter().collect::<Vec<_>>(), ["8", "9", "10"]);
    assert_eq!(sweep.axes[2].values.iter().collect::<Vec<_>>(), ["\"1f1b\"", "\"gpipe\""]);
    assert_eq!(sweep.axes[3].values.iter().collect::<Vec<_>>(), ["[1, 1, 1, 1]", "2"]);
}

#[test]
fn what_cannot_be_varied_is_shown() {
    let said = |text: &str| Axis::vary(text).expect_err(text).to_string();
    assert!(said("pipeline.microbatches=1,2").contains("did you mean `\"pipeline.micro_batches\"`?"));
    let text = said("pipeline.micro_batches=64..1");
    assert!(text.contains("has no value") && text.contains("--vary:1:24"), "{text}");
    assert!(said("pipeline.micro_batches").contains("`KEY=V1,V2`"));
    assert!(said("pipeline.layers=[1,2").contains("invalid TOML"));
    // A point that is wrong is shown at the axis.
    let point = Axis::vary("pipeline.micro_batches=0,1").expect("a list").at(0).expect("a value");
    let text = parse(MINIMAL, "test.toml", &[point]).expect_err("zero").to_string();
    assert!(text.contains("--vary"), "{text}");
}

#[test]
fn the_schema_knows_the_keys_that_the_reader_knows() {
    let schema = schema();
    let file = &schema["properties"];
    assert!(file["pipeline"]["$ref"].is_string() && file["name"]["type"] == "string", "{file}");
    let pipeline = &schema["$defs"]["Pipeline"];
    assert_eq!(pipeline["required"], serde_json::json!([]));
    assert_eq!(pipeline["additionalProperties"], false);
    assert_eq!(pipeline["properties"]["backward_order"]["enum"], serde_json::json!(["reverse", "forward"]));
    let schedules = pipeline["properties"]["schedule"]["enum"].as_array().expect("names").len();
    assert!(schedules >= pipestep_schedule::all().len());
    // The sweep takes every key that the schema has.
    let swept = schema["properties"]["sweep"]["propertyNames"]["enum"].as_array().expect("keys");
    let mut swept: Vec<String> = swept.iter().map(|key| key.as_str().expect("a key").to_owned()).collect();
    let mut known = Vec::new();
    collect_keys(&schema, &schema, "", &mut known);
    // Nor what itself says what is varied.
    known.retain(|key| !["sweep", "search.vary", "search.split"].iter().any(|space| key.starts_with(space)));
    for keys in [&mut swept, &mut known] {
        keys.sort();
        keys.dedup();
    }
    assert_eq!(swept, known);
}

/// All dotted keys that hold a value, by the schema alone.
fn collect_keys(whole: &Value, node: &Value, path: &str, keys: &mut Vec<String>) {
    if let Some(name) = node["$ref"].as_str() {
        let target = whole.pointer(name.trim_start_matches('#')).expect("it is defined");
        return collect_keys(whole, target, path, keys);
    }
    if let Some(choices) = node["anyOf"].as_array() {
        return choices.iter().for_each(|choice| collect_keys(whole, choice, path, keys));
    }
    match node["properties"].as_object() {
        None => keys.push(path.to_owned()),
        Some(properties) => {
            for (key, inner) in properties {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                collect_keys(whole, inner, &path, keys);
            }
        }
    }
}

proptest! {
    /// Rounding moves a rank's total by less than half a nanosecond a chunk.
    #[test]
    fn chunks_add_up_to_their_rank(
        forward in 0_u64..1 << 40, layers in proptest::collection::vec(1_u64..50, 6), third in 0_u64..=7,
    ) {
        let sets = [
            "pipeline.schedule=interleaved".to_owned(),
            "pipeline.ranks=2".to_owned(),
            "pipeline.chunks=3".to_owned(),
            format!("pipeline.layers={layers:?}"),
            format!("time.forward={forward} ns"),
            format!("time.backward={forward} ns"),
            format!("time.weight_gradient_fraction={third}/7"),
        ];
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let step = step(MINIMAL, &sets);
        let stages = &step.inputs.costs().stages;
        for rank in 0..2 {
            let of_rank = [rank, rank + 2, rank + 4].map(|stage| stages[stage]);
            let sum: u64 = of_rank.iter().map(|stage| stage.forward.as_nanos()).sum();
            prop_assert!(sum.abs_diff(forward) <= 1);
            for stage in of_rank {
                let parts = stage.input_gradient.plus(stage.weight_gradient).expect("small");
                prop_assert_eq!(parts, stage.backward);
            }
        }
    }
}
