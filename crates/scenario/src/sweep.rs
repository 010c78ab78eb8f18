//! `[sweep]` and `--vary`: lists and ranges of values to try, by dotted key.
//!
//! A value is kept as the TOML it was written as, so that a point of the sweep is a list of overrides and goes
//! the same way as `--set`.

mod range;

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::diagnostic::{Diagnostic, Diagnostics, Source, Span};
use crate::overrides::{Override, apply, read_value};
use crate::read::{FromItem, Place, Problems, closest, join};
use crate::table::{is_known, known_keys, open};
use crate::tree::{Entry, Item, Node, Table, parse_document};

pub use range::Values;
use range::{RangeError, parse_range};

/// The keys that a scenario wants varied, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sweep {
    /// One axis for each key.
    pub axes: Vec<Axis>,
}

/// One key and the values to try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Dotted: `pipeline.micro_batches`.
    pub key: String,
    /// As TOML: `8`, `"1f1b"`. At least one.
    pub values: Values,
    /// Where it was written, as errors name it.
    origin: &'static str,
}

impl Sweep {
    /// Reads only the `[sweep]` of a text, after its overrides: a scenario may be right at the points of its sweep
    /// and nowhere else. [`crate::parse`] has the meaning of the parameters.
    ///
    /// # Errors
    /// Text that is no TOML; what is wrong with the overrides and the `[sweep]`.
    pub fn read(text: &str, file_name: &str, overrides: &[Override]) -> Result<Self, Diagnostics> {
        let mut sources = vec![Source { name: file_name.to_owned(), text: text.into() }];
        sources.extend(overrides.iter().map(Override::source));
        let mut problems = Problems::new();
        let mut sweep = None;
        match parse_document(text) {
            Err(errors) => problems.extend(errors),
            Ok(mut table) => {
                apply(&mut table, overrides, &mut problems);
                let place = Place { path: "sweep", example: "" };
                let written = table.get("sweep");
                sweep = written.and_then(|entry| WrittenSweep::from_item(&entry.item, &place, &mut problems));
            }
        }
        if problems.is_empty() {
            Ok(sweep.map(|written| written.0).unwrap_or_default())
        } else {
            Err(Diagnostics::new(sources.into(), problems))
        }
    }

    /// Puts in an axis; it replaces one of the same key.
    pub fn vary(&mut self, axis: Axis) {
        match self.axes.iter_mut().find(|written| written.key == axis.key) {
            Some(written) => *written = axis,
            None => self.axes.push(axis),
        }
    }
}

impl Axis {
    /// `KEY=V1,V2` or `KEY=LO..HI`, `KEY=LO..HI:STEP`, `KEY=LO..HI*FACTOR` as typed after `--vary`. Both ends
    /// of a range count where the steps meet them. A value is TOML; what is no TOML is taken as a string.
    ///
    /// # Errors
    /// An unknown key, no value at all, or a broken value or range, pointing into the text.
    pub fn vary(text: &str) -> Result<Self, Diagnostics> {
        let source = Source { name: VARY.to_owned(), text: text.into() };
        read_vary(text).map_err(|problem| Diagnostics::new(vec![source].into(), vec![problem]))
    }

    /// The override that sets the key to one of its values; `None` past the last.
    pub fn at(&self, index: usize) -> Option<Override> {
        let value = self.values.get(index)?;
        Some(Override::from(format!("{}={value}", self.key), self.origin))
    }
}

/// `[sweep]` as it was written.
pub(crate) struct WrittenSweep(pub Sweep);

/// `[search.vary]` as it was written.
pub(crate) struct WrittenVary(pub Sweep);

impl FromItem for WrittenSweep {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        read_table(item, place, SWEEP, problems).map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        axes_schema()
    }
}

impl FromItem for WrittenVary {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        read_table(item, place, SEARCH, problems).map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        axes_schema()
    }
}

fn axes_schema() -> Schema {
    let keys: Vec<String> = known_keys().into_iter().filter(|key| !is_space(key)).collect();
    json_schema!({
        "type": "object",
        "propertyNames": { "enum": keys },
        "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, { "type": "string" }] }
    })
}

/// Whether a key says itself what is varied.
pub(crate) fn is_space(key: &str) -> bool {
    key == "sweep" || key == "search.vary" || key.starts_with("search.split")
}

fn read_table(
    item: &Item,
    place: &Place<'_>,
    origin: &'static str,
    problems: &mut Problems,
) -> Option<Sweep> {
    let mut axes = Vec::new();
    read_axes(open(item, place, problems)?, "", origin, &mut axes, problems);
    Some(Sweep { axes })
}

/// Reads the axes of a table, and of the tables in it: `"pipeline.ranks" = [..]` and `pipeline.ranks = [..]`
/// are the same.
fn read_axes(table: &Table, path: &str, origin: &'static str, axes: &mut Vec<Axis>, problems: &mut Problems) {
    for entry in &table.entries {
        let key = join(path, &entry.key);
        match &entry.item.node {
            Node::Table(inner) => read_axes(inner, &key, origin, axes, problems),
            _ => match read_axis(&key, entry, origin) {
                Ok(axis) => axes.push(axis),
                Err(problem) => problems.push(problem),
            },
        }
    }
}

fn read_axis(key: &str, entry: &Entry, origin: &'static str) -> Result<Axis, Diagnostic> {
    if let Some(problem) = unknown_key(key, entry.key_span, origin) {
        return Err(problem);
    }
    let values = match &entry.item.node {
        Node::Text(text) => match parse_range(text) {
            Some(values) => values.map_err(|error| broken_range(origin, entry.item.span, &error))?,
            None => Values::listed(Vec::new()),
        },
        Node::List(items) => Values::listed(items.iter().map(as_toml).collect()),
        _ => Values::listed(Vec::new()),
    };
    if values.is_empty() {
        let message = format!(
            "`{origin}`: expected a list of values or a range for `{key}`, found {}",
            entry.item.describe()
        );
        let help = format!("write `\"{key}\" = [...]` or `\"{key}\" = \"1..64\"`");
        return Err(Diagnostic::new(entry.item.span, message).help(help));
    }
    Ok(Axis { key: key.to_owned(), values, origin })
}

/// How errors call the places where axes are written.
const SWEEP: &str = "[sweep]";
const SEARCH: &str = "[search.vary]";
const VARY: &str = "--vary";

/// The error for a key that does not exist, or that cannot be varied.
pub(crate) fn unknown_key(key: &str, span: Span, origin: &str) -> Option<Diagnostic> {
    if is_known(key) && !is_space(key) {
        return None;
    }
    let problem = Diagnostic::new(span, format!("`{origin}`: unknown key `{key}`"));
    let known = known_keys();
    Some(match closest(key, known.iter().map(String::as_str).filter(|key| !is_space(key))) {
        Some(near) => problem.help(format!("did you mean `\"{near}\"`?")),
        None => problem.help("write a dotted key such as `\"pipeline.micro_batches\"`"),
    })
}

fn broken_range(origin: &str, span: Span, error: &RangeError) -> Diagnostic {
    Diagnostic::new(span, format!("`{origin}`: {error}"))
}

fn read_vary(text: &str) -> Result<Axis, Diagnostic> {
    let span = |start, end| Span { source: 0, start, end };
    let Some((key, values)) = text.split_once('=') else {
        let message = format!("expected `KEY=V1,V2` or `KEY=LO..HI`, found `{text}`");
        return Err(
            Diagnostic::new(span(0, text.len()), message).help("write `pipeline.micro_batches=1,2,4`")
        );
    };
    let (offset, whole) = (key.len() + 1, span(key.len() + 1, text.len()));
    let trimmed = key.trim();
    if let Some(problem) = unknown_key(trimmed, span(0, key.len()), VARY) {
        return Err(problem);
    }
    let values = if let Some(values) = parse_range(values) {
        values.map_err(|error| broken_range(VARY, whole, &error))?
    } else {
        let read = |(at, piece): (usize, &str)| Ok(as_toml(&read_value(piece, 0, offset + at)?));
        Values::listed(split_values(values).into_iter().map(read).collect::<Result<_, Diagnostic>>()?)
    };
    Ok(Axis { key: trimmed.to_owned(), values, origin: VARY })
}

/// The pieces between commas that are not inside brackets or quotes, each with its place.
fn split_values(text: &str) -> Vec<(usize, &str)> {
    let (mut depth, mut quote, mut start) = (0_usize, None, 0);
    let mut pieces = Vec::new();
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push((start, &text[start..at]));
                start = at + 1;
            }
            _ => {}
        }
    }
    pieces.push((start, &text[start..]));
    pieces
}

/// A value as TOML again.
fn as_toml(item: &Item) -> String {
    match &item.node {
        Node::Text(text) => toml::Value::String(text.clone()).to_string(),
        Node::Integer(Some(number)) => number.to_string(),
        // Past 128 bits: still past 64 bits, and refused as such.
        Node::Integer(None) => i128::MAX.to_string(),
        Node::Float(text) | Node::Moment(text) => text.clone(),
        Node::Boolean(value) => value.to_string(),
        Node::List(items) => format!("[{}]", items.iter().map(as_toml).collect::<Vec<_>>().join(", ")),
        Node::Table(table) => {
            let entry = |entry: &Entry| {
                let key = toml::Value::String(entry.key.clone());
                format!("{key} = {}", as_toml(&entry.item))
            };
            format!("{{ {} }}", table.entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}
