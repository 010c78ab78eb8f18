//! Greedy: no fixed order; a rank that falls idle takes the best operation that is ready and fits its memory.

use crate::{
    Choice, Chunks, Entry, Op, Options, Placement, Plan, Policy, Rank, Ready, Refusal, Schedule, Shape, Stage,
    Weights,
};

pub(crate) struct Greedy;

pub(crate) const SCHEDULE: Greedy = Greedy;

const ENTRY: Entry = Entry {
    name: "greedy",
    aliases: &["online"],
    summary: "decides while the step runs: the best ready operation within the memory limit of each rank",
    source: "list scheduling (Graham 1969) over F, B, I and W, with room kept so that no limit can deadlock",
    constraints: "any number of chunks and micro-batches; a limit of at least one micro-batch",
    memory: "the limit; m without one",
    bubble: "depends on the limit",
    placement: Placement::Loop,
    chunks: Chunks::Any,
    splits_backward: true,
    uses_weights: true,
    torch: None,
    options: &[],
    peak: |shape, _| (shape.micro_batches() * shape.chunks()) as u64,
};

impl Schedule for Greedy {
    fn entry(&self) -> &'static Entry {
        &ENTRY
    }

    fn plan(&self, shape: &Shape, weights: &Weights, _options: &Options) -> Result<Plan, Refusal> {
        let mut ranks = Vec::with_capacity(shape.ranks());
        for rank in (0..shape.ranks() as u16).map(Rank) {
            let limit = weights.limit.as_ref().map(|limits| limits[rank.index()]);
            let state = State::new(shape, weights, rank, limit.unwrap_or(u64::MAX));
            let least = state.chunks.iter().map(|chunk| chunk.saved).fold(0, u64::saturating_add);
            if least > state.limit {
                let reason = format!("one micro-batch takes {least} bytes, the limit is {}", state.limit);
                return Err(Refusal::Memory { schedule: ENTRY.name, rank, reason });
            }
            ranks.push(state);
        }
        Ok(Plan::Online(Box::new(Choosing { ranks })))
    }
}

/// One stage of a rank, and how far it is.
#[derive(Clone, Debug)]
struct Chunk {
    stage: u16,
    /// The rank that waits for its gradient, if that is another one.
    upstream: Option<usize>,
    micro_batches: u32,
    forwards: u32,
    backwards: u32,
    /// Micro-batches whose `W` is put off, in order.
    waiting: std::collections::VecDeque<u32>,
    /// Bytes from `F` to `B` or `W`, with what `I` may add.
    saved: u64,
    released: u64,
    /// Bytes that the chunks after this one need for one micro-batch: kept free by its forwards.
    kept: u64,
}

/// A rank.
#[derive(Clone, Debug)]
struct State {
    chunks: Vec<Chunk>,
    bytes: u64,
    limit: u64,
}

/// The policy: passes that send a gradient first (the oldest micro-batch, then the later stage), then forwards
/// (the later stage first), then `W`s. A backward is split when the rank that waits for its gradient has nothing
/// else to do, or when memory is plentiful; it runs whole otherwise, which frees its bytes soonest, and where
/// nobody waits.
struct Choosing {
    ranks: Vec<State>,
}

impl State {
    fn new(shape: &Shape, weights: &Weights, rank: Rank, limit: u64) -> Self {
        let mut chunks: Vec<Chunk> = shape.stages_of(rank).map(|stage| Chunk::new(shape, weights, stage)).collect();
        let mut kept = 0_u64;
        for chunk in chunks.iter_mut().rev() {
            chunk.kept = kept;
            kept = kept.saturating_add(chunk.saved);
        }
        Self { chunks, bytes: 0, limit }
    }

    /// The chunk whose pass that sends the gradient is next, if one is ready.
    fn backward(&self, ready: &dyn Ready) -> Option<usize> {
        let can_run = |&index: &usize| {
            let chunk = &self.chunks[index];
            chunk.backwards < chunk.forwards && ready.is_ready(Op::backward(chunk.stage, chunk.backwards))
        };
        let best = |&index: &usize| (self.chunks[index].backwards, std::cmp::Reverse(index));
        (0..self.chunks.len()).filter(can_run).min_by_key(best)
    }

    /// The chunk whose forward is next, if one is ready and fits. A forward leaves room for one micro-batch in
    /// each later chunk of the rank, so the oldest micro-batch can always go on: no limit can deadlock.
    fn forward(&self, ready: &dyn Ready) -> Option<usize> {
        (0..self.chunks.len()).rev().find(|&index| {
            let chunk = &self.chunks[index];
            let room = chunk.saved.saturating_add(chunk.kept) <= self.limit - self.bytes;
            chunk.forwards < chunk.micro_batches && room && ready.is_ready(Op::forward(chunk.stage, chunk.forwards))
        })
    }

    /// The chunk with the oldest `W` that was put off.
    fn weight(&self) -> Option<usize> {
        let waiting = (0..self.chunks.len()).filter(|&index| !self.chunks[index].waiting.is_empty());
        waiting.min_by_key(|&index| self.chunks[index].waiting.front().copied())
    }

    /// Whether a put-off `W` would leave as much memory free as one more chunk would get.
    fn has_room_after_split(&self, index: usize) -> bool {
        let kept = self.limit / (1 + self.chunks.len() as u64);
        self.bytes - self.chunks[index].released <= self.limit - kept
    }

    fn is_done(&self) -> bool {
        self.chunks.iter().all(|chunk| chunk.backwards == chunk.micro_batches && chunk.waiting.is_empty())
    }

    fn has_work(&self, ready: &dyn Ready) -> bool {
        self.backward(ready).or_else(|| self.forward(ready)).or_else(|| self.weight()).is_some()
    }
}

impl Chunk {
    fn new(shape: &Shape, weights: &Weights, stage: Stage) -> Self {
        let released = weights.released_at_input_gradient[stage.index()];
        let more = released.min(0).unsigned_abs();
        let upstream = shape.previous(stage).map(|before| shape.rank_of(before).index());
        let saved = weights.saved[stage.index()].saturating_add(more);
        Self {
            stage: stage.0,
            upstream: upstream.filter(|&rank| rank != shape.rank_of(stage).index()),
            micro_batches: shape.micro_batches() as u32,
            forwards: 0,
            backwards: 0,
            waiting: std::collections::VecDeque::new(),
            saved,
            released: released.max(0).unsigned_abs().min(saved),
            kept: 0,
        }
    }
}

impl Policy for Choosing {
    fn next(&mut self, rank: Rank, ready: &dyn Ready) -> Choice {
        let state = &self.ranks[rank.index()];
        if let Some(index) = state.backward(ready) {
            let split = state.chunks[index].upstream.is_some_and(|upstream| {
                state.has_room_after_split(index) || !self.ranks[upstream].has_work(ready)
            });
            return Choice::Run(self.ranks[rank.index()].run_backward(index, split));
        }
        let state = &mut self.ranks[rank.index()];
        if let Some(index) = state.forward(ready) {
            let chunk = &mut state.chunks[index];
            chunk.forwards += 1;
            state.bytes += chunk.saved;
            return Choice::Run(Op::forward(chunk.stage, chunk.forwards - 1));
        }
        if let Some(index) = state.weight()
            && let Some(micro_batch) = state.chunks[index].waiting.pop_front()
        {
            let chunk = &state.chunks[index];
            state.bytes -= chunk.saved - chunk.released;
            return Choice::Run(Op::weight_gradient(chunk.stage, micro_batch));
        }
        if state.is_done() { Choice::Done } else { Choice::Wait }
    }
}

impl State {
    fn run_backward(&mut self, index: usize, split: bool) -> Op {
        let chunk = &mut self.chunks[index];
        let micro_batch = chunk.backwards;
        chunk.backwards += 1;
        if split {
            chunk.waiting.push_back(micro_batch);
            self.bytes -= chunk.released;
            Op::input_gradient(chunk.stage, micro_batch)
        } else {
            self.bytes -= chunk.saved;
            Op::backward(chunk.stage, micro_batch)
        }
    }
}
