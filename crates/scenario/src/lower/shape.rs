//! Ranks, chunks, micro-batches, the schedule and its options.

use pipestep_schedule::{Chunks, Options, Placement, Schedule, Shape, ShapeError};

use super::batch::micro_batches;
use super::{Broken, order_file};
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::{File, Pipeline};
use crate::options::{all_options, takes};
use crate::read::{Key, Positive, Problems};
use crate::scenario::Fitting;
use crate::step::OrderSource;

/// Leave to change the number of chunks for a schedule that does not take the written one.
#[derive(Clone, Copy)]
pub(crate) struct Fit {
    /// The placement that the file's `layers` were written for.
    pub written_for: Placement,
}

/// A shape and what orders it.
pub(super) struct Planned {
    pub shape: Shape,
    pub order: OrderSource,
    pub order_span: Span,
    /// The shape that the file was written for, if the number of chunks was changed.
    pub written_shape: Option<Shape>,
}

/// The shape and the order of `[pipeline]`.
pub(super) fn lower(
    file: &File,
    pipeline: &Pipeline,
    fitting: &Fitting,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Planned, Broken> {
    let micro_batches = micro_batches(file, pipeline, problems);
    let whole = file.pipeline.span().unwrap_or(Span::FILE);
    match ordered_by(pipeline, whole, problems)? {
        Ordered::File(name, span) => {
            order_file::lower(pipeline, micro_batches?, (name, span), files, problems)
        }
        Ordered::Schedule(schedule, span) => {
            by_schedule(pipeline, whole, micro_batches, (schedule, span), fitting, files, problems)
        }
    }
}

/// What is to order the operations.
enum Ordered<'p> {
    Schedule(&'static dyn Schedule, Span),
    File(&'p str, Span),
}

/// The schedule or the file; of two, the one that was set from outside.
fn ordered_by<'p>(
    pipeline: &'p Pipeline,
    whole: Span,
    problems: &mut Problems,
) -> Result<Ordered<'p>, Broken> {
    match (&pipeline.schedule, &pipeline.schedule_file) {
        (Key::Given(_, schedule_at), Key::Given(name, file_at)) if file_at.source > schedule_at.source => {
            Ok(Ordered::File(name, *file_at))
        }
        (Key::Given(_, schedule_at), Key::Given(_, file_at)) if file_at.source == schedule_at.source => {
            let message = "`pipeline.schedule_file` and `pipeline.schedule` both order the operations";
            let problem = Diagnostic::new(*file_at, message).related(Some(*schedule_at), "the schedule");
            problems.push(problem.help("leave one of them out"));
            Err(Broken)
        }
        (Key::Given(name, span), Key::Absent | Key::Given(..)) => Ok(Ordered::Schedule(name.0, *span)),
        (Key::Absent, Key::Given(name, span)) => Ok(Ordered::File(name, *span)),
        (Key::Broken, _) | (_, Key::Broken) => Err(Broken),
        (Key::Absent, Key::Absent) => {
            let has_count = !(pipeline.micro_batches.is_absent() && pipeline.global_batch.is_absent());
            let needed = [
                ("ranks", "4", !pipeline.ranks.is_absent()),
                ("micro_batches", "8", has_count),
                ("schedule", "\"1f1b\"", false),
            ];
            let missing = needed.into_iter().filter(|(_, _, is_there)| !is_there);
            problems.extend(missing.map(|(name, example, _)| needs(whole, name, example)));
            Err(Broken)
        }
    }
}

fn needs(whole: Span, name: &str, example: &str) -> Diagnostic {
    let problem = Diagnostic::new(whole, format!("`[pipeline]` needs `{name}`"));
    problem.help(format!("write `{name} = {example}`"))
}

/// A step that a schedule orders.
fn by_schedule(
    pipeline: &Pipeline,
    whole: Span,
    micro_batches: Result<Option<u64>, Broken>,
    (schedule, order_span): (&'static dyn Schedule, Span),
    fitting: &Fitting,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Planned, Broken> {
    let options = lower_options(pipeline, schedule, fitting, problems);
    let chunks = lower_chunks(pipeline, schedule, fitting.fit.is_some(), problems);
    // A schedule that is compared with a file has the file's shape where none is written.
    let of_file = match fitting.fit.and(pipeline.schedule_file.get().zip(pipeline.schedule_file.span())) {
        Some((name, span)) => {
            let read = order_file::read(pipeline, micro_batches?, (name, span), files, problems)?;
            Some(read.shape)
        }
        None => None,
    };
    let mut needed = |found: Option<u64>, of_file: Option<usize>, name, example| {
        found.or(of_file.map(|count| count as u64)).ok_or_else(|| {
            problems.push(needs(whole, name, example));
            Broken
        })
    };
    let ranks = match &pipeline.ranks {
        Key::Broken => Err(Broken),
        key => needed(key.get().map(|ranks| ranks.0), of_file.as_ref().map(Shape::ranks), "ranks", "4"),
    };
    let of_file_too = of_file.as_ref().map(Shape::micro_batches);
    let micro_batches = micro_batches.and_then(|found| needed(found, of_file_too, "micro_batches", "8"));
    let (ranks, micro_batches, chunks) = (ranks?, micro_batches?, chunks?);
    let shape_of = |chunks, placement| Shape::new(ranks, chunks, micro_batches, placement);
    let shape = shape_of(chunks, schedule.entry().placement).map_err(|error| {
        problems.push(refused_shape(pipeline, &error));
        Broken
    })?;
    let written = pipeline.chunks.get().map_or(1, |chunks| chunks.0);
    let written_shape = match fitting.fit {
        // A layer list was written for the placement of the file.
        Some(_) if pipeline.schedule_file.get().is_some() => of_file,
        Some(fit) if written != chunks => shape_of(written, fit.written_for).ok(),
        _ => None,
    };
    let order = OrderSource::Schedule { schedule, options: options? };
    Ok(Planned { shape, order, order_span, written_shape })
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
