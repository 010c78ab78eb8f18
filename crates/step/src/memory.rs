//! Which bytes live from when to when, on each rank.
//!
//! | account | on | from | to |
//! | --- | --- | --- | --- |
//! | activations | the stage's rank | start of F | end of B, or of W (a part at the end of I) |
//! | workspace | the stage's rank | start of B or I | end of B or W |
//! | send buffers | sender | end of the producer | end of the message |
//! | receive buffers | receiver | start of the message | start of the consumer |
//! | weights, gradients, optimizer, buckets | each rank | start of the step | never freed |

use pipestep_engine::{Bytes, Curve, Interval, Ledger, Peak, Time};
use pipestep_schedule::{Kind, Op, Rank};

use crate::rows::{NONE, Rows};
use crate::{ACCOUNTS, Account, Inputs, Record, StepError};

/// One change of one account.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Time,
    account: Account,
    delta: i64,
}

/// Reads every rank's memory off a record, with one curve of kind `C` a rank.
///
/// # Errors
/// [`StepError::Ledger`] if a ledger's rule is broken, or something is still held at the end that should not be.
pub fn memory<C: Curve<ACCOUNTS> + Default>(
    inputs: &Inputs,
    record: &Record,
) -> Result<Vec<(Peak<ACCOUNTS>, C)>, StepError> {
    let rows = Rows::new(inputs);
    let sent = message_starts(inputs, record, &rows);
    let mut changes = Vec::new();
    (0..inputs.shape().ranks() as u16)
        .map(Rank)
        .map(|rank| {
            changes.clear();
            hold(inputs, rank, &mut changes);
            for place in record.orders.range(rank) {
                let op = record.orders.all()[place];
                compute(inputs, op, record.ops.get(place), &mut changes);
                buffers(inputs, &rows, &sent, record, place, &mut changes);
            }
            // Stable and adaptive: the list is a few sorted runs woven together.
            changes.sort_by_key(|change| change.at);
            read_off(&changes).map_err(|source| StepError::Ledger { rank, source })
        })
        .collect()
}

/// When the message into each slot starts; [`Time::MAX`] for a slot that is filled without one.
fn message_starts(inputs: &Inputs, record: &Record, rows: &Rows) -> Vec<Time> {
    let any = inputs
        .costs()
        .stages
        .iter()
        .any(|stage| stage.activation.bytes.max(stage.gradient.bytes) > Bytes::ZERO);
    let mut sent = vec![Time::MAX; if any { rows.slots } else { 0 }];
    if any {
        for (place, &op) in record.orders.all().iter().enumerate() {
            let row = rows.of(op);
            if row.sends {
                sent[(row.output + op.micro_batch.0) as usize] = record.messages.get(place).start;
            }
        }
    }
    sent
}

/// What a rank holds for the whole step.
fn hold(inputs: &Inputs, rank: Rank, changes: &mut Vec<Change>) {
    let held = inputs.costs().ranks[rank.index()].held;
    let accounts = [
        (Account::Weights, held.weights),
        (Account::Gradients, held.gradients),
        (Account::Optimizer, held.optimizer),
        (Account::Buckets, held.buckets),
    ];
    for (account, bytes) in accounts {
        push(changes, Time::ZERO, account, signed(bytes.get()));
    }
}

/// Saved activations and workspace of one operation.
fn compute(inputs: &Inputs, op: Op, Interval { start, end }: Interval, changes: &mut Vec<Change>) {
    let costs = inputs.costs();
    let cost = &costs.stages[op.stage.index()];
    let scaled = |bytes: u64| signed(costs.scaled(bytes, op.micro_batch));
    let saved = scaled(cost.saved.get());
    let released =
        scaled(cost.released_at_input_gradient.unsigned_abs()) * cost.released_at_input_gradient.signum();
    let workspace = scaled(cost.workspace.get());
    match op.kind {
        Kind::Forward => push(changes, start, Account::Activations, saved),
        Kind::Backward => {
            push(changes, start, Account::Workspace, workspace);
            push(changes, end, Account::Workspace, -workspace);
            push(changes, end, Account::Activations, -saved);
        }
        Kind::InputGradient => {
            push(changes, start, Account::Workspace, workspace);
            push(changes, end, Account::Activations, -released);
        }
        Kind::WeightGradient => {
            push(changes, end, Account::Workspace, -workspace);
            push(changes, end, Account::Activations, released - saved);
        }
    }
}

/// The buffer of the message that an operation sends, and of the one that it consumes.
fn buffers(
    inputs: &Inputs,
    rows: &Rows,
    sent: &[Time],
    record: &Record,
    place: usize,
    changes: &mut Vec<Change>,
) {
    if sent.is_empty() {
        return;
    }
    let op = record.orders.all()[place];
    let ran = record.ops.get(place);
    let row = rows.of(op);
    if let Some((_, message)) = inputs.costs().message(inputs.shape(), op) {
        let bytes = signed(message.bytes.get());
        push(changes, ran.end, Account::SendBuffers, bytes);
        push(
            changes,
            record.messages.get(place).end,
            Account::SendBuffers,
            -bytes,
        );
    }
    if row.input == NONE {
        return;
    }
    let from = sent[(row.input + op.micro_batch.0) as usize];
    if from != Time::MAX {
        let bytes = signed(received_bytes(inputs, op));
        push(changes, from, Account::ReceiveBuffers, bytes);
        push(changes, ran.start, Account::ReceiveBuffers, -bytes);
    }
}

/// The size of the message that an operation consumes.
fn received_bytes(inputs: &Inputs, op: Op) -> u64 {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let bytes = match op.kind {
        Kind::Forward => shape
            .previous(op.stage)
            .map(|from| costs.stages[from.index()].activation.bytes),
        Kind::Backward | Kind::InputGradient => shape
            .next(op.stage)
            .map(|from| costs.stages[from.index()].gradient.bytes),
        Kind::WeightGradient => None,
    };
    costs.scaled(bytes.unwrap_or_default().get(), op.micro_batch)
}

fn read_off<C: Curve<ACCOUNTS> + Default>(
    changes: &[Change],
) -> Result<(Peak<ACCOUNTS>, C), pipestep_engine::LedgerError> {
    let mut ledger = Ledger::<ACCOUNTS, C>::new(C::default());
    for change in changes {
        ledger.change(change.at, change.account as usize, change.delta)?;
    }
    let (peak, _left, curve) = ledger.finish()?;
    Ok((peak, curve))
}

fn push(changes: &mut Vec<Change>, at: Time, account: Account, delta: i64) {
    if delta != 0 {
        changes.push(Change { at, account, delta });
    }
}

/// `Inputs::new` keeps the sum of all bytes below 2^63.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("Inputs::new keeps the sum of all bytes below 2^63")
}
