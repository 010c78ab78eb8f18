//! How many bytes each rank holds in all, kept while the step runs, for runs that tell what happens in order of
//! time: the curve, its peak and what that consists of.
//!
//! What happens now changes the rank's level at once. What is known to happen later (a message that will have gone
//! out, an operation whose input is on its way) waits in a short line until the level comes to it. Only the sum of
//! all accounts is kept; what it consists of at the peak follows from how far the rank had come by then.
//! [`crate::memory`] reads every account off a finished record, and a property test holds the two together.

#![expect(clippy::inline_always, reason = "see `observe`")]

use std::collections::VecDeque;

use pipestep_engine::{Bytes, LedgerError, Peak, Time, TotalCurve};
use pipestep_schedule::{Op, Orders, Rank};

use crate::bytes::{StepBytes, held};
use crate::observe::{Flight, Observer, Place};
use crate::rows::{Row, Rows};
use crate::{ACCOUNTS, Account, Inputs, StepError};

/// The levels of all ranks, with their memory kept from one run to the next; `C` is what becomes of the curves.
#[derive(Clone, Debug, Default)]
pub struct Levels<C> {
    ranks: Vec<RankLevel<C>>,
    bytes: StepBytes,
}

/// One rank.
#[derive(Clone, Debug, Default)]
struct RankLevel<C> {
    /// The instant of the last change.
    now: u64,
    /// The level after it.
    total: i64,
    /// The highest level before `now`.
    highest: i64,
    /// When the first thing that waits for its time has it, or past every instant.
    next: u64,
    /// The rank's next operation, if it starts later.
    start: Waiting,
    starting: u32,
    /// A message that will have gone out. Mostly it is the only one.
    goes: Waiting,
    /// All else that comes later, in order of time: what arrives is above zero, what goes out below.
    line: VecDeque<Waiting>,
    progress: Progress,
    /// The first instant of the highest level, and how far the rank had come.
    highest_at: u64,
    at_highest: Progress,
    curve: C,
}

/// How far a rank has come.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Starts and ends of its operations, each in order. Halves of a pair count twice.
    starts: u32,
    ends: u32,
    /// Bytes that have begun to arrive.
    received: i64,
}

/// A change that waits for its time.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    at: u64,
    by: i64,
}

impl Waiting {
    /// Nothing waits.
    const NONE: Self = Self { at: u64::MAX, by: 0 };
}

impl Default for Waiting {
    fn default() -> Self {
        Self::NONE
    }
}

/// Levels that are told of one step.
pub(crate) struct Keeping<'a, C> {
    inputs: &'a Inputs,
    ranks: &'a mut [RankLevel<C>],
    bytes: &'a StepBytes,
}

/// The most that a ledger can hold.
const LARGEST: i64 = (1 << 57) - 1;

impl<C: TotalCurve + Default> Levels<C> {
    /// No levels yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A rank's curve in the last run.
    pub fn curve(&self, rank: Rank) -> &C {
        &self.ranks[rank.index()].curve
    }

    /// A rank's highest level in the last run.
    pub fn highest(&self, rank: Rank) -> Bytes {
        bytes(self.ranks[rank.index()].highest)
    }

    /// A rank's peak in the last run, which was that of `inputs` and `orders`.
    pub fn peak(&self, inputs: &Inputs, orders: &Orders, rank: Rank) -> Peak<ACCOUNTS> {
        let level = &self.ranks[rank.index()];
        let mut accounts = [0; ACCOUNTS];
        if level.highest > 0 {
            accounts = self.accounts(inputs, orders.rank(rank), rank, level.highest, level.at_highest);
        }
        let at = Time::from_nanos(level.highest_at);
        Peak { bytes: bytes(level.highest), at, accounts: accounts.map(bytes) }
    }

    /// What a level consists of, from how far the rank had come.
    fn accounts(
        &self,
        inputs: &Inputs,
        list: &[Op],
        rank: Rank,
        level: i64,
        progress: Progress,
    ) -> [i64; ACCOUNTS] {
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

    /// Makes everything ready for a run.
    pub(crate) fn open<'a>(&'a mut self, inputs: &'a Inputs, rows: &mut Rows) -> Keeping<'a, C> {
        self.bytes.compile(inputs, rows);
        self.bytes.fill(rows);
        self.ranks.resize_with(inputs.shape().ranks(), RankLevel::default);
        for (rank, level) in (0..).map(Rank).zip(&mut self.ranks) {
            let RankLevel { mut line, mut curve, .. } = std::mem::take(level);
            line.clear();
            curve.clear();
            let total = held(inputs, rank).iter().sum();
            *level = RankLevel { line, curve, total, next: u64::MAX, ..RankLevel::default() };
        }
        Keeping { inputs, ranks: &mut self.ranks, bytes: &self.bytes }
    }

    /// Ends a run.
    pub(crate) fn close(&mut self) -> Result<(), StepError> {
        for (rank, level) in (0..).map(Rank).zip(&mut self.ranks) {
            level.catch_up(u64::MAX - 1);
            level.finish_instant();
            if level.highest > LARGEST {
                let source = LedgerError::TooLarge { at: Time::from_nanos(level.highest_at) };
                return Err(StepError::Ledger { rank, source });
            }
        }
        Ok(())
    }
}

impl<C: TotalCurve> Observer<1> for Keeping<'_, C> {
    #[inline(always)]
    fn ran(&mut self, rank: usize, at: Place, row: &Row, now: u64, [start]: [u64; 1], _end: [u64; 1]) {
        let by = self.bytes.change(self.inputs, row, at.op).start;
        let level = &mut self.ranks[rank];
        if start > now {
            // Halves of a pair start at once.
            level.start = Waiting { at: start, by: level.start.by + by };
            level.starting += 1;
            level.next = level.next.min(start);
            return;
        }
        level.come_to(now);
        level.total += by;
        level.progress.starts += 1;
    }

    #[inline(always)]
    fn ended(&mut self, rank: usize, at: Place, row: &Row, now: u64) {
        let by = self.bytes.change(self.inputs, row, at.op).end;
        let level = &mut self.ranks[rank];
        level.come_to(now);
        level.total += by;
        level.progress.ends += 1;
    }

    #[inline(always)]
    fn sent(&mut self, message: Flight, row: &Row, now: u64, [start]: [u64; 1], [end]: [u64; 1]) {
        let bytes = self.bytes.change(self.inputs, row, message.at.op).sent;
        if bytes == 0 {
            return;
        }
        let sender = &mut self.ranks[message.sender.index()];
        sender.next = sender.next.min(end);
        if sender.goes.at == u64::MAX {
            sender.goes = Waiting { at: end, by: -bytes };
        } else {
            sender.wait_in_line(Waiting { at: end, by: -bytes });
        }
        let receiver = &mut self.ranks[message.receiver.index()];
        if start > now {
            return receiver.wait_in_line(Waiting { at: start, by: bytes });
        }
        receiver.come_to(now);
        receiver.total += bytes;
        receiver.progress.received += bytes;
    }
}

impl<C: TotalCurve> RankLevel<C> {
    /// Makes `now` the instant of the changes that follow, after all that wait for it or an earlier one.
    #[inline]
    fn come_to(&mut self, now: u64) {
        if self.next <= now {
            self.catch_up(now);
        }
        self.go_to(now);
    }

    #[inline]
    fn go_to(&mut self, at: u64) {
        if at != self.now {
            self.finish_instant();
            self.now = at;
        }
    }

    /// What counts is the level after everything at an instant.
    #[inline]
    fn finish_instant(&mut self) {
        if self.total > self.highest {
            self.rise();
        }
        self.curve.step(Time::from_nanos(self.now), bytes(self.total));
    }

    /// No level was as high before. Rare, so kept out of the loop.
    #[cold]
    fn rise(&mut self) {
        (self.highest, self.highest_at, self.at_highest) = (self.total, self.now, self.progress);
    }

    /// Makes the changes that wait for `now` or an earlier instant.
    #[inline(never)]
    fn catch_up(&mut self, now: u64) {
        let mut line = self.line.front().map_or(u64::MAX, |waiting| waiting.at);
        loop {
            self.next = self.start.at.min(self.goes.at).min(line);
            if self.next > now {
                return;
            }
            self.go_to(self.next);
            if self.next == self.goes.at {
                self.total += std::mem::take(&mut self.goes).by;
            } else if self.next == self.start.at {
                self.total += std::mem::take(&mut self.start).by;
                self.progress.starts += std::mem::take(&mut self.starting);
            } else {
                let Waiting { by, .. } = self.line.pop_front().unwrap_or_default();
                self.total += by;
                self.progress.received += by.max(0);
                line = self.line.front().map_or(u64::MAX, |waiting| waiting.at);
            }
        }
    }

    #[inline(never)]
    fn wait_in_line(&mut self, waiting: Waiting) {
        self.next = self.next.min(waiting.at);
        let place = self.line.iter().rposition(|other| other.at <= waiting.at).map_or(0, |before| before + 1);
        self.line.insert(place, waiting);
    }
}

/// Levels never fall below zero: what is freed was held.
#[inline]
const fn bytes(level: i64) -> Bytes {
    Bytes::new(level.unsigned_abs())
}
