//! Why a simulation is refused or cannot go on.

use std::borrow::Cow;

use pipestep_engine::{LedgerError, Overflow};

/// The path of an input as a scenario writes it under `[rl]`, places in lists by number: `scoring.0.time`.
pub type Field = Cow<'static, str>;

/// Every way in which [`crate::simulate`] fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RlError {
    /// A count that must not be zero.
    #[error("{what} must be at least 1: {why}")]
    Zero {
        /// Which input, as in [`RlError::field`].
        field: Field,
        /// What the count is of.
        what: String,
        /// What would never happen without it.
        why: &'static str,
    },
    /// A count past what a run can hold.
    #[error("{what} is {found}, at most {limit} can be simulated")]
    TooMany {
        /// Which input, as in [`RlError::field`].
        field: Field,
        /// What the count is of.
        what: String,
        /// The value given.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// Parameters without meaning, two inputs that exclude each other, or a configuration that can never finish a
    /// round.
    #[error("{reason}")]
    Refused {
        /// Which input, as in [`RlError::field`].
        field: Field,
        /// What is wrong and what to write instead.
        reason: String,
    },
    /// Nothing is left to happen and the rounds are not done.
    #[error("after {updates} of {wanted} updates nothing can happen any more: {waiting}")]
    Deadlock {
        /// What keeps it from going on, as far as that is known, as in [`RlError::field`].
        field: Field,
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
        /// What throws most of them away, as in [`RlError::field`].
        field: Field,
        /// Samples thrown away since the last update, failures of engines included.
        resolved: u64,
        /// Where they went, since the start.
        reason: String,
    },
    /// A sum past 64 bits.
    #[error(transparent)]
    Overflow(#[from] Overflow),
    /// A broken rule of the memory ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}

impl RlError {
    /// The input that is refused, or that keeps a run from going on, so that whoever read it from a file can say
    /// where it stands. `None` for a sum of many inputs.
    pub fn field(&self) -> Option<&str> {
        match self {
            Self::Zero { field, .. }
            | Self::TooMany { field, .. }
            | Self::Refused { field, .. }
            | Self::Deadlock { field, .. }
            | Self::NoProgress { field, .. } => Some(field),
            Self::Overflow(_) | Self::Ledger(_) => None,
        }
    }
}
