//! Levels kept while a step runs against the ledgers that are read off its record.

use pipestep_engine::{Bytes, NoRecord, Time, Totals};
use pipestep_schedule::{Plan, Rank};
use pipestep_step::{ACCOUNTS, Engine, Levels, MemoryCurve, MessageMode, simulate};
use proptest::prelude::*;

use crate::cases::{any_step, orders};

/// The instants at which the sum of all accounts changes, with what it is from then on.
fn totals(curve: &MemoryCurve) -> Vec<(Time, Bytes)> {
    let total = |accounts: &[Bytes; ACCOUNTS]| Bytes::new(accounts.iter().map(|bytes| bytes.get()).sum());
    without_repeats(curve.iter().map(|level| (level.at, total(&level.accounts))))
}

fn without_repeats(steps: impl Iterator<Item = (Time, Bytes)>) -> Vec<(Time, Bytes)> {
    let mut held = Bytes::ZERO;
    steps.filter(|&(_, bytes)| std::mem::replace(&mut held, bytes) != bytes).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn levels_kept_at_once_are_those_of_ledgers_read_later((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let read = simulate(&inputs, Plan::Fixed(orders.clone())).unwrap();
        let (mut engine, mut levels) = (Engine::new(), Levels::<Totals>::new());
        for how in [MessageMode::Folded, MessageMode::Events, MessageMode::Folded] {
            engine.run_with_levels(&inputs, &orders, how, (&mut NoRecord, &mut NoRecord), &mut levels).unwrap();
            for (number, outcome) in read.summary.ranks.iter().enumerate() {
                let rank = Rank(number as u16);
                prop_assert_eq!(levels.peak(&inputs, &orders, rank), outcome.peak);
                let curve = without_repeats(levels.curve(rank).steps());
                prop_assert_eq!(curve, totals(&read.curves[number]));
            }
        }
    }
}
