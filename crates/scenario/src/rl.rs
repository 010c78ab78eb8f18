//! Rounds of RL as they are meant. An update that takes as long as the simulated step gets its time only when
//! that is known.

use pipestep_engine::Duration;
use pipestep_rl::{RlError, RlInputs, UpdateTime};

use crate::diagnostic::{Diagnostic, Span};
use crate::tree::{Table, find_span};

/// Rounds that have passed all checks that need no step.
#[derive(Clone, Debug)]
pub struct RlScenario {
    /// Everything that does not depend on the length of a step.
    pub(crate) base: RlInputs,
    /// Tokens of the simulated step, if the update takes its time from it.
    pub(crate) step_tokens: Option<u64>,
    /// Where the rounds are described.
    pub(crate) span: Span,
    /// The file with them, to point at what an error of the run is about.
    pub(crate) written: Table,
}

impl RlScenario {
    /// Whether the length of a step has to be known.
    pub fn needs_step(&self) -> bool {
        self.step_tokens.is_some()
    }

    /// An error with its place, and what to write where it does not say that itself.
    pub(crate) fn refused(&self, error: &RlError) -> Diagnostic {
        let written = error.field().and_then(|field| find_span(&self.written, &format!("rl.{field}")));
        let problem = Diagnostic::new(written.unwrap_or(self.span), error.to_string());
        match error {
            RlError::Overflow(_) => problem.help(
                "times end after 584 years: write shorter ones or fewer rounds, and a `cap` for lengths that \
                 are drawn",
            ),
            _ => problem,
        }
    }

    /// The inputs of the rounds with a step of the simulated length (of no use where the file gives times).
    ///
    /// # Errors
    /// [`RlError`] if a step is needed and there is none, or the inputs contradict each other;
    /// [`crate::Scenario::refused_rl`] shows it with its place.
    pub fn inputs(&self, simulated: Option<Duration>) -> Result<RlInputs, RlError> {
        let mut inputs = self.base.clone();
        if let Some(tokens) = self.step_tokens {
            let step = simulated.ok_or_else(|| RlError::Refused {
                field: "update".into(),
                reason: "the update takes as long as a step: give `rl.update.time` or a `[pipeline]`"
                    .to_owned(),
            })?;
            let time = UpdateTime::Scaled { step, tokens };
            for job in inputs.sharing.iter_mut().flat_map(|sharing| &mut sharing.jobs) {
                if matches!(job.inputs.update.time, UpdateTime::Scaled { .. }) {
                    job.inputs.update.time = time.clone();
                }
            }
            inputs.update.time = time;
        }
        inputs.check()?;
        Ok(inputs)
    }
}
