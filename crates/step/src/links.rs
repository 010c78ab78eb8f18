//! How messages get from one rank to another.
//!
//! Two ways with the same results. [`Folded`] needs a step for which a message's times are known the moment it
//! is made (see [`crate::FifoStep`]); messages then never pass through the queue. [`Arbitrated`] serves every
//! step: each message is an event, and links choose among those that wait.

use pipestep_engine::{Class, EventQueue, HeapQueue, Interval, Serial, Time};
use pipestep_schedule::{MicroBatch, Op, Rank, Stage};

use crate::Arbitration;
use crate::log::MessageSink;
use crate::rows::NONE;
use crate::world::Event;

/// A result on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flight {
    /// Who made it.
    pub(crate) op: Op,
    /// The place of its maker, under which its message is recorded.
    pub(crate) place: usize,
    /// The slot that it fills.
    pub(crate) slot: u32,
    /// The ordered pair of ranks that it travels between, if it is a message.
    pub(crate) pair: u32,
    /// Whom to wake.
    pub(crate) receiver: Rank,
}

/// What joins the ranks.
pub(crate) trait Transport {
    /// Whether a message's times never depend on what else happens at an instant, so that ranks need not wait
    /// with their choices until everything that ends at that instant has ended. Holds for fixed orders only.
    const SETTLED: bool;

    /// A message of `length` ns is made. Returns when it arrives, if that is known already.
    fn send<M: MessageSink>(
        &mut self,
        now: Time,
        link: u32,
        length: u64,
        flight: Flight,
        messages: &mut M,
    ) -> Option<Time>;

    /// Lets every free link take one of the messages that wait for it.
    fn choose<M: MessageSink>(&mut self, now: Time, queue: &mut HeapQueue<Event>, messages: &mut M);

    /// The message of [`Event::MessageEnds`] has arrived.
    fn end(&mut self, number: u32) -> Flight;
}

/// Messages whose times are settled when they are made.
#[derive(Debug)]
pub(crate) struct Folded {
    /// When each link has sent everything it was given.
    free: Vec<Time>,
}

impl Folded {
    pub(crate) fn new(links: usize) -> Self {
        Self { free: vec![Time::ZERO; links] }
    }
}

impl Transport for Folded {
    const SETTLED: bool = true;

    #[inline]
    fn send<M: MessageSink>(
        &mut self,
        now: Time,
        link: u32,
        length: u64,
        flight: Flight,
        messages: &mut M,
    ) -> Option<Time> {
        let free = if link == NONE { now } else { self.free[link as usize] };
        let interval = sending(now.max(free), length);
        if link != NONE {
            self.free[link as usize] = interval.end;
        }
        messages.sent(flight.pair, flight.place, interval);
        Some(interval.end)
    }

    #[inline]
    fn choose<M: MessageSink>(&mut self, _now: Time, _queue: &mut HeapQueue<Event>, _messages: &mut M) {}

    fn end(&mut self, _number: u32) -> Flight {
        unreachable!("folded messages are never in the queue")
    }
}

/// Messages that wait in line and arrive as events.
#[derive(Debug)]
pub(crate) struct Arbitrated {
    arbitration: Arbitration,
    links: Vec<Serial<Waiting>>,
    /// Links with something waiting that may be free.
    contested: Vec<u32>,
    /// Messages without a link, which start at the next choice.
    unlimited: Vec<(Flight, u64)>,
    /// What is on its way, by the number that its event carries.
    under_way: Vec<(Flight, u32)>,
    /// Numbers that can be used again.
    spare: Vec<u32>,
}

/// A message that waits for a link, ordered by the arbitration rule: derived from the fields in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    /// When its producer ended, or zero for the rule that does not look at it.
    ready: Time,
    is_gradient: bool,
    stage: Stage,
    micro_batch: MicroBatch,
    flight: Flight,
    length: u64,
}

impl Arbitrated {
    pub(crate) fn new(links: usize, arbitration: Arbitration) -> Self {
        Self {
            arbitration,
            links: (0..links).map(|_| Serial::new()).collect(),
            contested: Vec::new(),
            unlimited: Vec::new(),
            under_way: Vec::new(),
            spare: Vec::new(),
        }
    }

    fn start<M: MessageSink>(
        &mut self,
        now: Time,
        (flight, length): (Flight, u64),
        link: u32,
        queue: &mut HeapQueue<Event>,
        messages: &mut M,
    ) {
        let interval = sending(now, length);
        messages.sent(flight.pair, flight.place, interval);
        let number = self.spare.pop().unwrap_or(self.under_way.len() as u32);
        if number as usize == self.under_way.len() {
            self.under_way.push((flight, link));
        } else {
            self.under_way[number as usize] = (flight, link);
        }
        queue.schedule(interval.end, Class(0), Event::MessageEnds(number));
    }
}

impl Transport for Arbitrated {
    const SETTLED: bool = false;

    fn send<M: MessageSink>(
        &mut self,
        now: Time,
        link: u32,
        length: u64,
        flight: Flight,
        _messages: &mut M,
    ) -> Option<Time> {
        if link == NONE {
            self.unlimited.push((flight, length));
            return None;
        }
        let ready = match self.arbitration {
            Arbitration::Fifo => now,
            Arbitration::ByStage => Time::ZERO,
        };
        let Op { kind, stage, micro_batch, .. } = flight.op;
        let is_gradient = kind.sends_gradient();
        let waiting = Waiting { ready, is_gradient, stage, micro_batch, flight, length };
        self.links[link as usize].request(waiting);
        self.contested.push(link);
        None
    }

    fn choose<M: MessageSink>(&mut self, now: Time, queue: &mut HeapQueue<Event>, messages: &mut M) {
        while let Some(message) = self.unlimited.pop() {
            self.start(now, message, NONE, queue, messages);
        }
        while let Some(link) = self.contested.pop() {
            if let Some(next) = self.links[link as usize].take() {
                self.start(now, (next.flight, next.length), link, queue, messages);
            }
        }
    }

    fn end(&mut self, number: u32) -> Flight {
        let (flight, link) = self.under_way[number as usize];
        self.spare.push(number);
        if link != NONE {
            self.links[link as usize].release();
            self.contested.push(link);
        }
        flight
    }
}

/// `length` ns from `start` on; `Inputs::new` keeps the sum of all times below 2^63 ns.
#[inline]
fn sending(start: Time, length: u64) -> Interval {
    Interval { start, end: Time::from_nanos(start.as_nanos() + length) }
}
