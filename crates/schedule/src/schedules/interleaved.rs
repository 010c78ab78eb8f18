//! Interleaved 1F1B: each rank holds several chunks, so that the pipeline fills in smaller pieces.

use std::ops::Range;

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
            let forward = |chunk, i| Op::forward((chunk * p + rank) as u16, i);
            let backward = |chunk, i| Op::backward(((v - 1 - chunk) * p + rank) as u16, i);
            let (mut forwards, mut backwards) = (Walk::new(group, v), Walk::new(group, v));
            orders.write_list(|list| {
                forwards.runs(warm_up, |chunk, run| list.extend(run.map(|i| forward(chunk, i))));
                // Both walks go on side by side, as far as neither changes its chunk.
                let mut left = total - warm_up;
                while left > 0 {
                    let run = left.min(forwards.left_in_run()).min(backwards.left_in_run());
                    let ((chunk, first), (other, its_first)) =
                        (forwards.take_run(run), backwards.take_run(run));
                    let turn = |i| [forward(chunk, first + i), backward(other, its_first + i)];
                    list.extend((0..run).flat_map(turn));
                    left -= run;
                }
                backwards.runs(warm_up, |chunk, run| list.extend(run.map(|i| backward(chunk, i))));
            });
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

    /// How many micro-batches come before the chunk changes.
    const fn left_in_run(&self) -> u32 {
        self.group - self.within
    }

    /// Takes that many or fewer: their chunk and the first of them.
    const fn take_run(&mut self, count: u32) -> (u32, u32) {
        let run = (self.chunk, self.first + self.within);
        self.within += count;
        if self.within == self.group {
            self.within = 0;
            self.chunk += 1;
            if self.chunk == self.chunks {
                self.chunk = 0;
                self.first += self.group;
            }
        }
        run
    }

    /// Takes `count`, run by run.
    fn runs(&mut self, mut count: u32, mut take: impl FnMut(u32, Range<u32>)) {
        while count > 0 {
            let run = count.min(self.left_in_run());
            let (chunk, first) = self.take_run(run);
            take(chunk, first..first + run);
            count -= run;
        }
    }
}

impl Iterator for Walk {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        Some(self.take_run(1))
    }
}
