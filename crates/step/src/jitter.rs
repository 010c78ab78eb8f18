//! Steps whose lengths scatter: every operation and message is its usual length times a factor, drawn anew.
//!
//! A factor is drawn for each (run, kind, stage, micro-batch) from the stream of its kind, run and rank, in an order
//! that depends on the shape alone. So a run is the same whatever other runs there are and on however many threads,
//! and two schedules of one shape meet the same luck, which makes their difference surer than either.
//!
//! Where messages can be timed as they are made, eight runs go through the clock-free pass side by side, or one run
//! alone; each other run takes the event engine. Deliberately absent: means and percentiles, which are the report's.

mod course;
mod draw;
mod lanes;
mod outcome;
mod side_by_side;

use std::ops::Range;
use std::sync::Arc;

use pipestep_engine::Time;
use pipestep_schedule::{Kind, Orders, Policy, Rank};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, Exp1, StandardNormal, StandardUniform};

use self::draw::Draw;
use self::lanes::LANES;
pub use self::side_by_side::SideBySide;
use crate::dataflow::wave::{Run, Wave};
use crate::online::{count_orders, count_policy};
use crate::rows::Rows;
use crate::times::Tally;
use crate::{InputError, Inputs, StepError, UpdateAfter};

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
        let (count, mut alone) = (runs.end.saturating_sub(runs.start), Alone::default());
        let mut wide = if count < LANES as u64 { None } else { SideBySide::new(self, orders)? };
        let mut makespans = Vec::with_capacity(count as usize);
        let mut next = runs.start;
        while next < runs.end {
            let end = runs.end.min(next.saturating_add(LANES as u64));
            if let Some(wide) = wide.as_mut().filter(|_| end - next == LANES as u64) {
                wide.draw(next);
                if let Some(all) = wide.run() {
                    makespans.extend(all);
                    next = end;
                }
            }
            for run in next..end {
                let drawn = Draw::new(self, run)?;
                makespans.push(if let Some(one) = alone.run(self, &drawn, orders)? {
                    one
                } else {
                    let tallies = count_orders(self.inputs, &drawn, orders)?;
                    self.makespan(tallies.into_iter(), &drawn)
                });
            }
            next = end;
        }
        Ok(makespans)
    }

    /// The makespan of one run whose operations a policy chooses as it goes.
    ///
    /// # Errors
    /// [`StepError`] if the policy stops early, or as for [`Replicas::of_orders`].
    pub fn of_policy(self, policy: Box<dyn Policy + '_>, run: u64) -> Result<Time, StepError> {
        let drawn = Draw::new(self, run)?;
        let tallies = count_policy(self.inputs, &drawn, policy)?;
        Ok(self.makespan(tallies.into_iter(), &drawn))
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
    fn makespan(self, tallies: impl Iterator<Item = Tally>, drawn: &Draw) -> Time {
        let ends: Vec<u64> = tallies.map(Tally::last_end).collect();
        let gradient = ends.iter().copied().max().unwrap_or(0);
        let updates = ends.iter().zip(&drawn.updates).map(|(&end, update)| match self.inputs.update_after {
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

/// The clock-free pass for one run, with its memory kept from one call to the next.
#[derive(Clone, Debug, Default)]
struct Alone {
    rows: Rows,
    wave: Wave,
}

impl Alone {
    /// The makespan of a run, or `None` if it needs a clock.
    fn run(
        &mut self,
        replicas: Replicas<'_>,
        lengths: &Draw,
        orders: &Orders,
    ) -> Result<Option<Time>, StepError> {
        if !lengths.is_exact_without_clock {
            return Ok(None);
        }
        let (Self { rows, wave }, inputs) = (self, replicas.inputs);
        rows.compile(inputs);
        let mut run = Run { inputs, rows, orders, lengths, observer: () };
        wave.run(&mut run, &mut ())?;
        Ok(Some(replicas.makespan(wave.tallies(&run), lengths)))
    }
}
