//! Fill-drain: all forwards, then all backwards.

use crate::{
    Chunks, Entry, Op, OptionSpec, Options, Orders, Placement, Plan, Rank, Refusal, Schedule, Shape, Weights,
};

pub(crate) struct FillDrain;

pub(crate) const SCHEDULE: FillDrain = FillDrain;

const ENTRY: Entry = Entry {
    name: "fill-drain",
    aliases: &["gpipe"],
    summary: "all forwards, then all backwards: simple, and holds every micro-batch at once",
    source: "GPipe (Huang et al. 2018, arXiv:1811.06965), section 2",
    constraints: "one chunk; any number of micro-batches",
    memory: "m",
    bubble: "(p-1)(F+B)",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: false,
    uses_weights: false,
    torch: Some("GPipe"),
    options: &[OptionSpec {
        name: "backward_order",
        meaning: "which micro-batch's backward comes first: the last one's (reverse) or the first one's (forward)",
        choices: &["reverse", "forward"],
        default: "reverse",
    }],
    peak: |shape, _| shape.micro_batches() as u64,
};

impl Schedule for FillDrain {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// Every backward comes after the last stage's last forward by the order itself: the last stage runs all
    /// its forwards first, and every other backward waits for a gradient that comes from there.
    fn plan(&self, shape: &Shape, _weights: &Weights, options: &Options) -> Result<Plan, Refusal> {
        let m = shape.micro_batches() as u32;
        let reverse = options.get("backward_order").unwrap_or(0) == 0;
        let mut orders = Orders::with_capacity(shape.ranks(), 2 * shape.stages() * shape.micro_batches());
        for Rank(stage) in (0..shape.ranks() as u16).map(Rank) {
            let backward = |i| Op::backward(stage, if reverse { m - 1 - i } else { i });
            orders.push_list((0..m).map(|i| Op::forward(stage, i)).chain((0..m).map(backward)));
        }
        Ok(Plan::Fixed(orders))
    }
}
