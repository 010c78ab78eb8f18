//! Chimera: two copies of the model run in opposite directions, each by 1F1B, and fill each other's gaps.

use crate::{
    Choice, Chunks, Entry, Op, Options, Placement, Plan, Policy, Rank, Ready, Refusal, Schedule, Shape, Weights,
    settle,
};

pub(crate) struct Chimera;

pub(crate) const SCHEDULE: Chimera = Chimera;

const ENTRY: Entry = Entry {
    name: "chimera",
    aliases: &[],
    summary: "bidirectional 1F1B: half of the bubble of 1F1B for two copies of the weights",
    source: "Chimera (Li and Hoefler 2021, arXiv:2107.06925), sections 3.1 and 3.5",
    constraints: "one chunk of each copy; p and m even",
    memory: "at most min(m, p)",
    bubble: "(p-2)B for m = p and B = 2F; (p/2-1)(F+B) for F = B",
    placement: Placement::Bidirectional,
    chunks: Chunks::Exactly(1),
    splits_backward: false,
    uses_weights: false,
    torch: None,
    options: &[],
    peak: |shape, _| shape.ranks().min(shape.micro_batches()) as u64,
};

impl Schedule for Chimera {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// The two directions are merged as they come when a backward takes two forwards; more micro-batches than
    /// ranks follow as soon as their direction has room (the paper's direct concatenation).
    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let p = shape.ranks();
        if !p.is_multiple_of(2) {
            return Err(Refusal::Shape {
                schedule: ENTRY.name,
                expected: "needs an even number of ranks".into(),
                found: format!("ranks = {p}"),
            });
        }
        let ranks = (0..p as u16).map(|rank| {
            shape.stages_of(Rank(rank)).map(|stage| {
                let micro_batches = shape.micro_batches_of(stage);
                let from_entry = stage.index() % p;
                Direction {
                    stage: stage.0,
                    forwards: micro_batches.clone(),
                    backwards: micro_batches,
                    most: (p / 2).min(p - from_entry),
                }
            })
        });
        let mut merge = Merge { ranks: ranks.map(Iterator::collect).collect() };
        Ok(Plan::Fixed(settle(&mut merge, shape, &Weights::unit(shape))))
    }
}

/// One stage of a rank: what is left to run of it.
struct Direction {
    stage: u16,
    forwards: std::ops::Range<u32>,
    backwards: std::ops::Range<u32>,
    /// Micro-batches in flight, at most.
    most: usize,
}

/// Takes the first backward that is ready, else the first forward for which its direction has room.
struct Merge {
    ranks: Vec<Vec<Direction>>,
}

impl Policy for Merge {
    fn next(&mut self, rank: Rank, ready: &dyn Ready) -> Choice {
        let directions = &mut self.ranks[rank.index()];
        directions.sort_by_key(|direction| direction.backwards.len());
        // The direction that is behind comes first.
        for direction in directions.iter_mut().rev() {
            let op = Op::backward(direction.stage, direction.backwards.start);
            if !direction.backwards.is_empty() && ready.is_ready(op) {
                direction.backwards.next();
                return Choice::Run(op);
            }
        }
        directions.sort_by_key(|direction| direction.forwards.len());
        for direction in directions.iter_mut().rev() {
            let op = Op::forward(direction.stage, direction.forwards.start);
            let in_flight = direction.backwards.len() - direction.forwards.len();
            if !direction.forwards.is_empty() && in_flight < direction.most && ready.is_ready(op) {
                direction.forwards.next();
                return Choice::Run(op);
            }
        }
        if directions.iter().all(|direction| direction.backwards.is_empty()) { Choice::Done } else { Choice::Wait }
    }
}
