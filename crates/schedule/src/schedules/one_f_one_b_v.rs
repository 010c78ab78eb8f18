//! 1F1B-V: two chunks on a V with a whole backward, in about two thirds of the memory of 1F1B.

use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights, construct};

pub(crate) struct OneForwardOneBackwardV;

pub(crate) const SCHEDULE: OneForwardOneBackwardV = OneForwardOneBackwardV;

const ENTRY: Entry = Entry {
    name: "1f1b-v",
    aliases: &["one-f-one-b-v"],
    summary: "two thirds of the memory of 1F1B without splitting the backward",
    source: "Controllable Memory (Qi et al. 2024, arXiv:2405.15362), section 4; search of our own",
    constraints: "two chunks; any number of micro-batches",
    memory: "floor(4(p+1)/3)/2",
    bubble: "by search; about 5(p-1) passes of one chunk for equal passes",
    placement: Placement::V,
    chunks: Chunks::Exactly(2),
    splits_backward: false,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| stages_held(shape),
};

impl Schedule for OneForwardOneBackwardV {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        construct::v_shaped(&ENTRY, 240_000, shape, weights)
    }
}

/// With whole backwards a repeating block moves on by a forward's length down and up, and by three times that on its
/// way back, through two chunks each.
const fn stages_held(shape: &Shape) -> u64 {
    4 * (shape.ranks() as u64 + 1) / 3
}
