//! `[sweep]`: lists of values to try, by dotted key.
//!
//! A value is kept as the TOML it was written as, so that a point of the sweep is a list of overrides and goes
//! the same way as `--set`.

use schemars::{Schema, SchemaGenerator, json_schema};

use crate::diagnostic::Diagnostic;
use crate::overrides::Override;
use crate::read::{FromItem, Place, Problems, closest, join};
use crate::table::{is_known, known_keys, open};
use crate::tree::{Entry, Item, Node, Table};

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
    pub values: Vec<String>,
}

impl Axis {
    /// The override that sets the key to one of its values; `None` past the last.
    pub fn at(&self, index: usize) -> Option<Override> {
        let value = self.values.get(index)?;
        Some(Override::from(format!("{}={value}", self.key), "[sweep]"))
    }
}

/// `[sweep]` as it was written.
pub(crate) struct WrittenSweep(pub Sweep);

impl FromItem for WrittenSweep {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let mut axes = Vec::new();
        read_axes(open(item, place, problems)?, "", &mut axes, problems);
        Some(Self(Sweep { axes }))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let keys: Vec<String> =
            known_keys().iter().filter(|key| !key.starts_with("sweep")).cloned().collect();
        json_schema!({
            "type": "object",
            "propertyNames": { "enum": keys },
            "additionalProperties": { "type": "array", "minItems": 1 }
        })
    }
}

/// Reads the axes of a table, and of the tables in it: `"pipeline.ranks" = [..]` and `pipeline.ranks = [..]`
/// are the same.
fn read_axes(table: &Table, path: &str, axes: &mut Vec<Axis>, problems: &mut Problems) {
    for entry in &table.entries {
        let key = join(path, &entry.key);
        match &entry.item.node {
            Node::Table(inner) => read_axes(inner, &key, axes, problems),
            _ => match read_axis(&key, entry) {
                Ok(axis) => axes.push(axis),
                Err(problem) => problems.push(problem),
            },
        }
    }
}

fn read_axis(key: &str, entry: &Entry) -> Result<Axis, Diagnostic> {
    if !is_known(key) || key == "sweep" {
        let problem = Diagnostic::new(entry.key_span, format!("`[sweep]`: unknown key `{key}`"));
        let known = known_keys();
        return Err(match closest(key, known.iter().map(String::as_str)) {
            Some(near) => problem.help(format!("did you mean `\"{near}\"`?")),
            None => problem.help("write a dotted key such as `\"pipeline.micro_batches\"`"),
        });
    }
    let wrong = || {
        let message =
            format!("`[sweep]`: expected a list of values for `{key}`, found {}", entry.item.describe());
        Diagnostic::new(entry.item.span, message).help(format!("write `\"{key}\" = [...]`"))
    };
    match &entry.item.node {
        Node::List(items) if !items.is_empty() => {
            Ok(Axis { key: key.to_owned(), values: items.iter().map(as_toml).collect() })
        }
        _ => Err(wrong()),
    }
}

/// A value as TOML again.
fn as_toml(item: &Item) -> String {
    match &item.node {
        Node::Text(text) => toml::Value::String(text.clone()).to_string(),
        Node::Integer(Some(number)) => number.to_string(),
        // Past 128 bits: still past 64 bits, and refused as such.
        Node::Integer(None) => i128::MAX.to_string(),
        Node::Float(text) => text.clone(),
        Node::Boolean(value) => value.to_string(),
        Node::Moment => "1970-01-01".to_owned(),
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
