//! What a fault costs: engines, scorers, restarts.

use crate::common::*;
use pipestep_engine::{Duration, Time};
use pipestep_rl::*;

fn at(second: u64) -> Time {
    Time::from_nanos(second * SECOND)
}

fn restart(second: u64, down: u64, rollout: Survival) -> Faults {
    Faults { restarts: vec![Restart { at: at(second), down: seconds(down), rollout }], ..Faults::none() }
}

/// Time of a single round.
fn once(mut inputs: RlInputs) -> Duration {
    (inputs.warmup, inputs.rounds) = (0, 1);
    simulate(&inputs).unwrap().round
}

/// The book's recovery cases: a restart so far into the update, with the rollout redone or kept.
#[test]
fn a_restart_in_the_update_redoes_it_with_or_without_the_rollout() {
    for (rollout, update, into, down, redo, keep) in
        [(300, 60, 30, 100, 790, 490), (300, 60, 0, 100, 760, 460), (100, 200, 150, 100, 650, 550)]
    {
        for (survival, expected) in [(Survival::Lost, redo), (Survival::Kept, keep)] {
            for mode in [Mode::Sync, Mode::Stream, Mode::Partial(KvCache::Kept)] {
                let mut inputs = cycle(mode, rollout, update, 0);
                inputs.faults = restart(rollout + into, down, survival);
                assert_eq!(once(inputs), seconds(expected), "{mode:?} {survival:?} {into}");
            }
        }
    }
}

#[test]
fn a_restart_in_the_rollout_keeps_the_tokens_or_not() {
    for (survival, expected) in [(Survival::Kept, 300 + 20), (Survival::Lost, 300 + 20 + 100)] {
        let mut inputs = cycle(Mode::Sync, 300, 0, 0);
        inputs.faults = restart(100, 20, survival);
        assert_eq!(once(inputs), seconds(expected));
    }
}

#[test]
fn every_moment_of_a_round_survives_a_restart() {
    let modes = [
        Mode::Sync,
        Mode::OneStepOff,
        Mode::Stream,
        Mode::Partial(KvCache::Recomputed),
        asynchronous(1, InFlight::Drain),
        asynchronous(1, InFlight::Abort),
        asynchronous(1, InFlight::Continue(KvCache::Recomputed)),
    ];
    for mode in modes {
        for style in [SyncStyle::Blocking, SyncStyle::Staggered] {
            for colocated in [false, true] {
                let takes_turns =
                    matches!(mode, Mode::Sync | Mode::Partial(_)) && style == SyncStyle::Blocking;
                if colocated && !takes_turns {
                    continue;
                }
                for second in 0..130 {
                    for survival in [Survival::Kept, Survival::Lost] {
                        let mut inputs = cycle(mode, 20, 7, 3);
                        inputs.sync.style = style;
                        inputs.rollout.engines = 2;
                        inputs.rollout.lengths.shape = Shape::List(vec![12, 20, 17]);
                        inputs.scoring = vec![pool("verify", 2, seconds(2))];
                        (inputs.warmup, inputs.rounds) = (0, 4);
                        if colocated {
                            inputs.placement = Placement::Colocated(Switching {
                                to_training: seconds(3),
                                to_rollout: seconds(4),
                                memory: None,
                            });
                        }
                        let without = simulate(&inputs).unwrap().elapsed;
                        inputs.faults = restart(second, 9, survival);
                        let with = simulate(&inputs).unwrap();
                        assert_eq!(with.counts.trained, 32);
                        if at(second).as_nanos() < without.as_nanos() {
                            let most = without.as_nanos() + 9 * SECOND + 70 * SECOND;
                            assert!(with.elapsed.as_nanos() <= most, "{mode:?} {second} {survival:?}");
                            assert!(with.split.down <= seconds(9));
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_failed_engine_gives_its_responses_to_the_others() {
    let mut inputs = plain(Mode::Sync, 2, Shape::Fixed(10));
    inputs.rollout.engines = 2;
    inputs.rollout.slots = 1;
    let failing = |responses| EngineFailure { engine: 1, at: at(6), down: seconds(100), responses };
    // The first engine is free at 10; it needs 4 more tokens, or all 10.
    inputs.faults.engine_failures = vec![failing(Survival::Kept)];
    assert_eq!(once(inputs.clone()), seconds(14));
    inputs.rollout.resume = seconds(2);
    assert_eq!(once(inputs.clone()), seconds(16));
    inputs.faults.engine_failures = vec![failing(Survival::Lost)];
    assert_eq!(once(inputs.clone()), seconds(20));
    (inputs.warmup, inputs.rounds) = (0, 1);
    let counts = simulate(&inputs).unwrap().counts;
    assert_eq!((counts.regenerated, counts.wasted_tokens, counts.engine_failures), (1, 6, 1));
}

#[test]
fn a_failed_engine_comes_back() {
    let mut inputs = plain(Mode::Sync, 1, Shape::Fixed(10));
    inputs.faults.engine_failures =
        vec![EngineFailure { engine: 0, at: at(4), down: seconds(3), responses: Survival::Lost }];
    assert_eq!(once(inputs.clone()), seconds(17));
    let (_, spans) = simulate_recorded(&inputs).unwrap();
    assert!(spans.iter().any(|span| span.kind == SpanKind::Down && span.row == Row::Engine(0)));
}

#[test]
fn random_failures_follow_their_rate() {
    let mut inputs = plain(Mode::Sync, 100, Shape::Fixed(50));
    inputs.rollout.engines = 10;
    inputs.rollout.slots = 10;
    inputs.faults.random_engine_failures =
        Some(RandomFailures { mean_time: seconds(1_000), down: seconds(100), responses: Survival::Kept });
    (inputs.warmup, inputs.rounds) = (0, 400);
    let outcome = simulate(&inputs).unwrap();
    // A cycle of an engine is 1000 s up and 100 s down; the count is about Poisson.
    let expected = outcome.elapsed.as_secs_f64() * 10.0 / 1_100.0;
    let found = outcome.counts.engine_failures as f64;
    assert!((found - expected).abs() < 4.0 * expected.sqrt(), "{found} against {expected}");
}

#[test]
fn a_stopped_scorer_scores_again_what_it_was_at() {
    let mut inputs = plain(Mode::Sync, 2, Shape::Fixed(10));
    inputs.scoring = vec![pool("verify", 1, seconds(5))];
    inputs.faults.scorer_stops = vec![ScorerStop { pool: 0, at: at(12), down: Some(seconds(6)) }];
    assert_eq!(once(inputs.clone()), seconds(18 + 10));
    inputs.faults.scorer_stops[0].down = None;
    let error = simulate(&inputs).unwrap_err();
    assert!(matches!(error, RlError::Deadlock { updates: 0, .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("`verify` holds 2 and stands still for good"), "{text}");
}

#[test]
fn a_stopped_scorer_holds_up_the_mini_step_that_waits_for_it() {
    // Ends at 1 and 3; the scorer is at the first from 1 to 2, then stands still until 5. It scores until 7 and 9,
    // each followed by a mini-step.
    let mut inputs = plain(Mode::Stream, 2, Shape::List(vec![1, 3]));
    inputs.scoring = vec![pool("verify", 1, seconds(2))];
    inputs.update.mini_steps = 2;
    inputs.update.time = UpdateTime::Fixed(seconds(1));
    inputs.faults.scorer_stops = vec![ScorerStop { pool: 0, at: at(2), down: Some(seconds(3)) }];
    assert_eq!(once(inputs), seconds(10));
}

#[test]
fn an_engine_that_fails_delays_the_batch_after_next() {
    // The first batch is there at 4 and trained on until 7, while the second is generated. Of this the response of
    // the engine that fails at 6 starts again at 8, where there is room, and ends at 12; weights until 13. The
    // second update and the third batch go side by side until 17, weights until 18.
    let mut inputs = cycle(Mode::OneStepOff, 4, 3, 1);
    (inputs.batch, inputs.launch) = (2, 2);
    (inputs.rollout.engines, inputs.rollout.slots) = (2, 1);
    let responses = Survival::Lost;
    inputs.faults.engine_failures = vec![EngineFailure { engine: 1, at: at(6), down: seconds(2), responses }];
    (inputs.warmup, inputs.rounds) = (0, 2);
    let outcome = simulate(&inputs).unwrap();
    let ends: Vec<u64> = outcome.rounds.iter().map(|round| round.end.as_nanos() / SECOND).collect();
    assert_eq!(ends, [13, 18]);
    assert_eq!((outcome.counts.regenerated, outcome.counts.wasted_tokens), (1, 2));
    assert_eq!(outcome.staleness, [2, 2]);
}
