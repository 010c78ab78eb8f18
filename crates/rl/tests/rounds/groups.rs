//! Several responses to a prompt: taken, dropped and cut as a whole.

use crate::common::*;
use pipestep_engine::Time;
use pipestep_rl::*;

/// Prompts of `responses` each, one second a token; one round, nothing else takes time.
fn grouped(mode: Mode, prompts: u32, responses: u32, lengths: Vec<u64>) -> RlInputs {
    let mut inputs = plain(mode, prompts * responses, Shape::List(lengths));
    inputs.group = Group { responses, launch: responses, cut: GroupCut::Each };
    (inputs.warmup, inputs.rounds) = (0, 1);
    inputs
}

#[test]
fn the_first_groups_to_be_complete_make_the_batch() {
    // The first prompt has the shortest response of all, and the longest: complete at 9, too late.
    let mut inputs = grouped(Mode::Sync, 2, 2, vec![1, 9, 2, 3, 4, 5]);
    inputs.launch = 6;
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(5));
    let counts = outcome.counts;
    assert_eq!((counts.launched, counts.trained, counts.aborted, counts.surplus), (6, 4, 1, 1));
    assert_eq!((counts.trained_tokens, counts.wasted_tokens), (14, 5));
    // Response by response, the round would have taken its first four at 4.
    inputs.group = Group::SINGLE;
    assert_eq!(simulate(&inputs).unwrap().round, seconds(4));
}

#[test]
fn more_responses_than_a_group_needs_are_aborted_when_it_is_complete() {
    let mut inputs = grouped(Mode::Sync, 2, 2, vec![7, 1, 2, 3, 9, 4]);
    inputs.group.launch = 3;
    let outcome = simulate(&inputs).unwrap();
    // The first prompt has 1 and 2, the second 3 and 4.
    assert_eq!(outcome.round, seconds(4));
    let counts = outcome.counts;
    assert_eq!((counts.launched, counts.trained, counts.aborted), (6, 4, 2));
    assert_eq!((counts.trained_tokens, counts.wasted_tokens), (1 + 2 + 3 + 4, 2 + 4));
    assert!(outcome.tail.mean_tokens < outcome.tail.launched_mean_tokens, "the short ones are taken");
}

#[test]
fn members_that_end_together_fill_the_group_and_no_more() {
    let mut inputs = grouped(Mode::Sync, 1, 2, vec![5, 5, 5]);
    inputs.group.launch = 3;
    let counts = simulate(&inputs).unwrap().counts;
    assert_eq!((counts.launched, counts.trained, counts.surplus, counts.aborted), (3, 2, 1, 0));
}

#[test]
fn a_group_waits_for_its_last_score() {
    let mut inputs = grouped(Mode::Stream, 2, 2, vec![1, 2, 10, 11]);
    inputs.scoring = vec![pool("verify", 1, seconds(3))];
    inputs.update.mini_steps = 2;
    inputs.update.time = UpdateTime::Fixed(seconds(4));
    // The first group is scored at 1+3 and 7, trained until 11; the second scored at 13 and 16.
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(20));
    assert_eq!(outcome.split.scoring, seconds(7 - 2 + 16 - 11));
}

#[test]
fn groups_are_kept_or_not_as_a_whole() {
    let mut inputs = grouped(Mode::Sync, 2, 4, vec![10]);
    inputs.keep = Keep::Evenly(Fraction::new(1, 2).unwrap());
    let outcome = simulate(&inputs).unwrap();
    // Two prompts, one kept; one more, not kept; one more.
    assert_eq!(outcome.round, seconds(30));
    assert_eq!((outcome.counts.launched, outcome.counts.filtered), (16, 8));
}

#[test]
fn a_group_that_is_cut_goes_on_in_the_next_round() {
    // Three prompts launched, two needed. The third has 2 and 20 tokens: 20 - 4 are left when the round closes
    // with the first two, so the second round has it and a new one.
    let mut inputs = grouped(Mode::Partial(KvCache::Kept), 2, 2, vec![1, 2, 3, 4, 2, 20, 1, 1]);
    inputs.launch = 6;
    inputs.rounds = 2;
    let outcome = simulate(&inputs).unwrap();
    let generations: Vec<_> = outcome.rounds.iter().map(|round| round.generation.unwrap()).collect();
    assert_eq!(generations[0], seconds(4));
    // The new prompts (1, 1) and (1, 2) are complete first.
    assert_eq!(generations[1], seconds(2));
    assert_eq!((outcome.counts.launched, outcome.counts.wasted_tokens), (10, 0));
    // What has ended of the cut group is trained on when all of it has.
    inputs.rounds = 30;
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.staleness.len(), 3, "two updates later: {:?}", outcome.staleness);
    assert!(outcome.staleness[2] > 0 && outcome.staleness[2].is_multiple_of(2), "{:?}", outcome.staleness);
    assert_eq!(outcome.staleness.iter().sum::<u64>(), 30 * 4);
}

/// The book's group: cut with 4,000 and 1,000 tokens, it goes on with 1,000 each.
#[test]
fn a_group_cut_to_its_shortest_does_the_rest_again() {
    for case in oracle(include_str!("../data/book_rl.json"))["timeline_cases"].as_array().unwrap() {
        if case["kind"] != "group_truncation" {
            continue;
        }
        let (given, expect) = (&case["scenario"], &case["expect"]);
        let saved: Vec<u64> = given["saved_tokens"].as_array().unwrap().iter().map(whole).collect();
        let token = SECOND / whole(&given["decode_tokens_per_s"]);
        let (longest, responses) = (*saved.iter().max().unwrap(), saved.len() as u32);
        let outcome = |cut| {
            let mut inputs = grouped(Mode::Sync, 1, responses, vec![longest + 800]);
            inputs.group.cut = cut;
            inputs.rollout.token_time = TokenTime::Linear { base: nanos(token), per_response: nanos(0) };
            // An engine each, which lets its response start so late that it has these tokens when all are cut.
            (inputs.rollout.engines, inputs.rollout.slots) = (responses, 1);
            let late = |tokens: u64| nanos((longest - tokens) * token);
            let start = |(engine, &tokens): (usize, &u64)| EngineFailure {
                engine: engine as u32,
                at: Time::ZERO,
                down: late(tokens),
                responses: Survival::Kept,
            };
            inputs.faults.engine_failures = saved.iter().enumerate().map(start).collect();
            let at = Time::from_nanos(longest * token);
            inputs.faults.restarts = vec![Restart { at, down: seconds(5), rollout: Survival::Kept }];
            simulate(&inputs).unwrap()
        };
        let (each, shortest) = (outcome(GroupCut::Each), outcome(GroupCut::Shortest));
        assert_eq!(each.counts.truncated_tokens, 0);
        assert_eq!(shortest.counts.truncated_tokens, u128::from(whole(&expect["tokens_to_redo"])), "{case}");
        // The slot time that the group takes grows by the tokens generated again.
        let slots = |outcome: &RlOutcome| outcome.slots.busy.as_nanos() * u64::from(responses);
        let (upper, lower) = rational(&expect["redo_s"]);
        let again = i128::from(slots(&shortest) - slots(&each));
        assert!(
            (again * lower - upper * i128::from(SECOND)).abs() <= lower * i128::from(responses),
            "{case}"
        );
        // All that were cut need the same from then on.
        let kept = whole(&expect["kept_each"]);
        let left = (longest + 800 - kept) * token;
        assert_eq!(shortest.round, nanos(longest * token + 5 * SECOND + left), "{case}");
    }
}

#[test]
fn members_cut_for_new_weights_go_on_from_one_length() {
    let mode = Mode::Async(AsyncRule {
        staleness: Fraction::ONE,
        sync_every: 1,
        in_flight: InFlight::Continue(KvCache::Kept),
    });
    // The first prompt is trained on at 2. The second, with a slot less, has begun at 0 and 1 by then.
    let mut inputs = grouped(mode, 1, 2, vec![1, 2, 10, 10, 10, 10]);
    inputs.rollout.slots = 3;
    inputs.rounds = 2;
    assert_eq!(simulate(&inputs).unwrap().elapsed, seconds(11));
    inputs.group.cut = GroupCut::Shortest;
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.counts.truncated_tokens, 1);
    assert_eq!(outcome.elapsed, seconds(11), "the one that began later was the last anyway");
}

#[test]
fn a_group_that_loses_a_member_gets_another() {
    let mut inputs = grouped(Mode::Sync, 200, 4, vec![300]);
    inputs.rounds = 5;
    inputs.faults.mean_time_to_interruption = Some(seconds(600));
    let counts = simulate(&inputs).unwrap().counts;
    assert_eq!((counts.trained, counts.aborted, counts.surplus), (4_000, 0, 0));
    assert_eq!(counts.launched, counts.trained + counts.interrupted);
    // Every response survives with e^(-300/600), whatever became of its siblings.
    let share = (-0.5_f64).exp();
    let error = (share * (1.0 - share) / counts.launched as f64).sqrt();
    let found = counts.trained as f64 / counts.launched as f64;
    assert!((found - share).abs() < 4.0 * error, "{found} against {share}");

    // With spare members none is launched again until the spare ones are used up.
    inputs.group.launch = 12;
    let counts = simulate(&inputs).unwrap().counts;
    assert!(counts.launched < 5 * 200 * 12 + 100, "{counts:?}");
    assert!(counts.aborted + counts.surplus > 0);
}

#[test]
fn the_staleness_bound_counts_whole_groups() {
    let mode = Mode::Async(AsyncRule {
        staleness: Fraction::new(1, 2).unwrap(),
        sync_every: 1,
        in_flight: InFlight::Drain,
    });
    let mut inputs = grouped(mode, 3, 4, vec![1]);
    inputs.rollout.slots = 1_000;
    inputs.update.time = UpdateTime::Fixed(seconds(1_000));
    // A batch and a half are 18 samples: four groups of 4, and half a one that is not launched.
    assert_eq!(simulate(&inputs).unwrap().counts.launched, 16);
}

#[test]
fn one_member_that_is_too_old_takes_its_group_with_it() {
    let mode = asynchronous(3, InFlight::Continue(KvCache::Kept));
    let mut inputs = grouped(mode, 1, 2, vec![1, 1, 1, 6]);
    inputs.rollout.slots = 4;
    (inputs.warmup, inputs.rounds) = (1, 20);
    inputs.update.time = UpdateTime::Fixed(seconds(1));
    inputs.discard_older_than = Some(1);
    let outcome = simulate(&inputs).unwrap();
    assert!(outcome.counts.stale > 0 && outcome.counts.stale.is_multiple_of(2), "{:?}", outcome.counts);
    assert!(outcome.staleness.len() <= 2, "{:?}", outcome.staleness);
}

#[test]
fn groups_that_can_never_be_complete_are_refused() {
    let refused = |change: &dyn Fn(&mut RlInputs), part: &str| {
        let mut inputs = grouped(Mode::Sync, 2, 4, vec![1]);
        change(&mut inputs);
        let error = simulate(&inputs).expect_err(part).to_string();
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    };
    refused(&|inputs| inputs.group.responses = 0, "`responses` must be at least 1");
    refused(&|inputs| inputs.group.launch = 3, "a group launches 3 responses and needs 4");
    refused(&|inputs| inputs.batch = 6, "`batch` is 6, which is no whole number of groups of 4");
    refused(&|inputs| inputs.launch = 10, "`launch` is 10");
    refused(&|inputs| inputs.group.launch = u32::MAX, "responses launched a round");
}
