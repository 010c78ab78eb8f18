//! From the number of a point to its row: override, read, simulate.
//!
//! The files that the scenario names are read once, so that all points see the same, and remembered for the
//! manifest.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use pipestep_engine::Time;
use pipestep_scenario::{Diagnostic, Diagnostics, OrderSource, Override, Scenario, StepScenario};
use pipestep_step::Summary;

use super::fields::{Fields, row};
use super::manifest::fingerprint;
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
        let (name, set) = (path.display().to_string(), set.iter().map(Override::set).collect());
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
            Ok(scenario) => match &scenario.step {
                None => Err(anyhow!("it describes no step: it has no `[pipeline]`")),
                Some(step) => {
                    let room = room::check(step.inputs.shape(), Keep::Summary);
                    room.with_context(|| format!("point {point}"))?;
                    simulate(step)
                }
            },
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

fn simulate(step: &StepScenario) -> Result<Fields> {
    let summary = match &step.order {
        // A file that says when messages are posted runs as it stands.
        OrderSource::File { orders, comms: Some(comms), .. } => {
            pipestep_step::simulate_comms(&step.inputs, orders, comms)?.0.summary
        }
        _ => pipestep_step::summary(&step.inputs, step.plan()?)?,
    };
    Ok(fields(step, &summary))
}

/// What a simulated step came to, as a row has it.
fn fields(step: &StepScenario, summary: &Summary) -> Fields {
    let (shape, bubble) = (step.inputs.shape(), summary.bubble());
    let working = (summary.gradient_ready.as_nanos() - summary.setup.as_nanos()) as f64;
    let busy: u128 = summary.ranks.iter().map(|rank| u128::from(rank.busy.as_nanos())).sum();
    let whole = working * shape.ranks() as f64;
    let seconds = summary.makespan.since(Time::ZERO).as_secs_f64();
    let tokens = tokens(step).filter(|_| seconds > 0.0);
    Fields {
        schedule: step.order.name().to_owned(),
        ranks: shape.ranks(),
        chunks: shape.chunks() / shape.copies(),
        micro_batches: shape.micro_batches(),
        makespan_ns: summary.makespan.as_nanos(),
        bubble: [bubble.by_makespan, bubble.by_longest_span, bubble.over_ideal],
        utilisation: if whole > 0.0 { busy as f64 / whole } else { 0.0 },
        tokens_per_second: tokens.map(|tokens| tokens / seconds),
        peaks: summary.ranks.iter().map(|rank| rank.peak.bytes).collect(),
        budget: step.budget.clone(),
    }
}

/// The tokens of one step, all copies of the pipeline together, where a model says how many a micro-batch has.
fn tokens(step: &StepScenario) -> Option<f64> {
    let scale = &step.inputs.costs().micro_batch_scale;
    let sizes: f64 = match scale.as_slice() {
        [] => step.inputs.shape().micro_batches() as f64,
        scale => scale.iter().map(|&(numerator, denominator)| numerator as f64 / denominator as f64).sum(),
    };
    Some(step.tokens_per_micro_batch? as f64 * sizes * f64::from(step.data_parallel))
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
