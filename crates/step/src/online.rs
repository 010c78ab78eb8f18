//! Runs that are not of fixed orders, or not of the step's own lengths: policies that choose as the step goes, and
//! lengths that are drawn.

use pipestep_engine::{Recorder, Timeline};
use pipestep_schedule::{InOrder, Orders, Policy, Rank};

use crate::lengths::{Lengths, Scaled};
use crate::log::MessageLog;
use crate::observe::Recording;
use crate::rows::Rows;
use crate::times::Tally;
use crate::world::{History, WorldMemory};
use crate::{Inputs, StepError, Times};

/// Runs a step whose operations a policy chooses as it goes. Returns the orders it came to, with their record.
///
/// # Errors
/// [`StepError`] if the policy stops early or chooses something that the rules do not allow.
pub fn run_policy(
    inputs: &Inputs,
    policy: Box<dyn Policy + '_>,
) -> Result<(Times, Orders, Timeline, MessageLog), StepError> {
    record_policy(inputs, Scaled(inputs.costs()), policy)
}

/// The same with lengths of their own.
///
/// # Errors
/// As for [`run_policy`].
pub(crate) fn record_policy<L: Lengths<1>>(
    inputs: &Inputs,
    lengths: L,
    policy: Box<dyn Policy + '_>,
) -> Result<(Times, Orders, Timeline, MessageLog), StepError> {
    let (rows, shape) = (Rows::new(inputs), inputs.shape());
    let (first_places, places) = places_for_policy(inputs);
    let (mut ops, mut messages) = (Timeline::new(places), MessageLog::new());
    let observer = Recording { ops: &mut ops, messages: &mut messages };
    let mut whole = WorldMemory::default();
    let history = Some(History::new(shape));
    let history = whole.run(inputs, &rows, &first_places, policy, lengths, history, observer)?;
    let ran = history.expect("kept for online policies").ran;
    if let Some(rank) = whole.unfinished() {
        return Err(StepError::Stuck { rank, ran: ran[rank.index()].len() });
    }
    let orders = Orders::from_lists(ran);
    orders.validate(shape)?;
    let times = Times::new(inputs, whole.tallies());
    // The places that the orders came to take, for those that were kept free for the most that could run.
    let mut place_of = vec![0_usize; places];
    for rank in ranks(inputs) {
        for (step, place) in orders.range(rank).enumerate() {
            place_of[first_places[rank.index()] + step] = place;
        }
    }
    let mut compact = Timeline::new(orders.all().len());
    for rank in ranks(inputs) {
        let first = first_places[rank.index()];
        (first..first + orders.range(rank).len()).for_each(|old| compact.record(place_of[old], ops.get(old)));
    }
    messages.renumber(|old| place_of[old]);
    let ops = compact;
    Ok((times, orders, ops, messages))
}

/// Runs fixed orders with lengths of their own, and keeps when everything ran. Every message is an event.
///
/// # Errors
/// As for [`crate::run_orders`].
pub(crate) fn record_orders<L: Lengths<1>>(
    inputs: &Inputs,
    lengths: L,
    orders: &Orders,
) -> Result<(Times, Timeline, MessageLog), StepError> {
    orders.validate(inputs.shape())?;
    let (rows, mut whole) = (Rows::new(inputs), WorldMemory::default());
    let first_places: Vec<usize> = ranks(inputs).map(|rank| orders.range(rank).start).collect();
    let (mut ops, mut messages) = (Timeline::new(orders.all().len()), MessageLog::new());
    let observer = Recording { ops: &mut ops, messages: &mut messages };
    whole.run(inputs, &rows, &first_places, Box::new(InOrder::new(orders)), lengths, None, observer)?;
    if !whole.is_done() {
        return Err(StepError::stuck(inputs.shape(), orders));
    }
    Ok((Times::new(inputs, whole.tallies()), ops, messages))
}

/// Who chooses the operations of a run that is only counted.
pub(crate) enum Runner<'a> {
    /// Fixed orders.
    Orders(&'a Orders),
    /// A policy, as it goes.
    Policy(Box<dyn Policy + 'a>),
}

/// Runs a step whose lengths are its own, and keeps only what each rank counted. Every message is an event, so
/// that operations of no length are no exception.
///
/// # Errors
/// As for [`crate::run_orders`] and [`run_policy`].
pub(crate) fn count<L: Lengths<1>>(
    inputs: &Inputs,
    lengths: L,
    runner: Runner<'_>,
) -> Result<Vec<Tally>, StepError> {
    let (rows, mut whole) = (Rows::new(inputs), WorldMemory::default());
    match runner {
        Runner::Orders(orders) => {
            let first_places: Vec<usize> = ranks(inputs).map(|rank| orders.range(rank).start).collect();
            let policy = Box::new(InOrder::new(orders));
            whole.run(inputs, &rows, &first_places, policy, lengths, None, ())?;
            if !whole.is_done() {
                return Err(StepError::stuck(inputs.shape(), orders));
            }
        }
        Runner::Policy(policy) => {
            let (first_places, _) = places_for_policy(inputs);
            let history = Some(History::new(inputs.shape()));
            whole.run(inputs, &rows, &first_places, policy, lengths, history, ())?;
            if let Some(rank) = whole.unfinished() {
                return Err(StepError::Stuck { rank, ran: 0 });
            }
        }
    }
    Ok(whole.tallies().collect())
}

/// The first place of each rank, and how many there are, for the most that can run: F, I and W of each micro-batch
/// and stage.
fn places_for_policy(inputs: &Inputs) -> (Vec<usize>, usize) {
    let shape = inputs.shape();
    let most =
        |rank| shape.stages_of(rank).map(|stage| 3 * shape.micro_batches_of(stage).len()).sum::<usize>();
    let mut places = 0;
    let first = ranks(inputs).map(|rank| {
        let first = places;
        places += most(rank);
        first
    });
    (first.collect(), places)
}

fn ranks(inputs: &Inputs) -> impl Iterator<Item = Rank> {
    (0..inputs.shape().ranks() as u16).map(Rank)
}
