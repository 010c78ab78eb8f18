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
//! that it sends over each link, and those that it receives over each. They are merged, not sorted.

use pipestep_engine::{Curve, Interval, Ledger, LedgerError, Peak, Time, Timeline};
use pipestep_schedule::{Kind, MicroBatch, Op, Orders, Rank, Stage};

use crate::{ACCOUNTS, Account, Inputs, Message, StepError};

/// One change of one account.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: Time,
    delta: i64,
    account: Account,
}

/// Changes in order of time.
#[derive(Clone, Debug, Default)]
struct Run {
    changes: Vec<Change>,
    next: usize,
}

/// Reads every rank's memory off the timelines of its operations and messages, with one curve of kind `C` a rank.
///
/// # Errors
/// [`StepError::Ledger`] if a ledger's rule is broken.
pub fn memory<C: Curve<ACCOUNTS> + Default>(
    inputs: &Inputs,
    orders: &Orders,
    ops: &Timeline,
    messages: &Timeline,
) -> Result<Vec<(Peak<ACCOUNTS>, C)>, StepError> {
    let reader = Reader {
        inputs,
        orders,
        ops,
        messages,
        sizes: Sizes::new(inputs),
    };
    let peers = reader.peers();
    // The runs of one rank: its own operations, then sent and received by peer. Their memory serves every rank.
    let mut runs: Vec<Run> = Vec::new();
    (0..inputs.shape().ranks() as u16)
        .map(Rank)
        .map(|rank| {
            runs.iter_mut().for_each(Run::clear);
            reader.own(rank, run(&mut runs, 0));
            for (index, &peer) in peers[rank.index()].iter().enumerate() {
                let (sent, received) = (run(&mut runs, 2 * index + 2), 2 * index + 1);
                reader.sent(rank, peer, sent);
                reader.received(peer, rank, run(&mut runs, received));
            }
            runs.iter_mut().for_each(Run::sort);
            merge(&mut runs).map_err(|source| StepError::Ledger { rank, source })
        })
        .collect()
}

/// The run of that number, made if it is not there yet.
fn run(runs: &mut Vec<Run>, number: usize) -> &mut Run {
    if runs.len() <= number {
        runs.resize_with(number + 1, Run::default);
    }
    &mut runs[number]
}

/// The message of each row, and the one that it consumes; `None` where there is none or it has no size.
struct Sizes {
    by_row: Vec<(Option<(Rank, u64)>, u64)>,
    stages: usize,
    /// Whether any message has a size.
    any: bool,
}

impl Sizes {
    fn new(inputs: &Inputs) -> Self {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let stages = shape.stages();
        let usual = crate::Costs {
            micro_batch_scale: Vec::new(),
            ..costs.clone()
        };
        let mut by_row = Vec::with_capacity(Kind::ALL.len() * stages);
        for kind in Kind::ALL {
            for stage in 0..stages as u16 {
                let op = Op::new(kind, Stage(stage), MicroBatch(0));
                let sized = |message: Message| message.bytes.get();
                let sent = usual
                    .message(shape, op)
                    .map(|(to, message)| (shape.rank_of(to), sized(message)));
                let maker = match kind {
                    Kind::Forward => shape.previous(op.stage).map(|from| Op { stage: from, ..op }),
                    Kind::Backward | Kind::InputGradient => {
                        shape.next(op.stage).map(|from| Op { stage: from, ..op })
                    }
                    Kind::WeightGradient => None,
                };
                let consumed = maker
                    .and_then(|maker| usual.message(shape, maker))
                    .map_or(0, |(_, message)| sized(message));
                by_row.push((sent.filter(|&(_, bytes)| bytes > 0), consumed));
            }
        }
        let any = by_row.iter().any(|(sent, _)| sent.is_some());
        Self { by_row, stages, any }
    }

    /// Who receives the operation's message, and its size.
    fn sent(&self, op: Op) -> Option<(Rank, u64)> {
        self.by_row[op.kind as usize * self.stages + op.stage.index()].0
    }

    /// The size of the message that the operation consumes.
    fn consumed(&self, op: Op) -> u64 {
        self.by_row[op.kind as usize * self.stages + op.stage.index()].1
    }
}

/// What the runs are read from.
struct Reader<'a> {
    inputs: &'a Inputs,
    orders: &'a Orders,
    ops: &'a Timeline,
    messages: &'a Timeline,
    sizes: Sizes,
}

impl Reader<'_> {
    /// For each rank, the ranks that it exchanges messages with.
    fn peers(&self) -> Vec<Vec<Rank>> {
        let shape = self.inputs.shape();
        let mut peers = vec![std::collections::BTreeSet::new(); shape.ranks()];
        for (kind, stage) in [Kind::Forward, Kind::Backward]
            .into_iter()
            .flat_map(|kind| (0..shape.stages() as u16).map(move |s| (kind, s)))
        {
            let op = Op::new(kind, Stage(stage), MicroBatch(0));
            if let Some((to, _)) = self.sizes.sent(op) {
                let from = shape.rank_of(op.stage);
                peers[from.index()].insert(to);
                peers[to.index()].insert(from);
            }
        }
        peers.into_iter().map(|set| set.into_iter().collect()).collect()
    }

    /// Changes at the starts and ends of a rank's own operations.
    fn own(&self, rank: Rank, run: &mut Run) {
        self.held(rank, run);
        for place in self.orders.range(rank) {
            let op = self.orders.all()[place];
            let ran = self.ops.get(place);
            self.compute(op, ran, run);
            if self.sizes.any {
                let scaled = |bytes: u64| self.scaled(bytes, op);
                run.push(
                    ran.start,
                    Account::ReceiveBuffers,
                    -scaled(self.sizes.consumed(op)),
                );
                if let Some((_, bytes)) = self.sizes.sent(op) {
                    run.push(ran.end, Account::SendBuffers, self.scaled(bytes, op));
                }
            }
        }
    }

    /// What a rank holds for the whole step.
    fn held(&self, rank: Rank, run: &mut Run) {
        let held = self.inputs.costs().ranks[rank.index()].held;
        let accounts = [
            (Account::Weights, held.weights),
            (Account::Gradients, held.gradients),
            (Account::Optimizer, held.optimizer),
            (Account::Buckets, held.buckets),
        ];
        for (account, bytes) in accounts {
            run.push(Time::ZERO, account, signed(bytes.get()));
        }
    }

    /// Saved activations and workspace of one operation, in order of time.
    fn compute(&self, op: Op, Interval { start, end }: Interval, run: &mut Run) {
        let cost = &self.inputs.costs().stages[op.stage.index()];
        let saved = self.scaled(cost.saved.get(), op);
        match op.kind {
            Kind::Forward => run.push(start, Account::Activations, saved),
            Kind::Backward => {
                let workspace = self.scaled(cost.workspace.get(), op);
                run.push(start, Account::Workspace, workspace);
                run.push(end, Account::Workspace, -workspace);
                run.push(end, Account::Activations, -saved);
            }
            Kind::InputGradient => {
                run.push(start, Account::Workspace, self.scaled(cost.workspace.get(), op));
                run.push(end, Account::Activations, -self.released(op));
            }
            Kind::WeightGradient => {
                run.push(end, Account::Workspace, -self.scaled(cost.workspace.get(), op));
                run.push(end, Account::Activations, self.released(op) - saved);
            }
        }
    }

    /// What the end of `I` frees; negative if it adds.
    fn released(&self, op: Op) -> i64 {
        let released = self.inputs.costs().stages[op.stage.index()].released_at_input_gradient;
        self.scaled(released.unsigned_abs(), op) * released.signum()
    }

    /// Send buffers that fall free when `rank`'s messages to `peer` have arrived.
    fn sent(&self, rank: Rank, peer: Rank, run: &mut Run) {
        self.each_message(rank, peer, |on_link, bytes| {
            run.push(on_link.end, Account::SendBuffers, -bytes)
        });
    }

    /// Receive buffers that `rank` needs from the start of `peer`'s messages on.
    fn received(&self, peer: Rank, rank: Rank, run: &mut Run) {
        self.each_message(peer, rank, |on_link, bytes| {
            run.push(on_link.start, Account::ReceiveBuffers, bytes)
        });
    }

    fn each_message(&self, from: Rank, to: Rank, mut take: impl FnMut(Interval, i64)) {
        for place in self.orders.range(from) {
            let op = self.orders.all()[place];
            if let Some((receiver, bytes)) = self.sizes.sent(op)
                && receiver == to
            {
                take(self.messages.get(place), self.scaled(bytes, op));
            }
        }
    }

    #[inline]
    fn scaled(&self, bytes: u64, op: Op) -> i64 {
        signed(self.inputs.costs().scaled(bytes, op.micro_batch))
    }
}

impl Run {
    #[inline]
    fn push(&mut self, at: Time, account: Account, delta: i64) {
        if delta != 0 {
            self.changes.push(Change { at, delta, account });
        }
    }

    fn clear(&mut self) {
        self.changes.clear();
        self.next = 0;
    }

    /// Most runs are in order as they are made; those of overlapped pairs and of links that serve out of turn
    /// are nearly so.
    fn sort(&mut self) {
        if !self.changes.is_sorted_by_key(|change| change.at) {
            self.changes.sort_by_key(|change| change.at);
        }
    }

    /// When the next change is, or [`Time::MAX`].
    #[inline]
    fn head(&self) -> Time {
        self.changes.get(self.next).map_or(Time::MAX, |change| change.at)
    }
}

/// Feeds the runs to a ledger in order of time.
fn merge<C: Curve<ACCOUNTS> + Default>(runs: &mut [Run]) -> Result<(Peak<ACCOUNTS>, C), LedgerError> {
    let mut ledger = Ledger::<ACCOUNTS, C>::new(C::default());
    loop {
        // The run with the earliest change, and how far it can go before another run is due.
        let (mut first, mut earliest, mut until) = (0, Time::MAX, Time::MAX);
        for (number, run) in runs.iter().enumerate() {
            let head = run.head();
            if head < earliest {
                (first, until, earliest) = (number, earliest, head);
            } else {
                until = until.min(head);
            }
        }
        if earliest == Time::MAX {
            break;
        }
        let run = &mut runs[first];
        while let Some(change) = run.changes.get(run.next)
            && change.at <= until
        {
            ledger.change(change.at, change.account as usize, change.delta)?;
            run.next += 1;
        }
    }
    let (peak, _left, curve) = ledger.finish()?;
    Ok((peak, curve))
}

/// `Inputs::new` keeps the sum of all bytes below 2^63.
#[inline]
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).expect("Inputs::new keeps the sum of all bytes below 2^63")
}
