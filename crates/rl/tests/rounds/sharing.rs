//! Jobs that take turns on the same engines and trainer.

use crate::common::*;
use pipestep_rl::*;
use proptest::prelude::*;

/// Jobs of so many seconds of rollout and update each.
fn jobs(times: &[(u64, u64)], handoff: u64) -> RlInputs {
    let mut all: Vec<RlInputs> =
        times.iter().map(|&(rollout, learn)| cycle(Mode::Sync, rollout, learn, 0)).collect();
    for job in &mut all {
        (job.warmup, job.rounds) = (6, 6);
    }
    let others = all.split_off(1);
    let mut first = all.remove(0);
    let named = |(index, inputs)| SharedJob { name: format!("job {}", index + 2), inputs };
    let jobs = others.into_iter().enumerate().map(named).collect();
    first.sharing = Some(Sharing { handoff: seconds(handoff), jobs });
    first
}

#[test]
fn one_generates_while_the_other_trains() {
    // Each alone takes 50 s of 60; together they fill both pools.
    let mut inputs = jobs(&[(30, 20), (20, 30)], 0);
    let outcome = simulate(&inputs).unwrap();
    assert_eq!((outcome.round, outcome.jobs[0].outcome.round), (seconds(50), seconds(50)));
    assert_eq!(outcome.jobs[0].name, "job 2");
    same(outcome.all_samples_per_s(), 16.0 / 50.0, "eight samples each");
    // With 5 s between them each waits for what the other one needs longer.
    inputs = jobs(&[(30, 20), (20, 30)], 5);
    let outcome = simulate(&inputs).unwrap();
    assert_eq!(outcome.round, seconds(60));
    assert_eq!(outcome.split.turn, seconds(6 * 10), "its own two handoffs");
}

#[test]
fn a_weight_sync_keeps_the_trainer() {
    let mut inputs = jobs(&[(10, 20), (10, 20)], 0);
    assert_eq!(simulate(&inputs).unwrap().round, seconds(40));
    inputs.sync.time = SyncTime::Fixed(seconds(7));
    assert_eq!(simulate(&inputs).unwrap().round, seconds(47));
}

#[test]
fn who_asks_first_comes_first() {
    // The trainer is what all wait for: 3 x 20 s, in the order in which they came.
    let outcome = simulate(&jobs(&[(1, 20), (2, 20), (3, 20)], 0)).unwrap();
    assert_eq!(outcome.round, seconds(60));
    assert!(outcome.jobs.iter().all(|job| job.outcome.round == seconds(60)));
}

#[test]
fn faster_engines_and_trainers_are_faster_for_all() {
    let found = sensitivity(&jobs(&[(30, 10), (30, 10)], 0)).unwrap();
    assert_eq!(found.bottleneck.as_deref(), Some("rollout"));
    same(found.gains[0].gain, 1.0, "engines are all that both wait for");
    assert_eq!(found.gains[1].gain, 0.0);
}

#[test]
fn the_first_job_sees_when_others_have_the_pools() {
    let (_, spans) = simulate_recorded(&jobs(&[(30, 20), (20, 30)], 0)).unwrap();
    let others: Vec<&Span> =
        spans.iter().filter(|span| matches!(span.kind, SpanKind::OtherJob { job: 1 })).collect();
    let rows = |row: Row| others.iter().filter(|span| span.row == row).count();
    assert!(rows(Row::Engine(0)) >= 11 && rows(Row::Trainer) >= 11, "{others:?}");
    // No response of this job runs while the other one has the engines.
    for other in others.iter().filter(|span| span.row == Row::Engine(0)) {
        for span in spans.iter().filter(|span| matches!(span.row, Row::Slot { .. })) {
            let apart =
                span.interval.end <= other.interval.start || span.interval.start >= other.interval.end;
            assert!(apart, "{span:?} {other:?}");
        }
    }
}

#[test]
fn one_uses_the_devices_while_the_other_is_scored() {
    // Alone, 30 s of rollout, 20 s of scoring and 10 s of update leave devices idle for 20 s of 60. Two jobs take
    // 2 x 40 s: one's update and next rollout pass while the other is scored.
    let mut inputs = jobs(&[(30, 10), (30, 10)], 0);
    let idle = Switching { to_training: nanos(0), to_rollout: nanos(0), memory: None };
    inputs.placement = Placement::Colocated(idle);
    inputs.scoring = vec![pool("verify", 8, seconds(20))];
    let alone = RlInputs { sharing: None, ..inputs.clone() };
    assert_eq!(simulate(&alone).unwrap().round, seconds(60));
    *second(&mut inputs) = RlInputs { seed: 2, ..alone };
    let outcome = simulate(&inputs).unwrap();
    assert_eq!((outcome.round, outcome.jobs[0].outcome.round), (seconds(80), seconds(80)));
    assert_eq!(
        outcome.split.turn,
        seconds(6 * (40 - 20)),
        "the other one's 40 s, of which 20 s pass in scoring"
    );
    // Each change of hands takes 3 s, one before each job's turn.
    inputs.sharing.as_mut().unwrap().handoff = seconds(3);
    assert_eq!(simulate(&inputs).unwrap().round, seconds(86));
    assert_eq!(simulate_recorded(&inputs).unwrap().0, simulate(&inputs).unwrap());
}

proptest! {
    /// Two jobs that alternate are never later than what one pool or one job needs by itself.
    #[test]
    fn two_jobs_reach_the_bound(times in prop::array::uniform4(1..50_u64), handoff in 0..10_u64) {
        let [a, b, c, d] = times;
        let outcome = simulate(&jobs(&[(a, b), (c, d)], handoff)).unwrap();
        let bound = [a + c, b + d, a + b, c + d].into_iter().max().unwrap() + 2 * handoff;
        prop_assert_eq!(outcome.round, seconds(bound));
        prop_assert_eq!(outcome.jobs[0].outcome.round, seconds(bound));
        prop_assert_eq!(simulate_recorded(&jobs(&[(a, b), (c, d)], handoff)).unwrap().0, outcome);
    }
}

fn second(inputs: &mut RlInputs) -> &mut RlInputs {
    &mut inputs.sharing.as_mut().unwrap().jobs[0].inputs
}

#[test]
fn what_does_not_go_in_phases_cannot_share() {
    let refused = |change: &dyn Fn(&mut RlInputs), part: &str| {
        let mut inputs = jobs(&[(30, 20), (20, 30)], 0);
        change(&mut inputs);
        let error = simulate(&inputs).expect_err(part).to_string();
        assert!(error.contains(part), "`{error}` does not say `{part}`");
    };
    refused(&|inputs| inputs.mode = Mode::OneStepOff, "only in `sync`");
    let colocated = |switch| {
        let to_training = seconds(switch);
        Placement::Colocated(Switching { to_training, to_rollout: seconds(0), memory: None })
    };
    refused(&|inputs| inputs.placement = colocated(0), "another placement");
    refused(&|inputs| inputs.placement = colocated(1), "change hands in `handoff`");
    refused(&|inputs| second(inputs).mode = Mode::OneStepOff, "job 2 is otherwise");
    refused(
        &|inputs| second(inputs).rollout.slots = 1,
        "job 2, which shares engines and trainer, has other engines",
    );
    refused(&|inputs| second(inputs).batch = 0, "`batch`");
    refused(&|inputs| inputs.sharing.as_mut().unwrap().jobs.clear(), "no other job");
    refused(&|inputs| second(inputs).sharing = inputs.clone().sharing, "name them all in one place");
}
