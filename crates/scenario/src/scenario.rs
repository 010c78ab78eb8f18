//! A scenario as it is meant, and the way from its text: read, override, check, lower.

use pipestep_job::JobError;
use pipestep_rl::RlError;
use pipestep_schedule::{Placement, Refusal};

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Sources, Span};
use crate::files::{Files, ReadFile};
use crate::format::File;
use crate::job::JobScenario;
use crate::lower::{Fit, lower_job, lower_model, lower_rl, lower_step};
use crate::overrides::{Override, apply};
use crate::read::{FromItem, Key, Place, Problems};
use crate::rl::RlScenario;
use crate::search::SearchSpace;
use crate::step::StepScenario;
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
    /// A job round the step or alone, if the file describes one.
    pub job: Option<JobScenario>,
    /// Rounds of RL, if the file describes them.
    pub rl: Option<RlScenario>,
    /// What the file wants varied; no axes if nothing.
    pub sweep: Sweep,
    /// What a search may try.
    pub search: SearchSpace,
    sources: Sources,
}

impl Scenario {
    /// A schedule's refusal as an error of this scenario, pointing at the schedule.
    pub fn refused(&self, refusal: &Refusal) -> Diagnostics {
        let span = self.step.as_ref().map_or(Span::FILE, |step| step.order_span);
        let problem = Diagnostic::new(span, refusal.to_string());
        Diagnostics::new(self.sources.clone(), vec![problem])
    }

    /// Why rounds cannot be run, as an error of this scenario.
    pub fn refused_rl(&self, error: &RlError) -> Diagnostics {
        let problem = match &self.rl {
            Some(rl) => rl.refused(error),
            None => Diagnostic::new(Span::FILE, error.to_string()),
        };
        Diagnostics::new(self.sources.clone(), vec![problem])
    }

    /// Why a job cannot be run, as an error of this scenario.
    pub fn refused_job(&self, error: &JobError) -> Diagnostics {
        let span = self.job.as_ref().map_or(Span::FILE, |job| job.span);
        let problem = Diagnostic::new(span, error.to_string());
        Diagnostics::new(self.sources.clone(), vec![problem])
    }
}

/// Reads a scenario. `file_name` is what errors call the text, and what paths in it are relative to; it is not
/// opened. Later overrides win over earlier ones, and all of them over the file. `files` reads what the
/// scenario names: `&|path: &Path| std::fs::read_to_string(path)`.
///
/// # Errors
/// Everything that is wrong with the text, the overrides and the files, with places.
pub fn parse(
    text: &str,
    file_name: &str,
    overrides: &[Override],
    files: &ReadFile<'_>,
) -> Result<Scenario, Diagnostics> {
    let mut sources = vec![Source { name: file_name.to_owned(), text: text.into() }];
    sources.extend(overrides.iter().map(Override::source));
    let mut files = Files::new(files, file_name, sources.len());

    let mut problems = Problems::new();
    let read = read(text, file_name, overrides, &mut files, &mut problems);
    sources.extend(files.into_sources());
    let sources: Sources = sources.into();
    match read {
        Some(parts) if problems.is_empty() => Ok(Scenario {
            name: parts.name,
            step: parts.step,
            job: parts.job,
            rl: parts.rl,
            sweep: parts.sweep,
            search: parts.search,
            sources,
        }),
        _ => Err(Diagnostics::new(sources, problems)),
    }
}

/// The file whose order of operations a scenario would run, if it names one and no schedule was set from outside;
/// whether the scenario is right otherwise is not asked.
pub fn order_file(text: &str, overrides: &[Override]) -> Option<String> {
    let mut table = parse_document(text).ok()?;
    apply(&mut table, overrides, &mut Problems::new());
    let Node::Table(pipeline) = &table.get("pipeline")?.item.node else { return None };
    let file = &pipeline.get("schedule_file")?.item;
    let schedule = pipeline.get("schedule").map(|entry| entry.item.span.source);
    match &file.node {
        Node::Text(name) if schedule.is_none_or(|source| source <= file.span.source) => Some(name.clone()),
        _ => None,
    }
}

/// What a text holds.
struct Parts {
    name: String,
    step: Option<StepScenario>,
    job: Option<JobScenario>,
    rl: Option<RlScenario>,
    sweep: Sweep,
    search: SearchSpace,
}

/// All of [`parse`]; on `None`, `problems` says why.
fn read(
    text: &str,
    file_name: &str,
    overrides: &[Override],
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Option<Parts> {
    let mut table = match parse_document(text) {
        Ok(table) => table,
        Err(errors) => {
            problems.extend(errors);
            return None;
        }
    };
    let fit = overrides.iter().any(|one| one.fits).then(|| Fit { written_for: placement_in(&table) });
    apply(&mut table, overrides, problems);
    if table.entries.is_empty() {
        problems.push(Diagnostic::new(Span::FILE, "the scenario is empty").help(MINIMAL));
        return None;
    }
    let item = Item { span: Span::FILE, node: Node::Table(table) };
    let root = Place { path: "", example: "" };
    let file = File::from_item(&item, &root, problems)?;
    let Node::Table(table) = &item.node else {
        return None;
    };
    check_parts(&file, problems)?;
    let context = Fitting {
        fit,
        // Options that do not suit a schedule are dropped where only the schedule was set from outside.
        schedule_was_set: file
            .pipeline
            .get()
            .and_then(|pipeline| pipeline.schedule.span())
            .is_some_and(|span| span.source > 0),
    };
    let models = lower_model(&file, files, problems);
    let step = match file.pipeline {
        Key::Absent => None,
        _ => lower_step(&file, &models, &context, files, problems),
    };
    let job = lower_job(&file, table, &models, step.as_ref(), problems);
    let rl = lower_rl(&file, table, &models, step.as_ref(), files, problems);
    let sweep = file.sweep.get().map(|written| written.0.clone());
    let search = match file.search.get() {
        Some(written) => SearchSpace::new(written, problems)?,
        None => SearchSpace::default(),
    };
    Some(Parts {
        name: file.name.get().cloned().unwrap_or_else(|| stem(file_name)),
        step,
        job: job.ok()?,
        rl: rl.ok()?,
        sweep: sweep.unwrap_or_default(),
        search,
    })
}

/// Reports a file with nothing to simulate, and tables that belong to a part which is not there.
fn check_parts(file: &File, problems: &mut Problems) -> Option<()> {
    let (no_step, no_job) = (file.pipeline.is_absent(), file.job.is_absent());
    if no_step && no_job && file.rl.is_absent() {
        let message = "nothing to simulate: there is no `[pipeline]`, no `[job]` and no `[rl]`";
        problems.push(Diagnostic::new(Span::FILE, message).help(MINIMAL));
        return None;
    }
    let of_step = [
        ("time", file.time.span()),
        ("transfer", file.transfer.span()),
        ("memory", file.memory.span()),
        ("jitter", file.jitter.span()),
        ("efficiency", file.efficiency.span()),
    ];
    let of_job = [
        ("checkpoint", file.checkpoint.span()),
        ("storage", file.storage.span()),
        ("faults", file.faults.span()),
        ("stragglers", file.stragglers.span()),
        ("input", file.input.span()),
    ];
    let lost_step = of_step.into_iter().filter(|_| no_step).map(|table| (table, "step", "[pipeline]"));
    let lost_job = of_job.into_iter().filter(|_| no_job).map(|table| (table, "job", "[job]"));
    for ((name, span), part, needed) in lost_step.chain(lost_job) {
        if let Some(span) = span {
            let message = format!("`[{name}]` belongs to a {part}, and there is no `{needed}`");
            problems.push(Diagnostic::new(span, message).help(format!("write `{needed}`, or leave it out")));
        }
    }
    Some(())
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
