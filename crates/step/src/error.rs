//! Why a step cannot be simulated.

use pipestep_engine::{LedgerError, Overflow};
use pipestep_schedule::{OrderError, Orders, Rank, Shape};

/// Why a step cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// The orders are incomplete, contradict themselves or deadlock.
    #[error(transparent)]
    Order(#[from] OrderError),
    /// A policy that decides online left work undone and has no input to wait for.
    #[error(
        "the policy stopped before the step was done: rank {rank} ran {ran} operations and then waited for ever"
    )]
    Stuck {
        /// The first rank that is not done.
        rank: Rank,
        /// How many operations it ran.
        ran: usize,
    },
    /// A rule of the memory ledger was broken.
    #[error("rank {rank}: {source}")]
    Ledger {
        /// Whose ledger.
        rank: Rank,
        /// Which rule.
        source: LedgerError,
    },
    /// A time past the last representable instant.
    #[error(transparent)]
    Overflow(#[from] Overflow),
}

impl StepError {
    /// What is wrong with orders that did not run to the end.
    #[cold]
    pub(crate) fn stuck(shape: &Shape, orders: &Orders) -> Self {
        match orders.validate(shape) {
            Err(error) => Self::Order(error),
            Ok(()) => Self::Stuck { rank: Rank(0), ran: 0 },
        }
    }
}
