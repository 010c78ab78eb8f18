//! `pipestep schema`: the JSON schema of scenarios.

use anyhow::Result;

use crate::{Ending, output};

/// Prints the schema.
pub(crate) fn run() -> Result<Ending> {
    output::print(&format!("{:#}\n", pipestep_scenario::schema()))?;
    Ok(Ending::Done)
}
