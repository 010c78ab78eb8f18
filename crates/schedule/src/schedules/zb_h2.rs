//! ZB-H2: ZB-H1 with twice the forwards in flight, so that nothing is left of the bubble for equal passes.

use super::zb_h1::handcrafted;
use crate::{Chunks, Entry, Options, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct ZbH2;

pub(crate) const SCHEDULE: ZbH2 = ZbH2;

const ENTRY: Entry = Entry {
    name: "zb-h2",
    aliases: &["zbh2"],
    summary: "ZB-H1 with more forwards first: no bubble for equal passes, twice the memory of 1F1B",
    source: "Zero Bubble (Qi et al. 2023, arXiv:2401.10241), sections 2.2 and 2.3",
    constraints: "one chunk; any number of micro-batches",
    memory: "min(m, 2p-1)",
    bubble: "(p-1)(F+I-2W)",
    placement: Placement::Loop,
    chunks: Chunks::Exactly(1),
    splits_backward: true,
    uses_weights: false,
    torch: None,
    options: &[],
    peak: |shape, _| (2 * shape.ranks() - 1).min(shape.micro_batches()) as u64,
};

impl Schedule for ZbH2 {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        Ok(Plan::Fixed(handcrafted(shape, 2)))
    }
}
