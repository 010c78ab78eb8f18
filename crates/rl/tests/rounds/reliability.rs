//! `rl_rounds.json`: the textbook's cycles and rates, interruptions, memory and fan-out.

use crate::common::*;
use pipestep_engine::{Bytes, Duration, Rate};
use pipestep_rl::*;
use serde_json::Value;

fn rounds() -> Value {
    oracle(include_str!("../data/rl_rounds.json"))
}

#[test]
fn asynchrony_pays_above_eleven_of_fifteen_kept() {
    let textbook = rounds()["textbook"]["sync_async"].clone();
    let (given, expect) = (&textbook["inputs"], &textbook["expected"]);
    let time = |key: &str| whole(&given[key]);
    let one_after_the_other = cycle(Mode::Sync, time("generate_s"), time("learn_s"), time("sync_s"));
    let before = simulate(&one_after_the_other).unwrap();
    assert_eq!(before.round, seconds(whole(&expect["sync_round_s"])));
    let gain = |kept: u32| {
        let mut inputs = cycle(Mode::OneStepOff, time("generate_s"), time("learn_s"), time("sync_s"));
        (inputs.batch, inputs.launch) = (kept, 10);
        if kept < 10 {
            inputs.keep = Keep::Evenly(Fraction::new(kept, 10).unwrap());
        }
        let after = simulate(&inputs).unwrap();
        assert_eq!(after.round, seconds(whole(&expect["async_round_s"])));
        (after.useful_samples_per_s / 10.0) / (before.useful_samples_per_s / 8.0) - 1.0
    };
    let printed = |found: f64, key: &str| {
        let expected = expect[key].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{key}: {found}, expected {expected}");
    };
    printed(gain(10) + 1.0, "ideal_speedup");
    printed(gain(8), "gain_at_keep_0_8");
    printed(gain(7), "gain_at_keep_0_7");
}

#[test]
fn interrupted_responses_are_lost_by_their_length() {
    let rows = rounds()["textbook"]["interrupted_trajectories"]["rows"].clone();
    for row in rows.as_array().unwrap() {
        let mean = 1.0 / row["lam_per_s"].as_f64().unwrap();
        let mut inputs = plain(Mode::Sync, 2_000, Shape::Fixed(row["t_s"].as_u64().unwrap()));
        (inputs.warmup, inputs.rounds) = (0, 10);
        inputs.faults.mean_time_to_interruption = Some(nanos((mean * 1e9).round() as u64));
        let counts = simulate(&inputs).unwrap().counts;
        assert_eq!(counts.launched, counts.trained + counts.interrupted);
        let (found, share) = (counts.trained as f64 / counts.launched as f64, row["share"].as_f64().unwrap());
        let error = (share * (1.0 - share) / counts.launched as f64).sqrt();
        assert!((found - share).abs() < 4.0 * error, "{row}: {found}");
    }
}

#[test]
fn interruptions_leave_the_short_ones() {
    let mut inputs = plain(Mode::Sync, 1_000, Shape::List(vec![60, 1_200]));
    (inputs.warmup, inputs.rounds) = (0, 10);
    inputs.launch = 4_000;
    inputs.rollout.slots = 4_000;
    inputs.faults.mean_time_to_interruption = Some(seconds(600));
    let tail = simulate(&inputs).unwrap().tail;
    same(tail.launched_mean_tokens, 630.0, "launched");
    assert!(tail.mean_tokens < 100.0, "redundant launches take the first: {}", tail.mean_tokens);
}

#[test]
fn expert_weights_go_out_whole_or_sharded() {
    let textbook = rounds()["textbook"]["expert_weight_fanout_gib"].clone();
    let gib = |value: &Value| Bytes::new(whole(value) << 30);
    let transfer = |content| Transfer {
        payload: Payload {
            common: Bytes::ZERO,
            experts: gib(&textbook["inputs"]["expert_weights"]),
            expert_count: 128,
            ranks: u32::try_from(whole(&textbook["inputs"]["ranks"])).unwrap(),
        },
        content,
        fan_out: FanOut::Unicast,
        send: Rate::per_second(1 << 30).unwrap(),
        receive: None,
        setup: Duration::ZERO,
    };
    let expected = &textbook["expected"];
    let (full, shard) = (transfer(SyncContent::Whole), transfer(SyncContent::OwnShards));
    assert_eq!(full.sent(1).unwrap(), gib(&expected["full_to_each"]));
    assert_eq!(shard.sent(1).unwrap(), gib(&expected["shard_to_each"]));
    assert_eq!(full.time(1).unwrap(), seconds(6768), "at one GiB a second");
}

/// The rule behind verl's quota between two synchronisations, stale samples left over or not.
#[test]
fn the_staleness_bound_is_the_published_quota() {
    let quota = rounds()["verl_fully_async"]["quota"]["examples"].clone();
    for row in quota.as_array().unwrap() {
        let number = |key: &str| u32::try_from(row[key].as_u64().unwrap()).unwrap();
        let batch = number("require_batches") * number("mini_batch");
        let tenths = (row["staleness"].as_f64().unwrap() * 10.0).round() as u32;
        let mode = Mode::Async(AsyncRule {
            staleness: Fraction::new(tenths, 10).unwrap(),
            sync_every: number("sync_every"),
            in_flight: InFlight::Drain,
        });
        let mut inputs = plain(mode, batch, Shape::Fixed(1));
        let left = number("stale_left");
        let before = if left == 0 {
            inputs.rollout.slots = 10_000;
            inputs.update.time = UpdateTime::Fixed(seconds(1_000));
            0
        } else {
            leave_over(&mut inputs, batch * number("sync_every"), left)
        };
        (inputs.warmup, inputs.rounds) = (0, 1 + before / batch);
        // Everything the bound allows is generated, long before the next update ends.
        let counts = simulate(&inputs).unwrap().counts;
        let launched = counts.launched - u64::from(before + left);
        assert_eq!(launched as f64, row["quota"].as_f64().unwrap(), "{row}");
    }
}

/// Has so many samples under way when the first `window` have been trained on, which takes no time; then scoring
/// stops, while launches go on until the bound. Returns the samples trained on by then.
fn leave_over(inputs: &mut RlInputs, window: u32, under_way: u32) -> u32 {
    inputs.rollout.slots = under_way;
    // Slots end their responses in two shifts, so that the window ends between them.
    let early = window % under_way;
    let shift = |slot: u32| if slot < early { 1 } else { 2 };
    let first: Vec<u64> = (0..under_way).map(shift).collect();
    inputs.rollout.lengths.shape = Shape::List([first, vec![2; 10_000]].concat());
    inputs.scoring = vec![pool("verify", window, Duration::ZERO)];
    let ends = u64::from(window / under_way * 2 + 1);
    inputs.faults.scorer_stops = vec![ScorerStop {
        pool: 0,
        at: pipestep_engine::Time::from_nanos(ends * SECOND + 1),
        down: Some(seconds(1_000)),
    }];
    window
}

/// What the columns of a published one-step-off run imply for a step, without what they leave out.
#[test]
fn the_columns_of_one_step_off_imply_its_step() {
    let published = rounds()["verl_one_step_off"].clone();
    let rows = published["rows"].as_array().unwrap();
    for derived in published["derived"].as_array().unwrap() {
        let row = rows
            .iter()
            .find(|row| row["mode"] == "one step off" && row["engine"] == derived["engine"])
            .unwrap();
        let time = |key: &str| whole(&row[key]);
        let mut inputs = cycle(Mode::OneStepOff, time("generate_sequences_s"), time("update_s"), 0);
        inputs.update.prepare = seconds(time("old_log_prob_s"));
        let outcome = simulate(&inputs).unwrap();
        assert_eq!(outcome.round, seconds(whole(&derived["model_step_s"])), "{row}");
        assert_eq!(
            time("step_s") - outcome.round.as_nanos() / SECOND,
            whole(&derived["residual_over_model_s"])
        );
    }
}
