//! How many bytes each rank holds in all, kept while the step runs: the curve, its peak and what that consists of.
//!
//! Whatever changes a rank's level is put into a short list in order of time, almost always at or near its end.
//! From time to time the part of the list that nothing can come before any more is summed up, all at once. Only the
//! sum of all accounts is kept; what it consists of at the peak follows from how far the rank had come by then.
//! [`crate::memory`] reads every account off a finished record, and a property test holds the two together.

#![expect(clippy::inline_always, reason = "see `observe`")]

use pipestep_engine::{Bytes, LARGEST_LEVEL, LedgerError, Peak, Time, TotalCurve};
use pipestep_schedule::{Op, Orders, Rank};

use crate::bytes::{StepBytes, held};
use crate::changes::{ARRIVES, Change, Changes, ENDS, FEW, GOES, MOST, Progress, STARTS};
use crate::observe::{Flight, Observer, Place};
use crate::rows::{Row, Rows};
use crate::{ACCOUNTS, Account, Inputs, StepError};

/// The levels of all ranks, with their memory kept from one run to the next; `C` is what becomes of the curves.
#[derive(Clone, Debug, Default)]
pub struct Levels<C> {
    ranks: Vec<RankLevel<C>>,
    bytes: StepBytes,
    senders: Senders,
}

/// One rank.
#[derive(Clone, Debug, Default)]
struct RankLevel<C> {
    changes: Changes,
    /// When the rank's last operation ends and by how much that changes its level. Mostly the next one starts at that
    /// instant, and one change does for both, so this is not among the changes yet.
    ends: Change,
    /// How far the rank has come by all that is told.
    told: Progress,
    /// The level after all changes that are summed up.
    total: i64,
    /// The highest level so far, but for the instant of the last of them.
    top: Top,
    curve: C,
}

/// A highest level.
#[derive(Clone, Copy, Debug, Default)]
struct Top {
    level: i64,
    /// Its first instant, and how far the rank had come.
    at: u64,
    progress: Progress,
}

/// From which ranks each rank has messages.
#[derive(Clone, Debug, Default)]
struct Senders {
    all: Vec<Rank>,
    /// By rank: where its senders begin.
    first: Vec<u32>,
}

/// Levels that are told of one step.
pub(crate) struct Keeping<'a, C> {
    inputs: &'a Inputs,
    ranks: &'a mut [RankLevel<C>],
    bytes: &'a StepBytes,
    senders: &'a Senders,
    /// Whether all is told in order of time.
    by_clock: bool,
}

impl<C: TotalCurve + Default> Levels<C> {
    /// No levels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A rank's curve in the last run.
    pub fn curve(&self, rank: Rank) -> &C {
        &self.ranks[rank.index()].curve
    }

    /// A rank's peak in the last run, which was that of `inputs` and `orders`.
    pub fn peak(&self, inputs: &Inputs, orders: &Orders, rank: Rank) -> Peak<ACCOUNTS> {
        let top = self.ranks[rank.index()].top;
        let mut accounts = [0; ACCOUNTS];
        if top.level > 0 {
            accounts = self.accounts(inputs, orders.rank(rank), rank, top);
        }
        Peak { bytes: bytes(top.level), at: Time::from_nanos(top.at), accounts: accounts.map(bytes) }
    }

    /// What a level consists of, from how far the rank had come.
    fn accounts(&self, inputs: &Inputs, list: &[Op], rank: Rank, top: Top) -> [i64; ACCOUNTS] {
        let Top { level, progress, .. } = top;
        let mut accounts = held(inputs, rank);
        let mut add = |account: Account, bytes: i64| accounts[account as usize] += bytes;
        for bytes in list[..progress.starts as usize].iter().map(|&op| self.bytes.of(inputs, op)) {
            add(Account::Activations, bytes.kept);
            add(Account::Workspace, bytes.used);
            add(Account::ReceiveBuffers, -bytes.consumed);
        }
        for bytes in list[..progress.ends as usize].iter().map(|&op| self.bytes.of(inputs, op)) {
            add(Account::Activations, -bytes.freed);
            add(Account::Workspace, -bytes.unused);
        }
        add(Account::ReceiveBuffers, progress.received);
        // The rest is on its way out.
        accounts[Account::SendBuffers as usize] = level - accounts.iter().sum::<i64>();
        accounts
    }

    /// Makes everything ready for a run, whose changes are told in order of time or not.
    pub(crate) fn open<'a>(
        &'a mut self,
        inputs: &'a Inputs,
        rows: &mut Rows,
        by_clock: bool,
    ) -> Result<Keeping<'a, C>, StepError> {
        self.bytes.compile(inputs, rows);
        let (largest, rank) = self.bytes.largest(inputs);
        if largest > LARGEST_LEVEL {
            let source = LedgerError::TooLarge { at: Time::ZERO };
            return Err(StepError::Ledger { rank, source });
        }
        self.bytes.fill(rows);
        self.senders.compile(inputs, rows);
        self.ranks.resize_with(inputs.shape().ranks(), RankLevel::default);
        for (rank, level) in (0..).map(Rank).zip(&mut self.ranks) {
            level.changes.clear(if by_clock { FEW } else { MOST });
            let total = held(inputs, rank).iter().sum();
            level.curve.clear();
            level.curve.extend(std::iter::once((0, total)));
            (level.ends, level.told) = (Change::nothing(0), Progress::default());
            level.total = total;
            level.top = Top::default();
        }
        let Self { ranks, bytes, senders } = self;
        Ok(Keeping { inputs, ranks, bytes, senders, by_clock })
    }

    /// Ends a run.
    pub(crate) fn close(&mut self) -> Result<(), StepError> {
        for (rank, level) in (0..).map(Rank).zip(&mut self.ranks) {
            level.finish();
            if level.top.level > LARGEST_LEVEL {
                let source = LedgerError::TooLarge { at: Time::from_nanos(level.top.at) };
                return Err(StepError::Ledger { rank, source });
            }
        }
        Ok(())
    }
}

impl Senders {
    fn compile(&mut self, inputs: &Inputs, rows: &Rows) {
        let ranks = inputs.shape().ranks();
        let mut by_receiver: Vec<_> = rows.pairs.iter().map(|&(from, to)| (to, from)).collect();
        by_receiver.sort_unstable();
        self.first.clear();
        self.first
            .extend((0..=ranks).map(|rank| by_receiver.partition_point(|(to, _)| to.index() < rank) as u32));
        self.all.clear();
        self.all.extend(by_receiver.into_iter().map(|(_, from)| from));
    }

    fn of(&self, rank: usize) -> &[Rank] {
        &self.all[self.first[rank] as usize..self.first[rank + 1] as usize]
    }
}

impl<C: TotalCurve> Keeping<'_, C> {
    /// A rank's list is full: sums up what nothing can come before any more.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, rank: usize, now: u64) {
        self.ranks[rank].put_end();
        let mut settled = now;
        if !self.by_clock {
            // Nothing that a rank does or sends comes before the end of its last operation.
            let ends = |rank: usize| self.ranks[rank].ends.at;
            let senders = self.senders.of(rank).iter();
            settled = senders.map(|sender| ends(sender.index())).fold(ends(rank), u64::min);
        }
        self.ranks[rank].sum_up(settled);
    }
}

impl<C: TotalCurve> Observer<1> for Keeping<'_, C> {
    #[inline(always)]
    fn ran(&mut self, rank: usize, at: Place, row: &Row, now: u64, [start]: [u64; 1], [end]: [u64; 1]) {
        let change = self.bytes.change(self.inputs, row, at.op);
        let level = &mut self.ranks[rank];
        level.told.starts += 1;
        level.told.ends += 1;
        let ends = level.ends;
        let mut starts = Change::new(start, change.start, STARTS);
        let mut then = Change::new(end, change.end, ENDS);
        if start == ends.at {
            starts = starts.and(ends);
        } else if start < ends.at {
            // The second half of a pair.
            then = then.and(ends);
        } else if !ends.is_nothing() {
            level.changes.put(ends);
        }
        level.changes.put(starts);
        level.ends = then;
        if level.changes.is_full() {
            self.make_room(rank, now);
        }
    }

    #[inline(always)]
    fn sent(&mut self, message: Flight, row: &Row, now: u64, [start]: [u64; 1], [end]: [u64; 1]) {
        let bytes = self.bytes.change(self.inputs, row, message.at.op).sent;
        if bytes == 0 {
            return;
        }
        let (sender, receiver) = (message.sender.index(), message.receiver.index());
        let level = &mut self.ranks[sender];
        level.changes.put(Change::new(end, -bytes, GOES));
        if level.changes.is_full() {
            self.make_room(sender, now);
        }
        let level = &mut self.ranks[receiver];
        level.told.received += bytes;
        level.changes.put(Change::new(start, bytes, ARRIVES));
        if level.changes.is_full() {
            self.make_room(receiver, now);
        }
    }
}

impl<C: TotalCurve> RankLevel<C> {
    /// The end of the last operation becomes one of the changes.
    fn put_end(&mut self) {
        if !self.ends.is_nothing() {
            self.changes.put(self.ends);
            self.ends = Change::nothing(self.ends.at);
        }
    }

    /// Makes all changes before `until`. All that is told is among the changes.
    fn sum_up(&mut self, until: u64) {
        loop {
            let count = self.changes.before(until);
            let (mut total, mut risen) = (self.total, None);
            for (place, (since, bytes)) in self.changes.first(count).enumerate() {
                // What counts is the level after everything at an instant.
                if total > self.top.level && since > 0 {
                    self.top.rise(total, place, &mut risen);
                }
                total += bytes;
            }
            self.curve.extend(self.changes.first(count));
            self.total = total;
            if let Some(place) = risen {
                let (at, to_come) = self.changes.progress_from(place);
                (self.top.at, self.top.progress) = (at, self.told - to_come);
            }
            if !self.changes.drop_first(count) {
                return;
            }
        }
    }

    /// No change comes any more.
    fn finish(&mut self) {
        self.put_end();
        self.sum_up(u64::MAX);
        if self.total > self.top.level {
            self.top = Top { level: self.total, at: self.changes.last_at(), progress: self.told };
        }
    }
}

impl Top {
    /// No level was as high before as the one that ends at `place`. Rare, so kept out of the loop.
    #[cold]
    #[inline(never)]
    const fn rise(&mut self, level: i64, place: usize, risen: &mut Option<usize>) {
        self.level = level;
        *risen = Some(place);
    }
}

/// Levels never fall below zero: what is freed was held.
#[inline]
const fn bytes(level: i64) -> Bytes {
    Bytes::new(level.unsigned_abs())
}
