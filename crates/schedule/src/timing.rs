//! Times and peaks of orders in plain numbers: every operation as soon as it can, messages that never queue.
//!
//! This is what the constructions and the tests measure with. Links, updates, buffers and recording are
//! `pipestep-step`'s; on unlimited links it comes to the same times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::order::Deadlock;
use crate::{Choice, Kind, Op, Orders, Policy, Rank, Ready, Shape, Stage, Weights};

/// When orders run, as soon as possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Start of each operation in ns, by its place in [`Orders::all`].
    pub starts: Vec<u64>,
    /// End of each operation in ns.
    pub ends: Vec<u64>,
    /// From 0 to the last end.
    pub makespan: u64,
    /// The longest time of a rank between the start of its first and the end of its last operation.
    pub longest_span: u64,
    /// The most saved bytes of each rank, counted in the order of its operations.
    pub peaks: Vec<i64>,
}

/// Times orders under costs. Of two operations that run as one, both wait for the inputs of both; then the
/// second follows the first. Times past `u64` stay there.
///
/// # Errors
/// [`Deadlock`] if the ranks wait for one another.
pub fn time(orders: &Orders, shape: &Shape, weights: &Weights) -> Result<Timed, Deadlock> {
    crate::deadlock::check(orders, shape)?;
    let mut clock = Clock::new(shape, weights);
    let (mut starts, mut ends) = (vec![0; orders.all().len()], vec![0; orders.all().len()]);
    let mut next: Vec<_> = (0..shape.ranks() as u16).map(|rank| orders.range(Rank(rank))).collect();
    let mut work: Vec<usize> = (0..shape.ranks()).collect();
    while let Some(rank) = work.pop() {
        while let Some(&op) = orders.all()[next[rank].clone()].first() {
            let place = next[rank].start;
            let partner = op.paired.then(|| orders.all()[place + 1]);
            let inputs = [Some(op), partner].into_iter().flatten().map(|op| clock.ready_at(op));
            let Some(ready) = inputs.max().filter(|&time| time != UNKNOWN) else {
                break;
            };
            for (place, op) in [(place, Some(op)), (place + 1, partner)] {
                let Some(op) = op else { continue };
                let start = if op.paired { ready } else { clock.ready_at(op) }.max(clock.free_at[rank]);
                (starts[place], ends[place]) = (start, clock.run(op, start));
                next[rank].start += 1;
                work.extend(consumer(shape, op).map(Rank::index).filter(|&to| to != rank));
            }
        }
    }
    let ranks = (0..shape.ranks() as u16).map(Rank).map(|rank| orders.range(rank));
    let span = |range: std::ops::Range<usize>| {
        range.clone().next_back().map(|last| ends[last] - starts[range.start])
    };
    let longest_span = ranks.filter_map(span).max().unwrap_or(0);
    let makespan = ends.iter().copied().max().unwrap_or(0);
    Ok(Timed { starts, ends, makespan, longest_span, peaks: peaks(orders, shape, weights) })
}

/// The most saved bytes of each rank, counted in the order of its operations: `F` adds what its stage saves,
/// `B` frees it, `I` frees a part and `W` the rest.
pub fn peaks(orders: &Orders, shape: &Shape, weights: &Weights) -> Vec<i64> {
    let peak = |rank| {
        let (mut bytes, mut peak) = (0_i64, 0);
        for op in orders.rank(Rank(rank)) {
            bytes = bytes.saturating_add(weights.change(op.kind, op.stage));
            peak = peak.max(bytes);
        }
        peak
    };
    (0..shape.ranks() as u16).map(peak).collect()
}

/// Runs an online policy to its end, messages never queueing, and returns what each rank ran. Lists of a policy
/// that gives up are short: [`Orders::validate`] tells.
pub fn settle(policy: &mut dyn Policy, shape: &Shape, weights: &Weights) -> Orders {
    let mut clock = Clock::new(shape, weights);
    let mut lists: Vec<Vec<Op>> = vec![Vec::new(); shape.ranks()];
    let mut chosen: Vec<Option<Op>> = vec![None; shape.ranks()];
    let mut wakes: BinaryHeap<Reverse<(u64, usize)>> =
        (0..shape.ranks()).map(|rank| Reverse((0, rank))).collect();
    while let Some(Reverse((now, rank))) = wakes.pop() {
        if clock.free_at[rank] > now {
            continue;
        }
        if chosen[rank].is_none() {
            let ready = At { clock: &clock, now };
            if let Choice::Run(op) = policy.next(Rank(rank as u16), &ready) {
                chosen[rank] = Some(op);
            }
        }
        let Some(op) = chosen[rank].filter(|&op| clock.ready_at(op) <= now) else {
            continue;
        };
        chosen[rank] = None;
        lists[rank].push(op);
        let end = clock.run(op, now);
        wakes.push(Reverse((end, rank)));
        if let Some(to) = consumer(shape, op) {
            let travel = weights.travel(op.kind, op.stage);
            wakes.push(Reverse((end.saturating_add(travel), to.index())));
        }
    }
    Orders::from_lists(lists)
}

/// A time that is not known yet.
const UNKNOWN: u64 = u64::MAX;

/// Who needs what an operation computes.
fn consumer(shape: &Shape, op: Op) -> Option<Rank> {
    let stage = match op.kind {
        Kind::Forward => shape.next(op.stage),
        Kind::Backward | Kind::InputGradient => shape.previous(op.stage),
        Kind::WeightGradient => None,
    };
    stage.map(|stage| shape.rank_of(stage))
}

/// What has run so far.
struct Clock<'a> {
    shape: &'a Shape,
    weights: &'a Weights,
    free_at: Vec<u64>,
    /// End of forwards and of passes that send the gradient, by stage and micro-batch.
    forwards: Vec<u64>,
    gradients: Vec<u64>,
}

/// The clock at an instant, as a policy sees it.
struct At<'a> {
    clock: &'a Clock<'a>,
    now: u64,
}

impl Ready for At<'_> {
    fn is_ready(&self, op: Op) -> bool {
        self.clock.ready_at(op) <= self.now
    }
}

impl<'a> Clock<'a> {
    fn new(shape: &'a Shape, weights: &'a Weights) -> Self {
        let size = shape.stages() * shape.micro_batches();
        Self {
            shape,
            weights,
            free_at: vec![0; shape.ranks()],
            forwards: vec![UNKNOWN; size],
            gradients: vec![UNKNOWN; size],
        }
    }

    const fn place(&self, stage: Stage, op: Op) -> usize {
        stage.index() * self.shape.micro_batches() + op.micro_batch.index()
    }

    /// When all inputs of an operation are there; [`UNKNOWN`] while one has not been made.
    fn ready_at(&self, op: Op) -> u64 {
        let own = match op.kind {
            Kind::Forward => 0,
            Kind::Backward | Kind::InputGradient => self.forwards[self.place(op.stage, op)],
            Kind::WeightGradient => self.gradients[self.place(op.stage, op)],
        };
        let other = match op.kind {
            Kind::Forward => self.shape.previous(op.stage).map(|stage| {
                self.forwards[self.place(stage, op)].saturating_add(self.weights.activation[stage.index()])
            }),
            Kind::Backward | Kind::InputGradient => self.shape.next(op.stage).map(|stage| {
                self.gradients[self.place(stage, op)].saturating_add(self.weights.gradient[stage.index()])
            }),
            Kind::WeightGradient => None,
        };
        own.max(other.unwrap_or(0))
    }

    /// Runs an operation at an instant; returns its end.
    fn run(&mut self, op: Op, start: u64) -> u64 {
        let end = start.saturating_add(self.weights.length(op.kind, op.stage)).min(UNKNOWN - 1);
        self.free_at[self.shape.rank_of(op.stage).index()] = end;
        let place = self.place(op.stage, op);
        match op.kind {
            Kind::Forward => self.forwards[place] = end,
            Kind::Backward | Kind::InputGradient => self.gradients[place] = end,
            Kind::WeightGradient => {}
        }
        end
    }
}
