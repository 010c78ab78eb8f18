//! From a number of tokens to the useful time of a job, and what it comes to in days.

use pipestep_engine::Duration;

use crate::{InputError, JobError};

/// Tokens to train on, in steps of a fixed number of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenTarget {
    /// Tokens to train on.
    pub tokens: u64,
    /// Tokens of a step: sequences of the global batch times their length.
    pub tokens_per_step: u64,
    /// How long a step takes.
    pub step: Duration,
}

impl TokenTarget {
    /// Steps until the target is reached, the last one in full.
    ///
    /// # Errors
    /// [`InputError::Zero`] for steps of no tokens.
    pub const fn steps(self) -> Result<u64, InputError> {
        if self.tokens_per_step == 0 {
            return Err(InputError::Zero { what: "job.tokens_per_step" });
        }
        Ok(self.tokens.div_ceil(self.tokens_per_step))
    }

    /// The useful time of all steps: the `work` of the job.
    ///
    /// # Errors
    /// [`InputError::Zero`] for steps of no tokens, [`JobError::Overflow`] past 64 bits of nanoseconds.
    pub fn work(self) -> Result<Duration, JobError> {
        Ok(self.step.times(self.steps()?)?)
    }
}

/// Wall time and time set aside (for planned stops, evaluation, what nobody foresees) in days.
pub fn days(wall: Duration, set_aside: Duration) -> f64 {
    (wall.as_secs_f64() + set_aside.as_secs_f64()) / 86_400.0
}
