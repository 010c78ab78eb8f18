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

use std::borrow::Cow;

use pipestep_engine::{Curve, Interval, Ledger, LedgerError, Peak, Time, Timeline};
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
    let rows = Rows::new(inputs);
    let weaver = Weaver { inputs, orders, ops, messages, rows: &rows, changes: OpChanges::all(inputs) };
    (0..inputs.shape().ranks() as u16)
        .map(Rank)
        .map(|rank| weaver.rank(rank).map_err(|source| StepError::Ledger { rank, source }))
        .collect()
}

/// What an operation of one (kind, stage) changes, in bytes of a usual micro-batch.
#[derive(Clone, Copy, Debug, Default)]
struct OpChanges {
    activations_at_start: i64,
    activations_at_end: i64,
    workspace_at_start: i64,
    workspace_at_end: i64,
    /// Size of the message that it sends to another rank.
    sent: i64,
    /// Size of the message from another rank that it consumes.
    consumed: i64,
}

impl OpChanges {
    /// Of every kind and stage, in the order of [`OpChanges::index`].
    fn all(inputs: &Inputs) -> Vec<Self> {
        let stages = inputs.shape().stages() as u16;
        let each = Kind::ALL.into_iter().flat_map(|kind| (0..stages).map(move |stage| (kind, stage)));
        each.map(|(kind, stage)| Self::new(inputs, Op::new(kind, Stage(stage), MicroBatch(0)))).collect()
    }

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
        let buffers = Self {
            sent: size(op),
            consumed: maker.map_or(0, |stage| size(Op { stage, ..op })),
            ..Self::default()
        };
        match op.kind {
            Kind::Forward => Self { activations_at_start: saved, ..buffers },
            Kind::Backward => Self {
                activations_at_end: -saved,
                workspace_at_start: workspace,
                workspace_at_end: -workspace,
                ..buffers
            },
            Kind::InputGradient => {
                Self { activations_at_end: -released, workspace_at_start: workspace, ..buffers }
            }
            Kind::WeightGradient => {
                Self { activations_at_end: released - saved, workspace_at_end: -workspace, ..buffers }
            }
        }
    }
}

/// What the runs are read from.
struct Weaver<'a> {
    inputs: &'a Inputs,
    orders: &'a Orders,
    ops: &'a Timeline,
    messages: &'a MessageLog,
    rows: &'a Rows,
    changes: Vec<OpChanges>,
}

impl Weaver<'_> {
    /// One rank's ledger from start to end.
    fn rank<C: Curve<ACCOUNTS> + Default>(&self, rank: Rank) -> Result<(Peak<ACCOUNTS>, C), LedgerError> {
        let mut ledger = Ledger::new(C::default());
        self.hold(rank, &mut ledger)?;
        let mut buffers = self.buffers(rank);
        let list = self.orders.range(rank);
        let mut place = list.start;
        while place < list.end {
            // The two halves of a pair that ran as one start together and end together.
            let ran = self.ops.get(place);
            let together = self.orders.all()[place].paired && self.ops.get(place + 1) == ran;
            let parts = place..place + 1 + usize::from(together);
            buffers.change_before(ran.start, self, &mut ledger)?;
            for part in parts.clone() {
                self.start(self.orders.all()[part], ran.start, &mut ledger)?;
            }
            buffers.change_before(ran.end, self, &mut ledger)?;
            for part in parts.clone() {
                self.end(self.orders.all()[part], ran.end, &mut ledger)?;
            }
            place = parts.end;
        }
        buffers.change_before(Time::MAX, self, &mut ledger)?;
        let (peak, _left, curve) = ledger.finish()?;
        Ok((peak, curve))
    }

    /// What a rank holds for the whole step.
    fn hold<C: Curve<ACCOUNTS>>(
        &self,
        rank: Rank,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) -> Result<(), LedgerError> {
        let held = self.inputs.costs().ranks[rank.index()].held;
        let accounts = [
            (Account::Weights, held.weights),
            (Account::Gradients, held.gradients),
            (Account::Optimizer, held.optimizer),
            (Account::Buckets, held.buckets),
        ];
        for (account, bytes) in accounts {
            change(ledger, Time::ZERO, account, signed(bytes.get()))?;
        }
        Ok(())
    }

    #[inline]
    fn start<C: Curve<ACCOUNTS>>(
        &self,
        op: Op,
        at: Time,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) -> Result<(), LedgerError> {
        let changes = self.of(op);
        change(ledger, at, Account::Activations, self.scaled(changes.activations_at_start, op))?;
        change(ledger, at, Account::Workspace, self.scaled(changes.workspace_at_start, op))?;
        change(ledger, at, Account::ReceiveBuffers, -self.scaled(changes.consumed, op))
    }

    #[inline]
    fn end<C: Curve<ACCOUNTS>>(
        &self,
        op: Op,
        at: Time,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) -> Result<(), LedgerError> {
        let changes = self.of(op);
        let freed = if op.kind == Kind::WeightGradient {
            // I and W share what F saved; each share is rounded on its own, so W frees the rest of the whole.
            let cost = &self.inputs.costs().stages[op.stage.index()];
            let released = self.scaled(cost.released_at_input_gradient, op);
            released - self.scaled(signed(cost.saved.get()), op)
        } else {
            self.scaled(changes.activations_at_end, op)
        };
        change(ledger, at, Account::Activations, freed)?;
        change(ledger, at, Account::Workspace, self.scaled(changes.workspace_at_end, op))?;
        change(ledger, at, Account::SendBuffers, self.scaled(changes.sent, op))
    }

    #[inline]
    fn of(&self, op: Op) -> &OpChanges {
        &self.changes[OpChanges::index(op, self.inputs.shape().stages())]
    }

    /// An amount as it is for one micro-batch; scaling keeps the sign.
    #[inline]
    fn scaled(&self, amount: i64, op: Op) -> i64 {
        let costs: &Costs = self.inputs.costs();
        if costs.micro_batch_scale.is_empty() {
            return amount;
        }
        signed(costs.scaled(amount.unsigned_abs(), op.micro_batch)) * amount.signum()
    }

    /// The messages that a rank sends and receives, if any of them has a size.
    fn buffers(&self, rank: Rank) -> Buffers<'_> {
        let mut cursors = Vec::new();
        if self.changes.iter().any(|changes| changes.sent > 0) {
            for (pair, &(from, to)) in (0..).zip(&self.rows.pairs) {
                let log = self.messages.pair(pair);
                if from == rank {
                    cursors.push(Cursor::new(log, Side::Sends));
                }
                if to == rank {
                    cursors.push(Cursor::new(log, Side::Receives));
                }
            }
        }
        let mut buffers = Buffers { cursors, next: Time::MAX };
        buffers.look();
        buffers
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
    log: Cow<'a, [Sent]>,
    side: Side,
    next: usize,
    /// When the next change is, or [`Time::MAX`].
    at: Time,
}

impl<'a> Cursor<'a> {
    fn new(log: &'a [Sent], side: Side) -> Self {
        let mut log = Cow::Borrowed(log);
        // Messages without a serial link can overtake one another.
        if !log.is_sorted_by_key(|sent| side.instant(sent.interval)) {
            log.to_mut().sort_by_key(|sent| side.instant(sent.interval));
        }
        let at = log.first().map_or(Time::MAX, |sent| side.instant(sent.interval));
        Self { log, side, next: 0, at }
    }
}

impl Side {
    #[inline]
    const fn instant(self, interval: Interval) -> Time {
        match self {
            Self::Sends => interval.end,
            Self::Receives => interval.start,
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
        weaver: &Weaver<'_>,
        ledger: &mut Ledger<ACCOUNTS, C>,
    ) -> Result<(), LedgerError> {
        while self.next < until {
            for cursor in &mut self.cursors {
                if cursor.at != self.next {
                    continue;
                }
                let op = weaver.orders.all()[cursor.log[cursor.next].place as usize];
                let bytes = weaver.scaled(weaver.of(op).sent, op);
                match cursor.side {
                    Side::Sends => change(ledger, self.next, Account::SendBuffers, -bytes)?,
                    Side::Receives => change(ledger, self.next, Account::ReceiveBuffers, bytes)?,
                }
                cursor.next += 1;
                cursor.at =
                    cursor.log.get(cursor.next).map_or(Time::MAX, |sent| cursor.side.instant(sent.interval));
            }
            self.look();
        }
        Ok(())
    }

    #[inline]
    fn look(&mut self) {
        self.next = self.cursors.iter().map(|cursor| cursor.at).min().unwrap_or(Time::MAX);
    }
}

#[inline]
fn change<C: Curve<ACCOUNTS>>(
    ledger: &mut Ledger<ACCOUNTS, C>,
    at: Time,
    account: Account,
    delta: i64,
) -> Result<(), LedgerError> {
    if delta == 0 { Ok(()) } else { ledger.change(at, account as usize, delta) }
}

/// `Inputs::new` keeps the sum of all bytes below 2^63.
#[inline]
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("Inputs::new keeps the sum of all bytes below 2^63")
}
