//! DualPipeV: two chunks on a V; a forward of one and a backward of the other run as an overlapped pair.

use std::collections::VecDeque;

use crate::{Chunks, Entry, Kind, MicroBatch, Op, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Stage, Weights};

pub(crate) struct DualPipeV;

pub(crate) const SCHEDULE: DualPipeV = DualPipeV;

const ENTRY: Entry = Entry {
    name: "dualpipe-v",
    aliases: &["dualpipev"],
    summary: "two chunks on a V whose forwards and backwards overlap in pairs, hiding communication",
    source: "DualPipe (DeepSeek-AI 2024, arXiv:2412.19437; deepseek-ai/DualPipe), cut in half; order as in PyTorch",
    constraints: "two chunks; m >= 2p",
    memory: "p + 1/2",
    bubble: "(p-1)(FB+B-3W) for p ranks of two chunks",
    placement: Placement::V,
    chunks: Chunks::Exactly(2),
    splits_backward: true,
    uses_weights: false,
    torch: Some("DualPipeV"),
    options: &[],
    peak: |shape, _| 2 * shape.ranks() as u64 + 1,
};

impl Schedule for DualPipeV {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, m) = (shape.ranks(), shape.micro_batches());
        if m < 2 * p {
            return Err(Refusal::Shape {
                schedule: ENTRY.name,
                expected: "needs micro_batches >= 2 * ranks".into(),
                found: format!("micro_batches = {m}, ranks = {p}"),
            });
        }
        let mut orders = Orders::with_capacity(p, 2 * shape.stages() * m);
        for rank in 0..p {
            let stage = |side| match side {
                Side::Near => rank,
                Side::Far => 2 * p - 1 - rank,
            };
            orders.push_list(list(p, rank, m).into_iter().map(|step| step.on(stage(step.side), 0)));
        }
        Ok(Plan::Fixed(orders))
    }
}

/// One of the two stages that meet on a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// That of the micro-batches that enter at this end.
    Near,
    /// That of the micro-batches that come back or come from the other end.
    Far,
}

/// One operation of a rank's list, with its side in place of its stage.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    kind: Kind,
    pub(super) side: Side,
    micro_batch: u32,
    paired: bool,
}

impl Step {
    /// The operation, on a stage, with micro-batches counted from `first`.
    pub(super) fn on(self, stage: usize, first: u32) -> Op {
        let op = Op::new(self.kind, Stage(stage as u16), MicroBatch(first + self.micro_batch));
        if self.paired { op.joined() } else { op }
    }
}

/// The list of the rank that lies `rank` steps from its near end, of `p`, for `m` >= 2p micro-batches.
pub(super) fn list(p: usize, rank: usize, m: usize) -> Vec<Step> {
    use Side::{Far, Near};
    let to_turn = p - 1 - rank;
    let mut run = Run { steps: Vec::with_capacity(4 * m), next: [[0; 4]; 2], waiting: VecDeque::new() };
    for _ in 0..2 * to_turn {
        run.forward(Near);
    }
    for _ in 0..=rank {
        run.forward(Near);
        run.forward(Far);
    }
    for _ in 0..to_turn {
        run.gradient(Far);
        run.oldest_weight();
        run.forward(Far);
    }
    for pair in 0..m + rank + 1 - 2 * p {
        // The last rank's first pair would wait for itself.
        run.pair(Near, Far, pair == 0 && to_turn == 0);
        run.pair(Far, Near, false);
    }
    for _ in 0..to_turn {
        run.backward(Far);
        run.pair(Far, Near, false);
    }
    // The second half of these backwards leaves its weight gradients for the gaps of the end.
    for index in 0..2 * (rank + 1) {
        let side = if index % 2 == 0 { Far } else { Near };
        if index > rank { run.gradient(side) } else { run.backward(side) }
    }
    for _ in 0..to_turn {
        run.oldest_weight();
        run.gradient(Near);
    }
    while !run.waiting.is_empty() {
        run.oldest_weight();
    }
    run.steps
}

/// A rank's list while it grows.
struct Run {
    steps: Vec<Step>,
    /// The next micro-batch by side, for forwards and for backwards of either kind.
    next: [[u32; 4]; 2],
    /// Weight gradients put off.
    waiting: VecDeque<(Side, u32)>,
}

impl Run {
    fn push(&mut self, kind: Kind, side: Side, micro_batch: u32) {
        self.steps.push(Step { kind, side, micro_batch, paired: false });
    }

    fn count(&mut self, kind: Kind, side: Side) -> u32 {
        let next = &mut self.next[side as usize][kind as usize];
        *next += 1;
        *next - 1
    }

    fn forward(&mut self, side: Side) {
        let micro_batch = self.count(Kind::Forward, side);
        self.push(Kind::Forward, side, micro_batch);
    }

    fn backward(&mut self, side: Side) {
        let micro_batch = self.count(Kind::Backward, side);
        self.push(Kind::Backward, side, micro_batch);
    }

    fn gradient(&mut self, side: Side) {
        let micro_batch = self.count(Kind::Backward, side);
        self.push(Kind::InputGradient, side, micro_batch);
        self.waiting.push_back((side, micro_batch));
    }

    fn oldest_weight(&mut self) {
        if let Some((side, micro_batch)) = self.waiting.pop_front() {
            self.push(Kind::WeightGradient, side, micro_batch);
        }
    }

    /// A forward on one side and a backward on the other, as one unless they are kept apart.
    fn pair(&mut self, forward: Side, backward: Side, apart: bool) {
        self.forward(forward);
        if let Some(first) = self.steps.last_mut() {
            first.paired = !apart;
        }
        self.backward(backward);
    }
}
