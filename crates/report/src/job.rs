//! A job as a report sees it: JSON, text, and the pictures of its timeline, its storage and its many runs.
//!
//! The command line fills in a [`JobView`]; what is drawn and printed is read off the outcome in it. Deliberately
//! absent: running the job, and the scenario.

mod distribution;
mod lanes;
mod make_result;
mod result;
mod storage;
#[cfg(test)]
mod testing;
mod text;
mod text_tables;
mod timeline;

pub use distribution::{job_completion, job_losses};
pub use result::{
    BacklogResult, CauseResult, CheckResult, CheckpointResult, FailureResult, InputResult, JobResult,
    LateStepsResult, PackedResult, Quantities, ReplayResult, ReplicasResult, SavesResult, TargetResult,
};
pub use storage::job_storage;
pub use text::job_text;
pub use timeline::job_timeline;

use pipestep_engine::Duration;
use pipestep_job::{CalendarStart, JobInputs, JobOutcome, RunsSummary, TokenTarget};

/// One simulated job as a report sees it.
#[derive(Clone, Copy, Debug)]
pub struct JobView<'a> {
    /// The scenario's name.
    pub name: &'a str,
    /// What was simulated.
    pub inputs: &'a JobInputs,
    /// What the work is counted in.
    pub target: &'a JobTarget,
    /// Run 0, in full.
    pub outcome: &'a JobOutcome,
    /// All runs by their number, run 0 included, if there are several.
    pub runs: &'a [JobOutcome],
}

/// What the work of a job is counted in, where it is not plain time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTarget {
    /// How long a step is.
    pub step: Option<Duration>,
    /// Steps to do.
    pub steps: Option<u64>,
    /// Tokens to train on, and tokens of a step.
    pub tokens: Option<(u64, u64)>,
    /// When the job starts on the calendar.
    pub start: Option<CalendarStart>,
    /// Time put aside for what is not simulated.
    pub set_aside: Duration,
}

impl JobTarget {
    /// The target in tokens, where the work is counted in them.
    pub const fn token_target(&self) -> Option<TokenTarget> {
        match (self.tokens, self.step) {
            (Some((tokens, tokens_per_step)), Some(step)) => {
                Some(TokenTarget { tokens, tokens_per_step, step })
            }
            _ => None,
        }
    }
}

impl JobView<'_> {
    /// What the runs came to; `None` for a single run.
    fn summary(&self) -> Option<RunsSummary> {
        if self.runs.len() > 1 { RunsSummary::of(self.runs) } else { None }
    }

    /// Whether every run did its work.
    fn finishes(&self) -> bool {
        self.outcome.finished && self.runs.iter().all(|run| run.finished)
    }

    /// The date at which a run of this wall time in ns is through with everything, time put aside included; `None`
    /// without a start.
    fn date_after(&self, wall_nanos: f64) -> Option<CalendarStart> {
        let wall = Duration::from_nanos(wall_nanos.round() as u64);
        self.target.start?.after(wall.plus(self.target.set_aside).ok()?)
    }

    /// Mean wall time and mean useful time in ns: of all runs, or of the one there is.
    fn mean_times(&self) -> (f64, f64) {
        self.summary().map_or_else(
            || (self.outcome.elapsed.as_nanos() as f64, self.outcome.useful.as_nanos() as f64),
            |summary| (summary.elapsed.mean, summary.useful.mean),
        )
    }
}
