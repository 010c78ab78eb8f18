//! Exact amounts with units: `"10 ms"`, `"112 GB"`, `"24 GiB"`, `"200 Gbit/s"`, and shares such as `"1/3"`.
//!
//! A number is a decimal mantissa and never passes through a float. Units are a closed, case-sensitive list,
//! since `Gb`, `GB` and `m` mean different things to different people; what is not on it is refused with a
//! hint. An amount that is no whole number of nanoseconds or bytes is refused too.

mod decimal;
mod family;
mod share;

pub use share::{Factor, Share};

use pipestep_engine::{Bytes, Duration, Rate};

pub(crate) use decimal::Decimal;
use family::{Family, RATE, SIZE, TIME};

/// Why a text is no amount.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// A number alone.
    #[error("expected {quantity} with a unit, found the bare number `{number}`")]
    NoUnit {
        /// `a time`, `an amount of bytes`, `a rate`.
        quantity: &'static str,
        /// What was written.
        number: String,
        /// The same number with a likely unit.
        suggestion: String,
    },
    /// No number at the start.
    #[error("expected {quantity} such as `{example}`, found `{text}`")]
    NoNumber {
        /// The kind of quantity.
        quantity: &'static str,
        /// What was written.
        text: String,
        /// A legal amount.
        example: &'static str,
    },
    /// A unit that is not on the list.
    #[error("unknown unit `{unit}` of {quantity}; expected one of {known}")]
    UnknownUnit {
        /// The kind of quantity.
        quantity: &'static str,
        /// What was written.
        unit: String,
        /// The list.
        known: String,
        /// What was probably meant.
        hint: Option<String>,
    },
    /// Below zero.
    #[error("expected {quantity} of at least zero, found `{text}`")]
    Negative {
        /// The kind of quantity.
        quantity: &'static str,
        /// What was written.
        text: String,
    },
    /// A fraction of the smallest unit.
    #[error("`{text}` is not a whole number of {base}")]
    NotWhole {
        /// What was written.
        text: String,
        /// `nanoseconds`, `bytes`, `bytes a second`.
        base: &'static str,
    },
    /// More than 64 bits hold.
    #[error("`{text}` is more than the largest {quantity}, {largest}")]
    TooLarge {
        /// The kind of quantity, without its article.
        quantity: &'static str,
        /// What was written.
        text: String,
        /// The largest amount.
        largest: String,
    },
    /// A transfer at no speed would never end.
    #[error("expected a rate above zero, found `{text}`")]
    ZeroRate {
        /// What was written.
        text: String,
    },
    /// No share between 0 and 1.
    #[error("expected a share from 0 to 1 such as `0.5` or `\"1/3\"`, found `{text}`")]
    NoShare {
        /// What was written.
        text: String,
    },
    /// No number from 0 up.
    #[error("expected a number from 0 up such as `1.25` or `\"4/3\"`, found `{text}`")]
    NoFactor {
        /// What was written.
        text: String,
    },
}

impl UnitError {
    /// What to write instead, if that can be guessed.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoUnit { suggestion, .. } => Some(format!("write `\"{suggestion}\"`")),
            Self::UnknownUnit { hint, .. } => hint.clone(),
            _ => None,
        }
    }
}

/// A time in `ns us ms s min h d`, exact to the nanosecond.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_duration(text: &str) -> Result<Duration, UnitError> {
    let nanos = TIME.parse(text)?;
    let nanos = u64::try_from(nanos).map_err(|_| TIME.too_large(text, "time", "2^64-1 ns (584 years)"))?;
    Ok(Duration::from_nanos(nanos))
}

/// An amount of bytes in `B kB MB GB TB KiB MiB GiB TiB`, exact to the byte.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_bytes(text: &str) -> Result<Bytes, UnitError> {
    let count = SIZE.parse(text)?;
    let count = u64::try_from(count).map_err(|_| SIZE.too_large(text, "amount", "2^64-1 bytes (18 EB)"))?;
    Ok(Bytes::new(count))
}

/// A change of an amount of bytes: an amount, with `-` before it for what is freed.
///
/// # Errors
/// [`UnitError`] for anything else.
pub fn parse_signed_bytes(text: &str) -> Result<i64, UnitError> {
    let trimmed = text.trim();
    let (size, sign) = match trimmed.strip_prefix('-') {
        Some(rest) if rest.starts_with('-') => (trimmed, 1),
        Some(rest) => (rest, -1),
        None => (trimmed, 1),
    };
    let count = SIZE.parse(size)?;
    let count = i64::try_from(count).map_err(|_| SIZE.too_large(text, "amount", "2^63-1 bytes (9 EB)"))?;
    Ok(sign * count)
}

/// A rate: a unit of bytes, or `bit kbit Mbit Gbit Tbit`, and `/s`.
///
/// # Errors
/// [`UnitError`] for anything else, and for a rate of zero.
pub fn parse_rate(text: &str) -> Result<Rate, UnitError> {
    const SECOND: u64 = 1_000_000_000;
    let bits = RATE.parse(text)?;
    let (count, per_nanos) = match bits % 8 {
        0 => (bits / 8, SECOND),
        _ => (bits, 8 * SECOND),
    };
    let count = u64::try_from(count).map_err(|_| RATE.too_large(text, "rate", "2^64-1 bytes a second"))?;
    Rate::new(count, per_nanos).ok_or_else(|| UnitError::ZeroRate { text: text.to_owned() })
}

impl Family {
    /// The amount in base units.
    fn parse(&self, text: &str) -> Result<u128, UnitError> {
        let trimmed = text.trim();
        if let Some(rest) = trimmed.strip_prefix('-')
            && rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '.')
        {
            return Err(UnitError::Negative { quantity: self.quantity, text: text.to_owned() });
        }
        let at = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.'));
        let (number, unit) = trimmed.split_at(at.unwrap_or(trimmed.len()));
        let decimal = Decimal::parse(number).ok_or_else(|| self.no_number(text))?;
        let unit = unit.trim_start();
        if unit.is_empty() {
            return Err(self.no_unit(number));
        }
        let known = self.units.iter().find(|&&(name, _)| name == unit);
        let &(_, size) = known.ok_or_else(|| self.unknown_unit(unit))?;
        decimal.times(size).ok_or_else(|| UnitError::NotWhole { text: trimmed.to_owned(), base: self.base })
    }

    fn no_unit(&self, number: &str) -> UnitError {
        UnitError::NoUnit {
            quantity: self.quantity,
            number: number.to_owned(),
            suggestion: format!("{number} {}", self.likely_unit),
        }
    }

    fn no_number(&self, text: &str) -> UnitError {
        UnitError::NoNumber { quantity: self.quantity, text: text.to_owned(), example: self.example }
    }

    fn unknown_unit(&self, unit: &str) -> UnitError {
        let known: Vec<&str> = self.units.iter().map(|&(name, _)| name).collect();
        let hint = self.hints.iter().find(|&&(wrong, _)| wrong == unit);
        let other_case = || {
            let same = |name: &&&str| name.eq_ignore_ascii_case(unit);
            known.iter().find(same).map(|name| format!("write `{name}`"))
        };
        let per_second = || {
            let rate = format!("{unit}/s");
            known.contains(&rate.as_str()).then(|| format!("write `{rate}`"))
        };
        UnitError::UnknownUnit {
            quantity: self.quantity,
            unit: unit.to_owned(),
            hint: hint.map(|&(_, hint)| hint.to_owned()).or_else(per_second).or_else(other_case),
            known: known.join(" "),
        }
    }

    fn too_large(&self, text: &str, quantity: &'static str, largest: &str) -> UnitError {
        debug_assert!(self.quantity.ends_with(quantity) || quantity == "amount");
        UnitError::TooLarge { quantity, text: text.trim().to_owned(), largest: largest.to_owned() }
    }
}

/// The error for a bare number where a time is needed.
pub(crate) fn duration_without_unit(number: &str) -> UnitError {
    without_unit(&TIME, number)
}

/// The error for a bare number where an amount of bytes is needed.
pub(crate) fn bytes_without_unit(number: &str) -> UnitError {
    without_unit(&SIZE, number)
}

/// The error for a bare number where a change of bytes is needed.
pub(crate) fn change_without_unit(number: &str) -> UnitError {
    match (number.strip_prefix('-'), bytes_without_unit(number.trim_start_matches('-'))) {
        (Some(_), UnitError::NoUnit { quantity, suggestion, .. }) => {
            UnitError::NoUnit { quantity, number: number.to_owned(), suggestion: format!("-{suggestion}") }
        }
        (_, error) => error,
    }
}

/// The error for a bare number where a rate is needed.
pub(crate) fn rate_without_unit(number: &str) -> UnitError {
    without_unit(&RATE, number)
}

fn without_unit(family: &Family, number: &str) -> UnitError {
    match family.parse(number) {
        Err(error) => error,
        Ok(_) => family.no_unit(number),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(text: &str) -> u64 {
        parse_duration(text).expect("a time").as_nanos()
    }

    fn count(text: &str) -> u64 {
        parse_bytes(text).expect("an amount").get()
    }

    #[test]
    fn every_unit_is_exact() {
        assert_eq!(nanos("10 ms"), 10_000_000);
        assert_eq!(nanos("0.1 s"), 100_000_000);
        assert_eq!(nanos("1.000000001s"), 1_000_000_001);
        assert_eq!(nanos(" 1.5   us "), 1_500);
        assert_eq!(nanos("2 min"), 120_000_000_000);
        assert_eq!(nanos("0.5 h"), 1_800_000_000_000);
        assert_eq!(nanos("1 d"), 86_400_000_000_000);
        assert_eq!(nanos("0 ns"), 0);
        assert_eq!(nanos(".5 us"), 500);
        assert_eq!(nanos("18446744073709551615 ns"), u64::MAX);
        assert_eq!(count("112 GB"), 112_000_000_000);
        assert_eq!(count("24 GiB"), 24 << 30);
        assert_eq!(count("0.1 kB"), 100);
        assert_eq!(count("0.5 KiB"), 512);
        assert_eq!(count("1.5 TiB"), 3 << 39);
    }

    #[test]
    fn changes_of_bytes_have_a_sign() {
        assert_eq!(parse_signed_bytes("12 MB"), Ok(12_000_000));
        assert_eq!(parse_signed_bytes(" - 3 MB"), Ok(-3_000_000));
        assert_eq!(parse_signed_bytes("0 B"), Ok(0));
        for text in ["--3 MB", "-", "-3", "3 -MB", "9223372036854775808 B"] {
            assert!(parse_signed_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn rates_in_bytes_and_in_bits() {
        let rate = |text| parse_rate(text).expect("a rate");
        assert_eq!(rate("7 GB/s"), Rate::per_second(7_000_000_000).expect("above zero"));
        assert_eq!(rate("200 Gbit/s"), Rate::per_second(25_000_000_000).expect("above zero"));
        assert_eq!(rate("3 bit/s"), Rate::new(3, 8_000_000_000).expect("above zero"));
        assert_eq!(rate("1 GiB/s"), Rate::per_second(1 << 30).expect("above zero"));
        assert!(matches!(parse_rate("0 GB/s"), Err(UnitError::ZeroRate { .. })));
        assert!(matches!(parse_rate("0.5 bit/s"), Err(UnitError::NotWhole { .. })));
    }

    #[test]
    fn what_could_mean_two_things_is_refused_with_a_hint() {
        let hint = |error: UnitError| error.hint().unwrap_or_default();
        assert_eq!(hint(parse_bytes("80 Gb").expect_err("bits")), "`b` could be bits: write `GB` for bytes");
        assert!(hint(parse_duration("2 m").expect_err("minutes?")).contains("`min` or `ms`"));
        assert!(hint(parse_rate("200 Gbps").expect_err("no slash")).contains("`Gbit/s`"));
        assert_eq!(hint(parse_rate("7 GB").expect_err("no slash")), "write `GB/s`");
        assert_eq!(hint(parse_bytes("1 gb").expect_err("case")), "write `GB`");
        assert_eq!(hint(parse_duration("10").expect_err("bare")), "write `\"10 ms\"`");
    }

    #[test]
    fn what_is_no_amount_is_refused() {
        for text in
            ["", "ms", "nan ms", "inf s", "1e3 ms", "1,5 ms", "1.2.3 ms", "+1 ms", "1_000 ms", ". ms", "é"]
        {
            let error = parse_duration(text).expect_err(text);
            assert!(
                matches!(error, UnitError::NoNumber { .. } | UnitError::UnknownUnit { .. }),
                "{text}: {error}"
            );
        }
        assert!(matches!(parse_duration("-5 ms"), Err(UnitError::Negative { .. })));
        assert!(matches!(parse_duration("1.5 ns"), Err(UnitError::NotWhole { .. })));
        assert!(matches!(parse_bytes("0.3 B"), Err(UnitError::NotWhole { .. })));
        assert!(matches!(parse_duration("600 000 d"), Err(UnitError::UnknownUnit { .. })));
        for text in ["18446744073709551616 ns", "300000 d", "99999999999999999999999999999999999999999999 s"]
        {
            assert!(matches!(parse_duration(text), Err(UnitError::TooLarge { .. })), "{text}");
        }
    }

    proptest! {
        #[test]
        fn printed_amounts_are_read_back(value: u64, decimals in 0_u32..10, unit in 0_usize..7) {
            let (name, size) = TIME.units[unit];
            let divisor = 10_u128.pow(decimals);
            let text = format!("{}.{:0width$} {name}", u128::from(value) / divisor,
                u128::from(value) % divisor, width = decimals as usize);
            let text = if decimals == 0 { format!("{value} {name}") } else { text };
            let product = u128::from(value) * u128::from(size);
            let expected = (product % divisor == 0).then_some(product / divisor);
            match (parse_duration(&text), expected.map(u64::try_from)) {
                (Ok(found), Some(Ok(nanos))) => prop_assert_eq!(found.as_nanos(), nanos),
                (Err(UnitError::NotWhole { .. }), None) | (Err(UnitError::TooLarge { .. }), Some(Err(_))) => {}
                (found, expected) => prop_assert!(false, "{}: {:?}, expected {:?}", text, found, expected),
            }
        }

        #[test]
        fn no_text_panics(text in ".{0,24}") {
            let _ = (parse_duration(&text), parse_bytes(&text), parse_rate(&text), Share::parse(&text));
        }
    }
}
