//! Runs that are not of fixed orders, or not of the step's own lengths: policies that choose as the step goes, and
//! lengths that are drawn.

use pipestep_engine::{Recorder, Timeline};
use pipestep_schedule::{InOrder, Op, Orders, Policy, Rank};

use crate::lengths::{Lengths, Scaled};
use crate::log::MessageLog;
use crate::observe::{Observer, Recording};
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
pub(crate) fn record_policy<L: Lengths>(
    inputs: &Inputs,
    lengths: L,
    policy: Box<dyn Policy + '_>,
) -> Result<(Times, Orders, Timeline, MessageLog), StepError> {
    let (first_places, places) = places_for_policy(inputs);
    let (mut ops, mut messages) = (Timeline::new(places), MessageLog::new());
    let observer = Recording { ops: &mut ops, messages: &mut messages };
    let (whole, ran) = run_policy_with(inputs, &first_places, lengths, policy, observer)?;
    let orders = Orders::from_lists(ran);
    orders.validate(inputs.shape())?;
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

/// Runs fixed orders with lengths of their own, and keeps when everything ran. Every message is an event, so that
/// operations of no length are no exception.
///
/// # Errors
/// As for [`crate::run_orders`].
pub(crate) fn record_orders<L: Lengths>(
    inputs: &Inputs,
    lengths: L,
    orders: &Orders,
) -> Result<(Times, Timeline, MessageLog), StepError> {
    orders.validate(inputs.shape())?;
    let (mut ops, mut messages) = (Timeline::new(orders.all().len()), MessageLog::new());
    let observer = Recording { ops: &mut ops, messages: &mut messages };
    let whole = run_orders_with(inputs, lengths, orders, observer)?;
    Ok((Times::new(inputs, whole.tallies()), ops, messages))
}

/// The same, and keeps only what each rank counted.
///
/// # Errors
/// As for [`crate::run_orders`].
pub(crate) fn count_orders<L: Lengths>(
    inputs: &Inputs,
    lengths: L,
    orders: &Orders,
) -> Result<Vec<Tally>, StepError> {
    Ok(run_orders_with(inputs, lengths, orders, ())?.tallies().collect())
}

/// The same where a policy chooses the operations as it goes.
///
/// # Errors
/// As for [`run_policy`].
pub(crate) fn count_policy<L: Lengths>(
    inputs: &Inputs,
    lengths: L,
    policy: Box<dyn Policy + '_>,
) -> Result<Vec<Tally>, StepError> {
    let (first_places, _) = places_for_policy(inputs);
    let (whole, _) = run_policy_with(inputs, &first_places, lengths, policy, ())?;
    Ok(whole.tallies().collect())
}

fn run_orders_with<L: Lengths, O: Observer>(
    inputs: &Inputs,
    lengths: L,
    orders: &Orders,
    observer: O,
) -> Result<WorldMemory, StepError> {
    let (rows, mut whole) = (Rows::new(inputs), WorldMemory::default());
    let first_places: Vec<usize> = ranks(inputs).map(|rank| orders.range(rank).start).collect();
    whole.run(inputs, &rows, &first_places, Box::new(InOrder::new(orders)), lengths, None, observer)?;
    if whole.is_done() { Ok(whole) } else { Err(StepError::stuck(inputs.shape(), orders)) }
}

/// Also returns what each rank ran.
fn run_policy_with<L: Lengths, O: Observer>(
    inputs: &Inputs,
    first_places: &[usize],
    lengths: L,
    policy: Box<dyn Policy + '_>,
    observer: O,
) -> Result<(WorldMemory, Vec<Vec<Op>>), StepError> {
    let (rows, mut whole) = (Rows::new(inputs), WorldMemory::default());
    let history = Some(History::new(inputs.shape()));
    let history = whole.run(inputs, &rows, first_places, policy, lengths, history, observer)?;
    let ran = history.expect("kept for online policies").ran;
    match whole.unfinished() {
        Some(rank) => Err(StepError::Stuck { rank, ran: ran[rank.index()].len() }),
        None => Ok((whole, ran)),
    }
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
