//! Shares from 0 to 1 and factors from 0 up, exact: `0.5` as a decimal, `"1/3"` as a fraction.

use super::UnitError;
use super::decimal::Decimal;

/// A share from 0 to 1, as a reduced fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The part.
    pub numerator: u64,
    /// The whole; never zero.
    pub denominator: u64,
}

impl Share {
    /// Nothing.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// One half.
    pub const HALF: Self = Self { numerator: 1, denominator: 2 };

    /// A decimal (`0.5`, taken exactly) or a fraction of whole numbers (`1/3`).
    ///
    /// # Errors
    /// [`UnitError::NoShare`] for anything else and for what is not from 0 to 1.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        match fraction(text) {
            Some((numerator, denominator)) if numerator <= denominator => Ok(Self { numerator, denominator }),
            _ => Err(UnitError::NoShare { text: text.to_owned() }),
        }
    }

    /// The nearest float.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// A number from 0 up, as a reduced fraction: how many times longer or larger something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Factor {
    /// Above the line.
    pub numerator: u64,
    /// Below it; never zero.
    pub denominator: u64,
}

impl Factor {
    /// As it was.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// A decimal (`1.25`, taken exactly) or a fraction of whole numbers (`4/3`).
    ///
    /// # Errors
    /// [`UnitError::NoFactor`] for anything else, and for what is below 0.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        let (numerator, denominator) =
            fraction(text).ok_or_else(|| UnitError::NoFactor { text: text.to_owned() })?;
        Ok(Self { numerator, denominator })
    }

    /// The nearest float.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

/// A decimal or a fraction of whole numbers, in lowest terms; the lower one is not zero.
fn fraction(text: &str) -> Option<(u64, u64)> {
    let (numerator, denominator): (u64, u64) = match text.split_once('/') {
        Some((part, whole)) => part.trim().parse().ok().zip(whole.trim().parse().ok()),
        None => Decimal::parse_scientific(text.trim()).and_then(Decimal::fraction),
    }?;
    let (mut a, mut b) = (numerator, denominator);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    (denominator > 0).then(|| (numerator / a, denominator / a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_exact_fractions() {
        let share = |text| Share::parse(text).map(|share| (share.numerator, share.denominator));
        assert_eq!(share("1/3"), Ok((1, 3)));
        assert_eq!(share("2 / 6"), Ok((1, 3)));
        assert_eq!(share("0.5"), Ok((1, 2)));
        assert_eq!(share("0.3333333333333333"), Ok((3_333_333_333_333_333, 10_000_000_000_000_000)));
        assert_eq!(share("5e-01"), Ok((1, 2)));
        assert_eq!(share("0"), Ok((0, 1)));
        assert_eq!(share("1.0"), Ok((1, 1)));
        assert_eq!(share("0.1e1"), Ok((1, 1)));
        for text in ["1.5", "-0.5", "3/2", "1/0", "nan", "inf", "", "1/3/2", "half", "1e400"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn factors_are_exact_fractions_of_any_size() {
        let factor = |text| Factor::parse(text).map(|factor| (factor.numerator, factor.denominator));
        assert_eq!(factor("1.25"), Ok((5, 4)));
        assert_eq!(factor("4/3"), Ok((4, 3)));
        assert_eq!(factor("3"), Ok((3, 1)));
        assert_eq!(factor("0"), Ok((0, 1)));
        assert_eq!(factor("1.3333333333333333"), Ok((13_333_333_333_333_333, 10_000_000_000_000_000)));
        for text in ["-1", "1/0", "nan", "inf", "", "1e400", "twice"] {
            assert!(factor(text).is_err(), "{text}");
        }
    }
}
