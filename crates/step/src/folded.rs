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

/// One rank, in a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct RankState<'a> {
    /// What it runs or waits to run; the first half of a pair.
    op: Op,
    row: &'a Row,
    place: u32,
    /// The slot whose input it lacks, or [`NONE`].
    waits_for: u32,
    busy: u64,
    /// When its list came to an end, which is when its last operation ended.
    done: Option<Time>,
    /// The second half, where `op` runs as one with it.
    partner: Op,
    /// The slots that its first operation (or pair) reads.
    first_inputs: [u32; 2],
}

/// A step under way.
struct FoldedWorld<'a, L, O> {
    ranks: Vec<RankState<'a>>,
    step: Step<'a, L, O>,
}

/// All of it but the ranks.
struct Step<'a, L, O> {
    inputs: &'a Inputs,
    policy: Box<dyn Policy + 'a>,
    tables: Tables<'a, L>,
    observer: O,
}

impl<Q: EventQueue<u16>, L: Lengths, O: Observer> World<Q> for FoldedWorld<'_, L, O> {
    /// The rank whose operation (or pair) is over.
    type Event = u16;
    type Error = Overflow;
    const SETTLES: bool = false;

    #[inline]
    fn handle(&mut self, now: Time, rank: u16, queue: &mut Q) -> Result<(), Overflow> {
        let Self { ranks, step } = self;
        let state = &mut ranks[usize::from(rank)];
        if state.op.paired && step.runs_pairs(rank) {
            step.end_pair(ranks, now, rank, queue);
            return Ok(());
        }
        let sent = step.tables.send(state.row, Place { place: state.place as usize, op: state.op }, now);
        state.place += 1;
        step.choose(state, now, rank, queue);
        step.conclude(ranks, now, sent, queue);
        Ok(())
    }
}

impl<'a, L: Lengths, O: Observer> FoldedWorld<'a, L, O> {
    /// Ranks whose lists begin at `first_places`, and of which none has chosen anything.
    fn new(first_places: &[usize], step: Step<'a, L, O>) -> Self {
        let op = Op::forward(0, 0);
        let row = step.tables.rows.of(op);
        let idle = |&first: &usize| RankState {
            op,
            row,
            place: first as u32,
            waits_for: NONE,
            busy: 0,
            done: None,
            partner: op,
            first_inputs: [0; 2],
        };
        Self { ranks: first_places.iter().map(idle).collect(), step }
    }

    /// Runs the step from `begin` to its end. Returns what each rank counted, unless one came to no end.
    fn run<Q: EventQueue<u16>>(
        &mut self,
        begin: Time,
        queue: &mut Q,
    ) -> Result<Option<Vec<Tally>>, Overflow> {
        let Self { ranks, step } = self;
        for (rank, state) in (0..).zip(&mut *ranks) {
            step.choose_rarely(state, begin, rank, queue);
            let is_pair = state.op.paired && step.runs_pairs(rank);
            let ops = [state.op, if is_pair { state.partner } else { state.op }];
            state.first_inputs = ops.map(|op| step.tables.input(op));
        }
        run(self, queue)?;
        let tables = &self.step.tables;
        // No slot is filled twice, so they still tell when the first operations could start.
        let tally = |state: &RankState<'_>| {
            let ready = state.first_inputs.map(|slot| tables.ready(slot).unwrap_or(begin));
            let start = begin.max(ready[0]).max(ready[1]);
            Some(Tally::of(state.busy, start.as_nanos(), state.done?.as_nanos()))
        };
        Ok(self.ranks.iter().map(tally).collect())
    }
}

impl<'a, L: Lengths, O: Observer> Step<'a, L, O> {
    /// Asks the policy for a rank's next operation, and starts it or waits for its input.
    #[inline(always)]
    fn choose<Q: EventQueue<u16>>(&mut self, state: &mut RankState<'a>, now: Time, rank: u16, queue: &mut Q) {
        let choice = self.policy.next(Rank(rank), &self.tables);
        let Choice::Run(op) = choice else {
            state.done = (choice == Choice::Done).then_some(now);
            return;
        };
        state.op = op;
        if op.paired && self.runs_pairs(rank) {
            return self.choose_partner(state, now, rank, queue);
        }
        state.row = self.tables.rows.of(op);
        let slot = state.row.input + op.micro_batch.0;
        match self.tables.ready(slot) {
            Some(ready) => self.start(state, now, rank, ready, queue),
            None => state.waits_for = slot,
        }
    }

    /// The same where it is done once or seldom.
    #[cold]
    fn choose_rarely<Q: EventQueue<u16>>(
        &mut self,
        state: &mut RankState<'a>,
        now: Time,
        rank: u16,
        queue: &mut Q,
    ) {
        self.choose(state, now, rank, queue);
    }

    /// Tells of a result and wakes its receiver if it waits for it: once its maker has chosen what it does next, since
    /// that takes longest.
    #[inline(always)]
    fn conclude<Q: EventQueue<u16>>(
        &mut self,
        ranks: &mut [RankState<'a>],
        now: Time,
        sent: Sent<'a>,
        queue: &mut Q,
    ) {
        let Sent { row, place, slot, start, arrival } = sent;
        if row.sends {
            self.observer.sent(row, place, start, arrival);
        } else {
            self.observer.sent_nothing(place);
        }
        if let Some(receiver) = ranks.get_mut(row.receiver as usize)
            && receiver.waits_for == slot
        {
            self.wake(receiver, now, row.receiver as u16, Time::from_nanos(arrival), queue);
        }
    }

    /// The input that a rank waits for is there, or known to come.
    #[inline(always)]
    fn wake<Q: EventQueue<u16>>(
        &mut self,
        state: &mut RankState<'a>,
        now: Time,
        rank: u16,
        arrival: Time,
        queue: &mut Q,
    ) {
        state.waits_for = NONE;
        if state.op.paired && self.runs_pairs(rank) {
            self.start_pair(state, now, rank, queue);
        } else {
            self.start(state, now, rank, arrival, queue);
        }
    }

    /// Starts a rank's operation when its input is there.
    #[inline(always)]
    fn start<Q: EventQueue<u16>>(
        &mut self,
        state: &mut RankState<'a>,
        now: Time,
        rank: u16,
        ready: Time,
        queue: &mut Q,
    ) {
        let length = self.tables.lengths.op(state.op, state.row.duration);
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let start = ready.max(now).as_nanos();
        let end = start + length;
        state.busy += length;
        queue.schedule(Time::from_nanos(end), Class(0), rank);
        self.observer.ran(state.place as usize, start, end);
    }

    /// Whether a rank has a time for overlapped pairs; otherwise their parts run on their own.
    #[cold]
    fn runs_pairs(&self, rank: u16) -> bool {
        self.inputs.costs().ranks[usize::from(rank)].overlapped_pair.is_some()
    }

    #[cold]
    fn choose_partner<Q: EventQueue<u16>>(
        &mut self,
        state: &mut RankState<'a>,
        now: Time,
        rank: u16,
        queue: &mut Q,
    ) {
        if let Choice::Run(partner) = self.policy.next(Rank(rank), &self.tables) {
            state.partner = partner;
            self.start_pair(state, now, rank, queue);
        }
    }

    /// Starts a pair if both inputs are there.
    #[cold]
    fn start_pair<Q: EventQueue<u16>>(
        &mut self,
        state: &mut RankState<'a>,
        now: Time,
        rank: u16,
        queue: &mut Q,
    ) {
        let parts = [state.op, state.partner];
        let mut start = now;
        for slot in parts.map(|op| self.tables.input(op)) {
            let Some(ready) = self.tables.ready(slot) else {
                state.waits_for = slot;
                return;
            };
            start = start.max(ready);
        }
        let length = self.inputs.costs().pair_duration(self.inputs.shape(), parts[0], parts[1]);
        let length = length.expect("only pairs with a time of their own run as one").as_nanos();
        let length = self.tables.lengths.pair(parts[0], parts[1], length);
        let (start, end) = (start.as_nanos(), start.as_nanos() + length);
        state.busy += length;
        queue.schedule(Time::from_nanos(end), Class(0), rank);
        for at in state.pair() {
            self.observer.ran(at.place, start, end);
        }
    }

    /// Both halves of a pair end now; where they use one link, the activation goes first.
    #[cold]
    fn end_pair<Q: EventQueue<u16>>(
        &mut self,
        ranks: &mut [RankState<'a>],
        now: Time,
        rank: u16,
        queue: &mut Q,
    ) {
        let state = &mut ranks[usize::from(rank)];
        let mut pair = state.pair();
        state.place += 2;
        pair.sort_by_key(|at| at.op.kind);
        let results = pair.map(|at| self.tables.send(self.tables.rows.of(at.op), at, now));
        self.choose_rarely(state, now, rank, queue);
        for sent in results {
            self.conclude(ranks, now, sent, queue);
        }
    }
}

impl RankState<'_> {
    /// Both halves of a pair.
    fn pair(&self) -> [Place; 2] {
        let place = self.place as usize;
        [Place { place, op: self.op }, Place { place: place + 1, op: self.partner }]
    }
}

/// The result of an operation on its way.
#[derive(Clone, Copy)]
struct Sent<'a> {
    /// What made it, and its place in the orders.
    row: &'a Row,
    place: usize,
    /// What it fills.
    slot: u32,
    start: u64,
    arrival: u64,
}

/// What operations pass on to one another.
struct Tables<'a, L> {
    rows: &'a Rows,
    lengths: L,
    /// The instants at which inputs are there. They are kept later by `base`, which lies after all that earlier runs
    /// have left; so the table need not be emptied between runs.
    slots: &'a mut [u64],
    base: u64,
    /// When each link has sent everything that it was given.
    links: &'a mut [u64],
}

impl<L: Lengths> Tables<'_, L> {
    /// The slot that an operation reads.
    fn input(&self, op: Op) -> u32 {
        self.rows.of(op).input + op.micro_batch.0
    }

    /// When the input in a slot is there, if that is known.
    #[inline]
    fn ready(&self, slot: u32) -> Option<Time> {
        self.slots[slot as usize].checked_sub(self.base).map(Time::from_nanos)
    }

    /// An operation ends, and its result goes to whoever needs it.
    #[inline(always)]
    fn send<'r>(&mut self, row: &'r Row, at: Place, now: Time) -> Sent<'r> {
        let Place { place, op } = at;
        let slot = row.output + op.micro_batch.0;
        let length = self.lengths.message(op, row.message);
        // Inputs::new keeps the sum of all times below 2^63 ns, so nothing here can overflow.
        let (mut start, mut arrival) = (now.as_nanos(), now.as_nanos() + length);
        // There is none for what no serial link carries.
        if let Some(link) = self.links.get_mut(row.link as usize) {
            start = start.max(*link);
            arrival = start + length;
            *link = arrival;
        }
        self.slots[slot as usize] = self.base + arrival;
        Sent { row, place, slot, start, arrival }
    }
}

/// What has arrived or is known to, as a policy may see it.
impl<L: Lengths> Ready for Tables<'_, L> {
    fn is_ready(&self, op: Op) -> bool {
        self.ready(self.input(op)).is_some()
    }
}

/// What the loop keeps from one run to the next.
#[derive(Debug, Default)]
pub(crate) struct FoldedMemory {
    slots: Vec<u64>,
    /// Past everything that `slots` holds.
    base: u64,
    /// The base in the last run.
    base_before: u64,
    links: Vec<u64>,
    queue: Box<OwnerQueue>,
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
        let tallies = if inputs.costs().micro_batch_scale.is_empty() {
            self.run_with(inputs, rows, first_places, policy, Usual, observer)?
        } else {
            self.run_with(inputs, rows, first_places, policy, Scaled(inputs.costs()), observer)?
        };
        let Some(tallies) = tallies else {
            self.slots.clear(); // they may hold instants that no rank has reached
            return Ok(None);
        };
        let times = Times::new(inputs, tallies.into_iter());
        self.base_before = self.base;
        self.base += 1 + times.makespan.as_nanos();
        Ok(Some(times))
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
    ) -> Result<Option<Vec<Tally>>, Overflow> {
        let Self { slots, base, links, queue, long_queue, .. } = self;
        if slots.len() < rows.slots || *base > i64::MAX as u64 {
            // Inputs::new keeps every instant below 2^63, so that the sum with the base does not overflow.
            *base = 1;
            slots.clear();
            slots.resize(rows.slots, 0);
        }
        slots[rows.always_ready()].fill(*base);
        links.clear();
        links.resize(rows.links, 0);
        let tables = Tables { rows, lengths, slots, base: *base, links };
        let mut world = FoldedWorld::new(first_places, Step { inputs, policy, tables, observer });
        let begin = Time::ZERO.after(inputs.costs().setup)?;
        if inputs.horizon() < OwnerQueue::END {
            queue.reset(first_places.len(), rows.longest());
            world.run(begin, &mut **queue)
        } else {
            long_queue.clear();
            world.run(begin, long_queue)
        }
    }
}
