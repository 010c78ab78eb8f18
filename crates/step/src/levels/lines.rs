//! What changes a rank's level and when, from the order of its operations and the instants of their inputs.

use pipestep_engine::Duration;
use pipestep_schedule::{Kind, Op, Stage};

use super::Ended;
use super::changes::{ARRIVES, Change, Changes, ENDS, GOES, STARTS};
use crate::Inputs;
use crate::bytes::{OpBytes, StepBytes};
use crate::lengths::Lengths;
use crate::rows::Rows;

/// What reading needs to know about one kind of operation on one stage.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    duration: u64,
    input: u32,
    output: u32,
    /// By how many bytes its start and its end change the level.
    start: i64,
    end: i64,
    /// The bytes of the messages that it sends and receives.
    sent: i64,
    received: i64,
    /// How long the message that it receives is under way.
    transit: u64,
    /// Whether that message comes from the first of the ranks that send to this one.
    from_first: bool,
}

impl Line {
    const fn with(&self, bytes: &OpBytes) -> Self {
        let (start, end) = (bytes.at_start(), bytes.at_end());
        Self { start, end, sent: bytes.sent, received: bytes.consumed, ..*self }
    }
}

/// The lines of a step, by stage and kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    all: Vec<Line>,
    /// By pair of ranks: whether it is the first with its receiver.
    is_first: Vec<bool>,
}

impl Lines {
    /// Makes these the lines of a step, and keeps the memory of the one before.
    pub(super) fn compile(&mut self, inputs: &Inputs, rows: &Rows, bytes: &StepBytes) {
        let Self { all, is_first } = self;
        let mut seen = vec![false; inputs.shape().ranks()];
        is_first.clear();
        is_first.extend(rows.pairs.iter().map(|(_, to)| !std::mem::replace(&mut seen[to.index()], true)));
        all.clear();
        for stage in (0..inputs.shape().stages() as u16).map(Stage) {
            for kind in Kind::ALL {
                let op = Op { kind, stage, ..Op::forward(0, 0) };
                let row = rows.of(op);
                let mut line =
                    Line { duration: row.duration, input: row.input, output: row.output, ..Line::default() };
                if let Some(message) = rows.received(inputs.shape(), op) {
                    line.transit = message.message;
                    line.from_first = is_first[message.pair as usize];
                }
                all.push(line.with(bytes.usual(op)));
            }
        }
    }

    #[inline]
    fn of(&self, op: Op) -> &Line {
        &self.all[op.stage.index() * Kind::ALL.len() + op.kind as usize]
    }
}

/// Reads one run.
pub(super) struct Reader<'a, I, L> {
    pub(super) run: &'a Ended<'a, I>,
    pub(super) lengths: L,
    pub(super) bytes: &'a StepBytes,
    pub(super) lines: &'a Lines,
}

impl<I: Fn(u32) -> u64, L: Lengths> Reader<'_, I, L> {
    /// Lists all changes of a rank's level, whose operations run in the order of `list`.
    pub(super) fn list(&self, list: &[Op], changes: &mut Changes) {
        changes.clear();
        let mut ends = Change::nothing(self.run.inputs.costs().setup.as_nanos());
        let mut list = list.iter();
        while let Some(&op) = list.next() {
            if op.paired
                && let [partner, ..] = *list.as_slice()
                && let Some(length) = self.pair_length(op, partner)
            {
                list.next();
                ends = self.list_pair([op, partner], length, ends, changes);
                continue;
            }
            let scaled;
            let mut line = self.lines.of(op);
            if self.bytes.is_scaled() {
                scaled = self.scaled(line, op);
                line = &scaled;
            }
            let there = (self.run.there)(line.input + op.micro_batch.0);
            let length = self.lengths.op(op, line.duration);
            let start = there.max(ends.at);
            changes.of_op(ends, Change::new(start, line.start, STARTS));
            ends = Change::new(start + length, line.end, ENDS);
            self.list_messages(op, line, there, changes);
        }
        changes.close(ends);
    }

    /// Both halves of an overlapped pair start and end at once.
    #[cold]
    fn list_pair(&self, pair: [Op; 2], length: u64, ends: Change, changes: &mut Changes) -> Change {
        let lines = pair.map(|op| self.scaled(self.lines.of(op), op));
        let there = [0, 1].map(|half| (self.run.there)(lines[half].input + pair[half].micro_batch.0));
        let start = ends.at.max(there[0]).max(there[1]);
        changes.of_op(ends, Change::new(start, lines[0].start, STARTS));
        changes.of_op(Change::nothing(start), Change::new(start, lines[1].start, STARTS));
        for half in [0, 1] {
            self.list_messages(pair[half], &lines[half], there[half], changes);
        }
        let [first, second] = lines.map(|line| Change::new(start + length, line.end, ENDS));
        first.and(second)
    }

    /// How long two operations run as one, if their rank has a time for pairs.
    #[cold]
    fn pair_length(&self, first: Op, second: Op) -> Option<u64> {
        let inputs = self.run.inputs;
        let usual = inputs.costs().pair_duration(inputs.shape(), first, second).map(Duration::as_nanos)?;
        let length = self.lengths.pair(first, second, usual);
        Some(length)
    }

    /// The line of an operation whose micro-batch has a size of its own.
    #[cold]
    fn scaled(&self, line: &Line, op: Op) -> Line {
        line.with(&self.bytes.of(self.run.inputs, op))
    }

    /// What an operation sends leaves its buffer when it has arrived, and what it needs takes one when it begins to
    /// arrive.
    #[inline]
    fn list_messages(&self, op: Op, line: &Line, there: u64, changes: &mut Changes) {
        if line.sent != 0 {
            let arrival = (self.run.there)(line.output + op.micro_batch.0);
            changes.sent(Change::new(arrival, -line.sent, GOES));
        }
        if line.received != 0 {
            let transit = self.lengths.message(op, line.transit);
            let list = if line.from_first { &mut changes.from_first } else { &mut changes.from_others };
            list.push(Change::new(there - transit, line.received, ARRIVES));
        }
    }
}
