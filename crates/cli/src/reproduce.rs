//! Recomputing what the documentation claims, by simulation.

mod claim;
mod value;

pub(crate) use claim::{Claim, Expected, Unit, read};
pub(crate) use value::Results;
