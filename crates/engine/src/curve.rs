//! What becomes of memory over time: dropped, kept whole, or kept as changes of the sum.

use crate::{Bytes, Time};

/// What a ledger does with its history: drop it ([`NoCurve`]) or keep it whole (`Vec<Level<N>>`).
pub trait Curve<const N: usize> {
    /// The levels of all accounts from `level.at` on.
    fn level(&mut self, level: Level<N>);
}

/// What becomes of a curve of sums over all accounts: dropped ([`NoCurve`]) or kept ([`Totals`]).
pub trait TotalCurve {
    /// Whether anything is kept of it.
    const KEEPS: bool;

    /// The sum changes: the ns since the change before (or since the start), and by how many bytes, below 2^61 and
    /// negative where some are freed. Several changes at one instant count together.
    fn change(&mut self, since: u64, bytes: i64);

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

/// A memory curve that keeps how the sum of all accounts changes: 8 bytes for most changes, since what is written for
/// each limits how fast a large step can be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// For each change, `time since the one before << 32 | bytes`, or [`Totals::WIDE`].
    packed: Vec<u64>,
    /// Changes that do not fit: more than 4 s after the one before, or of more than 2 GB.
    wide: Vec<(u64, i64)>,
}

impl Totals {
    const WIDE: u64 = u64::MAX;

    #[cold]
    fn change_widely(&mut self, since: u64, bytes: i64) {
        self.wide.push((since, bytes));
        self.packed.push(Self::WIDE);
    }

    /// Each instant at which something changed, with what was held from then on; at the start nothing was.
    pub fn steps(&self) -> impl Iterator<Item = (Time, Bytes)> + '_ {
        let (mut wide, mut at, mut held) = (self.wide.iter(), 0, 0_u64);
        let mut changes = self.packed.iter().map(move |&change| match change {
            Self::WIDE => wide.next().copied().unwrap_or_default(),
            _ => (change >> 32, i64::from(change as u32 as i32)),
        });
        let mut next = changes.next();
        std::iter::from_fn(move || {
            let (since, bytes) = next?;
            (at, held) = (at + since, held.wrapping_add_signed(bytes));
            next = changes.next();
            while let Some((0, bytes)) = next {
                held = held.wrapping_add_signed(bytes);
                next = changes.next();
            }
            Some((Time::from_nanos(at), Bytes::new(held)))
        })
    }
}

impl TotalCurve for Totals {
    const KEEPS: bool = true;

    fn clear(&mut self) {
        self.packed.clear();
        self.wide.clear();
    }

    #[inline]
    fn change(&mut self, since: u64, bytes: i64) {
        // What does not fit, or would look like the mark, has a bit above 32 here.
        let size = (since + 1) | (bytes + (1 << 31)) as u64;
        if size >> 32 != 0 {
            return self.change_widely(since, bytes);
        }
        self.packed.push(since << 32 | u64::from(bytes as u32));
    }
}

impl TotalCurve for NoCurve {
    const KEEPS: bool = false;

    fn clear(&mut self) {}

    #[inline]
    fn change(&mut self, _since: u64, _bytes: i64) {}
}

impl<const N: usize> Curve<N> for NoCurve {
    fn level(&mut self, _level: Level<N>) {}
}

/// Keeps every step at which some account changed.
impl<const N: usize> Curve<N> for Vec<Level<N>> {
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
    fn a_curve_of_totals_keeps_large_changes_too() {
        let steps = [(0, 7), (1, 0), (9_000_000_000, 5), (9_000_000_001, 1 << 50), (u64::MAX / 2, 3)];
        let mut totals = Totals::default();
        let mut last = (0_u64, 0_u64);
        let changes = steps.map(|(at, held)| {
            let change = (at - last.0, (held as i64) - (last.1 as i64));
            last = (at, held);
            change
        });
        let (first, rest) = changes.split_at(2);
        for (since, bytes) in first.iter().copied().chain([(0, 3), (0, -3)]).chain(rest.iter().copied()) {
            totals.change(since, bytes);
        }
        let steps = steps.map(|(nanos, bytes)| (Time::from_nanos(nanos), Bytes::new(bytes)));
        assert_eq!(totals.steps().collect::<Vec<_>>(), steps);
    }
}
