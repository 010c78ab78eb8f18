//! Eight runs of fixed orders at a time.

use pipestep_engine::Time;
use pipestep_schedule::{Op, Orders, Rank};

use super::Replicas;
use super::course::Course;
use super::draw::{Draws, draw, makers};
use super::lanes::{LANES, Lanes};
use crate::{FifoStep, Links, StepError, UpdateAfter};

/// Runs of fixed orders side by side, eight in one pass.
///
/// What depends on the orders alone is found out once, by [`SideBySide::new`]; then every [`SideBySide::draw`] makes the
/// lengths of eight runs, and [`SideBySide::run`] runs them.
#[derive(Clone, Debug)]
pub struct SideBySide<'a> {
    replicas: Replicas<'a>,
    course: Course,
    lengths: Vec<Lanes>,
    /// By rank.
    updates: Vec<Lanes>,
    /// All that each run could take, one after the other.
    sums: [u64; LANES],
    /// Whether an operation of no length sends a message that can queue, in some run.
    needs_clock: bool,
}

impl<'a> SideBySide<'a> {
    /// Runs that go through one pass.
    pub const LANES: usize = LANES;

    /// Makes ready to run these orders, or returns `None` if such runs cannot go side by side: they need a clock (see
    /// [`FifoStep::new`]), or run pairs as one. [`Replicas::of_orders`] takes any.
    ///
    /// # Errors
    /// [`StepError::Order`] if the orders are not right for the step or deadlock.
    pub fn new(replicas: Replicas<'a>, orders: &Orders) -> Result<Option<Self>, StepError> {
        let (inputs, costs) = (replicas.inputs, replicas.inputs.costs());
        let pair_time = |op: &Op| costs.ranks[inputs.shape().rank_of(op.stage).index()].overlapped_pair;
        orders.check_lists(inputs.shape())?;
        if FifoStep::new(inputs).is_none()
            || orders.all().iter().any(|op| op.paired && pair_time(op).is_some())
        {
            return Ok(None);
        }
        let course = Course::new(inputs, orders)?;
        let (lengths, updates) = (Vec::new(), vec![Lanes::ZERO; inputs.shape().ranks()]);
        Ok(Some(Self { replicas, course, lengths, updates, sums: [Lanes::END; LANES], needs_clock: false }))
    }

    /// Draws the lengths of eight runs, from run number `first` on.
    pub fn draw(&mut self, first: u64) {
        self.lengths.resize(self.course.lengths, Lanes::ZERO);
        self.sums = [self.replicas.inputs.costs().setup.as_nanos(); LANES];
        self.needs_clock = false;
        draw(self.replicas, first, self);
    }

    /// The makespan of each of the eight runs that were drawn last, or `None` if some of them must run otherwise: an
    /// operation of no length sends a message, which takes a clock, or lengths add up to 2^53 ns (104 days) or more.
    pub fn run(&self) -> Option<[Time; LANES]> {
        if self.needs_clock || self.sums.iter().any(|&sum| sum >= Lanes::END) {
            return None;
        }
        let inputs = self.replicas.inputs;
        let ends = self.course.run(Lanes::from([inputs.costs().setup.as_nanos(); LANES]), &self.lengths);
        let gradient = ends.iter().fold(Lanes::ZERO, Lanes::latest);
        // Rule 3 with the drawn updates.
        let makespan = ends.iter().zip(&self.updates).fold(gradient, |latest, (end, update)| {
            let start = match inputs.update_after {
                UpdateAfter::All => gradient,
                UpdateAfter::Own => *end,
            };
            latest.latest(&start.plus(update))
        });
        Some(makespan.0.map(|nanos| Time::from_nanos(nanos as u64)))
    }

    fn count(&mut self, lengths: [u64; LANES]) {
        for (sum, length) in self.sums.iter_mut().zip(lengths) {
            *sum = sum.saturating_add(length);
        }
    }
}

impl Draws<LANES> for SideBySide<'_> {
    #[inline]
    fn op(&mut self, op: Op, _factors: [f64; LANES], lengths: [u64; LANES]) {
        self.count(lengths);
        if let Some(place) = self.course.place(op) {
            self.lengths[place] = lengths.into();
        }
    }

    #[inline]
    fn message(&mut self, op: Op, lengths: [u64; LANES]) {
        self.count(lengths);
        for &kind in makers(op.kind) {
            if let Some(place) = self.course.place(Op { kind, ..op }) {
                self.needs_clock |=
                    self.replicas.inputs.links != Links::Unlimited && self.lengths[place].0.contains(&0.0);
                self.lengths[place + 1] = lengths.into();
            }
        }
    }

    fn update(&mut self, rank: Rank, lengths: [u64; LANES]) {
        self.count(lengths);
        self.updates[rank.index()] = lengths.into();
    }
}
