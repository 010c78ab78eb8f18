//! Time integrals: how many servers were busy for how long, and which state the trainer was in.
//!
//! One idea: a level that changes at instants, and the area under it; read at any instant by bringing the area
//! up to it.

use pipestep_engine::Time;

/// A level over time and the area under it, in servers times nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meter {
    level: u64,
    since: Time,
    area: u128,
}

impl Meter {
    pub(crate) fn add(&mut self, now: Time, count: u64) {
        self.advance(now);
        self.level += count;
    }

    pub(crate) fn sub(&mut self, now: Time, count: u64) {
        self.advance(now);
        self.level -= count;
    }

    pub(crate) const fn level(&self) -> u64 {
        self.level
    }

    /// The area until `now`.
    pub(crate) fn area(&mut self, now: Time) -> u128 {
        self.advance(now);
        self.area
    }

    fn advance(&mut self, now: Time) {
        self.area += u128::from(now.since(self.since).as_nanos()) * u128::from(self.level);
        self.since = now;
    }
}

/// Time spent in each of `N` states, one at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct States<const N: usize> {
    state: usize,
    since: Time,
    spent: [u64; N],
}

impl<const N: usize> States<N> {
    pub(crate) const fn new(state: usize) -> Self {
        Self { state, since: Time::ZERO, spent: [0; N] }
    }

    /// From `now` on it is in `state`.
    pub(crate) fn enter(&mut self, now: Time, state: usize) {
        if state != self.state {
            self.spent(now);
            self.state = state;
        }
    }

    /// Nanoseconds in each state until `now`.
    pub(crate) fn spent(&mut self, now: Time) -> [u64; N] {
        self.spent[self.state] += now.since(self.since).as_nanos();
        self.since = now;
        self.spent
    }
}
