//! What each mode does to a small round, instant by instant.

use crate::common::*;
use pipestep_engine::Duration;
use pipestep_rl::*;

/// The bars of one kind, as (row, start, end) in seconds.
fn responses(spans: &[Span]) -> Vec<(u64, StintEnd, u64, u64)> {
    let mut found: Vec<_> = spans
        .iter()
        .filter_map(|span| match span.kind {
            SpanKind::Response { sample, end } => Some((
                sample,
                end,
                span.interval.start.as_nanos() / SECOND,
                span.interval.end.as_nanos() / SECOND,
            )),
            _ => None,
        })
        .collect();
    found.sort_unstable_by_key(|&(sample, _, start, _)| (start, sample));
    found
}

#[test]
fn a_slot_is_filled_again_when_its_response_ends() {
    use StintEnd::Finished;
    let mut inputs = plain(Mode::Sync, 4, Shape::List(vec![3, 5, 1, 2]));
    inputs.rollout.slots = 2;
    (inputs.warmup, inputs.rounds) = (0, 1);
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let expected = [(0, Finished, 0, 3), (1, Finished, 0, 5), (2, Finished, 3, 4), (3, Finished, 4, 6)];
    assert_eq!(responses(&spans), expected);
    assert_eq!(outcome.round, seconds(6));
    assert_eq!(outcome.slots.busy, nanos(11 * SECOND / 2));
}

#[test]
fn the_time_per_token_follows_the_number_that_runs() {
    let mut inputs = plain(Mode::Sync, 2, Shape::List(vec![2, 5]));
    inputs.rollout.token_time = TokenTime::Table(vec![(1, seconds(1)), (2, seconds(3))]);
    // Two iterations of three seconds together, then three of one second alone.
    assert_eq!(simulate(&inputs).unwrap().round, seconds(9));
    inputs.rollout.speed = Fraction::new(2, 1).unwrap();
    assert_eq!(simulate(&inputs).unwrap().round, nanos(9 * SECOND / 2));
}

#[test]
fn a_prefill_comes_first_and_holds_the_slot_only() {
    let mut inputs = plain(Mode::Sync, 2, Shape::Fixed(4));
    inputs.rollout.prompt_tokens = 10;
    inputs.rollout.prefill_per_token = nanos(SECOND / 10);
    inputs.rollout.slots = 1;
    assert_eq!(simulate(&inputs).unwrap().round, seconds(10));
}

#[test]
fn oversampling_aborts_the_rest_and_wastes_its_tokens() {
    let mut inputs = plain(Mode::Sync, 3, Shape::List(vec![9, 2, 4, 7, 3]));
    inputs.launch = 5;
    (inputs.warmup, inputs.rounds) = (0, 1);
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(4));
    let counts = outcome.counts;
    assert_eq!((counts.launched, counts.trained, counts.aborted), (5, 3, 2));
    assert_eq!((counts.trained_tokens, counts.wasted_tokens), (9, 8));
    assert_eq!(outcome.tail.mean_tokens, 3.0);
    assert_eq!(outcome.tail.launched_mean_tokens, 5.0);
    let ends: Vec<_> = responses(&spans).iter().map(|&(_, end, ..)| end).collect();
    assert_eq!(ends.iter().filter(|&&end| end == StintEnd::Aborted).count(), 2);
}

#[test]
fn ends_beyond_a_full_batch_are_surplus_and_the_earliest_launched_are_taken() {
    let mut inputs = plain(Mode::Sync, 2, Shape::Fixed(5));
    inputs.launch = 5;
    (inputs.warmup, inputs.rounds) = (0, 2);
    let counts = simulate(&inputs).unwrap().counts;
    assert_eq!((counts.launched, counts.trained, counts.surplus, counts.aborted), (10, 4, 6, 0));
}

#[test]
fn partial_continues_what_was_cut() {
    use StintEnd::Finished;
    // Round 0: lengths 2, 4, 9; two are enough at 4. Update and sync until 7. Then the third goes on with 5
    // left, beside two new ones of 2 and 4: the round closes at 7 + 4 with both of them.
    let mut inputs = plain(Mode::Partial(KvCache::Kept), 2, Shape::List(vec![2, 4, 9, 2, 4]));
    inputs.launch = 3;
    inputs.update.time = UpdateTime::Fixed(seconds(2));
    inputs.sync.time = SyncTime::Fixed(seconds(1));
    (inputs.warmup, inputs.rounds) = (0, 3);
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let long = responses(&spans).into_iter().find(|&(sample, ..)| sample == 2).unwrap();
    assert_eq!(long, (2, Finished, 0, 15), "cut at 4, on at 7, cut at 11, on at 14 with one left");
    assert_eq!(outcome.staleness, [5, 0, 1], "three rounds of two, one of them two updates old");
    assert_eq!(outcome.counts.wasted_tokens, 0);

    // Recomputed, it takes half a second a token: 4 tokens at 7, so that it decodes from 9 to 11; 6 at 14, from 17
    // to 18; 7 at 21, until 24.5, so that it joins the iteration at 25 and ends at 27 beside one of 2 tokens.
    inputs.mode = Mode::Partial(KvCache::Recomputed);
    inputs.rollout.prefill_per_token = nanos(SECOND / 2);
    inputs.rounds = 4;
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let long = responses(&spans).into_iter().find(|&(sample, ..)| sample == 2).unwrap();
    assert_eq!(long, (2, Finished, 0, 27));
    assert_eq!(outcome.elapsed, seconds(27 + 2 + 1));
    assert_eq!(outcome.staleness, [7, 0, 0, 1]);
}

#[test]
fn partial_discards_what_has_grown_too_old() {
    // The third response is there from 0 to 4, when it would be two updates old in the next one; the sixth, from
    // 4, ends at 11 in the second round after its own; the ninth is one update old at 13.
    let mut inputs = plain(Mode::Partial(KvCache::Kept), 2, Shape::List(vec![2, 2, 7]));
    inputs.launch = 3;
    inputs.discard_older_than = Some(1);
    (inputs.warmup, inputs.rounds) = (0, 6);
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let ends: Vec<u64> = outcome.rounds.iter().map(|round| round.end.as_nanos() / SECOND).collect();
    assert_eq!(ends, [2, 4, 6, 11, 13, 15]);
    let counts = outcome.counts;
    assert_eq!((counts.launched, counts.trained, counts.stale, counts.wasted_tokens), (14, 12, 1, 4));
    assert_eq!(outcome.staleness, [10, 2]);
    assert!(responses(&spans).contains(&(2, StintEnd::Aborted, 0, 4)));
}

#[test]
fn stream_starts_mini_steps_on_what_is_finished() {
    let mut inputs = plain(Mode::Stream, 4, Shape::List(vec![1, 2, 3, 10]));
    inputs.update.mini_steps = 2;
    inputs.update.time = UpdateTime::Fixed(seconds(5));
    // The first two are there at 2: until 7. The last is there at 10: until 15.
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(15));
    assert_eq!(outcome.split.update, seconds(4 * 10));
    assert_eq!(outcome.split.rollout, seconds(4 * 5));
}

#[test]
fn bounded_staleness_of_zero_is_a_synchronous_round() {
    for in_flight in [InFlight::Drain, InFlight::Continue(KvCache::Kept), InFlight::Abort] {
        let mut inputs = cycle(asynchronous(0, in_flight), 40, 16, 4);
        inputs.rollout.slots = 8;
        let outcome = simulate(&inputs).unwrap();
        assert_eq!(outcome.round, seconds(60), "{in_flight:?}");
        assert_eq!(outcome.staleness, [32]);
        inputs.mode = Mode::Sync;
        assert_eq!(simulate(&inputs).unwrap().rounds, outcome_without_async(&outcome.rounds, 40));
    }
}

/// The rounds of an async run as those of a synchronous one with this generation time.
fn outcome_without_async(rounds: &[Round], generation: u64) -> Vec<Round> {
    let with = |round: &Round| Round { generation: Some(seconds(generation)), ..*round };
    rounds.iter().map(with).collect()
}

#[test]
fn staleness_stays_within_its_bound_and_buys_overlap() {
    let round = |staleness| {
        let mut inputs = cycle(asynchronous(staleness, InFlight::Drain), 40, 16, 0);
        inputs.rollout.slots = 8;
        (inputs.warmup, inputs.rounds) = (4, 20);
        let outcome = simulate(&inputs).unwrap();
        assert!(outcome.staleness.len() <= staleness as usize + 1, "{:?}", outcome.staleness);
        outcome.round
    };
    assert_eq!(round(0), seconds(56));
    assert_eq!(round(1), seconds(40));
    assert_eq!(round(3), seconds(40));
}

#[test]
fn weights_every_few_updates_age_the_samples_between() {
    let mode =
        Mode::Async(AsyncRule { staleness: Fraction::ZERO, sync_every: 4, in_flight: InFlight::Drain });
    let mut inputs = cycle(mode, 10, 3, 2);
    (inputs.warmup, inputs.rounds) = (0, 8);
    inputs.rollout.slots = 32;
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.staleness, [16, 16, 16, 16]);
    assert_eq!(outcome.elapsed, seconds(2 * (10 + 4 * 3 + 2)));
}

#[test]
fn old_samples_are_thrown_away_and_replaced() {
    // One second a token and an update; two of three responses have one token, the third has six, and each is
    // trained on by itself. The long ones end at 7 and 9, three and two updates after they began, and so does what
    // waits: the third of the short ones, of 1 s, is two updates old when its turn comes at 3.
    let mut inputs = plain(asynchronous(3, InFlight::Continue(KvCache::Kept)), 1, Shape::List(vec![1, 1, 6]));
    inputs.rollout.slots = 2;
    inputs.update.time = UpdateTime::Fixed(seconds(1));
    inputs.discard_older_than = Some(1);
    (inputs.warmup, inputs.rounds) = (0, 6);
    let (outcome, spans) = simulate_recorded(&inputs).unwrap();
    let ends: Vec<u64> = outcome.rounds.iter().map(|round| round.end.as_nanos() / SECOND).collect();
    assert_eq!(ends, [2, 3, 4, 9, 10, 11]);
    let counts = outcome.counts;
    assert_eq!((counts.launched, counts.finished, counts.trained, counts.stale), (11, 10, 6, 3));
    assert_eq!(outcome.staleness, [2, 4]);
    let dropped = responses(&spans).into_iter().filter(|&(_, end, ..)| end == StintEnd::Dropped);
    let stints: Vec<_> = dropped.map(|(_, _, start, end)| (start, end)).collect();
    assert_eq!(stints, [(1, 7), (1, 2), (3, 9)]);
}

#[test]
fn dropped_samples_are_launched_again_until_the_batch_is_full() {
    let mut inputs = plain(Mode::Sync, 6, Shape::Fixed(10));
    inputs.keep = Keep::Evenly(Fraction::new(1, 2).unwrap());
    (inputs.warmup, inputs.rounds) = (0, 1);
    // 6 launched, 3 kept; 3 more, 1 or 2 kept; and so on.
    let outcome = simulate(&inputs).unwrap();
    assert_eq!((outcome.counts.launched, outcome.counts.filtered), (12, 6));
    assert_eq!(outcome.round, seconds(40), "6, 3, 2 and 1 launched, ten seconds each");
}

#[test]
fn colocated_devices_switch_between_phases() {
    let mut inputs = cycle(Mode::Sync, 40, 16, 4);
    inputs.placement =
        Placement::Colocated(Switching { to_training: seconds(3), to_rollout: seconds(2), memory: None });
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(65));
    assert_eq!(outcome.split.switch, seconds(4 * 5));
    // Scoring goes on beside the switch.
    inputs.scoring = vec![pool("verify", 8, seconds(2))];
    assert_eq!(simulate(&inputs).unwrap().round, seconds(65));
}

#[test]
fn tokens_scale_the_update() {
    let mut inputs = plain(Mode::Sync, 4, Shape::List(vec![1, 2, 3, 4]));
    inputs.rollout.prompt_tokens = 10;
    inputs.update.mini_steps = 2;
    inputs.update.time = UpdateTime::Scaled { step: seconds(1), tokens: 5 };
    // Mini-steps of 23 and 27 tokens at a fifth of a second each; generation takes 4 s.
    assert_eq!(simulate(&inputs).unwrap().round, seconds(14));
    inputs.update.time = UpdateTime::PerToken { fixed: seconds(1), per_token: nanos(SECOND / 5) };
    inputs.update.prepare = seconds(1);
    inputs.update.finish = seconds(3);
    assert_eq!(simulate(&inputs).unwrap().round, seconds(14 + 2 + 1 + 3));
}

#[test]
fn a_reward_model_takes_time_by_tokens_and_pools_follow_each_other() {
    let mut inputs = plain(Mode::Sync, 2, Shape::Fixed(5));
    let mut reward = pool("reward", 1, Duration::ZERO);
    reward.time = ScoringTime::PerToken { fixed: seconds(1), per_token: nanos(SECOND / 5) };
    inputs.scoring = vec![reward, pool("verify", 1, seconds(3))];
    // 2 s each on the one, 3 s each on the other as they come: 5 + 2 + 3 + 3.
    assert_eq!(simulate(&inputs).unwrap().round, seconds(13));
}

#[test]
fn prices_count_every_server_for_the_whole_time() {
    let mut inputs = cycle(Mode::Sync, 40, 16, 4);
    inputs.rollout.engines = 3;
    inputs.scoring = vec![pool("verify", 2, Duration::ZERO)];
    inputs.prices = Some(Prices { engine_hour: 10.0, trainer_hour: 60.0, worker_hour: vec![3.0] });
    let cost = simulate(&inputs).unwrap().cost.unwrap();
    same(cost.per_round, (30.0 + 60.0 + 6.0) / 60.0, "a minute of everything");
    same(cost.total, cost.per_round * 4.0, "four rounds");
    same(cost.per_thousand_samples, cost.per_round / 8.0 * 1000.0, "eight samples a round");
}
