//! The values of an empirical distribution: written out, or in a file with one a line.

use std::borrow::Cow;

use super::Broken;
use crate::chance::{Drawn, Values};
use crate::diagnostic::Diagnostic;
use crate::files::Files;
use crate::read::Problems;

/// All values. In a file, empty lines and those that begin with `#` are skipped.
pub(super) fn read_values<'v, D: Drawn>(
    values: &'v Values<D::Amount>,
    path: &str,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Cow<'v, [D::Amount]>, Broken>
where
    D::Amount: Clone,
{
    let (name, span) = match values {
        Values::Here(values) => return Ok(Cow::Borrowed(values)),
        Values::File(name, span) => (name, *span),
    };
    let opened = files.open(name, &format!("{path}.file"), span, problems).ok_or(Broken)?;
    let mut read = Vec::new();
    let mut start = 0;
    for line in opened.text.split_inclusive('\n') {
        let text = line.trim();
        let at = start + line.find(text).unwrap_or(0);
        start += line.len();
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some(value) = D::parse(text) else {
            let message = format!("expected {} on each line, found `{text}`", D::EXPECTED);
            problems.push(Diagnostic::new(opened.span(at, at + text.len()), message));
            return Err(Broken);
        };
        read.push(value);
    }
    if read.is_empty() {
        problems.push(Diagnostic::new(span, format!("`{path}.file`: there is no value in `{name}`")));
        return Err(Broken);
    }
    Ok(Cow::Owned(read))
}
