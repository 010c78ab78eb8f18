//! Every schedule of the registry, over random shapes and costs: complete, free of deadlock, within its bound.

use pipestep_schedule::{
    Chunks, Entry, Options, Orders, Plan, Shape, Weights, all, find, peaks, settle, time,
};
use proptest::prelude::*;

/// A number of chunks that a schedule takes, near `wish`.
fn chunks(entry: &Entry, wish: u64) -> u64 {
    match entry.chunks {
        Chunks::Exactly(count) => u64::from(count),
        Chunks::Any => wish,
        Chunks::Even => 2 * wish.div_ceil(2),
    }
}

/// Costs drawn from a list of numbers, the same saved bytes for all stages.
fn weights(shape: &Shape, draws: &[u64], released: i64) -> Weights {
    let pick = |salt: usize| {
        (0..shape.stages()).map(|stage| draws[(stage * 7 + salt * 13) % draws.len()]).collect::<Vec<u64>>()
    };
    let (input_gradient, weight_gradient) = (pick(1), pick(2));
    let backward = input_gradient.iter().zip(&weight_gradient).map(|(input, weight)| input + weight);
    Weights {
        forward: pick(0),
        backward: backward.collect(),
        activation: pick(3),
        gradient: pick(4),
        saved: vec![100; shape.stages()],
        released_at_input_gradient: vec![released; shape.stages()],
        limit: None,
        input_gradient,
        weight_gradient,
    }
}

fn orders_of(plan: Plan, shape: &Shape, weights: &Weights) -> Orders {
    match plan {
        Plan::Fixed(orders) => orders,
        Plan::Online(mut policy) => settle(policy.as_mut(), shape, weights),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn every_order_is_complete_runs_and_keeps_its_bound(
        ranks in 1_u64..9,
        micro_batches in 1_u64..20,
        wish in 1_u64..5,
        draws in prop::collection::vec(0_u64..1000, 1..12),
        released in 0_i64..=100,
        group in 1_u64..12,
    ) {
        for schedule in all() {
            let entry = schedule.entry();
            let micro_batches = micro_batches.div_ceil(shape_step(entry)) * shape_step(entry);
            let shape = Shape::new(ranks, chunks(entry, wish), micro_batches, entry.placement).unwrap();
            let weights = weights(&shape, &draws, released);
            let options = Options([("group".to_owned(), group)].into());
            let Ok(plan) = schedule.plan(&shape, &weights, &options) else {
                prop_assert!(!matches!(entry.name, "1f1b" | "fill-drain" | "zb-1p" | "v-min" | "greedy"));
                continue;
            };
            let orders = orders_of(plan, &shape, &weights);
            prop_assert_eq!(orders.validate(&shape), Ok(()), "{} {:?}", entry.name, &shape);
            let whole = Weights { released_at_input_gradient: vec![0; shape.stages()], ..weights.clone() };
            let counted = if entry.uses_weights { &weights } else { &whole };
            let bound = (entry.peak)(&shape, &options) as i64 * 100;
            let peak = peaks(&orders, &shape, counted).into_iter().max().unwrap();
            prop_assert!(peak <= bound, "{} {:?}: {} > {}", entry.name, shape, peak, bound);
        }
    }

    #[test]
    fn greedy_keeps_any_limit_and_never_deadlocks(
        ranks in 1_u64..7,
        micro_batches in 1_u64..16,
        chunks in 1_u64..4,
        draws in prop::collection::vec(0_u64..1000, 1..12),
        sizes in prop::collection::vec(0_u64..1000, 1..12),
        released in -300_i64..600,
        more in prop::collection::vec(0_u64..4000, 1..8),
    ) {
        let schedule = find("greedy").unwrap();
        let shape = Shape::new(ranks, chunks, micro_batches, schedule.entry().placement).unwrap();
        let mut weights = weights(&shape, &draws, 0);
        for stage in 0..shape.stages() {
            weights.saved[stage] = sizes[stage % sizes.len()];
            weights.released_at_input_gradient[stage] = released.min(weights.saved[stage] as i64);
        }
        let least = |rank: u64| -> u64 {
            let stages = (rank as usize..shape.stages()).step_by(ranks as usize);
            stages.map(|stage| weights.saved[stage] + released.min(0).unsigned_abs()).sum()
        };
        let limits: Vec<u64> = (0..ranks).map(|rank| least(rank) + more[rank as usize % more.len()]).collect();
        weights.limit = Some(limits.clone());
        let plan = schedule.plan(&shape, &weights, &Options::default()).unwrap();
        let orders = orders_of(plan, &shape, &weights);
        prop_assert_eq!(orders.validate(&shape), Ok(()));
        for (peak, limit) in peaks(&orders, &shape, &weights).into_iter().zip(limits) {
            prop_assert!(peak <= limit as i64, "{} > {}", peak, limit);
        }
    }

    #[test]
    fn constructions_keep_the_limit_when_stages_differ(
        ranks in 1_u64..7,
        micro_batches in 1_u64..14,
        draws in prop::collection::vec(0_u64..1000, 1..12),
        sizes in prop::collection::vec(1_u64..1000, 1..12),
    ) {
        for name in ["zb-1p", "zb-2p", "zb-v-auto", "v-half", "v-min", "1f1b-v"] {
            let schedule = find(name).unwrap();
            let entry = schedule.entry();
            let shape = Shape::new(ranks, chunks(entry, 1), micro_batches, entry.placement).unwrap();
            let mut weights = weights(&shape, &draws, 0);
            weights.saved = (0..shape.stages()).map(|stage| sizes[stage % sizes.len()]).collect();
            let plan = schedule.plan(&shape, &weights, &Options::default()).unwrap();
            let orders = orders_of(plan, &shape, &weights);
            prop_assert_eq!(orders.validate(&shape), Ok(()), "{}", name);
            let halves = (entry.peak)(&shape, &Options::default()) * if shape.chunks() == 1 { 2 } else { 1 };
            for (rank, peak) in peaks(&orders, &shape, &weights).into_iter().enumerate() {
                let stages = shape.stages_of(pipestep_schedule::Rank(rank as u16));
                let saved: u64 = stages.map(|stage| weights.saved[stage.index()]).sum();
                prop_assert!(peak as u64 <= saved * halves / 2, "{} rank {}", name, rank);
            }
        }
    }
}

/// What the number of micro-batches has to be a multiple of for the shape to exist.
fn shape_step(entry: &Entry) -> u64 {
    if entry.placement == pipestep_schedule::Placement::Bidirectional { 2 } else { 1 }
}

/// The interleaved pipeline's peak in the memory of 1F1B: ((v-1)p + 2(p-1) + 1)/v stage shares.
#[test]
fn interleaved_peaks_are_the_known_ones() {
    for (chunks, tenths) in [(5, 46), (10, 43)] {
        let shape = Shape::new(4, chunks, 16, pipestep_schedule::Placement::Loop).unwrap();
        let weights = Weights::unit(&shape);
        let plan = find("interleaved").unwrap().plan(&shape, &weights, &Options::default()).unwrap();
        let orders = orders_of(plan, &shape, &weights);
        let peak = time(&orders, &shape, &weights).unwrap().peaks.into_iter().max().unwrap();
        assert_eq!(10 * peak as u64, tenths * chunks);
    }
}

/// Two groupings with names of their own: ranks in a row is Megatron's order, all in a row goes breadth first.
#[test]
fn grouped_interleaving_contains_depth_and_breadth_first() {
    let shape = Shape::new(4, 3, 8, pipestep_schedule::Placement::Loop).unwrap();
    let weights = Weights::unit(&shape);
    let plan = |name: &str, options: &Options| {
        orders_of(find(name).unwrap().plan(&shape, &weights, options).unwrap(), &shape, &weights)
    };
    let depth_first = plan("grouped-interleaved", &Options::default());
    assert_eq!(depth_first, plan("interleaved", &Options::default()));
    let breadth_first = plan("grouped-interleaved", &Options([("group".into(), 8)].into()));
    let forwards: Vec<String> =
        breadth_first.rank(pipestep_schedule::Rank(0)).iter().take(17).map(ToString::to_string).collect();
    assert_eq!(forwards[..9].join(" "), "0F0 0F1 0F2 0F3 0F4 0F5 0F6 0F7 4F0");
    assert_eq!(forwards[16], "8F0");
}

/// Chimera's bubbles as in its paper: p - 2 passes where forwards and backwards are equally long, and p - 2
/// backwards where a backward takes two forwards; for 1F1B it is p - 1 of both.
#[test]
fn chimera_has_the_papers_bubble() {
    for p in [2_u64, 4, 6, 8, 16] {
        let schedule = find("chimera").unwrap();
        let shape = Shape::new(p, 1, p, schedule.entry().placement).unwrap();
        let mut weights = Weights::unit(&shape);
        let plan = schedule.plan(&shape, &weights, &Options::default()).unwrap();
        let orders = orders_of(plan, &shape, &weights);
        assert_eq!(time(&orders, &shape, &weights).unwrap().makespan, 3 * p + 2 * (p - 2), "p = {p}");
        weights.backward = vec![1; shape.stages()];
        assert_eq!(time(&orders, &shape, &weights).unwrap().makespan, 2 * p + p - 2, "p = {p}");
    }
}
