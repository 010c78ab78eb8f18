//! Steps for this crate's tests: registry orders, timed by a few lines of longest path.
//!
//! Deliberately not the simulator: a test of a report must not fail because a simulation does.

use pipestep_engine::{Bytes, Duration, Interval, Ledger, Recorder, Time, Timeline};
use pipestep_schedule::{Kind, Op, Options, Orders, Placement, Plan, Rank, Shape, Weights};
use pipestep_step::{Account, MemoryCurve, Messages, RankOutcome, Record, Summary};

use crate::{Labels, StepView};

/// A finished step, owned.
pub(crate) struct Sample {
    pub(crate) labels: Labels,
    pub(crate) shape: Shape,
    pub(crate) summary: Summary,
    pub(crate) record: Record,
    pub(crate) curves: Vec<MemoryCurve>,
}

const MS: u64 = 1_000_000;
/// The headline's bytes saved per micro-batch and rank.
const SAVED: u64 = 241_000_000;

impl Sample {
    /// The headline's costs (10, 20, 1 and 1 ms) under a schedule of the registry.
    pub(crate) fn new(schedule: &str, ranks: u64, chunks: u64, micro_batches: u64) -> Self {
        Self::with_transfer(schedule, [ranks, chunks, micro_batches], MS)
    }

    pub(crate) fn with_transfer(
        schedule: &str,
        [ranks, chunks, micro_batches]: [u64; 3],
        transfer: u64,
    ) -> Self {
        let found = pipestep_schedule::find(schedule).expect("a schedule of the registry");
        let shape = Shape::new(ranks, chunks, micro_batches, Placement::Loop).unwrap();
        let plan = found
            .plan(&shape, &Weights::unit(&shape), &Options::default())
            .unwrap();
        let Plan::Fixed(orders) = plan else {
            panic!("only fixed orders are sampled")
        };
        let labels = Labels {
            name: "Qwen3-8B on a few stages".into(),
            schedule: schedule.into(),
            budget: Some(Bytes::new(1_000_000_000)),
        };
        timed(labels, shape, orders, transfer)
    }

    pub(crate) fn view(&self) -> StepView<'_> {
        StepView {
            labels: &self.labels,
            shape: &self.shape,
            summary: &self.summary,
        }
    }
}

fn length(op: Op, chunks: u64) -> u64 {
    let whole = if op.kind == Kind::Forward {
        10 * MS
    } else {
        20 * MS
    };
    whole / chunks
}

fn timed(labels: Labels, shape: Shape, orders: Orders, transfer: u64) -> Sample {
    let total = orders.all().len();
    let (mut ops, mut messages) = (Timeline::new(total), Timeline::new(total));
    let place = |stage: u16, kind: Kind, i: u32| {
        (stage as usize * shape.micro_batches() + i as usize) * 2 + usize::from(kind != Kind::Forward)
    };
    let mut arrived = vec![None; 2 * shape.stages() * shape.micro_batches()];
    let mut next: Vec<usize> = (0..shape.ranks())
        .map(|r| orders.range(Rank(r as u16)).start)
        .collect();
    let mut free = vec![0_u64; shape.ranks()];
    let mut link = vec![0_u64; shape.ranks() * shape.ranks()];
    let mut left = total;
    while left > 0 {
        let before = left;
        for rank in 0..shape.ranks() {
            while next[rank] < orders.range(Rank(rank as u16)).end {
                let (item, op) = (next[rank], orders.all()[next[rank]]);
                let backward = op.kind != Kind::Forward;
                let from = if backward {
                    shape.next(op.stage)
                } else {
                    shape.previous(op.stage)
                };
                let ready = from.map_or(Some(0), |from| arrived[place(from.0, op.kind, op.micro_batch.0)]);
                let Some(ready) = ready else { break };
                let start = free[rank].max(ready);
                let end = start + length(op, shape.chunks() as u64);
                free[rank] = end;
                ops.record(item, interval(start, end));
                let to = if backward {
                    shape.previous(op.stage)
                } else {
                    shape.next(op.stage)
                };
                let to = to.map(|stage| shape.rank_of(stage).index());
                let mut at = end;
                if let Some(to) = to.filter(|&to| to != rank) {
                    let sent = end.max(link[rank * shape.ranks() + to]);
                    at = sent + transfer;
                    link[rank * shape.ranks() + to] = at;
                    messages.record(item, interval(sent, at));
                }
                arrived[place(op.stage.0, op.kind, op.micro_batch.0)] = Some(at);
                next[rank] += 1;
                left -= 1;
            }
        }
        assert!(left < before, "the order deadlocks");
    }
    let gradient_ready = *free.iter().max().unwrap();
    let updates = vec![interval(gradient_ready, gradient_ready + MS); shape.ranks()];
    let record = Record {
        orders,
        ops,
        messages,
        updates,
    };
    summed(labels, shape, record, gradient_ready)
}

fn interval(start: u64, end: u64) -> Interval {
    Interval {
        start: Time::from_nanos(start),
        end: Time::from_nanos(end),
    }
}

fn summed(labels: Labels, shape: Shape, record: Record, gradient_ready: u64) -> Sample {
    let mut curves = Vec::new();
    let mut ranks = Vec::new();
    for rank in (0..shape.ranks() as u16).map(Rank) {
        let mut changes = Vec::new();
        let mut busy = 0;
        let range = record.orders.range(rank);
        for item in range.clone() {
            let (op, ran) = (record.orders.all()[item], record.ops.get(item));
            busy += ran.length().as_nanos();
            let saved = (SAVED / shape.chunks() as u64) as i64;
            match op.kind {
                Kind::Forward => changes.push((ran.start, saved)),
                _ => changes.push((ran.end, -saved)),
            }
        }
        changes.sort_unstable();
        let mut ledger = Ledger::new(Vec::new());
        for (at, delta) in changes {
            ledger.change(at, Account::Activations as usize, delta).unwrap();
        }
        let (peak, _, curve) = ledger.finish().unwrap();
        curves.push(curve);
        ranks.push(RankOutcome {
            busy: Duration::from_nanos(busy),
            idle: Duration::from_nanos(gradient_ready - busy),
            first_start: record.ops.get(range.start).start,
            last_end: record.ops.get(range.end - 1).end,
            update: record.updates[rank.index()],
            peak,
        });
    }
    let sent = record
        .messages
        .all()
        .iter()
        .filter(|&&ran| ran != Interval::NEVER)
        .count() as u64;
    let summary = Summary {
        makespan: Time::from_nanos(gradient_ready + MS),
        gradient_ready: Time::from_nanos(gradient_ready),
        setup: Duration::ZERO,
        longest_span: ranks.iter().map(RankOutcome::span).max().unwrap(),
        zero_transfer_makespan: Time::from_nanos(331 * MS),
        ranks,
        messages: Messages {
            forward: sent / 2,
            backward: sent / 2,
            bytes: Bytes::new(sent * 1_572_864),
        },
    };
    Sample {
        labels,
        shape,
        summary,
        record,
        curves,
    }
}
