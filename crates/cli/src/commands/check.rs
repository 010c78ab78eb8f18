//! `pipestep check`: whether a scenario is right, without running it.

use anyhow::Result;
use pipestep_engine::Duration;
use pipestep_scenario::{Scenario, StepScenario};
use pipestep_schedule::Plan;

use crate::simulated::plan_of;
use crate::{Ending, args, load, output};

/// Reads the scenario, asks the schedule for its orders, and says what was understood.
pub(crate) fn run(typed: &args::Scenario) -> Result<Ending> {
    let scenario = load::scenario(typed, &[])?;
    let mut parts = Vec::new();
    if let Some(step) = &scenario.step {
        parts.push(check_step(&scenario, step)?);
    }
    // What is built round the step is checked with a step of any length, since none is run.
    let length = scenario.step.as_ref().map(|_| Duration::from_nanos(1_000_000_000));
    if let Some(job) = &scenario.job {
        job.inputs(length).map_err(|error| scenario.refused_job(&error))?;
        parts.push("a job".to_owned());
    }
    if let Some(rounds) = &scenario.rl {
        rounds.inputs(length).map_err(|error| scenario.refused_rl(&error))?;
        parts.push("rounds of RL".to_owned());
    }
    output::print(&format!("{} is valid: {}\n", typed.path.display(), parts.join("; ")))?;
    Ok(Ending::Done)
}

/// Checks that the schedule's orders are complete and can run; gives the step in a few words.
fn check_step(scenario: &Scenario, step: &StepScenario) -> Result<String> {
    let shape = step.inputs.shape();
    if let Plan::Fixed(orders) = plan_of(scenario, step)? {
        orders.validate(shape)?;
    }
    Ok(format!(
        "{}, {} ranks, {} stages, {} micro-batches",
        step.order.name(),
        shape.ranks(),
        shape.stages(),
        shape.micro_batches()
    ))
}
