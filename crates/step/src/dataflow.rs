//! The clock-free pass: when every rank's order is fixed and every link serves its messages in the order in
//! which one rank produces them, time order across ranks carries no information. No queue, no clock, and the
//! same instants to the nanosecond as the event engine's (a property test compares them). The loop itself is in
//! `wave`; here is when it may be used, and how.

mod periods;
pub(crate) mod wave;

use pipestep_engine::{Recorder, TotalCurve};
use pipestep_schedule::{Op, Orders};

use self::periods::Periods;
use self::wave::{Run, Wave};
use crate::lengths::{Scaled, Usual};
use crate::levels::{Ended, Levels};
use crate::log::MessageSink;
use crate::observe::{FromZero, Observer, Recording};
use crate::rows::Rows;
use crate::{Arbitration, Inputs, Links, StepError, Times};

/// A step for which the clock-free pass is exact; see [`FifoStep::new`].
#[derive(Clone, Copy, Debug)]
pub struct FifoStep<'a> {
    inputs: &'a Inputs,
}

impl<'a> FifoStep<'a> {
    /// Checks that a step's messages can be timed the moment they are produced:
    ///
    /// * links are unlimited, or
    /// * links are directional and first come, first served, and every operation that sends a message takes
    ///   time. Each link then has one producer, a rank whose operations end one after the other at different
    ///   instants, so messages queue in the order in which they are made. (The two halves of an overlapped pair
    ///   end at once; the pass sends the activation first, as the rule says.)
    ///
    /// Returns `None` otherwise: such a step needs the event engine.
    pub fn new(inputs: &'a Inputs) -> Option<Self> {
        let exact = match (inputs.links, inputs.arbitration) {
            (Links::Unlimited, _) => true,
            (Links::Shared, _) | (_, Arbitration::ByStage) => false,
            (Links::Directional, Arbitration::Fifo) => every_sender_takes_time(inputs),
        };
        exact.then_some(Self { inputs })
    }

    /// The step.
    pub const fn inputs(self) -> &'a Inputs {
        self.inputs
    }
}

fn every_sender_takes_time(inputs: &Inputs) -> bool {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let makers = [Op::forward, Op::backward, Op::input_gradient];
    let takes_time = |op: Op| {
        costs.message(shape, op).is_none()
            || (costs.duration(op).as_nanos() > 0
                && costs.pair_duration(shape, op, op).is_none_or(|d| d.as_nanos() > 0))
    };
    // Unequal micro-batches can round a short operation down to nothing.
    let micro_batches = if costs.micro_batch_scale.is_empty() { 1 } else { shape.micro_batches() as u32 };
    (0..shape.stages() as u16)
        .all(|stage| makers.iter().all(|make| (0..micro_batches).all(|i| takes_time(make(stage, i)))))
}

/// The pass, with its memory kept from one run to the next.
#[derive(Clone, Debug, Default)]
pub struct Dataflow {
    rows: Rows,
    wave: Wave,
    periods: Periods,
}

impl Dataflow {
    /// A pass with no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Times every operation of `orders`; `ops` records by place, `messages` by pair of ranks.
    ///
    /// # Errors
    /// [`StepError::Order`] if the orders are not right for the step or deadlock.
    pub fn run<R: Recorder, M: MessageSink>(
        &mut self,
        step: FifoStep<'_>,
        orders: &Orders,
        ops: &mut R,
        messages: &mut M,
    ) -> Result<Times, StepError> {
        self.rows.compile(step.inputs);
        self.run_observed(step, orders, FromZero::new(Recording { ops, messages }))
    }

    /// The times alone, by the shortest way: where the step is found to repeat itself, whole periods are skipped. They
    /// are those of [`Dataflow::run`] to the nanosecond.
    ///
    /// # Errors
    /// As for [`Dataflow::run`].
    pub fn times(&mut self, step: FifoStep<'_>, orders: &Orders) -> Result<Times, StepError> {
        let inputs = step.inputs;
        self.rows.compile(inputs);
        self.periods.reset(orders.all().len() / orders.ranks().max(1));
        if !inputs.costs().micro_batch_scale.is_empty() {
            return self.run_observed(step, orders, ());
        }
        let mut run = Run { inputs, rows: &self.rows, orders, lengths: Usual, observer: () };
        self.wave.run(&mut run, &mut self.periods)?;
        Ok(Times::new(inputs, self.wave.tallies(&run)))
    }

    /// How many operations the last call of [`Dataflow::times`] skipped.
    pub const fn skipped(&self) -> usize {
        self.periods.skipped
    }

    /// The same as [`Dataflow::run`], and then every rank's level of memory.
    ///
    /// # Errors
    /// As for [`Dataflow::run`], and [`StepError::Ledger`] for more bytes than a ledger can hold.
    pub fn run_with_levels<R: Recorder, M: MessageSink, C: TotalCurve + Default>(
        &mut self,
        step: FifoStep<'_>,
        orders: &Orders,
        (ops, messages): (&mut R, &mut M),
        levels: &mut Levels<C>,
    ) -> Result<Times, StepError> {
        self.rows.compile(step.inputs);
        let observer =
            levels.observe(step.inputs, orders, &self.rows, FromZero::new(Recording { ops, messages }))?;
        let times = self.run_observed(step, orders, observer)?;
        let Self { rows, wave, .. } = self;
        let (slots, origin) = wave.slots();
        let there = move |slot: u32| slots[slot as usize];
        levels.read(&Ended { inputs: step.inputs, orders, rows, there, origin })?;
        Ok(times)
    }

    fn run_observed<O: Observer>(
        &mut self,
        step: FifoStep<'_>,
        orders: &Orders,
        observer: O,
    ) -> Result<Times, StepError> {
        let (inputs, rows) = (step.inputs, &self.rows);
        if inputs.costs().micro_batch_scale.is_empty() {
            let mut run = Run { inputs, rows, orders, lengths: Usual, observer };
            self.wave.run(&mut run, &mut ())?;
            return Ok(Times::new(inputs, self.wave.tallies(&run)));
        }
        let mut run = Run { inputs, rows, orders, lengths: Scaled(inputs.costs()), observer };
        self.wave.run(&mut run, &mut ())?;
        Ok(Times::new(inputs, self.wave.tallies(&run)))
    }
}
