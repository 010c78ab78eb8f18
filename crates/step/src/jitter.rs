//! Steps whose lengths scatter: every operation and message is its usual length times a factor, drawn anew.
//!
//! A factor is drawn for each (run, kind, stage, micro-batch) from the stream of its kind, run and rank, in an order
//! that depends on the shape alone. So a run is the same whatever other runs there are and on however many threads,
//! and two schedules of one shape meet the same luck, which makes their difference surer than either.
//!
//! Where messages can be timed as they are made, several runs go through the clock-free pass side by side; each
//! other run takes the event engine. Deliberately absent: means and percentiles, which are the report's.

use std::ops::Range;
use std::sync::Arc;

use pipestep_engine::{Duration, Overflow, Streams, Time};
use pipestep_schedule::{Kind, MicroBatch, Op, Orders, Policy, Rank, Shape, Stage};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal, StandardUniform};

use crate::dataflow::wave::{Run, Wave};
use crate::lengths::Lengths;
use crate::online::{Runner, count};
use crate::rows::Rows;
use crate::times::Tally;
use crate::{InputError, Inputs, Links, StepError, UpdateAfter};

/// Runs that go through the clock-free pass side by side.
const LANES: usize = 8;

/// What each operation and message of a step is multiplied with, drawn anew for each.
///
/// Slow ranks and links that are slow in every run are part of the step's costs already.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// Of `F`, by rank.
    pub forward: Vec<Scatter>,
    /// Of `B`, by rank.
    pub backward: Vec<Scatter>,
    /// Of `I`, by rank.
    pub input_gradient: Vec<Scatter>,
    /// Of `W`, by rank.
    pub weight_gradient: Vec<Scatter>,
    /// Of `U`, by rank.
    pub update: Vec<Scatter>,
    /// Of activation messages.
    pub activation: LinkScatter,
    /// Of gradient messages.
    pub gradient: LinkScatter,
    /// How many runs.
    pub runs: u32,
    /// The seed of every draw.
    pub seed: u64,
}

impl Jitter {
    /// Whether anything is drawn at all, or longer than usual.
    pub fn scatters(&self) -> bool {
        let ranks =
            [&self.forward, &self.backward, &self.input_gradient, &self.weight_gradient, &self.update];
        let links = [&self.activation, &self.gradient];
        let of_ranks = ranks.into_iter().flatten();
        let of_links = links.into_iter().flat_map(|link| link.boundaries.iter().chain([&link.others]));
        of_ranks.chain(of_links).any(|scatter| *scatter != Scatter::NONE)
    }
}

/// The scatter of one kind of message.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkScatter {
    /// By the boundary k between ranks k and k+1.
    pub boundaries: Vec<Scatter>,
    /// Between ranks that are not neighbours.
    pub others: Scatter,
}

/// A distribution of factors.
#[derive(Clone, Debug, PartialEq)]
pub enum Scatter {
    /// Always the same; 1 for no scatter.
    Fixed(f64),
    /// Normal, cut off at zero.
    Normal {
        /// The mean, before the cut.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Lognormal.
    Lognormal {
        /// The mean.
        mean: f64,
        /// Standard deviation over mean.
        variation: f64,
    },
    /// Uniform.
    Uniform {
        /// The least.
        low: f64,
        /// The greatest; not below `low`.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// One of these, each as likely; there is at least one.
    Empirical(Arc<[f64]>),
}

impl Scatter {
    /// No scatter.
    pub const NONE: Self = Self::Fixed(1.0);

    /// One factor; not below zero.
    fn draw(&self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Fixed(factor) => *factor,
            Self::Normal { mean, deviation } => {
                let unit: f64 = StandardNormal.sample(rng);
                (mean + deviation * unit).max(0.0)
            }
            Self::Lognormal { mean, variation } => {
                let square = (variation * variation).ln_1p();
                let unit: f64 = StandardNormal.sample(rng);
                mean * (square.sqrt() * unit - square / 2.0).exp()
            }
            Self::Uniform { low, high } => {
                let unit: f64 = StandardUniform.sample(rng);
                low + (high - low) * unit
            }
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::Empirical(factors) => factors[rng.random_range(0..factors.len())],
        }
    }
}

/// A step whose lengths scatter.
#[derive(Clone, Copy, Debug)]
pub struct Replicas<'a> {
    inputs: &'a Inputs,
    jitter: &'a Jitter,
}

impl<'a> Replicas<'a> {
    /// The runs of a step.
    ///
    /// # Errors
    /// [`InputError::Length`] for a list of another length than there are ranks or boundaries.
    pub fn new(inputs: &'a Inputs, jitter: &'a Jitter) -> Result<Self, InputError> {
        let ranks = inputs.shape().ranks();
        let lists = [
            ("scatter of forwards by rank", ranks, jitter.forward.len()),
            ("scatter of backwards by rank", ranks, jitter.backward.len()),
            ("scatter of input gradients by rank", ranks, jitter.input_gradient.len()),
            ("scatter of weight gradients by rank", ranks, jitter.weight_gradient.len()),
            ("scatter of updates by rank", ranks, jitter.update.len()),
            ("scatter of activations by boundary", ranks - 1, jitter.activation.boundaries.len()),
            ("scatter of gradients by boundary", ranks - 1, jitter.gradient.boundaries.len()),
        ];
        match lists.into_iter().find(|(_, expected, found)| expected != found) {
            Some((what, expected, found)) => Err(InputError::Length { what, expected, found }),
            None => Ok(Self { inputs, jitter }),
        }
    }

    /// The makespan of each of these runs of fixed orders.
    ///
    /// # Errors
    /// [`StepError::Order`] if the orders are not right for the step or deadlock; [`StepError::Overflow`] if the
    /// lengths of a run add up to more than 2^63 ns.
    pub fn of_orders(self, orders: &Orders, runs: Range<u64>) -> Result<Vec<Time>, StepError> {
        orders.validate(self.inputs.shape())?;
        let (mut rows, mut wide, mut narrow) =
            (Rows::default(), Wave::<LANES>::default(), Wave::<1>::default());
        rows.compile(self.inputs);
        let mut makespans = Vec::with_capacity((runs.end.saturating_sub(runs.start)) as usize);
        let mut next = runs.start;
        while next < runs.end {
            if runs.end - next >= LANES as u64 {
                let draws = self.draws(next)?;
                if draws.iter().all(|draw| draw.is_exact_without_clock) {
                    let (lengths, observer) = (SideBySide(&draws), ());
                    wide.run(&mut Run { inputs: self.inputs, rows: &rows, orders, lengths, observer })?;
                    let of_lane = |(lane, draw)| self.makespan(wide.tallies(lane), draw);
                    makespans.extend(draws.iter().enumerate().map(of_lane));
                    next += LANES as u64;
                    continue;
                }
            }
            let draw = self.draw(next)?;
            makespans.push(if draw.is_exact_without_clock {
                let (lengths, observer) = (Alone(&draw), ());
                narrow.run(&mut Run { inputs: self.inputs, rows: &rows, orders, lengths, observer })?;
                self.makespan(narrow.tallies(0), &draw)
            } else {
                let tallies = count(self.inputs, Alone(&draw), Runner::Orders(orders))?;
                self.makespan(tallies.into_iter(), &draw)
            });
            next += 1;
        }
        Ok(makespans)
    }

    /// The makespan of one run whose operations a policy chooses as it goes.
    ///
    /// # Errors
    /// [`StepError`] if the policy stops early, or as for [`Replicas::of_orders`].
    pub fn of_policy(self, policy: Box<dyn Policy + '_>, run: u64) -> Result<Time, StepError> {
        let draw = self.draw(run)?;
        let tallies = count(self.inputs, Alone(&draw), Runner::Policy(policy))?;
        Ok(self.makespan(tallies.into_iter(), &draw))
    }

    fn draws(self, first: u64) -> Result<[Draw; LANES], StepError> {
        let drawn: Result<Vec<Draw>, StepError> =
            (first..first + LANES as u64).map(|run| self.draw(run)).collect();
        Ok(drawn?.try_into().unwrap_or_else(|_| unreachable!("there is one draw a lane")))
    }

    /// All lengths of one run.
    fn draw(self, run: u64) -> Result<Draw, StepError> {
        let (shape, costs) = (self.inputs.shape(), self.inputs.costs());
        let streams = Streams::new(self.jitter.seed);
        let stream = |purpose: &str, rank: Rank| streams.stream(purpose, (run << 16) | u64::from(rank.0));
        let places = shape.stages() * shape.micro_batches();
        let has_pairs = costs.ranks.iter().any(|rank| rank.overlapped_pair.is_some());
        let mut draw = Draw {
            micro_batches: shape.micro_batches(),
            factors: [(); 4].map(|()| vec![1.0; if has_pairs { places } else { 0 }]),
            lengths: [(); 4].map(|()| vec![0; places]),
            messages: [(); 2].map(|()| vec![0; places]),
            updates: Vec::with_capacity(shape.ranks()),
            is_exact_without_clock: true,
        };
        for rank in (0..shape.ranks() as u16).map(Rank) {
            for (kind, purpose, scatter) in self.kinds() {
                let (scatter, mut rng) = (&scatter[rank.index()], stream(purpose, rank));
                draw.each(shape, rank, kind, |op| (scatter.draw(&mut rng), costs.duration(op).as_nanos()));
            }
            for (kind, purpose, links) in self.links() {
                let mut rng = stream(purpose, rank);
                draw.each_message(shape, rank, kind, |op| {
                    let (to, message) = costs.message(shape, op)?;
                    let scatter = links.between(rank, shape.rank_of(to));
                    Some(stretched(message.time.as_nanos(), scatter.draw(&mut rng)))
                });
            }
            let factor = self.jitter.update[rank.index()].draw(&mut stream("step.update", rank));
            draw.updates.push(stretched(costs.ranks[rank.index()].update.as_nanos(), factor));
        }
        draw.check(self.inputs, has_pairs)?;
        Ok(draw)
    }

    fn kinds(self) -> [(Kind, &'static str, &'a [Scatter]); 4] {
        let jitter = self.jitter;
        [
            (Kind::Forward, "step.forward", &jitter.forward),
            (Kind::Backward, "step.backward", &jitter.backward),
            (Kind::InputGradient, "step.input_gradient", &jitter.input_gradient),
            (Kind::WeightGradient, "step.weight_gradient", &jitter.weight_gradient),
        ]
    }

    fn links(self) -> [(Kind, &'static str, &'a LinkScatter); 2] {
        let jitter = self.jitter;
        [
            (Kind::Forward, "step.activation", &jitter.activation),
            (Kind::Backward, "step.gradient", &jitter.gradient),
        ]
    }

    /// Rule 3 with the drawn updates.
    fn makespan(self, tallies: impl Iterator<Item = Tally>, draw: &Draw) -> Time {
        let ends: Vec<u64> = tallies.map(Tally::last_end).collect();
        let gradient = ends.iter().copied().max().unwrap_or(0);
        let updates = ends.iter().zip(&draw.updates).map(|(&end, &update)| match self.inputs.update_after {
            UpdateAfter::All => gradient + update,
            UpdateAfter::Own => end + update,
        });
        Time::from_nanos(updates.max().unwrap_or(gradient).max(gradient))
    }
}

impl LinkScatter {
    fn between(&self, from: Rank, to: Rank) -> &Scatter {
        let (low, high) = (from.index().min(to.index()), from.index().max(to.index()));
        if high - low == 1 { &self.boundaries[low] } else { &self.others }
    }
}

/// A length times a factor, to the nearest nanosecond. What does not fit is refused by [`Draw::check`].
fn stretched(length: u64, factor: f64) -> u64 {
    if Scatter::Fixed(factor) == Scatter::NONE {
        return length;
    }
    (length as f64 * factor).round() as u64
}

/// All lengths of one run, by (stage, micro-batch).
struct Draw {
    micro_batches: usize,
    /// Of `F`, `B`, `I`, `W`; empty where no rank has a time for pairs.
    factors: [Vec<f64>; 4],
    lengths: [Vec<u64>; 4],
    /// Activations and gradients.
    messages: [Vec<u64>; 2],
    /// By rank.
    updates: Vec<u64>,
    /// Whether messages can be timed as they are made; see [`crate::FifoStep::new`].
    is_exact_without_clock: bool,
}

impl Draw {
    fn place(&self, op: Op) -> usize {
        op.stage.index() * self.micro_batches + op.micro_batch.index()
    }

    /// Draws one kind of operation on all stages of a rank: a factor, for the usual length.
    fn each(&mut self, shape: &Shape, rank: Rank, kind: Kind, mut of: impl FnMut(Op) -> (f64, u64)) {
        for op in ops(shape, rank, kind) {
            let (place, (factor, usual)) = (self.place(op), of(op));
            if let Some(kept) = self.factors[number(kind)].get_mut(place) {
                *kept = factor;
            }
            self.lengths[number(kind)][place] = stretched(usual, factor);
        }
    }

    fn each_message(&mut self, shape: &Shape, rank: Rank, kind: Kind, mut of: impl FnMut(Op) -> Option<u64>) {
        for op in ops(shape, rank, kind) {
            let place = self.place(op);
            if let Some(length) = of(op) {
                self.messages[message_number(kind)][place] = length;
            }
        }
    }

    /// Refuses sums that the loops could not add up, and finds out which loop is exact.
    fn check(&mut self, inputs: &Inputs, has_pairs: bool) -> Result<(), Overflow> {
        let all = self.lengths.iter().chain(&self.messages).flatten().chain(&self.updates);
        let sum = all.copied().map(Duration::from_nanos).try_fold(inputs.costs().setup, Duration::plus)?;
        // The loops count from a base of their own.
        sum.plus(Duration::from_nanos(i64::MAX as u64 + 1))?;
        let (shape, costs) = (inputs.shape(), inputs.costs());
        let takes_time =
            |op: Op| costs.message(shape, op).is_none() || self.lengths[number(op.kind)][self.place(op)] > 0;
        let senders = [Kind::Forward, Kind::Backward, Kind::InputGradient];
        let ranks = || (0..shape.ranks() as u16).map(Rank);
        self.is_exact_without_clock = inputs.links == Links::Unlimited
            || (crate::FifoStep::new(inputs).is_some()
                && !has_pairs
                && ranks().all(|rank| senders.iter().all(|&kind| ops(shape, rank, kind).all(takes_time))));
        Ok(())
    }

    fn op(&self, op: Op) -> u64 {
        self.lengths[number(op.kind)][self.place(op)]
    }

    fn message(&self, op: Op) -> u64 {
        self.messages[message_number(op.kind)][self.place(op)]
    }

    /// A pair takes its usual length times the mean of its halves' factors.
    fn pair(&self, first: Op, second: Op, usual: u64) -> u64 {
        let factor = |op: Op| self.factors[number(op.kind)][self.place(op)];
        stretched(usual, f64::midpoint(factor(first), factor(second)))
    }
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

const fn message_number(kind: Kind) -> usize {
    match kind {
        Kind::Forward => 0,
        _ => 1,
    }
}

/// Runs side by side.
struct SideBySide<'a>(&'a [Draw; LANES]);

impl Lengths<LANES> for SideBySide<'_> {
    #[inline]
    fn op(&self, _place: usize, op: Op, _usual: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| self.0[lane].op(op))
    }

    #[inline]
    fn message(&self, _place: usize, op: Op, _usual: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| self.0[lane].message(op))
    }

    fn pair(&self, first: Op, second: Op, usual: u64) -> [u64; LANES] {
        std::array::from_fn(|lane| self.0[lane].pair(first, second, usual))
    }
}

/// One run on its own.
struct Alone<'a>(&'a Draw);

impl Lengths<1> for Alone<'_> {
    fn op(&self, _place: usize, op: Op, _usual: u64) -> [u64; 1] {
        [self.0.op(op)]
    }

    fn message(&self, _place: usize, op: Op, _usual: u64) -> [u64; 1] {
        [self.0.message(op)]
    }

    fn pair(&self, first: Op, second: Op, usual: u64) -> [u64; 1] {
        [self.0.pair(first, second, usual)]
    }
}
