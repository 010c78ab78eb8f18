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
use crate::rows::{NONE, Rows};
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

/// An operation at its place in the timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placed {
    pub(crate) op: Op,
    pub(crate) place: usize,
}

/// What a rank is doing.
#[derive(Clone, Copy, Debug)]
enum Doing {
    /// It has to ask the policy.
    Idle,
    /// It has its next operation (and partner) and waits for inputs.
    Waiting(Placed, Option<Placed>),
    /// It runs.
    Running(Placed, Option<Placed>),
    /// Its policy has nothing more for it.
    Done,
}

/// One rank of the world.
#[derive(Clone, Debug)]
pub(crate) struct RankState {
    doing: Doing,
    /// The place that its next operation takes.
    next_place: usize,
    pub(crate) tally: Tally,
    /// What it has run, for policies that decide online.
    pub(crate) ran: Vec<Op>,
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
    /// For online policies: the kinds that each (stage, micro-batch) has finished, one bit each.
    pub(crate) finished: Option<Vec<u8>>,
    /// Ranks that may have something to choose at this instant.
    pub(crate) awake: Vec<Rank>,
    pub(crate) ops: &'a mut R,
    pub(crate) messages: &'a mut M,
}

impl RankState {
    /// A rank that has run nothing and numbers its operations from `first_place`.
    pub(crate) const fn new(first_place: usize, setup: u64) -> Self {
        Self { doing: Doing::Idle, next_place: first_place, tally: Tally::new(setup), ran: Vec::new() }
    }

    /// Whether the policy has said that nothing is left for it.
    pub(crate) const fn is_done(&self) -> bool {
        matches!(self.doing, Doing::Done)
    }
}

impl<R: Recorder, M: MessageSink, L: Lengths, T: Transport> World<HeapQueue<Event>>
    for StepWorld<'_, R, M, L, T>
{
    type Event = Event;
    type Error = Overflow;

    #[inline]
    fn handle(&mut self, now: Time, event: Event, _queue: &mut HeapQueue<Event>) -> Result<(), Overflow> {
        match event {
            Event::Begin => self.awake.extend((0..self.ranks.len() as u16).rev().map(Rank)),
            Event::RankEnds(rank) => self.end_operation(now, rank),
            Event::MessageEnds(number) => {
                let flight = self.transport.end(number);
                self.arrive(now, flight);
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

impl<R: Recorder, M: MessageSink, L: Lengths, T: Transport> StepWorld<'_, R, M, L, T> {
    fn end_operation(&mut self, now: Time, rank: Rank) {
        let Doing::Running(first, second) = self.ranks[rank.index()].doing else {
            unreachable!("a rank that ends an operation was running it");
        };
        self.ranks[rank.index()].doing = Doing::Idle;
        self.awake.push(rank);
        match second {
            None => self.deliver(now, first),
            Some(second) => {
                // Both halves of a pair end now; where they use one link, the activation goes first.
                let [activation, gradient] =
                    if first.op.kind < second.op.kind { [first, second] } else { [second, first] };
                self.deliver(now, activation);
                self.deliver(now, gradient);
            }
        }
    }

    /// Sends the result of an operation to whoever needs it.
    #[inline]
    fn deliver(&mut self, now: Time, Placed { op, place }: Placed) {
        if let Some(finished) = &mut self.finished {
            let micro_batches = self.inputs.shape().micro_batches();
            finished[op.stage.index() * micro_batches + op.micro_batch.index()] |= 1 << op.kind as u8;
        }
        let row = self.rows.of(op);
        if row.output == NONE {
            return;
        }
        let receiver = Rank(row.receiver as u16);
        let slot = row.output + op.micro_batch.0;
        let flight = Flight { op, place, slot, pair: row.pair, receiver };
        if !row.sends {
            self.arrive(now, flight);
            return;
        }
        let length = self.lengths.message(place, op, row.message);
        if let Some(arrival) = self.transport.send(now, row.link, length, flight, &mut *self.messages) {
            self.arrive(arrival, flight);
        }
    }

    /// An input is there, now or at a later instant that nothing can change any more.
    #[inline]
    fn arrive(&mut self, at: Time, flight: Flight) {
        self.slots[flight.slot as usize] = at;
        if let Doing::Waiting(..) | Doing::Idle = self.ranks[flight.receiver.index()].doing {
            self.awake.push(flight.receiver);
        }
    }

    /// Lets a rank start its next operation if it can.
    #[inline]
    fn choose(&mut self, now: Time, rank: Rank, queue: &mut HeapQueue<Event>) {
        let (first, second) = match self.ranks[rank.index()].doing {
            Doing::Running(..) | Doing::Done => return,
            Doing::Waiting(first, second) => (first, second),
            Doing::Idle => match self.ask(rank) {
                Some(next) => next,
                None => return,
            },
        };
        let ready = second.map_or(Time::ZERO, |second| self.ready(second.op)).max(self.ready(first.op));
        let state = &mut self.ranks[rank.index()];
        if ready == Time::MAX {
            state.doing = Doing::Waiting(first, second);
            return;
        }
        let start = ready.max(now).as_nanos();
        let length = match second {
            None => self.lengths.op(first.place, first.op, self.rows.of(first.op).duration),
            Some(second) => {
                let pair = self.inputs.costs().pair_duration(self.inputs.shape(), first.op, second.op);
                pair.expect("only pairs with a time of their own run as one").as_nanos()
            }
        };
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let end = start + length;
        state.doing = Doing::Running(first, second);
        state.tally.run(start, end);
        let interval = Interval { start: Time::from_nanos(start), end: Time::from_nanos(end) };
        self.ops.record(first.place, interval);
        if let Some(second) = second {
            self.ops.record(second.place, interval);
        }
        queue.schedule(interval.end, Class(0), Event::RankEnds(rank));
    }

    /// Asks the policy for a rank's next operation, and for its partner if it comes as a pair.
    #[inline]
    fn ask(&mut self, rank: Rank) -> Option<(Placed, Option<Placed>)> {
        let ready = ReadyNow {
            slots: &self.slots,
            rows: self.rows,
            finished: self.finished.as_deref(),
            inputs: self.inputs,
        };
        let op = match self.policy.next(rank, &ready) {
            Choice::Run(op) => op,
            Choice::Wait => return None,
            Choice::Done => {
                self.ranks[rank.index()].doing = Doing::Done;
                return None;
            }
        };
        let first = self.place(rank, op);
        if !op.paired {
            return Some((first, None));
        }
        Some((first, self.ask_partner(rank)))
    }

    /// The partner of a paired operation; `None` where the parts run on their own.
    #[cold]
    fn ask_partner(&mut self, rank: Rank) -> Option<Placed> {
        self.inputs.costs().ranks[rank.index()].overlapped_pair?;
        let ready = ReadyNow {
            slots: &self.slots,
            rows: self.rows,
            finished: self.finished.as_deref(),
            inputs: self.inputs,
        };
        match self.policy.next(rank, &ready) {
            Choice::Run(op) => Some(self.place(rank, op)),
            Choice::Wait | Choice::Done => None,
        }
    }

    fn place(&mut self, rank: Rank, op: Op) -> Placed {
        let state = &mut self.ranks[rank.index()];
        let place = state.next_place;
        state.next_place += 1;
        if self.finished.is_some() {
            state.ran.push(op);
        }
        Placed { op, place }
    }

    #[inline]
    fn ready(&self, op: Op) -> Time {
        ready(&self.slots, self.rows, op)
    }
}

/// When the input that an operation needs from another stage is there.
#[inline]
fn ready(slots: &[Time], rows: &Rows, op: Op) -> Time {
    let row = rows.of(op);
    if row.input == NONE { Time::ZERO } else { slots[(row.input + op.micro_batch.0) as usize] }
}

/// The world as an online policy may see it.
struct ReadyNow<'a> {
    slots: &'a [Time],
    rows: &'a Rows,
    finished: Option<&'a [u8]>,
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
        let own = self.finished.is_none_or(|finished| finished[at] & needs == needs);
        own && ready(self.slots, self.rows, op) != Time::MAX
    }
}
