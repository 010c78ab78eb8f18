//! How messages get from one rank to another in any step: each is an event, and links choose among those that
//! wait. (Where a message's times are known the moment it is made, [`crate::folded`] does without.)

use pipestep_engine::{Class, EventQueue, Serial, Time};
use pipestep_schedule::{MicroBatch, Op, Rank, Stage};

use crate::Arbitration;
use crate::observe::{Observer, Place};
use crate::rows::{NONE, Rows};
use crate::world::{Event, Queue};

/// Messages that wait in line and arrive as events.
#[derive(Debug)]
pub(crate) struct Arbitrated {
    arbitration: Arbitration,
    links: Vec<Serial<Waiting>>,
    /// Links with something waiting that may be free.
    contested: Vec<u32>,
    /// Messages without a link, which start at the next choice.
    unlimited: Vec<Waiting>,
    /// What is on its way, by the number that its event carries.
    under_way: Vec<(Flight, u32)>,
    /// Numbers that can be used again.
    spare: Vec<u32>,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flight {
    /// Its maker.
    pub(crate) at: Place,
    /// The slot that it fills.
    pub(crate) slot: u32,
    pub(crate) receiver: Rank,
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
    link: u32,
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

    fn start<O: Observer>(
        &mut self,
        now: Time,
        message: &Waiting,
        rows: &Rows,
        queue: &mut Queue,
        observer: &mut O,
    ) {
        let Waiting { flight, length, link, .. } = *message;
        // Inputs::new keeps the sum of all times below 2^63 ns, so this cannot overflow.
        let end = Time::from_nanos(now.as_nanos() + length);
        observer.sent(rows.of(flight.at.op), flight.at.place, now.as_nanos(), end.as_nanos());
        let number = self.spare.pop().unwrap_or(self.under_way.len() as u32);
        if number as usize == self.under_way.len() {
            self.under_way.push((flight, link));
        } else {
            self.under_way[number as usize] = (flight, link);
        }
        queue.schedule(end, Class(0), Event::MessageEnds(number));
    }

    /// A message of `length` ns is made.
    pub(crate) fn send(&mut self, now: Time, link: u32, length: u64, flight: Flight) {
        let ready = match self.arbitration {
            Arbitration::Fifo => now,
            Arbitration::ByStage => Time::ZERO,
        };
        let Op { kind, stage, micro_batch, .. } = flight.at.op;
        let is_gradient = kind.sends_gradient();
        let waiting = Waiting { ready, is_gradient, stage, micro_batch, flight, length, link };
        if link == NONE {
            self.unlimited.push(waiting);
        } else {
            self.links[link as usize].request(waiting);
            self.contested.push(link);
        }
    }

    /// Lets every free link take one of the messages that wait for it.
    pub(crate) fn choose<O: Observer>(
        &mut self,
        now: Time,
        rows: &Rows,
        queue: &mut Queue,
        observer: &mut O,
    ) {
        while let Some(message) = self.unlimited.pop() {
            self.start(now, &message, rows, queue, observer);
        }
        while let Some(link) = self.contested.pop() {
            if let Some(next) = self.links[link as usize].take() {
                self.start(now, &next, rows, queue, observer);
            }
        }
    }

    /// The message of [`Event::MessageEnds`] has arrived.
    pub(crate) fn end(&mut self, number: u32) -> Flight {
        let (flight, link) = self.under_way[number as usize];
        self.spare.push(number);
        if link != NONE {
            self.links[link as usize].release();
            self.contested.push(link);
        }
        flight
    }
}
