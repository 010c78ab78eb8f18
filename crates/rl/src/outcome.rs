//! What a simulation of rounds yields: plain data, every number read off the run.
//!
//! One idea: all of it covers the measured rounds only, from the end of the warm-up to the end of the last
//! update; what was under way at either end counts with the part that lies inside.

use pipestep_engine::{Duration, Time};

use crate::group::Fate;
use crate::histogram::Histogram;
use crate::memory::MemoryOutcome;
use crate::record::Recorder;
use crate::response::Sample;

/// The outcome of [`crate::simulate`].
#[derive(Clone, Debug, PartialEq)]
pub struct RlOutcome {
    /// From the end of the warm-up to the end of the last update.
    pub elapsed: Duration,
    /// Mean time of a round (of an update, in async mode), rounded down to the nanosecond.
    pub round: Duration,
    /// Where the trainer's time went; adds up to `elapsed`.
    pub split: Split,
    /// Every round.
    pub rounds: Vec<Round>,
    /// Every stage in the order of a round: rollout, the scoring pools, update, weight sync, and with
    /// colocated devices the switch.
    pub stages: Vec<StageUse>,
    /// Slots of the rollout engines.
    pub slots: StageUse,
    /// What became of the samples.
    pub counts: Counts,
    /// Samples trained on, each second.
    pub useful_samples_per_s: f64,
    /// Tokens of their responses, each second.
    pub useful_tokens_per_s: f64,
    /// Entry `k`: samples trained on whose first token came from weights `k` updates old.
    pub staleness: Vec<u64>,
    /// Response lengths, in tokens, of all samples that ended.
    pub lengths: Histogram,
    /// Long responses against the mean.
    pub tail: Tail,
    /// What it cost, if prices were given.
    pub cost: Option<Cost>,
    /// Memory of colocated devices, if it was given.
    pub memory: Option<MemoryOutcome>,
    /// The other jobs on the same engines and trainer.
    pub jobs: Vec<JobOutcome>,
}

/// The outcome of a job that shared engines and trainer.
#[derive(Clone, Debug, PartialEq)]
pub struct JobOutcome {
    /// Its name.
    pub name: String,
    /// Its own rounds.
    pub outcome: RlOutcome,
}

impl RlOutcome {
    /// Samples that all jobs together trained on, each second.
    pub fn all_samples_per_s(&self) -> f64 {
        let others = self.jobs.iter().map(|job| job.outcome.useful_samples_per_s);
        self.useful_samples_per_s + others.sum::<f64>()
    }
}

/// Where the trainer's time went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// Waiting for responses.
    pub rollout: Duration,
    /// Waiting for scores of responses that had ended.
    pub scoring: Duration,
    /// Waiting for samples on their way to the trainer.
    pub handoff: Duration,
    /// Updating.
    pub update: Duration,
    /// Waiting for a blocking weight synchronisation, engines that drain for it included.
    pub sync: Duration,
    /// Changing phase on colocated devices.
    pub switch: Duration,
    /// Waiting for its turn on engines or trainer that other jobs use, their handoff included.
    pub turn: Duration,
    /// Down.
    pub down: Duration,
}

/// One measured round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// Where the one before ended.
    pub start: Time,
    /// Its end: the new weights are in place (or, when nobody waits for them, the update is done).
    pub end: Time,
    /// Where the trainer's time went; adds up to the round.
    pub split: Split,
    /// From opening the rollout of its batch to closing it; `None` in async mode, which has no such instants.
    pub generation: Option<Duration>,
    /// Samples trained on.
    pub samples: u64,
    /// Tokens of their responses.
    pub tokens: u64,
    /// The longest of their responses, in tokens.
    pub longest_tokens: u64,
    /// Time from launch to end, summed over them.
    pub response_time: Duration,
    /// The longest time from launch to end among them.
    pub longest_response: Duration,
}

/// How much a stage was used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageUse {
    /// `rollout`, the name of a scoring pool, `update`, `weight_sync`, `switch`.
    pub name: String,
    /// Engines, workers, or 1.
    pub servers: u64,
    /// Time at work: the mean of its servers, rounded down to the nanosecond.
    pub busy: Duration,
    /// The rest of the elapsed time.
    pub idle: Duration,
}

/// What became of samples and tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Samples launched.
    pub launched: u64,
    /// Tokens the responses launched were going to have (of all rivals in a race).
    pub launched_tokens: u128,
    /// Samples whose response ended.
    pub finished: u64,
    /// Tokens of these responses.
    pub finished_tokens: u128,
    /// Samples trained on.
    pub trained: u64,
    /// Tokens of their responses.
    pub trained_tokens: u128,
    /// Scored and not kept.
    pub filtered: u64,
    /// Aborted because the batch was full.
    pub aborted: u64,
    /// Ended, but beyond a full batch.
    pub surplus: u64,
    /// Discarded because their weights were too old.
    pub stale: u64,
    /// Thrown away because they were interrupted.
    pub interrupted: u64,
    /// Lost in a restart.
    pub lost: u64,
    /// Responses generated anew from their first token.
    pub regenerated: u64,
    /// Tokens of responses that did not end: aborted, interrupted, lost, or generated anew.
    pub wasted_tokens: u128,
    /// Tokens of responses that ended and will not be trained on: beyond a full batch, not kept, too old, or lost.
    pub dropped_tokens: u128,
    /// Tokens taken off responses that were cut and continue as short as the shortest of their group.
    pub truncated_tokens: u128,
    /// Bytes of routing records brought to the trainer.
    pub record_bytes: u128,
    /// Failures of engines.
    pub engine_failures: u64,
    /// Restarts of the job.
    pub restarts: u64,
}

impl Counts {
    /// Counts samples that are gone.
    pub(crate) const fn drop(&mut self, fate: Fate, samples: u64) {
        *match fate {
            Fate::Surplus => &mut self.surplus,
            Fate::Filtered => &mut self.filtered,
            Fate::Stale => &mut self.stale,
            Fate::Lost => &mut self.lost,
            Fate::Interrupted => &mut self.interrupted,
        } += samples;
    }

    /// Counts samples that are gone and whose responses had ended, and marks their bars.
    pub(crate) fn drop_ended<R: Recorder>(&mut self, fate: Fate, samples: &[Sample], record: &mut R) {
        for sample in samples {
            record.drop(sample.number);
        }
        self.drop(fate, samples.len() as u64);
        self.dropped_tokens += samples.iter().map(|sample| u128::from(sample.tokens)).sum::<u128>();
    }

    /// The share of all tokens generated that is of no use to training; 0 if there are none.
    pub fn wasted_share(&self) -> f64 {
        let all = self.finished_tokens + self.wasted_tokens;
        if all == 0 { 0.0 } else { (self.wasted_tokens + self.dropped_tokens) as f64 / all as f64 }
    }
}

/// Long responses against the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tail {
    /// Mean tokens of the responses trained on.
    pub mean_tokens: f64,
    /// Mean over rounds of the longest response trained on, in tokens.
    pub longest_tokens: f64,
    /// The second over the first.
    pub ratio: f64,
    /// Mean tokens the responses launched were going to have: above `mean_tokens`, long ones are lost more
    /// often (length bias).
    pub launched_mean_tokens: f64,
    /// Share of a round's slot time spent waiting for its longest response if every sample trained on kept
    /// its slot until then: 1 - mean response time / longest, both averaged over rounds.
    pub waiting_share: f64,
}

/// What the measured rounds cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// All together.
    pub total: f64,
    /// A round.
    pub per_round: f64,
    /// A thousand samples trained on.
    pub per_thousand_samples: f64,
}
