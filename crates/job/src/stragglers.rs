//! What slows useful work down: slow windows, jitter of every rank and step, ranks that become slow and stay
//! so, and what is done about them.
//!
//! A step waits for the slowest of its data-parallel ranks. Its length without stragglers is what useful work
//! is measured in: everything above it is lost to stragglers.

use pipestep_engine::{Duration, Time};

use crate::{Ratio, Spread};

/// What slows useful work down.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stragglers {
    /// Windows in which work takes longer; where several overlap, the largest factor counts.
    pub windows: Vec<SlowWindow>,
    /// The ranks that a step waits for; `None`: a step always takes as long.
    pub ranks: Option<Ranks>,
}

/// A window in which useful work takes `factor` times as long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowWindow {
    /// Its first instant.
    pub from: Time,
    /// The first instant after it.
    pub to: Time,
    /// At least one.
    pub factor: Ratio,
}

/// Data-parallel ranks, the slowest of which a step waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    /// How many there are.
    pub count: u32,
    /// A step without stragglers.
    pub step: Duration,
    /// The part of a step in which no rank computes: it neither jitters nor gets slower.
    pub overhead: Duration,
    /// How the computing time of a rank scatters from step to step.
    pub jitter: Jitter,
    /// Ranks that become slow and stay so.
    pub slow: Option<SlowRanks>,
    /// How a slow rank is noticed; `None`: never.
    pub detection: Option<SlowDetection>,
    /// What is done about it.
    pub response: Response,
}

impl Ranks {
    /// One rank whose steps always take as long.
    pub const fn steady(step: Duration) -> Self {
        Self {
            count: 1,
            step,
            overhead: Duration::ZERO,
            jitter: Jitter::None,
            slow: None,
            detection: None,
            response: Response::Wait,
        }
    }
}

/// How the computing time of a healthy rank scatters, as a multiple of its mean (or base) time. It is noise
/// added to the time of a rank, however much it has to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Jitter {
    /// Not at all.
    None,
    /// Normal around 1.
    Normal {
        /// The standard deviation.
        deviation: f64,
    },
    /// Lognormal with mean 1.
    Lognormal {
        /// Standard deviation over mean.
        variation: f64,
    },
    /// 1 and an exponential tail.
    Exponential {
        /// The mean of the tail.
        tail: f64,
    },
    /// `factor` with a probability, otherwise 1.
    TwoPoint {
        /// How slow a slow step of a rank is.
        factor: f64,
        /// How likely it is.
        probability: f64,
    },
}

/// Ranks that become slow.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRanks {
    /// One rank becomes slow at each of these instants.
    pub at: Vec<Time>,
    /// Until a healthy rank becomes slow, for each rank; `None`: only at the fixed instants.
    pub between: Option<Spread>,
    /// How many times as long it computes, steadily.
    pub factor: Ratio,
    /// How long it stays slow; `None`: until it is replaced.
    pub lasts: Option<Spread>,
}

/// How a slow rank is noticed: the others wait for it at the reduction of the gradients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowDetection {
    /// A rank is suspect in a step if it computes longer than the mean by more than this share of the mean.
    pub threshold: f64,
    /// It is noticed after so many suspect steps in a row.
    pub window: u32,
}

/// What is done about stragglers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Every step waits.
    Wait,
    /// A noticed rank does nothing any more, and the others do its share.
    Redistribute {
        /// Training pauses for the change.
        pause: Duration,
    },
    /// A noticed rank is replaced: the job goes down and back to its newest checkpoint, as in a failure that
    /// loses a machine.
    Evict,
    /// No step waits for its slowest ranks; their gradients are lost.
    Drop {
        /// How many ranks.
        slowest: u32,
    },
    /// No step waits for a noticed rank; its gradient is applied in the step in which it is ready, and it
    /// goes on with the newest weights.
    Stale {
        /// So many steps late a gradient may be: the step that would make it later waits.
        bound: u32,
    },
}
