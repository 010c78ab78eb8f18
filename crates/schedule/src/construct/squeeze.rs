//! Runs a skeleton (each rank's order of forwards and gradient passes) as soon as possible, and squeezes it:
//! gaps are filled with later operations whose inputs are there and with `W`s, and the memory limit is kept.
//!
//! The pass knows no links that queue: a message only takes its time. Operations of one kind and stage run in
//! the order of their micro-batches, so a skeleton is a list of slots and not of operations.

use std::cmp::Reverse;

use super::alarms::{Alarms, NEVER};
use super::table::{Chunk, Table};
use crate::{Kind, MicroBatch, Op, Stage};

/// A kind of operation of a rank: twice the chunk's number, plus one for the pass that sends the gradient.
pub(super) type Slot = u8;

/// How gaps are filled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// What is preferred for a gap.
    pub(super) filler: Filler,
    /// How much of a `W` has to fit into a gap, in quarters of its length.
    pub(super) fit: u64,
    /// Before so many of a rank's last operations a `W` has to fit wholly: what was late can catch up there.
    pub(super) strict_end: usize,
}

/// What is preferred for a gap when several operations fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filler {
    /// A later forward, then a later gradient pass, then a `W`.
    Forward,
    /// A later gradient pass, then a later forward, then a `W`.
    Backward,
    /// A `W`, then a later gradient pass, then a later forward.
    Weight,
}

/// What a squeezed skeleton achieves; the less the better, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Score {
    /// The longest time of a rank between the start of its first and the end of its last operation.
    pub(super) span: u64,
    /// The most bytes that any rank holds.
    pub(super) peak: i64,
    /// From the first start to the last end.
    pub(super) makespan: u64,
}

/// Squeezes one skeleton after another, with the same buffers.
pub(super) struct Squeeze<'a> {
    table: &'a Table,
    limit: &'a [i64],
    micro_batches: usize,
    rules: Rules,
    /// When the input of a slot's operation arrives: by stage, then forward before gradient, then micro-batch.
    arrivals: Vec<u64>,
    ranks: Vec<State>,
    alarms: Alarms,
    record: bool,
}

/// A rank while it runs.
#[derive(Clone, Debug, Default)]
struct State {
    /// What is left to run, in reverse.
    left: Vec<Slot>,
    /// How often each slot has run.
    done: Vec<usize>,
    /// When the input of each slot's next operation arrives, as far as it is known.
    due: Vec<u64>,
    /// How many `W`s each chunk has run.
    weights_done: Vec<usize>,
    weights_pending: usize,
    free_at: u64,
    first: Option<u64>,
    bytes: i64,
    /// Bytes once every pending `W` has run.
    settled: i64,
    peak: i64,
    ops: Vec<Op>,
}

/// What a rank does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The slot at this place of `left`.
    Slot(usize),
    Weight,
    /// Nothing until an input arrives.
    Wait,
}

impl<'a> Squeeze<'a> {
    /// For a table and each rank's limit in bytes.
    pub(super) fn new(table: &'a Table, limit: &'a [i64]) -> Self {
        Self {
            table,
            limit,
            micro_batches: 0,
            rules: Rules { filler: Filler::Forward, fit: 4, strict_end: 0 },
            arrivals: Vec::new(),
            ranks: vec![State::default(); table.ranks()],
            alarms: Alarms::new(table.ranks()),
            record: false,
        }
    }

    /// Runs a skeleton; `None` if it cannot run within the memory limit.
    pub(super) fn score(&mut self, skeleton: &[Vec<Slot>], rules: Rules) -> Option<Score> {
        self.record = false;
        self.run(skeleton, rules)
    }

    /// Runs a skeleton and writes down every rank's operations.
    pub(super) fn lists(&mut self, skeleton: &[Vec<Slot>], rules: Rules) -> Option<Vec<Vec<Op>>> {
        self.record = true;
        self.run(skeleton, rules)?;
        Some(self.ranks.iter_mut().map(|state| std::mem::take(&mut state.ops)).collect())
    }

    fn run(&mut self, skeleton: &[Vec<Slot>], rules: Rules) -> Option<Score> {
        self.rules = rules;
        self.reset(skeleton);
        while let Some((now, rank)) = self.alarms.first() {
            match self.choose(rank, now) {
                Step::Slot(place) => {
                    let slot = self.ranks[rank].left.remove(place);
                    self.start(rank, slot, now);
                }
                Step::Weight => self.start_weight(rank, now),
                Step::Wait => self.alarms.set(rank, self.next_arrival(rank, now)),
            }
        }
        self.result()
    }

    fn reset(&mut self, skeleton: &[Vec<Slot>]) {
        let slots = 2 * self.table.chunks[0].len();
        self.micro_batches = skeleton[0].len() / slots;
        self.arrivals.clear();
        self.arrivals.resize(2 * self.table.stages() * self.micro_batches, NEVER);
        for (rank, list) in skeleton.iter().enumerate() {
            let chunks = self.table.chunks[rank].len();
            let state = &mut self.ranks[rank];
            *state = State {
                left: std::mem::take(&mut state.left),
                done: std::mem::take(&mut state.done),
                due: std::mem::take(&mut state.due),
                weights_done: std::mem::take(&mut state.weights_done),
                ..State::default()
            };
            state.left.clear();
            state.left.extend(list.iter().rev());
            state.done.clear();
            state.done.resize(2 * chunks, 0);
            state.due.clear();
            state.due.resize(2 * chunks, NEVER);
            state.weights_done.clear();
            state.weights_done.resize(chunks, 0);
            self.alarms.set(rank, 0);
        }
        self.arrivals[..self.micro_batches].fill(0);
        let first = self.table.places[0];
        self.ranks[first.rank].due[2 * first.chunk] = 0;
    }

    fn result(&self) -> Option<Score> {
        if self.ranks.iter().any(|state| !state.left.is_empty() || state.weights_pending > 0) {
            return None;
        }
        let span = |state: &State| state.free_at - state.first.unwrap_or(0);
        Some(Score {
            span: self.ranks.iter().map(span).max()?,
            peak: self.ranks.iter().map(|state| state.peak).max()?,
            makespan: self.ranks.iter().map(|state| state.free_at).max()?,
        })
    }

    /// The first time after `now` at which an input is known to arrive.
    fn next_arrival(&self, rank: usize, now: u64) -> u64 {
        self.ranks[rank].due.iter().copied().filter(|&time| time > now).min().unwrap_or(NEVER)
    }

    fn choose(&self, rank: usize, now: u64) -> Step {
        let state = &self.ranks[rank];
        let Some(&next) = state.left.last() else {
            return if state.weights_pending > 0 { Step::Weight } else { Step::Wait };
        };
        if next.is_multiple_of(2) && state.bytes + self.chunk(rank, next).saved > self.limit[rank] {
            // It needs room first: a `W` makes some, else a gradient pass may.
            if state.weights_pending > 0 {
                return Step::Weight;
            }
            return self.filler(rank, now, NEVER).unwrap_or(Step::Wait);
        }
        let arrival = state.due[next as usize];
        if arrival <= now {
            return Step::Slot(state.left.len() - 1);
        }
        self.filler(rank, now, arrival).unwrap_or(Step::Wait)
    }

    /// An operation that fits between `now` and `until`.
    fn filler(&self, rank: usize, now: u64, until: u64) -> Option<Step> {
        let room = until - now;
        let state = &self.ranks[rank];
        let fit = if state.left.len() <= self.rules.strict_end { 4 } else { self.rules.fit };
        let weight = state.weights_pending > 0
            && self.table.chunks[rank][self.next_weight(rank)].weight * fit / 4 <= room;
        if weight && self.rules.filler == Filler::Weight {
            return Some(Step::Weight);
        }
        self.later_slot(rank, now, room).map(Step::Slot).or(weight.then_some(Step::Weight))
    }

    /// The place of a later slot that can run now within `room`, without passing the memory limit on the way to
    /// where the skeleton has it.
    fn later_slot(&self, rank: usize, now: u64, room: u64) -> Option<usize> {
        let state = &self.ranks[rank];
        let mut open = self.ready(rank, now, room);
        let (mut bytes, mut most) = (state.settled, state.bytes);
        let mut second = None;
        for (place, &slot) in state.left.iter().enumerate().rev() {
            if open == 0 {
                break;
            }
            let saved = self.chunk(rank, slot).saved;
            let forward = slot.is_multiple_of(2);
            if open & 1 << slot != 0 {
                open &= !(1 << slot);
                if !forward || most + saved <= self.limit[rank] {
                    if forward == (self.rules.filler == Filler::Forward) {
                        return Some(place);
                    }
                    second = second.or(Some(place));
                }
            }
            bytes += if forward { saved } else { -saved };
            most = most.max(bytes);
        }
        second
    }

    /// The slots whose next operation has its input and is no longer than `room`, as bits.
    fn ready(&self, rank: usize, now: u64, room: u64) -> u64 {
        let mut ready = 0;
        for (slot, &due) in self.ranks[rank].due.iter().enumerate() {
            if due <= now {
                let chunk = self.chunk(rank, slot as Slot);
                let length = if slot.is_multiple_of(2) { chunk.forward } else { chunk.backward };
                ready |= u64::from(length <= room) << slot;
            }
        }
        ready
    }

    fn chunk(&self, rank: usize, slot: Slot) -> &Chunk {
        &self.table.chunks[rank][slot as usize / 2]
    }

    /// The chunk whose `W` is next: that of the micro-batch with the lowest number, and of the later stage.
    fn next_weight(&self, rank: usize) -> usize {
        let state = &self.ranks[rank];
        let pending =
            (0..state.weights_done.len()).filter(|&c| state.weights_done[c] < state.done[2 * c + 1]);
        pending.min_by_key(|&c| (state.weights_done[c], Reverse(c))).expect("a `W` is pending")
    }

    fn start(&mut self, rank: usize, slot: Slot, now: u64) {
        let chunk = *self.chunk(rank, slot);
        let state = &mut self.ranks[rank];
        let micro_batch = state.done[slot as usize];
        state.done[slot as usize] += 1;
        let next = (2 * chunk.stage + usize::from(slot % 2)) * self.micro_batches + micro_batch + 1;
        state.due[slot as usize] =
            if micro_batch + 1 < self.micro_batches { self.arrivals[next] } else { NEVER };
        let travel = self.table.places[chunk.stage];
        if slot.is_multiple_of(2) {
            state.bytes += chunk.saved;
            state.settled += chunk.saved;
            let end = now + chunk.forward;
            self.occupy(
                rank,
                now,
                end,
                Op::new(Kind::Forward, Stage(chunk.stage as u16), MicroBatch(micro_batch as u32)),
            );
            if chunk.stage + 1 < self.table.stages() {
                self.arrive(chunk.stage + 1, 0, micro_batch, end + travel.activation);
            } else {
                self.arrive(chunk.stage, 1, micro_batch, end);
            }
        } else {
            state.bytes -= chunk.released;
            state.settled -= chunk.saved;
            state.weights_pending += usize::from(self.table.split);
            let kind = if self.table.split { Kind::InputGradient } else { Kind::Backward };
            let end = now + chunk.backward;
            self.occupy(
                rank,
                now,
                end,
                Op::new(kind, Stage(chunk.stage as u16), MicroBatch(micro_batch as u32)),
            );
            if chunk.stage > 0 {
                self.arrive(chunk.stage - 1, 1, micro_batch, end + travel.gradient);
            }
        }
    }

    fn start_weight(&mut self, rank: usize, now: u64) {
        let next = self.next_weight(rank);
        let chunk = self.table.chunks[rank][next];
        let state = &mut self.ranks[rank];
        let micro_batch = state.weights_done[next];
        state.weights_done[next] += 1;
        state.weights_pending -= 1;
        state.bytes -= chunk.saved - chunk.released;
        self.occupy(
            rank,
            now,
            now + chunk.weight,
            Op::weight_gradient(chunk.stage as u16, micro_batch as u32),
        );
    }

    fn occupy(&mut self, rank: usize, now: u64, end: u64, op: Op) {
        let state = &mut self.ranks[rank];
        state.peak = state.peak.max(state.bytes);
        state.first.get_or_insert(now);
        state.free_at = end;
        if self.record {
            state.ops.push(op);
        }
        self.alarms.set(rank, end);
    }

    fn arrive(&mut self, stage: usize, backward: usize, micro_batch: usize, time: u64) {
        self.arrivals[(2 * stage + backward) * self.micro_batches + micro_batch] = time;
        let place = self.table.places[stage];
        let state = &mut self.ranks[place.rank];
        let slot = 2 * place.chunk + backward;
        if state.done[slot] == micro_batch {
            state.due[slot] = time;
        }
        self.alarms.bring_forward(place.rank, time.max(state.free_at));
    }
}
