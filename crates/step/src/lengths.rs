//! How long each single operation and message lasts: the same for all micro-batches, or not.

use pipestep_schedule::Op;

use crate::Costs;

/// Lengths of single operations and messages in `N` replicas of a step, given the usual length of their row. The
/// loops are generic over it, so that a step whose micro-batches are alike pays nothing for the choice.
pub(crate) trait Lengths {
    /// Whether all are the usual ones.
    const USUAL: bool = false;

    /// The length of operation `op`.
    fn op(&self, op: Op, usual: u64) -> u64;

    /// The length of the message that it sends.
    fn message(&self, op: Op, usual: u64) -> u64;

    /// The length of an overlapped pair; `usual` is that of [`Costs::pair_duration`].
    fn pair(&self, first: Op, second: Op, usual: u64) -> u64;
}

/// All micro-batches are alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usual;

/// Each micro-batch has its own factor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled<'a>(pub(crate) &'a Costs);

impl Lengths for Usual {
    const USUAL: bool = true;

    #[inline]
    fn op(&self, _op: Op, usual: u64) -> u64 {
        usual
    }

    #[inline]
    fn message(&self, _op: Op, usual: u64) -> u64 {
        usual
    }

    fn pair(&self, _first: Op, _second: Op, usual: u64) -> u64 {
        usual
    }
}

impl Lengths for Scaled<'_> {
    fn op(&self, op: Op, usual: u64) -> u64 {
        self.0.scaled(usual, op.micro_batch)
    }

    fn message(&self, op: Op, usual: u64) -> u64 {
        self.0.scaled(usual, op.micro_batch)
    }

    fn pair(&self, _first: Op, _second: Op, usual: u64) -> u64 {
        usual // it is scaled already
    }
}
