//! A scenario as it is meant, and the way from its text: read, override, check, lower.

use pipestep_engine::Bytes;
use pipestep_schedule::{Options, Placement, Plan, Refusal, Schedule, Weights};
use pipestep_step::Inputs;

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Sources, Span};
use crate::format::File;
use crate::lower::{Fit, lower_step};
use crate::overrides::{Override, apply};
use crate::read::{FromItem, Place, Problems};
use crate::sweep::Sweep;
use crate::tree::{Item, Node, Table, parse_document};

/// The smallest scenario there is, shown when a file has nothing to simulate.
const MINIMAL: &str = "the smallest scenario is\n\n\
    [pipeline]\nranks = 4\nmicro_batches = 8\nschedule = \"1f1b\"\n\n\
    [time]\nforward = \"10 ms\"\nbackward = \"20 ms\"";

/// A scenario that has passed all checks.
#[derive(Debug)]
pub struct Scenario {
    /// What it is called: its `name`, or the file's name without its ending.
    pub name: String,
    /// One step, if the file describes one.
    pub step: Option<StepScenario>,
    /// What the file wants varied; no axes if nothing.
    pub sweep: Sweep,
    sources: Sources,
}

/// What is needed to simulate one step.
pub struct StepScenario {
    /// The schedule.
    pub schedule: &'static dyn Schedule,
    /// The options that were set for it.
    pub options: Options,
    /// Shape, costs and rules.
    pub inputs: Inputs,
    /// What each rank may hold, if the file says.
    pub budget: Option<Vec<Bytes>>,
    /// Layers of each stage, where they are known.
    pub layers: Option<Vec<u64>>,
    /// Tokens in one micro-batch, where a model is given.
    pub tokens_per_micro_batch: Option<u64>,
    /// Where the schedule is named, for its refusals.
    pub(crate) schedule_span: Span,
}

impl std::fmt::Debug for StepScenario {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepScenario")
            .field("schedule", &self.schedule.entry().name)
            .field("options", &self.options)
            .field("inputs", &self.inputs)
            .field("budget", &self.budget)
            .finish_non_exhaustive()
    }
}

impl StepScenario {
    /// What the schedule makes of the shape and, if it looks at them, the costs.
    ///
    /// # Errors
    /// The schedule's [`Refusal`]; [`Scenario::refused`] shows it with its place in the file.
    pub fn plan(&self) -> Result<Plan, Refusal> {
        let shape = self.inputs.shape();
        let weights = if self.schedule.entry().uses_weights {
            self.inputs.costs().weights(shape, None)
        } else {
            Weights::default()
        };
        self.schedule.plan(shape, &weights, &self.options)
    }
}

impl Scenario {
    /// A schedule's refusal as an error of this scenario, pointing at the schedule.
    pub fn refused(&self, refusal: &Refusal) -> Diagnostics {
        let span = self.step.as_ref().map_or(Span::FILE, |step| step.schedule_span);
        let problem = Diagnostic::new(span, refusal.to_string());
        Diagnostics::new(self.sources.clone(), vec![problem])
    }
}

/// Reads a scenario. `file_name` is what errors call the text; it is not opened. Later overrides win over
/// earlier ones, and all of them over the file.
///
/// # Errors
/// Everything that is wrong with the text and the overrides, with places.
pub fn parse(text: &str, file_name: &str, overrides: &[Override]) -> Result<Scenario, Diagnostics> {
    let mut sources = vec![Source {
        name: file_name.to_owned(),
        text: text.to_owned(),
    }];
    sources.extend(overrides.iter().map(Override::source));
    let sources: Sources = sources.into();

    let mut problems = Problems::new();
    match read(text, file_name, overrides, &mut problems) {
        Some(parts) if problems.is_empty() => {
            let (name, step, sweep) = parts;
            Ok(Scenario {
                name,
                step: Some(step),
                sweep,
                sources,
            })
        }
        _ => Err(Diagnostics::new(sources, problems)),
    }
}

/// All of [`parse`]; on `None`, `problems` says why.
fn read(
    text: &str,
    file_name: &str,
    overrides: &[Override],
    problems: &mut Problems,
) -> Option<(String, StepScenario, Sweep)> {
    let mut table = match parse_document(text) {
        Ok(table) => table,
        Err(errors) => {
            problems.extend(errors);
            return None;
        }
    };
    let fit = overrides.iter().any(|one| one.fits).then(|| Fit {
        written_for: placement_in(&table),
    });
    apply(&mut table, overrides, problems);
    if table.entries.is_empty() {
        problems.push(Diagnostic::new(Span::FILE, "the scenario is empty").help(MINIMAL));
        return None;
    }
    let item = Item {
        span: Span::FILE,
        node: Node::Table(table),
    };
    let root = Place {
        path: "",
        example: "",
    };
    let file = File::from_item(&item, &root, problems)?;
    if file.pipeline.is_absent() {
        let message = "nothing to simulate: there is no `[pipeline]`";
        problems.push(Diagnostic::new(Span::FILE, message).help(MINIMAL));
        return None;
    }
    let context = Fitting {
        fit,
        // Options that do not suit a schedule are dropped where only the schedule was set from outside.
        schedule_was_set: file
            .pipeline
            .get()
            .and_then(|pipeline| pipeline.schedule.span())
            .is_some_and(|span| span.source > 0),
    };
    let step = lower_step(&file, &context, problems)?;
    let name = file.name.get().cloned().unwrap_or_else(|| stem(file_name));
    let sweep = file
        .sweep
        .get()
        .map(|written| written.0.clone())
        .unwrap_or_default();
    Some((name, step, sweep))
}

/// How far a scenario may be bent to a schedule that its author did not write.
pub(crate) struct Fitting {
    /// Set if the number of chunks may be changed.
    pub fit: Option<Fit>,
    /// Whether the schedule came from an override.
    pub schedule_was_set: bool,
}

/// The placement of the schedule that the file names, by default that of most schedules.
fn placement_in(table: &Table) -> Placement {
    let pipeline = table.get("pipeline").map(|entry| &entry.item.node);
    let named = match pipeline {
        Some(Node::Table(pipeline)) => pipeline.get("schedule").map(|entry| &entry.item.node),
        _ => None,
    };
    match named {
        Some(Node::Text(name)) => pipestep_schedule::find(name),
        _ => None,
    }
    .map_or(Placement::Loop, |schedule| schedule.entry().placement)
}

/// The name of a file without folders and ending.
fn stem(file_name: &str) -> String {
    let path = std::path::Path::new(file_name);
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    stem.unwrap_or_else(|| file_name.to_owned())
}
