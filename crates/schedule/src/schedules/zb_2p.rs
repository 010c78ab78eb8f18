//! ZB-2p: the shortest split-backward order found in twice the memory of 1F1B, for the costs at hand.

use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights, construct};

pub(crate) struct Zb2p;

pub(crate) const SCHEDULE: Zb2p = Zb2p;

const ENTRY: Entry = Entry {
    name: "zb-2p",
    aliases: &["zb2p"],
    summary: "chosen by cost under a limit of 2p micro-batches: next to no bubble, even with transfers",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), section 3; search of our own",
    constraints: "one chunk; any number of micro-batches",
    memory: "2p micro-batches of saved bytes, with what I frees counted",
    bubble: "by search; near 0 for long steps",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: true,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| 2 * shape.ranks() as u64,
};

impl Schedule for Zb2p {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// The limit counts saved bytes as the ledger does, so it depends on what `I` frees; the paper's figures hold
    /// for a half.
    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        construct::one_chunk(&ENTRY, 1_200_000, shape, weights)
    }
}
