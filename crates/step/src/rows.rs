//! The costs of a step compiled for the loops: one row of plain numbers for each (kind, stage).
//!
//! Results travel through *slots*: one number for each (kind of message, receiving stage, micro-batch), the
//! instant at which that input is there. A row says which slot an operation reads and which it fills. So that
//! the loops need not ask whether there is one, the first slots of the table are always ready, and what nobody
//! needs goes to the next ones.

use pipestep_engine::Duration;
use pipestep_schedule::{Kind, Op, Rank, Stage};

use crate::bytes::signed;
use crate::{Inputs, Links};

/// No link, pair or rank.
pub(crate) const NONE: u32 = u32::MAX;

/// Everything that the loops need to know about one kind of operation on one stage, in a cache line of its own.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(crate) struct Row {
    /// Length of the operation in ns.
    pub(crate) duration: u64,
    /// Length of its message in ns; 0 if the receiver is on the same rank.
    pub(crate) message: u64,
    /// First slot (that of micro-batch 0) it reads; always ready if it needs nothing from another stage.
    pub(crate) input: u32,
    /// First slot it fills; one that nobody reads if no other stage needs its result.
    pub(crate) output: u32,
    /// The serial link of its message, or [`NONE`]: same rank, no receiver, or unlimited links.
    pub(crate) link: u32,
    /// The ordered pair of ranks of its message, or [`NONE`].
    pub(crate) pair: u32,
    /// The rank that receives its result, or [`NONE`].
    pub(crate) receiver: u32,
    /// The size of its message, 0 if there is none; negative where micro-batches have sizes of their own.
    pub(crate) bytes: i64,
    /// The pair of ranks of its message if its size is above zero and always the same, or [`NONE`].
    pub(crate) buffered: u32,
    /// Whether the receiver is another rank, so that there is a message.
    pub(crate) sends: bool,
}

impl Row {
    /// Whether the operation needs something from another stage.
    pub(crate) const fn reads(&self) -> bool {
        self.input > 0
    }
}

/// The rows of a step, and how many slots and links they use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    by_stage_and_kind: Vec<Row>,
    stages: usize,
    /// Slots of each (kind of message, stage): the micro-batches, and some that no one uses.
    stride: usize,
    /// Size of the slot table.
    pub(crate) slots: usize,
    /// Number of serial links.
    pub(crate) links: usize,
    /// Sender and receiver of each pair that exchanges messages.
    pub(crate) pairs: Vec<(Rank, Rank)>,
    /// By sender: the last pair found for it; by pair: the one found before it for the same sender.
    last_pair: Vec<u32>,
    pair_before: Vec<u32>,
}

impl Rows {
    /// The rows of a step.
    pub(crate) fn new(inputs: &Inputs) -> Self {
        let mut rows = Self::default();
        rows.compile(inputs);
        rows
    }

    /// Makes these the rows of a step, and keeps the memory of the one before.
    pub(crate) fn compile(&mut self, inputs: &Inputs) {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        self.stages = shape.stages();
        self.stride = spread(shape.micro_batches());
        self.slots = self.stride * (2 + 2 * self.stages);
        self.pairs.clear();
        self.pair_before.clear();
        self.last_pair.clear();
        self.last_pair.resize(shape.ranks(), NONE);
        self.by_stage_and_kind.clear();
        for stage in (0..self.stages as u16).map(Stage) {
            let cost = &costs.stages[stage.index()];
            let (previous, next) = (shape.previous(stage), shape.next(stage));
            let forward = self.row(inputs, stage, Kind::Forward, (previous, next));
            let backward = self.row(inputs, stage, Kind::Backward, (next, previous));
            let input_gradient = Row { duration: cost.input_gradient.as_nanos(), ..backward };
            let weight_gradient = self.row(inputs, stage, Kind::WeightGradient, (None, None));
            self.by_stage_and_kind.extend([forward, backward, input_gradient, weight_gradient]);
        }
        self.links = match inputs.links {
            Links::Unlimited => 0,
            Links::Shared => 1,
            Links::Directional => self.pairs.len(),
        };
    }

    /// The row of an operation.
    #[inline]
    pub(crate) fn of(&self, op: Op) -> &Row {
        &self.by_stage_and_kind[Self::number(op)]
    }

    /// All rows, by [`Rows::number`].
    pub(crate) fn all(&self) -> &[Row] {
        &self.by_stage_and_kind
    }

    /// The number of an operation's row.
    #[inline]
    pub(crate) const fn number(op: Op) -> usize {
        op.stage.index() * Kind::ALL.len() + op.kind as usize
    }

    /// The length of the longest operation, where all micro-batches are alike.
    pub(crate) fn longest(&self) -> Duration {
        Duration::from_nanos(self.by_stage_and_kind.iter().map(|row| row.duration).max().unwrap_or(0))
    }

    /// The slots that are always ready.
    pub(crate) const fn always_ready(&self) -> std::ops::Range<usize> {
        0..self.stride
    }

    /// The row of one kind of operation on a stage, which needs something `from` one stage and sends its result `to`
    /// another.
    fn row(
        &mut self,
        inputs: &Inputs,
        stage: Stage,
        kind: Kind,
        (from, to): (Option<Stage>, Option<Stage>),
    ) -> Row {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let cost = &costs.stages[stage.index()];
        let (duration, sent) = match kind {
            Kind::Forward => (cost.forward, cost.activation),
            Kind::Backward => (cost.backward, cost.gradient),
            Kind::InputGradient => (cost.input_gradient, cost.gradient),
            Kind::WeightGradient => (cost.weight_gradient, cost.gradient),
        };
        let rank = shape.rank_of(stage);
        let receiver = to.map(|stage| shape.rank_of(stage));
        let sends = receiver.is_some_and(|to| to != rank);
        let sign = if costs.micro_batch_scale.is_empty() { 1 } else { -1 };
        let pair = receiver.filter(|_| sends).map_or(NONE, |to| self.pair(rank, to));
        let gradient = usize::from(kind != Kind::Forward);
        let slot = |stage: Stage| (self.stride * (2 + gradient * self.stages + stage.index())) as u32;
        let bytes = if sends { signed(sent.bytes.get()) * sign } else { 0 };
        Row {
            duration: duration.as_nanos(),
            message: if sends { sent.time } else { Duration::ZERO }.as_nanos(),
            input: from.map_or(0, |_| slot(stage)),
            output: to.map_or(self.stride as u32, slot),
            link: match inputs.links {
                Links::Directional => pair,
                Links::Shared if sends => 0,
                Links::Shared | Links::Unlimited => NONE,
            },
            pair,
            receiver: receiver.map_or(NONE, |rank| u32::from(rank.0)),
            bytes,
            buffered: if bytes > 0 { pair } else { NONE },
            sends,
        }
    }

    /// The number of an ordered pair of ranks that exchanges messages.
    fn pair(&mut self, from: Rank, to: Rank) -> u32 {
        let mut number = self.last_pair[from.index()];
        while number != NONE {
            if self.pairs[number as usize].1 == to {
                return number;
            }
            number = self.pair_before[number as usize];
        }
        let number = self.pairs.len() as u32;
        self.pairs.push((from, to));
        self.pair_before.push(self.last_pair[from.index()]);
        self.last_pair[from.index()] = number;
        number
    }
}

/// At least `count` words, in an odd number of cache lines and one word more: lists of a power of two of words would
/// all begin in the same few sets of the cache, and the ranks' progress through them would push one another out. The
/// odd word does the same for tables with a line for each word.
pub(crate) const fn spread(count: usize) -> usize {
    const WORDS_PER_LINE: usize = 8;
    (count.div_ceil(WORDS_PER_LINE) | 1) * WORDS_PER_LINE + 1
}
