//! What would help: the same step run again with one thing changed, in the same orders.
//!
//! Deliberately absent: other schedules and other numbers of micro-batches. Those have other orders, which the
//! caller plans and runs like any step.

use pipestep_engine::{Duration, NoRecord, Time};
use pipestep_schedule::{Orders, Rank, Stage};

use crate::costs::round_half_even;
use crate::{Costs, Dataflow, FifoStep, InputError, Inputs, MessageMode, StageCost, StepError, run_orders};

/// The makespans of changed steps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WhatIf {
    /// With every transfer of length zero.
    pub free_transfers: Time,
    /// With the same total work spread evenly over the ranks, and evenly over the stages of each.
    pub balanced: Time,
    /// By how many percent stages are made faster in `faster`.
    pub percent: u8,
    /// By rank: its slowest stage made faster.
    pub faster: Vec<Faster>,
}

/// One rank's slowest stage made faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Faster {
    /// The rank.
    pub rank: Rank,
    /// Its stage with the longest forward and backward (of equals the first); `None` if it has no stage.
    pub stage: Option<Stage>,
    /// The makespan.
    pub makespan: Time,
}

/// Why a changed step cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhatIfError {
    /// The changed costs are refused.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The orders are not right for the step.
    #[error(transparent)]
    Step(#[from] StepError),
}

/// Runs a step again in the same orders with one change at a time; `percent` of 100 makes a stage's operations
/// take no time.
///
/// # Errors
/// [`WhatIfError`] if the orders are not right for the step.
pub fn what_if(inputs: &Inputs, orders: &Orders, percent: u8) -> Result<WhatIf, WhatIfError> {
    what_if_by(inputs, percent, |inputs| makespan(inputs, orders))
}

/// The same for steps that are run in another way, which `makespan` knows.
///
/// # Errors
/// As for [`what_if`].
pub fn what_if_by(
    inputs: &Inputs,
    percent: u8,
    makespan: impl Fn(&Inputs) -> Result<Time, StepError>,
) -> Result<WhatIf, WhatIfError> {
    let shape = inputs.shape();
    let mut faster = Vec::with_capacity(shape.ranks());
    for rank in (0..shape.ranks() as u16).map(Rank) {
        let stage = slowest_stage(inputs, rank);
        let changed =
            stage.map_or_else(|| Ok(inputs.clone()), |stage| with_faster(inputs, stage, percent))?;
        faster.push(Faster { rank, stage, makespan: makespan(&changed)? });
    }
    Ok(WhatIf {
        free_transfers: makespan(&inputs.with_free_transfers())?,
        balanced: makespan(&balanced(inputs)?)?,
        percent,
        faster,
    })
}

/// The makespan of a step in given orders, by the shortest way.
///
/// # Errors
/// [`StepError`] if the orders are not right for the step.
pub fn makespan(inputs: &Inputs, orders: &Orders) -> Result<Time, StepError> {
    let times = match FifoStep::new(inputs) {
        Some(step) => Dataflow::new().run(step, orders, &mut NoRecord, &mut NoRecord)?,
        None => run_orders(inputs, orders, MessageMode::Events, &mut NoRecord, &mut NoRecord)?,
    };
    Ok(times.makespan)
}

/// The same step with the same total work (of each kind, in nanoseconds) spread evenly: every rank has its
/// share, and every stage of a rank.
///
/// # Errors
/// [`InputError`] if the new times round to more than can be counted.
pub fn balanced(inputs: &Inputs) -> Result<Inputs, InputError> {
    let mut costs = inputs.costs().clone();
    let work: [fn(&mut StageCost) -> &mut Duration; 4] = [
        |stage| &mut stage.forward,
        |stage| &mut stage.backward,
        |stage| &mut stage.input_gradient,
        |stage| &mut stage.weight_gradient,
    ];
    for of in work {
        spread(inputs, &mut costs, of);
    }
    costs.stages.iter_mut().for_each(|stage| stage.layers = 1);
    let pairs: Option<Vec<Duration>> = costs.ranks.iter().map(|rank| rank.overlapped_pair).collect();
    if let Some(pairs) = pairs {
        let total: u128 = pairs.iter().map(|pair| u128::from(pair.as_nanos())).sum();
        for (place, rank) in costs.ranks.iter_mut().enumerate() {
            rank.overlapped_pair = Some(share(total, place, pairs.len()));
        }
    }
    inputs.with_costs(costs)
}

/// Spreads one kind of work: evenly over the ranks that have stages, then over each one's stages.
fn spread(inputs: &Inputs, costs: &mut Costs, of: fn(&mut StageCost) -> &mut Duration) {
    let shape = inputs.shape();
    let total: u128 = costs.stages.iter_mut().map(|stage| u128::from(of(stage).as_nanos())).sum();
    let ranks = (0..shape.ranks() as u16).map(Rank);
    let lists: Vec<Vec<Stage>> = ranks
        .map(|rank| shape.stages_of(rank).collect())
        .filter(|list: &Vec<Stage>| !list.is_empty())
        .collect();
    for (place, list) in lists.iter().enumerate() {
        let mine = u128::from(share(total, place, lists.len()).as_nanos());
        for (position, stage) in list.iter().enumerate() {
            *of(&mut costs.stages[stage.index()]) = share(mine, position, list.len());
        }
    }
}

/// Part number `place` of `parts` parts of a total that differ by one nanosecond at most and add up to it.
fn share(total: u128, place: usize, parts: usize) -> Duration {
    let up_to = |place: usize| total * place as u128 / parts as u128;
    Duration::from_nanos(u64::try_from(up_to(place + 1) - up_to(place)).unwrap_or(u64::MAX))
}

/// The same step with every operation of one stage so many percent shorter. An overlapped pair gets shorter by
/// the stage's share of its rank.
///
/// # Errors
/// [`InputError`] if the new costs are refused, which shorter ones never are.
pub fn with_faster(inputs: &Inputs, stage: Stage, percent: u8) -> Result<Inputs, InputError> {
    let kept = 100 - u128::from(percent.min(100));
    let shape = inputs.shape();
    let rank = shape.rank_of(stage);
    let mut costs = inputs.costs().clone();
    let cost = &mut costs.stages[stage.index()];
    for length in [&mut cost.forward, &mut cost.backward, &mut cost.input_gradient, &mut cost.weight_gradient]
    {
        *length = part(*length, kept, 100);
    }
    let mine = u128::from(cost.layers);
    let all: u128 = shape.stages_of(rank).map(|stage| u128::from(costs.stages[stage.index()].layers)).sum();
    if let Some(pair) = &mut costs.ranks[rank.index()].overlapped_pair
        && all > 0
    {
        *pair = part(*pair, (all - mine) * 100 + mine * kept, all * 100);
    }
    inputs.with_costs(costs)
}

fn part(length: Duration, numerator: u128, denominator: u128) -> Duration {
    let nanos = round_half_even(u128::from(length.as_nanos()) * numerator, denominator);
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The stage of a rank with the longest forward and backward; of equals the first.
fn slowest_stage(inputs: &Inputs, rank: Rank) -> Option<Stage> {
    let work = |stage: &Stage| {
        let cost = &inputs.costs().stages[stage.index()];
        u128::from(cost.forward.as_nanos()) + u128::from(cost.backward.as_nanos())
    };
    inputs.shape().stages_of(rank).max_by_key(|stage| (work(stage), std::cmp::Reverse(*stage)))
}
