//! Fixed orders behind the same interface as online policies.

use crate::{Choice, Op, Orders, Policy, Rank, Ready};

/// Hands out a fixed order, one operation at a time.
#[derive(Clone, Debug)]
pub struct InOrder<'a> {
    all: &'a [Op],
    /// What is left of each rank's list, as places in `all`.
    left: Vec<std::ops::Range<usize>>,
}

impl<'a> InOrder<'a> {
    /// A policy that follows `orders` to the letter.
    pub fn new(orders: &'a Orders) -> Self {
        let left = (0..orders.ranks() as u16).map(|rank| orders.range(Rank(rank))).collect();
        Self { all: orders.all(), left }
    }
}

impl Policy for InOrder<'_> {
    fn next(&mut self, rank: Rank, _ready: &dyn Ready) -> Choice {
        self.left[rank.index()].next().map_or(Choice::Done, |place| Choice::Run(self.all[place]))
    }
}
