//! Weight synchronisation: who waits, for how long, and what becomes of what runs.

use crate::common::*;
use pipestep_engine::{Bytes, Duration, Rate, Time};
use pipestep_rl::*;

fn transfer(content: SyncContent, fan_out: FanOut) -> Transfer {
    Transfer {
        payload: Payload { common: Bytes::new(100), experts: Bytes::new(800), expert_count: 8, ranks: 4 },
        content,
        fan_out,
        send: Rate::new(100, SECOND).unwrap(),
        receive: Rate::new(50, SECOND),
        setup: seconds(1),
    }
}

#[test]
fn the_slower_side_decides() {
    let time = |content, fan_out| transfer(content, fan_out).time(2).unwrap();
    assert_eq!(time(SyncContent::Whole, FanOut::Unicast), seconds(1 + 2 * 4 * 9));
    assert_eq!(time(SyncContent::OwnShards, FanOut::Unicast), seconds(1 + 2 * 12));
    assert_eq!(time(SyncContent::Whole, FanOut::Broadcast), seconds(1 + 18), "a receiver takes 18 s");
    assert_eq!(time(SyncContent::OwnShards, FanOut::Broadcast), seconds(1 + 9), "sent once");
}

#[test]
fn a_staggered_sync_stops_one_engine_at_a_time() {
    let mut inputs = cycle(asynchronous(2, InFlight::Continue(KvCache::Kept)), 10, 10, 1);
    inputs.sync.style = SyncStyle::Staggered;
    inputs.rollout.engines = 4;
    inputs.rollout.slots = 2;
    (inputs.warmup, inputs.rounds) = (4, 20);
    let outcome = simulate(&inputs).unwrap();
    // Each engine loses one second in ten: responses take eleven, and the trainer never waits for weights.
    assert_eq!(outcome.split.sync, Duration::ZERO);
    assert!(outcome.round > seconds(10) && outcome.round <= seconds(12), "{:?}", outcome.round);
    let (_, spans) = simulate_recorded(&inputs).unwrap();
    let mut loads: Vec<_> =
        spans.iter().filter(|span| matches!(span.kind, SpanKind::WeightSync { .. })).collect();
    assert!(loads.len() > 4 * 20);
    loads.sort_by_key(|span| span.interval.start);
    assert!(loads.windows(2).all(|pair| pair[0].interval.end <= pair[1].interval.start), "one at a time");
}

#[test]
fn a_staggered_sync_pauses_each_engine_in_its_turn() {
    // Responses of four seconds from 4 on, an update from 4 to 5; the first engine stands still from 5 to 7, the
    // second from 7 to 9, so that both end at 10. The trainer waits for responses alone.
    let mut inputs = plain(asynchronous(1, InFlight::Continue(KvCache::Kept)), 2, Shape::Fixed(4));
    (inputs.rollout.engines, inputs.rollout.slots) = (2, 1);
    inputs.update.time = UpdateTime::Fixed(seconds(1));
    inputs.sync.time = SyncTime::Fixed(seconds(2));
    inputs.sync.style = SyncStyle::Staggered;
    (inputs.warmup, inputs.rounds) = (0, 3);
    let outcome = simulate(&inputs).unwrap();
    let ends: Vec<u64> = outcome.rounds.iter().map(|round| round.end.as_nanos() / SECOND).collect();
    assert_eq!(ends, [5, 11, 17]);
    assert_eq!((outcome.split.rollout, outcome.split.update), (seconds(4 + 5 + 5), seconds(3)));
    assert_eq!(outcome.staleness, [2, 4]);
}

#[test]
fn what_takes_no_time_is_over_before_anything_is_launched() {
    for style in [SyncStyle::Blocking, SyncStyle::Staggered] {
        let mut inputs = plain(asynchronous(4, InFlight::Continue(KvCache::Kept)), 1, Shape::Fixed(2));
        (inputs.rollout.engines, inputs.rollout.slots) = (1, 1);
        inputs.update.time = UpdateTime::Fixed(seconds(2));
        inputs.sync.style = style;
        (inputs.warmup, inputs.rounds) = (0, 4);
        let outcome = simulate(&inputs).unwrap();
        // From 4 on a response is launched when an update and its weights end: at 2, 4 and 6 under the weights of 0,
        // 1 and 2 updates, each trained on two seconds later as one update old.
        assert_eq!(outcome.elapsed, seconds(10));
        assert_eq!(outcome.staleness, [1, 3], "{style:?}");
    }
}

#[test]
fn on_policy_engines_wait_for_their_turn() {
    let mut inputs = cycle(Mode::Sync, 10, 5, 2);
    inputs.sync.style = SyncStyle::Staggered;
    inputs.rollout.engines = 4;
    inputs.rollout.slots = 2;
    // The last engine starts after four times two seconds; the first round needs no weights.
    assert_eq!(simulate(&inputs).unwrap().round, seconds(10 + 5 + 8));
    assert_eq!(simulate(&inputs).unwrap().staleness, [32]);
}

#[test]
fn the_pass_leaves_out_an_engine_that_is_down() {
    let mut inputs = cycle(Mode::Sync, 10, 5, 2);
    inputs.sync.style = SyncStyle::Staggered;
    inputs.rollout.engines = 4;
    inputs.rollout.slots = 2;
    (inputs.warmup, inputs.rounds) = (0, 2);
    // Down from the end of the first rollout until the second has begun everywhere else.
    inputs.faults.engine_failures = vec![EngineFailure {
        engine: 1,
        at: Time::from_nanos(11 * SECOND),
        down: seconds(11),
        responses: Survival::Lost,
    }];
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let loaded: Vec<_> = spans
        .iter()
        .filter(|span| matches!(span.kind, SpanKind::WeightSync { version: 1 }))
        .map(|span| (span.row, span.interval.end.as_nanos() / SECOND))
        .collect();
    assert_eq!(loaded, [(Row::Engine(0), 17), (Row::Engine(2), 19), (Row::Engine(3), 21)]);
    // Its two responses start when it is back, at 22, with the new weights.
    assert_eq!(outcome.elapsed, seconds(22 + 10 + 5));
    assert_eq!(outcome.staleness, [16]);
}

#[test]
fn what_runs_drains_continues_or_starts_again() {
    let run = |in_flight| {
        let mut inputs = plain(asynchronous(1, in_flight), 1, Shape::List(vec![4, 10]));
        inputs.rollout.slots = 2;
        inputs.update.time = UpdateTime::Fixed(seconds(1));
        inputs.sync.time = SyncTime::Fixed(seconds(2));
        inputs.rollout.prefill_per_token = nanos(SECOND / 10);
        (inputs.warmup, inputs.rounds) = (0, 2);
        let outcome = simulate(&inputs).unwrap();
        (outcome.elapsed, outcome.counts.wasted_tokens)
    };
    // The first response ends at 4, its update at 5; then weights come for two seconds.
    // Drained until 10, weights until 12; update until 13, a third response until 16, weights until 18.
    let drained = run(InFlight::Drain);
    assert_eq!(drained, (seconds(18), 0));
    // Cut at 5 with 5 of 10 tokens, on at 7 beside a third of 4 tokens, which ends at 11 and is next.
    let continued = run(InFlight::Continue(KvCache::Kept));
    assert_eq!(continued, (seconds(11 + 1 + 2), 0));
    // The five tokens are computed again in half a second, but the third response is first all the same.
    assert_eq!(run(InFlight::Continue(KvCache::Recomputed)), continued);
    let aborted = run(InFlight::Abort);
    assert_eq!(aborted.1, 5 + 5, "five at the first sync, five at the second");
}
