//! What breaks in a round, as it is given: engines, single responses, scorers, the whole job.
//!
//! One idea: a fault is an instant, what goes down, for how long, and what is lost. How the world reacts is in
//! [`crate::breakdown`].

use pipestep_engine::{Duration, Time};

/// Everything that breaks. [`Faults::none`] for nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Engines that fail at given instants.
    pub engine_failures: Vec<EngineFailure>,
    /// Engines that fail at random.
    pub random_engine_failures: Option<RandomFailures>,
    /// Mean time to the interruption of one running response (an environment that crashes, a preempted
    /// request): the response is thrown away. A response of length t survives with `e^(-t / mean)`, so long
    /// ones are lost more often. `None`: never.
    pub mean_time_to_interruption: Option<Duration>,
    /// Scorers that stop.
    pub scorer_stops: Vec<ScorerStop>,
    /// Restarts of the whole job.
    pub restarts: Vec<Restart>,
}

impl Faults {
    /// Nothing breaks.
    pub fn none() -> Self {
        Self::default()
    }
}

/// An engine that fails once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineFailure {
    /// Which, from 0.
    pub engine: u32,
    /// When.
    pub at: Time,
    /// For how long; it comes back with the newest weights that were synchronised.
    pub down: Duration,
    /// What becomes of its responses.
    pub responses: Survival,
}

/// Engines that fail at random, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomFailures {
    /// Mean time an engine works until it fails (exponential).
    pub mean_time: Duration,
    /// How long it is down.
    pub down: Duration,
    /// What becomes of its responses.
    pub responses: Survival,
}

/// What becomes of work when its place goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// It is lost and done anew.
    Lost,
    /// What was generated is kept; responses continue (elsewhere, if need be) after recomputing their keys
    /// and values.
    Kept,
}

/// A scoring pool that stops; what it was scoring is scored anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScorerStop {
    /// Which pool, from 0.
    pub pool: usize,
    /// From when.
    pub at: Time,
    /// For how long; `None`: for good.
    pub down: Option<Duration>,
}

/// A restart of the whole job: everything stops; an update under way starts again from its first mini-step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Restart {
    /// When.
    pub at: Time,
    /// How long until it works again (detection and recovery).
    pub down: Duration,
    /// Whether responses and scored samples that no finished update has used survive.
    pub rollout: Survival,
}
