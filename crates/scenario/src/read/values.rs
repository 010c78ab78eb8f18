//! The types that values are read as: numbers, quantities with units, words, and lists of them.

use pipestep_engine::{Bytes, Duration, Rate};
use schemars::{Schema, SchemaGenerator, json_schema};

use super::{FromItem, Place, Problems, choose};
use crate::tree::{Item, Node};
use crate::units::{self, UnitError};

impl FromItem for String {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        if let Node::Text(text) = &item.node {
            return Some(text.clone());
        }
        problems.push(place.wrong(item, "a string"));
        None
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

impl FromItem for bool {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        if let Node::Boolean(value) = item.node {
            return Some(value);
        }
        problems.push(place.wrong(item, "`true` or `false`"));
        None
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "boolean" })
    }
}

/// A whole number from 0.
impl FromItem for u64 {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let found = match item.node {
            Node::Integer(Some(number)) => Self::try_from(number).ok(),
            _ => None,
        };
        if found.is_none() {
            problems.push(place.wrong(item, "a whole number of at least 0"));
        }
        found
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0 })
    }
}

/// A whole number from 1.
#[derive(Clone, Copy)]
pub(crate) struct Positive(pub u64);

impl FromItem for Positive {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let found = match item.node {
            Node::Integer(Some(number)) => u64::try_from(number).ok().filter(|&number| number > 0),
            _ => None,
        };
        if found.is_none() {
            let expected = match item.node {
                Node::Integer(None) => "a whole number of at most 18446744073709551615",
                Node::Integer(Some(number)) if number > 0 => "a whole number of at most 18446744073709551615",
                _ => "a whole number of at least 1",
            };
            problems.push(place.wrong(item, expected));
        }
        found.map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1 })
    }
}

/// A whole number that is counted one by one.
impl FromItem for u32 {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        whole_number(item, place, problems, 0)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 0, "maximum": u32::MAX })
    }
}

/// The same from 1.
#[derive(Clone, Copy)]
pub(crate) struct Count(pub u32);

impl FromItem for Count {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        whole_number(item, place, problems, 1).map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": 1, "maximum": u32::MAX })
    }
}

fn whole_number(item: &Item, place: &Place<'_>, problems: &mut Problems, least: u32) -> Option<u32> {
    let found = match item.node {
        Node::Integer(Some(number)) => u32::try_from(number).ok().filter(|&number| number >= least),
        _ => None,
    };
    if found.is_none() {
        problems.push(place.wrong(item, &format!("a whole number from {least} to {}", u32::MAX)));
    }
    found
}

/// Reads a quantity that is written as a string, by `parse`; `bare` words the error for a number alone.
fn quantity<T>(
    item: &Item,
    place: &Place<'_>,
    problems: &mut Problems,
    expected: &str,
    parse: fn(&str) -> Result<T, UnitError>,
    bare: fn(&str) -> UnitError,
) -> Option<T> {
    let problem = match &item.node {
        Node::Text(text) => match parse(text) {
            Ok(value) => return Some(value),
            Err(error) => place.wrong_unit(item, &error),
        },
        Node::Integer(Some(number)) => place.wrong_unit(item, &bare(&number.to_string())),
        Node::Float(number) => place.wrong_unit(item, &bare(number)),
        _ => place.wrong(item, expected),
    };
    problems.push(problem);
    None
}

impl FromItem for Duration {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let bare = units::duration_without_unit;
        quantity(item, place, problems, "a time with a unit", units::parse_duration, bare)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]*\s*(ns|us|ms|s|min|h|d)\s*$" })
    }
}

impl FromItem for Bytes {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let bare = units::bytes_without_unit;
        quantity(item, place, problems, "an amount of bytes with a unit", units::parse_bytes, bare)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^\s*[0-9]*\.?[0-9]*\s*(k|M|G|T|Ki|Mi|Gi|Ti)?B\s*$" })
    }
}

impl FromItem for Rate {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let bare = units::rate_without_unit;
        quantity(item, place, problems, "a rate with a unit", units::parse_rate, bare)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": r"^\s*[0-9]*\.?[0-9]*\s*((k|M|G|T|Ki|Mi|Gi|Ti)?B|(k|M|G|T)?bit)/s\s*$"
        })
    }
}

/// One value that stands for all, or one for each.
pub(crate) enum OneOrList<T> {
    One(T),
    List(Vec<T>),
}

impl<T: FromItem> FromItem for OneOrList<T> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        match &item.node {
            Node::List(items) => read_list(items, place, problems).map(Self::List),
            _ => T::from_item(item, place, problems).map(Self::One),
        }
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let one = T::schema(generator);
        json_schema!({ "anyOf": [one, { "type": "array", "items": one }] })
    }

    fn list_keys(path: &str, keys: &mut Vec<String>) {
        T::list_keys(path, keys);
    }
}

impl<T: FromItem> FromItem for Vec<T> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        if let Node::List(items) = &item.node {
            return read_list(items, place, problems);
        }
        problems.push(place.wrong(item, "a list"));
        None
    }

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let one = T::schema(generator);
        json_schema!({ "type": "array", "items": one })
    }
}

/// All entries, or `None` if any is wrong; each wrong one is reported.
fn read_list<T: FromItem>(items: &[Item], place: &Place<'_>, problems: &mut Problems) -> Option<Vec<T>> {
    let read: Vec<Option<T>> = items.iter().map(|item| T::from_item(item, place, problems)).collect();
    read.into_iter().collect()
}

/// One of a few words.
#[derive(Clone, Copy)]
pub(crate) struct Word<T>(pub T);

/// The words of a choice.
pub(crate) trait Words: Copy + 'static {
    /// Each word with what it stands for.
    const WORDS: &'static [(&'static str, Self)];
}

impl<T: Words> FromItem for Word<T> {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let words = T::WORDS.iter().map(|&(word, _)| word);
        let found = choose(item, place, words, problems)?;
        T::WORDS.get(found).map(|&(_, value)| Self(value))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<&str> = T::WORDS.iter().map(|&(word, _)| word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}
