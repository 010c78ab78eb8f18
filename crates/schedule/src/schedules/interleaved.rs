//! Interleaved 1F1B: each rank holds several chunks, so that the pipeline fills in smaller pieces.

use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Refusal, Schedule, Shape, Weights};

pub(crate) struct Interleaved;

pub(crate) const SCHEDULE: Interleaved = Interleaved;

const ENTRY: Entry = Entry {
    name: "interleaved",
    aliases: &["interleaved-1f1b", "vpp"],
    summary: "1F1B over several chunks a rank: a bubble v times smaller for more memory and v times the messages",
    source: "Megatron-LM (Narayanan et al. 2021, arXiv:2104.04473), section 2.2; rounds as in PyTorch",
    constraints: "any number of chunks; m a multiple of max(1, m div p)",
    memory: "p(1 + (p-1)/(pv)) for p dividing m",
    bubble: "(p-1)(F+B)/v",
    placement: Placement::Loop,
    chunks: Chunks::Any,
    splits_backward: false,
    uses_weights: false,
    torch: Some("Interleaved1F1B"),
    options: &[],
    peak: |shape, _| {
        let (p, v, m) = (shape.ranks(), shape.chunks(), shape.micro_batches());
        let group = m / (m / p).max(1);
        (m * v).min((v - 1) * group + 2 * (p - 1) + 1) as u64
    },
};

impl Schedule for Interleaved {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, v, m) = (shape.ranks() as u32, shape.chunks() as u32, shape.micro_batches() as u32);
        let group = round_size(ENTRY.name, p, m)?;
        let total = m * v;
        let mut orders = Orders::with_capacity(shape.ranks(), 2 * shape.stages() * shape.micro_batches());
        for rank in 0..p {
            let warm_up = total.min((v - 1) * group + 2 * (p - 1 - rank));
            let stage = |chunk| (chunk * p + rank) as u16;
            let mut forwards = Walk::new(group, v).map(|(chunk, i)| Op::forward(stage(chunk), i));
            let mut backwards = Walk::new(group, v).map(|(chunk, i)| Op::backward(stage(v - 1 - chunk), i));
            let mut list = Vec::with_capacity(2 * total as usize);
            list.extend(forwards.by_ref().take(warm_up as usize));
            for _ in warm_up..total {
                list.extend(forwards.next());
                list.extend(backwards.next());
            }
            list.extend(backwards.take(warm_up as usize));
            orders.push_list(list);
        }
        Ok(Plan::Fixed(orders))
    }
}

/// How many micro-batches run in a row on one chunk: PyTorch's rounds rule. There are max(1, m div p) rounds of
/// equal size, so the size is p where p divides m.
pub(crate) fn round_size(schedule: &'static str, ranks: u32, micro_batches: u32) -> Result<u32, Refusal> {
    let rounds = (micro_batches / ranks).max(1);
    if micro_batches.is_multiple_of(rounds) {
        return Ok(micro_batches / rounds);
    }
    Err(Refusal::Shape {
        schedule,
        expected: format!("needs micro_batches to be a multiple of its {rounds} rounds (micro_batches div ranks)"),
        found: format!("micro_batches = {micro_batches}, ranks = {ranks}"),
    })
}

/// The endless walk over (chunk, micro-batch): `group` micro-batches on chunk 0, the same on chunk 1, ..., then
/// the next group. Counters are carried along, which costs no division.
pub(crate) struct Walk {
    group: u32,
    chunks: u32,
    chunk: u32,
    first: u32,
    within: u32,
}

impl Walk {
    pub(crate) const fn new(group: u32, chunks: u32) -> Self {
        Self { group, chunks, chunk: 0, first: 0, within: 0 }
    }
}

impl Iterator for Walk {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        let item = (self.chunk, self.first + self.within);
        self.within += 1;
        if self.within == self.group {
            self.within = 0;
            self.chunk += 1;
            if self.chunk == self.chunks {
                self.chunk = 0;
                self.first += self.group;
            }
        }
        Some(item)
    }
}
