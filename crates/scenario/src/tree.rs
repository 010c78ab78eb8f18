//! A scenario as a tree of values that know where they were written: in the file or in a `--set`.
//!
//! TOML syntax ends here. Numbers keep their text, so that decimals stay exact.

use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Span};

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub span: Span,
    pub node: Node,
}

/// What TOML can say.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Text(String),
    /// A whole number as written; `None` past 128 bits.
    Integer(Option<i128>),
    /// A decimal as written, without underscores.
    Float(String),
    Boolean(bool),
    /// A date or time of day as written.
    Moment(String),
    List(Vec<Item>),
    Table(Table),
}

/// Keys in the order in which they were written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub entries: Vec<Entry>,
}

/// A key, its place, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub key: String,
    pub key_span: Span,
    pub item: Item,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.key == key)
    }
}

/// Where the value at a dotted path stands, places in lists by number, or the nearest thing round it; `None` at the top.
pub(crate) fn find_span(table: &Table, path: &str) -> Option<Span> {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    Some(span_in(&table.get(key)?.item, rest))
}

fn span_in(item: &Item, path: &str) -> Span {
    let (key, rest) = path.split_once('.').unwrap_or((path, ""));
    let inner = match &item.node {
        Node::Table(table) => table.get(key).map(|entry| &entry.item),
        Node::List(items) => key.parse().ok().and_then(|number: usize| items.get(number)),
        _ => None,
    };
    inner.map_or(item.span, |inner| span_in(inner, rest))
}

impl Item {
    /// What it is, for "expected ..., found ...".
    pub(crate) fn describe(&self) -> String {
        match &self.node {
            Node::Text(text) => format!("the string `\"{text}\"`"),
            Node::Integer(Some(number)) => format!("the number `{number}`"),
            Node::Integer(None) => "a number past 128 bits".to_owned(),
            Node::Float(text) => format!("the number `{text}`"),
            Node::Boolean(value) => format!("`{value}`"),
            Node::Moment(text) => format!("the date or time of day `{text}`"),
            Node::List(items) => match items.len() {
                0 => "an empty list".to_owned(),
                1 => "a list of one value".to_owned(),
                count => format!("a list of {count} values"),
            },
            Node::Table(_) => "a table".to_owned(),
        }
    }
}

/// What is said about a key or a table that is there already.
const TWICE: &str = " is written twice";

/// Reads a whole TOML document.
///
/// # Errors
/// All its syntax errors, duplicate keys among them.
pub(crate) fn parse_document(text: &str) -> Result<Table, Vec<Diagnostic>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        return Ok(own_table(table.get_ref(), 0, 0));
    }
    let line = |at: usize| text.bytes().take(at).filter(|&byte| byte == b'\n').count();
    let mut problems: Vec<Diagnostic> = errors.iter().map(|error| syntax_error(error, text, 0, 0)).collect();
    // What follows the first error of a line is its consequence, and so is every key of a table written twice.
    problems.dedup_by_key(|problem| line(problem.start()));
    let is_header = |at: usize| text[..at].ends_with('[');
    let next_header = |at: usize| text[at..].find("\n[").map_or(text.len(), |found| at + found);
    let mut skip_to = 0;
    problems.retain(|problem| {
        let keep = problem.start() >= skip_to;
        if keep && problem.message().ends_with(TWICE) && is_header(problem.start()) {
            skip_to = next_header(problem.start());
        }
        keep
    });
    Err(problems)
}

/// Reads one TOML value that begins at `offset` of source `source`.
///
/// # Errors
/// Its syntax error.
pub(crate) fn parse_value(text: &str, source: usize, offset: usize) -> Result<Item, Diagnostic> {
    match DeValue::parse(text) {
        Ok(value) => Ok(own_item(value.get_ref(), value.span(), source, offset)),
        Err(error) => Err(syntax_error(&error, text, source, offset)),
    }
}

fn syntax_error(error: &toml::de::Error, text: &str, source: usize, offset: usize) -> Diagnostic {
    let message = error.message();
    let Some(range) = error.span() else {
        return Diagnostic::new(Span::FILE, format!("invalid TOML: {message}"));
    };
    let span = place(range.clone(), source, offset);
    match text.get(range) {
        Some(key) if message == "duplicate key" => {
            Diagnostic::new(span, format!("`{key}`{TWICE}")).help("keep one of the two")
        }
        _ => Diagnostic::new(span, format!("invalid TOML: {message}")),
    }
}

fn place(range: std::ops::Range<usize>, source: usize, offset: usize) -> Span {
    Span { source, start: range.start + offset, end: range.end + offset }
}

fn own_table(table: &DeTable<'_>, source: usize, offset: usize) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: place(key.span(), source, offset),
            item: own_item(value.get_ref(), value.span(), source, offset),
        })
        .collect();
    entries.sort_by_key(|entry| entry.key_span);
    Table { entries }
}

fn own_item(value: &DeValue<'_>, range: std::ops::Range<usize>, source: usize, offset: usize) -> Item {
    let node = match value {
        DeValue::String(text) => Node::Text(text.to_string()),
        DeValue::Integer(number) => Node::Integer(i128::from_str_radix(number.as_str(), number.radix()).ok()),
        DeValue::Float(number) => Node::Float(number.as_str().to_owned()),
        DeValue::Boolean(value) => Node::Boolean(*value),
        DeValue::Datetime(moment) => Node::Moment(moment.to_string()),
        DeValue::Array(items) => Node::List(
            items.iter().map(|item| own_item(item.get_ref(), item.span(), source, offset)).collect(),
        ),
        DeValue::Table(table) => Node::Table(own_table(table, source, offset)),
    };
    Item { span: place(range, source, offset), node }
}
