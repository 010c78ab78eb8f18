//! `pipestep schedule list`: every schedule of the registry.

use anyhow::Result;

use crate::{Ending, output};

/// Prints a paragraph for each schedule.
pub(crate) fn run() -> Result<Ending> {
    let entries = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    let paragraphs: Vec<String> = entries.map(super::describe).collect();
    output::print(&(LEGEND.to_owned() + &paragraphs.join("\n")))?;
    Ok(Ending::Done)
}

/// What the letters of the formulas stand for.
const LEGEND: &str = "\
p ranks, m micro-batches, v chunks a rank, r a rank counted from 0; F, B, I, W the lengths of a
rank's forward, full backward, input-gradient and weight-gradient backward. Peaks are counted in
micro-batches of a rank's layers; bubbles are idle time of a rank for equal stages and free
transfers.

";
