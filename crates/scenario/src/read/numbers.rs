//! Numbers that are read as exact fractions, as signed amounts, or as floats where only a float is used.

use schemars::{Schema, SchemaGenerator, json_schema};

use super::{FromItem, Place, Problems};
use crate::tree::{Item, Node};
use crate::units::{self, Factor, Share, UnitError};

/// The text of a number, or of a string that stands for one.
fn text_of(item: &Item) -> Option<String> {
    match &item.node {
        Node::Text(text) | Node::Float(text) => Some(text.clone()),
        Node::Integer(Some(number)) => Some(number.to_string()),
        _ => None,
    }
}

/// Reads a number by `parse`; `expected` words the error for what is none.
fn exact<T>(
    item: &Item,
    place: &Place<'_>,
    problems: &mut Problems,
    expected: &str,
    parse: fn(&str) -> Result<T, UnitError>,
) -> Option<T> {
    let problem = match text_of(item).map(|text| parse(&text)) {
        Some(Ok(value)) => return Some(value),
        Some(Err(error)) => place.wrong_unit(item, &error),
        None => place.wrong(item, expected),
    };
    problems.push(problem);
    None
}

/// What a fraction or a decimal in a string looks like.
const FRACTION: &str = r"^\s*([0-9]+\s*/\s*[0-9]+|[0-9]*\.?[0-9]*)\s*$";

impl FromItem for Share {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        exact(item, place, problems, "a share from 0 to 1", Self::parse)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "minimum": 0, "maximum": 1 },
                { "type": "string", "pattern": FRACTION }
            ]
        })
    }
}

impl FromItem for Factor {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        exact(item, place, problems, "a number from 0 up", Self::parse)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "number", "minimum": 0 }, { "type": "string", "pattern": FRACTION }]
        })
    }
}

/// A factor above 0.
#[derive(Clone, Copy)]
pub(crate) struct AboveZero(pub Factor);

impl FromItem for AboveZero {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let factor = Factor::from_item(item, place, problems)?;
        if factor.numerator == 0 {
            problems.push(place.wrong(item, "a number above 0"));
            return None;
        }
        Some(Self(factor))
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "type": "string", "pattern": FRACTION }]
        })
    }
}

/// A change of an amount of bytes: negative for what is freed.
#[derive(Clone, Copy)]
pub(crate) struct SignedBytes(pub i64);

impl FromItem for SignedBytes {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let problem = match &item.node {
            Node::Text(text) => match units::parse_signed_bytes(text) {
                Ok(change) => return Some(Self(change)),
                Err(error) => place.wrong_unit(item, &error),
            },
            Node::Integer(Some(number)) => {
                place.wrong_unit(item, &units::change_without_unit(&number.to_string()))
            }
            Node::Float(number) => place.wrong_unit(item, &units::change_without_unit(number)),
            _ => place.wrong(item, "a change in bytes with a unit"),
        };
        problems.push(problem);
        None
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": r"^\s*-?\s*[0-9]*\.?[0-9]*\s*(k|M|G|T|Ki|Mi|Gi|Ti)?B\s*$" })
    }
}

/// A number from 0 up that is only ever used as a float: shapes and scatters of distributions, prices.
#[derive(Clone, Copy)]
pub(crate) struct Real(pub f64);

impl FromItem for Real {
    fn from_item(item: &Item, place: &Place<'_>, problems: &mut Problems) -> Option<Self> {
        let number: Option<f64> = match &item.node {
            Node::Float(text) => text.parse().ok(),
            Node::Integer(Some(number)) => Some(*number as f64),
            _ => None,
        };
        let found = number.filter(|number| number.is_finite() && *number >= 0.0);
        if found.is_none() {
            problems.push(place.wrong(item, "a number of at least 0"));
        }
        found.map(Self)
    }

    fn schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "number", "minimum": 0 })
    }
}
