//! ZB-V by cost: two chunks on a V, no bubble for equal passes, in the memory of 1F1B.

use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights, construct};

pub(crate) struct ZbVAuto;

pub(crate) const SCHEDULE: ZbVAuto = ZbVAuto;

const ENTRY: Entry = Entry {
    name: "zb-v-auto",
    aliases: &["zbv-auto"],
    summary: "ZB-V ordered for the costs at hand: the memory of 1F1B and next to no bubble",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), section 6; search of our own",
    constraints: "two chunks; any number of micro-batches",
    memory: "p",
    bubble: "by search; 0 for equal passes and m >= 2p",
    placement: Placement::V,
    chunks: Chunks::Exactly(2),
    splits_backward: true,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| 2 * shape.ranks() as u64,
};

impl Schedule for ZbVAuto {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        construct::v_shaped(&ENTRY, 150_000, shape, weights)
    }
}
