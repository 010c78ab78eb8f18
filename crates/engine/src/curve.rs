//! What becomes of memory over time: dropped, kept whole, kept as changes, or kept as sums.

use crate::{Bytes, Time};

/// What a ledger does with its history: drop it ([`NoCurve`]), keep it whole (`Vec<Level<N>>`) or keep what
/// changed ([`Changes`]), or the sums alone ([`Totals`]).
pub trait Curve<const N: usize> {
    /// The levels of all accounts from `level.at` on.
    fn level(&mut self, level: Level<N>);

    /// Forgets everything and keeps the memory.
    fn clear(&mut self) {}

    /// The same, with the sum of all accounts and those that were touched at that instant, one bit each.
    #[inline]
    fn instant(&mut self, at: Time, levels: &[i64; N], _total: i64, _touched: u64) {
        self.level(Level { at, accounts: levels.map(|level| Bytes::new(level.unsigned_abs())) });
    }
}

/// What becomes of a curve of sums over all accounts: dropped ([`NoCurve`]) or kept ([`Totals`]).
pub trait TotalCurve {
    /// The sum from `at` on. Instants come in order.
    fn step(&mut self, at: Time, total: Bytes);

    /// Forgets everything and keeps the memory.
    fn clear(&mut self);
}

/// Keeps no curve: peak only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoCurve;

/// One step of a memory curve: what each account holds from `at` until the next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<const N: usize> {
    /// From when.
    pub at: Time,
    /// What each account holds.
    pub accounts: [Bytes; N],
}

/// A memory curve that keeps what changed: 16 bytes for each account touched at an instant, a quarter of what
/// whole levels take.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes<const N: usize> {
    /// The instant, and `bytes << 6 | account`.
    packed: Vec<(Time, u64)>,
}

/// A memory curve that keeps the sum of all accounts after each instant: 8 bytes for most, since what is written
/// for each change limits how fast a large step can be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// For each instant, `time since the one before << 32 | change`, or [`Totals::WIDE`].
    packed: Vec<u64>,
    /// Instants that do not fit: more than 4 s or 2 GB from the one before.
    wide: Vec<(Time, Bytes)>,
    last: (Time, Bytes),
}

impl<const N: usize> Changes<N> {
    /// What each account holds from each instant on at which one of them was touched.
    pub fn levels(&self) -> impl Iterator<Item = Level<N>> + '_ {
        let mut accounts = [Bytes::ZERO; N];
        self.packed.chunk_by(|a, b| a.0 == b.0).map(move |instant| {
            for &(_, packed) in instant {
                accounts[(packed & 63) as usize] = Bytes::new(packed >> 6);
            }
            Level { at: instant[0].0, accounts }
        })
    }
}

impl<const N: usize> Curve<N> for Changes<N> {
    fn clear(&mut self) {
        self.packed.clear();
    }

    fn level(&mut self, level: Level<N>) {
        let all = level.accounts.iter().enumerate();
        self.packed.extend(all.map(|(account, bytes)| (level.at, bytes.get() << 6 | account as u64)));
    }

    #[inline]
    fn instant(&mut self, at: Time, levels: &[i64; N], _total: i64, mut touched: u64) {
        while touched != 0 {
            let account = touched.trailing_zeros() as usize & 63;
            touched &= touched - 1;
            self.packed.push((at, levels[account].unsigned_abs() << 6 | account as u64));
        }
    }
}

impl Totals {
    const WIDE: u64 = u64::MAX;

    /// Each instant at which something changed, with what was held from then on.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Bytes)> + '_ {
        let mut wide = self.wide.iter();
        let mut last = (0_u64, 0_u64);
        self.packed.iter().map(move |&step| {
            if step == Self::WIDE {
                let &(at, bytes) = wide.next().unwrap_or(&(Time::ZERO, Bytes::ZERO));
                last = (at.as_nanos(), bytes.get());
            } else {
                let change = i64::from(step as u32 as i32);
                last = (last.0 + (step >> 32), last.1.wrapping_add_signed(change));
            }
            (Time::from_nanos(last.0), Bytes::new(last.1))
        })
    }
}

impl TotalCurve for Totals {
    fn clear(&mut self) {
        self.packed.clear();
        self.wide.clear();
        self.last = (Time::ZERO, Bytes::ZERO);
    }

    #[inline]
    fn step(&mut self, at: Time, total: Bytes) {
        let (since, change) =
            (at.as_nanos() - self.last.0.as_nanos(), total.get().wrapping_sub(self.last.1.get()) as i64);
        self.last = (at, total);
        if let (Ok(since), Ok(change)) = (u32::try_from(since), i32::try_from(change))
            && since < u32::MAX
        {
            self.packed.push(u64::from(since) << 32 | u64::from(change as u32));
        } else {
            self.packed.push(Self::WIDE);
            self.wide.push((at, total));
        }
    }
}

impl TotalCurve for NoCurve {
    fn clear(&mut self) {}

    #[inline]
    fn step(&mut self, _at: Time, _total: Bytes) {}
}

impl<const N: usize> Curve<N> for Totals {
    fn clear(&mut self) {
        TotalCurve::clear(self);
    }

    fn level(&mut self, level: Level<N>) {
        let total = level.accounts.iter().fold(0_u64, |sum, bytes| sum.saturating_add(bytes.get()));
        self.step(level.at, Bytes::new(total));
    }

    #[inline]
    fn instant(&mut self, at: Time, _levels: &[i64; N], total: i64, _touched: u64) {
        self.step(at, Bytes::new(total.unsigned_abs()));
    }
}

impl<const N: usize> Curve<N> for NoCurve {
    fn level(&mut self, _level: Level<N>) {}

    #[inline]
    fn instant(&mut self, _at: Time, _levels: &[i64; N], _total: i64, _touched: u64) {}
}

/// Keeps every step at which some account changed.
impl<const N: usize> Curve<N> for Vec<Level<N>> {
    fn clear(&mut self) {
        self.clear();
    }

    fn level(&mut self, level: Level<N>) {
        if self.last().is_none_or(|last| last.accounts != level.accounts) {
            self.push(level);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_totals_keeps_large_steps_too() {
        let steps = [(0, 7), (1, 0), (9_000_000_000, 5), (9_000_000_001, 1 << 50), (u64::MAX / 2, 3)];
        let steps = steps.map(|(nanos, bytes)| (Time::from_nanos(nanos), Bytes::new(bytes)));
        let mut totals = Totals::default();
        for (at, bytes) in steps {
            totals.step(at, bytes);
        }
        assert_eq!(totals.steps().collect::<Vec<_>>(), steps);
    }
}
