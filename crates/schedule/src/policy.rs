//! Fixed orders behind the same interface as online policies.

use crate::{Choice, Op, Orders, Policy, Rank, Ready};

/// Hands out a fixed order, one operation at a time.
#[derive(Clone, Debug)]
pub struct InOrder<'a> {
    /// What is left of each rank's list.
    left: Vec<std::slice::Iter<'a, Op>>,
}

impl<'a> InOrder<'a> {
    /// A policy that follows `orders` to the letter.
    pub fn new(orders: &'a Orders) -> Self {
        let left = |rank| orders.all()[orders.range(Rank(rank))].iter();
        Self { left: (0..orders.ranks() as u16).map(left).collect() }
    }
}

impl Policy for InOrder<'_> {
    fn next(&mut self, rank: Rank, _ready: &dyn Ready) -> Choice {
        self.left[rank.index()].next().map_or(Choice::Done, |&op| Choice::Run(op))
    }
}
