//! Inputs that are refused, with the reason.

use crate::common::*;
use pipestep_engine::{Bytes, Duration, Time};
use pipestep_rl::*;

fn refused(change: impl FnOnce(&mut RlInputs), part: &str) {
    let mut inputs = cycle(Mode::Sync, 40, 16, 4);
    inputs.scoring = vec![pool("verify", 2, seconds(1))];
    change(&mut inputs);
    let error = simulate(&inputs).expect_err(part).to_string();
    assert!(error.contains(part), "`{error}` does not say `{part}`");
}

#[test]
fn nothing_is_ever_generated_scored_or_trained_on() {
    refused(|inputs| inputs.rollout.slots = 0, "`slots` must be at least 1");
    refused(|inputs| inputs.rollout.engines = 0, "`engines`");
    refused(|inputs| inputs.rollout.copies = 0, "`copies`");
    refused(|inputs| inputs.batch = 0, "`batch`");
    refused(|inputs| inputs.rounds = 0, "`rounds`");
    refused(|inputs| inputs.scoring[0].workers = 0, "`verify`");
    refused(|inputs| inputs.update.mini_steps = 0, "`mini_steps`");
    refused(|inputs| inputs.rollout.slots = u32::MAX, "at most");
    refused(|inputs| inputs.keep = Keep::Evenly(Fraction::ZERO), "kept share of 0");
    refused(|inputs| inputs.keep = Keep::Randomly(Fraction::new(3, 2).unwrap()), "at most 1");
}

#[test]
fn bounds_that_can_never_be_met() {
    refused(
        |inputs| {
            inputs.mode = Mode::OneStepOff;
            inputs.discard_older_than = Some(0);
        },
        "a staleness bound of 0 can never be met in `one-step-off`",
    );
    refused(
        |inputs| {
            inputs.mode = Mode::Async(AsyncRule {
                staleness: Fraction::ONE,
                sync_every: 4,
                in_flight: InFlight::Drain,
            });
            inputs.discard_older_than = Some(2);
        },
        "allow at least 3",
    );
    refused(|inputs| inputs.launch = 7, "its batch is never full");
}

#[test]
fn samples_that_are_always_thrown_away() {
    refused(
        |inputs| {
            inputs.faults.mean_time_to_interruption = Some(nanos(1));
        },
        "were interrupted",
    );
}

#[test]
fn rules_that_exclude_each_other() {
    refused(
        |inputs| {
            inputs.mode = asynchronous(1, InFlight::Drain);
            inputs.launch = 12;
        },
        "over-sampling (12 for 8) does not apply",
    );
    refused(|inputs| inputs.mode = Mode::Stream, "contradicts it");
    refused(|inputs| inputs.update.mini_steps = 9, "9 mini-steps but only 8 samples");
    refused(
        |inputs| {
            inputs.update.mini_steps = 3;
            inputs.update.time = UpdateTime::Each(vec![seconds(1)]);
        },
        "3 mini-steps but 1 times",
    );
    let colocated =
        Placement::Colocated(Switching { to_training: seconds(1), to_rollout: seconds(1), memory: None });
    refused(
        |inputs| {
            inputs.mode = Mode::OneStepOff;
            inputs.placement = colocated.clone();
        },
        "devices that take turns cannot",
    );
    refused(
        |inputs| {
            inputs.sync.style = SyncStyle::Staggered;
            inputs.placement = colocated.clone();
        },
        "all switch at once",
    );
}

#[test]
fn parameters_without_meaning() {
    refused(|inputs| inputs.rollout.speed = Fraction::ZERO, "speed of rollout");
    refused(|inputs| inputs.scoring[0].speed = Fraction::ZERO, "speed of verify");
    refused(|inputs| inputs.rollout.lengths.shape = Shape::List(vec![]), "response lengths");
    refused(
        |inputs| {
            inputs.scoring[0].time = ScoringTime::Sampled(Distribution {
                shape: Shape::Exponential { mean: f64::INFINITY },
                cap: None,
            });
        },
        "`verify`",
    );
    refused(
        |inputs| {
            inputs.rollout.token_time =
                TokenTime::Linear { base: Duration::ZERO, per_response: Duration::ZERO };
        },
        "would take no time",
    );
    refused(|inputs| inputs.rollout.token_time = TokenTime::Table(vec![]), "is empty");
    let falling = vec![(4, seconds(1)), (2, seconds(2))];
    refused(|inputs| inputs.rollout.token_time = TokenTime::Table(falling), "rising");
    let step = seconds(1);
    refused(|inputs| inputs.update.time = UpdateTime::Scaled { step, tokens: 0 }, "0 tokens");
    refused(
        |inputs| {
            inputs.prices = Some(Prices { engine_hour: 1.0, trainer_hour: 1.0, worker_hour: vec![] });
        },
        "1 scoring pools but 0 prices",
    );
    refused(
        |inputs| {
            inputs.faults.engine_failures = vec![EngineFailure {
                engine: 1,
                at: Time::ZERO,
                down: seconds(1),
                responses: Survival::Lost,
            }];
        },
        "a fault names engine 1, there are 1",
    );
}

#[test]
fn sums_past_the_end_of_time() {
    refused(|inputs| inputs.rollout.lengths = Distribution::fixed(u64::MAX / 2), "overflows");
    refused(|inputs| inputs.sync.time = SyncTime::Fixed(nanos(u64::MAX)), "overflows");
}

#[test]
fn memory_that_does_not_fit_is_reported_not_refused() {
    let mut inputs = cycle(Mode::Sync, 40, 16, 4);
    inputs.placement = Placement::Colocated(Switching {
        to_training: seconds(1),
        to_rollout: seconds(1),
        memory: Some(ColocatedMemory {
            items: vec![MemoryItem {
                name: "state".to_owned(),
                bytes: Bytes::new(11),
                held: HeldIn::Training,
                read_from: None,
                rate: None,
            }],
            capacity: Bytes::new(10),
            order: SwitchOrder::LowestPeak,
        }),
    });
    assert!(!simulate(&inputs).unwrap().memory.unwrap().fits);
}
