//! What a run is told of: each operation and each message, once its times are known.
//!
//! Both ways of running a step (the event engine and the clock-free pass) tell the same, in whatever order they
//! come to know it. What is not wanted costs nothing.

#![expect(
    clippy::inline_always,
    reason = "the loops tell their observers twice or three times an operation; left to itself, the compiler passes every argument through memory"
)]

use pipestep_engine::{Interval, Recorder, Time};
use pipestep_schedule::{Op, Rank};

use crate::log::MessageSink;
use crate::rows::Row;

/// An operation and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its place in the orders.
    pub(crate) place: usize,
    pub(crate) op: Op,
}

/// A message on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Flight {
    /// Its maker.
    pub(crate) at: Place,
    /// The slot that it fills.
    pub(crate) slot: u32,
    /// The ordered pair of ranks that it travels between.
    pub(crate) pair: u32,
    pub(crate) sender: Rank,
    pub(crate) receiver: Rank,
}

/// Is told what happens in `N` replicas of a step; times are in ns. The event engine tells in order of time, and what it
/// tells at `now` happens then or later; the clock-free pass has no `now`.
pub(crate) trait Observer<const N: usize> {
    /// Whether it is wanted how long each rank is busy and when it starts, or only when it ends.
    const TALLIES: bool = true;

    /// An operation of a rank runs from `start` to `end`. A rank's operations come in order.
    #[inline(always)]
    fn ran(&mut self, _rank: usize, _at: Place, _row: &Row, _now: u64, _start: [u64; N], _end: [u64; N]) {}

    /// A message travels from `start` to `end`.
    #[inline(always)]
    fn sent(&mut self, _message: Flight, _row: &Row, _now: u64, _start: [u64; N], _end: [u64; N]) {}

    /// The operation at `place` sends no message.
    #[inline(always)]
    fn sent_nothing(&mut self, _place: usize) {}
}

impl<const N: usize> Observer<N> for () {}

/// Wants the ends of ranks alone.
pub(crate) struct EndsOnly;

impl<const N: usize> Observer<N> for EndsOnly {
    const TALLIES: bool = false;
}

/// Keeps intervals, one by one.
pub(crate) struct Recording<'a, R, M> {
    pub(crate) ops: &'a mut R,
    pub(crate) messages: &'a mut M,
}

impl<R: Recorder, M: MessageSink> Observer<1> for Recording<'_, R, M> {
    #[inline(always)]
    fn ran(&mut self, _rank: usize, at: Place, _row: &Row, _now: u64, [start]: [u64; 1], [end]: [u64; 1]) {
        self.ops.record(at.place, interval(start, end));
    }

    #[inline(always)]
    fn sent(&mut self, message: Flight, _row: &Row, _now: u64, [start]: [u64; 1], [end]: [u64; 1]) {
        self.messages.sent(message.pair, message.at.place, interval(start, end));
    }

    #[inline(always)]
    fn sent_nothing(&mut self, place: usize) {
        self.messages.sent_nothing(place);
    }
}

/// Tells two observers.
impl<A: Observer<1>, B: Observer<1>> Observer<1> for (A, B) {
    #[inline(always)]
    fn ran(&mut self, rank: usize, at: Place, row: &Row, now: u64, start: [u64; 1], end: [u64; 1]) {
        self.0.ran(rank, at, row, now, start, end);
        self.1.ran(rank, at, row, now, start, end);
    }

    #[inline(always)]
    fn sent(&mut self, message: Flight, row: &Row, now: u64, start: [u64; 1], end: [u64; 1]) {
        self.0.sent(message, row, now, start, end);
        self.1.sent(message, row, now, start, end);
    }

    #[inline(always)]
    fn sent_nothing(&mut self, place: usize) {
        self.0.sent_nothing(place);
        self.1.sent_nothing(place);
    }
}

#[inline]
const fn interval(start: u64, end: u64) -> Interval {
    Interval { start: Time::from_nanos(start), end: Time::from_nanos(end) }
}
