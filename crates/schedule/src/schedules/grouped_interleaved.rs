//! Grouped interleaving: interleaved 1F1B with a free number of micro-batches in a row on one chunk.

use super::interleaved::Walk;
use crate::deadlock;
use crate::{Chunks, Entry, Op, OptionSpec, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct GroupedInterleaved;

pub(crate) const SCHEDULE: GroupedInterleaved = GroupedInterleaved;

const ENTRY: Entry = Entry {
    name: "grouped-interleaved",
    aliases: &["llama3"],
    summary: "interleaved 1F1B with `group` micro-batches in a row: ranks = depth first, all of them = breadth first",
    source: "Llama 3 (Llama Team 2024, arXiv:2407.21783), section 3.3.2",
    constraints: "any number of chunks and micro-batches",
    memory: "min(m, ((v-1) group + 2(p-1) + 1)/v)",
    bubble: "(p-1)(F+B)/v for group >= p",
    placement: Placement::Loop,
    chunks: Chunks::Any,
    splits_backward: false,
    uses_weights: false,
    torch: None,
    options: &[OptionSpec {
        name: "group",
        meaning: "how many micro-batches run in a row on one chunk",
        choices: &[],
        default: "ranks",
    }],
    peak: |shape, options| {
        let (p, v, m) = (shape.ranks() as u64, shape.chunks() as u64, shape.micro_batches() as u64);
        (m * v).min((v - 1) * group_of(shape, options) + 2 * (p - 1) + 1)
    },
};

/// The size of a group: the option, or the number of ranks; no more than all micro-batches.
fn group_of(shape: &Shape, options: &Options) -> u64 {
    let group = options.get("group").unwrap_or(shape.ranks() as u64);
    group.clamp(1, shape.micro_batches() as u64)
}

impl Schedule for GroupedInterleaved {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// The warm-up is Megatron's with the group in place of the ranks. A last group may be smaller. Small groups
    /// come back before the first ranks' long warm-up is over: then it is cut to the longest that can run.
    fn plan(&self, shape: &Shape, _weights: &Weights, options: &Options) -> Result<Plan, Refusal> {
        if options.get("group") == Some(0) {
            return Err(Refusal::Shape {
                schedule: ENTRY.name,
                expected: "needs a group of at least one micro-batch".into(),
                found: "group = 0".into(),
            });
        }
        let group = group_of(shape, options) as u32;
        let ahead = 2 * group.min(shape.ranks() as u32);
        let runs = |&ahead: &u32| deadlock::check(&orders(shape, group, ahead), shape).is_ok();
        let divides = shape.micro_batches().is_multiple_of(group as usize);
        let ahead = if divides { ahead } else { (0..=ahead).rev().find(runs).unwrap_or(0) };
        Ok(Plan::Fixed(orders(shape, group, ahead)))
    }
}

/// The orders in which no rank's warm-up is more than `ahead` forwards longer than the last rank's.
fn orders(shape: &Shape, group: u32, ahead: u32) -> Orders {
    let (p, v, m) = (shape.ranks() as u32, shape.chunks() as u32, shape.micro_batches() as u32);
    let total = m * v;
    let mut orders = Orders::with_capacity(shape.ranks(), 2 * shape.stages() * shape.micro_batches());
    for rank in 0..p {
        let warm_up = total.min((v - 1) * group + ahead.min(2 * (p - 1 - rank)));
        let stage = |chunk| (chunk * p + rank) as u16;
        let walk = || walk(group, v, m);
        let mut forwards = walk().map(|(chunk, i)| Op::forward(stage(chunk), i));
        let mut backwards = walk().map(|(chunk, i)| Op::backward(stage(v - 1 - chunk), i));
        let mut list = Vec::with_capacity(2 * total as usize);
        list.extend(forwards.by_ref().take(warm_up as usize));
        for forward in forwards {
            list.push(forward);
            list.extend(backwards.next());
        }
        list.extend(backwards);
        orders.push_list(list);
    }
    orders
}

/// The walk over (chunk, micro-batch), its last group cut short where the groups do not divide m.
fn walk(group: u32, chunks: u32, micro_batches: u32) -> impl Iterator<Item = (u32, u32)> {
    let whole = micro_batches / group * group;
    let rest = micro_batches - whole;
    let last = Walk::new(rest.max(1), chunks).map(move |(chunk, i)| (chunk, whole + i));
    Walk::new(group, chunks).take((whole * chunks) as usize).chain(last.take((rest * chunks) as usize))
}
