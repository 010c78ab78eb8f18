//! Files in: a scenario from its path and what was set on the command line.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;

use anyhow::{Context, Result};
use pipestep_scenario::{Override, Scenario};

use crate::args;

/// No text file that pipestep reads is larger; `/dev/zero` is.
const LARGEST_FILE: u64 = 64 << 20;

/// Reads, overrides and checks a scenario, with the files that it names.
///
/// # Errors
/// The file's, or all [`pipestep_scenario::Diagnostics`].
pub(crate) fn scenario(typed: &args::Scenario, more: &[Override]) -> Result<Scenario> {
    let text = text(&typed.path)?;
    let mut overrides = overrides(typed);
    overrides.extend_from_slice(more);
    let name = typed.path.display().to_string();
    Ok(pipestep_scenario::parse(&text, &name, &overrides, &read_text)?)
}

/// The file with the order of one's own that a scenario names, whether or not the scenario is right.
///
/// # Errors
/// The scenario's file.
pub(crate) fn order_file(typed: &args::Scenario) -> Result<Option<String>> {
    Ok(pipestep_scenario::order_file(&text(&typed.path)?, &overrides(typed)))
}

fn overrides(typed: &args::Scenario) -> Vec<Override> {
    typed.set.iter().map(Override::set).collect()
}

/// The text of a file that was named on the command line.
///
/// # Errors
/// One line that names the file and says what is wrong with it.
pub(crate) fn text(path: &Path) -> Result<String> {
    read_text(path).with_context(|| format!("cannot read `{}`", path.display()))
}

/// The text of a file, with errors in words for the mistakes that are made most.
///
/// # Errors
/// The file's; larger than any such file; not UTF-8.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let words = match error.kind() {
            ErrorKind::NotFound => "there is no such file",
            ErrorKind::IsADirectory => "expected a file, found a directory",
            _ => return Err(error),
        };
        return Err(io::Error::new(error.kind(), words));
    }
    if bytes.len() as u64 > LARGEST_FILE {
        let words = format!("it is larger than {} MiB, which no such file needs", LARGEST_FILE >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, words));
    }
    String::from_utf8(bytes).map_err(|error| {
        let (text, rest) = error.as_bytes().split_at(error.utf8_error().valid_up_to());
        let text = String::from_utf8_lossy(text);
        let line = 1 + text.matches('\n').count();
        let column = 1 + text.rsplit('\n').next().map_or(0, |last| last.chars().count());
        let byte = rest.first().copied().unwrap_or_default();
        let words =
            format!("expected UTF-8 text, found the byte 0x{byte:02X} in line {line}, column {column}");
        io::Error::new(ErrorKind::InvalidData, words)
    })
}
