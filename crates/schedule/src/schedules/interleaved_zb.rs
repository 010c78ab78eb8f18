//! Interleaved zero bubble: interleaved 1F1B with a split backward and a shorter warm-up.

use super::interleaved::{Walk, round_size};
use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct InterleavedZb;

pub(crate) const SCHEDULE: InterleavedZb = InterleavedZb;

const ENTRY: Entry = Entry {
    name: "interleaved-zb",
    aliases: &["interleaved-zero-bubble"],
    summary: "interleaved 1F1B with a split backward: weight gradients lag one pass a rank and fill the end",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), ZB-H1 over chunks; order as in PyTorch",
    constraints: "any number of chunks; m a multiple of max(1, m div p)",
    memory: "p for p dividing m",
    bubble: "(p-1)(F+I-W)/v for m >= p",
    placement: Placement::Loop,
    chunks: Chunks::Any,
    splits_backward: true,
    uses_weights: false,
    torch: Some("InterleavedZeroBubble"),
    options: &[],
    peak: |shape, _| {
        let (p, v, m) = (shape.ranks(), shape.chunks(), shape.micro_batches());
        let group = m / (m / p).max(1);
        (m * v).min((v - 1) * group + p) as u64
    },
};

impl Schedule for InterleavedZb {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, v, m) = (shape.ranks() as u32, shape.chunks() as u32, shape.micro_batches() as u32);
        let group = round_size(ENTRY.name, p, m)?;
        let total = m * v;
        let mut orders = Orders::with_capacity(shape.ranks(), 3 * shape.stages() * shape.micro_batches());
        for rank in 0..p {
            let warm_up = total.min((v - 1) * group + (p - 1 - rank));
            let stage = |chunk| (chunk * p + rank) as u16;
            let backward_stage = |chunk| stage(v - 1 - chunk);
            let mut forwards = Walk::new(group, v).map(|(chunk, i)| Op::forward(stage(chunk), i));
            let mut gradients =
                Walk::new(group, v).map(|(chunk, i)| Op::input_gradient(backward_stage(chunk), i));
            let mut weights =
                Walk::new(group, v).map(|(chunk, i)| Op::weight_gradient(backward_stage(chunk), i));
            let mut list = Vec::with_capacity(3 * total as usize);
            list.extend(forwards.by_ref().take(warm_up as usize));
            for done in 0..total {
                if done < total - warm_up {
                    list.extend(forwards.next());
                }
                list.extend(gradients.next());
                if done >= rank {
                    list.extend(weights.next());
                }
            }
            list.extend(weights.take(total.min(rank) as usize));
            orders.push_list(list);
        }
        Ok(Plan::Fixed(orders))
    }
}
