//! Looped BFS: all micro-batches through one chunk after the other, breadth first.

use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Rank, Refusal, Schedule, Shape, Weights};

pub(crate) struct LoopedBfs;

pub(crate) const SCHEDULE: LoopedBfs = LoopedBfs;

const ENTRY: Entry = Entry {
    name: "looped-bfs",
    aliases: &["breadth-first"],
    summary: "all micro-batches through a chunk before the next chunk: fill-drain over several chunks a rank",
    source: "Breadth-First Pipeline Parallelism (Lamy-Poirier 2022, arXiv:2211.05953); order as in PyTorch",
    constraints: "any number of chunks and micro-batches",
    memory: "m",
    bubble: "(p-1)(F+B)/v for m >= p",
    placement: Placement::Loop,
    chunks: Chunks::Any,
    splits_backward: false,
    uses_weights: false,
    torch: Some("LoopedBFS"),
    options: &[],
    peak: |shape, _| (shape.micro_batches() * shape.chunks()) as u64,
};

impl Schedule for LoopedBfs {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let m = shape.micro_batches() as u32;
        let mut orders = Orders::with_capacity(shape.ranks(), 2 * shape.stages() * shape.micro_batches());
        for rank in (0..shape.ranks() as u16).map(Rank) {
            let stages: Vec<u16> = shape.stages_of(rank).map(|stage| stage.0).collect();
            let forwards = stages.iter().flat_map(|&stage| (0..m).map(move |i| Op::forward(stage, i)));
            let last_first = |&stage: &u16| (0..m).rev().map(move |i| Op::backward(stage, i));
            let backwards = stages.iter().rev().flat_map(last_first);
            orders.push_list(forwards.chain(backwards));
        }
        Ok(Plan::Fixed(orders))
    }
}
