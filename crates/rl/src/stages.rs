//! The stages of a round, as they are given: rollout engines, scoring pools, update, weight synchronisation.
//!
//! One idea: each stage has the times it takes at speed 1 and a speed, so that a sweep, and the search for
//! the bottleneck, change one number. Nothing here computes; see [`crate::costs`] for what it lowers to.

use pipestep_engine::{Bytes, Duration, Rate};

use crate::{Distribution, Fraction, RoutingRecord};

/// Engines that generate responses by continuous batching: a slot frees when its response ends.
///
/// An engine decodes in iterations: every response in its slots gains one token, and responses join and leave
/// between iterations. The time of an iteration depends on how many responses take part.
#[derive(Clone, Debug, PartialEq)]
pub struct Rollout {
    /// Engines, all alike.
    pub engines: u32,
    /// Responses an engine runs side by side at most.
    pub slots: u32,
    /// Time of one iteration, and so per token of each response.
    pub token_time: TokenTime,
    /// Tokens of a response, at least 1.
    pub lengths: Distribution,
    /// Tokens of a prompt.
    pub prompt_tokens: u64,
    /// Time per token of the prompt (and, when keys and values are recomputed, of the response so far)
    /// before a response decodes. Its slot is taken; the others go on. A prefill under way when its engine
    /// stands still ends when it would have.
    pub prefill_per_token: Duration,
    /// Further time to take up a response that was cut and lost its keys and values.
    pub resume: Duration,
    /// Responses raced for each sample: the first to end is taken, its rivals are aborted. 1: no race.
    pub copies: u32,
    /// How many times faster than these times it is.
    pub speed: Fraction,
}

/// Time of one decoding iteration by the number of responses in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenTime {
    /// `base + per_response * n`.
    Linear {
        /// Whatever the number is (reading the weights).
        base: Duration,
        /// For each response (reading its keys and values).
        per_response: Duration,
    },
    /// Measured points `(n, time)` by rising n; between them a straight line, outside them the nearest.
    Table(Vec<(u32, Duration)>),
}

/// A pool of workers that score samples, in order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct ScoringPool {
    /// Its name in reports.
    pub name: String,
    /// What it is.
    pub kind: ScorerKind,
    /// Samples scored side by side.
    pub workers: u32,
    /// Time of one sample on one worker.
    pub time: ScoringTime,
    /// How many times faster than these times it is.
    pub speed: Fraction,
}

/// What a scoring pool is; it names it in reports and changes nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScorerKind {
    /// Rules on CPU workers.
    Rules,
    /// A reward (or reference, or teacher) model.
    RewardModel,
    /// A verifier: tests in a sandbox, a proof checker.
    Verifier,
}

/// Time to score one sample.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoringTime {
    /// A draw in nanoseconds, one for each sample, the same in every mode.
    Sampled(Distribution),
    /// By the tokens of prompt and response.
    PerToken {
        /// Whatever the length.
        fixed: Duration,
        /// For each token.
        per_token: Duration,
    },
}

/// The update: the batch in equal mini-steps (the first ones take one sample more if it does not divide).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// Mini-steps of an update.
    pub mini_steps: u32,
    /// From having the samples (of the batch, or in stream mode of the mini-step) to being able to start on
    /// them: moving them, or devices that migrate. It does not occupy the trainer.
    pub handoff: Duration,
    /// What each sample brings along besides its tokens, which takes time on a link before `handoff`.
    pub record: Option<RoutingRecord>,
    /// Before the first mini-step, on the trainer: for example old log-probabilities.
    pub prepare: Duration,
    /// Time of a mini-step.
    pub time: UpdateTime,
    /// After the last mini-step: for example reduction and optimizer.
    pub finish: Duration,
    /// How many times faster than these times it is.
    pub speed: Fraction,
}

/// Time of one mini-step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpdateTime {
    /// Always the same.
    Fixed(Duration),
    /// Each mini-step its own.
    Each(Vec<Duration>),
    /// By the tokens of its prompts and responses.
    PerToken {
        /// Whatever they are.
        fixed: Duration,
        /// For each token.
        per_token: Duration,
    },
    /// That of a (simulated) step with so many tokens, in proportion to the tokens.
    Scaled {
        /// Time of that step.
        step: Duration,
        /// Its tokens.
        tokens: u64,
    },
}

/// How new weights reach the engines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WeightSync {
    /// How long it takes.
    pub time: SyncTime,
    /// Who waits.
    pub style: SyncStyle,
    /// How many times faster than these times it is.
    pub speed: Fraction,
}

/// How long a weight synchronisation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SyncTime {
    /// The pause of all engines ([`SyncStyle::Blocking`]) or of each ([`SyncStyle::Staggered`]).
    Fixed(Duration),
    /// Bytes over bandwidth.
    Transfer(Transfer),
}

/// Weights sent over links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// What is sent to the engines.
    pub payload: Payload,
    /// Whether each receiver gets everything or only what it holds.
    pub content: SyncContent,
    /// Whether the sender sends once to each receiver or once to all.
    pub fan_out: FanOut,
    /// What the sending side sends, all together.
    pub send: Rate,
    /// What one receiver takes; `None`: as fast as it is sent.
    pub receive: Option<Rate>,
    /// Start-up time of a transfer.
    pub setup: Duration,
}

/// The weights and who holds them: a part that every rank of an engine holds, and experts divided among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Weights that every rank holds.
    pub common: Bytes,
    /// Weights of all experts.
    pub experts: Bytes,
    /// Experts in every layer; they are divided among the ranks as evenly as they go. Ignored without
    /// expert weights.
    pub expert_count: u32,
    /// Receiving ranks of an engine (its expert-parallel size).
    pub ranks: u32,
}

/// What each receiver gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncContent {
    /// All weights.
    Whole,
    /// The common part and its own experts.
    OwnShards,
}

/// How often the sender sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FanOut {
    /// Once for each receiver.
    Unicast,
    /// Once for all engines, who pass it on.
    Broadcast,
}

/// Who waits for a weight synchronisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncStyle {
    /// All engines and the trainer, until all have the weights.
    Blocking,
    /// One engine after the other; the trainer goes on.
    Staggered,
}
