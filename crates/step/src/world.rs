//! The event loop of a step: ranks end operations, links end messages, and nothing else happens.
//!
//! At one instant, everything that ends at that instant ends before anything is chosen; then idle ranks choose,
//! and only when no rank can start anything more do links choose. What has no length is scheduled for the same
//! instant and so ends before the next round of choices.

use pipestep_engine::{Class, EventQueue, Overflow, Packed, PackedQueue, Time, World, run};
use pipestep_schedule::{Choice, Kind, Op, Policy, Rank, Ready, Shape};

use crate::Inputs;
use crate::lengths::Lengths;
use crate::links::{Arbitrated, Flight};
use crate::observe::{Observer, Place};
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

/// The queue of a step. No event of it ever moves.
pub(crate) type Queue = PackedQueue<Event>;

/// Ranks first, then the beginning, then messages. There are fewer than 2^30 messages in a step.
impl Packed for Event {
    #[inline]
    fn pack(self) -> u32 {
        match self {
            Self::RankEnds(rank) => u32::from(rank.0),
            Self::Begin => 1 << 16,
            Self::MessageEnds(number) => (1 << 17) + number,
        }
    }

    #[inline]
    fn unpack(number: u32) -> Self {
        match number {
            0..=0xffff => Self::RankEnds(Rank(number as u16)),
            0x1_0000 => Self::Begin,
            _ => Self::MessageEnds(number - (1 << 17)),
        }
    }
}

/// One rank of the world.
#[derive(Clone, Copy, Debug)]
struct RankState {
    /// What it runs or waits to run; the first half of a pair.
    op: Op,
    /// The place of `op` in the timeline.
    place: u32,
    /// The slot whose input it lacks while it waits; otherwise [`IDLE`], [`RUNNING`] or [`DONE`].
    waits_for: u32,
    /// The second half of a pair that runs as one.
    partner: Option<Op>,
    tally: Tally,
}

/// The rank has to ask the policy.
const IDLE: u32 = u32::MAX;
/// The rank runs.
const RUNNING: u32 = u32::MAX - 1;
/// The rank's policy has nothing more for it.
const DONE: u32 = u32::MAX - 2;

/// A step under way.
struct StepWorld<'a, L, O> {
    inputs: &'a Inputs,
    rows: &'a Rows,
    lengths: L,
    policy: Box<dyn Policy + 'a>,
    links: Arbitrated,
    ranks: &'a mut [RankState],
    /// When each input is there; `Time::MAX` until it is known.
    slots: &'a mut [Time],
    /// Kept for policies that decide online.
    history: Option<History>,
    /// Ranks that may have something to choose at this instant.
    awake: Vec<Rank>,
    observer: O,
}

/// What has happened so far.
pub(crate) struct History {
    /// By rank: what it has run.
    pub(crate) ran: Vec<Vec<Op>>,
    /// The kinds that each (stage, micro-batch) has finished, one bit each.
    finished: Vec<u8>,
}

impl History {
    /// Nothing has happened.
    pub(crate) fn new(shape: &Shape) -> Self {
        let finished = vec![0; shape.stages() * shape.micro_batches()];
        Self { ran: vec![Vec::new(); shape.ranks()], finished }
    }
}

impl RankState {
    /// A rank that has run nothing and numbers its operations from `first_place`.
    const fn new(first_place: usize, setup: u64) -> Self {
        let (op, partner) = (Op::forward(0, 0), None);
        Self { op, place: first_place as u32, waits_for: IDLE, partner, tally: Tally::new(setup) }
    }
}

impl<L: Lengths, O: Observer> World<Queue> for StepWorld<'_, L, O> {
    type Event = Event;
    type Error = Overflow;

    #[inline]
    fn handle(&mut self, now: Time, event: Event, _queue: &mut Queue) -> Result<(), Overflow> {
        match event {
            Event::RankEnds(rank) => self.end_operation(now, rank),
            Event::Begin => self.awake.extend((0..self.ranks.len() as u16).map(Rank)),
            Event::MessageEnds(number) => {
                let flight = self.links.end(number);
                self.arrive(now, flight.slot, flight.receiver);
            }
        }
        Ok(())
    }

    #[inline]
    fn settle(&mut self, now: Time, queue: &mut Queue) -> Result<(), Overflow> {
        while let Some(rank) = self.awake.pop() {
            self.choose(now, rank, queue);
        }
        // What a rank started and ended at once comes before any link's choice.
        if queue.peek_time() != Some(now) {
            self.links.choose(now, self.rows, queue, &mut self.observer);
        }
        Ok(())
    }
}

impl<L: Lengths, O: Observer> StepWorld<'_, L, O> {
    fn end_operation(&mut self, now: Time, rank: Rank) {
        let state = &mut self.ranks[rank.index()];
        let at = Place { place: state.place as usize, op: state.op };
        let partner = state.partner.take().map(|op| Place { place: at.place + 1, op });
        state.waits_for = IDLE;
        state.place += if partner.is_some() { 2 } else { 1 };
        for at in [Some(at), partner].into_iter().flatten() {
            self.deliver(now, at);
        }
        self.awake.push(rank);
    }

    /// Sends the result of an operation to whoever needs it.
    fn deliver(&mut self, now: Time, at: Place) {
        let Place { place, op } = at;
        if let Some(history) = &mut self.history {
            let micro_batches = self.inputs.shape().micro_batches();
            let at = op.stage.index() * micro_batches + op.micro_batch.index();
            history.finished[at] |= 1 << op.kind as u8;
        }
        let row = self.rows.of(op);
        let (slot, receiver) = (row.output + op.micro_batch.0, Rank(row.receiver as u16));
        if row.sends {
            let length = self.lengths.message(op, row.message);
            let flight = Flight { at, slot, receiver };
            return self.links.send(now, row.link, length, flight);
        }
        self.observer.sent_nothing(place);
        if row.receiver != NONE {
            self.arrive(now, slot, receiver);
        }
    }

    /// An input is there.
    fn arrive(&mut self, now: Time, slot: u32, receiver: Rank) {
        self.slots[slot as usize] = now;
        let waits_for = self.ranks[receiver.index()].waits_for;
        // A rank that settled on an operation wakes for its input only; one that is idle reconsiders.
        if waits_for == slot || waits_for == IDLE {
            self.awake.push(receiver);
        }
    }

    /// Lets a rank start its next operation if it can.
    fn choose(&mut self, now: Time, rank: Rank, queue: &mut Queue) {
        let waits_for = self.ranks[rank.index()].waits_for;
        if matches!(waits_for, RUNNING | DONE) || (waits_for == IDLE && !self.ask(rank)) {
            return;
        }
        let state = &mut self.ranks[rank.index()];
        let Place { place, op } = Place { place: state.place as usize, op: state.op };
        let row = self.rows.of(op);
        let mut ready = match ready(self.slots, row, op) {
            Ok(ready) => ready,
            Err(slot) => {
                state.waits_for = slot;
                return;
            }
        };
        let mut length = self.lengths.op(op, row.duration);
        if let Some(partner) = state.partner {
            match self::ready(self.slots, self.rows.of(partner), partner) {
                Ok(also) => ready = ready.max(also),
                Err(slot) => {
                    state.waits_for = slot;
                    return;
                }
            }
            let usual = self.inputs.costs().pair_duration(self.inputs.shape(), op, partner);
            let usual = usual.expect("only pairs with a time of their own run as one");
            length = self.lengths.pair(op, partner, usual.as_nanos());
        }
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let start = ready.max(now).as_nanos();
        let end = start + length;
        state.waits_for = RUNNING;
        state.tally.run(start, end);
        let partner = state.partner;
        queue.schedule(Time::from_nanos(end), Class(0), Event::RankEnds(rank));
        self.observer.ran(place, start, end);
        if partner.is_some() {
            self.observer.ran(place + 1, start, end);
        }
    }

    /// Asks the policy for a rank's next operation. Returns whether there is one.
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
                state.waits_for = DONE;
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

/// What the loop keeps from one run to the next.
#[derive(Debug, Default)]
pub(crate) struct WorldMemory {
    ranks: Vec<RankState>,
    slots: Vec<Time>,
    queue: Queue,
}

impl WorldMemory {
    /// Runs a step whose ranks number their operations from `first_places` on, with what has happened so far if the
    /// policy decides by it.
    #[expect(clippy::too_many_arguments, reason = "each of these differs between the callers")]
    pub(crate) fn run<L: Lengths, O: Observer>(
        &mut self,
        inputs: &Inputs,
        rows: &Rows,
        first_places: &[usize],
        policy: Box<dyn Policy + '_>,
        lengths: L,
        history: Option<History>,
        observer: O,
    ) -> Result<Option<History>, Overflow> {
        let Self { ranks, slots, queue } = self;
        let setup = inputs.costs().setup;
        let links = Arbitrated::new(rows.links, inputs.arbitration);
        slots.clear();
        slots.resize(rows.slots, Time::MAX);
        slots[rows.always_ready()].fill(Time::ZERO);
        ranks.clear();
        ranks.extend(first_places.iter().map(|&at| RankState::new(at, setup.as_nanos())));
        queue.clear();
        queue.schedule(Time::ZERO.after(setup)?, Class(0), Event::Begin);
        let awake = Vec::new();
        let mut world =
            StepWorld { inputs, rows, lengths, policy, links, ranks, slots, history, awake, observer };
        run(&mut world, queue)?;
        Ok(world.history)
    }

    /// The first rank whose policy has not said that nothing is left for it.
    pub(crate) fn unfinished(&self) -> Option<Rank> {
        self.ranks.iter().position(|rank| rank.waits_for != DONE).map(|rank| Rank(rank as u16))
    }

    /// Whether the last run came to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.unfinished().is_none()
    }

    /// When the input of each slot was there in the last run.
    pub(crate) fn slots(&self) -> &[Time] {
        &self.slots
    }

    /// What each rank counted.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = Tally> + '_ {
        self.ranks.iter().map(|rank| rank.tally)
    }
}
