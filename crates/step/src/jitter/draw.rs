//! The lengths of runs, drawn and kept lane by lane.

use pipestep_engine::{Duration, Overflow, Streams};
use pipestep_schedule::{Kind, MicroBatch, Op, Rank, Shape, Stage};

use super::{Replicas, Scatter};
use crate::lengths::Lengths;
use crate::{Inputs, Links, StepError};

/// All lengths of `N` runs, by (stage, micro-batch): those of one operation lie side by side, as a pass with `N`
/// lanes reads them.
#[derive(Clone, Debug)]
pub(super) struct Draw<const N: usize> {
    /// From one stage to the next: odd, so that stages do not begin in the same few sets of the cache.
    stride: usize,
    /// Of `F`, `B`, `I`, `W`; empty where no rank has a time for pairs.
    factors: [Vec<[f64; N]>; 4],
    /// Of the same: the operation's own length and that of its message.
    lengths: [Vec<[[u64; N]; 2]>; 4],
    /// By rank.
    pub(super) updates: Vec<[u64; N]>,
    /// Whether messages can be timed as they are made; see [`crate::FifoStep::new`].
    pub(super) is_exact_without_clock: bool,
}

impl<const N: usize> Draw<N> {
    /// Draws `N` runs, from run number `first` on.
    pub(super) fn new(replicas: Replicas<'_>, first: u64) -> Result<Self, StepError> {
        let (shape, costs) = (replicas.inputs.shape(), replicas.inputs.costs());
        let stride = shape.micro_batches() | 1;
        let places = shape.stages() * stride;
        let has_pairs = costs.ranks.iter().any(|rank| rank.overlapped_pair.is_some());
        let mut draw = Self {
            stride,
            factors: [(); 4].map(|()| vec![[1.0; N]; if has_pairs { places } else { 0 }]),
            lengths: [(); 4].map(|()| vec![[[0; N]; 2]; places]),
            updates: vec![[0; N]; shape.ranks()],
            is_exact_without_clock: false,
        };
        for lane in 0..N {
            draw.draw_lane(replicas, first + lane as u64, lane);
            draw.check_sum(replicas.inputs, lane)?;
        }
        draw.is_exact_without_clock = draw.is_exact_without_clock(replicas.inputs, has_pairs);
        Ok(draw)
    }

    fn draw_lane(&mut self, replicas: Replicas<'_>, run: u64, lane: usize) {
        let (shape, costs) = (replicas.inputs.shape(), replicas.inputs.costs());
        let streams = Streams::new(replicas.jitter.seed);
        let stream = |purpose: &str, rank: Rank| streams.stream(purpose, (run << 16) | u64::from(rank.0));
        for rank in (0..shape.ranks() as u16).map(Rank) {
            for (kind, purpose, scatter) in replicas.kinds() {
                let (scatter, mut rng) = (&scatter[rank.index()], stream(purpose, rank));
                for op in ops(shape, rank, kind) {
                    let (place, factor) = (self.place(op), scatter.draw(&mut rng));
                    if let Some(kept) = self.factors[number(kind)].get_mut(place) {
                        kept[lane] = factor;
                    }
                    let usual = costs.duration(op).as_nanos();
                    self.lengths[number(kind)][place][0][lane] = stretched(usual, factor);
                }
            }
            for (kind, purpose, links) in replicas.links() {
                let mut rng = stream(purpose, rank);
                for op in ops(shape, rank, kind) {
                    let place = self.place(op);
                    if let Some((to, message)) = costs.message(shape, op) {
                        let factor = links.between(rank, shape.rank_of(to)).draw(&mut rng);
                        let length = stretched(message.time.as_nanos(), factor);
                        for maker in makers(kind) {
                            self.lengths[number(*maker)][place][1][lane] = length;
                        }
                    }
                }
            }
            let factor = replicas.jitter.update[rank.index()].draw(&mut stream("step.update", rank));
            let usual = costs.ranks[rank.index()].update.as_nanos();
            self.updates[rank.index()][lane] = stretched(usual, factor);
        }
    }

    /// Refuses sums that the loops could not add up.
    fn check_sum(&self, inputs: &Inputs, lane: usize) -> Result<(), Overflow> {
        let lengths = self.lengths.iter().flatten().flatten().chain(&self.updates);
        let mut lengths = lengths.map(|lanes| Duration::from_nanos(lanes[lane]));
        let sum = lengths.try_fold(inputs.costs().setup, Duration::plus)?;
        // The loops count from a base of their own.
        sum.plus(Duration::from_nanos(i64::MAX as u64 + 1))?;
        Ok(())
    }

    /// Which loop is exact.
    fn is_exact_without_clock(&self, inputs: &Inputs, has_pairs: bool) -> bool {
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let takes_time = |op: Op| {
            let lengths = || self.lengths[number(op.kind)][self.place(op)][0];
            costs.message(shape, op).is_none() || lengths().iter().all(|&length| length > 0)
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

impl<const N: usize> Lengths<N> for &Draw<N> {
    #[inline]
    fn op(&self, op: Op, _usual: u64) -> [u64; N] {
        self.lengths[number(op.kind)][self.place(op)][0]
    }

    #[inline]
    fn message(&self, op: Op, _usual: u64) -> [u64; N] {
        self.lengths[number(op.kind)][self.place(op)][1]
    }

    /// A pair takes its usual length times the mean of its halves' factors.
    fn pair(&self, first: Op, second: Op, usual: u64) -> [u64; N] {
        let factors = [first, second].map(|op| self.factors[number(op.kind)][self.place(op)]);
        std::array::from_fn(|lane| stretched(usual, f64::midpoint(factors[0][lane], factors[1][lane])))
    }
}

/// A length times a factor, to the nearest nanosecond. What does not fit is refused by [`Draw::check_sum`].
fn stretched(length: u64, factor: f64) -> u64 {
    if Scatter::Fixed(factor) == Scatter::NONE {
        return length;
    }
    (length as f64 * factor).round() as u64
}

/// One kind of operation on all stages of a rank, in an order that depends on the shape alone.
fn ops(shape: &Shape, rank: Rank, kind: Kind) -> impl Iterator<Item = Op> + '_ {
    shape.stages_of(rank).flat_map(move |stage: Stage| {
        shape.micro_batches_of(stage).map(move |i| Op::new(kind, stage, MicroBatch(i)))
    })
}

const fn number(kind: Kind) -> usize {
    match kind {
        Kind::Forward => 0,
        Kind::Backward => 1,
        Kind::InputGradient => 2,
        Kind::WeightGradient => 3,
    }
}

/// The kinds of operations that make the same kind of message.
const fn makers(kind: Kind) -> &'static [Kind] {
    match kind {
        Kind::Forward => &[Kind::Forward],
        _ => &[Kind::Backward, Kind::InputGradient],
    }
}
