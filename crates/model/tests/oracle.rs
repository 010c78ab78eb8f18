//! Byte counts held against `gemm_memory.json` (Qwen3-8B on four stages) and the figures spelled out with it.
//!
//! Peaks and makespans of those cases need a step and are held elsewhere.

use pipestep_model::{Activations, Component, Decoder, MicroBatch, Part, Recompute, Saved};
use serde_json::Value;

fn activations(tokens: u64, saved: Saved, recompute: Recompute) -> Activations {
    Activations {
        model: Decoder::preset("qwen3-8b").expect("a preset"),
        micro_batch: MicroBatch { sequences: 1, tokens },
        saved,
        recompute,
    }
}

fn four_stages() -> [Part; 4] {
    let mut parts = [Part::layers(9); 4];
    parts[0].embedding = true;
    parts[3].head = true;
    parts
}

fn case_activations(scenario: &Value) -> Activations {
    let silu = scenario["activation_policy"] == "recompute_silu";
    let products = scenario["gemm_policy"] == "recompute_products";
    let number = |key: &str| scenario[key].as_u64().expect("a number");
    Activations {
        micro_batch: MicroBatch { sequences: number("microbatch_size"), tokens: number("tokens") },
        ..activations(1, Saved::GemmInputsFp32, Recompute { silu, products })
    }
}

#[test]
fn matrix_inputs_agree_with_the_book() {
    let text = include_str!("data/gemm_memory.json");
    let document: Value = serde_json::from_str(text).expect("valid JSON");
    let cases = document["cases"].as_array().expect("a list of cases");
    assert!(cases.len() >= 10);
    for case in cases {
        let with = case_activations(&case["scenario"]);
        let without = Activations { saved: Saved::NonlinearFp32, ..with };
        let added = four_stages()
            .map(|part| with.saved_bytes(part).expect("small") - without.saved_bytes(part).expect("small"));
        let extra_workspace = four_stages().map(|part| {
            with.workspace_bytes(part).expect("small") - without.workspace_bytes(part).expect("small")
        });
        let rebuilt = with.rebuilt_products(with.model.whole()).expect("small");

        let (id, expect) = (&case["id"], &case["expect"]);
        let workspace = expect["workspace_bytes"].as_u64().expect("a number");
        assert_eq!(Value::from(added.to_vec()), expect["added_saved_bytes_per_stage"], "{id}");
        assert_eq!(extra_workspace, [workspace; 4], "{id}");
        assert_eq!(Value::from(rebuilt), expect["extra_scalar_ops_per_microbatch"], "{id}");
    }
}

/// As many tokens in fewer, longer samples meet one another more often: what packs of equal length do not show.
#[test]
fn attention_meets_as_many_pairs_of_tokens_as_the_book_counts() {
    let text = include_str!("../../job/tests/data/progress.json");
    let document: Value = serde_json::from_str(text).expect("valid JSON");
    let model = Decoder::preset("qwen3-8b").expect("a preset");
    let forward = |tokens| model.forward_flops(0, tokens, 0).expect("small");
    // What two tokens take more than twice one token is the pair that they make: scores and values.
    let pair = forward(2) - 2 * forward(1);
    let cases = document["attention_pair_cases"].as_array().expect("a list of cases");
    assert!(!cases.is_empty());
    for case in cases {
        let lengths = case["scenario"]["lengths"].as_array().expect("a list of lengths");
        let lengths: Vec<u64> = lengths.iter().map(|length| length.as_u64().expect("a number")).collect();
        let tokens: u64 = lengths.iter().sum();
        let all: u64 = lengths.iter().map(|&length| forward(length)).sum();
        let pairs = (all - tokens * (forward(1) - pair)) / pair;
        assert_eq!(Value::from(pairs), case["expect"]["causal_pairs"], "{case}");
        assert_eq!(Value::from(tokens), case["expect"]["tokens"], "{case}");
    }
}

#[test]
fn nonlinear_state_follows_the_formula_per_token() {
    for tokens in [1, 2, 127, 128, 2048, 8192] {
        for (recompute, constant) in [(Recompute::NONE, 200_872), (Recompute::SILU, 151_720)] {
            let all = activations(tokens, Saved::NonlinearFp32, recompute);
            let layer = all.saved_bytes(Part::layers(1)).expect("small");
            assert_eq!(layer, tokens * (constant + 64 * (tokens + 1)));
            let head = Part { layers: 0, embedding: false, head: true };
            assert_eq!(all.saved_bytes(head).expect("small"), 624_132 * tokens);
        }
    }
}

#[test]
fn the_headline_stages_and_messages_are_exact() {
    let all = activations(128, Saved::NonlinearFp32, Recompute::NONE);
    let saved = four_stages().map(|part| all.saved_bytes(part).expect("small"));
    assert_eq!(saved, [240_915_456, 240_915_456, 240_915_456, 320_804_352]);
    assert_eq!(all.activation_message(), Ok(1 << 20));
    assert_eq!(all.gradient_message(), Ok(2 << 20));
    assert_eq!(all.workspace_bytes(Part::layers(9)), Ok(0));
    let silu = Activations { recompute: Recompute::SILU, ..all };
    assert_eq!(silu.workspace_bytes(Part::layers(9)), Ok(8 * 128 * 12_288));
}

#[test]
fn recomputing_products_means_nothing_when_they_are_not_saved() {
    let plain = activations(128, Saved::NonlinearFp32, Recompute::SILU);
    let both = activations(128, Saved::NonlinearFp32, Recompute::SILU_AND_PRODUCTS);
    for part in four_stages() {
        assert_eq!(plain.saved_bytes(part), both.saved_bytes(part));
        assert_eq!(plain.workspace_bytes(part), both.workspace_bytes(part));
        assert_eq!(both.rebuilt_products(part), Ok(0));
    }
}

#[test]
fn a_model_without_head_norms_keeps_none() {
    let llama = Activations {
        model: Decoder::preset("llama-3.1-8b").expect("a preset"),
        ..activations(128, Saved::NonlinearFp32, Recompute::NONE)
    };
    let components = llama.components(Part::layers(1)).expect("small");
    let names: Vec<Component> = components.iter().map(|&(component, _)| component).collect();
    assert_eq!(
        names,
        [
            Component::InputNorm,
            Component::AttentionProbabilities,
            Component::PostAttentionNorm,
            Component::GatedPart
        ]
    );
}

#[test]
fn absurd_sizes_are_errors() {
    let mut all = activations(u64::MAX, Saved::NonlinearFp32, Recompute::NONE);
    assert!(all.saved_bytes(Part::layers(1)).is_err());
    assert!(all.activation_message().is_err());
    all.micro_batch = MicroBatch { sequences: u64::MAX, tokens: 1 };
    assert!(all.saved_bytes(Part::layers(1)).is_err());
    all.recompute = Recompute::SILU;
    assert!(all.workspace_bytes(Part::layers(1)).is_err());
}
