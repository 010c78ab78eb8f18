//! Whatever is written, there is an answer: no panic, and every error has a text.

use pipestep_scenario::{Override, Style};
use proptest::prelude::*;

use crate::parse;

/// A scenario with most keys, for mutation.
const FULL: &str = r#"
name = "all keys"
[model]
preset = "qwen3-8b"
sequence_length = 128
micro_batch_size = 1
saved = "gemm-inputs-fp32"
recompute = "silu+products"
extra_saved = ["0 B", "1 kB", "2 KiB", "3 B"]
[pipeline]
ranks = 4
micro_batches = 8
schedule = "fill-drain"
chunks = 1
layers = [9, 9, 9, 9]
backward_order = "reverse"
update_after = "own"
[time]
forward = ["10 ms", "11 ms", "12 ms", "13 ms"]
backward = "20 ms"
weight_gradient_fraction = "1/3"
overlapped_pair = "30 ms"
update = "1 ms"
setup = "0 ms"
[transfer]
activation = ["1 ms", "2 ms", "3 ms"]
gradient = "1 ms"
wraparound = "1 ms"
links = "shared"
arbitration = "by-stage"
[memory]
budget = "80 GB"
released_at_input_gradient = 0.5
include = ["weights", "gradients", "optimizer"]
[sweep]
"pipeline.micro_batches" = [1, 2, 4]
"#;

fn answered(text: &str, overrides: &[Override]) {
    if let Err(errors) = parse(text, "test.toml", overrides) {
        assert!(errors.iter().all(|error| !error.message().is_empty()));
        assert!(errors.iter().count() > 0, "refused without a reason: {text}");
        assert!(!errors.render(Style::Coloured).is_empty());
    }
}

#[test]
fn the_full_scenario_is_legal() {
    parse(FULL, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
}

/// Values that are wrong for some key or other.
const VALUES: [&str; 16] = [
    "0",
    "-1",
    "1",
    "18446744073709551615",
    "99999999999999999999999999999999999999999",
    "0.5",
    "nan",
    "inf",
    "true",
    "\"\"",
    "\"10 ms\"",
    "\"18446744073709551615 ns\"",
    "\"18446744073709551615 B\"",
    "[]",
    "[1, \"a\"]",
    "{ a = 1 }",
];

#[test]
fn every_key_takes_or_refuses_every_value() {
    let lines: Vec<&str> = FULL.lines().collect();
    for (number, line) in lines.iter().enumerate() {
        let Some((key, _)) = line.split_once(" = ") else {
            continue;
        };
        for value in VALUES {
            let mut changed = lines.clone();
            let wrong = format!("{key} = {value}");
            changed[number] = &wrong;
            answered(&changed.join("\n"), &[]);
        }
        let mut shorter = lines.clone();
        shorter.remove(number);
        answered(&shorter.join("\n"), &[]);
    }
}

proptest! {
    #[test]
    fn any_text_is_answered(text in ".{0,80}") {
        answered(&text, &[]);
    }

    #[test]
    fn any_mutation_is_answered(at in 0..FULL.len(), length in 0_usize..12, put in "[ -~\né]{0,6}") {
        let end = (at + length).min(FULL.len());
        answered(&format!("{}{put}{}", &FULL[..at], &FULL[end..]), &[]);
    }

    #[test]
    fn any_override_is_answered(set in "[a-z._ ]{0,12}=?.{0,16}") {
        answered(FULL, &[Override::set(set)]);
    }

    #[test]
    fn any_override_of_a_key_is_answered(key in 0_usize..8, value in ".{0,16}") {
        let keys = ["pipeline.ranks", "pipeline.layers", "time.forward", "transfer.activation", "model.preset",
            "memory.include", "pipeline.schedule", "sweep"];
        answered(FULL, &[Override::set(format!("{}={value}", keys[key]))]);
    }
}
