//! From the number of a point to its row: override, read, simulate.
//!
//! The files that the scenario names are read once, so that all points see the same, and remembered for the
//! manifest.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};
use pipestep_scenario::{Diagnostic, Diagnostics, Override, Scenario};

use super::fields::row;
use super::manifest::fingerprint;
use super::simulate::simulate;
use super::space::Space;
use crate::simulated::Keep;
use crate::{load, room};

/// A scenario with a space of points.
pub(crate) struct Points {
    text: String,
    name: String,
    set: Vec<Override>,
    space: Space,
    files: Mutex<BTreeMap<PathBuf, Read>>,
}

/// The text of a file, or what kind of error there was and its words.
type Read = Result<Arc<str>, (io::ErrorKind, String)>;

impl Points {
    /// The points of `space` in the scenario at `path`, after `set`.
    pub(crate) fn new(text: String, path: &Path, set: &[String], space: Space) -> Self {
        // A point knows its values; to read all those of a long `[sweep]` again takes longer than a short step.
        let set = set.iter().map(String::as_str).chain(["sweep={}"]).map(Override::set).collect();
        let name = path.display().to_string();
        Self { text, name, set, space, files: Mutex::new(BTreeMap::new()) }
    }

    /// The space.
    pub(crate) const fn space(&self) -> &Space {
        &self.space
    }

    /// The text of the scenario, as it was read.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The scenario of a point.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn scenario(&self, point: u64) -> Result<Scenario, Diagnostics> {
        let mut overrides = self.set.clone();
        overrides.extend(self.space.overrides(point));
        pipestep_scenario::parse(&self.text, &self.name, &overrides, &|path| self.read(path))
    }

    /// The line of a point: what it came to, or why it is not legal.
    ///
    /// # Errors
    /// This machine has no room for it, which says nothing about the point.
    pub(crate) fn row(&self, point: u64) -> Result<String> {
        let outcome = match self.scenario(point) {
            Err(diagnostics) => Err(diagnostics.into()),
            Ok(scenario) => {
                if let Some(step) = &scenario.step {
                    let room = room::check(step.inputs.shape(), Keep::Summary);
                    room.with_context(|| format!("point {point}"))?;
                }
                simulate(&scenario)
            }
        };
        row(point, &self.space.at(point), outcome.map_err(|error| reason(&error)))
    }

    /// How many files have been read so far.
    pub(crate) fn count_files(&self) -> usize {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// The files that have been read so far, each with the fingerprint of its text; none for those that could
    /// not be read.
    pub(crate) fn files_read(&self) -> Vec<(String, Option<String>)> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |(path, read): (&PathBuf, &Read)| {
            let print = read.as_ref().ok().map(|text| fingerprint(text));
            (path.display().to_string(), print)
        };
        files.iter().map(known).collect()
    }

    /// Reads a file that the scenario names, once.
    pub(crate) fn read(&self, path: &Path) -> io::Result<String> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let read = files.entry(path.to_owned()).or_insert_with(|| {
            let read = load::read_text(path);
            read.map(Arc::from).map_err(|error| (error.kind(), error.to_string()))
        });
        match read {
            Ok(text) => Ok(text.to_string()),
            Err((kind, words)) => Err(io::Error::new(*kind, words.clone())),
        }
    }
}

/// Why a point is not legal, without the place in the file.
fn reason(error: &anyhow::Error) -> String {
    match error.downcast_ref::<Diagnostics>() {
        Some(diagnostics) => {
            let messages: Vec<&str> = diagnostics.iter().map(Diagnostic::message).collect();
            messages.join("; ")
        }
        None => format!("{error:#}"),
    }
}
