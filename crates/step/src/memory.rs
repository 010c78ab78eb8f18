//! Which bytes live from when to when, on each rank.
//!
//! | account | on | from | to |
//! | --- | --- | --- | --- |
//! | activations | the stage's rank | start of F | end of B, or of W (a part at the end of I) |
//! | workspace | the stage's rank | start of B or I | end of B or W |
//! | send buffers | sender | end of the producer | end of the message |
//! | receive buffers | receiver | start of the message | start of the consumer |
//! | weights, gradients, optimizer, buckets | each rank | start of the step | never freed |
//!
//! A rank's changes come in a few runs that are each in order of time already: its own operations, the messages
//! that it sends to each peer, and those that it receives from each. They are woven together, never sorted.

use pipestep_engine::{Bytes, Curve, Interval, Ledger, LedgerError, Peak, Time, Timeline};
use pipestep_schedule::{Kind, MicroBatch, Op, Orders, Rank, Stage};

use crate::log::{MessageLog, Sent};
use crate::rows::Rows;
use crate::{ACCOUNTS, Account, Costs, Inputs, StepError};

/// Reads every rank's memory off the record of its operations and messages, with one curve of kind `C` a rank.
///
/// # Errors
/// [`StepError::Ledger`] if a ledger's rule is broken.
pub fn memory<C: Curve<ACCOUNTS> + Default>(
    inputs: &Inputs,
    orders: &Orders,
    ops: &Timeline,
    messages: &MessageLog,
) -> Result<Vec<(Peak<ACCOUNTS>, C)>, StepError> {
    memory_reusing(inputs, orders, ops, messages, &mut Vec::new())
}

/// The same as [`memory`], with curves that have served before and give their memory again.
///
/// # Errors
/// As for [`memory`].
pub fn memory_reusing<C: Curve<ACCOUNTS> + Default>(
    inputs: &Inputs,
    orders: &Orders,
    ops: &Timeline,
    messages: &MessageLog,
    spare: &mut Vec<C>,
) -> Result<Vec<(Peak<ACCOUNTS>, C)>, StepError> {
    let rows = Rows::new(inputs);
    let by_end = by_end(&rows, messages);
    let changes = OpChanges::all(inputs);
    let weaver = Weaver { inputs, orders, ops, messages, by_end: &by_end, rows: &rows, changes: &changes };
    (0..inputs.shape().ranks() as u16)
        .map(Rank)
        .map(|rank| {
            let mut curve = spare.pop().unwrap_or_default();
            curve.clear();
            weaver.rank(rank, curve).map_err(|source| StepError::Ledger { rank, source })
        })
        .collect()
}

/// For each pair of ranks whose messages overtake one another (they have no serial link): the messages in the
/// order of their ends. Empty for the others, which are in that order already.
fn by_end(rows: &Rows, messages: &MessageLog) -> Vec<Vec<Sent>> {
    let sorted = |pair: u32| {
        let log = messages.pair(pair);
        if log.is_sorted_by_key(|sent| sent.interval.end) {
            return Vec::new();
        }
        let mut log = log.to_vec();
        log.sort_by_key(|sent| sent.interval.end);
        log
    };
    (0..rows.pairs.len() as u32).map(sorted).collect()
}

/// What the operations of one (kind, stage) change, in bytes of a usual micro-batch.
#[derive(Clone, Copy, Debug, Default)]
struct OpChanges {
    at_start: Changes,
    at_end: Changes,
    /// Size of the message that it sends to another rank.
    sent: i64,
}

/// Up to three changes at one instant, those of zero left out.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    list: [(u8, i64); 3],
    count: u8,
}

impl Changes {
    fn new(all: [(Account, i64); 3]) -> Self {
        let mut changes = Self::default();
        for (account, delta) in all.into_iter().filter(|&(_, delta)| delta != 0) {
            changes.list[changes.count as usize] = (account as u8, delta);
            changes.count += 1;
        }
        changes
    }
}

impl OpChanges {
    /// Of every kind and stage, in the order of [`OpChanges::index`].
    fn all(inputs: &Inputs) -> Vec<Self> {
        let stages = inputs.shape().stages() as u16;
        let each = Kind::ALL.into_iter().flat_map(|kind| (0..stages).map(move |stage| (kind, stage)));
        each.map(|(kind, stage)| Self::new(inputs, Op::new(kind, Stage(stage), MicroBatch(0)))).collect()
    }

    #[inline]
    const fn index(op: Op, stages: usize) -> usize {
        op.kind as usize * stages + op.stage.index()
    }

    fn new(inputs: &Inputs, op: Op) -> Self {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let cost = &costs.stages[op.stage.index()];
        let (saved, workspace) = (signed(cost.saved.get()), signed(cost.workspace.get()));
        let released = cost.released_at_input_gradient;
        let maker = match op.kind {
            Kind::Forward => shape.previous(op.stage),
            Kind::Backward | Kind::InputGradient => shape.next(op.stage),
            Kind::WeightGradient => None,
        };
        let size = |op: Op| {
            let cost = &costs.stages[op.stage.index()];
            let sent = if op.kind == Kind::Forward { cost.activation } else { cost.gradient };
            costs.message(shape, op).map_or(0, |_| signed(sent.bytes.get()))
        };
        let sent = size(op);
        let consumed = maker.map_or(0, |stage| size(Op { stage, ..op }));
        let ([kept, used], [freed, unused]) = match op.kind {
            Kind::Forward => ([saved, 0], [0, 0]),
            Kind::Backward => ([0, workspace], [-saved, -workspace]),
            Kind::InputGradient => ([0, workspace], [-released, 0]),
            Kind::WeightGradient => ([0, 0], [released - saved, -workspace]),
        };
        let changes = |activations, workspace, buffer, bytes| {
            Changes::new([
                (Account::Activations, activations),
                (Account::Workspace, workspace),
                (buffer, bytes),
            ])
        };
        Self {
            at_start: changes(kept, used, Account::ReceiveBuffers, -consumed),
            at_end: changes(freed, unused, Account::SendBuffers, sent),
            sent,
        }
    }
}

/// What the runs are read from.
#[derive(Clone, Copy)]
struct Weaver<'a> {
    inputs: &'a Inputs,
    orders: &'a Orders,
    ops: &'a Timeline,
    messages: &'a MessageLog,
    by_end: &'a [Vec<Sent>],
    rows: &'a Rows,
    changes: &'a [OpChanges],
}

impl<'a> Weaver<'a> {
    /// One rank's ledger from start to end.
    fn rank<C: Curve<ACCOUNTS>>(self, rank: Rank, curve: C) -> Result<(Peak<ACCOUNTS>, C), LedgerError> {
        let mut ledger = Ledger::new(curve);
        self.hold(rank, &mut ledger);
        let mut buffers = self.buffers(rank);
        let list = self.orders.range(rank);
        let mut place = list.start;
        while place < list.end {
            let (op, ran) = (self.orders.all()[place], self.ops.get(place));
            if op.paired && self.ops.get(place + 1) == ran {
                self.pair(place, &mut buffers, &mut ledger);
                place += 2;
                continue;
            }
            let changes = self.of(op);
            buffers.change_before(ran.start, self, &mut ledger);
            self.change(&changes.at_start, op, ran.start, &mut ledger);
            buffers.change_before(ran.end, self, &mut ledger);
            self.change(&changes.at_end, op, ran.end, &mut ledger);
            place += 1;
        }
        buffers.change_before(Time::MAX, self, &mut ledger);
        let (peak, _left, curve) = ledger.finish()?;
        Ok((peak, curve))
    }

    /// The two halves of a pair that ran as one start together and end together.
    #[cold]
    fn pair<C: Curve<ACCOUNTS>>(
        self,
        place: usize,
        buffers: &mut Buffers<'_>,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) {
        let Interval { start, end } = self.ops.get(place);
        let parts = [self.orders.all()[place], self.orders.all()[place + 1]];
        buffers.change_before(start, self, ledger);
        for op in parts {
            self.change(&self.of(op).at_start, op, start, ledger);
        }
        buffers.change_before(end, self, ledger);
        for op in parts {
            self.change(&self.of(op).at_end, op, end, ledger);
        }
    }

    #[inline]
    fn of(self, op: Op) -> &'a OpChanges {
        &self.changes[OpChanges::index(op, self.inputs.shape().stages())]
    }

    /// What a rank holds for the whole step.
    fn hold<C: Curve<ACCOUNTS>>(self, rank: Rank, ledger: &mut Ledger<ACCOUNTS, C>) {
        let held = self.inputs.costs().ranks[rank.index()].held;
        let accounts = [
            (Account::Weights, held.weights),
            (Account::Gradients, held.gradients),
            (Account::Optimizer, held.optimizer),
            (Account::Buckets, held.buckets),
        ];
        for (account, bytes) in accounts.into_iter().filter(|&(_, bytes)| bytes > Bytes::ZERO) {
            ledger.add(account as usize, signed(bytes.get()));
        }
    }

    #[inline]
    fn change<C: Curve<ACCOUNTS>>(
        self,
        changes: &Changes,
        op: Op,
        at: Time,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) {
        if changes.count == 0 {
            return;
        }
        ledger.go_to(at);
        if !self.inputs.costs().micro_batch_scale.is_empty() {
            return self.add_scaled(changes, op, ledger);
        }
        for &(account, delta) in &changes.list[..changes.count.min(3) as usize] {
            ledger.add(account as usize, delta);
        }
    }

    /// The same for an unequal micro-batch.
    #[cold]
    fn add_scaled<C: Curve<ACCOUNTS>>(self, changes: &Changes, op: Op, ledger: &mut Ledger<ACCOUNTS, C>) {
        for &(account, delta) in &changes.list[..changes.count as usize] {
            let mut scaled = self.scaled(delta, op);
            if op.kind == Kind::WeightGradient && account == Account::Activations as u8 {
                // I and W share what F saved. Each share is rounded on its own, so W frees the rest of the whole.
                let cost = &self.inputs.costs().stages[op.stage.index()];
                scaled = self.scaled(cost.released_at_input_gradient, op)
                    - self.scaled(signed(cost.saved.get()), op);
            }
            ledger.add(account as usize, scaled);
        }
    }

    /// An amount as it is for one micro-batch; scaling keeps the sign.
    #[inline]
    fn scaled(self, amount: i64, op: Op) -> i64 {
        let costs: &Costs = self.inputs.costs();
        if costs.micro_batch_scale.is_empty() {
            return amount;
        }
        signed(costs.scaled(amount.unsigned_abs(), op.micro_batch)) * amount.signum()
    }

    /// The messages that a rank sends and receives, if any of them has a size.
    fn buffers(self, rank: Rank) -> Buffers<'a> {
        let mut cursors = Vec::new();
        if self.changes.iter().any(|changes| changes.sent > 0) {
            for (pair, &(from, to)) in self.rows.pairs.iter().enumerate() {
                let log = self.messages.pair(pair as u32);
                let size = self.common_size(pair as u32);
                if from == rank {
                    let by_end = if self.by_end[pair].is_empty() { log } else { &self.by_end[pair] };
                    cursors.push(Cursor::new(by_end, Side::Sends, size));
                }
                if to == rank {
                    cursors.push(Cursor::new(log, Side::Receives, size));
                }
            }
        }
        let next = cursors.iter().map(|cursor| cursor.at).min().unwrap_or(Time::MAX);
        Buffers { cursors, next }
    }

    /// The size of every message between two ranks, if they are all alike.
    fn common_size(self, pair: u32) -> Option<i64> {
        if !self.inputs.costs().micro_batch_scale.is_empty() {
            return None;
        }
        let stages = self.inputs.shape().stages() as u16;
        let ops =
            [Op::forward, Op::backward].into_iter().flat_map(|make| (0..stages).map(move |s| make(s, 0)));
        let mut sizes = ops.filter(|&op| self.rows.of(op).pair == pair).map(|op| self.of(op).sent);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }

    #[cold]
    fn size_of(self, sent: &Sent) -> i64 {
        let op = self.orders.all()[sent.place as usize];
        self.scaled(self.of(op).sent, op)
    }
}

/// The changes of a rank's message buffers, from several runs.
struct Buffers<'a> {
    cursors: Vec<Cursor<'a>>,
    /// When the next change is, or [`Time::MAX`].
    next: Time,
}

/// Which of a message's two buffers a rank holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// Falls free at the message's end.
    Sends,
    /// Is taken at the message's start.
    Receives,
}

/// One run of changes.
struct Cursor<'a> {
    /// The messages whose change is still to come.
    log: &'a [Sent],
    side: Side,
    /// The size of every message, if they are all alike.
    size: Option<i64>,
    /// When the next change is, or [`Time::MAX`].
    at: Time,
}

impl<'a> Cursor<'a> {
    fn new(log: &'a [Sent], side: Side, size: Option<i64>) -> Self {
        let at = side.next(log);
        Self { log, side, size, at }
    }
}

impl Side {
    /// When the first of these messages changes this side's buffer.
    #[inline]
    fn next(self, log: &[Sent]) -> Time {
        match (log.first(), self) {
            (None, _) => Time::MAX,
            (Some(sent), Self::Sends) => sent.interval.end,
            (Some(sent), Self::Receives) => sent.interval.start,
        }
    }
}

impl Buffers<'_> {
    /// Makes all changes before an instant. Those at the instant itself can wait: within an instant the order
    /// does not matter.
    #[inline]
    fn change_before<C: Curve<ACCOUNTS>>(
        &mut self,
        until: Time,
        weaver: Weaver<'_>,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) {
        while self.next < until {
            let now = self.next;
            let mut next = Time::MAX;
            ledger.go_to(now);
            for cursor in &mut self.cursors {
                if cursor.at == now
                    && let Some((sent, rest)) = cursor.log.split_first()
                {
                    let bytes = cursor.size.unwrap_or_else(|| weaver.size_of(sent));
                    match cursor.side {
                        Side::Sends => ledger.add(Account::SendBuffers as usize, -bytes),
                        Side::Receives => ledger.add(Account::ReceiveBuffers as usize, bytes),
                    }
                    cursor.log = rest;
                    cursor.at = cursor.side.next(rest);
                }
                next = next.min(cursor.at);
            }
            self.next = next;
        }
    }
}

/// `Inputs::new` keeps the sum of all bytes below 2^63.
#[inline]
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("Inputs::new keeps the sum of all bytes below 2^63")
}
