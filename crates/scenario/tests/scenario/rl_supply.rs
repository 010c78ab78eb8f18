//! The book's supply cases, from a model and a few settings on: operations to times, times to a scenario's text, the
//! text to simulated rounds. Nothing of what is expected goes in.

use pipestep_engine::Duration;
use pipestep_model::Decoder;
use pipestep_rl::simulate;
use serde_json::Value;

use crate::legal;

/// What is done where: 200 TFLOP/s everywhere, 20 in decoding.
const FAST: i128 = 200_000_000_000_000;
const DECODE: i128 = 20_000_000_000_000;

fn cases() -> Vec<Value> {
    let text = include_str!("../../../rl/tests/data/book_rl.json");
    let file: Value = serde_json::from_str(text).expect("the copied oracle files are JSON");
    file["supply_cases"].as_array().expect("a list").clone()
}

/// `12`, or `"3/4"`.
fn rational(value: &Value) -> (i128, i128) {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let (upper, lower) = text.split_once('/').unwrap_or((&text, "1"));
    (upper.parse().expect("an integer"), lower.parse().expect("an integer"))
}

/// A case's settings, those that it leaves out being the book's.
struct Cycle {
    prompts: u64,
    responses: u64,
    prompt: u64,
    output: u64,
    accepted: u64,
    epochs: u64,
    references: u64,
    teachers: u64,
    replicas: u64,
    is_dense: bool,
    workers: u64,
}

impl Cycle {
    fn of(case: &Value) -> Self {
        let cycle = &case["scenario"]["cycle"];
        let or = |key: &str, usual: u64| cycle[key].as_u64().unwrap_or(usual);
        Self {
            prompts: or("prompts", 8),
            responses: or("samples_per_prompt", 4),
            prompt: or("prompt_tokens", 1024),
            output: or("output_tokens", 256),
            accepted: or("accepted_samples", 16),
            epochs: or("update_epochs", 1),
            references: or("reference_passes", 1),
            teachers: or("teacher_passes", 0),
            replicas: or("rollout_replicas", 1),
            is_dense: cycle["head_strategy"].as_str().unwrap_or("dense") == "dense",
            workers: case["scenario"]["verify_workers"].as_u64().expect("a number"),
        }
    }

    fn generated(&self) -> u64 {
        self.prompts * self.responses
    }
}

/// Operations of each stage.
struct Work {
    prefill: u64,
    decode: u64,
    reference: u64,
    teacher: u64,
    update: u64,
}

impl Work {
    fn of(cycle: &Cycle, model: &Decoder) -> Self {
        let flops = |before, tokens, logits| model.forward_flops(before, tokens, logits).expect("they fit");
        let generated = cycle.generated();
        // The prefill gives the first token of the output.
        let decode: u64 = (0..cycle.output - 1).map(|step| flops(cycle.prompt + step, 1, 1)).sum();
        let length = cycle.prompt + cycle.output - 1;
        let forward = flops(0, length, if cycle.is_dense { length } else { cycle.output });
        Self {
            prefill: generated * flops(0, cycle.prompt, 1),
            decode: generated * decode,
            reference: generated * cycle.references * forward,
            teacher: generated * cycle.teachers * forward,
            update: 3 * cycle.accepted * cycle.epochs * forward,
        }
    }
}

/// The nearest whole nanosecond of `flops` at `rate`, on a pool so many times faster.
fn nanos(case: &Value, pool: &str, flops: u64, rate: i128) -> u64 {
    let speedup = &case["scenario"]["pool_speedups"][pool];
    let (upper, lower) = if speedup.is_null() { (1, 1) } else { rational(speedup) };
    let (work, rate) = (i128::from(flops) * 1_000_000_000 * lower, rate * upper);
    u64::try_from((work + rate / 2) / rate).expect("it fits")
}

#[test]
fn operations_are_those_of_the_book() {
    let model = Decoder::preset("qwen3-8b").expect("a preset");
    for case in cases() {
        let work = Work::of(&Cycle::of(&case), &model);
        let expected = &case["expect"]["work"]["flops"];
        for (stage, found) in [
            ("rollout_prefill", work.prefill),
            ("rollout_decode", work.decode),
            ("reference_scoring", work.reference),
            ("teacher_scoring", work.teacher),
            ("policy_update", work.update),
        ] {
            assert_eq!(Some(found), expected[stage].as_u64(), "{}: {stage}", case["id"]);
        }
    }
}

/// What all modes of a case have in common.
fn head(cycle: &Cycle, mode: &str) -> String {
    let (generated, accepted) = (cycle.generated(), cycle.accepted);
    assert!(accepted.is_multiple_of(cycle.responses), "whole groups are accepted");
    let keep =
        if accepted < generated { format!("keep = \"{accepted}/{generated}\"\n") } else { String::new() };
    format!(
        "[model]\npreset = \"qwen3-8b\"\nsequence_length = 1280\n[rl]\n{mode}\nbatch = {accepted}\n\
         group = {{ responses = {} }}\n{keep}",
        cycle.responses
    )
}

fn round(text: &str) -> Duration {
    let scenario = legal(text, &[]).rl.expect("it has rounds");
    let inputs = scenario.inputs(None).expect("it needs no step");
    simulate(&inputs).expect("it ends").round
}

/// Within so many nanoseconds of the exact number.
fn near(found: Duration, expected: &Value, within: i128, what: &Value) {
    let (upper, lower) = rational(expected);
    let off = (i128::from(found.as_nanos()) * lower - upper).abs();
    assert!(off <= within * lower, "{what}: {found}, expected {expected} ns");
}

/// One stage after the other: prefill, decode, verification, reference and teacher passes with the update, weights.
#[test]
fn a_batch_alone_takes_the_sum_of_its_isolated_stages() {
    let model = Decoder::preset("qwen3-8b").expect("a preset");
    for case in cases() {
        let cycle = Cycle::of(&case);
        let work = Work::of(&cycle, &model);
        let time = |pool, flops, rate| nanos(&case, pool, flops, rate);
        let scored = time("reference", work.reference, FAST) + time("teacher", work.teacher, FAST);
        let text = format!(
            "{}launch = {generated}\nrounds = 3\n[rl.rollout]\nengines = {}\nslots = {generated}\n\
             token_time = \"{} ns\"\nlengths = 1\nprompt_tokens = 1\nprefill_per_token = \"{} ns\"\n\
             [[rl.scoring]]\nname = \"verifier\"\nworkers = {}\ntime = \"50 ms\"\n\
             [rl.update]\nprepare = \"{scored} ns\"\ntime = \"{} ns\"\n\
             [rl.sync.transfer]\nsend = \"{} B/s\"\n",
            head(&cycle, "mode = \"sync\""),
            cycle.replicas,
            // A response has a token that is decoded, if only for a nanosecond.
            time("actor", work.decode, DECODE).max(1),
            time("actor", work.prefill, FAST),
            cycle.workers,
            time("learner", work.update, FAST),
            case["scenario"]["sync_bytes_per_second"],
            generated = cycle.generated(),
        );
        // Seven stages, each rounded to a nanosecond.
        near(round(&text), &case["expect"]["serial_batch_ns"], 4, &case["id"]);
    }
}

/// Devices that generate, judge and train: as busy as they can be, if a second job of the same kind uses them while one
/// is verified. A batch of either comes every half of a round.
#[test]
fn two_jobs_on_one_pool_reach_the_lower_bound_of_the_interval() {
    let model = Decoder::preset("qwen3-8b").expect("a preset");
    let shared: Vec<Value> =
        cases().into_iter().filter(|case| !case["scenario"]["pools"].is_null()).collect();
    assert_eq!(shared.len(), 1);
    for case in shared {
        let cycle = Cycle::of(&case);
        let (work, generated) = (Work::of(&cycle, &model), cycle.generated());
        let pool = "shared_gpu";
        let actor = nanos(&case, pool, work.prefill, FAST) + nanos(&case, pool, work.decode, DECODE);
        let text = format!(
            "{}placement = \"colocated\"\nlaunch = {generated}\nrounds = 8\n[rl.rollout]\nengines = 1\n\
             slots = {generated}\ntoken_time = \"{actor} ns\"\nlengths = 1\n\
             [[rl.scoring]]\nname = \"verifier\"\nworkers = {}\ntime = \"50 ms\"\n\
             [rl.update]\nprepare = \"{} ns\"\ntime = \"{} ns\"\n[rl.sync]\ntime = \"0 s\"\n\
             [rl.sharing]\njobs = [{{ name = \"the other one\" }}]\n",
            head(&cycle, "mode = \"sync\""),
            cycle.workers,
            nanos(&case, pool, work.reference, FAST) + nanos(&case, pool, work.teacher, FAST),
            nanos(&case, pool, work.update, FAST),
        );
        let interval = Duration::from_nanos(round(&text).as_nanos() / 2);
        near(interval, &case["expect"]["pipeline_interval_lower_ns"], 3, &case["id"]);
    }
}

/// Pools side by side: a batch every time the busiest of them can serve one.
#[test]
fn overlapped_pools_reach_the_lower_bound_of_the_interval() {
    let model = Decoder::preset("qwen3-8b").expect("a preset");
    let separate = |case: &Value| case["scenario"]["pools"].is_null();
    for case in cases().into_iter().filter(separate) {
        let cycle = Cycle::of(&case);
        let (work, generated) = (Work::of(&cycle, &model), cycle.generated());
        let actor = nanos(&case, "actor", work.prefill, FAST) + nanos(&case, "actor", work.decode, DECODE);
        // One sample after the other on a scorer: its share of the pool's time.
        let scorer = |name: &str, flops: u64| {
            let each = nanos(&case, name, flops, FAST) as f64 / generated as f64;
            format!("[[rl.scoring]]\nname = \"{name}\"\nworkers = 1\ntime = \"{} ns\"\n", each.round())
        };
        let mode = "mode = \"async\"\nstaleness = 9\nrounds = 20\nwarmup = 20";
        let text = format!(
            "{}[rl.rollout]\nengines = 1\nslots = {generated}\ntoken_time = \"{actor} ns\"\nlengths = 1\n\
             {}{}[[rl.scoring]]\nname = \"verifier\"\nworkers = {}\ntime = \"50 ms\"\n\
             [rl.update]\ntime = \"{} ns\"\n[rl.sync]\ntime = \"0 s\"\nstyle = \"staggered\"\n",
            head(&cycle, mode),
            scorer("reference", work.reference),
            scorer("teacher", work.teacher),
            cycle.workers,
            nanos(&case, "learner", work.update, FAST),
        );
        near(round(&text), &case["expect"]["pipeline_interval_lower_ns"], 2, &case["id"]);
    }
}
