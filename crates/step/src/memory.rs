//! Every account of every rank over time, read off the record of a step (which bytes live from when to when is
//! in `bytes`).
//!
//! A rank's changes come in a few runs that are each in order of time already: its own operations, the messages
//! that it sends to each peer, and those that it receives from each. They are woven together, never sorted.

use pipestep_engine::{Curve, Interval, Ledger, LedgerError, Peak, Time, Timeline};
use pipestep_schedule::{Op, Orders, Rank};

use crate::bytes::{OpBytes, StepBytes, held};
use crate::log::{MessageLog, Sent};
use crate::rows::Rows;
use crate::{ACCOUNTS, Account, Inputs, StepError};

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
    let by_end = by_end(&rows, messages);
    let bytes = StepBytes::new(inputs, &rows);
    let weaver = Weaver { inputs, orders, ops, messages, by_end: &by_end, rows: &rows, bytes: &bytes };
    (0..inputs.shape().ranks() as u16)
        .map(Rank)
        .map(|rank| weaver.rank(rank, C::default()).map_err(|source| StepError::Ledger { rank, source }))
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

/// What the runs are read from.
#[derive(Clone, Copy)]
struct Weaver<'a> {
    inputs: &'a Inputs,
    orders: &'a Orders,
    ops: &'a Timeline,
    messages: &'a MessageLog,
    by_end: &'a [Vec<Sent>],
    rows: &'a Rows,
    bytes: &'a StepBytes,
}

impl<'a> Weaver<'a> {
    /// One rank's ledger from start to end.
    fn rank<C: Curve<ACCOUNTS>>(self, rank: Rank, curve: C) -> Result<(Peak<ACCOUNTS>, C), LedgerError> {
        let mut ledger = Ledger::new(curve);
        for (account, &bytes) in held(self.inputs, rank).iter().enumerate().filter(|&(_, &bytes)| bytes > 0) {
            ledger.add(account, bytes);
        }
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
            let bytes = self.bytes.of(self.inputs, op);
            buffers.change_before(ran.start, self, &mut ledger);
            start(&bytes, ran.start, &mut ledger);
            buffers.change_before(ran.end, self, &mut ledger);
            end(&bytes, ran.end, &mut ledger);
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
        let ran: Interval = self.ops.get(place);
        let parts = [place, place + 1].map(|place| self.bytes.of(self.inputs, self.orders.all()[place]));
        buffers.change_before(ran.start, self, ledger);
        for bytes in &parts {
            start(bytes, ran.start, ledger);
        }
        buffers.change_before(ran.end, self, ledger);
        for bytes in &parts {
            end(bytes, ran.end, ledger);
        }
    }

    /// The messages that a rank sends and receives, if any of them has a size.
    fn buffers(self, rank: Rank) -> Buffers<'a> {
        let mut cursors = Vec::new();
        if self.bytes.any_sent() {
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
        let mut sizes = ops.filter(|&op| self.rows.of(op).pair == pair).map(|op| self.bytes.usual(op).sent);
        let first = sizes.next()?;
        sizes.all(|size| size == first).then_some(first)
    }

    #[cold]
    fn size_of(self, sent: &Sent) -> i64 {
        self.bytes.of(self.inputs, self.orders.all()[sent.place as usize]).sent
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

/// An operation starts.
#[inline]
fn start<C: Curve<ACCOUNTS>>(bytes: &OpBytes, at: Time, ledger: &mut Ledger<ACCOUNTS, C>) {
    let changes = [
        (Account::Activations, bytes.kept),
        (Account::Workspace, bytes.used),
        (Account::ReceiveBuffers, -bytes.consumed),
    ];
    change(changes, at, ledger);
}

/// An operation ends.
#[inline]
fn end<C: Curve<ACCOUNTS>>(bytes: &OpBytes, at: Time, ledger: &mut Ledger<ACCOUNTS, C>) {
    let changes = [
        (Account::Activations, -bytes.freed),
        (Account::Workspace, -bytes.unused),
        (Account::SendBuffers, bytes.sent),
    ];
    change(changes, at, ledger);
}

#[inline]
fn change<C: Curve<ACCOUNTS>>(changes: [(Account, i64); 3], at: Time, ledger: &mut Ledger<ACCOUNTS, C>) {
    if changes.iter().all(|&(_, bytes)| bytes == 0) {
        return;
    }
    ledger.go_to(at);
    for (account, bytes) in changes.into_iter().filter(|&(_, bytes)| bytes != 0) {
        ledger.add(account as usize, bytes);
    }
}
