//! How many micro-batches a step has: as written, or by cutting a global batch.

use super::Broken;
use crate::diagnostic::Diagnostic;
use crate::format::{File, Pipeline};
use crate::read::{Count, Key, Positive, Problems};

/// The number of micro-batches, if it is written or follows from the global batch.
pub(super) fn micro_batches(
    file: &File,
    pipeline: &Pipeline,
    problems: &mut Problems,
) -> Result<Option<u64>, Broken> {
    let (batch, span) = match (&pipeline.micro_batches, &pipeline.global_batch) {
        (Key::Broken, _) | (_, Key::Broken) => return Err(Broken),
        (Key::Given(count, _), Key::Absent) => return Ok(Some(count.0)),
        (Key::Absent, Key::Given(batch, span)) => (batch.0, *span),
        (Key::Given(_, count_at), Key::Given(_, batch_at)) => {
            let message = "`pipeline.global_batch` and `pipeline.micro_batches` both say how many there are";
            let problem = Diagnostic::new(*batch_at, message).related(Some(*count_at), "micro-batches");
            problems.push(problem.help("leave one of them out"));
            return Err(Broken);
        }
        (Key::Absent, Key::Absent) => return Ok(None),
    };
    let size = match &file.model {
        Key::Broken => return Err(Broken),
        Key::Absent => 1,
        Key::Given(model, _) => model.micro_batch_size.or(Positive(1)).ok_or(Broken)?.0,
    };
    let copies = u64::from(data_parallel(file)?);
    match size.checked_mul(copies) {
        Some(at_once) if batch.is_multiple_of(at_once) => Ok(Some(batch / at_once)),
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
