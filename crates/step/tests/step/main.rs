//! Tests of a step: exact cases, and rules that must hold for any step.

mod cases;
mod headline;
mod properties;
