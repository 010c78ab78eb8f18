//! Exact shares and speeds, and the rounding of everything scaled by them.
//!
//! One idea: what a user writes as `0.75` or `2` stays a fraction of integers, so that a kept share, a
//! staleness bound or a doubled stage never loses a nanosecond to a float. Rounding is half to even, as in
//! the rest of pipestep.

use std::fmt;

use pipestep_engine::{Duration, Overflow};

/// A fraction of two integers, the lower one not zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    numerator: u32,
    denominator: u32,
}

impl Fraction {
    /// Nothing.
    pub const ZERO: Self = Self { numerator: 0, denominator: 1 };
    /// The whole; as a speed, the times as they were given.
    pub const ONE: Self = Self { numerator: 1, denominator: 1 };

    /// `numerator / denominator`; `None` if the denominator is zero.
    pub const fn new(numerator: u32, denominator: u32) -> Option<Self> {
        if denominator == 0 { None } else { Some(Self { numerator, denominator }) }
    }

    /// The upper integer.
    pub const fn numerator(self) -> u32 {
        self.numerator
    }

    /// The lower integer.
    pub const fn denominator(self) -> u32 {
        self.denominator
    }

    /// Whether it is nothing.
    pub const fn is_zero(self) -> bool {
        self.numerator == 0
    }

    /// Whether it is at most one.
    pub const fn is_share(self) -> bool {
        self.numerator <= self.denominator
    }

    /// The value, for reports.
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator) / f64::from(self.denominator)
    }

    /// The product with another fraction; `None` if it does not fit in 32 bits even when reduced.
    pub fn times(self, other: Self) -> Option<Self> {
        let upper = u64::from(self.numerator) * u64::from(other.numerator);
        let lower = u64::from(self.denominator) * u64::from(other.denominator);
        let common = greatest_common_divisor(upper, lower);
        Some(Self {
            numerator: u32::try_from(upper / common).ok()?,
            denominator: u32::try_from(lower / common).ok()?,
        })
    }

    /// Two.
    pub(crate) const DOUBLE: Self = Self { numerator: 2, denominator: 1 };

    /// The whole part of `count` times this fraction.
    pub(crate) fn floor_of(self, count: u64) -> u64 {
        let product = u128::from(count) * u128::from(self.numerator) / u128::from(self.denominator);
        u64::try_from(product).unwrap_or(u64::MAX)
    }

    /// A length of time at this speed: `time / self`, rounded half to even. A speed is never zero (checked
    /// with the inputs).
    pub(crate) fn speed_up(self, time: Duration) -> Result<Duration, Overflow> {
        scale(time, u128::from(self.denominator), u128::from(self.numerator.max(1)))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.denominator == 1 {
            write!(f, "{}", self.numerator)
        } else {
            write!(f, "{}/{}", self.numerator, self.denominator)
        }
    }
}

/// `time * upper / lower`, rounded half to even. `lower` is not zero.
pub(crate) fn scale(time: Duration, upper: u128, lower: u128) -> Result<Duration, Overflow> {
    let overflow = || Overflow {
        what: "time in ns",
        left: time.as_nanos(),
        right: u64::try_from(upper).unwrap_or(u64::MAX),
    };
    let product = u128::from(time.as_nanos()).checked_mul(upper).ok_or_else(overflow)?;
    let (quotient, rest) = (product / lower, product % lower);
    let half = lower - rest;
    let up = rest > half || (rest == half && quotient % 2 == 1);
    u64::try_from(quotient + u128::from(up)).map(Duration::from_nanos).map_err(|_| overflow())
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_divide_and_round_half_to_even() {
        let double = Fraction::new(2, 1).unwrap();
        for (given, expected) in [(4, 2), (1, 0), (3, 2), (5, 2), (7, 4)] {
            assert_eq!(
                double.speed_up(Duration::from_nanos(given)).unwrap().as_nanos(),
                expected,
                "{given} at double speed"
            );
        }
        let third = Fraction::new(1, 3).unwrap();
        assert_eq!(third.speed_up(Duration::from_nanos(5)).unwrap().as_nanos(), 15);
        assert!(third.speed_up(Duration::from_nanos(u64::MAX)).is_err());
    }

    #[test]
    fn products_are_reduced_before_they_are_judged_too_large() {
        let big = Fraction::new(u32::MAX, 7).unwrap();
        let inverse = Fraction::new(7, u32::MAX).unwrap();
        assert_eq!(big.times(inverse), Some(Fraction::ONE));
        assert_eq!(big.times(big), None);
        assert_eq!(Fraction::new(1, 0), None);
        assert_eq!(Fraction::new(3, 2).unwrap().floor_of(5), 7);
    }
}
