//! Why a simulation is refused or cannot go on.

use pipestep_engine::{LedgerError, Overflow};

/// Every way in which [`crate::simulate`] fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RlError {
    /// A count that must not be zero.
    #[error("{what} must be at least 1: {why}")]
    Zero {
        /// What the count is of.
        what: String,
        /// What would never happen without it.
        why: &'static str,
    },
    /// A count past what a run can hold.
    #[error("{what} is {found}, at most {limit} can be simulated")]
    TooMany {
        /// What the count is of.
        what: String,
        /// The value given.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Parameters that are no distribution.
    #[error("{what}: {reason}")]
    Distribution {
        /// What is drawn from it.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A speed of zero: the stage would never end.
    #[error("the speed of {stage} must be above 0")]
    Speed {
        /// The stage.
        stage: String,
    },
    /// Two inputs that exclude each other, or a configuration that can never finish a round.
    #[error("{reason}")]
    Refused {
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// A fault names something that is not there.
    #[error("a fault names {what} {index}, there are {count} (numbered from 0)")]
    UnknownTarget {
        /// `"engine"` or `"scoring pool"`.
        what: &'static str,
        /// The number given.
        index: u64,
        /// How many there are.
        count: u64,
    },
    /// Nothing is left to happen and the rounds are not done.
    #[error("after {updates} of {wanted} updates nothing can happen any more: {waiting}")]
    Deadlock {
        /// Updates that were finished.
        updates: u64,
        /// Updates asked for.
        wanted: u64,
        /// Who waits for what.
        waiting: String,
    },
    /// Samples are made and thrown away without end.
    #[error("no update while {resolved} samples were thrown away: {reason}")]
    NoProgress {
        /// Samples thrown away since the last update, failures of engines included.
        resolved: u64,
        /// Where they went, since the start.
        reason: String,
    },
    /// An order of loads and releases that contradicts itself.
    #[error("the switch to {to}: {reason}")]
    SwitchOrder {
        /// `"rollout"` or `"training"`.
        to: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A sum past 64 bits.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// A broken rule of the memory ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
