//! What a simulation of rounds is given: the mode, the batch, and how samples are chosen.
//!
//! One idea: plain public data, a field for each key a scenario can write; nothing here computes. The stages
//! themselves are in [`crate::stages`], what can break in [`crate::faults`], memory in [`crate::memory`].
//! Deliberately absent: defaults for choices that the user should make.

use pipestep_engine::Duration;

use crate::Fraction;
use crate::faults::Faults;
use crate::memory::ColocatedMemory;
use crate::stages::{Rollout, ScoringPool, Update, WeightSync};

/// Everything a simulation of rounds needs.
#[derive(Clone, Debug, PartialEq)]
pub struct RlInputs {
    /// How the stages overlap.
    pub mode: Mode,
    /// Samples an update trains on.
    pub batch: u32,
    /// Samples launched a round; more than `batch` is over-sampling: the first `batch` that are certain to be
    /// kept make the round, the others are aborted (or cut and continued, in [`Mode::Partial`]). In
    /// [`Mode::Async`] there are no rounds of launches, and it must equal `batch`.
    pub launch: u32,
    /// How many responses each prompt has; `batch` and `launch` are multiples of it.
    pub group: Group,
    /// Updates to measure.
    pub rounds: u32,
    /// Updates before the measurement starts (a pipeline that fills up; 1 is enough for one-step-off).
    pub warmup: u32,
    /// Seed of every random draw.
    pub seed: u64,
    /// The engines that generate.
    pub rollout: Rollout,
    /// The scoring pools, in the order a sample passes through them; none: nothing to wait for.
    pub scoring: Vec<ScoringPool>,
    /// When scoring of a round starts.
    pub scoring_start: ScoringStart,
    /// The update.
    pub update: Update,
    /// How the new weights reach the engines.
    pub sync: WeightSync,
    /// Which scored samples are worth training on.
    pub keep: Keep,
    /// Samples whose first token came from weights more than this many updates old are discarded when the
    /// update would take them (or as soon as that is certain). `None`: never.
    pub discard_older_than: Option<u32>,
    /// Whether rollout and update share their devices.
    pub placement: Placement,
    /// What breaks.
    pub faults: Faults,
    /// What the pools cost, if a cost is wanted.
    pub prices: Option<Prices>,
    /// Other jobs on the same engines and trainer. `None`: they are this job's alone.
    pub sharing: Option<Sharing>,
}

/// Jobs that take turns on one set of engines and one trainer. Each generates and trains in phases ([`Mode::Sync`]),
/// so one can generate while another trains; on colocated devices, one uses them while another is scored. Scoring pools
/// are each job's own.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharing {
    /// How long the engines, the trainer, or the devices that are both, take to change from one job to another.
    pub handoff: Duration,
    /// The jobs besides the one that these inputs describe.
    pub jobs: Vec<SharedJob>,
}

/// A job that shares engines and trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedJob {
    /// Its name in reports.
    pub name: String,
    /// What it is; engines and slots are those of the job it shares with.
    pub inputs: RlInputs,
}

/// The responses to one prompt. An update takes a group as a whole (advantages relative to the group need every
/// score of it), so it is complete when its last member is; groups are kept, dropped and aborted as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Responses that an update needs of each prompt. 1: every response stands for itself.
    pub responses: u32,
    /// Responses launched for each prompt; more than `responses` is over-sampling within the group: the first
    /// to end are taken and the others aborted.
    pub launch: u32,
    /// What the members of a group keep when they are cut and continued.
    pub cut: GroupCut,
}

impl Group {
    /// Every response stands for itself.
    pub const SINGLE: Self = Self { responses: 1, launch: 1, cut: GroupCut::Each };
}

/// What the members of a group keep when they are cut (new weights, the end of a round, an engine that fails)
/// and continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupCut {
    /// Each all of its tokens.
    Each,
    /// Each as many as the shortest of those cut at that instant, so that all go on from the same length.
    Shortest,
}

/// How rollout, scoring and update overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// One after the other: generate, score, update, synchronise.
    Sync,
    /// The next batch is generated while this one is trained on; both wait for the weights. Every sample is
    /// one update old.
    OneStepOff,
    /// Engines generate all the time within a staleness bound; an update starts when a batch is ready.
    Async(AsyncRule),
    /// As `Sync`, but responses still running when the batch is full are cut and continued in the next
    /// round under its weights.
    Partial(KvCache),
    /// As `Sync`, but scoring and the mini-steps of the update start on what is finished.
    Stream,
}

impl Mode {
    /// The name a scenario writes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::OneStepOff => "one-step-off",
            Self::Async(_) => "async",
            Self::Partial(_) => "partial",
            Self::Stream => "stream",
        }
    }

    /// When scoring starts unless the user says otherwise: a round is scored as a whole in `sync` and
    /// `one-step-off`, sample by sample elsewhere.
    pub const fn usual_scoring_start(self) -> ScoringStart {
        match self {
            Self::Sync | Self::OneStepOff => ScoringStart::WholeBatch,
            Self::Async(_) | Self::Partial(_) | Self::Stream => ScoringStart::AsFinished,
        }
    }
}

/// The rules of [`Mode::Async`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsyncRule {
    /// The staleness bound, in batches between two weight synchronisations: after `k` of them at most
    /// `(k + 1 + staleness) * sync_every * batch` samples may have been launched, discarded ones not
    /// counted. The rule of `AReaL` (arXiv 2505.24298, section 5.1) and, with fractions, of verl's fully
    /// asynchronous trainer.
    pub staleness: Fraction,
    /// Updates between two weight synchronisations.
    pub sync_every: u32,
    /// What happens to responses that run when an engine takes new weights.
    pub in_flight: InFlight,
}

/// What happens to responses that run when their engine takes new weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InFlight {
    /// They end first; the engine starts no others until then.
    Drain,
    /// They are cut, and continue under the new weights.
    Continue(KvCache),
    /// They are thrown away and generated anew.
    Abort,
}

/// What becomes of the keys and values of a response that is cut and continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KvCache {
    /// They stay in use: continuing costs nothing.
    Kept,
    /// They are computed again from prompt and response: a prefill, and [`Rollout::resume`].
    Recomputed,
}

/// When scoring starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoringStart {
    /// When the rollout of the round is over.
    WholeBatch,
    /// With each response that ends.
    AsFinished,
}

/// Which scored samples are kept for training. Dropped ones are replaced by further launches until the batch
/// is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// All of them.
    All,
    /// This share, evenly spread: of every 4 scored in a row, 3 are kept at 3/4.
    Evenly(Fraction),
    /// Each with this chance.
    Randomly(Fraction),
}

/// Whether rollout and update share their devices.
#[derive(Clone, Debug, PartialEq)]
pub enum Placement {
    /// Each has its own.
    Separate,
    /// They take turns on the same ones.
    Colocated(Switching),
}

/// What changing between the phases of colocated devices takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Switching {
    /// Time from rollout to training, besides moving memory.
    pub to_training: Duration,
    /// Time from training to rollout, besides moving memory.
    pub to_rollout: Duration,
    /// What lies in the memory of a device, if that matters.
    pub memory: Option<ColocatedMemory>,
}

/// What the pools cost, in any currency, per hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Prices {
    /// One rollout engine (with colocated placement: with all that it is used for).
    pub engine_hour: f64,
    /// The trainer as a whole; not counted with colocated placement.
    pub trainer_hour: f64,
    /// One worker of each scoring pool, in their order.
    pub worker_hour: Vec<f64>,
}
