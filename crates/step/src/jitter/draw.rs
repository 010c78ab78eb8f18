//! The lengths of runs: drawn, and those of one run kept.

use pipestep_engine::{Duration, Overflow, Streams};
use pipestep_schedule::{Kind, MicroBatch, Op, Rank, Shape, Stage};
use rand::Rng;

use super::{Replicas, Scatter};
use crate::lengths::Lengths;
use crate::{Inputs, Links, StepError};

/// Is told what is drawn for `N` runs, one after the other by number.
pub(super) trait Draws<const N: usize> {
    /// The factors and the lengths of an operation.
    fn op(&mut self, op: Op, factors: [f64; N], lengths: [u64; N]);

    /// The length of the message of a forward or backward, or of the same backward cut in two. Its operation was told
    /// before.
    fn message(&mut self, op: Op, lengths: [u64; N]);

    /// The length of a rank's update.
    fn update(&mut self, rank: Rank, lengths: [u64; N]);
}

/// Draws `N` runs, from run number `first` on.
pub(super) fn draw<const N: usize>(replicas: Replicas<'_>, first: u64, draws: &mut impl Draws<N>) {
    let (shape, costs) = (replicas.inputs.shape(), replicas.inputs.costs());
    let streams = Streams::new(replicas.jitter.seed);
    let of_runs = |purpose: &str, rank: Rank| {
        let of_run = |lane| streams.stream(purpose, ((first + lane as u64) << 16) | u64::from(rank.0));
        std::array::from_fn(of_run)
    };
    for rank in (0..shape.ranks() as u16).map(Rank) {
        for (kind, purpose, scatter) in replicas.kinds() {
            let (scatter, mut rngs) = (&scatter[rank.index()], of_runs(purpose, rank));
            for op in ops(shape, rank, kind) {
                let factors = scatter.draw_each(&mut rngs);
                draws.op(op, factors, stretched(costs.duration(op), factors));
            }
        }
        for (kind, purpose, links) in replicas.links() {
            let mut rngs = of_runs(purpose, rank);
            for op in ops(shape, rank, kind) {
                if let Some((to, message)) = costs.message(shape, op) {
                    let factors = links.between(rank, shape.rank_of(to)).draw_each(&mut rngs);
                    draws.message(op, stretched(message.time, factors));
                }
            }
        }
        let factors = replicas.jitter.update[rank.index()].draw_each(&mut of_runs("step.update", rank));
        draws.update(rank, stretched(costs.ranks[rank.index()].update, factors));
    }
}

impl Scatter {
    /// One factor from each of some streams.
    #[inline]
    fn draw_each<const N: usize>(&self, rngs: &mut [impl Rng; N]) -> [f64; N] {
        rngs.each_mut().map(|rng| self.draw(rng))
    }
}

/// All lengths of one run, by (stage, micro-batch).
#[derive(Clone, Debug)]
pub(super) struct Draw {
    /// From one stage to the next: odd, so that stages do not begin in the same few sets of the cache.
    stride: usize,
    /// Of `F`, `B`, `I`, `W`; empty where no rank has a time for pairs.
    factors: [Vec<f64>; 4],
    /// Of the same: the operation's own length and that of its message.
    lengths: [Vec<[u64; 2]>; 4],
    /// By rank.
    pub(super) updates: Vec<u64>,
    /// Whether messages can be timed as they are made; see [`crate::FifoStep::new`].
    pub(super) is_exact_without_clock: bool,
}

impl Draw {
    /// Draws one run.
    ///
    /// # Errors
    /// [`StepError::Overflow`] if its lengths add up to more than 2^63 ns.
    pub(super) fn new(replicas: Replicas<'_>, run: u64) -> Result<Self, StepError> {
        let (shape, costs) = (replicas.inputs.shape(), replicas.inputs.costs());
        let stride = shape.micro_batches() | 1;
        let places = shape.stages() * stride;
        let has_pairs = costs.ranks.iter().any(|rank| rank.overlapped_pair.is_some());
        let mut one = Self {
            stride,
            factors: [(); 4].map(|()| vec![1.0; if has_pairs { places } else { 0 }]),
            lengths: [(); 4].map(|()| vec![[0; 2]; places]),
            updates: vec![0; shape.ranks()],
            is_exact_without_clock: false,
        };
        draw(replicas, run, &mut one);
        one.check_sum(replicas.inputs)?;
        one.is_exact_without_clock = one.is_exact_without_clock(replicas.inputs, has_pairs);
        Ok(one)
    }

    /// Refuses sums that the loops could not add up.
    fn check_sum(&self, inputs: &Inputs) -> Result<(), Overflow> {
        let lengths = self.lengths.iter().flatten().flatten().chain(&self.updates);
        let mut all = lengths.copied().chain(self.longest_pairs(inputs)).map(Duration::from_nanos);
        let sum = all.try_fold(inputs.costs().setup, Duration::plus)?;
        // The loops count from a base of their own.
        sum.plus(Duration::from_nanos(i64::MAX as u64 + 1))?;
        Ok(())
    }

    /// For each operation of a rank that has a time for pairs: the most that it can add to the length of its pair.
    fn longest_pairs<'a>(&'a self, inputs: &'a Inputs) -> impl Iterator<Item = u64> + 'a {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let with_pairs = (0..shape.ranks() as u16).map(Rank).filter_map(move |rank| {
            let whole = costs.ranks[rank.index()].overlapped_pair?.as_nanos();
            // Each half may be that of the largest micro-batch.
            let micro_batches = (0..shape.micro_batches() as u32).map(MicroBatch);
            let longest = micro_batches.map(|i| costs.scaled(whole, i)).max()?;
            Some((rank, Duration::from_nanos(longest)))
        });
        with_pairs.flat_map(move |(rank, longest)| {
            let ops = Kind::ALL.into_iter().flat_map(move |kind| ops(shape, rank, kind));
            ops.flat_map(move |op| stretched(longest, [self.factors[op.kind as usize][self.place(op)]]))
        })
    }

    /// Which loop is exact.
    fn is_exact_without_clock(&self, inputs: &Inputs, has_pairs: bool) -> bool {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let takes_time = |op: Op| {
            costs.message(shape, op).is_none() || self.lengths[op.kind as usize][self.place(op)][0] > 0
        };
        let senders = [Kind::Forward, Kind::Backward, Kind::InputGradient];
        let mut ranks = (0..shape.ranks() as u16).map(Rank);
        inputs.links == Links::Unlimited
            || (crate::FifoStep::new(inputs).is_some()
                && !has_pairs
                && ranks.all(|rank| senders.iter().all(|&kind| ops(shape, rank, kind).all(takes_time))))
    }

    #[inline]
    fn place(&self, op: Op) -> usize {
        op.stage.index() * self.stride + op.micro_batch.index()
    }
}

impl Draws<1> for Draw {
    fn op(&mut self, op: Op, [factor]: [f64; 1], [length]: [u64; 1]) {
        let place = self.place(op);
        if let Some(kept) = self.factors[op.kind as usize].get_mut(place) {
            *kept = factor;
        }
        self.lengths[op.kind as usize][place][0] = length;
    }

    fn message(&mut self, op: Op, [length]: [u64; 1]) {
        let place = self.place(op);
        for &maker in makers(op.kind) {
            self.lengths[maker as usize][place][1] = length;
        }
    }

    fn update(&mut self, rank: Rank, [length]: [u64; 1]) {
        self.updates[rank.index()] = length;
    }
}

impl Lengths for &Draw {
    #[inline]
    fn op(&self, op: Op, _usual: u64) -> u64 {
        self.lengths[op.kind as usize][self.place(op)][0]
    }

    #[inline]
    fn message(&self, op: Op, _usual: u64) -> u64 {
        self.lengths[op.kind as usize][self.place(op)][1]
    }

    /// A pair takes its usual length times the mean of its halves' factors.
    fn pair(&self, first: Op, second: Op, usual: u64) -> u64 {
        let [first, second] = [first, second].map(|op| self.factors[op.kind as usize][self.place(op)]);
        let [length] = stretched(Duration::from_nanos(usual), [f64::midpoint(first, second)]);
        length
    }
}

/// A length times factors, in ns, to the nearest. What does not fit stays at the largest length, and is refused as part
/// of a sum.
fn stretched<const N: usize>(length: Duration, factors: [f64; N]) -> [u64; N] {
    let nanos = length.as_nanos();
    factors.map(|factor| {
        if Scatter::Fixed(factor) == Scatter::NONE { nanos } else { (nanos as f64 * factor).round() as u64 }
    })
}

/// One kind of operation on all stages of a rank, in an order that depends on the shape alone.
fn ops(shape: &Shape, rank: Rank, kind: Kind) -> impl Iterator<Item = Op> + '_ {
    shape.stages_of(rank).flat_map(move |stage: Stage| {
        shape.micro_batches_of(stage).map(move |i| Op::new(kind, stage, MicroBatch(i)))
    })
}

/// The kinds of operations that make the same kind of message.
pub(super) const fn makers(kind: Kind) -> &'static [Kind] {
    match kind {
        Kind::Forward => &[Kind::Forward],
        _ => &[Kind::Backward, Kind::InputGradient],
    }
}
