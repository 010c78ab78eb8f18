//! Constructions for the schedules that look at costs: many building blocks are tried on the shape's own times
//! under its memory limit, and the order of the shortest step wins.
//!
//! The way of a candidate: [`blocks`] proposes nominal times, [`skeleton`] turns them into each rank's order of
//! forwards and gradient passes, [`squeeze`] runs that order, pulls operations into its gaps and places the
//! `W`s; [`search`] compares. Links never queue here and no two operations run as one.

mod alarms;
mod blocks;
mod search;
mod skeleton;
mod squeeze;
mod table;

use crate::{Entry, Options, Orders, Plan, Rank, Refusal, Shape, Weights};
use search::Search;
use table::Table;

/// The shortest order found for a V-shaped pipeline of two chunks, within the peak that its schedule states.
/// `trials` is how many operations may be run in trials: a few tens of nanoseconds each.
pub(crate) fn v_shaped(
    entry: &Entry,
    trials: usize,
    shape: &Shape,
    weights: &Weights,
) -> Result<Plan, Refusal> {
    let table = Table::new(shape, weights, entry.splits_backward);
    let limit = limits(entry, shape, &table);
    let search = Search {
        table: &table,
        micro_batches: shape.micro_batches(),
        limit: &limit,
        budget: trials,
        first: &search::RULES[..1],
        trial: shape.ranks() * 3 / 2 + 8,
    };
    found(entry, search.best(blocks::v_shaped(&table, &limit)))
}

/// The shortest order found for a pipeline of one chunk a rank, within the peak that its schedule states.
pub(crate) fn one_chunk(
    entry: &Entry,
    trials: usize,
    shape: &Shape,
    weights: &Weights,
) -> Result<Plan, Refusal> {
    let table = Table::new(shape, weights, entry.splits_backward);
    let limit = limits(entry, shape, &table);
    let search = Search {
        table: &table,
        micro_batches: shape.micro_batches(),
        limit: &limit,
        budget: trials,
        first: &search::LATE_WEIGHTS,
        trial: 4 * shape.ranks(),
    };
    found(entry, search.best(blocks::one_chunk(&table, &limit, shape.micro_batches() as u64)))
}

/// Each rank's limit in bytes: the peak that the schedule states, a stage being a chunk's share of what its rank
/// saves for a micro-batch. None of these schedules has options.
fn limits(entry: &Entry, shape: &Shape, table: &Table) -> Vec<i64> {
    let peak = (entry.peak)(shape, &Options::default()) as i64;
    let limit = |rank| table.saved(rank).saturating_mul(peak) / shape.chunks() as i64;
    (0..table.ranks()).map(limit).collect()
}

fn found(entry: &Entry, orders: Option<Orders>) -> Result<Plan, Refusal> {
    let reason = "one micro-batch at a time needs more than its limit";
    let refusal = || Refusal::Memory { schedule: entry.name, rank: Rank(0), reason: reason.into() };
    orders.map(Plan::Fixed).ok_or_else(refusal)
}
