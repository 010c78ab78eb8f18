//! The changes of one rank's level, in lists that are woven together in order of time.

use std::iter::Sum as SumOf;
use std::slice::Iter;

use pipestep_engine::TotalCurve;

/// A change of a rank's level, and what happens there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Change {
    /// When, in ns.
    pub(super) at: u64,
    /// `bytes << 4 | what`: the more that must be moved, the slower.
    packed: i64,
}

/// An operation starts.
pub(super) const STARTS: i64 = 1;
/// An operation ends; twice for the two halves of a pair.
pub(super) const ENDS: i64 = 2;
/// A message has gone out.
pub(super) const GOES: i64 = 0;
/// A message begins to arrive.
pub(super) const ARRIVES: i64 = 8;

/// How many bits tell what happens.
const WHAT: u32 = 4;

/// Past every change.
const END: Change = Change::nothing(u64::MAX);

impl Change {
    /// `what` happens at `at` and changes the level by `bytes`, which are less than 2^58 (so that three of them still
    /// fit).
    #[inline]
    pub(super) const fn new(at: u64, bytes: i64, what: i64) -> Self {
        Self { at, packed: bytes << WHAT | what }
    }

    /// Nothing happens at `at`.
    pub(super) const fn nothing(at: u64) -> Self {
        Self { at, packed: 0 }
    }

    /// Both changes, at the instant of the first. Together they are one start and two ends at most.
    #[inline]
    pub(super) const fn and(self, other: Self) -> Self {
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
pub(super) struct Progress {
    /// Starts and ends of its operations, each in order. Halves of a pair count twice.
    pub(super) starts: u32,
    pub(super) ends: u32,
    /// Bytes that have begun to arrive.
    pub(super) received: i64,
}

impl SumOf for Progress {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, more| Self {
            starts: sum.starts + more.starts,
            ends: sum.ends + more.ends,
            received: sum.received + more.received,
        })
    }
}

/// All changes of one rank's level, with their memory kept from one rank to the next.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    /// By its operations.
    ops: Vec<Change>,
    /// By the messages that it sends, and by those of them that overtake one before: there are none unless messages wait
    /// for a link.
    sent: Vec<Change>,
    overtaking: Vec<Change>,
    /// By the messages that it receives: from the first of the ranks that send to it, and from all others. Most ranks
    /// have messages from two others, one behind the other on their links; so these lists are in order of time.
    pub(super) from_first: Vec<Change>,
    pub(super) from_others: Vec<Change>,
}

impl Changes {
    pub(super) fn clear(&mut self) {
        let Self { ops, sent, overtaking, from_first, from_others } = self;
        [ops, sent, overtaking, from_first, from_others].into_iter().for_each(Vec::clear);
    }

    /// One operation ends and the next one starts, mostly at one instant: then one change does for both.
    #[inline]
    pub(super) fn of_op(&mut self, ends: Change, starts: Change) {
        if starts.at == ends.at {
            self.ops.push(starts.and(ends));
        } else {
            self.ops.push(ends);
            self.ops.push(starts);
        }
    }

    /// A message has gone out; messages come in the order in which they are made.
    #[inline]
    pub(super) fn sent(&mut self, gone: Change) {
        let overtakes = self.sent.last().is_some_and(|last| gone.at < last.at);
        if overtakes { &mut self.overtaking } else { &mut self.sent }.push(gone);
    }

    /// The last operation ends, and all changes are known.
    pub(super) fn close(&mut self, ends: Change) {
        let Self { ops, sent, overtaking, from_first, from_others } = self;
        ops.push(ends);
        for list in [sent, overtaking, from_first, from_others] {
            // Messages of more than two links, and those on links without limit, can overtake one another.
            if !list.is_sorted_by_key(|change| change.at) {
                list.sort_by_key(|change| change.at);
            }
        }
    }

    /// Sums up all changes, in order of time.
    pub(super) fn weave<C: TotalCurve>(&self, sum: &mut Sum<'_, C>) {
        if self.overtaking.is_empty() {
            self.weave_lists::<C, false>(sum);
        } else {
            self.weave_lists::<C, true>(sum);
        }
    }

    /// The same; one list fewer to look at makes a tenth of the time.
    fn weave_lists<C: TotalCurve, const OVERTAKING: bool>(&self, sum: &mut Sum<'_, C>) {
        let (mut sent, mut overtaking) = (self.sent.iter(), self.overtaking.iter());
        let (mut from_first, mut from_others) = (self.from_first.iter(), self.from_others.iter());
        let (mut a, mut b) = (first(&mut sent), first(&mut overtaking));
        let (mut c, mut d) = (first(&mut from_first), first(&mut from_others));
        for op in self.ops.iter().chain([&END]) {
            loop {
                let mut next = a.at.min(c.at).min(d.at);
                if OVERTAKING {
                    next = next.min(b.at);
                }
                if next >= op.at {
                    break;
                }
                // Branches that are guessed: a chosen list would have to be waited for.
                if a.at == next {
                    sum.change(a);
                    a = first(&mut sent);
                } else if OVERTAKING && b.at == next {
                    sum.change(b);
                    b = first(&mut overtaking);
                } else if c.at == next {
                    sum.change(c);
                    c = first(&mut from_first);
                } else {
                    sum.change(d);
                    d = first(&mut from_others);
                }
            }
            if op.at < END.at {
                sum.change(*op);
            }
        }
        sum.close();
    }

    /// How far the rank had come after everything at an instant.
    pub(super) fn progress(&self, at: u64) -> Progress {
        let lists = [&self.ops, &self.from_first, &self.from_others];
        let until = |list: &Vec<Change>| list.partition_point(|change| change.at <= at);
        lists.into_iter().flat_map(|list| &list[..until(list)]).map(|change| change.progress()).sum()
    }
}

/// The next change of a list.
#[inline]
fn first(list: &mut Iter<'_, Change>) -> Change {
    list.next().copied().unwrap_or(END)
}

/// A level under way.
pub(super) struct Sum<'a, C> {
    /// The level, from the last change on.
    level: i64,
    last: u64,
    top: i64,
    top_at: u64,
    curve: &'a mut C,
}

impl<'a, C: TotalCurve> Sum<'a, C> {
    /// A level that begins at `level`.
    pub(super) fn new(level: i64, curve: &'a mut C) -> Self {
        curve.change(0, level);
        Self { level, last: 0, top: 0, top_at: 0, curve }
    }

    #[inline]
    fn change(&mut self, change: Change) {
        if self.level > self.top {
            self.rise(change.at);
        }
        self.curve.change(change.at - self.last, change.bytes());
        self.last = change.at;
        self.level += change.bytes();
    }

    /// Nothing changes any more.
    fn close(&mut self) {
        if self.level > self.top {
            self.rise(END.at);
        }
    }

    /// No level was as high before, if it lasts until `next`: what counts is the level after everything at an instant.
    /// Rare, so kept out of the loop.
    #[cold]
    #[inline(never)]
    const fn rise(&mut self, next: u64) {
        if next > self.last {
            (self.top, self.top_at) = (self.level, self.last);
        }
    }

    /// The highest level, and its first instant in ns.
    pub(super) const fn top(&self) -> (i64, u64) {
        (self.top, self.top_at)
    }
}

#[cfg(test)]
mod tests {
    use pipestep_engine::{NoCurve, Totals};

    use super::*;

    fn listed(ops: &[(u64, i64)], messages: [&[(u64, i64)]; 4]) -> Changes {
        let list = |all: &[(u64, i64)], what| {
            all.iter().map(|&(at, bytes)| Change::new(at, bytes, what)).collect::<Vec<_>>()
        };
        let [sent, overtaking, from_first, from_others] = messages.map(|messages| list(messages, ARRIVES));
        let mut changes = Changes { ops: list(ops, STARTS), sent, overtaking, from_first, from_others };
        changes.close(Change::nothing(9));
        changes
    }

    #[test]
    fn changes_are_made_in_order_of_time_and_count_together_at_one_instant() {
        let changes =
            listed(&[(1, 5), (7, -5)], [&[(6, -2), (4, 1)], &[(5, 1)], &[(7, 9)], &[(0, 3), (2, -3)]]);
        let mut curve = Totals::default();
        let mut sum = Sum::new(10, &mut curve);
        changes.weave(&mut sum);
        assert_eq!(sum.top(), (19, 7), "5 go and 9 come at 7: 24 are never held");
        let steps: Vec<_> = curve.steps().map(|(at, held)| (at.as_nanos(), held.get())).collect();
        let expected = [(0, 13), (1, 18), (2, 15), (4, 16), (5, 17), (6, 15), (7, 19), (9, 19)];
        assert_eq!(steps, expected);
    }

    #[test]
    fn the_first_of_equal_levels_is_the_highest_and_a_level_without_changes_is_its_own() {
        let changes = listed(&[(1, 5), (2, -5), (3, 5), (4, -5)], [&[]; 4]);
        let mut nothing = NoCurve;
        let mut sum = Sum::new(0, &mut nothing);
        changes.weave(&mut sum);
        assert_eq!(sum.top(), (5, 1));
        assert_eq!(changes.progress(1), Progress { starts: 1, ends: 0, received: 0 });
        let mut sum = Sum::new(7, &mut nothing);
        listed(&[], [&[]; 4]).weave(&mut sum);
        assert_eq!(sum.top(), (7, 0));
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
