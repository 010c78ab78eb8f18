//! When the next of many alike things fails, each with its own clock.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pipestep_engine::{Duration, Time};
use rand_chacha::ChaCha12Rng;

use crate::Spread;

/// Independent lifetimes; a thing that fails is renewed, and its clock starts again.
#[derive(Debug)]
pub(super) struct Lifetimes {
    between: Spread,
    count: u32,
    rng: ChaCha12Rng,
    /// When each fails next, where lifetimes remember their age.
    clocks: BinaryHeap<Reverse<Time>>,
}

impl Lifetimes {
    pub(super) fn new(between: Spread, count: u32, mut rng: ChaCha12Rng) -> Self {
        let mut clocks = BinaryHeap::new();
        if !forgets(between) {
            clocks.extend((0..count).map(|_| Reverse(later(Time::ZERO, between.draw(&mut rng)))));
        }
        Self { between, count, rng, clocks }
    }

    /// The first failure of all; `None`: never.
    pub(super) fn first(&mut self) -> Option<Time> {
        self.next(Time::ZERO)
    }

    /// One has failed and is renewed; when the next of all fails.
    pub(super) fn renew(&mut self, now: Time) -> Option<Time> {
        if self.clocks.pop().is_some() {
            let next = later(now, self.between.draw(&mut self.rng));
            self.clocks.push(Reverse(next));
        }
        self.next(now)
    }

    fn next(&mut self, now: Time) -> Option<Time> {
        let next = if forgets(self.between) {
            later(now, self.between.draw_over(f64::from(self.count), &mut self.rng))
        } else {
            self.clocks.peek()?.0
        };
        (next < Time::MAX).then_some(next)
    }
}

/// Exponential lifetimes forget their age: all together are one exponential.
const fn forgets(between: Spread) -> bool {
    matches!(between, Spread::Exponential { .. })
}

/// What is past the end of time never happens.
fn later(now: Time, length: Option<Duration>) -> Time {
    length.and_then(|length| now.after(length).ok()).unwrap_or(Time::MAX)
}
