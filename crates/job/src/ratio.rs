//! Exact ratios of whole numbers: how much slower something runs.
//!
//! A ratio and not a float, so that work done inside a slow window is exact: 40 s at a factor of 5/4 are
//! 32 s of work, to the nanosecond.

use std::fmt;

/// A positive ratio in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ratio {
    numerator: u64,
    denominator: u64,
}

impl Ratio {
    /// One: as fast as ever.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; `None` if either is zero.
    pub const fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let divisor = gcd(numerator, denominator);
        Some(Self { numerator: numerator / divisor, denominator: denominator / divisor })
    }

    /// The nearest ratio with at most six decimals; `None` for what is not positive, not finite or larger
    /// than 10^12.
    pub fn from_f64(value: f64) -> Option<Self> {
        const SCALE: f64 = 1e6;
        if !(value > 0.0 && value <= 1e12) {
            return None;
        }
        Self::new((value * SCALE).round() as u64, SCALE as u64)
    }

    /// The numerator, in lowest terms.
    pub const fn numerator(self) -> u64 {
        self.numerator
    }

    /// The denominator, in lowest terms.
    pub const fn denominator(self) -> u64 {
        self.denominator
    }

    /// Their product; `None` past 64 bits.
    pub(crate) fn times(self, other: Self) -> Option<Self> {
        let numerator = self.numerator.checked_mul(other.numerator)?;
        Self::new(numerator, self.denominator.checked_mul(other.denominator)?)
    }

    /// The ratio as a float, for reports.
    pub fn as_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl PartialOrd for Ratio {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ratio {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let left = u128::from(self.numerator) * u128::from(other.denominator);
        left.cmp(&(u128::from(other.numerator) * u128::from(self.denominator)))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_f64())
    }
}

/// The greatest common divisor of two positive numbers.
pub(crate) const fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_in_lowest_terms_and_ordered_by_value() {
        let quarter_more = Ratio::new(10, 8).unwrap();
        assert_eq!((quarter_more.numerator(), quarter_more.denominator()), (5, 4));
        assert_eq!(Ratio::from_f64(1.25), Some(quarter_more));
        assert!(quarter_more > Ratio::ONE && Ratio::new(3, 2).unwrap() > quarter_more);
        assert_eq!(Ratio::new(1, 0), None);
        assert_eq!(Ratio::from_f64(f64::NAN), None);
        assert_eq!(Ratio::from_f64(-1.0), None);
    }
}
