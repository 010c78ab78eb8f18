//! The event loop of a step whose orders are fixed and whose messages can be timed the moment they are made
//! ([`crate::FifoStep`]): only the ends of operations are events.
//!
//! A rank's next operation then depends on nothing else that happens at the same instant, so it is chosen and timed
//! at once: when the one before it ends, or when the message that it waits for is made. [`crate::world`] does the
//! same for every step, and is what this loop is tested against.

#![expect(
    clippy::inline_always,
    reason = "each of these has one hot caller and one cold one, and calls cost a third of the loop"
)]

use pipestep_engine::{Class, EventQueue, Overflow, OwnerQueue, PackedQueue, Time, World, run};
use pipestep_schedule::{Choice, Op, Policy, Rank, Ready};

use crate::lengths::{Lengths, Scaled, Usual};
use crate::observe::{Observer, Place};
use crate::rows::{NONE, Row, Rows};
use crate::times::Tally;
use crate::{FifoStep, Inputs, Times};

/// One rank.
#[derive(Clone, Copy, Debug)]
struct RankState {
    /// What it runs or waits to run; the first half of a pair.
    op: Op,
    place: u32,
    /// The slot whose input it lacks, or [`NONE`].
    waits_for: u32,
    tally: Tally,
    /// The second half, where `op` runs as one with it.
    partner: Op,
    is_done: bool,
}

impl RankState {
    /// A rank whose list begins at `first_place`.
    const fn new(first_place: usize, setup: u64) -> Self {
        let (op, place) = (Op::forward(0, 0), first_place as u32);
        Self { op, place, waits_for: NONE, tally: Tally::new(setup), partner: op, is_done: false }
    }
}

/// A step under way.
struct FoldedWorld<'a, L, O> {
    inputs: &'a Inputs,
    rows: &'a Rows,
    lengths: L,
    policy: Box<dyn Policy + 'a>,
    ranks: &'a mut [RankState],
    /// When each input is there.
    slots: Slots<'a>,
    /// When each link has sent everything that it was given.
    links: &'a mut [u64],
    observer: O,
}

impl<Q: EventQueue<u16>, L: Lengths, O: Observer> World<Q> for FoldedWorld<'_, L, O> {
    /// The rank whose operation (or pair) is over.
    type Event = u16;
    type Error = Overflow;
    const SETTLES: bool = false;

    #[inline]
    fn handle(&mut self, now: Time, rank: u16, queue: &mut Q) -> Result<(), Overflow> {
        let rank = Rank(rank);
        let state = &self.ranks[rank.index()];
        let at = Place { place: state.place as usize, op: state.op };
        if at.op.paired && self.runs_pairs(rank) {
            self.end_pair(now, rank, queue);
            return Ok(());
        }
        self.ranks[rank.index()].place += 1;
        let delivery = self.deliver(now, rank, at);
        self.choose(now, rank, queue);
        self.conclude(now, at, delivery, queue);
        Ok(())
    }
}

/// The result of an operation on its way.
#[derive(Clone, Copy)]
struct Delivery {
    start: u64,
    arrival: u64,
    /// Whether its receiver waits for it.
    awakens: bool,
}

impl<L: Lengths, O: Observer> FoldedWorld<'_, L, O> {
    /// Lets every rank choose its first operation.
    #[cold]
    fn begin<Q: EventQueue<u16>>(&mut self, now: Time, queue: &mut Q) {
        (0..self.ranks.len() as u16).for_each(|rank| self.choose_rarely(now, Rank(rank), queue));
    }

    /// An operation ends, and its result goes to whoever needs it.
    #[inline(always)]
    fn deliver(&mut self, now: Time, rank: Rank, at: Place) -> Delivery {
        let row = self.rows.of(at.op);
        let slot = row.output + at.op.micro_batch.0;
        let length = self.lengths.message(at.op, row.message);
        // Place 0 is for what no serial link carries, and says nothing. Inputs::new keeps the sum of all times below
        // 2^63 ns, so nothing here can overflow.
        let link = &mut self.links[row.link.wrapping_add(1) as usize];
        let free = if row.link == NONE { 0 } else { *link };
        let start = now.as_nanos().max(free);
        let arrival = start + length;
        *link = arrival;
        self.slots.fill(slot, Time::from_nanos(arrival));
        let awakens =
            self.ranks.get(row.receiver as usize).is_some_and(|receiver| receiver.waits_for == slot);
        debug_assert!(!awakens || row.receiver != u32::from(rank.0), "a rank that runs waits for nothing");
        Delivery { start, arrival, awakens }
    }

    /// Tells of a result and wakes whoever waits for it: once its maker has chosen what it does next, since the queue is
    /// fastest if that comes first.
    #[inline(always)]
    fn conclude<Q: EventQueue<u16>>(&mut self, now: Time, at: Place, delivery: Delivery, queue: &mut Q) {
        let row = self.rows.of(at.op);
        let Delivery { start, arrival, awakens } = delivery;
        let receiver = Rank(row.receiver as u16);
        if row.sends {
            self.observer.sent(row, at.place, start, arrival);
        } else {
            self.observer.sent_nothing(at.place);
        }
        if awakens {
            self.wake(now, receiver, Time::from_nanos(arrival), queue);
        }
    }

    /// Asks the policy for a rank's next operation, and starts it or waits for its input.
    #[inline(always)]
    fn choose<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, queue: &mut Q) {
        let choice = self.policy.next(rank, &Arrived { slots: &self.slots, rows: self.rows });
        let state = &mut self.ranks[rank.index()];
        let Choice::Run(op) = choice else {
            state.is_done = choice == Choice::Done;
            return;
        };
        state.op = op;
        if op.paired && self.runs_pairs(rank) {
            return self.choose_partner(now, rank, queue);
        }
        let rows = self.rows;
        let row = rows.of(op);
        match ready(&self.slots, row, op) {
            Ok(ready) => self.start(now, rank, row, ready, queue),
            Err(slot) => self.ranks[rank.index()].waits_for = slot,
        }
    }

    /// The same where it is done once or seldom.
    #[cold]
    fn choose_rarely<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, queue: &mut Q) {
        self.choose(now, rank, queue);
    }

    /// The input that a rank waits for is there, or known to come.
    #[inline(always)]
    fn wake<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, arrival: Time, queue: &mut Q) {
        let state = &mut self.ranks[rank.index()];
        state.waits_for = NONE;
        let op = state.op;
        if op.paired && self.runs_pairs(rank) {
            self.start_pair(now, rank, queue);
        } else {
            let rows = self.rows;
            self.start(now, rank, rows.of(op), arrival, queue);
        }
    }

    /// Starts a rank's operation when its input is there.
    #[inline(always)]
    fn start<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, row: &Row, ready: Time, queue: &mut Q) {
        let state = &mut self.ranks[rank.index()];
        let at = Place { place: state.place as usize, op: state.op };
        let length = self.lengths.op(at.op, row.duration);
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let start = ready.max(now).as_nanos();
        let end = start + length;
        state.tally.run(start, end);
        queue.schedule(Time::from_nanos(end), Class(0), rank.0);
        self.observer.ran(at.place, start, end);
    }

    /// Whether a rank has a time for overlapped pairs; otherwise their parts run on their own.
    #[cold]
    fn runs_pairs(&self, rank: Rank) -> bool {
        self.inputs.costs().ranks[rank.index()].overlapped_pair.is_some()
    }

    #[cold]
    fn choose_partner<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, queue: &mut Q) {
        let choice = self.policy.next(rank, &Arrived { slots: &self.slots, rows: self.rows });
        if let Choice::Run(partner) = choice {
            self.ranks[rank.index()].partner = partner;
            self.start_pair(now, rank, queue);
        }
    }

    /// Starts a pair if both inputs are there.
    #[cold]
    fn start_pair<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, queue: &mut Q) {
        let state = &mut self.ranks[rank.index()];
        let parts = [state.op, state.partner];
        let mut start = now;
        for op in parts {
            match ready(&self.slots, self.rows.of(op), op) {
                Ok(ready) => start = start.max(ready),
                Err(slot) => {
                    state.waits_for = slot;
                    return;
                }
            }
        }
        let length = self.inputs.costs().pair_duration(self.inputs.shape(), parts[0], parts[1]);
        let length = length.expect("only pairs with a time of their own run as one").as_nanos();
        let length = self.lengths.pair(parts[0], parts[1], length);
        let (start, end) = (start.as_nanos(), start.as_nanos() + length);
        state.tally.run(start, end);
        queue.schedule(Time::from_nanos(end), Class(0), rank.0);
        for at in state.pair() {
            self.observer.ran(at.place, start, end);
        }
    }

    /// Both halves of a pair end now; where they use one link, the activation goes first.
    #[cold]
    fn end_pair<Q: EventQueue<u16>>(&mut self, now: Time, rank: Rank, queue: &mut Q) {
        let state = &mut self.ranks[rank.index()];
        let mut pair = state.pair();
        state.place += 2;
        pair.sort_by_key(|at| at.op.kind);
        let deliveries = pair.map(|at| self.deliver(now, rank, at));
        self.choose_rarely(now, rank, queue);
        for (at, delivery) in pair.into_iter().zip(deliveries) {
            self.conclude(now, at, delivery, queue);
        }
    }
}

impl RankState {
    /// Both halves of a pair.
    fn pair(&self) -> [Place; 2] {
        let place = self.place as usize;
        [Place { place, op: self.op }, Place { place: place + 1, op: self.partner }]
    }
}

/// When the input that an operation needs from another stage is there, or the slot that is still empty.
#[inline]
fn ready(slots: &Slots<'_>, row: &Row, op: Op) -> Result<Time, u32> {
    let slot = row.input + op.micro_batch.0;
    slots.get(slot).ok_or(slot)
}

/// The instants at which inputs are there. They are kept later by `base`, which lies after all that earlier runs
/// have left; so the table need not be emptied between runs.
struct Slots<'a> {
    table: &'a mut [u64],
    base: u64,
}

impl Slots<'_> {
    #[inline]
    fn get(&self, slot: u32) -> Option<Time> {
        self.table[slot as usize].checked_sub(self.base).map(Time::from_nanos)
    }

    #[inline]
    fn fill(&mut self, slot: u32, at: Time) {
        self.table[slot as usize] = self.base + at.as_nanos();
    }
}

/// What has arrived or is known to, as a policy may see it.
struct Arrived<'a> {
    slots: &'a Slots<'a>,
    rows: &'a Rows,
}

impl Ready for Arrived<'_> {
    fn is_ready(&self, op: Op) -> bool {
        ready(self.slots, self.rows.of(op), op).is_ok()
    }
}

/// What the loop keeps from one run to the next.
#[derive(Debug, Default)]
pub(crate) struct FoldedMemory {
    ranks: Vec<RankState>,
    slots: Vec<u64>,
    /// Past everything that `slots` holds.
    base: u64,
    /// The base in the last run.
    base_before: u64,
    links: Vec<u64>,
    queue: OwnerQueue,
    long_queue: PackedQueue<u16>,
}

impl FoldedMemory {
    /// Runs a step whose ranks' lists begin at `first_places`. Returns `None` if it does not come to its end.
    pub(crate) fn run<O: Observer>(
        &mut self,
        step: FifoStep<'_>,
        rows: &Rows,
        first_places: &[usize],
        policy: Box<dyn Policy + '_>,
        observer: O,
    ) -> Result<Option<Times>, Overflow> {
        let inputs = step.inputs();
        if inputs.costs().micro_batch_scale.is_empty() {
            self.run_with(inputs, rows, first_places, policy, Usual, observer)?;
        } else {
            self.run_with(inputs, rows, first_places, policy, Scaled(inputs.costs()), observer)?;
        }
        if self.ranks.iter().all(|rank| rank.is_done) {
            let times = Times::new(inputs, self.ranks.iter().map(|rank| rank.tally));
            self.base_before = self.base;
            self.base += 1 + times.makespan.as_nanos();
            return Ok(Some(times));
        }
        self.slots.clear(); // they may hold instants that no rank has reached
        Ok(None)
    }

    /// When the input of each slot was there in the last run, and its base.
    pub(crate) fn slots(&self) -> (&[u64], u64) {
        (&self.slots, self.base_before)
    }

    fn run_with<L: Lengths, O: Observer>(
        &mut self,
        inputs: &Inputs,
        rows: &Rows,
        first_places: &[usize],
        policy: Box<dyn Policy + '_>,
        lengths: L,
        observer: O,
    ) -> Result<(), Overflow> {
        let Self { ranks, slots, base, links, queue, long_queue, .. } = self;
        let setup = inputs.costs().setup;
        if slots.len() < rows.slots || *base > i64::MAX as u64 {
            // Inputs::new keeps every instant below 2^63, so that the sum with the base does not overflow.
            *base = 1;
            slots.clear();
            slots.resize(rows.slots, 0);
        }
        slots[rows.always_ready()].fill(*base);
        links.clear();
        links.resize(1 + rows.links, 0);
        ranks.clear();
        ranks.extend(first_places.iter().map(|&at| RankState::new(at, setup.as_nanos())));
        let slots = Slots { table: slots, base: *base };
        let mut world = FoldedWorld { inputs, rows, lengths, policy, ranks, slots, links, observer };
        let begin = Time::ZERO.after(setup)?;
        if inputs.horizon() < OwnerQueue::END {
            queue.reset(first_places.len());
            world.begin(begin, queue);
            run(&mut world, queue)?;
        } else {
            long_queue.clear();
            world.begin(begin, long_queue);
            run(&mut world, long_queue)?;
        }
        Ok(())
    }
}
