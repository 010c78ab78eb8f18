//! ZB-V, the hand-made order: two chunks on a V with a split backward.

use crate::{Chunks, Entry, Kind, MicroBatch, Op, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Stage, Weights};

pub(crate) struct ZbV;

pub(crate) const SCHEDULE: ZbV = ZbV;

const ENTRY: Entry = Entry {
    name: "zb-v",
    aliases: &["zbv"],
    summary: "two chunks down and up the ranks, split backward: no bubble for equal passes in the memory of 1F1B",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), section 6; the hand-made order, as in PyTorch",
    constraints: "two chunks; any number of micro-batches",
    memory: "min(m, p)",
    bubble: "0 between a rank's first and last pass for F = I = W and m >= 2p-1",
    placement: Placement::V,
    chunks: Chunks::Exactly(2),
    splits_backward: true,
    uses_weights: false,
    torch: Some("ZBVZeroBubble"),
    options: &[],
    peak: |shape, _| 2 * shape.ranks().min(shape.micro_batches()) as u64,
};

impl Schedule for ZbV {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// The order is made for max(m, 2p-1) micro-batches; what is past the last one is left out.
    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, m) = (shape.ranks(), shape.micro_batches());
        let mut orders = Orders::with_capacity(p, 3 * shape.stages() * m);
        for rank in 0..p {
            let mut list = full_list(p, rank, m.max(2 * p - 1));
            list.retain(|op| op.micro_batch.index() < m);
            orders.push_list(list);
        }
        Ok(Plan::Fixed(orders))
    }
}

/// One of the two stages of a rank.
#[derive(Clone, Copy)]
enum Side {
    /// On the way down.
    Down,
    /// On the way up.
    Up,
}

/// A rank's list for at least 2p-1 micro-batches.
fn full_list(p: usize, rank: usize, m: usize) -> Vec<Op> {
    use Kind::{Forward as F, InputGradient as I, WeightGradient as W};
    use Side::{Down, Up};
    let mut list = Vec::with_capacity(6 * m);
    let mut next = [[0_u32; 4]; 2];
    let mut run = |kind: Kind, side: Side| {
        let stage = match side {
            Down => rank,
            Up => 2 * p - 1 - rank,
        };
        let count = &mut next[side as usize][kind as usize];
        if (*count as usize) < m {
            list.push(Op::new(kind, Stage(stage as u16), MicroBatch(*count)));
            *count += 1;
        }
    };
    let mut repeat = |times: usize, ops: &[(Kind, Side)]| {
        for _ in 0..times {
            for &(kind, side) in ops {
                run(kind, side);
            }
        }
    };
    repeat(2 * (p - rank) - 1, &[(F, Down)]);
    repeat(rank, &[(F, Up), (F, Down)]);
    repeat(p - rank, &[(F, Up), (I, Up), (W, Up)]);
    // Now p forwards are done on the way up and 2p - 1 - rank on the way down; once the latter are used up,
    // their place stays empty.
    repeat(m - p, &[(F, Down), (I, Down), (W, Down), (F, Up), (I, Up), (W, Up)]);
    repeat(rank, &[(I, Down), (I, Up)]);
    repeat(p - rank, &[(I, Down), (W, Down)]);
    repeat(m, &[(W, Up)]);
    repeat(m, &[(W, Down)]);
    list
}
