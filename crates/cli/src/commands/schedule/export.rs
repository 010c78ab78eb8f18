//! `pipestep schedule export`: a schedule as a file that PyTorch loads.

use anyhow::{Result, bail};
use pipestep_schedule::{Plan, csv};

use crate::args::Format;
use crate::simulated::{plan_of, step_of};
use crate::{Ending, args, output};

/// Prints the orders of a schedule for equal stages.
pub(crate) fn run(typed: &args::Export) -> Result<Ending> {
    let scenario = super::scenario_for(&typed.schedule, "--schedule", &typed.numbers)?;
    let step = step_of(&scenario)?;
    let shape = step.inputs.shape();
    if shape.copies() > 1 {
        bail!("`{}` holds two copies of the model, which PyTorch's format cannot say", typed.schedule);
    }
    let orders = match plan_of(&scenario, step)? {
        Plan::Fixed(orders) => orders,
        // What it came to for equal stages.
        online @ Plan::Online(_) => pipestep_step::simulate(&step.inputs, online)?.record.orders,
    };
    orders.validate(shape)?;
    let text = match typed.format {
        Format::PytorchCsv => csv::compute_only(&orders),
        Format::PytorchCommsCsv => match csv::compute_comms(&orders, shape) {
            Ok(text) => text,
            Err(deadlock) => bail!("`{}` cannot run: {deadlock}", typed.schedule),
        },
    };
    output::print(&text)?;
    Ok(Ending::Done)
}
