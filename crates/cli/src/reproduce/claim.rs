//! What the documentation claims, as data: each entry points at a scenario and at a value of its result.

use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// One number that the documentation states.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    /// What is claimed, in words.
    pub(crate) says: String,
    /// Where it is claimed.
    pub(crate) place: String,
    /// The scenario that shows it, relative to the file of claims.
    pub(crate) scenario: String,
    /// What is changed in it, as after `--set`.
    pub(crate) set: Vec<String>,
    /// Which value of its result it is about: a JSON pointer.
    pub(crate) value: String,
    /// A second value, which is subtracted.
    pub(crate) minus: Option<String>,
    /// What the value is divided by; 1 if nothing is said.
    pub(crate) divided_by: f64,
    /// Another run; the value is then the change against it in percent, or the multiple of it.
    pub(crate) against: Option<Against>,
    /// What the value must be.
    pub(crate) expected: Expected,
    /// The unit to print it in.
    pub(crate) unit: Unit,
}

/// The run that a value is compared with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Against {
    /// Its scenario.
    pub(crate) scenario: String,
    /// What is changed in it.
    pub(crate) set: Vec<String>,
    /// Which value of its result, if not that of the claim.
    pub(crate) value: Option<String>,
}

/// What a value must be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Expected {
    /// This, give or take so much.
    Is(f64, f64),
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// What a number counts, for printing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nothing in particular.
    #[default]
    None,
    /// Nanoseconds, printed in a readable unit.
    Nanoseconds,
    /// Bytes.
    Bytes,
    /// A share of one, printed in percent.
    Share,
    /// Percent.
    Percent,
    /// A multiple of what it is compared with.
    Times,
}

impl Expected {
    /// Whether a value is as it must be.
    pub(crate) fn holds(self, value: f64) -> bool {
        match self {
            Self::Is(expected, within) => (value - expected).abs() <= within,
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

/// Reads a file of claims: a JSON list of entries.
///
/// # Errors
/// What is wrong, with the entry it is in.
pub(crate) fn read(text: &str, path: &Path) -> Result<Vec<Claim>> {
    let name = path.display();
    let entries: Vec<Value> =
        serde_json::from_str(text).with_context(|| format!("`{name}` is no list of claims"))?;
    let each = entries.iter().enumerate();
    each.map(|(index, entry)| claim(entry).with_context(|| format!("`{name}`: entry {}", index + 1)))
        .collect()
}

const KEYS: [&str; 14] = [
    "says",
    "in",
    "scenario",
    "set",
    "value",
    "minus",
    "divided_by",
    "against",
    "is",
    "within",
    "at_least",
    "at_most",
    "unit",
    "note",
];

fn claim(entry: &Value) -> Result<Claim> {
    let Some(table) = entry.as_object() else { bail!("expected an object, found `{entry}`") };
    if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        bail!("unknown key `{key}`; an entry has {}", KEYS.join(", "));
    }
    let text =
        |key: &str| entry[key].as_str().map(str::to_owned).with_context(|| format!("`{key}` must be a text"));
    let number = |key: &str| entry[key].as_f64();
    let expected = match (number("is"), number("at_least"), number("at_most")) {
        (Some(value), None, None) => Expected::Is(value, number("within").unwrap_or(0.0)),
        (None, Some(least), None) => Expected::AtLeast(least),
        (None, None, Some(most)) => Expected::AtMost(most),
        _ => bail!("expected one of the numbers `is`, `at_least` and `at_most`"),
    };
    let against = match &entry["against"] {
        Value::Null => None,
        other => {
            let scenario = other["scenario"].as_str().context("`against` needs a `scenario`")?.to_owned();
            let value = other["value"].as_str().map(str::to_owned);
            Some(Against { scenario, set: texts(&other["set"])?, value })
        }
    };
    Ok(Claim {
        says: text("says")?,
        place: text("in")?,
        scenario: text("scenario")?,
        set: texts(&entry["set"])?,
        value: text("value")?,
        minus: entry["minus"].as_str().map(str::to_owned),
        divided_by: divisor(&entry["divided_by"])?,
        against,
        expected,
        unit: unit(&entry["unit"])?,
    })
}

fn texts(value: &Value) -> Result<Vec<String>> {
    let list = match value {
        Value::Null => return Ok(Vec::new()),
        Value::Array(list) => list,
        other => bail!("`set` must be a list of texts, found `{other}`"),
    };
    list.iter().map(|one| one.as_str().map(str::to_owned).context("`set` must be a list of texts")).collect()
}

fn divisor(value: &Value) -> Result<f64> {
    match value.as_f64() {
        None if value.is_null() => Ok(1.0),
        Some(number) if number != 0.0 => Ok(number),
        _ => bail!("`divided_by` must be a number and not 0, found `{value}`"),
    }
}

fn unit(value: &Value) -> Result<Unit> {
    Ok(match value.as_str() {
        None if value.is_null() => Unit::None,
        Some("ns") => Unit::Nanoseconds,
        Some("B") => Unit::Bytes,
        Some("share") => Unit::Share,
        Some("%") => Unit::Percent,
        Some("times") => Unit::Times,
        _ => bail!("`unit` must be one of ns, B, share, % and times, found `{value}`"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Result<Claim> {
        Ok(read(&format!("[{text}]"), Path::new("claims.json"))?.remove(0))
    }

    #[test]
    fn an_entry_says_what_must_hold() {
        let text = r#"{"says": "a", "in": "README.md", "scenario": "s.toml", "value": "/step/x", "is": 5, "within": 1}"#;
        let claim = one(text).unwrap();
        assert_eq!(claim.expected, Expected::Is(5.0, 1.0));
        assert!(claim.expected.holds(6.0) && !claim.expected.holds(6.5) && !claim.expected.holds(f64::NAN));
        assert!(Expected::AtLeast(2.0).holds(2.0) && !Expected::AtMost(2.0).holds(2.1));
    }

    #[test]
    fn a_bad_entry_is_named() {
        for (text, words) in [
            (r#"{"says": "a"}"#, "one of the numbers"),
            (r#"{"says": "a", "is": 1, "at_least": 2}"#, "one of the numbers"),
            (r#"{"is": 1}"#, "`says` must be a text"),
            (
                r#"{"says": "a", "in": "a", "scenario": "s", "value": "/x", "is": 1, "divided_by": 0}"#,
                "`divided_by` must be a number and not 0",
            ),
            (r#"{"value_": 1}"#, "unknown key `value_`"),
            ("3", "expected an object"),
        ] {
            let error = format!("{:#}", one(text).unwrap_err());
            assert!(error.contains(words) && error.contains("entry 1"), "{error}");
        }
    }
}
