//! Values set from outside the file: `--set KEY=VALUE`, points of a sweep, schedules to compare.
//!
//! An override replaces the value in the file before anything is checked, and errors about it point at its own
//! text.

use crate::diagnostic::{Diagnostic, Source, Span};
use crate::tree::{Entry, Item, Node, Table, parse_value};

/// A value for one key, replacing the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    /// `KEY=VALUE`.
    text: String,
    /// Where it came from, as errors name it: `--set`.
    origin: String,
    /// Whether the rest of the pipeline may be fitted to the schedule it names.
    pub(crate) fits: bool,
}

impl Override {
    /// `KEY=VALUE` as typed after `--set`. The key is dotted (`pipeline.ranks`). The value is TOML; what is no
    /// TOML is taken as a string, so `time.forward=10 ms` needs no quotes.
    pub fn set(text: impl Into<String>) -> Self {
        Self::from(text, "--set")
    }

    /// The same from elsewhere: `origin` is what errors call it.
    pub fn from(text: impl Into<String>, origin: impl Into<String>) -> Self {
        Self { text: text.into(), origin: origin.into(), fits: false }
    }

    /// Another schedule for the same pipeline, for comparisons. What does not suit it is fitted to it: options
    /// of other schedules are dropped, and a number of chunks that it does not take becomes the nearest one
    /// that it does, each rank keeping its layers.
    pub fn schedule(name: &str) -> Self {
        Self { text: format!("pipeline.schedule={name}"), origin: "--schedules".to_owned(), fits: true }
    }

    pub(crate) fn source(&self) -> Source {
        Source { name: self.origin.clone(), text: self.text.as_str().into() }
    }
}

/// Puts the values of `overrides` into `table`; override i has source i + 1.
pub(crate) fn apply(table: &mut Table, overrides: &[Override], problems: &mut Vec<Diagnostic>) {
    for (index, one) in overrides.iter().enumerate() {
        if let Err(problem) = apply_one(table, &one.text, index + 1) {
            problems.push(problem);
        }
    }
}

fn apply_one(table: &mut Table, text: &str, source: usize) -> Result<(), Diagnostic> {
    let span = |start, end| Span { source, start, end };
    let whole = span(0, text.len());
    let Some((path, value)) = text.split_once('=') else {
        let message = format!("expected `KEY=VALUE`, found `{text}`");
        return Err(Diagnostic::new(whole, message).help("write `pipeline.ranks=8`"));
    };
    let key_span = span(0, path.len());
    let keys: Vec<&str> = path.split('.').map(str::trim).collect();
    if keys.iter().any(|key| key.is_empty()) {
        let message = format!("expected a key such as `pipeline.ranks`, found `{path}`");
        return Err(Diagnostic::new(key_span, message));
    }
    let item = read_value(value, source, path.len() + 1)?;
    let (last, tables) = keys.split_last().expect("splitting a string gives at least one piece");
    let mut inner = table;
    for key in tables {
        inner = enter(inner, key, key_span)?;
    }
    let entry = Entry { key: (*last).to_owned(), key_span, item };
    match inner.get_mut(last) {
        Some(written) => *written = entry,
        None => inner.entries.push(entry),
    }
    Ok(())
}

/// The value as TOML, or as the string it is. What begins like a list, a table or a quoted string must be one.
pub(crate) fn read_value(value: &str, source: usize, offset: usize) -> Result<Item, Diagnostic> {
    let trimmed = value.trim_start();
    let offset = offset + (value.len() - trimmed.len());
    let trimmed = trimmed.trim_end();
    match parse_value(trimmed, source, offset) {
        Ok(item) => Ok(item),
        Err(problem) if trimmed.starts_with(['[', '{', '"', '\'']) => Err(problem),
        Err(_) => Ok(Item {
            span: Span { source, start: offset, end: offset + trimmed.len() },
            node: Node::Text(trimmed.to_owned()),
        }),
    }
}

/// The table under `key`, made if it is not there.
fn enter<'a>(table: &'a mut Table, key: &str, key_span: Span) -> Result<&'a mut Table, Diagnostic> {
    if table.get(key).is_none() {
        table.entries.push(Entry {
            key: key.to_owned(),
            key_span,
            item: Item { span: key_span, node: Node::Table(Table::default()) },
        });
    }
    let entry = table.get_mut(key).expect("it was just added if it was not there");
    match &mut entry.item.node {
        Node::Table(inner) => Ok(inner),
        _ => Err(Diagnostic::new(key_span, format!("`{key}` is not a table"))
            .related(Some(entry.item.span), "it is a value here")),
    }
}
