//! Ranks, chunks, micro-batches, the schedule and its options.

use pipestep_schedule::{Chunks, Options, Placement, Schedule, Shape, ShapeError};

use super::Broken;
use crate::diagnostic::{Diagnostic, Span};
use crate::format::Pipeline;
use crate::options::{all_options, takes};
use crate::read::{Key, Positive, Problems};
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
    pipeline: &Pipeline,
    fitting: &Fitting,
    problems: &mut Problems,
) -> Result<Planned, Broken> {
    let (Some(name), Some(schedule_span)) = (pipeline.schedule.get(), pipeline.schedule.span()) else {
        return Err(Broken);
    };
    let schedule = name.0;
    let options = lower_options(pipeline, schedule, fitting, problems);
    let chunks = lower_chunks(pipeline, schedule, fitting.fit.is_some(), problems);
    let (Some(ranks), Some(micro_batches)) = (pipeline.ranks.get(), pipeline.micro_batches.get()) else {
        return Err(Broken);
    };
    let chunks = chunks?;
    let shape_of = |chunks, placement| Shape::new(ranks.0, chunks, micro_batches.0, placement);
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
    Diagnostic::new(key.span().unwrap_or(Span::FILE), error.to_string())
}
