//! Rules that hold for any step.

use std::collections::BTreeMap;

use pipestep_engine::{Interval, NoRecord, Time, Timeline};
use pipestep_schedule::{Kind, Op, Plan, Rank, Stage};
use pipestep_step::{
    Account, Dataflow, FifoStep, Inputs, Links, MessageLog, MessageMode, Outcome, Record, run_orders,
    simulate, summary,
};
use proptest::prelude::*;

use crate::cases::{any_step, orders};

fn outcome(name: &str, inputs: &Inputs) -> Option<Outcome> {
    let orders = orders(name, inputs)?;
    Some(simulate(inputs, Plan::Fixed(orders)).expect("orders of the registry run"))
}

/// Where each (kind, stage, micro-batch) stands.
fn places(record: &Record) -> BTreeMap<(Kind, Stage, u32), usize> {
    let all = record.orders.all().iter().enumerate();
    all.map(|(place, op)| ((op.kind, op.stage, op.micro_batch.0), place)).collect()
}

/// The place of the operation whose result from another stage `op` needs.
fn producer(inputs: &Inputs, places: &BTreeMap<(Kind, Stage, u32), usize>, op: Op) -> Option<usize> {
    let mb = op.micro_batch.0;
    let found = |kind, stage| places.get(&(kind, stage, mb)).copied();
    match op.kind {
        Kind::Forward => inputs.shape().previous(op.stage).and_then(|stage| found(Kind::Forward, stage)),
        Kind::Backward | Kind::InputGradient => inputs
            .shape()
            .next(op.stage)
            .and_then(|stage| found(Kind::Backward, stage).or(found(Kind::InputGradient, stage))),
        Kind::WeightGradient => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_event_engine_and_the_clock_free_pass_agree((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let run = |how| {
            let (mut ops, mut sent) = (Timeline::new(orders.all().len()), MessageLog::new());
            let times = run_orders(&inputs, &orders, how, &mut ops, &mut sent).unwrap();
            (times, ops, sent.by_place(orders.all().len()))
        };
        let reference = run(MessageMode::Events);
        prop_assert_eq!(&run(MessageMode::Folded), &reference);
        let unrecorded = run_orders(&inputs, &orders, MessageMode::Events, &mut NoRecord, &mut NoRecord).unwrap();
        prop_assert_eq!(&unrecorded, &reference.0);
        if let Some(step) = FifoStep::new(&inputs) {
            let (mut ops, mut sent) = (Timeline::new(orders.all().len()), MessageLog::new());
            let times = Dataflow::new().run(step, &orders, &mut ops, &mut sent).unwrap();
            prop_assert_eq!((times, ops, sent.by_place(orders.all().len())), reference);
        } else {
            prop_assert!(inputs.links != Links::Unlimited);
        }
    }

    #[test]
    fn the_short_summary_equals_the_recorded_one((name, inputs) in any_step()) {
        let Some(orders) = orders(name, &inputs) else { return Ok(()) };
        let recorded = outcome(name, &inputs).expect("it has orders").summary;
        prop_assert_eq!(summary(&inputs, Plan::Fixed(orders)).unwrap(), recorded);
    }

    #[test]
    fn ranks_and_links_serve_one_at_a_time((name, inputs) in any_step()) {
        let Some(outcome) = outcome(name, &inputs) else { return Ok(()) };
        let record = &outcome.record;
        for rank in (0..inputs.shape().ranks() as u16).map(Rank) {
            let list = record.orders.range(rank);
            for pair in list.clone().collect::<Vec<_>>().windows(2) {
                let (before, after) = (record.ops.get(pair[0]), record.ops.get(pair[1]));
                let joined = record.orders.all()[pair[0]].paired && inputs.costs().ranks[rank.index()].overlapped_pair.is_some();
                let fine = if joined { before == after } else { before.end <= after.start };
                prop_assert!(fine, "{before:?} {after:?}");
            }
        }
        if inputs.links == Links::Unlimited {
            return Ok(());
        }
        let mut links: BTreeMap<(Rank, Rank), Vec<Interval>> = BTreeMap::new();
        for (place, &op) in record.orders.all().iter().enumerate() {
            if let Some((to, _)) = inputs.costs().message(inputs.shape(), op) {
                let ends = (inputs.shape().rank_of(op.stage), inputs.shape().rank_of(to));
                let link = if inputs.links == Links::Shared { (Rank(0), Rank(0)) } else { ends };
                links.entry(link).or_default().push(record.messages.get(place));
            }
        }
        for spans in links.values_mut() {
            spans.sort();
            prop_assert!(spans.windows(2).all(|pair| pair[0].end <= pair[1].start), "{spans:?}");
        }
    }

    #[test]
    fn nothing_starts_before_its_inputs_or_later_than_it_must((name, inputs) in any_step()) {
        let Some(outcome) = outcome(name, &inputs) else { return Ok(()) };
        let (record, costs) = (&outcome.record, inputs.costs());
        let places = places(record);
        for rank in (0..inputs.shape().ranks() as u16).map(Rank) {
            let mut free = Time::ZERO.after(costs.setup).unwrap();
            let list = record.orders.range(rank);
            let mut place = list.start;
            while place < list.end {
                let first = record.orders.all()[place];
                let joined = first.paired && costs.ranks[rank.index()].overlapped_pair.is_some();
                let parts = if joined { place..place + 2 } else { place..place + 1 };
                let mut earliest = free;
                for part in parts.clone() {
                    let op = record.orders.all()[part];
                    if let Some(from) = producer(&inputs, &places, op) {
                        let sent = record.messages.get(from);
                        let crossed = costs.message(inputs.shape(), record.orders.all()[from]).is_some();
                        let there = if crossed { sent.end } else { record.ops.get(from).end };
                        prop_assert!(!crossed || sent.start >= record.ops.get(from).end);
                        earliest = earliest.max(there);
                    }
                }
                for part in parts.clone() {
                    prop_assert_eq!(record.ops.get(part).start, earliest, "{} on rank {}", record.orders.all()[part], rank);
                    free = record.ops.get(part).end;
                }
                place = parts.end;
            }
        }
    }

    #[test]
    fn peaks_are_those_of_an_independent_sweep_over_intervals((name, inputs) in any_step()) {
        let Some(outcome) = outcome(name, &inputs) else { return Ok(()) };
        let record = &outcome.record;
        let intervals = held(&inputs, record);
        for (rank, peak) in outcome.summary.ranks.iter().map(|rank| rank.peak).enumerate() {
            let mine: Vec<_> = intervals.iter().filter(|held| held.0 == rank).collect();
            let level = |at: Time| mine.iter().filter(|(_, from, to, _)| *from <= at && at < *to).map(|held| held.3).sum::<i64>();
            // A level can rise where an interval starts, or where one of negative size ends.
            let highest = mine.iter().flat_map(|held| [level(held.1), level(held.2)]).max().unwrap_or(0);
            prop_assert_eq!(peak.bytes.get() as i64, highest.max(0));
            let curve = &outcome.curves[rank];
            let total = |index: usize| curve[index].accounts.iter().map(|bytes| bytes.get()).sum::<u64>();
            prop_assert_eq!((0..curve.len()).map(total).max().unwrap_or(0), peak.bytes.get());
            let last = curve.last().map(|level| level.accounts);
            let kept = |account: Account| last.map_or(0, |accounts| accounts[account as usize].get());
            for account in [Account::Activations, Account::Workspace, Account::SendBuffers, Account::ReceiveBuffers] {
                prop_assert_eq!(kept(account), 0, "{} is not drained", account.name());
            }
        }
    }

    #[test]
    fn transfers_never_make_a_step_shorter((name, inputs) in any_step()) {
        let Some(outcome) = outcome(name, &inputs) else { return Ok(()) };
        prop_assert!(outcome.summary.zero_transfer_makespan <= outcome.summary.makespan);
        let free = outcome_of_free_transfers(name, &inputs);
        prop_assert_eq!(free, outcome.summary.zero_transfer_makespan);
    }
}

/// The same orders on the event engine with messages of no length.
fn outcome_of_free_transfers(name: &str, inputs: &Inputs) -> Time {
    let orders = orders(name, inputs).unwrap();
    let free = inputs.with_free_transfers();
    run_orders(&free, &orders, MessageMode::Events, &mut NoRecord, &mut NoRecord).unwrap().makespan
}

/// Everything a step holds, as (rank, from, to, bytes), written down straight from the rules.
fn held(inputs: &Inputs, record: &Record) -> Vec<(usize, Time, Time, i64)> {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let places = places(record);
    let scaled = |bytes: u64, op: Op| costs.scaled(bytes, op.micro_batch) as i64;
    let mut held = Vec::new();
    for (rank, cost) in costs.ranks.iter().enumerate() {
        held.push((rank, Time::ZERO, Time::MAX, cost.held.weights.get() as i64));
    }
    for (place, &op) in record.orders.all().iter().enumerate() {
        let rank = shape.rank_of(op.stage).index();
        let cost = &costs.stages[op.stage.index()];
        let find = |kind| places.get(&(kind, op.stage, op.micro_batch.0)).map(|&place| record.ops.get(place));
        let ran = record.ops.get(place);
        match op.kind {
            Kind::Forward => {
                let saved = scaled(cost.saved.get(), op);
                let part = scaled(cost.released_at_input_gradient.unsigned_abs(), op)
                    * cost.released_at_input_gradient.signum();
                if let Some(backward) = find(Kind::Backward) {
                    held.push((rank, ran.start, backward.end, saved));
                } else {
                    let (input, weight) =
                        (find(Kind::InputGradient).unwrap(), find(Kind::WeightGradient).unwrap());
                    held.push((rank, ran.start, input.end, part));
                    held.push((rank, ran.start, weight.end, saved - part));
                }
            }
            Kind::Backward => held.push((rank, ran.start, ran.end, scaled(cost.workspace.get(), op))),
            Kind::InputGradient => {
                let end = find(Kind::WeightGradient).unwrap().end;
                held.push((rank, ran.start, end, scaled(cost.workspace.get(), op)));
            }
            Kind::WeightGradient => {}
        }
        if let Some((to, sent)) = costs.message(shape, op) {
            let on_link = record.messages.get(place);
            let bytes = sent.bytes.get() as i64;
            held.push((rank, ran.end, on_link.end, bytes));
            let consumer = match op.kind {
                Kind::Forward => places[&(Kind::Forward, to, op.micro_batch.0)],
                _ => places
                    .get(&(Kind::Backward, to, op.micro_batch.0))
                    .copied()
                    .unwrap_or_else(|| places[&(Kind::InputGradient, to, op.micro_batch.0)]),
            };
            held.push((shape.rank_of(to).index(), on_link.start, record.ops.get(consumer).start, bytes));
        }
    }
    held
}
