//! `pipeline.schedule_file`: the orders of a PyTorch schedule file, and its errors at their cells.

use std::ops::Range;

use pipestep_schedule::csv::{self, CsvError, CsvFile, Expected};

use super::Broken;
use super::shape::Planned;
use crate::diagnostic::{Diagnostic, Span};
use crate::files::{Files, Opened};
use crate::format::Pipeline;
use crate::read::Problems;
use crate::step::OrderSource;

/// A step whose order is in a file. What `[pipeline]` says of its shape must agree.
pub(super) fn lower(
    pipeline: &Pipeline,
    micro_batches: Option<u64>,
    (name, span): (&str, Span),
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Planned, Broken> {
    refuse_options(pipeline, span, problems)?;
    let read = read(pipeline, micro_batches, (name, span), files, problems)?;
    let order = OrderSource::File { name: name.to_owned(), orders: read.orders, comms: read.comms };
    Ok(Planned { shape: read.shape, order, order_span: span, written_shape: None })
}

/// Reads the file.
pub(super) fn read(
    pipeline: &Pipeline,
    micro_batches: Option<u64>,
    (name, span): (&str, Span),
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<CsvFile, Broken> {
    if pipeline.ranks.is_broken() || pipeline.chunks.is_broken() {
        return Err(Broken);
    }
    let opened = files.open(name, "pipeline.schedule_file", span, problems).ok_or(Broken)?;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (ranks, chunks) = (pipeline.ranks.get(), pipeline.chunks.get());
    let stages = ranks.zip(chunks).map(|(ranks, chunks)| ranks.0.saturating_mul(chunks.0));
    let expected = Expected {
        ranks: ranks.map(|ranks| count(ranks.0)),
        stages: stages.map(count),
        micro_batches: micro_batches.map(count),
    };
    csv::read(&opened.text, &expected).map_err(|error| {
        problems.push(refused(&error, &opened, pipeline, (name, span)));
        Broken
    })
}

/// Options are those of schedules.
fn refuse_options(pipeline: &Pipeline, file_at: Span, problems: &mut Problems) -> Result<(), Broken> {
    let mut result = Ok(());
    for (name, &(_, span)) in &pipeline.options.0 {
        // One that stands in the scenario may be meant for the schedule that the file replaces.
        if span.source < file_at.source {
            continue;
        }
        let message = format!("`{name}` is an option of a schedule, and the order comes from a file");
        let problem = Diagnostic::new(span, message).related(Some(file_at), "the file");
        problems.push(problem.help(format!("leave out `{name}`")));
        result = Err(Broken);
    }
    result
}

/// What is wrong with a file, at its cell.
fn refused(error: &CsvError, opened: &Opened, pipeline: &Pipeline, (name, span): (&str, Span)) -> Diagnostic {
    let rows = &opened.text;
    let place = |range: Range<usize>| opened.span(range.start, range.end);
    match error {
        CsvError::Row { row, .. } | CsvError::Missing { row, .. } => {
            Diagnostic::new(place(row_of(rows, *row)), error.to_string())
        }
        CsvError::Cell { row, column, .. } => {
            Diagnostic::new(place(cell_of(rows, *row, *column)), error.to_string())
        }
        CsvError::Deadlock { cells } => {
            let mut places = cells.iter().map(|stuck| (place(cell_of(rows, stuck.row, stuck.column)), stuck));
            let first = places.next();
            let span = first.map_or(span, |(span, _)| span);
            let problem = Diagnostic::new(span, error.to_string());
            places.fold(problem, |problem, (span, stuck)| {
                problem.related(Some(span), format!("waits for `{}`", stuck.waits_for))
            })
        }
        CsvError::File(_) | CsvError::Shape(_) => {
            let text = error.to_string();
            let about = [("rank", &pipeline.ranks), ("stage", &pipeline.chunks)];
            let about = about.into_iter().filter(|(word, _)| text.contains(word));
            let problem = Diagnostic::new(span, format!("`{name}`: {text}"));
            about.fold(problem, |problem, (_, key)| problem.related(key.span(), "expected here"))
        }
    }
}

/// The bytes of a row, counted from 1; lines end as the reader of the format ends them.
fn row_of(text: &str, row: usize) -> Range<usize> {
    let mut start = 0;
    for _ in 1..row {
        let rest = &text[start..];
        let Some(end) = rest.find(['\r', '\n']) else {
            return text.len()..text.len();
        };
        start += end + if rest[end..].starts_with("\r\n") { 2 } else { 1 };
    }
    let length = text[start..].find(['\r', '\n']).unwrap_or(text.len() - start);
    start..start + length
}

/// The bytes of a cell without its blanks, row and column counted from 1.
fn cell_of(text: &str, row: usize, column: usize) -> Range<usize> {
    let line = row_of(text, row);
    let (mut start, mut quoted, mut passed) = (line.start, false, 1);
    for (at, c) in text[line.clone()].char_indices() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted && passed == column => {
                return trimmed(text, start..line.start + at);
            }
            ',' if !quoted => {
                passed += 1;
                start = line.start + at + 1;
            }
            _ => {}
        }
    }
    trimmed(text, start..line.end)
}

fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let cell = &text[range.clone()];
    let left = cell.len() - cell.trim_start().len();
    let length = cell.trim().len();
    range.start + left..range.start + left + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_whatever_ends_their_lines() {
        let text = "0F0, 0F1 ,0B0\r\n1F0,\"1B0\",\n2F0\r3F0";
        let cell = |row, column| &text[cell_of(text, row, column)];
        assert_eq!([cell(1, 1), cell(1, 2), cell(1, 3)], ["0F0", "0F1", "0B0"]);
        assert_eq!([cell(2, 2), cell(2, 3), cell(3, 1), cell(4, 1)], ["\"1B0\"", "", "2F0", "3F0"]);
        assert_eq!(&text[row_of(text, 2)], "1F0,\"1B0\",");
        assert_eq!(&text[row_of(text, 9)], "");
    }
}
