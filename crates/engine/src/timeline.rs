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

/// Keeps one interval for each piece of work like [`Timeline`], in memory that suits many lists that grow side by
/// side.
///
/// Where the lists of a record all have the same power of two of items, they begin at the same place of the
/// processor's cache, and those that grow together push one another out of it: on 64 ranks that cost more than
/// everything else about recording. Here a gap follows every few thousand items.
#[derive(Clone, Debug, Default)]
pub struct Tracks {
    intervals: Vec<Interval>,
    items: usize,
}

impl Tracks {
    /// No room for any work yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for work numbered `0..items`. Work that is not recorded again keeps the interval that the
    /// last run gave to its number, so this is for runs that record every item.
    pub fn reuse(&mut self, items: usize) {
        self.items = items;
        let room = items.checked_sub(1).map_or(0, |last| Self::index(last) + 1);
        if self.intervals.len() < room {
            self.intervals.resize(room, Interval::NEVER);
        }
    }

    /// When work number `item` ran, or [`Interval::NEVER`].
    pub fn get(&self, item: usize) -> Interval {
        self.intervals[Self::index(item)]
    }

    /// The same record without gaps.
    pub fn to_timeline(&self) -> Timeline {
        Timeline { intervals: (0..self.items).map(|item| self.get(item)).collect() }
    }

    /// Where an item is kept: one cache line of four intervals is left free after every 4,096 items, and one
    /// more after every 262,144.
    #[inline]
    const fn index(item: usize) -> usize {
        item + ((item >> 12) + (item >> 18)) * 4
    }
}

impl Recorder for NoRecord {
    #[inline]
    fn record(&mut self, _item: usize, _interval: Interval) {}
}

impl Recorder for Tracks {
    #[inline]
    fn record(&mut self, item: usize, interval: Interval) {
        self.intervals[Self::index(item)] = interval;
    }
}

impl Recorder for Timeline {
    #[inline]
    fn record(&mut self, item: usize, interval: Interval) {
        self.intervals[item] = interval;
    }
}
