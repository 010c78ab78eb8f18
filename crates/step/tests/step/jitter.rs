//! Scattered lengths: no scatter changes nothing, runs stand on their own, both ways of running them agree.

use pipestep_engine::{Bytes, Duration, Time};
use pipestep_schedule::{Options, Orders, Plan, Shape, find};
use pipestep_step::{
    Chosen, Costs, CriticalPath, Inputs, Jitter, LinkScatter, Links, Message, Outcome, RankCost, Replicas,
    Scatter, SideBySide, StageCost, StepError, UpdateAfter, idle_intervals, simulate, summary,
};
use proptest::prelude::*;

fn inputs(schedule: &str, ranks: u64, chunks: u64, micro_batches: u64, length: u64) -> Inputs {
    let placement = find(schedule).expect("it is in the registry").entry().placement;
    let shape = Shape::new(ranks, chunks, micro_batches, placement).expect("small");
    let nanos = Duration::from_nanos;
    let message = Message { time: nanos(length / 3), bytes: Bytes::ZERO };
    let stage = StageCost {
        forward: nanos(length),
        backward: nanos(2 * length),
        input_gradient: nanos(length),
        weight_gradient: nanos(length),
        layers: 1,
        activation: message,
        gradient: message,
        ..StageCost::default()
    };
    let rank = RankCost { update: nanos(length / 2), ..RankCost::default() };
    let costs = Costs {
        stages: vec![stage; shape.stages()],
        ranks: vec![rank; shape.ranks()],
        setup: nanos(7),
        ..Costs::default()
    };
    Inputs::new(shape, costs).expect("small")
}

fn orders(schedule: &str, inputs: &Inputs) -> Orders {
    let weights = inputs.costs().weights(inputs.shape(), None);
    let plan = find(schedule).expect("it is there").plan(inputs.shape(), &weights, &Options::default());
    match plan.expect("it takes the shape") {
        Plan::Fixed(orders) => orders,
        Plan::Online(_) => unreachable!("the schedules here are fixed"),
    }
}

fn jitter(ranks: usize, all: &Scatter, seed: u64) -> Jitter {
    let by_rank = || vec![all.clone(); ranks];
    let link = || LinkScatter { boundaries: vec![all.clone(); ranks - 1], others: all.clone() };
    Jitter {
        forward: by_rank(),
        backward: by_rank(),
        input_gradient: by_rank(),
        weight_gradient: by_rank(),
        update: by_rank(),
        activation: link(),
        gradient: link(),
        runs: 1,
        seed,
    }
}

fn makespans(inputs: &Inputs, jitter: &Jitter, orders: &Orders, runs: std::ops::Range<u64>) -> Vec<Time> {
    let replicas = Replicas::new(inputs, jitter).expect("the lists fit");
    replicas.of_orders(orders, runs).expect("it runs")
}

const NORMAL: Scatter = Scatter::Normal { mean: 1.0, deviation: 0.3 };

#[test]
fn without_scatter_every_run_is_the_usual_one() {
    for (schedule, chunks) in [("1f1b", 1), ("interleaved", 2), ("zb-h1", 1), ("dualpipe-v", 2)] {
        let inputs = inputs(schedule, 4, chunks, 8, 1_000);
        let orders = orders(schedule, &inputs);
        let usual = summary(&inputs, Plan::Fixed(orders.clone())).expect("it runs").makespan;
        assert_eq!(makespans(&inputs, &jitter(4, &Scatter::NONE, 1), &orders, 0..11), [usual; 11]);
    }
}

#[test]
fn a_policy_meets_the_same_lengths_as_its_orders() {
    // The policy that keeps to fixed orders.
    let inputs = inputs("1f1b", 4, 1, 8, 1_000);
    let (orders, jitter) = (orders("1f1b", &inputs), jitter(4, &NORMAL, 3));
    let replicas = Replicas::new(&inputs, &jitter).expect("the lists fit");
    for (run, makespan) in (0..).zip(makespans(&inputs, &jitter, &orders, 0..9)) {
        let policy = Box::new(pipestep_schedule::InOrder::new(&orders));
        assert_eq!(replicas.of_policy(policy, run).expect("it runs"), makespan);
    }
}

#[test]
fn a_single_rank_takes_the_sum_of_its_draws() {
    let inputs = inputs("1f1b", 1, 1, 100, 1_000_000);
    let orders = orders("1f1b", &inputs);
    let all = makespans(&inputs, &jitter(1, &NORMAL, 5), &orders, 0..4_000);
    let nanos: Vec<f64> = all.iter().map(|makespan| makespan.as_nanos() as f64).collect();
    let mean = nanos.iter().sum::<f64>() / nanos.len() as f64;
    let square = nanos.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / (nanos.len() - 1) as f64;
    // 100 forwards of 1 ms, 100 backwards of 2 ms, an update of half a ms, each with a deviation of 0.3 of itself;
    // cutting at zero happens once in 2,000 draws and moves the mean by less than 1 in 10,000.
    let variance = 0.09 * (100.0 * 1e12 + 100.0 * 4e12 + 0.25e12);
    let error = (variance / nanos.len() as f64).sqrt();
    assert!((mean - 300.5e6).abs() < 4.0 * error + 3e4, "{mean} ± {error}");
    assert!((square / variance - 1.0).abs() < 0.1, "{square} against {variance}");
}

#[test]
fn empirical_factors_are_those_of_the_list_and_fixed_ones_scale() {
    let inputs = inputs("1f1b", 1, 1, 1, 1_000);
    let orders = orders("1f1b", &inputs);
    let twice = makespans(&inputs, &jitter(1, &Scatter::Fixed(2.0), 0), &orders, 0..3);
    assert_eq!(twice, [Time::from_nanos(7 + 2_000 + 4_000 + 1_000); 3]);
    let list = Scatter::Empirical([1.0, 3.0].into());
    let mut found = makespans(&inputs, &jitter(1, &list, 0), &orders, 0..200);
    found.sort_unstable();
    found.dedup();
    let sums = [1, 3].map(|f| [1, 3].map(|b| [1, 3].map(|u| 7 + 1_000 * f + 2_000 * b + 500 * u)));
    let mut sums: Vec<u64> = sums.into_iter().flatten().flatten().collect();
    sums.sort_unstable();
    assert_eq!(found.iter().map(|makespan| makespan.as_nanos()).collect::<Vec<_>>(), sums);
}

#[test]
fn lengths_without_end_are_refused() {
    let inputs = inputs("1f1b", 2, 1, 2, 1_000);
    let orders = orders("1f1b", &inputs);
    let huge = jitter(2, &Scatter::Fixed(1e18), 0);
    let refused = Replicas::new(&inputs, &huge).expect("the lists fit").of_orders(&orders, 0..9);
    assert!(matches!(refused, Err(StepError::Overflow(_))), "{refused:?}");
    let short = jitter(3, &NORMAL, 0);
    assert!(Replicas::new(&inputs, &short).is_err());
}

#[test]
fn a_drawn_pair_that_is_too_long_is_refused_though_its_halves_take_no_time() {
    let whole = inputs("dualpipe", 2, 2, 8, 0);
    let mut costs = whole.costs().clone();
    costs.ranks.iter_mut().for_each(|rank| rank.overlapped_pair = Some(Duration::from_nanos(1 << 55)));
    let whole = whole.with_costs(costs).expect("the pairs themselves fit");
    let orders = orders("dualpipe", &whole);
    assert!(orders.all().iter().any(|op| op.paired));
    let jitter = jitter(2, &Scatter::Fixed(1e6), 1);
    let refused = Replicas::new(&whole, &jitter).expect("the lists fit").of_orders(&orders, 0..1);
    assert!(matches!(refused, Err(StepError::Overflow(_))), "{refused:?}");
}

/// Inputs whose lengths without scatter add up to `sum` ns: nearly all of it is set-up, so that every instant is late.
fn inputs_of_sum(sum: u64) -> Inputs {
    let inputs = inputs("1f1b", 4, 1, 8, 1_001);
    let mut costs = inputs.costs().clone();
    // F, B, I and W of each stage, activations and gradients of each boundary, updates.
    let lengths = 8 * (4 * (1_001 + 2_002 + 1_001 + 1_001) + 2 * 3 * 333) + 4 * 500;
    costs.setup = Duration::from_nanos(sum - lengths);
    inputs.with_costs(costs).expect("it fits 63 bits")
}

#[test]
fn lengths_go_side_by_side_up_to_the_last_whole_number() {
    for (sum, fits) in [((1 << 53) - 1, true), (1 << 53, false)] {
        let inputs = inputs_of_sum(sum);
        let orders = orders("1f1b", &inputs);
        let jitter = jitter(4, &Scatter::NONE, 0);
        let replicas = Replicas::new(&inputs, &jitter).expect("the lists fit");
        let mut eight = SideBySide::new(replicas, &orders).expect("it runs").expect("it needs no clock");
        assert_eq!(eight.run(), None, "nothing is drawn yet");
        eight.draw(0);
        let usual = summary(&inputs, Plan::Fixed(orders.clone())).expect("it runs").makespan;
        assert_eq!(eight.run(), fits.then_some([usual; SideBySide::LANES]));
        assert_eq!(makespans(&inputs, &jitter, &orders, 0..9), [usual; 9]);
    }
}

#[test]
fn what_cannot_go_side_by_side_is_told_before_and_after_the_draw() {
    let plain = inputs("dualpipe-v", 4, 2, 8, 1_000);
    let (orders, none) = (orders("dualpipe-v", &plain), jitter(4, &Scatter::NONE, 0));
    let ready = |inputs: &Inputs| {
        let replicas = Replicas::new(inputs, &none).expect("the lists fit");
        SideBySide::new(replicas, &orders).expect("it runs").is_some()
    };
    assert!(ready(&plain));
    let mut shared = plain.clone();
    shared.links = Links::Shared;
    assert!(!ready(&shared), "two ranks send on one link");
    let mut costs = plain.costs().clone();
    costs.ranks[2].overlapped_pair = Some(Duration::from_nanos(1_500));
    let mut pairs = plain.with_costs(costs).expect("small");
    pairs.links = Links::Unlimited;
    assert!(!ready(&pairs), "pairs run as one");
    // Half of all lengths are cut to nothing.
    let half = jitter(4, &Scatter::Normal { mean: 0.0, deviation: 1.0 }, 1);
    for (links, fits) in [(Links::Directional, false), (Links::Unlimited, true)] {
        let mut inputs = plain.clone();
        inputs.links = links;
        let replicas = Replicas::new(&inputs, &half).expect("the lists fit");
        let mut eight = SideBySide::new(replicas, &orders).expect("it runs").expect("without the draws");
        eight.draw(0);
        assert_eq!(eight.run().is_some(), fits, "{links:?}");
    }
    let lists = pipestep_schedule::Orders::from_lists([[]; 4]);
    let replicas = Replicas::new(&plain, &none).expect("the lists fit");
    assert!(matches!(SideBySide::new(replicas, &lists), Err(StepError::Order(_))));
}

/// One run in full.
fn in_full(inputs: &Inputs, jitter: &Jitter, schedule: &str, run: u64) -> (Inputs, Outcome) {
    let weights = inputs.costs().weights(inputs.shape(), None);
    let plan = find(schedule).expect("it is there").plan(inputs.shape(), &weights, &Options::default());
    let replicas = Replicas::new(inputs, jitter).expect("its lists are right");
    replicas.outcome(plan.expect("it takes the shape"), run).expect("it runs")
}

#[test]
fn a_run_in_full_is_the_run_that_is_counted() {
    let scatter = Scatter::Lognormal { mean: 1.0, variation: 0.5 };
    for (schedule, chunks) in [("1f1b", 1), ("zb-v", 2), ("interleaved", 2), ("dualpipe-v", 2), ("greedy", 1)]
    {
        for links in [Links::Directional, Links::Shared, Links::Unlimited] {
            let mut inputs = inputs(schedule, 4, chunks, 8, 1_000);
            inputs.links = links;
            let jitter = jitter(4, &scatter, 5);
            for run in 0..3 {
                let (drawn, outcome) = in_full(&inputs, &jitter, schedule, run);
                let replicas = Replicas::new(&inputs, &jitter).expect("its lists are right");
                let again = replicas.of_orders(&outcome.record.orders, run..run + 1).expect("it runs");
                assert_eq!(again, [outcome.summary.makespan], "{schedule}, {links:?}, run {run}");
                // What explains it adds up: every idle nanosecond has a cause, the path fills the makespan.
                let chosen = if schedule == "greedy" { Chosen::Online } else { Chosen::Before };
                let idle = idle_intervals(&drawn, &outcome.record, chosen);
                let of_rank = |rank: usize| idle.iter().filter(move |gap| gap.rank.index() == rank);
                for (rank, known) in outcome.summary.ranks.iter().enumerate() {
                    let sum: u64 = of_rank(rank).map(|gap| gap.interval.length().as_nanos()).sum();
                    assert_eq!(sum, known.idle.as_nanos(), "{schedule}, rank {rank}");
                }
                let path = CriticalPath::new(&drawn, &outcome.record);
                let sum: u64 = path.steps.iter().map(|step| step.interval.length().as_nanos()).sum();
                assert_eq!(sum, outcome.summary.makespan.as_nanos(), "{schedule}");
            }
        }
    }
}

#[test]
fn without_scatter_a_run_in_full_is_the_step() {
    let inputs = inputs("zb-h1", 4, 1, 8, 1_000);
    let (drawn, outcome) = in_full(&inputs, &jitter(4, &Scatter::NONE, 1), "zb-h1", 9);
    let plain = simulate(&inputs, Plan::Fixed(orders("zb-h1", &inputs))).expect("it runs");
    assert_eq!((outcome, drawn.costs()), (plain, inputs.costs()));
}

/// Every placement, and schedules of one, two and three kinds of backward, with their chunks.
const SCHEDULES: [(&str, u64); 9] = [
    ("1f1b", 1),
    ("fill-drain", 1),
    ("interleaved", 3),
    ("zb-h1", 1),
    ("zb-h2", 1),
    ("zb-v", 2),
    ("1f1b-v", 2),
    ("dualpipe-v", 2),
    ("dualpipe", 2),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Each of eight runs side by side is what events make of it, up to sums that fill an `f64`.
    #[test]
    fn every_lane_is_a_run_of_events(
        (schedule, chunks) in prop::sample::select(SCHEDULES.to_vec()),
        half in 1_u64..4,
        rounds in 1_u64..4,
        length in 500_u64..2_000,
        late: bool,
        unequal: bool,
        unlimited: bool,
        own: bool,
        seed: u64,
        first in 0_u64..1_000,
    ) {
        let ranks = 2 * half;
        let plain = inputs(schedule, ranks, chunks, 2 * ranks * rounds, length);
        let mut costs = plain.costs().clone();
        for (stage, cost) in costs.stages.iter_mut().enumerate() {
            // Slow links here and there, so that messages queue.
            let time = Duration::from_nanos(length * (1 + stage as u64 % 3));
            cost.activation.time = time;
            cost.gradient.time = time;
        }
        if late {
            costs.setup = Duration::from_nanos((1 << 53) - (1 << 40));
        }
        if unequal {
            costs.micro_batch_scale = (0..2 * ranks * rounds).map(|i| (3 + i % 5, 4)).collect();
        }
        let mut inputs = plain.with_costs(costs).expect("it fits 63 bits");
        inputs.links = if unlimited { Links::Unlimited } else { Links::Directional };
        inputs.update_after = if own { UpdateAfter::Own } else { UpdateAfter::All };
        let orders = orders(schedule, &inputs);
        let jitter = jitter(ranks as usize, &Scatter::Lognormal { mean: 1.0, variation: 0.5 }, seed);
        let replicas = Replicas::new(&inputs, &jitter).expect("the lists fit");
        let mut eight = SideBySide::new(replicas, &orders).expect("it runs").expect("it needs no clock");
        eight.draw(first);
        let together = eight.run().expect("every operation takes time");
        prop_assert_eq!(&together[..], makespans(&inputs, &jitter, &orders, first..first + 8));
        for (run, &makespan) in (first..).zip(&together) {
            let policy = Box::new(pipestep_schedule::InOrder::new(&orders));
            prop_assert_eq!(replicas.of_policy(policy, run).expect("it runs"), makespan);
            prop_assert_eq!(makespans(&inputs, &jitter, &orders, run..run + 1), [makespan]);
        }
    }

    /// Runs side by side, one by one, and as events are the same; messages that are cut to nothing included.
    #[test]
    fn a_run_is_the_same_in_whatever_company(
        (schedule, chunks) in prop::sample::select(vec![("1f1b", 1), ("fill-drain", 1), ("interleaved", 2), ("zb-h1", 1), ("zb-v", 2), ("dualpipe-v", 2)]),
        ranks in 1_u64..5,
        rounds in 2_u64..4,
        length in 1_u64..40,
        deviation in 0.0..1.5,
        seed: u64,
        own: bool,
        pair in prop::option::of(1_u64..80),
        links in prop::sample::select(vec![Links::Directional, Links::Unlimited, Links::Shared]),
    ) {
        let plain = inputs(schedule, ranks, chunks, 2 * ranks * rounds, length);
        let mut costs = plain.costs().clone();
        for rank in &mut costs.ranks {
            rank.overlapped_pair = pair.map(Duration::from_nanos);
        }
        let mut inputs = Inputs::new(plain.shape().clone(), costs).expect("small");
        inputs.links = links;
        inputs.update_after = if own { UpdateAfter::Own } else { UpdateAfter::All };
        let orders = orders(schedule, &inputs);
        let jitter = jitter(ranks as usize, &Scatter::Normal { mean: 1.0, deviation }, seed);
        let together = makespans(&inputs, &jitter, &orders, 3..14);
        for (run, &makespan) in (3..).zip(&together) {
            prop_assert_eq!(makespans(&inputs, &jitter, &orders, run..run + 1), [makespan]);
            let replicas = Replicas::new(&inputs, &jitter).expect("the lists fit");
            let policy = Box::new(pipestep_schedule::InOrder::new(&orders));
            prop_assert_eq!(replicas.of_policy(policy, run).expect("it runs"), makespan);
        }
    }
}
