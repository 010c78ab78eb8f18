//! Levels read off a run that kept no record against the ledgers that are read off one that did.

use pipestep_engine::{Bytes, NoCurve, NoRecord, Time, Totals};
use pipestep_schedule::{Orders, Plan, Rank, Shape, find};
use pipestep_step::{
    ACCOUNTS, Costs, Dataflow, Engine, FifoStep, Inputs, Levels, Links, MemoryCurve, MessageMode, RankCost,
    simulate,
};
use proptest::prelude::*;

use crate::cases::{any_step, message, orders, stage};

/// The instants at which the sum of all accounts changes, with what it is from then on.
fn totals(curve: &MemoryCurve) -> Vec<(Time, Bytes)> {
    let total = |accounts: &[Bytes; ACCOUNTS]| Bytes::new(accounts.iter().map(|bytes| bytes.get()).sum());
    without_repeats(curve.iter().map(|level| (level.at, total(&level.accounts))))
}

fn without_repeats(steps: impl Iterator<Item = (Time, Bytes)>) -> Vec<(Time, Bytes)> {
    let mut held = Bytes::ZERO;
    steps.filter(|&(_, bytes)| std::mem::replace(&mut held, bytes) != bytes).collect()
}

/// Every way of running a step gives the levels of the ledgers, and the same peaks without curves.
fn check(inputs: &Inputs, orders: &Orders) -> Result<(), TestCaseError> {
    let read = simulate(inputs, Plan::Fixed(orders.clone())).unwrap();
    let (mut engine, mut pass) = (Engine::new(), Dataflow::new());
    let (mut levels, mut peaks) = (Levels::<Totals>::new(), Levels::<NoCurve>::new());
    for how in [Some(MessageMode::Folded), None, Some(MessageMode::Events), None, Some(MessageMode::Folded)] {
        let nothing = (&mut NoRecord, &mut NoRecord);
        if let Some(how) = how {
            engine.run_with_levels(inputs, orders, how, nothing, &mut levels).unwrap();
            let nothing = (&mut NoRecord, &mut NoRecord);
            engine.run_with_levels(inputs, orders, how, nothing, &mut peaks).unwrap();
        } else if let Some(step) = FifoStep::new(inputs) {
            pass.run_with_levels(step, orders, nothing, &mut levels).unwrap();
            let nothing = (&mut NoRecord, &mut NoRecord);
            pass.run_with_levels(step, orders, nothing, &mut peaks).unwrap();
        }
        for (number, outcome) in read.summary.ranks.iter().enumerate() {
            let rank = Rank(number as u16);
            prop_assert_eq!(levels.peak(inputs, orders, rank), outcome.peak);
            prop_assert_eq!(peaks.peak(inputs, orders, rank), outcome.peak);
            let curve = without_repeats(levels.curve(rank).steps());
            prop_assert_eq!(curve, totals(&read.curves[number]));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn levels_without_a_record_are_those_of_ledgers((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        check(&inputs, &orders)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn many_micro_batches_and_links_of_any_speed_change_nothing(
        name in prop::sample::select(vec!["fill-drain", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v"]),
        ranks in 1_u64..5,
        stages in prop::collection::vec((1_u64..12, 1_u64..12, 0_u64..60), 8),
        links in prop::sample::select(vec![Links::Directional, Links::Shared, Links::Unlimited]),
    ) {
        let entry = find(name).unwrap().entry();
        let chunks = if name == "fill-drain" || name == "1f1b" || name == "zb-h1" { 1 } else { 2 };
        let shape = Shape::new(ranks, chunks, 60 * ranks, entry.placement).unwrap();
        let stage_of = |&(forward, backward, transfer)| stage(forward, backward, 70, message(transfer, 9));
        let costs = Costs {
            stages: stages[..shape.stages()].iter().map(stage_of).collect(),
            ranks: vec![RankCost::default(); shape.ranks()],
            ..Costs::default()
        };
        let mut inputs = Inputs::new(shape, costs).unwrap();
        inputs.links = links;
        if let Some(orders) = orders(name, &inputs) {
            check(&inputs, &orders)?;
        }
    }
}
