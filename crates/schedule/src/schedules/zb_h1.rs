//! ZB-H1: 1F1B with the backward split; `W`s fill the cool-down without more memory than 1F1B.

use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Rank, Refusal, Schedule, Shape, Weights};

pub(crate) struct ZbH1;

pub(crate) const SCHEDULE: ZbH1 = ZbH1;

const ENTRY: Entry = Entry {
    name: "zb-h1",
    aliases: &["zbh1"],
    summary: "1F1B with a split backward: weight gradients wait and fill the end, in the memory of 1F1B",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), section 2.3",
    constraints: "one chunk; any number of micro-batches",
    memory: "min(m, p)",
    bubble: "(p-1)(F+I-W)",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: true,
    uses_weights: false,
    torch: None,
    options: &[],
    peak: |shape, _| shape.ranks().min(shape.micro_batches()) as u64,
};

impl Schedule for ZbH1 {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        Ok(Plan::Fixed(handcrafted(shape, 1)))
    }
}

/// The orders of ZB-H1 (`k` = 1) and ZB-H2 (`k` = 2): `k` forwards for each rank further on, then one `F` and one
/// `I` in turn, each `W` as many micro-batches late as `k` ranks lie before.
pub(super) fn handcrafted(shape: &Shape, k: u32) -> Orders {
    let (p, m) = (shape.ranks() as u32, shape.micro_batches() as u32);
    let mut orders = Orders::with_capacity(shape.ranks(), 3 * shape.stages() * shape.micro_batches());
    for Rank(rank) in (0..shape.ranks() as u16).map(Rank) {
        let warm_up = m.min(k.saturating_mul(p - 1 - u32::from(rank)));
        let late = k.saturating_mul(u32::from(rank));
        let mut list = Vec::with_capacity(3 * m as usize);
        list.extend((0..warm_up).map(|i| Op::forward(rank, i)));
        for i in 0..m {
            list.extend((warm_up + i < m).then(|| Op::forward(rank, warm_up + i)));
            list.push(Op::input_gradient(rank, i));
            list.extend((i >= late).then(|| Op::weight_gradient(rank, i - late)));
        }
        list.extend((m.saturating_sub(late)..m).map(|i| Op::weight_gradient(rank, i)));
        orders.push_list(list);
    }
    orders
}
