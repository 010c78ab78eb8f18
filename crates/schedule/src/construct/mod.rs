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

use crate::{Plan, Rank, Refusal, Shape, Weights};
use search::Search;
use table::Table;

/// What a construction may use.
pub(crate) struct Goal {
    /// The schedule's name, for refusals.
    pub(crate) schedule: &'static str,
    /// Whether the backward runs as `I` and `W`.
    pub(crate) split: bool,
    /// What a rank may hold, in halves of what it saves for one micro-batch.
    pub(crate) half_micro_batches: u64,
    /// How many operations may be run in trials: a few tens of nanoseconds each.
    pub(crate) trials: usize,
}

/// The shortest order found for a V-shaped pipeline of two chunks.
pub(crate) fn v_shaped(goal: &Goal, shape: &Shape, weights: &Weights) -> Result<Plan, Refusal> {
    let table = Table::new(shape, weights, goal.split);
    let limit = limits(goal, &table);
    let search = Search {
        table: &table,
        micro_batches: shape.micro_batches(),
        limit: &limit,
        budget: goal.trials,
        first: &search::RULES[..1],
        trial: shape.ranks() * 3 / 2 + 8,
    };
    search.best(blocks::v_shaped(&table, &limit)).map(Plan::Fixed).ok_or_else(|| no_room(goal))
}

/// The shortest order found for a pipeline of one chunk a rank.
pub(crate) fn one_chunk(goal: &Goal, shape: &Shape, weights: &Weights) -> Result<Plan, Refusal> {
    let table = Table::new(shape, weights, goal.split);
    let limit = limits(goal, &table);
    let search = Search {
        table: &table,
        micro_batches: shape.micro_batches(),
        limit: &limit,
        budget: goal.trials,
        first: &search::LATE_WEIGHTS,
        trial: 4 * shape.ranks(),
    };
    let blocks = blocks::one_chunk(&table, &limit, shape.micro_batches() as u64);
    search.best(blocks).map(Plan::Fixed).ok_or_else(|| no_room(goal))
}

/// Each rank's limit in bytes.
fn limits(goal: &Goal, table: &Table) -> Vec<i64> {
    let half = |rank| table.saved(rank).saturating_mul(goal.half_micro_batches as i64) / 2;
    (0..table.ranks()).map(half).collect()
}

fn no_room(goal: &Goal) -> Refusal {
    let reason = "one micro-batch at a time needs more than its limit".into();
    Refusal::Memory { schedule: goal.schedule, rank: Rank(0), reason }
}
