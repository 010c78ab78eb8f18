//! A job as it is meant. What it counts in steps becomes time only when the length of a step is known, which
//! may take a simulation.

use pipestep_engine::Duration;
use pipestep_job::{CalendarStart, InputError, JobError, JobInputs, Spread};

use crate::diagnostic::Span;

/// A job that has passed all checks that need no step.
#[derive(Clone, Debug)]
pub struct JobScenario {
    /// Optimizer steps to do, if the work is counted in steps or tokens.
    pub steps: Option<u64>,
    /// Tokens to train on, if the work is counted in them.
    pub tokens: Option<u64>,
    /// Tokens of one step, where they are known.
    pub tokens_per_step: Option<u64>,
    /// The length of a step that the file gives; with a `[pipeline]`, the simulated one counts.
    pub step: Option<Duration>,
    /// When the job starts on the calendar, if the file says so.
    pub start: Option<CalendarStart>,
    /// Time to add to the expected completion.
    pub set_aside: Duration,
    /// How often to run it; each run has its own number, `simulate(&inputs, run, ..)`.
    pub runs: u32,
    /// Everything that does not depend on the length of a step.
    pub(crate) base: JobInputs,
    /// The interval between saves, if it is counted in steps.
    pub(crate) save_steps: Option<SaveSteps>,
    /// Where the job is described.
    pub(crate) span: Span,
}

/// When saves are asked for, in steps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveSteps {
    pub first: Option<u64>,
    pub every: u64,
}

impl JobScenario {
    /// Whether the length of a step has to be known.
    pub fn needs_step(&self) -> bool {
        let base = &self.base;
        let counts_steps = self.steps.is_some() || self.save_steps.is_some();
        counts_steps || base.stragglers.ranks.is_some() || base.input.is_some()
    }

    /// The inputs of the job with steps of the simulated length (of no use where the file gives one).
    ///
    /// # Errors
    /// [`JobError::Input`] if a step is needed and there is none, or the inputs contradict each other;
    /// [`JobError::Overflow`] if the work does not fit in 584 years. [`crate::Scenario::refused_job`] shows them
    /// with their place.
    pub fn inputs(&self, simulated: Option<Duration>) -> Result<JobInputs, JobError> {
        let mut inputs = self.base.clone();
        let step = |what| self.step.or(simulated).ok_or(InputError::NoStep { what });
        if let Some(steps) = self.steps {
            let what = if self.tokens.is_some() { "job.tokens" } else { "job.steps" };
            inputs.work = Some(step(what)?.times(steps)?);
        }
        if let (Some(saves), Some(checkpoint)) = (self.save_steps, &mut inputs.checkpoint) {
            let step = step("checkpoint.trigger")?;
            checkpoint.requests.every = Spread::Fixed(step.times(saves.every)?);
            checkpoint.requests.first = saves.first.map(|first| step.times(first)).transpose()?;
        }
        if let Some(ranks) = &mut inputs.stragglers.ranks {
            ranks.step = step("stragglers.ranks")?;
        }
        if let Some(input) = &mut inputs.input {
            input.step = step("input.items_per_step")?;
        }
        inputs.check()?;
        Ok(inputs)
    }
}
