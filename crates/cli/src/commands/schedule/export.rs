//! `pipestep schedule export`: a schedule as a file that PyTorch loads.

use anyhow::Result;
use pipestep_schedule::{Op, Orders, Plan, Rank};

use crate::simulated::{plan_of, step_of};
use crate::{Ending, args, output};

/// Prints the orders of a schedule for equal stages.
pub(crate) fn run(typed: &args::Export) -> Result<Ending> {
    let scenario = super::scenario_for(&typed.schedule, "--schedule", &typed.numbers)?;
    let step = step_of(&scenario)?;
    let orders = match plan_of(&scenario, step)? {
        Plan::Fixed(orders) => orders,
        // What it came to for equal stages.
        online @ Plan::Online(_) => pipestep_step::simulate(&step.inputs, online)?.record.orders,
    };
    orders.validate(step.inputs.shape())?;
    match typed.format {
        args::Format::PytorchCsv => output::print(&rows(&orders))?,
    }
    Ok(Ending::Done)
}

/// One row a rank, in the grammar of PyTorch's `compute_only` files.
fn rows(orders: &Orders) -> String {
    let row = |rank| {
        let mut cells: Vec<String> = Vec::new();
        let mut list = orders.rank(Rank(rank)).iter();
        while let Some(op) = list.next() {
            let alone = |op: &Op| Op { paired: false, ..*op }.to_string();
            let partner = if op.paired { list.next() } else { None };
            cells.push(match partner {
                Some(second) => format!("({};{})OVERLAP_F_B", alone(op), alone(second)),
                None => alone(op),
            });
        }
        cells.join(",") + "\n"
    };
    (0..orders.ranks() as u16).map(row).collect()
}
