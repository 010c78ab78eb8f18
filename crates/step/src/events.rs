//! Running fixed orders on the event engine.

use pipestep_engine::{Recorder, TotalCurve};
use pipestep_schedule::{InOrder, Orders, Rank};

use crate::folded::FoldedMemory;
use crate::lengths::Scaled;
use crate::levels::{Ended, Levels};
use crate::log::MessageSink;
use crate::observe::{Observer, Recording};
use crate::rows::Rows;
use crate::world::WorldMemory;
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

impl Messages {
    /// The step, if its messages need no events of their own.
    fn fold(self, inputs: &Inputs) -> Option<FifoStep<'_>> {
        if self == Self::Folded { FifoStep::new(inputs) } else { None }
    }
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
    Engine::new().run(inputs, orders, how, ops, messages)
}

/// The event engine with its memory kept from one run to the next.
#[derive(Debug, Default)]
pub struct Engine {
    rows: Rows,
    /// By rank: the place of its first operation.
    first_places: Vec<usize>,
    folded: FoldedMemory,
    whole: WorldMemory,
}

impl Engine {
    /// An engine with no memory yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Times every operation of fixed orders; see [`run_orders`].
    ///
    /// # Errors
    /// [`StepError`] if the orders are not right for the step or deadlock.
    pub fn run<R: Recorder, M: MessageSink>(
        &mut self,
        inputs: &Inputs,
        orders: &Orders,
        how: Messages,
        ops: &mut R,
        messages: &mut M,
    ) -> Result<Times, StepError> {
        self.rows.compile(inputs);
        self.run_observed(inputs, orders, how, Recording { ops, messages })
    }

    /// The same, and then every rank's level of memory.
    ///
    /// # Errors
    /// As for [`Engine::run`], and [`StepError::Ledger`] for more bytes than a ledger can hold.
    pub fn run_with_levels<R: Recorder, M: MessageSink, C: TotalCurve + Default>(
        &mut self,
        inputs: &Inputs,
        orders: &Orders,
        how: Messages,
        (ops, messages): (&mut R, &mut M),
        levels: &mut Levels<C>,
    ) -> Result<Times, StepError> {
        self.rows.compile(inputs);
        let observer = levels.observe(inputs, orders, &self.rows, Recording { ops, messages })?;
        let times = self.run_observed(inputs, orders, how, observer)?;
        let Self { rows, folded, whole, .. } = self;
        if how.fold(inputs).is_some() {
            let (slots, base) = folded.slots();
            let there = move |slot: u32| slots[slot as usize] - base;
            levels.read(&Ended { inputs, orders, rows, there, origin: 0 })?;
        } else {
            let slots = whole.slots();
            let there = move |slot: u32| slots[slot as usize].as_nanos();
            levels.read(&Ended { inputs, orders, rows, there, origin: 0 })?;
        }
        Ok(times)
    }

    /// Runs with rows that are compiled already.
    fn run_observed<O: Observer>(
        &mut self,
        inputs: &Inputs,
        orders: &Orders,
        how: Messages,
        observer: O,
    ) -> Result<Times, StepError> {
        let stuck = || StepError::stuck(inputs.shape(), orders);
        if orders.ranks() != inputs.shape().ranks() {
            return Err(stuck());
        }
        let Self { rows, first_places, folded, whole } = self;
        first_places.clear();
        first_places.extend((0..orders.ranks() as u16).map(|rank| orders.range(Rank(rank)).start));
        let policy = Box::new(InOrder::new(orders));
        if let Some(step) = how.fold(inputs) {
            return folded.run(step, rows, first_places, policy, observer)?.ok_or_else(stuck);
        }
        let lengths = Scaled(inputs.costs());
        whole.run(inputs, rows, first_places, policy, lengths, None, observer)?;
        if whole.is_done() { Ok(Times::new(inputs, whole.tallies())) } else { Err(stuck()) }
    }
}
