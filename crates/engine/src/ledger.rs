//! Bytes held over time by one owner, in several accounts; the peak, when it is, and what it consists of.
//!
//! The one rule, from which the others follow: **what counts is the level after everything at an instant**.
//! So releases come before allocations, and what is held for no time at all is never seen. The order of
//! changes within an instant does not matter.

use crate::{Bytes, Curve, Level, Time};

/// The highest total of a ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak<const N: usize> {
    /// The sum over all accounts.
    pub bytes: Bytes,
    /// The first instant at which that sum is reached.
    pub at: Time,
    /// What each account held at that instant.
    pub accounts: [Bytes; N],
}

/// Why a change was refused. All mean a broken rule in the caller, or sizes past 2^57.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LedgerError {
    /// More was released than was held.
    #[error("account {account} would hold {level} bytes at {at}")]
    Negative {
        /// The account, by number.
        account: usize,
        /// The level it would have.
        level: i64,
        /// When.
        at: Time,
    },
    /// At some instant that is over now, more had been released than was held.
    #[error("more was released than was held: the level went down to {by} bytes")]
    Overdrawn {
        /// The lowest sum of all accounts; 0 if only one account was overdrawn.
        by: i64,
    },
    /// A sum of bytes past 2^57.
    #[error("the bytes held at {at} exceed {max}", max = LARGEST_LEVEL)]
    TooLarge {
        /// When.
        at: Time,
    },
    /// A change before one that was already made.
    #[error("a change at {at} comes after one at {last}")]
    Backwards {
        /// The late change.
        at: Time,
        /// The latest before it.
        last: Time,
    },
}

/// The ledger of one owner with `N` accounts and less than 2^57 bytes (144 PB) in all. Changes come in order of time.
#[derive(Clone, Debug)]
pub struct Ledger<const N: usize, C: Curve<N>> {
    levels: [i64; N],
    /// Sum of `levels`.
    total: i64,
    now: Time,
    highest: i64,
    lowest: i64,
    highest_at: Time,
    at_highest: [i64; N],
    curve: C,
}

/// The most bytes that a ledger can hold, 2^57 - 1: what leaves room to add several changes up before looking, and to
/// pack what happens beside a change.
pub const LARGEST_LEVEL: i64 = (1 << 57) - 1;

impl<const N: usize, C: Curve<N>> Ledger<N, C> {
    /// An empty ledger at time zero whose history goes to `curve`.
    pub fn new(curve: C) -> Self {
        let (levels, highest_at) = ([0; N], Time::ZERO);
        Self {
            levels,
            total: 0,
            now: Time::ZERO,
            highest: 0,
            lowest: 0,
            highest_at,
            at_highest: levels,
            curve,
        }
    }

    /// Adds `delta` bytes to an account (or takes them away) at instant `at`.
    ///
    /// # Errors
    /// [`LedgerError`]: going back in time, and whatever the levels of the instants before break.
    #[inline]
    pub fn change(&mut self, at: Time, account: usize, delta: i64) -> Result<(), LedgerError> {
        if at < self.now {
            return Err(LedgerError::Backwards { at, last: self.now });
        }
        if at != self.now {
            self.go_to(at);
            self.check()?;
        }
        self.add(account, delta);
        Ok(())
    }

    /// Makes `at`, which is not before the last one, the instant of the changes that follow. For loops that
    /// cannot stop at every change: what is wrong is found by [`Ledger::finish`].
    #[inline]
    pub fn go_to(&mut self, at: Time) {
        debug_assert!(at >= self.now, "a change at {at} after one at {}", self.now);
        if at != self.now {
            self.finish_instant();
            self.now = at;
        }
    }

    /// Adds `delta` bytes to an account (or takes them away) at the instant that [`Ledger::go_to`] named last.
    #[inline]
    pub fn add(&mut self, account: usize, delta: i64) {
        self.levels[account] = self.levels[account].saturating_add(delta);
        self.total = self.total.saturating_add(delta);
    }

    /// Closes the last instant and returns the peak, what is still held, and the curve.
    ///
    /// # Errors
    /// [`LedgerError`] if any instant broke a rule.
    pub fn finish(mut self) -> Result<(Peak<N>, Bytes, C), LedgerError> {
        self.finish_instant();
        self.check()?;
        let bytes = |level: i64| Bytes::new(level.unsigned_abs());
        let peak =
            Peak { bytes: bytes(self.highest), at: self.highest_at, accounts: self.at_highest.map(bytes) };
        Ok((peak, bytes(self.total), self.curve))
    }

    #[inline]
    fn finish_instant(&mut self) {
        self.lowest = self.lowest.min(self.total);
        if self.total > self.highest {
            self.rise();
        }
        let accounts = self.levels.map(|level| Bytes::new(level.unsigned_abs()));
        self.curve.level(Level { at: self.now, accounts });
    }

    /// The total is higher than ever before. Rare, so kept out of the loop.
    #[cold]
    fn rise(&mut self) {
        (self.highest, self.highest_at, self.at_highest) = (self.total, self.now, self.levels);
    }

    #[inline]
    fn check(&self) -> Result<(), LedgerError> {
        let overdrawn = self.levels.iter().chain(&self.at_highest).any(|&level| level < 0);
        if self.lowest < 0 || self.highest > LARGEST_LEVEL || overdrawn { Err(self.broken()) } else { Ok(()) }
    }

    #[cold]
    fn broken(&self) -> LedgerError {
        match self.levels.iter().position(|&level| level < 0) {
            Some(account) => LedgerError::Negative { account, level: self.levels[account], at: self.now },
            None if self.highest <= LARGEST_LEVEL => LedgerError::Overdrawn { by: self.lowest.min(0) },
            None => LedgerError::TooLarge { at: self.highest_at },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoCurve;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn releases_come_before_allocations_of_the_same_instant() {
        let mut ledger = Ledger::<1, _>::new(Vec::new());
        ledger.change(at(0), 0, 10).unwrap();
        ledger.change(at(5), 0, 10).unwrap();
        ledger.change(at(5), 0, -10).unwrap();
        ledger.change(at(9), 0, -10).unwrap();
        let (peak, left, curve) = ledger.finish().unwrap();
        assert_eq!((peak.bytes, peak.at, left), (Bytes::new(10), at(0), Bytes::ZERO));
        assert_eq!(curve.len(), 2, "nothing changed at 5 that anyone could see: {curve:?}");
    }

    #[test]
    fn an_interval_of_no_length_holds_nothing() {
        let mut ledger = Ledger::<1, _>::new(NoCurve);
        ledger.change(at(3), 0, 100).unwrap();
        ledger.change(at(3), 0, -100).unwrap();
        assert_eq!(ledger.finish().unwrap().0.bytes, Bytes::ZERO);
    }

    #[test]
    fn the_peak_says_when_and_of_what() {
        let mut ledger = Ledger::<2, _>::new(NoCurve);
        ledger.change(at(1), 0, 4).unwrap();
        ledger.change(at(2), 1, 3).unwrap();
        ledger.change(at(3), 0, -4).unwrap();
        let (peak, left, _) = ledger.finish().unwrap();
        assert_eq!(peak, Peak { bytes: Bytes::new(7), at: at(2), accounts: [Bytes::new(4), Bytes::new(3)] });
        assert_eq!(left, Bytes::new(3));
    }

    #[test]
    fn broken_rules_are_errors() {
        let mut ledger = Ledger::<1, _>::new(NoCurve);
        ledger.change(at(5), 0, -1).unwrap();
        assert!(matches!(ledger.change(at(4), 0, 1), Err(LedgerError::Backwards { .. })));
        assert!(matches!(ledger.change(at(6), 0, 1), Err(LedgerError::Negative { level: -1, .. })));
        let mut ledger = Ledger::<1, _>::new(NoCurve);
        ledger.change(at(0), 0, i64::MAX).unwrap();
        ledger.change(at(0), 0, 1).unwrap();
        assert_eq!(ledger.finish(), Err(LedgerError::TooLarge { at: at(0) }));
    }
}
