//! Hanayo: the model lies on the ranks in waves, down and up, so that turns cost no message.

use crate::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Rank, Refusal, Schedule, Shape, Weights};

pub(crate) struct Hanayo;

pub(crate) const SCHEDULE: Hanayo = Hanayo;

const ENTRY: Entry = Entry {
    name: "hanayo",
    aliases: &["waves"],
    summary: "waves down and up the ranks: a smaller bubble from more chunks, without copies of the weights",
    source: "Hanayo (Liu et al. 2023, arXiv:2308.15762); order as in public generators",
    constraints: "an even number of chunks; m <= p",
    memory: "m",
    bubble: "2(p-1) passes of one chunk, forward and backward, for m = p",
    placement: Placement::V,
    chunks: Chunks::Even,
    splits_backward: false,
    uses_weights: false,
    torch: None,
    options: &[],
    peak: |shape, _| (shape.micro_batches() * shape.chunks()) as u64,
};

impl Schedule for Hanayo {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    /// Forwards run in order of stage + 2 x micro-batch, backwards in order of (stages above) + 2 x micro-batch;
    /// once the last stage has had its first micro-batches, they take turns.
    fn plan(&self, shape: &Shape, _weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let (p, m) = (shape.ranks(), shape.micro_batches());
        if m > p {
            return Err(Refusal::Shape {
                schedule: ENTRY.name,
                expected: "needs micro_batches <= ranks".into(),
                found: format!("micro_batches = {m}, ranks = {p}"),
            });
        }
        let last = shape.stages() as u32 - 1;
        let mut orders = Orders::with_capacity(p, 2 * shape.stages() * m);
        for rank in (0..p as u16).map(Rank) {
            let pairs = shape.stages_of(rank).flat_map(|stage| (0..m as u32).map(move |i| (stage.0, i)));
            let mut forwards: Vec<(u16, u32)> = pairs.collect();
            let mut backwards = forwards.clone();
            forwards.sort_by_key(|&(stage, i)| (u32::from(stage) + 2 * i, i));
            backwards.sort_by_key(|&(stage, i)| (last - u32::from(stage) + 2 * i, i));
            let top = shape.stages_of(rank).last().map_or(0, |stage| stage.0);
            let turn = (top, u32::from(rank.0).min(m as u32 - 1));
            let first = 1 + forwards.iter().position(|&one| one == turn).unwrap_or(0);
            let mut backwards = backwards.into_iter().map(|(stage, i)| Op::backward(stage, i));
            let mut forwards = forwards.into_iter().map(|(stage, i)| Op::forward(stage, i));
            let mut list: Vec<Op> = forwards.by_ref().take(first).collect();
            for forward in forwards {
                list.extend(backwards.next());
                list.push(forward);
            }
            list.extend(backwards);
            orders.push_list(list);
        }
        Ok(Plan::Fixed(orders))
    }
}
