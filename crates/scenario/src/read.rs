//! From the tree of values to typed keys: what a value may be, and what is said when it is not.
//!
//! A value that is wrong is reported and read as [`Key::Broken`], so that one mistake does not hide the others
//! and is not reported twice. What spans two keys is not checked here but in `lower`.

mod numbers;
mod values;

pub(crate) use numbers::{AboveZero, Real, SignedBytes};
pub(crate) use values::{Count, OneOrList, Positive, Word, Words};

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::diagnostic::{Diagnostic, Span};
use crate::tree::{Item, Node, Table};
use crate::units::UnitError;

/// What is wrong so far.
pub(crate) type Problems = Vec<Diagnostic>;

/// Something is wrong and has been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

/// One key of a table.
#[derive(Default)]
pub(crate) enum Key<T> {
    /// It was not written.
    #[default]
    Absent,
    /// It was written and is wrong, which has been reported.
    Broken,
    /// Its value, and where that stands.
    Given(T, Span),
}

impl<T> Key<T> {
    pub(crate) fn get(&self) -> Option<&T> {
        match self {
            Self::Given(value, _) => Some(value),
            Self::Absent | Self::Broken => None,
        }
    }

    /// The value and where it stands, or `None` where none was written.
    ///
    /// # Errors
    /// [`Broken`] where a wrong one was written.
    pub(crate) fn given(&self) -> Result<Option<(&T, Span)>, Broken> {
        match self {
            Self::Absent => Ok(None),
            Self::Broken => Err(Broken),
            Self::Given(value, span) => Ok(Some((value, *span))),
        }
    }

    /// Where the value stands.
    pub(crate) fn span(&self) -> Option<Span> {
        match self {
            Self::Given(_, span) => Some(*span),
            Self::Absent | Self::Broken => None,
        }
    }

    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Self::Broken)
    }

    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Absent)
    }
}

impl<T: Copy> Key<T> {
    /// The value, or `default` where none was written; `None` where a wrong one was.
    pub(crate) fn or(&self, default: T) -> Option<T> {
        match self {
            Self::Absent => Some(default),
            Self::Broken => None,
            Self::Given(value, _) => Some(*value),
        }
    }
}

/// The name of the key that a value is read for, and a legal value to suggest.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// Dotted: `pipeline.ranks`; empty for the file.
    pub path: &'a str,
    /// In TOML: `4`.
    pub example: &'a str,
}

impl Place<'_> {
    /// The last part of the path.
    pub(crate) fn key(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    /// "expected ..., found ..."
    pub(crate) fn wrong(&self, item: &Item, expected: &str) -> Diagnostic {
        let message = format!("`{}`: expected {expected}, found {}", self.path, item.describe());
        Diagnostic::new(item.span, message).help(format!("write `{} = {}`", self.key(), self.example))
    }

    /// "expected one of ..., found ...", with the word that was probably meant.
    pub(crate) fn no_choice(&self, item: &Item, list: &str, near: Option<&str>) -> Diagnostic {
        let message = format!("`{}`: expected one of {list}, found {}", self.path, item.describe());
        let problem = Diagnostic::new(item.span, message);
        match (near, &item.node) {
            (Some(word), _) => problem.help(format!("did you mean `\"{word}\"`?")),
            (None, Node::Text(_)) => problem,
            (None, _) => problem.help(format!("write `{} = {}`", self.key(), self.example)),
        }
    }

    pub(crate) fn wrong_unit(&self, item: &Item, error: &UnitError) -> Diagnostic {
        let problem = Diagnostic::new(item.span, format!("`{}`: {error}", self.path));
        match (error.hint(), error) {
            (_, UnitError::NoUnit { number, suggestion, .. }) => match self.usual_unit() {
                Some(unit) => problem.help(format!("write `\"{number} {unit}\"`")),
                None => problem.help(format!("write `\"{suggestion}\"`")),
            },
            (Some(hint), _) => problem.help(hint),
            (None, UnitError::NoNumber { .. } | UnitError::NoShare { .. } | UnitError::NoFactor { .. }) => {
                problem.help(format!("write `{} = {}`", self.key(), self.example))
            }
            (None, _) => problem,
        }
    }

    /// The unit of the first amount in the example.
    fn usual_unit(&self) -> Option<&str> {
        let (_, text) = self.example.split_once('"')?;
        let (amount, _) = text.split_once('"')?;
        let unit = amount.trim_start_matches(|c: char| c.is_ascii_digit() || ".- ".contains(c));
        (!unit.is_empty() && unit.len() < amount.len()).then_some(unit)
    }
}

/// A type that a value can be read as.
pub(crate) trait FromItem: Sized {
    /// The value, or `None` after reporting what is wrong with it.
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self>;

    /// The JSON schema of what may be written.
    fn schema(generator: &mut SchemaGenerator) -> Schema;

    /// The dotted keys that hold such a value at `path`: itself, or those of a table.
    fn list_keys(path: &str, keys: &mut Vec<String>) {
        keys.push(path.to_owned());
    }
}

/// A key's schema is that of its value; that it may be left out is said by its table.
impl<T: FromItem> JsonSchema for Key<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        T::schema(generator)
    }
}

/// Reads one key of a table.
pub(crate) fn read_key<T: FromItem>(
    table: &Table,
    key: &str,
    example: &str,
    inside: &Place<'_>,
    problems: &mut Problems,
) -> Key<T> {
    let Some(entry) = table.get(key) else {
        return Key::Absent;
    };
    let path = join(inside.path, key);
    let place = Place { path: &path, example };
    match T::from_item(&entry.item, &place, problems) {
        Some(value) => Key::Given(value, entry.item.span),
        None => Key::Broken,
    }
}

/// `pipeline.ranks` from `pipeline` and `ranks`.
pub(crate) fn join(path: &str, key: &str) -> String {
    match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    }
}

/// Which of `words` the value is, by number.
pub(crate) fn choose<'w>(
    item: &Item,
    place: &Place<'_>,
    words: impl Iterator<Item = &'w str>,
    problems: &mut Problems,
) -> Option<usize> {
    let words: Vec<&str> = words.collect();
    let list = words.iter().map(|word| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ");
    let (found, near) = match &item.node {
        Node::Text(text) => {
            let found = words.iter().position(|word| word == text);
            (found, closest(text, words.into_iter()))
        }
        _ => (None, None),
    };
    if found.is_none() {
        problems.push(place.no_choice(item, &list, near));
    }
    found
}

/// The candidate that was probably meant, if one is near.
pub(crate) fn closest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let plain = |text: &str| text.to_lowercase().replace(['-', '.', ' '], "_");
    let word = plain(word);
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .map(|candidate| (strsim::damerau_levenshtein(&word, &plain(candidate)), candidate))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}
