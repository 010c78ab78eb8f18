//! What a schedule is: a rule that turns a shape (and, for some, costs) into each rank's order.
//!
//! A schedule is one file with one [`Schedule`] and its [`Entry`]; the registry lists it in one line. Nothing
//! else names schedules.

use std::collections::BTreeMap;

use crate::{Kind, Op, Orders, Placement, Rank, Shape, Stage};

/// A rule that orders the operations of a step.
pub trait Schedule: Sync {
    /// Name, source, limits: everything a user reads about it.
    fn entry(&self) -> &'static Entry;

    /// The plan for one shape.
    ///
    /// # Errors
    /// [`Refusal`] if the rule does not cover the shape, saying what it would take.
    fn plan(&self, shape: &Shape, weights: &Weights, options: &Options) -> Result<Plan, Refusal>;
}

/// What a schedule says about itself. The tables in `schedule list` and in the docs are printed from it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in scenarios, in lower case with hyphens.
    pub name: &'static str,
    /// Other names that are accepted.
    pub aliases: &'static [&'static str],
    /// One line for a reader who has never heard of it.
    pub summary: &'static str,
    /// Where the rule comes from: paper or program.
    pub source: &'static str,
    /// Which shapes it takes, in words.
    pub constraints: &'static str,
    /// Its peak of saved activations, as a formula in p, m, v.
    pub memory: &'static str,
    /// Its bubble for equal stages and free transfers, as a formula.
    pub bubble: &'static str,
    /// How it lays stages on ranks.
    pub placement: Placement,
    /// How many chunks a rank may hold.
    pub chunks: Chunks,
    /// Whether it splits the backward into `I` and `W`.
    pub splits_backward: bool,
    /// Whether its order depends on costs.
    pub uses_weights: bool,
    /// The class in `torch.distributed.pipelining` that runs the same order.
    pub torch: Option<&'static str>,
    /// What a user can set.
    pub options: &'static [OptionSpec],
    /// The most that a rank holds under these options, in saved activations of a stage: each (stage, micro-batch)
    /// counts 1 from its `F` to its `B` or `W`, all stages being alike.
    pub peak: fn(&Shape, &Options) -> u64,
}

/// How many chunks (virtual stages) of the model a rank may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunks {
    /// Exactly this many.
    Exactly(u16),
    /// Any number.
    Any,
    /// Any even number.
    Even,
}

impl Chunks {
    /// Whether a rank may hold so many.
    pub const fn allows(self, count: u64) -> bool {
        match self {
            Self::Exactly(only) => count == only as u64,
            Self::Any => count > 0,
            Self::Even => count > 0 && count.is_multiple_of(2),
        }
    }
}

/// One option of a schedule, a key of `[pipeline]`.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// The key.
    pub name: &'static str,
    /// What the key does.
    pub meaning: &'static str,
    /// The words it takes, numbered from 0; empty for a whole number.
    pub choices: &'static [&'static str],
    /// What holds when it is not set, in words (`"reverse"`, `"ranks"`).
    pub default: &'static str,
}

/// The options that a user has set, by name. A word travels as its number in [`OptionSpec::choices`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(pub BTreeMap<String, u64>);

impl Options {
    /// The value of an option, if it was set.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }
}

/// Costs as plain numbers, for the schedules that look at them. Lists are by stage, times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Weights {
    /// Length of each stage's `F`.
    pub forward: Vec<u64>,
    /// Length of each stage's `B`.
    pub backward: Vec<u64>,
    /// Length of each stage's `I`.
    pub input_gradient: Vec<u64>,
    /// Length of each stage's `W`.
    pub weight_gradient: Vec<u64>,
    /// Time of a message from each stage to the next; 0 on the same rank and for the last stage.
    pub activation: Vec<u64>,
    /// Time of a message from each stage to the one before; 0 on the same rank and for the first stage.
    pub gradient: Vec<u64>,
    /// Bytes that each stage saves for one micro-batch from `F` to `B` (or `W`).
    pub saved: Vec<u64>,
    /// The part of them that is freed at the end of `I`; negative if `I` adds to them.
    pub released_at_input_gradient: Vec<i64>,
    /// The most saved bytes that each rank may hold, if there is a limit.
    pub limit: Option<Vec<u64>>,
}

impl Weights {
    /// Unit costs for every stage of a shape: F = I = W = 1, B = 2, free messages, one byte a stage.
    pub fn unit(shape: &Shape) -> Self {
        let all = |value| vec![value; shape.stages()];
        Self {
            forward: all(1),
            backward: all(2),
            input_gradient: all(1),
            weight_gradient: all(1),
            activation: all(0),
            gradient: all(0),
            saved: all(1),
            released_at_input_gradient: vec![0; shape.stages()],
            limit: None,
        }
    }

    /// How long an operation of this kind takes on a stage, in ns.
    pub fn length(&self, kind: Kind, stage: Stage) -> u64 {
        let lengths = match kind {
            Kind::Forward => &self.forward,
            Kind::Backward => &self.backward,
            Kind::InputGradient => &self.input_gradient,
            Kind::WeightGradient => &self.weight_gradient,
        };
        lengths[stage.index()]
    }

    /// How long the result of an operation of this kind travels from a stage, in ns.
    pub fn travel(&self, kind: Kind, stage: Stage) -> u64 {
        match kind {
            Kind::Forward => self.activation[stage.index()],
            Kind::Backward | Kind::InputGradient => self.gradient[stage.index()],
            Kind::WeightGradient => 0,
        }
    }

    /// By how much an operation of this kind changes the saved bytes of its rank.
    pub fn change(&self, kind: Kind, stage: Stage) -> i64 {
        let saved = i64::try_from(self.saved[stage.index()]).unwrap_or(i64::MAX);
        let released = self.released_at_input_gradient[stage.index()];
        match kind {
            Kind::Forward => saved,
            Kind::Backward => -saved,
            Kind::InputGradient => released.saturating_neg(),
            Kind::WeightGradient => released.saturating_sub(saved),
        }
    }
}

/// What a schedule decided.
pub enum Plan {
    /// Every rank's order, known before the step begins.
    Fixed(Orders),
    /// A policy that is asked whenever a rank is idle.
    Online(Box<dyn Policy>),
}

/// Chooses operations while the step runs.
pub trait Policy: Send {
    /// Called when `rank` is idle, and again whenever an input of one of its operations has arrived. What it
    /// returns as [`Choice::Run`] is settled: the rank waits for its inputs and runs it. After a paired
    /// operation it is asked for the partner at once.
    fn next(&mut self, rank: Rank, ready: &dyn Ready) -> Choice;
}

/// What a policy wants a rank to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Run this operation, now or as soon as its inputs are there.
    Run(Op),
    /// Nothing for now; ask again when an input has arrived.
    Wait,
    /// Nothing any more.
    Done,
}

/// What a policy may ask about the step so far.
pub trait Ready {
    /// Whether all inputs of an operation are there (its rank's being idle aside).
    fn is_ready(&self, op: Op) -> bool;
}

/// Why a schedule does not take a shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The rule does not cover these numbers.
    #[error("`{schedule}` {expected}; found {found}")]
    Shape {
        /// The schedule.
        schedule: &'static str,
        /// What it takes: `needs micro_batches >= ranks`.
        expected: String,
        /// What it got: `micro_batches = 3, ranks = 4`.
        found: String,
    },
    /// No order of this kind stays below the memory limit.
    #[error("`{schedule}` finds no order within the memory limit of rank {rank}: {reason}")]
    Memory {
        /// The schedule.
        schedule: &'static str,
        /// The rank that binds.
        rank: Rank,
        /// What would be needed.
        reason: String,
    },
}
