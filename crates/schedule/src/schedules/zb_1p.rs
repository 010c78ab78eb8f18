//! ZB-1p: the shortest split-backward order found in the memory of 1F1B, for the costs at hand.

use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights, construct};

pub(crate) struct Zb1p;

pub(crate) const SCHEDULE: Zb1p = Zb1p;

const ENTRY: Entry = Entry {
    name: "zb-1p",
    aliases: &["zb1p"],
    summary: "chosen by cost under a limit of p micro-batches: as short as ZB-H1 or shorter",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), section 3; search of our own",
    constraints: "one chunk; any number of micro-batches",
    memory: "p micro-batches of saved bytes, with what I frees counted",
    bubble: "by search; at most that of ZB-H1 where it fits",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: true,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| shape.ranks() as u64,
};

impl Schedule for Zb1p {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// The limit counts saved bytes as the ledger does, so it depends on what `I` frees; the paper's figures hold
    /// for a half.
    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        construct::one_chunk(&ENTRY, 100_000, shape, weights)
    }
}
