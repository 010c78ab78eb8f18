//! `pipestep check`: whether a scenario is right, without running it.

use anyhow::Result;
use pipestep_schedule::Plan;

use crate::simulated::{plan_of, step_of};
use crate::{Ending, args, load, output};

/// Reads the scenario, asks the schedule for its orders, and says what was understood.
pub(crate) fn run(typed: &args::Scenario) -> Result<Ending> {
    let scenario = load::scenario(typed, &[])?;
    let step = step_of(&scenario)?;
    let shape = step.inputs.shape();
    if let Plan::Fixed(orders) = plan_of(&scenario, step)? {
        orders.validate(shape)?;
    }
    output::print(&format!(
        "{} is valid: {}, {} ranks, {} stages, {} micro-batches\n",
        typed.path.display(),
        step.order.name(),
        shape.ranks(),
        shape.stages(),
        shape.micro_batches()
    ))?;
    Ok(Ending::Done)
}
