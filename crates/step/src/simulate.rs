//! A step from end to end: run it, read its memory off the record, sum it up.

use pipestep_engine::{Bytes, Duration, NoCurve, NoRecord, Peak, Time, Timeline};
use pipestep_schedule::{Op, Orders, Plan, Rank};

use crate::events::{Messages as MessageMode, run_orders};
use crate::log::MessageLog;
use crate::memory::memory;
use crate::online::run_policy;
use crate::{
    ACCOUNTS, Dataflow, Engine, FifoStep, Inputs, Levels, Links, MemoryCurve, Messages, RankOutcome, Record,
    StepError, Summary, Times,
};

/// Everything that a simulated step came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Makespan, idle time, peaks, messages.
    pub summary: Summary,
    /// When everything ran.
    pub record: Record,
    /// Each rank's memory over time.
    pub curves: Vec<MemoryCurve>,
}

/// Simulates a step on the event engine and keeps the whole record and every memory curve.
///
/// # Errors
/// [`StepError`] if the plan is not right for the step or deadlocks.
pub fn simulate(inputs: &Inputs, plan: Plan) -> Result<Outcome, StepError> {
    let (times, orders, ops, messages) = match plan {
        Plan::Online(policy) => run_policy(inputs, policy)?,
        Plan::Fixed(orders) => {
            orders.validate(inputs.shape())?;
            let (mut ops, mut messages) = (Timeline::new(orders.all().len()), MessageLog::new());
            let times = run_orders(inputs, &orders, MessageMode::Folded, &mut ops, &mut messages)?;
            (times, orders, ops, messages)
        }
    };
    let zero_transfer = zero_transfer_makespan(&mut Dataflow::new(), inputs, &orders)?;
    finish(inputs, &times, orders, ops, &messages, zero_transfer)
}

/// Reads the memory of a step that has run off its record, and sums it up.
pub(crate) fn finish(
    inputs: &Inputs,
    times: &Times,
    orders: Orders,
    ops: Timeline,
    messages: &MessageLog,
    zero_transfer_makespan: Time,
) -> Result<Outcome, StepError> {
    let read: Vec<(Peak<ACCOUNTS>, MemoryCurve)> = memory(inputs, &orders, &ops, messages)?;
    let (peaks, curves) = read.into_iter().unzip();
    let messages = messages.by_place(orders.all().len());
    let record = Record { orders, ops, messages, updates: times.updates.clone() };
    Ok(Outcome { summary: summarize(inputs, times, peaks, zero_transfer_makespan), record, curves })
}

/// The summary of a step by the shortest way; see [`Summaries`], which is faster for many.
///
/// # Errors
/// As for [`simulate`].
pub fn summary(inputs: &Inputs, plan: Plan) -> Result<Summary, StepError> {
    Summaries::new().of(inputs, plan)
}

/// Summaries of many steps, one after the other, by the shortest way: the clock-free pass where it is exact, the event
/// engine otherwise, with memory kept from one step to the next and no record of any.
#[derive(Debug, Default)]
pub struct Summaries {
    pass: Dataflow,
    engine: Engine,
    levels: Levels<NoCurve>,
}

impl Summaries {
    /// No memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The summary of a step. It equals that of [`simulate`].
    ///
    /// # Errors
    /// As for [`simulate`].
    pub fn of(&mut self, inputs: &Inputs, plan: Plan) -> Result<Summary, StepError> {
        let orders = match plan {
            Plan::Fixed(orders) => orders,
            online @ Plan::Online(_) => return simulate(inputs, online).map(|outcome| outcome.summary),
        };
        orders.check_lists(inputs.shape())?;
        let Self { pass, engine, levels } = self;
        let nothing = (&mut NoRecord, &mut NoRecord);
        let times = match FifoStep::new(inputs) {
            Some(step) => pass.run_with_levels(step, &orders, nothing, levels)?,
            None => engine.run_with_levels(inputs, &orders, MessageMode::Folded, nothing, levels)?,
        };
        let ranks = (0..inputs.shape().ranks() as u16).map(Rank);
        let peaks = ranks.map(|rank| levels.peak(inputs, &orders, rank)).collect();
        Ok(summarize(inputs, &times, peaks, zero_transfer_makespan(pass, inputs, &orders)?))
    }
}

/// The makespan of the same orders with every transfer of length zero.
fn zero_transfer_makespan(pass: &mut Dataflow, inputs: &Inputs, orders: &Orders) -> Result<Time, StepError> {
    let mut free = inputs.with_free_transfers();
    free.links = Links::Unlimited; // a message of no length never queues
    let step = FifoStep::new(&free).expect("unlimited links need no event engine");
    Ok(pass.times(step, orders)?.makespan)
}

fn summarize(
    inputs: &Inputs,
    times: &Times,
    peaks: Vec<Peak<ACCOUNTS>>,
    zero_transfer_makespan: Time,
) -> Summary {
    let gradient_time = Duration::from_nanos(times.gradient_ready.as_nanos() - times.setup.as_nanos());
    let ranks: Vec<RankOutcome> = peaks
        .into_iter()
        .enumerate()
        .map(|(rank, peak)| RankOutcome {
            busy: times.busy[rank],
            idle: Duration::from_nanos(gradient_time.as_nanos() - times.busy[rank].as_nanos()),
            first_start: times.active[rank].start,
            last_end: times.active[rank].end,
            update: times.updates[rank],
            peak,
        })
        .collect();
    Summary {
        makespan: times.makespan,
        gradient_ready: times.gradient_ready,
        setup: times.setup,
        longest_span: ranks.iter().map(RankOutcome::span).max().unwrap_or_default(),
        zero_transfer_makespan,
        ranks,
        messages: count_messages(inputs),
    }
}

/// Every micro-batch sends one activation and one gradient over each boundary between ranks.
fn count_messages(inputs: &Inputs) -> Messages {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let (mut counted, mut bytes) = ([0_u64; 2], 0_u64);
    for stage in 0..shape.stages() as u16 {
        for (count, make) in counted.iter_mut().zip([Op::forward, Op::backward]) {
            if costs.message(shape, make(stage, 0)).is_none() {
                continue;
            }
            let micro_batches = shape.micro_batches_of(pipestep_schedule::Stage(stage));
            let size = |i| costs.message(shape, make(stage, i)).map_or(0, |(_, sent)| sent.bytes.get());
            let alike = costs.micro_batch_scale.is_empty();
            *count += micro_batches.len() as u64;
            bytes += if alike { micro_batches.len() as u64 * size(0) } else { micro_batches.map(size).sum() };
        }
    }
    Messages { forward: counted[0], backward: counted[1], bytes: Bytes::new(bytes) }
}
