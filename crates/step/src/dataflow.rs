//! The clock-free pass: when every rank's order is fixed and every link serves its messages in the order in
//! which one rank produces them, time order across ranks carries no information. Each rank runs ahead until an
//! input is missing and is woken by whoever produces it. No queue, no clock, and the same instants to the
//! nanosecond as the event engine's (a property test compares them).

use pipestep_engine::{Interval, Recorder, Time};
use pipestep_schedule::{Op, Orders, Rank};

use crate::lengths::{Lengths, Scaled, Usual};
use crate::log::MessageSink;
use crate::rows::{NONE, Row, Rows};
use crate::times::Tally;
use crate::{Arbitration, Inputs, Links, StepError, Times};

/// A step for which the clock-free pass is exact; see [`FifoStep::new`].
#[derive(Clone, Copy, Debug)]
pub struct FifoStep<'a> {
    inputs: &'a Inputs,
}

impl<'a> FifoStep<'a> {
    /// Checks that a step's messages can be timed the moment they are produced:
    ///
    /// * links are unlimited, or
    /// * links are directional and first come, first served, and every operation that sends a message takes
    ///   time. Each link then has one producer, a rank whose operations end one after the other at different
    ///   instants, so messages queue in the order in which they are made. (The two halves of an overlapped pair
    ///   end at once; the pass sends the activation first, as the rule says.)
    ///
    /// Returns `None` otherwise: such a step needs the event engine.
    pub fn new(inputs: &'a Inputs) -> Option<Self> {
        let exact = match (inputs.links, inputs.arbitration) {
            (Links::Unlimited, _) => true,
            (Links::Shared, _) | (_, Arbitration::ByStage) => false,
            (Links::Directional, Arbitration::Fifo) => every_sender_takes_time(inputs),
        };
        exact.then_some(Self { inputs })
    }

    /// The step.
    pub const fn inputs(self) -> &'a Inputs {
        self.inputs
    }
}

fn every_sender_takes_time(inputs: &Inputs) -> bool {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let makers = [Op::forward, Op::backward, Op::input_gradient];
    let takes_time = |op: Op| {
        costs.message(shape, op).is_none()
            || (costs.duration(op).as_nanos() > 0
                && costs.pair_duration(shape, op, op).is_none_or(|d| d.as_nanos() > 0))
    };
    // Unequal micro-batches can round a short operation down to nothing.
    let micro_batches = if costs.micro_batch_scale.is_empty() { 1 } else { shape.micro_batches() as u32 };
    (0..shape.stages() as u16)
        .all(|stage| makers.iter().all(|make| (0..micro_batches).all(|i| takes_time(make(stage, i)))))
}

/// The pass, with its memory kept from one run to the next.
#[derive(Clone, Debug, Default)]
pub struct Dataflow {
    /// When each input is there; [`UNKNOWN`] until then.
    slots: Vec<u64>,
    link_free: Vec<u64>,
    ranks: Vec<RankState>,
    work: Vec<u16>,
}

/// A rank's progress through its list.
#[derive(Clone, Copy, Debug)]
struct RankState {
    /// Its next place in the orders.
    place: usize,
    end: usize,
    /// The slot it waits for, or [`NONE`].
    waits_for: u32,
    tally: Tally,
}

const UNKNOWN: u64 = u64::MAX;

impl Dataflow {
    /// A pass with no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Times every operation of `orders`; `ops` records by place, `messages` by pair of ranks.
    ///
    /// # Errors
    /// [`StepError::Order`] if the orders are not right for the step or deadlock.
    pub fn run<R: Recorder, M: MessageSink>(
        &mut self,
        step: FifoStep<'_>,
        orders: &Orders,
        ops: &mut R,
        messages: &mut M,
    ) -> Result<Times, StepError> {
        let inputs = step.inputs;
        let rows = Rows::new(inputs);
        self.reset(inputs, &rows, orders)?;
        let mut pass = Pass {
            inputs,
            rows: &rows,
            all: orders.all(),
            slots: &mut self.slots,
            link_free: &mut self.link_free,
            ranks: &mut self.ranks,
            work: &mut self.work,
            ops,
            messages,
        };
        if inputs.costs().micro_batch_scale.is_empty() {
            pass.run(&Usual);
        } else {
            pass.run(&Scaled(inputs.costs()));
        }
        if self.ranks.iter().any(|rank| rank.place < rank.end) {
            return Err(StepError::stuck(inputs.shape(), orders));
        }
        Ok(Times::new(inputs, self.ranks.iter().map(|rank| rank.tally)))
    }

    fn reset(&mut self, inputs: &Inputs, rows: &Rows, orders: &Orders) -> Result<(), StepError> {
        let shape = inputs.shape();
        if orders.ranks() != shape.ranks() {
            return Err(StepError::stuck(shape, orders));
        }
        let setup = inputs.costs().setup.as_nanos();
        self.slots.clear();
        self.slots.resize(rows.slots, UNKNOWN);
        self.link_free.clear();
        self.link_free.resize(rows.links, 0);
        self.ranks.clear();
        self.ranks.extend((0..shape.ranks() as u16).map(|rank| {
            let list = orders.range(Rank(rank));
            RankState { place: list.start, end: list.end, waits_for: NONE, tally: Tally::new(setup) }
        }));
        self.work.clear();
        self.work.extend((0..shape.ranks() as u16).rev());
        Ok(())
    }
}

/// One run: the state with what it reads and writes.
struct Pass<'a, R, M> {
    inputs: &'a Inputs,
    rows: &'a Rows,
    all: &'a [Op],
    slots: &'a mut [u64],
    link_free: &'a mut [u64],
    ranks: &'a mut [RankState],
    work: &'a mut Vec<u16>,
    ops: &'a mut R,
    messages: &'a mut M,
}

/// What became of an overlapped pair.
enum Pair {
    /// It ran as one, which the tally now counts.
    Ran(Tally),
    /// This input is missing.
    Blocked(u32),
    /// The rank has no time for pairs: its parts run on their own.
    Apart,
}

impl<R: Recorder, M: MessageSink> Pass<'_, R, M> {
    fn run<L: Lengths>(&mut self, lengths: &L) {
        while let Some(rank) = self.work.pop() {
            self.run_ahead(rank as usize, lengths);
        }
    }

    /// Runs a rank until an input is missing or its list ends.
    #[inline]
    fn run_ahead<L: Lengths>(&mut self, rank: usize, lengths: &L) {
        let RankState { mut place, end: list_end, mut tally, .. } = self.ranks[rank];
        let all = self.all;
        let mut waits_for = NONE;
        while let Some(&op) = all[..list_end].get(place) {
            if op.paired {
                match self.run_pair(place, tally, lengths) {
                    Pair::Ran(ended) => {
                        tally = ended;
                        place += 2;
                        continue;
                    }
                    Pair::Blocked(slot) => {
                        waits_for = slot;
                        break;
                    }
                    Pair::Apart => {}
                }
            }
            let row = self.rows.of(op);
            let ready = self.ready(row, op);
            if ready == UNKNOWN {
                waits_for = row.input + op.micro_batch.0;
                break;
            }
            let start = tally.free().max(ready);
            let end = start + lengths.op(place, op, row.duration);
            tally.run(start, end);
            self.ops.record(place, interval(start, end));
            self.deliver(row, place, op, end, lengths);
            place += 1;
        }
        let state = &mut self.ranks[rank];
        (state.place, state.tally, state.waits_for) = (place, tally, waits_for);
    }

    /// Runs an overlapped pair as one if the rank has a time for it and both inputs are there.
    #[cold]
    fn run_pair<L: Lengths>(&mut self, place: usize, mut tally: Tally, lengths: &L) -> Pair {
        let (first, second) = (self.all[place], self.all[place + 1]);
        let Some(length) = self.inputs.costs().pair_duration(self.inputs.shape(), first, second) else {
            return Pair::Apart;
        };
        let mut start = tally.free();
        for op in [first, second] {
            let row = self.rows.of(op);
            let ready = self.ready(row, op);
            if ready == UNKNOWN {
                return Pair::Blocked(row.input + op.micro_batch.0);
            }
            start = start.max(ready);
        }
        let end = start + length.as_nanos();
        tally.run(start, end);
        let mut parts = [(place, first), (place + 1, second)];
        // The activation goes first when both use one link.
        parts.sort_by_key(|&(_, op)| op.kind);
        for (place, op) in parts {
            self.ops.record(place, interval(start, end));
            self.deliver(self.rows.of(op), place, op, end, lengths);
        }
        Pair::Ran(tally)
    }

    /// When the input of an operation is there: at once if it needs none.
    #[inline]
    fn ready(&self, row: &Row, op: Op) -> u64 {
        if row.input == NONE { 0 } else { self.slots[(row.input + op.micro_batch.0) as usize] }
    }

    /// Sends the result of an operation to whoever needs it, and wakes a rank that waits for it.
    #[inline]
    fn deliver<L: Lengths>(&mut self, row: &Row, place: usize, op: Op, end: u64, lengths: &L) {
        if row.output == NONE {
            return;
        }
        let mut arrival = end;
        if row.sends {
            let mut start = end;
            if row.link != NONE {
                start = end.max(self.link_free[row.link as usize]);
            }
            arrival = start + lengths.message(place, op, row.message);
            if row.link != NONE {
                self.link_free[row.link as usize] = arrival;
            }
            self.messages.sent(row.pair, place, interval(start, arrival));
        }
        let slot = row.output + op.micro_batch.0;
        self.slots[slot as usize] = arrival;
        let receiver = &mut self.ranks[row.receiver as usize];
        if receiver.waits_for == slot {
            receiver.waits_for = NONE;
            self.work.push(row.receiver as u16);
        }
    }
}

#[inline]
fn interval(start: u64, end: u64) -> Interval {
    Interval { start: Time::from_nanos(start), end: Time::from_nanos(end) }
}
