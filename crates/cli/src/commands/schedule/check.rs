//! `pipestep schedule check`: what is wrong with a schedule file, if anything.

use anyhow::{Context, Result};
use pipestep_schedule::csv::{Expected, read};

use crate::{Ending, args, load, output};

/// Reads the file and says what it holds.
pub(crate) fn run(typed: &args::CheckFile) -> Result<Ending> {
    let text = load::text(&typed.file)?;
    let shown = typed.file.display();
    let expected = Expected { ranks: typed.ranks, stages: typed.stages, micro_batches: typed.micro_batches };
    let file = read(&text, &expected).with_context(|| shown.to_string())?;
    let format = if file.comms.is_some() { "compute_comms" } else { "compute_only" };
    output::print(&format!(
        "{shown} is valid: {format}, {} ranks, {} stages, {} micro-batches, {} operations\n",
        file.shape.ranks(),
        file.shape.stages(),
        file.shape.micro_batches(),
        file.orders.all().len()
    ))?;
    Ok(Ending::Done)
}
