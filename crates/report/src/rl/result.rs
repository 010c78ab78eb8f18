//! The `rl` part of the JSON contract.
//!
//! Keys that design section 6 names, in its units: integer ns and bytes. What does not apply is left out. All of
//! it covers the measured rounds only.

use pipestep_rl::{
    Cost, Counts, JobOutcome, MemoryMove, MemoryOutcome, Placement, RlOutcome, Round, Split, StageUse,
    SwitchPlan, Tail,
};
use serde::Serialize;

use super::{RlView, mean_and_oldest};

/// Rounds of RL.
#[derive(Clone, Debug, Serialize)]
pub struct RlResult {
    /// How the stages overlap.
    pub mode: &'static str,
    /// From the end of the warm-up to the end of the last update.
    pub elapsed_ns: u64,
    /// Mean time of a round (of an update, in async mode).
    pub round_ns: u64,
    /// The stage that gains most from double speed; left out if none gains anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<String>,
    /// Where the trainer's time went; adds up to `elapsed_ns`.
    pub split: SplitResult,
    /// Every stage in the order of a round.
    pub stages: Vec<StageResult>,
    /// Rounds looked at to find `limits_below_speed`, if fewer than all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_below_rounds: Option<u32>,
    /// Slots of the rollout engines.
    pub slots: StageResult,
    /// Samples trained on, each second.
    pub useful_samples_per_s: f64,
    /// Tokens of their responses, each second.
    pub useful_tokens_per_s: f64,
    /// How old the weights were that samples came from.
    pub staleness: StalenessResult,
    /// Long responses against the mean.
    pub tail: TailResult,
    /// What became of the samples.
    pub samples: RlCountsResult,
    /// Response lengths of all samples that ended.
    pub lengths: Vec<LengthBin>,
    /// What a weight synchronisation sends, where it goes over links.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<SyncResult>,
    /// Memory of colocated devices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<RlMemoryResult>,
    /// What the measured rounds cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<RlCostResult>,
    /// The other jobs on the same engines and trainer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<RlJobResult>,
    /// Every measured round.
    pub rounds: Vec<RoundResult>,
}

/// A job that shared engines and trainer.
#[derive(Clone, Debug, Serialize)]
pub struct RlJobResult {
    /// Its name.
    pub name: String,
    /// Mean time of its rounds.
    pub round_ns: u64,
    /// Where its trainer's time went; adds up to `elapsed_ns`.
    pub split: SplitResult,
    /// From the end of its warm-up to the end of its last update.
    pub elapsed_ns: u64,
    /// Its stages in the order of a round.
    pub stages: Vec<StageResult>,
    /// Samples it trained on, each second.
    pub useful_samples_per_s: f64,
}

/// Where the trainer's time went.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SplitResult {
    /// Waiting for responses.
    pub rollout_ns: u64,
    /// Waiting for scores of responses that had ended.
    pub scoring_ns: u64,
    /// Waiting for samples on their way to the trainer.
    pub handoff_ns: u64,
    /// Updating.
    pub update_ns: u64,
    /// Waiting for a blocking weight synchronisation.
    pub sync_ns: u64,
    /// Changing phase on colocated devices.
    pub switch_ns: u64,
    /// Waiting for its turn on engines or trainer that other jobs use.
    pub turn_ns: u64,
    /// Down.
    pub down_ns: u64,
}

/// How much a stage was used.
#[derive(Clone, Debug, Serialize)]
pub struct StageResult {
    /// `rollout`, a scoring pool's name, `update`, `weight_sync`, `switch`.
    pub name: String,
    /// Engines, workers, or 1.
    pub servers: u64,
    /// Time at work: the mean of its servers.
    pub busy_ns: u64,
    /// The rest of `elapsed_ns`.
    pub idle_ns: u64,
    /// What twice its speed would add to useful samples each second, as a share: 0.25 is a quarter more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_of_doubling: Option<f64>,
    /// The speed (1: as given) below which it would limit the rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_below_speed: Option<f64>,
}

/// How old the weights were that samples came from, in updates.
#[derive(Clone, Debug, Serialize)]
pub struct StalenessResult {
    /// Entry k: samples trained on whose first token came from weights k updates old.
    pub counts: Vec<u64>,
    /// Mean age.
    pub mean: f64,
    /// Greatest age.
    pub max: usize,
}

/// Long responses against the mean.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailResult {
    /// Mean tokens of the responses trained on.
    pub mean_tokens: f64,
    /// Mean over rounds of the longest one.
    pub longest_tokens: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Mean tokens the responses launched were going to have.
    pub launched_mean_tokens: f64,
    /// Share of a round's slot time spent waiting for its longest response.
    pub waiting_share: f64,
}

/// What became of samples and tokens.
#[derive(Clone, Copy, Debug, Serialize)]
#[expect(missing_docs, reason = "the names are those of `pipestep_rl::Counts`, which documents them")]
pub struct RlCountsResult {
    pub launched: u64,
    pub finished: u64,
    pub finished_tokens: u64,
    pub trained: u64,
    pub trained_tokens: u64,
    pub filtered: u64,
    pub aborted: u64,
    pub surplus: u64,
    pub stale: u64,
    pub interrupted: u64,
    pub lost: u64,
    pub regenerated: u64,
    pub wasted_tokens: u64,
    pub dropped_tokens: u64,
    pub wasted_share: f64,
    pub truncated_tokens: u64,
    pub record_bytes: u64,
    pub engine_failures: u64,
    pub restarts: u64,
}

/// How many responses had about so many tokens.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct LengthBin {
    /// Fewest tokens.
    pub from: u64,
    /// Most tokens.
    pub to: u64,
    /// Responses.
    pub count: u64,
}

/// What a weight synchronisation sends.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SyncResult {
    /// Bytes that all engines receive together.
    pub received_bytes: u64,
}

/// Memory of colocated devices.
#[derive(Clone, Debug, Serialize)]
pub struct RlMemoryResult {
    /// Held while training.
    pub training_bytes: u64,
    /// Held during rollout.
    pub rollout_bytes: u64,
    /// The highest level of all.
    pub peak_bytes: u64,
    /// Memory of a device.
    pub capacity_bytes: u64,
    /// Whether the peak is within it.
    pub fits: bool,
    /// From training to rollout.
    pub to_rollout: SwitchResult,
    /// From rollout to training.
    pub to_training: SwitchResult,
}

/// One switch.
#[derive(Clone, Debug, Serialize)]
pub struct SwitchResult {
    /// Its moves in order: `load NAME` or `release NAME`.
    pub moves: Vec<String>,
    /// Bytes held after each.
    pub after_bytes: Vec<u64>,
    /// The highest level on the way.
    pub peak_bytes: u64,
    /// How long the moves take.
    pub time_ns: u64,
}

/// What the measured rounds cost.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RlCostResult {
    /// All together.
    pub total: f64,
    /// A round.
    pub per_round: f64,
    /// A thousand samples trained on.
    pub per_thousand_samples: f64,
}

/// One measured round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoundResult {
    /// Where the one before ended.
    pub start_ns: u64,
    /// Its end.
    pub end_ns: u64,
    /// From opening its rollout to closing it; left out in async mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generation_ns: Option<u64>,
    /// Samples trained on.
    pub samples: u64,
    /// Tokens of their responses.
    pub tokens: u64,
    /// The longest of them.
    pub longest_tokens: u64,
}

impl RlResult {
    /// The contract's view of rounds.
    pub fn new(view: &RlView) -> Self {
        let outcome = &view.sensitivity.base;
        let (mean, max) = mean_and_oldest(&outcome.staleness);
        let stages = view.stages().map(|(stage, gain, below)| StageResult {
            gain_of_doubling: gain,
            limits_below_speed: below.map(pipestep_rl::Fraction::as_f64),
            ..StageResult::new(stage)
        });
        Self {
            mode: view.inputs.mode.name(),
            elapsed_ns: outcome.elapsed.as_nanos(),
            round_ns: outcome.round.as_nanos(),
            bottleneck: view.sensitivity.bottleneck.clone(),
            split: SplitResult::new(&outcome.split),
            stages: stages.collect(),
            limits_below_rounds: view.limits_rounds,
            slots: StageResult::new(&outcome.slots),
            useful_samples_per_s: outcome.useful_samples_per_s,
            useful_tokens_per_s: outcome.useful_tokens_per_s,
            staleness: StalenessResult { counts: outcome.staleness.clone(), mean, max },
            tail: TailResult::new(&outcome.tail),
            samples: RlCountsResult::new(&outcome.counts),
            lengths: outcome.lengths.bins().map(|(from, to, count)| LengthBin { from, to, count }).collect(),
            sync: view.sync_bytes().map(|bytes| SyncResult { received_bytes: bytes.get() }),
            memory: memory(view, outcome),
            cost: outcome.cost.as_ref().map(RlCostResult::new),
            jobs: outcome.jobs.iter().map(RlJobResult::new).collect(),
            rounds: outcome.rounds.iter().map(RoundResult::new).collect(),
        }
    }
}

fn memory(view: &RlView, outcome: &RlOutcome) -> Option<RlMemoryResult> {
    let memory = outcome.memory.as_ref()?;
    let MemoryOutcome { training, rollout, to_rollout, to_training, peak, capacity, fits } = memory;
    Some(RlMemoryResult {
        training_bytes: training.get(),
        rollout_bytes: rollout.get(),
        peak_bytes: peak.get(),
        capacity_bytes: capacity.get(),
        fits: *fits,
        to_rollout: switch(view, to_rollout),
        to_training: switch(view, to_training),
    })
}

fn switch(view: &RlView, plan: &SwitchPlan) -> SwitchResult {
    SwitchResult {
        moves: plan.moves.iter().map(|(step, _)| move_text(view, *step)).collect(),
        after_bytes: plan.moves.iter().map(|(_, bytes)| bytes.get()).collect(),
        peak_bytes: plan.peak.get(),
        time_ns: plan.time.as_nanos(),
    }
}

/// A move in words: `load KV pool`.
pub(super) fn move_text(view: &RlView, step: MemoryMove) -> String {
    let (verb, item) = match step {
        MemoryMove::Load(item) => ("load", item),
        MemoryMove::Release(item) => ("release", item),
    };
    let name = match &view.inputs.placement {
        Placement::Colocated(switching) => {
            switching.memory.as_ref().and_then(|memory| memory.items.get(item)).map(|item| item.name.as_str())
        }
        Placement::Separate => None,
    };
    format!("{verb} {}", name.unwrap_or("item"))
}

impl RlJobResult {
    fn new(job: &JobOutcome) -> Self {
        let outcome = &job.outcome;
        Self {
            name: job.name.clone(),
            round_ns: outcome.round.as_nanos(),
            split: SplitResult::new(&outcome.split),
            elapsed_ns: outcome.elapsed.as_nanos(),
            stages: outcome.stages.iter().map(StageResult::new).collect(),
            useful_samples_per_s: outcome.useful_samples_per_s,
        }
    }
}

impl SplitResult {
    fn new(split: &Split) -> Self {
        Self {
            rollout_ns: split.rollout.as_nanos(),
            scoring_ns: split.scoring.as_nanos(),
            handoff_ns: split.handoff.as_nanos(),
            update_ns: split.update.as_nanos(),
            sync_ns: split.sync.as_nanos(),
            switch_ns: split.switch.as_nanos(),
            turn_ns: split.turn.as_nanos(),
            down_ns: split.down.as_nanos(),
        }
    }
}

impl StageResult {
    fn new(stage: &StageUse) -> Self {
        Self {
            name: stage.name.clone(),
            servers: stage.servers,
            busy_ns: stage.busy.as_nanos(),
            idle_ns: stage.idle.as_nanos(),
            gain_of_doubling: None,
            limits_below_speed: None,
        }
    }
}

impl TailResult {
    fn new(tail: &Tail) -> Self {
        Self {
            mean_tokens: tail.mean_tokens,
            longest_tokens: tail.longest_tokens,
            ratio: tail.ratio,
            launched_mean_tokens: tail.launched_mean_tokens,
            waiting_share: tail.waiting_share,
        }
    }
}

impl RlCountsResult {
    fn new(counts: &Counts) -> Self {
        // JSON readers hold no more than 64 bits; a simulation never gets there.
        let tokens = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            launched: counts.launched,
            finished: counts.finished,
            finished_tokens: tokens(counts.finished_tokens),
            trained: counts.trained,
            trained_tokens: tokens(counts.trained_tokens),
            filtered: counts.filtered,
            aborted: counts.aborted,
            surplus: counts.surplus,
            stale: counts.stale,
            interrupted: counts.interrupted,
            lost: counts.lost,
            regenerated: counts.regenerated,
            wasted_tokens: tokens(counts.wasted_tokens),
            dropped_tokens: tokens(counts.dropped_tokens),
            wasted_share: counts.wasted_share(),
            truncated_tokens: tokens(counts.truncated_tokens),
            record_bytes: tokens(counts.record_bytes),
            engine_failures: counts.engine_failures,
            restarts: counts.restarts,
        }
    }
}

impl RlCostResult {
    const fn new(cost: &Cost) -> Self {
        Self { total: cost.total, per_round: cost.per_round, per_thousand_samples: cost.per_thousand_samples }
    }
}

impl RoundResult {
    fn new(round: &Round) -> Self {
        Self {
            start_ns: round.start.as_nanos(),
            end_ns: round.end.as_nanos(),
            generation_ns: round.generation.map(pipestep_engine::Duration::as_nanos),
            samples: round.samples,
            tokens: round.tokens,
            longest_tokens: round.longest_tokens,
        }
    }
}
