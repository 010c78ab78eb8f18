//! Values to try: listed ones, and ranges such as `1..64`, `1..64:2`, `1..1024*2`, `5 ms..20 ms:5 ms`.
//!
//! Both ends of a range are included where the steps meet them. Numbers are whole numbers or decimals and exact. The
//! values of a range by steps are made when they are asked for, so that a long one takes no memory.

use std::borrow::Cow;

use crate::units::Decimal;

/// The values of an axis, as TOML.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Values(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Listed(Vec<String>),
    /// By a factor: few, since they grow so fast.
    Grown(Vec<String>),
    Even(Even),
}

/// A range by equal steps.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Even {
    first: u128,
    step: u128,
    count: usize,
    /// Decimal places.
    scale: u32,
    unit: String,
}

impl Values {
    /// Values that were written one by one.
    pub(super) const fn listed(values: Vec<String>) -> Self {
        Self(Kind::Listed(values))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kind::Listed(values) | Kind::Grown(values) => values.len(),
            Kind::Even(range) => range.count,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them: `8`, `"1f1b"`; `None` past the last.
    pub fn get(&self, index: usize) -> Option<Cow<'_, str>> {
        match &self.0 {
            Kind::Listed(values) | Kind::Grown(values) => {
                values.get(index).map(|value| value.as_str().into())
            }
            Kind::Even(range) if index < range.count => {
                // The last value was found to fit.
                let value = range.first + index as u128 * range.step;
                Some(print(value, range.scale, &range.unit).into())
            }
            Kind::Even(_) => None,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, str>> {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// Whether they were written as a range, so that what lies between them may be tried too.
    pub const fn is_range(&self) -> bool {
        !matches!(self.0, Kind::Listed(_))
    }
}

/// The most values that a range may have.
const MOST: usize = 1_000_000;

/// Why a text that looks like a range is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RangeError {
    #[error("expected numbers round `..`, such as `1..64`, `1..64:2` or `1..1024*2`, found `{text}`")]
    NoNumbers { text: String },
    #[error("the range `{text}` has no value: its start is above its end")]
    Empty { text: String },
    #[error(
        "the range `{text}` never gets on: its step must be above 0, its factor above 1, its start above 0"
    )]
    NoStep { text: String },
    #[error("the range `{text}` mixes the units `{one}` and `{other}`")]
    Units { text: String, one: String, other: String },
    #[error("the range `{text}` has more than 1000000 values")]
    TooMany { text: String },
}

/// How a range gets on.
enum Step {
    Add(u128),
    Multiply { numerator: u128, denominator: u128 },
}

/// The values of a range as TOML, if the text is one at all: two numbers with `..` between them.
pub(crate) fn parse_range(text: &str) -> Option<Result<Values, RangeError>> {
    let (low, rest) = text.split_once("..")?;
    let starts_as_number =
        |text: &str| text.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.');
    starts_as_number(low).then(|| values(text, low, rest))
}

fn values(text: &str, low: &str, rest: &str) -> Result<Values, RangeError> {
    let whole = || text.trim().to_owned();
    let no_numbers = || RangeError::NoNumbers { text: whole() };
    let (high, by, geometric) = match (rest.split_once(':'), rest.split_once('*')) {
        (Some((high, by)), None) => (high, by, false),
        (None, Some((high, by))) => (high, by, true),
        (None, None) => (rest, "", false),
        (Some(_), Some(_)) => return Err(no_numbers()),
    };
    let (low, low_unit) = amount(low).ok_or_else(no_numbers)?;
    let (high, high_unit) = amount(high).ok_or_else(no_numbers)?;
    let (by, by_unit) = match (by, geometric) {
        ("", false) if rest.contains(':') => return Err(no_numbers()),
        ("", false) => (Decimal { mantissa: 1, scale: 0 }, ""),
        _ => amount(by).ok_or_else(no_numbers)?,
    };
    if geometric && !by_unit.is_empty() {
        return Err(no_numbers());
    }
    let unit = common_unit([high_unit, low_unit, by_unit]).map_err(|[one, other]| RangeError::Units {
        text: whole(),
        one: one.to_owned(),
        other: other.to_owned(),
    })?;
    let scale = low.scale.max(high.scale).max(if geometric { 0 } else { by.scale });
    // What is printed divides by this power.
    10_u128.checked_pow(scale).ok_or_else(no_numbers)?;
    let at = |number: Decimal| number.at_scale(scale).ok_or_else(no_numbers);
    let (first, last) = (at(low)?, at(high)?);
    let step = if geometric {
        let denominator = 10_u128.checked_pow(by.scale).ok_or_else(no_numbers)?;
        Step::Multiply { numerator: by.mantissa, denominator }
    } else {
        Step::Add(at(by)?)
    };
    let stuck = match step {
        Step::Add(step) => step == 0,
        Step::Multiply { numerator, denominator } => numerator <= denominator || first == 0,
    };
    if stuck {
        return Err(RangeError::NoStep { text: whole() });
    }
    if first > last {
        return Err(RangeError::Empty { text: whole() });
    }
    let too_many = || RangeError::TooMany { text: whole() };
    match step {
        Step::Add(step) => {
            let count = usize::try_from((last - first) / step).ok().and_then(|steps| steps.checked_add(1));
            let count = count.filter(|&count| count <= MOST).ok_or_else(too_many)?;
            Ok(Values(Kind::Even(Even { first, step, count, scale, unit: unit.to_owned() })))
        }
        Step::Multiply { numerator, denominator } => {
            let grown = grow(first, last, (numerator, denominator), |value| print(value, scale, unit));
            Ok(Values(Kind::Grown(grown.ok_or_else(too_many)?)))
        }
    }
}

/// The unit of all amounts that have one; none if none has. Two that differ are an error.
fn common_unit(units: [&str; 3]) -> Result<&str, [&str; 2]> {
    let mut written = units.into_iter().filter(|unit| !unit.is_empty());
    let unit = written.next().unwrap_or_default();
    written.find(|other| *other != unit).map_or(Ok(unit), |other| Err([unit, other]))
}

/// Every value from `first` to `last` by a factor; `None` if there are too many. A product that is no whole number of
/// the last decimal place is cut there, and counts if it is larger than the value before.
fn grow(
    first: u128,
    last: u128,
    (numerator, denominator): (u128, u128),
    print: impl Fn(u128) -> String,
) -> Option<Vec<String>> {
    let mut values = Vec::new();
    let mut value = first;
    while value <= last {
        if values.len() == MOST {
            return None;
        }
        values.push(print(value));
        let product = value.checked_mul(numerator).map(|product| product / denominator);
        match product.map(|product| product.max(value + 1)) {
            Some(next) => value = next,
            None => break,
        }
    }
    Some(values)
}

/// A number, and the unit behind it.
fn amount(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let at = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(at);
    Some((Decimal::parse(number)?, unit.trim()))
}

/// A value as TOML: a number, or a string with a unit.
fn print(value: u128, scale: u32, unit: &str) -> String {
    let number = if scale == 0 {
        value.to_string()
    } else {
        let (divisor, width) = (10_u128.pow(scale), scale as usize);
        format!("{}.{:0width$}", value / divisor, value % divisor)
    };
    if unit.is_empty() { number } else { format!("\"{number} {unit}\"") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> Vec<String> {
        let values = parse_range(text).expect("it looks like a range").expect("it is one");
        assert_eq!((values.get(values.len()), values.is_range()), (None, true));
        values.iter().map(Cow::into_owned).collect()
    }

    #[test]
    fn a_long_range_takes_no_memory() {
        let values = parse_range("1..1000000").expect("it looks like a range").expect("it is one");
        assert!(matches!(values, Values(Kind::Even(_))), "{values:?}");
        assert_eq!((values.len(), values.get(999_999)), (1_000_000, Some("1000000".into())));
    }

    #[test]
    fn ranges_hold_both_ends_where_they_meet_them() {
        assert_eq!(range("1..4"), ["1", "2", "3", "4"]);
        assert_eq!(range("1..8:3"), ["1", "4", "7"]);
        assert_eq!(range("1..64*4"), ["1", "4", "16", "64"]);
        assert_eq!(range("3..20*2"), ["3", "6", "12"]);
        assert_eq!(range("7..7"), ["7"]);
    }

    #[test]
    fn decimals_and_units_stay_exact() {
        assert_eq!(range("0.1..0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(range("1..1.5:0.25"), ["1.00", "1.25", "1.50"]);
        assert_eq!(range("5 ms..15 ms:5 ms"), ["\"5 ms\"", "\"10 ms\"", "\"15 ms\""]);
        assert_eq!(range("1..4*2 "), ["1", "2", "4"]);
        assert_eq!(range("1 GB..4 GB*2"), ["\"1 GB\"", "\"2 GB\"", "\"4 GB\""]);
        assert_eq!(range("4..10*1.5"), ["4", "6", "9"]);
    }

    #[test]
    fn what_is_no_range_says_so() {
        assert_eq!(parse_range("1f1b"), None);
        assert_eq!(parse_range("../config.json"), None);
        let error = |text| parse_range(text).expect("it looks like a range").expect_err("it is none");
        assert!(matches!(error("1..x"), RangeError::NoNumbers { .. }));
        assert!(matches!(error("1..8:"), RangeError::NoNumbers { .. }));
        assert!(matches!(error("1..8:2*2"), RangeError::NoNumbers { .. }));
        assert!(matches!(error("8..1"), RangeError::Empty { .. }));
        assert!(matches!(error("1..8:0"), RangeError::NoStep { .. }));
        assert!(matches!(error("1..8*1"), RangeError::NoStep { .. }));
        assert!(matches!(error("0..8*2"), RangeError::NoStep { .. }));
        assert!(matches!(error("1 ms..8 s"), RangeError::Units { .. }));
        assert!(matches!(error("1..99999999999"), RangeError::TooMany { .. }));
        let digits = format!("0.{}1..1", "0".repeat(50));
        assert!(matches!(error(&digits), RangeError::NoNumbers { .. }));
    }
}
