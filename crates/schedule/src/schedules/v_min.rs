//! V-Min: two chunks on a V, in about a third of the memory of 1F1B.

use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights, construct};

pub(crate) struct VMin;

pub(crate) const SCHEDULE: VMin = VMin;

const ENTRY: Entry = Entry {
    name: "v-min",
    aliases: &[],
    summary: "a third of the memory of 1F1B; sensitive to unequal passes",
    source: "Controllable Memory (Qi et al. 2024, arXiv:2405.15362), section 3; search of our own",
    constraints: "two chunks; any number of micro-batches",
    memory: "floor((p+4)/3)",
    bubble: "6p-1-6 floor((p+4)/3) passes of one chunk for equal passes and m >= p",
    placement: Placement::V,
    chunks: Chunks::Exactly(2),
    splits_backward: true,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| 2 * ((shape.ranks() as u64 + 4) / 3),
};

impl Schedule for VMin {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        construct::v_shaped(&ENTRY, 150_000, shape, weights)
    }
}
