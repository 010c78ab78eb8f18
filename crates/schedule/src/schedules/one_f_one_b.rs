//! 1F1B: after a short warm-up each rank runs one forward and one backward in turn.

use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct OneForwardOneBackward;

pub(crate) const SCHEDULE: OneForwardOneBackward = OneForwardOneBackward;

const ENTRY: Entry = Entry {
    name: "1f1b",
    aliases: &["one-f-one-b", "pipedream-flush"],
    summary: "one forward, one backward in turn: the bubble of fill-drain with at most p micro-batches in flight",
    source: "PipeDream-Flush (Narayanan et al. 2020, arXiv:2006.09503); Megatron-LM (arXiv:2104.04473), section 2.2",
    constraints: "one chunk; any number of micro-batches (PyTorch's class needs m >= p)",
    memory: "min(m, p-r)",
    bubble: "(p-1)(F+B)",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: false,
    uses_weights: false,
    torch: Some("1F1B"),
    options: &[],
    peak: |shape, _| shape.ranks().min(shape.micro_batches()) as u64,
};

impl Schedule for OneForwardOneBackward {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, m) = (shape.ranks() as u32, shape.micro_batches() as u32);
        let mut orders = Orders::with_capacity(shape.ranks(), 2 * shape.stages() * shape.micro_batches());
        for stage in 0..p as u16 {
            // Enough forwards to cover the round trip to the last rank and back, and no more.
            let warm_up = m.min(p - 1 - u32::from(stage));
            let steady = (warm_up..m).flat_map(|i| [Op::forward(stage, i), Op::backward(stage, i - warm_up)]);
            let cool_down = (m - warm_up..m).map(|i| Op::backward(stage, i));
            orders.push_list((0..warm_up).map(|i| Op::forward(stage, i)).chain(steady).chain(cool_down));
        }
        Ok(Plan::Fixed(orders))
    }
}
