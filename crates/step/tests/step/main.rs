//! Tests of a step: exact cases, and rules that must hold for any step.

#![expect(clippy::unwrap_used, reason = "a test that cannot build its case has failed")]

mod cases;
mod comms;
mod explain;
mod headline;
mod jitter;
mod levels;
mod periods;
mod properties;
