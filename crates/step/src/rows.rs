//! The costs of a step compiled for the loops: one row of plain numbers for each (kind, stage).
//!
//! Results travel through *slots*: one number for each (kind of message, receiving stage, micro-batch), the
//! instant at which that input is there. A row says which slot an operation reads and which it fills.

use std::collections::BTreeMap;

use pipestep_engine::Duration;
use pipestep_schedule::{Kind, MicroBatch, Op, Rank, Shape, Stage};

use crate::{Costs, Inputs, Links};

/// No slot, link or rank.
pub(crate) const NONE: u32 = u32::MAX;

/// Everything that the loops need to know about one kind of operation on one stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Length of the operation in ns.
    pub(crate) duration: u64,
    /// Length of its message in ns; 0 if the receiver is on the same rank.
    pub(crate) message: u64,
    /// First slot (that of micro-batch 0) it reads, or [`NONE`] if it needs nothing from another stage.
    pub(crate) input: u32,
    /// First slot it fills, or [`NONE`] if no other stage needs its result.
    pub(crate) output: u32,
    /// The serial link of its message, or [`NONE`]: same rank, no receiver, or unlimited links.
    pub(crate) link: u32,
    /// The rank that receives its result, or [`NONE`].
    pub(crate) receiver: u32,
    /// Whether the receiver is another rank, so that there is a message.
    pub(crate) sends: bool,
}

/// The rows of a step, and how many slots and links they use.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    by_kind_and_stage: Vec<Row>,
    stages: usize,
    /// Size of the slot table.
    pub(crate) slots: usize,
    /// Number of serial links.
    pub(crate) links: usize,
}

impl Rows {
    /// The rows of a step.
    pub(crate) fn new(inputs: &Inputs) -> Self {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let mut links = LinkNumbers {
            mode: inputs.links,
            numbers: BTreeMap::new(),
        };
        let stages = shape.stages();
        let mut rows = Vec::with_capacity(Kind::ALL.len() * stages);
        for kind in Kind::ALL {
            for stage in (0..stages as u16).map(Stage) {
                rows.push(row(shape, costs, &mut links, Op::new(kind, stage, MicroBatch(0))));
            }
        }
        let numbers = links.numbers.len();
        Self {
            by_kind_and_stage: rows,
            stages,
            slots: 2 * stages * shape.micro_batches(),
            links: numbers,
        }
    }

    /// The row of an operation.
    #[inline]
    pub(crate) fn of(&self, op: Op) -> &Row {
        &self.by_kind_and_stage[op.kind as usize * self.stages + op.stage.index()]
    }
}

fn row(shape: &Shape, costs: &Costs, links: &mut LinkNumbers, op: Op) -> Row {
    let cost = &costs.stages[op.stage.index()];
    let (stages, m) = (shape.stages() as u32, shape.micro_batches() as u32);
    let activation = |stage: Stage| u32::from(stage.0) * m;
    let gradient = |stage: Stage| (stages + u32::from(stage.0)) * m;
    let (duration, input, to, output) = match op.kind {
        Kind::Forward => {
            let input = shape.previous(op.stage).map(|_| activation(op.stage));
            let to = shape.next(op.stage);
            (cost.forward, input, to, to.map(activation))
        }
        Kind::Backward | Kind::InputGradient => {
            let input = shape.next(op.stage).map(|_| gradient(op.stage));
            let to = shape.previous(op.stage);
            let duration = if op.kind == Kind::Backward {
                cost.backward
            } else {
                cost.input_gradient
            };
            (duration, input, to, to.map(gradient))
        }
        Kind::WeightGradient => (cost.weight_gradient, None, None, None),
    };
    let from = shape.rank_of(op.stage);
    let receiver = to.map(|stage| shape.rank_of(stage));
    let sends = receiver.is_some_and(|rank| rank != from);
    let message = match op.kind {
        _ if !sends => Duration::ZERO,
        Kind::Forward => cost.activation.time,
        _ => cost.gradient.time,
    };
    Row {
        duration: duration.as_nanos(),
        message: message.as_nanos(),
        input: input.unwrap_or(NONE),
        output: output.unwrap_or(NONE),
        link: receiver
            .filter(|_| sends)
            .map_or(NONE, |to| links.number(from, to)),
        receiver: receiver.map_or(NONE, |rank| u32::from(rank.0)),
        sends,
    }
}

/// Gives each link that is used a number.
struct LinkNumbers {
    mode: Links,
    numbers: BTreeMap<(Rank, Rank), u32>,
}

impl LinkNumbers {
    fn number(&mut self, from: Rank, to: Rank) -> u32 {
        let key = match self.mode {
            Links::Unlimited => return NONE,
            Links::Shared => (Rank(0), Rank(0)),
            Links::Directional => (from, to),
        };
        let next = self.numbers.len() as u32;
        *self.numbers.entry(key).or_insert(next)
    }
}
