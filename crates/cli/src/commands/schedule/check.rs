//! `pipestep schedule check`: what is wrong with a schedule file, if anything.

use anyhow::{Result, bail};

use crate::{Ending, args, load};

/// Reads the file and checks it.
pub(crate) fn run(typed: &args::CheckFile) -> Result<Ending> {
    let _text = load::text(&typed.file)?;
    bail!("schedule files cannot be read yet")
}
