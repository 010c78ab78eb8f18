//! The headline: Qwen3-8B on 4 stages, 8 micro-batches, 10 ms forward, 20 ms backward, 1 ms transfers and update.

use pipestep_engine::{Bytes, Duration, Interval, Time};
use pipestep_schedule::{Op, Options, Placement, Plan, Rank, Shape, Weights, find};
use pipestep_step::{Costs, Inputs, Outcome, RankCost, simulate, summary};

use crate::cases::{MS, message, stage};

/// Bytes that 9 layers keep for one micro-batch of 128 tokens, and those of the last stage with the head.
const SAVED: [u64; 4] = [240_915_456, 240_915_456, 240_915_456, 320_804_352];

pub(crate) fn headline() -> Inputs {
    let shape = Shape::new(4, 1, 8, Placement::Loop).unwrap();
    let sent = message(MS, 2 * 128 * 4096);
    let stages = SAVED.map(|saved| stage(10 * MS, 20 * MS, saved, sent)).to_vec();
    let rank = RankCost { update: Duration::from_nanos(MS), ..RankCost::default() };
    let costs = Costs { stages, ranks: vec![rank; 4], ..Costs::default() };
    Inputs::new(shape, costs).unwrap()
}

fn plan(schedule: &str) -> Plan {
    let inputs = headline();
    find(schedule).unwrap().plan(inputs.shape(), &Weights::unit(inputs.shape()), &Options::default()).unwrap()
}

pub(crate) fn run(schedule: &str) -> Outcome {
    simulate(&headline(), plan(schedule)).unwrap()
}

fn peaks(outcome: &Outcome) -> Vec<u64> {
    outcome.summary.ranks.iter().map(|rank| rank.peak.bytes.get()).collect()
}

#[test]
fn fill_drain_takes_337_ms_and_2_57_gb() {
    let outcome = run("fill-drain");
    assert_eq!(outcome.summary.makespan, Time::from_nanos(337 * MS));
    assert_eq!(peaks(&outcome), [1_929_420_800, 1_929_420_800, 1_929_420_800, 2_566_434_816]);
    assert!(outcome.summary.ranks.iter().all(|rank| rank.idle == Duration::from_nanos(96 * MS)));
}

#[test]
fn one_f_one_b_takes_347_ms_and_0_97_gb() {
    let outcome = run("1f1b");
    let summary = &outcome.summary;
    assert_eq!(summary.makespan, Time::from_nanos(347 * MS));
    assert_eq!(summary.gradient_ready, Time::from_nanos(346 * MS));
    assert_eq!(summary.zero_transfer_makespan, Time::from_nanos(331 * MS));
    assert_eq!(peaks(&outcome), [965_758_976, 725_892_096, 484_976_640, 322_901_504]);
    assert!(summary.ranks.iter().all(|rank| rank.idle == Duration::from_nanos(106 * MS)));
    assert_eq!((summary.messages.forward, summary.messages.backward), (24, 24));
    assert_eq!(summary.messages.bytes, Bytes::new(75_497_472));
    let bubble = summary.bubble();
    assert!((bubble.by_makespan - 106.0 / 346.0).abs() < 1e-12);
    assert!((bubble.over_ideal - 106.0 / 240.0).abs() < 1e-12);
}

#[test]
fn rank_3_has_a_gap_from_93_to_95_ms() {
    let outcome = run("1f1b");
    let list = outcome.record.orders.range(Rank(3));
    let ops = &outcome.record.orders.all()[list.clone()];
    let after = ops.iter().position(|&op| op == Op::forward(3, 2)).unwrap();
    let at = |position: usize| outcome.record.ops.get(list.start + position);
    assert_eq!(ops[after - 1], Op::backward(3, 1));
    assert_eq!(at(after - 1).end, Time::from_nanos(93 * MS));
    assert_eq!(at(after).start, Time::from_nanos(95 * MS));
}

#[test]
fn interleaving_takes_a_third_of_893_ms() {
    // Chunks of 5 and 4 layers: shares of 10 and 20 ms, rounded half to even.
    let shape = Shape::new(4, 2, 8, Placement::Loop).unwrap();
    let per_layer = [200_872_u64 * 128 + 64 * 129 * 128, 624_132 * 128];
    let stages = (0..8)
        .map(|s| {
            let layers = if s < 4 { 5 } else { 4 };
            let share = |whole: u64| (whole * layers + 4) / 9;
            let head = if s == 7 { per_layer[1] } else { 0 };
            stage(share(10 * MS), share(20 * MS), layers * per_layer[0] + head, message(MS, 2 * 128 * 4096))
        })
        .collect();
    let rank = RankCost { update: Duration::from_nanos(MS), ..RankCost::default() };
    let inputs = Inputs::new(shape, Costs { stages, ranks: vec![rank; 4], ..Costs::default() }).unwrap();
    let plan = find("interleaved").unwrap();
    let plan = plan.plan(inputs.shape(), &Weights::unit(inputs.shape()), &Options::default()).unwrap();
    let outcome = simulate(&inputs, plan).unwrap();
    let makespan = outcome.summary.makespan.as_nanos();
    assert!(makespan.abs_diff(297_666_667) <= 64, "{makespan}");
    assert_eq!(peaks(&outcome), [1_394_053_120, 1_180_954_624, 940_039_168, 725_475_840]);
}

#[test]
fn the_short_way_gives_the_same_summary() {
    for schedule in ["fill-drain", "1f1b"] {
        assert_eq!(summary(&headline(), plan(schedule)).unwrap(), run(schedule).summary);
    }
}

#[test]
fn updates_start_when_all_gradients_or_the_own_ones_are_ready() {
    let all = run("1f1b");
    let at = |from, to| Interval { start: Time::from_nanos(from * MS), end: Time::from_nanos(to * MS) };
    assert_eq!(all.record.updates, [at(346, 347); 4]);
    let mut inputs = headline();
    inputs.update_after = pipestep_step::UpdateAfter::Own;
    let own = simulate(&inputs, plan("1f1b")).unwrap();
    assert_eq!(own.record.updates[3].end.as_nanos(), own.summary.ranks[3].last_end.as_nanos() + MS);
    assert!(own.record.updates[3].end < all.record.updates[3].end);
}
