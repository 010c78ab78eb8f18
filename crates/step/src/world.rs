//! The event loop of a step: ranks end operations, links end messages, and nothing else happens.
//!
//! At one instant, everything that ends at that instant ends before anything is chosen; then idle ranks choose,
//! and only when no rank can start anything more do links choose. What has no length is scheduled for the same
//! instant and so ends before the next round of choices.

use pipestep_engine::{Class, EventQueue, HeapQueue, Interval, Overflow, Recorder, Time, World};
use pipestep_schedule::{Choice, Kind, Op, Policy, Rank, Ready};

use crate::Inputs;
use crate::lengths::Lengths;
use crate::links::{Flight, Transport};
use crate::log::MessageSink;
use crate::rows::{NONE, Row, Rows};
use crate::times::Tally;

/// Everything that can happen in a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// Setup is over: every rank may begin.
    Begin,
    /// A rank's operation (or pair) is over.
    RankEnds(Rank),
    /// A message has arrived; see [`crate::links`] for what the number means.
    MessageEnds(u32),
}

/// What a rank is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It has to ask the policy.
    Idle,
    /// It has its next operation and waits for an input.
    Waiting,
    /// It runs.
    Running,
    /// Its policy has nothing more for it.
    Done,
}

/// One rank of the world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RankState {
    doing: Doing,
    /// What it runs or waits to run; the first half of a pair.
    op: Op,
    /// The place of `op` in the timeline.
    place: usize,
    /// The second half of a pair that runs as one.
    partner: Option<Op>,
    /// The slot whose input it lacks, while it waits.
    waits_for: u32,
    pub(crate) tally: Tally,
}

/// A step under way.
pub(crate) struct StepWorld<'a, R, M, L, T> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) rows: &'a Rows,
    pub(crate) lengths: L,
    pub(crate) policy: Box<dyn Policy + 'a>,
    pub(crate) transport: T,
    pub(crate) ranks: Vec<RankState>,
    /// When each input is there; `Time::MAX` until it is known.
    pub(crate) slots: Vec<Time>,
    /// Kept for policies that decide online.
    pub(crate) history: Option<History>,
    /// Ranks that may have something to choose at this instant.
    pub(crate) awake: Vec<Rank>,
    pub(crate) ops: &'a mut R,
    pub(crate) messages: &'a mut M,
}

/// What has happened so far.
pub(crate) struct History {
    /// By rank: what it has run.
    pub(crate) ran: Vec<Vec<Op>>,
    /// The kinds that each (stage, micro-batch) has finished, one bit each.
    pub(crate) finished: Vec<u8>,
}

impl RankState {
    /// A rank that has run nothing and numbers its operations from `first_place`.
    pub(crate) const fn new(first_place: usize, setup: u64) -> Self {
        let (op, partner) = (Op::forward(0, 0), None);
        let tally = Tally::new(setup);
        Self { doing: Doing::Idle, op, place: first_place, partner, waits_for: NONE, tally }
    }

    fn wait_for(&mut self, slot: u32) {
        (self.doing, self.waits_for) = (Doing::Waiting, slot);
    }

    /// Whether the policy has said that nothing is left for it.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.doing, Doing::Done)
    }
}

impl<R: Recorder, M: MessageSink, L: Lengths<1>, T: Transport> World<HeapQueue<Event>>
    for StepWorld<'_, R, M, L, T>
{
    type Event = Event;
    type Error = Overflow;

    #[inline]
    fn handle(&mut self, now: Time, event: Event, queue: &mut HeapQueue<Event>) -> Result<(), Overflow> {
        match event {
            Event::Begin => self.awake.extend((0..self.ranks.len() as u16).rev().map(Rank)),
            Event::RankEnds(rank) => self.end_operation(now, rank, queue),
            Event::MessageEnds(number) => {
                let flight = self.transport.end(number);
                self.arrive(now, flight, now, queue);
            }
        }
        Ok(())
    }

    #[inline]
    fn settle(&mut self, now: Time, queue: &mut HeapQueue<Event>) -> Result<(), Overflow> {
        while let Some(rank) = self.awake.pop() {
            self.choose(now, rank, queue);
        }
        // What a rank started and ended at once comes before any link's choice.
        if queue.peek_time() != Some(now) {
            self.transport.choose(now, queue, &mut *self.messages);
        }
        Ok(())
    }
}

impl<R: Recorder, M: MessageSink, L: Lengths<1>, T: Transport> StepWorld<'_, R, M, L, T> {
    #[inline]
    fn end_operation(&mut self, now: Time, rank: Rank, queue: &mut HeapQueue<Event>) {
        let state = &mut self.ranks[rank.index()];
        let RankState { op, place, partner, .. } = *state;
        state.doing = Doing::Idle;
        state.place += 1;
        match partner {
            None => self.deliver(now, op, place, queue),
            Some(partner) => self.end_pair(now, rank, [(op, place), (partner, place + 1)], queue),
        }
        self.wake(now, rank, queue);
    }

    /// Both halves of a pair end now; where they use one link, the activation goes first.
    #[cold]
    fn end_pair(&mut self, now: Time, rank: Rank, mut pair: [(Op, usize); 2], queue: &mut HeapQueue<Event>) {
        self.ranks[rank.index()].partner = None;
        self.ranks[rank.index()].place += 1;
        pair.sort_by_key(|&(op, _)| op.kind);
        for (op, place) in pair {
            self.deliver(now, op, place, queue);
        }
    }

    /// Sends the result of an operation to whoever needs it.
    #[inline]
    fn deliver(&mut self, now: Time, op: Op, place: usize, queue: &mut HeapQueue<Event>) {
        if let Some(history) = &mut self.history {
            let micro_batches = self.inputs.shape().micro_batches();
            let at = op.stage.index() * micro_batches + op.micro_batch.index();
            history.finished[at] |= 1 << op.kind as u8;
        }
        let row = self.rows.of(op);
        if row.receiver == NONE {
            return;
        }
        let receiver = Rank(row.receiver as u16);
        let slot = row.output + op.micro_batch.0;
        let flight = Flight { op, place, slot, pair: row.pair, receiver };
        if !row.sends {
            self.arrive(now, flight, now, queue);
            return;
        }
        let [length] = self.lengths.message(place, op, row.message);
        if let Some(arrival) = self.transport.send(now, row.link, length, flight, &mut *self.messages) {
            self.arrive(arrival, flight, now, queue);
        }
    }

    /// An input is there at instant `at`: now, or later if nothing can change that any more.
    #[inline]
    fn arrive(&mut self, at: Time, flight: Flight, now: Time, queue: &mut HeapQueue<Event>) {
        self.slots[flight.slot as usize] = at;
        let receiver = &self.ranks[flight.receiver.index()];
        // A rank that settled on an operation wakes for its input only; one that is idle reconsiders.
        let wakes = match receiver.doing {
            Doing::Waiting => receiver.waits_for == flight.slot,
            Doing::Idle => true,
            Doing::Running | Doing::Done => false,
        };
        if wakes {
            self.wake(now, flight.receiver, queue);
        }
    }

    /// A rank may be able to start something.
    #[inline]
    fn wake(&mut self, now: Time, rank: Rank, queue: &mut HeapQueue<Event>) {
        if T::SETTLED {
            self.choose(now, rank, queue);
        } else {
            self.awake.push(rank);
        }
    }

    /// Lets a rank start its next operation if it can.
    #[inline]
    fn choose(&mut self, now: Time, rank: Rank, queue: &mut HeapQueue<Event>) {
        match self.ranks[rank.index()].doing {
            Doing::Running | Doing::Done => return,
            Doing::Waiting => {}
            Doing::Idle => {
                if !self.ask(rank) {
                    return;
                }
            }
        }
        let state = &mut self.ranks[rank.index()];
        let row = self.rows.of(state.op);
        let mut ready = match ready(&self.slots, row, state.op) {
            Ok(ready) => ready,
            Err(slot) => return state.wait_for(slot),
        };
        let [mut length] = self.lengths.op(state.place, state.op, row.duration);
        if let Some(partner) = state.partner {
            match self::ready(&self.slots, self.rows.of(partner), partner) {
                Ok(also) => ready = ready.max(also),
                Err(slot) => return state.wait_for(slot),
            }
            let pair = self.inputs.costs().pair_duration(self.inputs.shape(), state.op, partner);
            let usual = pair.expect("only pairs with a time of their own run as one").as_nanos();
            [length] = self.lengths.pair(state.op, partner, usual);
        }
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let start = ready.max(now).as_nanos();
        let end = start + length;
        state.doing = Doing::Running;
        state.tally.run(start, end);
        let interval = Interval { start: Time::from_nanos(start), end: Time::from_nanos(end) };
        self.ops.record(state.place, interval);
        if state.partner.is_some() {
            self.ops.record(state.place + 1, interval);
        }
        queue.schedule(interval.end, Class(0), Event::RankEnds(rank));
    }

    /// Asks the policy for a rank's next operation. Returns whether there is one.
    #[inline]
    fn ask(&mut self, rank: Rank) -> bool {
        let choice = self.consult(rank);
        let state = &mut self.ranks[rank.index()];
        match choice {
            Choice::Run(op) => {
                state.op = op;
                if op.paired || self.history.is_some() {
                    self.settle_on(rank, op);
                }
                true
            }
            Choice::Wait => false,
            Choice::Done => {
                state.doing = Doing::Done;
                false
            }
        }
    }

    /// Asks for the partner of a paired operation, unless the parts run on their own; remembers what was chosen.
    #[cold]
    fn settle_on(&mut self, rank: Rank, op: Op) {
        let mut partner = None;
        let as_one = op.paired && self.inputs.costs().ranks[rank.index()].overlapped_pair.is_some();
        if as_one && let Choice::Run(second) = self.consult(rank) {
            partner = Some(second);
        }
        self.ranks[rank.index()].partner = partner;
        if let Some(history) = &mut self.history {
            history.ran[rank.index()].extend([Some(op), partner].into_iter().flatten());
        }
    }

    #[inline]
    fn consult(&mut self, rank: Rank) -> Choice {
        let Self { policy, slots, rows, history, inputs, .. } = self;
        policy.next(rank, &ReadyNow { slots, rows, history: history.as_ref(), inputs })
    }
}

/// When the input that an operation needs from another stage is there, or the slot that is still empty.
#[inline]
fn ready(slots: &[Time], row: &Row, op: Op) -> Result<Time, u32> {
    let slot = row.input + op.micro_batch.0;
    let at = slots[slot as usize];
    if at == Time::MAX { Err(slot) } else { Ok(at) }
}

/// The world as an online policy may see it.
struct ReadyNow<'a> {
    slots: &'a [Time],
    rows: &'a Rows,
    history: Option<&'a History>,
    inputs: &'a Inputs,
}

impl Ready for ReadyNow<'_> {
    fn is_ready(&self, op: Op) -> bool {
        let micro_batches = self.inputs.shape().micro_batches();
        let at = op.stage.index() * micro_batches + op.micro_batch.index();
        let needs = match op.kind {
            Kind::Forward => 0,
            Kind::Backward | Kind::InputGradient => 1 << Kind::Forward as u8,
            Kind::WeightGradient => 1 << Kind::InputGradient as u8,
        };
        let own = self.history.is_none_or(|history| history.finished[at] & needs == needs);
        own && ready(self.slots, self.rows.of(op), op).is_ok()
    }
}
