//! One scenario's step, simulated, with everything a report asks for.

use anyhow::{Context, Result};
use pipestep_report::{Labels, StepView};
use pipestep_scenario::{OrderSource, Scenario, StepScenario};
use pipestep_schedule::{Plan, Shape};
use pipestep_step::{MemoryCurve, Record, Summary};

use crate::room;

/// A simulated step.
pub(crate) struct Simulated {
    labels: Labels,
    shape: Shape,
    summary: Summary,
    /// When everything ran and each rank's memory over time, if they were asked for.
    recorded: Option<(Record, Vec<MemoryCurve>)>,
}

/// How much of a simulation is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keep {
    /// The summary. It equals that of [`Keep::Everything`], sooner.
    Summary,
    /// Every span and every memory curve too.
    Everything,
}

impl Simulated {
    /// Simulates the step of a scenario.
    ///
    /// # Errors
    /// The schedule's refusal, at its place in the file; a step that cannot run, or for which there is no room.
    pub(crate) fn new(scenario: &Scenario, keep: Keep) -> Result<Self> {
        let step = step_of(scenario)?;
        room::check(step.inputs.shape(), keep)?;
        let plan = plan_of(scenario, step)?;
        let (summary, recorded) = match (&step.order, keep) {
            // A file that says when messages are posted runs as it stands.
            (OrderSource::File { orders, comms: Some(comms), .. }, _) => {
                let (outcome, _) = pipestep_step::simulate_comms(&step.inputs, orders, comms)?;
                (outcome.summary, Some((outcome.record, outcome.curves)))
            }
            (_, Keep::Summary) => (pipestep_step::summary(&step.inputs, plan)?, None),
            (_, Keep::Everything) => {
                let outcome = pipestep_step::simulate(&step.inputs, plan)?;
                (outcome.summary, Some((outcome.record, outcome.curves)))
            }
        };
        let labels = Labels {
            name: scenario.name.clone(),
            schedule: step.order.name().to_owned(),
            budgets: step.budget.clone().unwrap_or_default(),
        };
        Ok(Self { labels, shape: step.inputs.shape().clone(), summary, recorded })
    }

    /// The step as a report sees it.
    pub(crate) fn view(&self) -> StepView<'_> {
        StepView { labels: &self.labels, shape: &self.shape, summary: &self.summary }
    }

    /// When everything ran.
    pub(crate) fn record(&self) -> Result<&Record> {
        Ok(&self.recorded()?.0)
    }

    /// Each rank's memory over time.
    pub(crate) fn curves(&self) -> Result<&[MemoryCurve]> {
        Ok(&self.recorded()?.1)
    }

    fn recorded(&self) -> Result<&(Record, Vec<MemoryCurve>)> {
        let recorded = self.recorded.as_ref();
        recorded.context("internal error: a recording was asked for after a run that kept none")
    }
}

/// The step that a scenario describes.
///
/// # Errors
/// There is none.
pub(crate) fn step_of(scenario: &Scenario) -> Result<&StepScenario> {
    let step = scenario.step.as_ref();
    step.with_context(|| format!("`{}` describes no step: it has no `[pipeline]`", scenario.name))
}

/// The orders of a scenario's schedule.
pub(crate) fn plan_of(scenario: &Scenario, step: &StepScenario) -> Result<Plan> {
    step.plan().map_err(|refusal| scenario.refused(&refusal).into())
}
