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
[parallel]
data = 8
[jitter]
forward = { distribution = "normal", deviation = 0.05 }
backward = [1, 1, 1, { distribution = "empirical", values = [1, 1.5] }]
activation = { distribution = "lognormal", variation = 0.5 }
rank_factor = [1, 1, 1.2, 1]
link_factor = "4/3"
runs = 1000
seed = 7
[efficiency]
reference_tokens = 128
points = [{ tokens = 128, time_per_token = 1.6 }, { tokens = 1024, time_per_token = 1 }]
[sweep]
"pipeline.micro_batches" = [1, 2, 4]
"#;

/// A job with most keys, for mutation.
const JOB: &str = r#"
[job]
tokens = 100_000_000_000
tokens_per_step = 3_145_728
step = "52.8 s"
horizon = "30 d"
set_aside = "5 d"
[model]
preset = "qwen3-8b"
sequence_length = 128
[storage]
preset = "superpod-good-1su"
read = "15 GB/s"
write = "7 GB/s"
[checkpoint]
mode = "async"
every = 100
first = 50
count = 1000
trigger = "steps"
staging = "0.5 s"
backlog = "replace"
buffers = 2
buffer_size = "120 GB"
buffers_on = "host"
commit_delay = "1 s"
write_time = { distribution = "lognormal", mean = "16 s", variation = 0.5 }
[checkpoint.near]
far_every = 10
survives = 0.9
recovery = { bandwidth = "40 GB/s", restart = "5 s" }
[faults]
at = ["50 s"]
mtbf = { distribution = "weibull", mean = "7.9 h", shape = 0.7 }
device_mtbf = "337 d"
devices = 1024
preset = "llama3"
detection = "30 s"
downtime = { distribution = "normal", mean = "30 s", deviation = "5 s" }
recovery = { distribution = "uniform", low = "30 s", high = "60 s" }
recovery_can_fail = true
seed = 7
runs = 100
[faults.spares]
count = 4
repair = "1 d"
[[faults.sources]]
name = "loss spike"
mtbf = "1 d"
near_survives = 1
causes = [{ name = "data", weight = 3 }]
[input]
items_per_step = 384
workers = 8
make = "50 ms"
delivery = 2
prefetch = 768
read = { bytes = "4 MB", bandwidth = "1 GB/s", cache = { epoch_items = 1000, bandwidth = "5 GB/s" } }
stops = [{ from = "1 h", to = "2 h", workers = 3 }]
readers = 2
copy = { bytes = "64 MB", bandwidth = "25 GB/s", slots = 3 }
packing = { tokens = 8192, samples = [448, { tokens = 900, stored = "2 kB", cpu = "1 ms" }], split = true }
[stragglers]
windows = [{ from = "200 s", to = "400 s", factor = 1.25 }]
ranks = 64
overhead = "0.5 s"
threshold = 0.1
window = 5
response = "stale"
staleness = 3
jitter = { distribution = "lognormal", variation = 0.1 }
slow = { at = ["1 h"], mtbf = "30 d", factor = "3/2", lasts = "2 h" }
"#;

/// Rounds with most keys, for mutation.
const RL: &str = r#"
[rl]
mode = "async"
batch = 512
warmup = 2
seed = 7
keep = 0.75
keep_by = "randomly"
discard_older_than = 4
staleness = 0.5
sync_every = 2
in_flight = "continue"
kv_cache = "recomputed"
scoring_start = "as-finished"

[[rl.scoring]]
name = "rules"
workers = 64
time = "0.5 s"

[[rl.scoring]]
name = "verifier"
kind = "verifier"
workers = 16
time = { fixed = "1 s", per_token = "1 ms" }
speed = "3/2"

[rl.rollout]
engines = 64
slots = 256
token_time = [{ running = 1, time = "20 ms" }, { running = 256, time = "45 ms" }]
lengths = { distribution = "lognormal", median = 2048, sigma = 0.8, cap = 16384 }
prompt_tokens = 512
prefill_per_token = "0.05 ms"
resume = "10 ms"
copies = 2
speed = 1.5

[rl.update]
mini_steps = 2
time = ["16 s", "17 s"]
handoff = "1 s"
prepare = "4 s"
finish = "2 s"

[rl.sync]
style = "staggered"
[rl.sync.transfer]
common = "16 GB"
experts = "400 GB"
expert_count = 128
ranks = 16
content = "own-shards"
fan_out = "broadcast"
send = "50 GB/s"
receive = "25 GB/s"
setup = "0.1 s"

[rl.faults]
engines = [{ engine = 3, at = "100 s", down = "60 s", responses = "kept" }]
random = { mean_time = "24 h", down = "60 s" }
mean_time_to_interruption = "1 h"
scorers = [{ pool = "verifier", at = "100 s" }]
restarts = [{ at = "1 h", down = "10 min", rollout = "kept" }]

[rl.prices]
engine = 32
worker = [0, 0.5]
[rl.memory]
capacity = "80 GB"
items = [{ name = "KV cache", bytes = "40 GiB", held = "rollout" }]
"#;

fn answered(text: &str, overrides: &[Override]) {
    if let Err(errors) = parse(text, "test.toml", overrides) {
        assert!(errors.iter().all(|error| !error.message().is_empty()));
        assert!(errors.iter().count() > 0, "refused without a reason: {text}");
        assert!(!errors.render(Style::Coloured, str::to_owned).is_empty());
    }
}

#[test]
fn the_full_scenarios_are_legal() {
    for text in [FULL, JOB] {
        parse(text, "test.toml", &[]).unwrap_or_else(|errors| panic!("{errors}"));
    }
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
    for text in [FULL, JOB, RL] {
        let lines: Vec<&str> = text.lines().collect();
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
    fn any_mutation_of_a_job_is_answered(at in 0..JOB.len(), length in 0_usize..12, put in "[ -~\né]{0,6}") {
        let end = (at + length).min(JOB.len());
        answered(&format!("{}{put}{}", &JOB[..at], &JOB[end..]), &[]);
    }

    #[test]
    fn any_mutation_of_rounds_is_answered(at in 0..RL.len(), length in 0_usize..12, put in "[ -~\né]{0,6}") {
        let end = (at + length).min(RL.len());
        answered(&format!("{}{put}{}", &RL[..at], &RL[end..]), &[]);
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
