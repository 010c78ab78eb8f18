//! Tests of the job against the oracle and by properties: one binary, a file for each behaviour.

#![expect(clippy::unwrap_used, reason = "a test says what went wrong by panicking")]

mod book;
mod checkpoints;
mod faults;
mod fleet;
mod formulas;
mod input;
mod loading;
mod order;
mod random;
mod repeats;
mod spares;
mod stragglers;
mod support;
