//! What a run is told of: each operation and each message, once its times are known.
//!
//! Both ways of running a step (the event engine and the clock-free pass) tell the same, in whatever order they
//! come to know it. What is not wanted costs nothing.

#![expect(
    clippy::inline_always,
    reason = "the loops tell their observers twice or three times an operation; left to itself, the compiler passes every argument through memory"
)]

use pipestep_engine::{Interval, Recorder, Time};
use pipestep_schedule::Op;

use crate::log::MessageSink;
use crate::rows::Row;

/// An operation and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Its place in the orders.
    pub(crate) place: usize,
    pub(crate) op: Op,
}

/// Is told what happens in a step; times are in ns from an origin, which is 0 if nothing else is said.
pub(crate) trait Observer {
    /// The origin of all times.
    #[inline(always)]
    fn begin(&mut self, _origin: u64) {}

    /// The operation at `place` runs from `start` to `end`. A rank's operations come in order.
    #[inline(always)]
    fn ran(&mut self, _place: usize, _start: u64, _end: u64) {}

    /// The message of the operation at `place`, whose row this is, is on its link from `start` to `end`.
    #[inline(always)]
    fn sent(&mut self, _row: &Row, _place: usize, _start: u64, _end: u64) {}

    /// The operation at `place` sends no message.
    #[inline(always)]
    fn sent_nothing(&mut self, _place: usize) {}
}

impl Observer for () {}

/// Keeps intervals, one by one, of a run whose origin is 0.
pub(crate) struct Recording<'a, R, M> {
    pub(crate) ops: &'a mut R,
    pub(crate) messages: &'a mut M,
}

impl<R: Recorder, M: MessageSink> Observer for Recording<'_, R, M> {
    #[inline(always)]
    fn ran(&mut self, place: usize, start: u64, end: u64) {
        self.ops.record(place, interval(start, end));
    }

    #[inline(always)]
    fn sent(&mut self, row: &Row, place: usize, start: u64, end: u64) {
        self.messages.sent(row.pair, place, interval(start, end));
    }

    #[inline(always)]
    fn sent_nothing(&mut self, place: usize) {
        self.messages.sent_nothing(place);
    }
}

/// Tells another observer the same, with all instants counted from 0.
pub(crate) struct FromZero<O> {
    observer: O,
    origin: u64,
}

impl<O> FromZero<O> {
    pub(crate) const fn new(observer: O) -> Self {
        Self { observer, origin: 0 }
    }
}

impl<O: Observer> Observer for FromZero<O> {
    #[inline(always)]
    fn begin(&mut self, origin: u64) {
        self.origin = origin;
    }

    #[inline(always)]
    fn ran(&mut self, place: usize, start: u64, end: u64) {
        self.observer.ran(place, start - self.origin, end - self.origin);
    }

    #[inline(always)]
    fn sent(&mut self, row: &Row, place: usize, start: u64, end: u64) {
        self.observer.sent(row, place, start - self.origin, end - self.origin);
    }

    #[inline(always)]
    fn sent_nothing(&mut self, place: usize) {
        self.observer.sent_nothing(place);
    }
}

#[inline]
const fn interval(start: u64, end: u64) -> Interval {
    Interval { start: Time::from_nanos(start), end: Time::from_nanos(end) }
}
