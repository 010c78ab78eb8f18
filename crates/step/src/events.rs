//! Running a step on the event engine: the way that serves every step, every link and every policy.

use pipestep_engine::{Class, EventQueue, HeapQueue, NoRecord, Recorder, Time, Timeline, run};
use pipestep_schedule::{InOrder, Orders, Policy, Rank};

use crate::lengths::{Lengths, Scaled, Usual};
use crate::links::{Arbitrated, Folded, Transport};
use crate::log::{MessageLog, MessageSink};
use crate::rows::Rows;
use crate::times::Tally;
use crate::world::{Event, History, RankState, StepWorld};
use crate::{FifoStep, Inputs, StepError, Times};

/// How messages are simulated; the results are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Messages {
    /// Without events of their own where [`FifoStep`] allows it, as events otherwise.
    #[default]
    Folded,
    /// Always as events: the reference.
    Events,
}

/// Times every operation of fixed orders; `ops` records by place, `messages` by pair of ranks.
///
/// # Errors
/// [`StepError`] if the orders are not right for the step or deadlock.
pub fn run_orders<R: Recorder, M: MessageSink>(
    inputs: &Inputs,
    orders: &Orders,
    how: Messages,
    ops: &mut R,
    messages: &mut M,
) -> Result<Times, StepError> {
    if orders.ranks() != inputs.shape().ranks() {
        return Err(StepError::stuck(inputs.shape(), orders));
    }
    let rows = Rows::new(inputs);
    let first_places: Vec<usize> = ranks(inputs).map(|rank| orders.range(rank).start).collect();
    let policy = Box::new(InOrder::new(orders));
    let setting = Setting { inputs, rows: &rows, first_places: &first_places, online: false };
    let (states, _) = if how == Messages::Folded && FifoStep::new(inputs).is_some() {
        setting.run(policy, Folded::new(rows.links), ops, messages)?
    } else {
        setting.run(policy, Arbitrated::new(rows.links, inputs.arbitration), ops, messages)?
    };
    if states.iter().all(RankState::is_done) {
        Ok(Times::new(inputs, states.iter().map(|state| state.tally)))
    } else {
        Err(StepError::stuck(inputs.shape(), orders))
    }
}

/// Runs a step whose operations a policy chooses as it goes. Returns the orders it came to, with their record.
///
/// # Errors
/// [`StepError`] if the policy stops early or chooses something that the rules do not allow.
pub fn run_policy(
    inputs: &Inputs,
    policy: Box<dyn Policy + '_>,
) -> Result<(Times, Orders, Timeline, MessageLog), StepError> {
    let rows = Rows::new(inputs);
    let shape = inputs.shape();
    let (first_places, places) = places_for_policy(inputs);
    let (mut ops, mut messages) = (Timeline::new(places), MessageLog::new());
    let transport = Arbitrated::new(rows.links, inputs.arbitration);
    let setting = Setting { inputs, rows: &rows, first_places: &first_places, online: true };
    let (states, history) = setting.run(policy, transport, &mut ops, &mut messages)?;
    let ran = history.expect("kept for online policies").ran;
    if let Some(rank) = states.iter().position(|state| !state.is_done()) {
        return Err(StepError::Stuck { rank: Rank(rank as u16), ran: ran[rank].len() });
    }
    let orders = Orders::from_lists(ran);
    orders.validate(shape)?;
    let times = Times::new(inputs, states.iter().map(|state| state.tally));
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
/// As for [`run_orders`] and [`run_policy`].
pub(crate) fn count<L: Lengths<1>>(
    inputs: &Inputs,
    lengths: L,
    runner: Runner<'_>,
) -> Result<Vec<Tally>, StepError> {
    let rows = Rows::new(inputs);
    let (first_places, online) = match &runner {
        Runner::Orders(orders) => (ranks(inputs).map(|rank| orders.range(rank).start).collect(), false),
        Runner::Policy(_) => (places_for_policy(inputs).0, true),
    };
    let setting = Setting { inputs, rows: &rows, first_places: &first_places, online };
    let transport = Arbitrated::new(rows.links, inputs.arbitration);
    let orders = if let Runner::Orders(orders) = &runner { Some(*orders) } else { None };
    let policy: Box<dyn Policy + '_> = match runner {
        Runner::Orders(orders) => Box::new(InOrder::new(orders)),
        Runner::Policy(policy) => policy,
    };
    let (states, _) = setting.run_with(lengths, policy, transport, &mut NoRecord, &mut NoRecord)?;
    match (states.iter().position(|state| !state.is_done()), orders) {
        (None, _) => Ok(states.iter().map(|state| state.tally).collect()),
        (Some(_), Some(orders)) => Err(StepError::stuck(inputs.shape(), orders)),
        (Some(rank), None) => Err(StepError::Stuck { rank: Rank(rank as u16), ran: 0 }),
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

/// What a run of the world does not change.
struct Setting<'a> {
    inputs: &'a Inputs,
    rows: &'a Rows,
    first_places: &'a [usize],
    online: bool,
}

impl Setting<'_> {
    fn run<R: Recorder, M: MessageSink, T: Transport>(
        &self,
        policy: Box<dyn Policy + '_>,
        transport: T,
        ops: &mut R,
        messages: &mut M,
    ) -> Result<(Vec<RankState>, Option<History>), StepError> {
        if self.inputs.costs().micro_batch_scale.is_empty() {
            self.run_with(Usual, policy, transport, ops, messages)
        } else {
            self.run_with(Scaled(self.inputs.costs()), policy, transport, ops, messages)
        }
    }

    fn run_with<R: Recorder, M: MessageSink, L: Lengths<1>, T: Transport>(
        &self,
        lengths: L,
        policy: Box<dyn Policy + '_>,
        transport: T,
        ops: &mut R,
        messages: &mut M,
    ) -> Result<(Vec<RankState>, Option<History>), StepError> {
        let (inputs, shape) = (self.inputs, self.inputs.shape());
        let setup = inputs.costs().setup;
        let state = |&place: &usize| RankState::new(place, setup.as_nanos());
        let mut slots = vec![Time::MAX; self.rows.slots];
        slots[self.rows.always_ready()].fill(Time::ZERO);
        let mut world = StepWorld {
            inputs,
            rows: self.rows,
            lengths,
            policy,
            transport,
            ranks: self.first_places.iter().map(state).collect(),
            slots,
            history: self.online.then(|| History {
                ran: vec![Vec::new(); shape.ranks()],
                finished: vec![0; shape.stages() * shape.micro_batches()],
            }),
            awake: Vec::with_capacity(shape.ranks()),
            ops,
            messages,
        };
        let mut queue = HeapQueue::new();
        queue.schedule(Time::ZERO.after(setup)?, Class(0), Event::Begin);
        run(&mut world, &mut queue)?;
        Ok((world.ranks, world.history))
    }
}
