//! Changes of one rank's level, put in order of time while more are still to come.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Sub;

/// A change of a rank's level, and what happens there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Change {
    /// When, in ns.
    pub(crate) at: u64,
    /// `bytes << 4 | what`: the more that must be moved, the slower.
    packed: i64,
}

/// An operation starts.
pub(crate) const STARTS: i64 = 1;
/// An operation ends; twice for the two halves of a pair.
pub(crate) const ENDS: i64 = 2;
/// A message has gone out.
pub(crate) const GOES: i64 = 0;
/// A message begins to arrive.
pub(crate) const ARRIVES: i64 = 8;

/// How many bits tell what happens.
const WHAT: u32 = 4;

impl Change {
    /// `what` happens at `at` and changes the level by `bytes`, which are less than 2^58 (so that three of them still
    /// fit).
    #[inline]
    pub(crate) const fn new(at: u64, bytes: i64, what: i64) -> Self {
        Self { at, packed: bytes << WHAT | what }
    }

    /// Nothing happens at `at`.
    pub(crate) const fn nothing(at: u64) -> Self {
        Self { at, packed: 0 }
    }

    /// Whether nothing happens.
    #[inline]
    pub(crate) const fn is_nothing(self) -> bool {
        self.packed == 0
    }

    /// Both changes, at the instant of the first. Together they are one start and two ends at most.
    #[inline]
    pub(crate) const fn and(self, other: Self) -> Self {
        Self { at: self.at, packed: self.packed + other.packed }
    }

    /// By how many bytes it changes the level.
    const fn bytes(self) -> i64 {
        self.packed >> WHAT
    }

    const fn progress(self) -> Progress {
        let received = if self.packed & ARRIVES == 0 { 0 } else { self.bytes() };
        Progress { starts: (self.packed & 1) as u32, ends: (self.packed >> 1 & 3) as u32, received }
    }
}

/// How far a rank has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    /// Starts and ends of its operations, each in order. Halves of a pair count twice.
    pub(crate) starts: u32,
    pub(crate) ends: u32,
    /// Bytes that have begun to arrive.
    pub(crate) received: i64,
}

impl Sub for Progress {
    type Output = Self;

    fn sub(self, rhs: Self) -> Self {
        let (starts, ends) = (self.starts - rhs.starts, self.ends - rhs.ends);
        Self { starts, ends, received: self.received - rhs.received }
    }
}

/// How many changes are kept in a list; the others, which come later, in a heap.
const ROOM: usize = 128;

/// The longest list that still counts as not full: three more changes have room.
pub(crate) const MOST: usize = ROOM - 4;

/// A length that serves where changes come in order of time.
pub(crate) const FEW: usize = 60;

/// Changes in order of time.
///
/// Most changes come at or near the end of what is known, so they go into a short list that is kept in order. Where
/// many lie far ahead (messages that wait for a slow link), the list would be searched in vain for each new one: those
/// go into a heap until their time comes near.
#[derive(Clone, Debug)]
pub(crate) struct Changes {
    /// The instants in the list, behind that of the last change that is forgotten: none comes before it.
    at: [u64; ROOM],
    /// The same changes' other half. A processor can't read both halves at once soon after each was written.
    packed: [i64; ROOM],
    length: usize,
    /// The length at which the list counts as full.
    full: usize,
    later: BinaryHeap<Reverse<Change>>,
    /// The first instant in the heap, or past every instant.
    later_from: u64,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            at: [0; ROOM],
            packed: [0; ROOM],
            length: 1,
            full: MOST,
            later: BinaryHeap::new(),
            later_from: u64::MAX,
        }
    }
}

impl Changes {
    /// Forgets all changes. From now on the list counts as full with `full` changes, [`MOST`] at most: few, if they
    /// come in order of time, so that the lists of all ranks stay near the processor.
    pub(crate) fn clear(&mut self, full: usize) {
        self.later.clear();
        (self.at[0], self.length, self.full, self.later_from) = (0, 1, full.min(MOST), u64::MAX);
    }

    /// Adds a change.
    #[inline]
    pub(crate) fn put(&mut self, change: Change) {
        if change.at >= self.later_from {
            return self.later.push(Reverse(change));
        }
        let mut place = self.length % ROOM;
        self.length += 1;
        loop {
            let before = (place - 1) % ROOM;
            if self.at[before] <= change.at {
                break;
            }
            (self.at[place], self.packed[place]) = (self.at[before], self.packed[before]);
            place = before;
        }
        (self.at[place], self.packed[place]) = (change.at, change.packed);
    }

    /// Whether [`Changes::drop_first`] must be called before more than three changes are added.
    #[inline]
    pub(crate) const fn is_full(&self) -> bool {
        self.length > self.full
    }

    /// How many of the changes that are near come before an instant.
    pub(crate) fn before(&self, until: u64) -> usize {
        self.at[1..self.length].partition_point(|&at| at < until)
    }

    /// The instant of the last change that is forgotten, or the start.
    pub(crate) const fn last_at(&self) -> u64 {
        self.at[0]
    }

    /// The first changes, which are near, in order: each with the ns since the one before and its bytes.
    pub(crate) fn first(&self, count: usize) -> impl ExactSizeIterator<Item = (u64, i64)> + Clone + '_ {
        let since = self.at[1..=count].iter().zip(&self.at[..count]);
        since.zip(&self.packed[1..=count]).map(|((at, before), packed)| (at - before, packed >> WHAT))
    }

    /// Forgets the first changes, which are near. Returns whether others have come near instead.
    pub(crate) fn drop_first(&mut self, count: usize) -> bool {
        self.at.copy_within(count..self.length, 0);
        self.packed.copy_within(count..self.length, 0);
        self.length -= count;
        let fetch = self.length == 1 && !self.later.is_empty();
        while self.length < self.full / 2
            && fetch
            && let Some(Reverse(change)) = self.later.pop()
        {
            (self.at[self.length], self.packed[self.length]) = (change.at, change.packed);
            self.length += 1;
        }
        while self.length > self.full / 2 {
            self.length -= 1;
            self.later.push(Reverse(self.near(self.length)));
        }
        self.later_from = self.later.peek().map_or(u64::MAX, |Reverse(change)| change.at);
        fetch
    }

    /// The instant before the change at `place` among those that are near, and what happens from that change on.
    #[cold]
    pub(crate) fn progress_from(&self, place: usize) -> (u64, Progress) {
        let near = (1 + place..self.length).map(|place| self.near(place));
        let later = self.later.iter().map(|&Reverse(change)| change);
        let mut sum = Progress::default();
        for progress in near.chain(later).map(Change::progress) {
            sum.starts += progress.starts;
            sum.ends += progress.ends;
            sum.received += progress.received;
        }
        (self.at[place], sum)
    }

    const fn near(&self, place: usize) -> Change {
        Change { at: self.at[place], packed: self.packed[place] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_in_order_of_time_however_they_are_put() {
        let mut state = 1_u64;
        let mut changes = Changes::default();
        let (mut put, mut taken) = (Vec::new(), Vec::new());
        for settled in 0..2_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = settled + (state >> 33) % if settled % 7 == 0 { 900 } else { 3 };
            put.push(at);
            changes.put(Change::new(at, 1, STARTS));
            if changes.is_full() {
                take(&mut changes, settled, &mut taken);
            }
        }
        take(&mut changes, u64::MAX, &mut taken);
        put.sort_unstable();
        assert_eq!(taken, put);
    }

    fn take(changes: &mut Changes, until: u64, taken: &mut Vec<u64>) {
        loop {
            let count = changes.before(until);
            let mut at = changes.last_at();
            for (since, _) in changes.first(count) {
                at += since;
                taken.push(at);
            }
            if !changes.drop_first(count) {
                return;
            }
        }
    }

    #[test]
    fn a_change_tells_what_happens() {
        let end = Change::new(5, -7, ENDS);
        let both = Change::new(5, 3, STARTS).and(end.and(end));
        assert_eq!((both.bytes(), both.progress()), (-11, Progress { starts: 1, ends: 2, received: 0 }));
        let arrives = Change::new(5, 9, ARRIVES);
        assert_eq!((arrives.bytes(), arrives.progress().received), (9, 9));
    }
}
