//! When each piece of work ran: the record every figure is read from.

use crate::{Duration, Time};

/// From when until when a piece of work ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval {
    /// First instant.
    pub start: Time,
    /// The instant at which it was over.
    pub end: Time,
}

impl Interval {
    /// What a [`Timeline`] holds for work that never ran.
    pub const NEVER: Self = Self { start: Time::MAX, end: Time::MAX };

    /// How long it is.
    pub const fn length(self) -> Duration {
        self.end.since(self.start)
    }
}

/// What a simulation does with its intervals: drop them ([`NoRecord`]) or keep them ([`Timeline`]).
/// A run is generic over it, so that recording costs nothing when it is off.
pub trait Recorder {
    /// Work number `item` runs from `interval.start` to `interval.end`.
    fn record(&mut self, item: usize, interval: Interval);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoRecord;

/// Keeps one interval for each piece of work, found by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    intervals: Vec<Interval>,
}

impl Timeline {
    /// Room for work numbered `0..items`, none of which has run.
    pub fn new(items: usize) -> Self {
        Self { intervals: vec![Interval::NEVER; items] }
    }

    /// Empties it and makes room for work numbered `0..items`, keeping the memory.
    pub fn reset(&mut self, items: usize) {
        self.intervals.clear();
        self.intervals.resize(items, Interval::NEVER);
    }

    /// When work number `item` ran, or [`Interval::NEVER`].
    pub fn get(&self, item: usize) -> Interval {
        self.intervals[item]
    }

    /// All intervals, by number.
    pub fn all(&self) -> &[Interval] {
        &self.intervals
    }
}

impl Recorder for NoRecord {
    fn record(&mut self, _item: usize, _interval: Interval) {}
}

impl Recorder for Timeline {
    fn record(&mut self, item: usize, interval: Interval) {
        self.intervals[item] = interval;
    }
}
