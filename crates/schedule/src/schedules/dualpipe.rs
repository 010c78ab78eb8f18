//! DualPipe: two copies of the model run in opposite directions, and their passes overlap in pairs.

use super::dualpipe_v::{Side, list};
use crate::{Chunks, Entry, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct DualPipe;

pub(crate) const SCHEDULE: DualPipe = DualPipe;

const ENTRY: Entry = Entry {
    name: "dualpipe",
    aliases: &[],
    summary: "bidirectional: micro-batches enter at both ends, forwards and backwards overlap; two copies of the weights",
    source: "DeepSeek-V3 (DeepSeek-AI 2024, arXiv:2412.19437), section 3.2.1; deepseek-ai/DualPipe",
    constraints: "one chunk of each copy; p and m even, m >= 2p",
    memory: "p + 1",
    bubble: "(p/2-1)(FB+B-3W)",
    placement: Placement::Bidirectional,
    chunks: Chunks::Exactly(1),
    splits_backward: true,
    uses_weights: false,
    torch: None,
    options: &[],
    peak: |shape, _| shape.ranks() as u64 + 1,
};

impl Schedule for DualPipe {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// Ranks r and p-1-r run the list that DualPipeV gives the rank at that distance from the end, for half of
    /// the ranks and of the micro-batches; its near side is the copy that enters at the nearer end.
    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, m) = (shape.ranks(), shape.micro_batches());
        if !p.is_multiple_of(2) || m < 2 * p {
            return Err(Refusal::Shape {
                schedule: ENTRY.name,
                expected: "needs an even number of ranks and micro_batches >= 2 * ranks".into(),
                found: format!("ranks = {p}, micro_batches = {m}"),
            });
        }
        let half = m as u32 / 2;
        let mut orders = Orders::with_capacity(p, 2 * shape.stages() * m);
        for rank in 0..p {
            let from_end = rank.min(p - 1 - rank);
            // The first copy's stage here is `rank`; the second copy's is its mirror image behind the first p.
            let (first, second) = ((rank, 0), (2 * p - 1 - rank, half));
            let (near, far) = if rank < p / 2 { (first, second) } else { (second, first) };
            let steps = list(p / 2, from_end, m / 2).into_iter();
            orders.push_list(steps.map(|step| {
                let (stage, offset) = if step.side == Side::Near { near } else { far };
                step.on(stage, offset)
            }));
        }
        Ok(Plan::Fixed(orders))
    }
}
