//! `book_rl.json`: rates, cycles, colocated memory, weight distribution, small timelines, exactly.

use crate::common::*;
use pipestep_engine::{Bytes, Duration, Rate};
use pipestep_rl::*;
use serde_json::Value;

fn book() -> Value {
    oracle(include_str!("../data/book_rl.json"))
}

fn cases(group: &str) -> Vec<Value> {
    let cases = book()[group].as_array().unwrap().clone();
    assert!(!cases.is_empty(), "{group}");
    cases
}

/// Rounds that generate as many samples as it takes to keep a whole number of them.
fn retained(inputs: &mut RlInputs, share: &Value) {
    let (kept, of) = rational(share);
    inputs.batch = u32::try_from(kept).unwrap() * 2;
    inputs.launch = u32::try_from(of).unwrap() * 2;
    inputs.rollout.slots = inputs.launch;
    if kept != of {
        inputs.keep = Keep::Evenly(Fraction::new(kept as u32, of as u32).unwrap());
    }
}

#[test]
fn cycles_have_the_period_and_the_throughput_of_the_book() {
    for case in cases("cycle_cases") {
        let (given, expect) = (&case["scenario"], &case["expect"]);
        let time = |key: &str| whole(&given[key]);
        let (generate, learn, sync) = (time("generate_s"), time("learn_s"), time("blocking_sync_s"));
        let synchronous = simulate(&cycle(Mode::Sync, generate, learn, sync)).unwrap();
        assert_eq!(synchronous.round, seconds(whole(&expect["sync_period_s"])), "{case}");

        let mut inputs = cycle(Mode::OneStepOff, generate, learn, sync);
        retained(&mut inputs, &given["retained"]);
        let overlapped = simulate(&inputs).unwrap();
        assert_eq!(overlapped.round, seconds(whole(&expect["async_period_s"])), "{case}");

        // Per sample generated, since the two generate batches of different sizes.
        let (upper, lower) = rational(&expect["async_over_sync_throughput"]);
        let ratio = (overlapped.useful_samples_per_s / f64::from(inputs.launch))
            / (synchronous.useful_samples_per_s / 8.0);
        same(ratio, upper as f64 / lower as f64, &case.to_string());
        let (upper, lower) = rational(&expect["break_even_retention"]);
        let even = overlapped.round.as_secs_f64() / synchronous.round.as_secs_f64();
        same(even, upper as f64 / lower as f64, &case.to_string());
    }
}

/// Stages that work side by side at the given rates: servers that take a second each.
fn rates(given: &Value) -> RlInputs {
    let rate = |key: &str| u32::try_from(whole(&given[key])).unwrap();
    let learn = rate("learn_per_s");
    let mut inputs = plain(asynchronous(20, InFlight::Drain), learn, Shape::Fixed(1));
    // A sync that takes no time and stops nobody.
    inputs.sync.style = SyncStyle::Staggered;
    inputs.rollout.slots = rate("generate_per_s");
    inputs.scoring = vec![pool("verify", rate("verify_per_s"), seconds(1))];
    inputs.update.time = UpdateTime::Fixed(seconds(1));
    let (kept, of) = rational(&given["retained"]);
    inputs.keep = Keep::Evenly(Fraction::new(kept as u32, of as u32).unwrap());
    inputs.warmup = 36;
    inputs.rounds = 72;
    inputs
}

#[test]
fn stages_at_given_rates_feed_each_other() {
    for case in cases("rate_cases") {
        let outcome = simulate(&rates(&case["scenario"])).unwrap();
        let (upper, lower) = rational(&case["expect"]["effective_per_s"]);
        same(outcome.useful_samples_per_s, upper as f64 / lower as f64, &case.to_string());
    }
}

#[test]
fn the_verifier_is_the_bottleneck_and_doubling_it_gives_eight() {
    let given = serde_json::json!(
        { "generate_per_s": 12, "verify_per_s": 6, "learn_per_s": 8, "retained": "3/4" }
    );
    let found = sensitivity(&rates(&given)).unwrap();
    same(found.base.useful_samples_per_s, 4.5, "as given");
    assert_eq!(found.bottleneck.as_deref(), Some("verify"));
    let expected = [("rollout", 4.5), ("verify", 8.0), ("update", 4.5), ("weight_sync", 4.5)];
    assert_eq!(found.gains.len(), expected.len());
    for (gain, (name, rate)) in found.gains.iter().zip(expected) {
        assert_eq!(gain.name, name);
        same(gain.useful_samples_per_s, rate, name);
    }
}

#[test]
fn the_learner_limits_once_it_is_slow_enough() {
    let given = serde_json::json!(
        { "generate_per_s": 12, "verify_per_s": 6, "learn_per_s": 8, "retained": "3/4" }
    );
    // It is fed 4.5 a second of the 8 it could learn: it limits below 0.5625 of its speed.
    let found = turning_point(&rates(&given), Stage::Update).unwrap().unwrap();
    assert!((0.5..0.5625).contains(&found.as_f64()), "{found}");
    assert_eq!(turning_point(&rates(&given), Stage::Scoring(0)).unwrap(), None, "it limits already");
}

#[test]
fn weights_are_distributed_whole_or_by_shards() {
    for case in cases("weight_distribution_cases") {
        let expect = &case["expect"];
        let bytes = |key: &str| Bytes::new(whole(&expect[key]));
        let number = |key: &str| u32::try_from(whole(&case["scenario"][key])).unwrap();
        let payload = Payload {
            common: bytes("nonexpert_weight_bytes"),
            experts: bytes("expert_weight_bytes"),
            expert_count: 128,
            ranks: number("expert_parallel"),
        };
        let only_experts = Payload { common: Bytes::ZERO, ..payload };
        let sent = |payload, content| {
            let transfer = Transfer {
                payload,
                content,
                fan_out: FanOut::Unicast,
                send: Rate::per_second(1).unwrap(),
                receive: None,
                setup: Duration::ZERO,
            };
            transfer.sent(number("replicas")).unwrap()
        };
        assert_eq!(payload.total().unwrap(), bytes("total_weight_bytes"));
        assert_eq!(payload.largest_rank().unwrap(), bytes("largest_rank_bytes"));
        assert_eq!(sent(payload, SyncContent::Whole), bytes("full_unicast_bytes"));
        assert_eq!(sent(payload, SyncContent::OwnShards), bytes("selective_unicast_bytes"));
        let experts = sent(only_experts, SyncContent::OwnShards);
        assert_eq!(experts, bytes("experts_only_selective_bytes"));
        assert_eq!(sent(only_experts, SyncContent::Whole), bytes("experts_only_full_bytes"));
    }
}

/// A sample of so many tokens, whose record goes over a link of a byte a nanosecond.
#[test]
fn routing_records_take_their_bytes_to_the_trainer() {
    for case in cases("routing_record_cases") {
        let (given, expect) = (&case["scenario"], &case["expect"]);
        let number = |key: &str| u32::try_from(whole(&given[key])).unwrap();
        let record = RoutingRecord {
            layers: number("moe_layers"),
            top_k: number("top_k"),
            bytes_per_id: number("bytes_per_id"),
            identity: Bytes::new(24),
            header: Bytes::new(whole(&given["header_bytes"])),
            rate: Rate::new(1, 1).unwrap(),
        };
        let tokens = whole(&given["tokens"]);
        assert_eq!(record.ids(tokens).unwrap(), Bytes::new(whole(&expect["id_bytes"])));
        let mut inputs = plain(Mode::Sync, 1, Shape::Fixed(tokens - 100));
        inputs.rollout.prompt_tokens = 100;
        inputs.update.record = Some(record);
        let outcome = simulate(&inputs).unwrap();
        let payload = whole(&expect["declared_payload_bytes"]);
        let rounds = u64::from(inputs.rounds);
        assert_eq!(outcome.counts.record_bytes, u128::from(rounds * payload), "{case}");
        assert_eq!(outcome.split.handoff, nanos(rounds * payload), "{case}");
    }
}

#[test]
fn records_of_mini_steps_share_the_link() {
    // Two samples that end together, a mini-step each: 2 + 24 + 1 + 128 bytes one after the other.
    let mut inputs = plain(Mode::Stream, 2, Shape::Fixed(1));
    inputs.update.mini_steps = 2;
    inputs.update.handoff = seconds(1);
    let header = Bytes::new(128);
    let rate = Rate::per_second(155).unwrap();
    let identity = Bytes::new(24);
    inputs.update.record =
        Some(RoutingRecord { layers: 1, top_k: 2, bytes_per_id: 1, identity, header, rate });
    assert_eq!(simulate(&inputs).unwrap().round, seconds(1 + 1 + 1 + 1));
}

#[test]
fn small_timelines_come_out() {
    let cases = cases("timeline_cases");
    assert_eq!(cases.len(), 14);
    for case in cases {
        let (given, expect) = (&case["scenario"], &case["expect"]);
        match case["kind"].as_str().unwrap() {
            "stream_half_batch" => stream_half_batch(given, expect),
            "stream_verification" => stream_verification(given, expect),
            "race_first_of_two" => race(given, expect),
            "weight_fanout_lower_bound" => fan_out(given, expect),
            "resume_partial" => resume(given, expect),
            "two_jobs_two_pools" => two_jobs(given, expect),
            // In `groups`.
            "group_truncation" => {}
            other => panic!("`{other}` is not simulated"),
        }
    }
}

/// Two jobs take turns on engines and trainer: as soon as both have started, neither could be faster.
fn two_jobs(given: &Value, expect: &Value) {
    let job = |key: &str| {
        let times = &given[key];
        let mut inputs = cycle(Mode::Sync, whole(&times[0]), whole(&times[1]), 0);
        (inputs.warmup, inputs.rounds) = (3, 5);
        inputs
    };
    let mut inputs = job("job_a_rollout_train_s");
    inputs.sharing = Some(Sharing {
        handoff: seconds(whole(&given["handoff_per_phase_s"])),
        jobs: vec![SharedJob { name: "b".to_owned(), inputs: job("job_b_rollout_train_s") }],
    });
    let outcome = simulate(&inputs).unwrap();
    let period = seconds(whole(&expect["period_lower_bound_s"]));
    let (all, rounds) = (&outcome.rounds, &outcome.jobs[0].outcome.rounds);
    for round in all.iter().chain(rounds) {
        assert_eq!(nanos(round.end.since(round.start).as_nanos()), period, "{given}");
    }
}

/// Half of the samples are ready early and train on half of the devices, which takes as long as all on all;
/// the second half trains on all of them.
fn stream_half_batch(given: &Value, expect: &Value) {
    let time = |key: &str| whole(&given[key]);
    let lengths = Shape::List(vec![time("half_ready_s"), time("rollout_s")]);
    let mut inputs = plain(Mode::Stream, 2, lengths);
    let train = seconds(time("train_all_cards_s"));
    inputs.update.mini_steps = 2;
    inputs.update.handoff = seconds(time("migrate_s"));
    inputs.update.time = UpdateTime::Each(vec![train, nanos(train.as_nanos() / 2)]);
    inputs.update.finish = seconds(time("reduce_update_s"));
    assert_eq!(simulate(&inputs).unwrap().round, seconds(whole(&expect["streamed_s"])), "{given}");

    inputs.mode = Mode::Sync;
    inputs.scoring_start = ScoringStart::WholeBatch;
    inputs.update.mini_steps = 1;
    inputs.update.handoff = Duration::ZERO;
    inputs.update.time = UpdateTime::Fixed(train);
    assert_eq!(simulate(&inputs).unwrap().round, seconds(whole(&expect["serial_s"])), "{given}");
}

fn stream_verification(given: &Value, expect: &Value) {
    // A response has at least one token, so everything happens a second later.
    let arrivals: Vec<u64> = given["arrivals_s"].as_array().unwrap().iter().map(|at| whole(at) + 1).collect();
    let workers = u32::try_from(whole(&given["workers"])).unwrap();
    let mut inputs = plain(Mode::Sync, arrivals.len() as u32, Shape::List(arrivals.clone()));
    inputs.scoring = vec![pool("verify", workers, seconds(whole(&given["verify_s"])))];
    for (start, key) in
        [(ScoringStart::AsFinished, "streamed_end_s"), (ScoringStart::WholeBatch, "batch_end_s")]
    {
        inputs.scoring_start = start;
        let outcome = simulate(&inputs).unwrap();
        assert_eq!(outcome.round, seconds(whole(&expect[key]) + 1), "{given} {key}");
        let work = outcome.stages[1].busy.as_nanos() * outcome.stages[1].servers;
        let expected = u64::from(inputs.rounds) * whole(&expect["worker_seconds"]) * SECOND;
        assert!(expected - work < outcome.stages[1].servers, "the mean of the workers is rounded down");
    }
}

/// All four pairs of a short and a long run, each as likely, once each.
fn race(given: &Value, expect: &Value) {
    let (short, long) = (whole(&given["short_s"]), whole(&given["long_s"]));
    let pairs = vec![short, short, short, long, long, short, long, long];
    let mut inputs = plain(Mode::Sync, 1, Shape::List(pairs));
    inputs.rollout.copies = 2;
    inputs.rollout.slots = 2;
    inputs.warmup = 0;
    inputs.rounds = 4;
    let outcome = simulate(&inputs).unwrap();
    let mean = |key: &str| {
        let (upper, lower) = rational(&expect[key]);
        upper as f64 / lower as f64
    };
    same(outcome.round.as_secs_f64(), mean("first_of_two_expected_s"), "first of two");
    same(outcome.tail.launched_mean_tokens, mean("single_expected_s"), "alone");
    let slots = outcome.slots.busy.as_secs_f64() * 2.0 / 4.0;
    same(slots, mean("slot_seconds"), "slot seconds");
    let kept = outcome.rounds.iter().filter(|round| round.tokens == long).count();
    same(kept as f64 / 4.0, mean("long_kept_probability"), "long ones kept");
}

fn fan_out(given: &Value, expect: &Value) {
    let gigabit = |key: &str| Rate::new(whole(&given[key]), 8).unwrap();
    let transfer = Transfer {
        payload: Payload {
            common: Bytes::new(whole(&given["payload_gb"]) * 1_000_000_000),
            experts: Bytes::ZERO,
            expert_count: 1,
            ranks: 1,
        },
        content: SyncContent::Whole,
        fan_out: FanOut::Unicast,
        send: gigabit("sender_gbps"),
        receive: Some(gigabit("receiver_gbps")),
        setup: Duration::ZERO,
    };
    let receivers = u32::try_from(whole(&given["receivers"])).unwrap();
    let (upper, lower) = rational(&expect["all_ready_lower_s"]);
    let time = i128::from(transfer.time(receivers).unwrap().as_nanos());
    assert_eq!(time * lower, upper * i128::from(SECOND));
}

/// A response cut after its saved tokens either goes on (after preparing) or starts again.
fn resume(given: &Value, expect: &Value) {
    let (saved, per_second) = (whole(&given["saved_tokens"]), whole(&given["decode_tokens_per_s"]));
    let token = SECOND / per_second;
    let run = |responses| {
        let mut inputs = plain(Mode::Sync, 1, Shape::Fixed(saved + 800));
        inputs.rollout.engines = 2;
        inputs.rollout.slots = 1;
        inputs.rollout.token_time = TokenTime::Linear { base: nanos(token), per_response: Duration::ZERO };
        inputs.rollout.resume =
            seconds(whole(&given["prefix_prepare_s"]) + whole(&given["prefix_handoff_s"]));
        (inputs.warmup, inputs.rounds) = (0, 1);
        inputs.faults.engine_failures = vec![EngineFailure {
            engine: 0,
            at: pipestep_engine::Time::from_nanos(saved * token),
            down: seconds(1000),
            responses,
        }];
        simulate(&inputs).unwrap().round.as_nanos()
    };
    let (kept, lost) = (run(Survival::Kept), run(Survival::Lost));
    assert_eq!(lost - kept, whole(&expect["net_saved_s"]) * SECOND);
    assert_eq!(lost - (saved + 800) * token, whole(&expect["redo_s"]) * SECOND);
}
