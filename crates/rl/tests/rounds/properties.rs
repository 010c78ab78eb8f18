//! Rules that hold whatever the inputs are.

use crate::common::*;
use pipestep_engine::{Bytes, Rate, Time};
use pipestep_rl::*;
use proptest::prelude::*;

fn modes() -> impl Strategy<Value = Mode> {
    let cache = prop_oneof![Just(KvCache::Kept), Just(KvCache::Recomputed)];
    let in_flight = prop_oneof![
        Just(InFlight::Drain),
        Just(InFlight::Abort),
        cache.clone().prop_map(InFlight::Continue),
    ];
    let rule = (0..4_u32, 1..3_u32, in_flight).prop_map(|(halves, sync_every, in_flight)| {
        Mode::Async(AsyncRule { staleness: Fraction::new(halves, 2).unwrap(), sync_every, in_flight })
    });
    prop_oneof![
        Just(Mode::Sync),
        Just(Mode::OneStepOff),
        Just(Mode::Stream),
        cache.prop_map(Mode::Partial),
        rule,
    ]
}

fn keeps() -> impl Strategy<Value = Keep> {
    let share = (1..=4_u32).prop_map(|kept| Fraction::new(kept, 4).unwrap());
    prop_oneof![
        3 => Just(Keep::All),
        1 => share.clone().prop_map(Keep::Evenly),
        1 => share.prop_map(Keep::Randomly),
    ]
}

fn groups() -> impl Strategy<Value = Group> {
    let cut = prop_oneof![Just(GroupCut::Each), Just(GroupCut::Shortest)];
    let several = (1..4_u32, 0..3_u32, cut).prop_map(|(responses, extra, cut)| Group {
        responses,
        launch: responses + extra,
        cut,
    });
    prop_oneof![Just(Group::SINGLE), several]
}

prop_compose! {
    fn any_inputs()(
        mode in modes(),
        keep in keeps(),
        (batch, extra) in (1..12_u32, 0..6_u32),
        group in groups(),
        (engines, slots) in (1..4_u32, 1..5_u32),
        lengths in prop::collection::vec(1..40_u64, 1..12),
        (per_response, prefill) in (0..3_u64, 0..2_u64),
        (scorers, workers) in (0..3_usize, 1..4_u32),
        (mini_steps, staggered, stream) in (1..4_u32, any::<bool>(), any::<bool>()),
        (learn, sync, handoff) in (0..60_u64, 0..10_u64, 0..5_u64),
        record in any::<bool>(),
        (seed, copies, discard) in (any::<u64>(), 1..3_u32, prop::option::of(2..5_u32)),
        faults in any_faults(),
        switch in prop::option::of((0..20_u64, 0..20_u64)),
    ) -> RlInputs {
        let (batch, extra) = (batch * group.responses, extra * group.responses);
        let mut inputs = plain(mode, batch, Shape::Empirical(lengths));
        inputs.group = group;
        inputs.keep = keep;
        inputs.seed = seed;
        inputs.launch = if matches!(mode, Mode::Async(_)) { batch } else { batch + extra };
        inputs.rollout.engines = engines;
        inputs.rollout.slots = slots;
        inputs.rollout.copies = copies;
        inputs.rollout.prompt_tokens = 3;
        inputs.rollout.prefill_per_token = nanos(prefill);
        inputs.rollout.resume = nanos(prefill * 2);
        inputs.rollout.token_time = TokenTime::Linear {
            base: nanos(10),
            per_response: nanos(per_response),
        };
        let scorer = |index| pool(&format!("scorer {index}"), workers, nanos(13 * (index as u64 + 1)));
        inputs.scoring = (0..scorers).map(scorer).collect();
        if stream {
            inputs.scoring_start = ScoringStart::AsFinished;
        }
        inputs.update.mini_steps = mini_steps.min(batch);
        inputs.update.time = UpdateTime::Fixed(nanos(learn));
        inputs.update.handoff = nanos(handoff);
        inputs.update.record = record.then(|| RoutingRecord {
            layers: 2,
            top_k: 1,
            bytes_per_id: 1,
            identity: Bytes::new(3),
            header: Bytes::new(8),
            rate: Rate::new(20, 1).unwrap(),
        });
        inputs.sync.time = SyncTime::Fixed(nanos(sync));
        inputs.sync.style = if staggered { SyncStyle::Staggered } else { SyncStyle::Blocking };
        inputs.discard_older_than = discard;
        let takes_turns = !staggered && matches!(mode, Mode::Sync | Mode::Partial(_));
        if let (Some((to_training, to_rollout)), true) = (switch, takes_turns) {
            inputs.placement = Placement::Colocated(Switching {
                to_training: nanos(to_training),
                to_rollout: nanos(to_rollout),
                memory: None,
            });
        }
        inputs.faults = Faults {
            engine_failures: faults
                .engine_failures
                .iter()
                .map(|failure| EngineFailure { engine: failure.engine % engines, ..*failure })
                .collect(),
            scorer_stops: faults.scorer_stops.into_iter().filter(|stop| stop.pool < scorers).collect(),
            ..faults
        };
        inputs
    }
}

prop_compose! {
    fn any_faults()(
        failures in prop::collection::vec((0..4_u32, 0..900_u64, 1..200_u64, any::<bool>()), 0..3),
        interruption in prop::option::weighted(0.2, 400..4000_u64),
        restarts in prop::collection::vec((0..900_u64, 0..90_u64, any::<bool>()), 0..3),
        stops in prop::collection::vec((0..3_usize, 0..900_u64, 0..200_u64), 0..3),
        random in prop::option::weighted(0.2, (300..3000_u64, any::<bool>())),
    ) -> Faults {
        let survival = |kept| if kept { Survival::Kept } else { Survival::Lost };
        Faults {
            engine_failures: failures
                .into_iter()
                .map(|(engine, at, down, kept)| EngineFailure {
                    engine,
                    at: Time::from_nanos(at),
                    down: nanos(down),
                    responses: survival(kept),
                })
                .collect(),
            random_engine_failures: random.map(|(mean, kept)| RandomFailures {
                mean_time: nanos(mean),
                down: nanos(20),
                responses: survival(kept),
            }),
            mean_time_to_interruption: interruption.map(nanos),
            scorer_stops: stops
                .into_iter()
                .map(|(pool, at, down)| ScorerStop {
                    pool,
                    at: Time::from_nanos(at),
                    down: Some(nanos(down)),
                })
                .collect(),
            restarts: restarts
                .into_iter()
                .map(|(at, down, kept)| Restart {
                    at: Time::from_nanos(at),
                    down: nanos(down),
                    rollout: survival(kept),
                })
                .collect(),
        }
    }
}

fn parts(split: &Split) -> u64 {
    [
        split.rollout,
        split.scoring,
        split.handoff,
        split.update,
        split.sync,
        split.switch,
        split.turn,
        split.down,
    ]
    .iter()
    .map(|part| part.as_nanos())
    .sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn rounds_end_and_their_books_balance(mut inputs in any_inputs()) {
        inputs.warmup = 0;
        let (outcome, spans) = simulate_recorded(&inputs).unwrap();
        prop_assert_eq!(outcome.rounds.len(), inputs.rounds as usize);
        prop_assert_eq!(outcome.counts.trained, u64::from(inputs.rounds) * u64::from(inputs.batch));
        prop_assert_eq!(outcome.staleness.iter().sum::<u64>(), outcome.counts.trained);
        prop_assert_eq!(parts(&outcome.split), outcome.elapsed.as_nanos());
        for (round, next) in outcome.rounds.iter().zip(&outcome.rounds[1..]) {
            prop_assert_eq!(round.end, next.start);
            prop_assert_eq!(parts(&round.split), round.end.since(round.start).as_nanos());
        }
        let counts = &outcome.counts;
        let gone = counts.trained + counts.filtered + counts.aborted + counts.surplus + counts.stale
            + counts.interrupted + counts.lost;
        prop_assert!(gone <= counts.launched, "{:?}", counts);
        prop_assert!(counts.finished_tokens >= counts.trained_tokens);
        if let (Mode::Async(rule), Some(limit)) = (inputs.mode, inputs.discard_older_than) {
            prop_assert!(outcome.staleness.len() <= limit as usize + 1, "{:?} {:?}", rule, outcome.staleness);
        }
        for stage in outcome.stages.iter().chain([&outcome.slots]) {
            prop_assert_eq!(stage.busy.as_nanos() + stage.idle.as_nanos(), outcome.elapsed.as_nanos());
        }
        bars_never_overlap(&spans)?;
        slots_at_work(&inputs, &outcome, &spans)?;
    }

    #[test]
    fn recording_and_repeating_change_nothing(inputs in any_inputs()) {
        let outcome = simulate(&inputs).unwrap();
        prop_assert_eq!(&simulate(&inputs).unwrap(), &outcome);
        prop_assert_eq!(simulate_recorded(&inputs).unwrap().0, outcome);
    }

    #[test]
    fn every_sample_is_fresh_without_overlap(mut inputs in any_inputs()) {
        inputs.mode = Mode::Sync;
        inputs.discard_older_than = Some(0);
        let outcome = simulate(&inputs).unwrap();
        prop_assert_eq!(outcome.staleness, vec![outcome.counts.trained]);
    }

    #[test]
    fn one_step_off_is_one_step_old(mut inputs in any_inputs()) {
        inputs.mode = Mode::OneStepOff;
        inputs.placement = Placement::Separate;
        inputs.faults.restarts.clear();
        let outcome = simulate(&inputs).unwrap();
        prop_assert_eq!(outcome.staleness, vec![0, outcome.counts.trained]);
    }
}

/// No two bars lie over each other in a slot, on a worker or on the trainer.
fn bars_never_overlap(spans: &[Span]) -> Result<(), TestCaseError> {
    let mut bars: Vec<&Span> = spans
        .iter()
        .filter(|span| matches!(span.row, Row::Slot { .. } | Row::Worker { .. } | Row::Trainer))
        .collect();
    bars.sort_by_key(|span| (span.row, span.interval));
    for pair in bars.windows(2) {
        let apart = pair[0].row != pair[1].row || pair[0].interval.end <= pair[1].interval.start;
        prop_assert!(apart, "{:?}", pair);
    }
    Ok(())
}

/// The bars in slots add up to the slots' busy time.
fn slots_at_work(inputs: &RlInputs, outcome: &RlOutcome, spans: &[Span]) -> Result<(), TestCaseError> {
    let total: u64 = spans
        .iter()
        .filter(|span| matches!(span.row, Row::Slot { .. }))
        .map(|span| span.interval.length().as_nanos())
        .sum();
    let slots = u64::from(inputs.rollout.engines * inputs.rollout.slots);
    prop_assert_eq!(total / slots, outcome.slots.busy.as_nanos());
    Ok(())
}
