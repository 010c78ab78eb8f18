//! A sweep: one scenario at every point of a space, on all cores, never losing what is finished.
//!
//! [`Space`] is the cross product of the swept keys; a point is its number, from which the values follow.
//! [`Points`] simulates a point into one row of text. [`run`] spreads points over threads and hands the rows, in
//! whatever order they come, to the [`Store`], which keeps a directory from which a killed sweep goes on. The
//! [`Manifest`] says what a directory belongs to. [`draw`] reads the finished rows back and draws them.
//!
//! One idea holds it up: a row depends on nothing but the manifest and the point's number. So it does not matter
//! which thread or which machine computes it, or when, and the finished directory is always the same to the byte.

mod fields;
mod manifest;
mod merge;
#[cfg(feature = "parquet")]
mod parquet;
mod plots;
mod points;
mod progress;
mod quantity;
mod run;
mod series;
mod simulate;
mod space;
mod store;

pub(crate) use fields::{bare, header};
pub(crate) use manifest::Manifest;
pub(crate) use merge::merge;
#[cfg(feature = "parquet")]
pub(crate) use parquet::write as write_parquet;
pub(crate) use plots::{axis, draw};
pub(crate) use points::Points;
pub(crate) use progress::Progress;
pub(crate) use run::run;
pub(crate) use series::{number, short};
pub(crate) use simulate::{summary as step_summary, tokens};
pub(crate) use space::{Shard, Space, places, varied};
pub(crate) use store::{Begun, Store, begun};
