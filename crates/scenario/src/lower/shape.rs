//! Ranks, chunks, micro-batches, the schedule and its options.

use pipestep_schedule::{Chunks, Options, Placement, Schedule, Shape, ShapeError};

use super::Broken;
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{File, Pipeline};
use crate::options::{all_options, takes};
use crate::read::{Count, Key, Positive, Problems};
use crate::scenario::Fitting;

/// Leave to change the number of chunks for a schedule that does not take the written one.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    /// The placement that the file's `layers` were written for.
    pub written_for: Placement,
}

/// A shape and who orders it.
pub(super) struct Planned {
    pub shape: Shape,
    pub schedule: &'static dyn Schedule,
    pub options: Options,
    pub schedule_span: Span,
    /// The shape that the file was written for, if the number of chunks was changed.
    pub written_shape: Option<Shape>,
}

/// The shape and the schedule of `[pipeline]`.
pub(super) fn lower(
    file: &File,
    pipeline: &Pipeline,
    fitting: &Fitting,
    problems: &mut Problems,
) -> Result<Planned, Broken> {
    let micro_batches = micro_batches(file, pipeline, problems);
    let (Some(name), Some(schedule_span)) = (pipeline.schedule.get(), pipeline.schedule.span()) else {
        return Err(Broken);
    };
    let schedule = name.0;
    let options = lower_options(pipeline, schedule, fitting, problems);
    let chunks = lower_chunks(pipeline, schedule, fitting.fit.is_some(), problems);
    let ranks = pipeline.ranks.get().ok_or(Broken)?;
    let (chunks, micro_batches) = (chunks?, micro_batches?);
    let shape_of = |chunks, placement| Shape::new(ranks.0, chunks, micro_batches, placement);
    let shape = shape_of(chunks, schedule.entry().placement).map_err(|error| {
        problems.push(refused_shape(pipeline, &error));
        Broken
    })?;
    let written = pipeline.chunks.get().map_or(1, |chunks| chunks.0);
    let written_shape = match fitting.fit {
        Some(fit) if written != chunks => shape_of(written, fit.written_for).ok(),
        _ => None,
    };
    Ok(Planned { shape, schedule, options: options?, schedule_span, written_shape })
}

/// The number of micro-batches: as written, or by cutting the global batch.
fn micro_batches(file: &File, pipeline: &Pipeline, problems: &mut Problems) -> Result<u64, Broken> {
    let (batch, span) = match (&pipeline.micro_batches, &pipeline.global_batch) {
        (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
        (Key::Given(count, _), Key::Absent) => return Ok(count.0),
        (Key::Absent, Key::Given(batch, span)) => (batch.0, *span),
        (Key::Given(_, count_at), Key::Given(_, batch_at)) => {
            let message = "`pipeline.global_batch` and `pipeline.micro_batches` both say how many there are";
            let problem = Diagnostic::new(*batch_at, message).related(Some(*count_at), "micro-batches");
            problems.push(problem.help("leave one of them out"));
            return Err(Broken);
        }
        (Key::Absent, Key::Absent) => {
            let span = file.pipeline.span().unwrap_or(Span::FILE);
            let problem = Diagnostic::new(span, "`[pipeline]` needs `micro_batches`");
            problems.push(problem.help("write `micro_batches = 8`"));
            return Err(Broken);
        }
    };
    let size = match &file.model {
        Key::Broken => return Err(Broken),
        Key::Absent => 1,
        Key::Given(model, _) => model.micro_batch_size.or(Positive(1)).ok_or(Broken)?.0,
    };
    let copies = u64::from(data_parallel(file)?);
    match size.checked_mul(copies) {
        Some(at_once) if batch.is_multiple_of(at_once) => Ok(batch / at_once),
        _ => {
            let message = format!(
                "`pipeline.global_batch`: {batch} sequences do not divide into micro-batches of {size} on \
                 {copies} data-parallel copies"
            );
            let size_at = file.model.get().and_then(|model| model.micro_batch_size.span());
            let problem = Diagnostic::new(span, message).related(size_at, "the size of a micro-batch");
            problems.push(problem.help(format!("write a multiple of {}", size.saturating_mul(copies))));
            Err(Broken)
        }
    }
}

/// Data-parallel copies of the pipeline.
pub(super) fn data_parallel(file: &File) -> Result<u32, Broken> {
    match &file.parallel {
        Key::Absent => Ok(1),
        Key::Broken => Err(Broken),
        Key::Given(parallel, _) => parallel.data.or(Count(1)).map(|count| count.0).ok_or(Broken),
    }
}

fn lower_options(
    pipeline: &Pipeline,
    schedule: &'static dyn Schedule,
    fitting: &Fitting,
    problems: &mut Problems,
) -> Result<Options, Broken> {
    let mut options = Options::default();
    let mut result = Ok(());
    for (name, &(value, span)) in &pipeline.options.0 {
        if takes(schedule, name) {
            options.0.insert(name.clone(), value);
        } else if span.source > 0 || !fitting.schedule_was_set {
            let entry = schedule.entry();
            let takers = all_options();
            let takers = takers.get(name.as_str()).map(|(_, takers)| takers.join(", "));
            let message = format!("`{}` has no option `{name}`", entry.name);
            let problem = Diagnostic::new(span, message)
                .help(format!("it is an option of {}", takers.unwrap_or_default()))
                .related(pipeline.schedule.span(), "the schedule");
            problems.push(problem);
            result = Err(Broken);
        }
    }
    result.map(|()| options)
}

/// The number of chunks; the fewest that the schedule takes if none was written.
fn lower_chunks(
    pipeline: &Pipeline,
    schedule: &'static dyn Schedule,
    may_fit: bool,
    problems: &mut Problems,
) -> Result<u64, Broken> {
    let allowed = schedule.entry().chunks;
    let fewest = match allowed {
        Chunks::Exactly(count) => u64::from(count),
        // One chunk is legal, but who compares such a schedule with others asks what several chunks buy.
        Chunks::Any if may_fit => 2,
        Chunks::Any => 1,
        Chunks::Even => 2,
    };
    let (written, span) = match &pipeline.chunks {
        Key::Absent => return Ok(fewest),
        Key::Broken => return Err(Broken),
        Key::Given(Positive(written), span) => (*written, *span),
    };
    if suits(allowed, written) && (!may_fit || written >= fewest) {
        return Ok(written);
    }
    if may_fit {
        return Ok(match allowed {
            Chunks::Even => written.saturating_add(1),
            Chunks::Exactly(_) | Chunks::Any => fewest,
        });
    }
    let takes = match allowed {
        Chunks::Exactly(1) => "takes 1 chunk a rank".to_owned(),
        Chunks::Exactly(count) => format!("takes {count} chunks a rank"),
        Chunks::Any => "takes any number of chunks".to_owned(),
        Chunks::Even => "takes an even number of chunks a rank".to_owned(),
    };
    let others = pipestep_schedule::all().iter().map(|other| other.entry());
    let others: Vec<&str> =
        others.filter(|entry| suits(entry.chunks, written)).map(|entry| entry.name).collect();
    let message = format!("`{}` {takes}, found {written}", schedule.entry().name);
    let problem = Diagnostic::new(span, message)
        .related(pipeline.schedule.span(), "the schedule")
        .help(format!("write `chunks = {fewest}`"));
    let problem = if others.is_empty() {
        problem
    } else {
        problem.help(format!("schedules that take {written}: {}", others.join(", ")))
    };
    problems.push(problem);
    Err(Broken)
}

fn suits(allowed: Chunks, count: u64) -> bool {
    match allowed {
        Chunks::Exactly(only) => count == u64::from(only),
        Chunks::Any => true,
        Chunks::Even => count.is_multiple_of(2),
    }
}

/// A shape past the limits, at the key that is most out of line.
fn refused_shape(pipeline: &Pipeline, error: &ShapeError) -> Diagnostic {
    let Pipeline { ranks, chunks, micro_batches, .. } = pipeline;
    let key = match error {
        ShapeError::TooManyStages { .. } if chunks.get().is_some_and(|chunks| chunks.0 > 64) => chunks,
        ShapeError::TooManyStages { .. } | ShapeError::Zero { what: "ranks" } => ranks,
        _ => micro_batches,
    };
    let span = key.span().or(pipeline.global_batch.span());
    Diagnostic::new(span.unwrap_or(Span::FILE), error.to_string())
}
