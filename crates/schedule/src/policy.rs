//! Fixed orders behind the same interface as online policies.

use crate::{Choice, Orders, Policy, Rank, Ready};

/// Hands out a fixed order, one operation at a time.
#[derive(Clone, Debug)]
pub struct InOrder<'a> {
    orders: &'a Orders,
    /// Each rank's next place in `orders.all()`.
    next: Vec<usize>,
}

impl<'a> InOrder<'a> {
    /// A policy that follows `orders` to the letter.
    pub fn new(orders: &'a Orders) -> Self {
        let next = (0..orders.ranks() as u16)
            .map(|rank| orders.range(Rank(rank)).start)
            .collect();
        Self { orders, next }
    }
}

impl Policy for InOrder<'_> {
    fn next(&mut self, rank: Rank, _ready: &dyn Ready) -> Choice {
        let place = self.next[rank.index()];
        if place == self.orders.range(rank).end {
            return Choice::Done;
        }
        self.next[rank.index()] += 1;
        Choice::Run(self.orders.all()[place])
    }
}
