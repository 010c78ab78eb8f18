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
    /// The ordered pair of ranks of its message, or [`NONE`].
    pub(crate) pair: u32,
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
    /// Sender and receiver of each pair that exchanges messages.
    pub(crate) pairs: Vec<(Rank, Rank)>,
}

impl Rows {
    /// The rows of a step.
    pub(crate) fn new(inputs: &Inputs) -> Self {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let mut pairs = PairNumbers(BTreeMap::new());
        let stages = shape.stages();
        let mut rows = Vec::with_capacity(Kind::ALL.len() * stages);
        for kind in Kind::ALL {
            for stage in (0..stages as u16).map(Stage) {
                let op = Op::new(kind, stage, MicroBatch(0));
                rows.push(row(shape, costs, inputs.links, &mut pairs, op));
            }
        }
        let links = match inputs.links {
            Links::Unlimited => 0,
            Links::Shared => 1,
            Links::Directional => pairs.0.len(),
        };
        let slots = 2 * stages * shape.micro_batches();
        Self { by_kind_and_stage: rows, stages, slots, links, pairs: pairs.in_order() }
    }

    /// The row of an operation.
    #[inline]
    pub(crate) fn of(&self, op: Op) -> &Row {
        &self.by_kind_and_stage[op.kind as usize * self.stages + op.stage.index()]
    }
}

fn row(shape: &Shape, costs: &Costs, links: Links, pairs: &mut PairNumbers, op: Op) -> Row {
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
            let duration = if op.kind == Kind::Backward { cost.backward } else { cost.input_gradient };
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
    let pair = receiver.filter(|_| sends).map_or(NONE, |to| pairs.number(from, to));
    Row {
        duration: duration.as_nanos(),
        message: message.as_nanos(),
        input: input.unwrap_or(NONE),
        output: output.unwrap_or(NONE),
        link: match links {
            Links::Directional => pair,
            Links::Shared if sends => 0,
            Links::Shared | Links::Unlimited => NONE,
        },
        pair,
        receiver: receiver.map_or(NONE, |rank| u32::from(rank.0)),
        sends,
    }
}

/// Gives each ordered pair of ranks that exchanges messages a number.
struct PairNumbers(BTreeMap<(Rank, Rank), u32>);

impl PairNumbers {
    fn number(&mut self, from: Rank, to: Rank) -> u32 {
        let next = self.0.len() as u32;
        *self.0.entry((from, to)).or_insert(next)
    }

    fn in_order(self) -> Vec<(Rank, Rank)> {
        let mut pairs = vec![(Rank(0), Rank(0)); self.0.len()];
        self.0.into_iter().for_each(|(pair, number)| pairs[number as usize] = pair);
        pairs
    }
}
