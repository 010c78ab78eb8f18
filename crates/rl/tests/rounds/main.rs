//! The rounds held against worked examples, order statistics, and rules that hold for any inputs.

#![allow(
    clippy::unwrap_used,
    clippy::float_cmp,
    reason = "in a test a panic is the failure, and the floats compared are exact"
)]

mod book;
mod common;
mod faults;
mod groups;
mod memory;
mod modes;
mod properties;
mod refusals;
mod reliability;
mod sharing;
mod tails;
mod weights;
