//! Amounts of memory and rates of transfer, and the one rounding rule between them.

use std::fmt;

use crate::{Duration, Overflow};

/// An amount of memory or of data, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

/// A rate of transfer as an exact fraction: `bytes` in every `per_nanos` nanoseconds.
///
/// A fraction and not a float, so that `200 Gbit/s` (25 bytes a nanosecond) and `7 GB/s` are both exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    bytes: u64,
    per_nanos: u64,
}

impl Bytes {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `count` bytes.
    pub const fn new(count: u64) -> Self {
        Self(count)
    }

    /// The count of bytes.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The sum of two amounts.
    ///
    /// # Errors
    /// [`Overflow`] if it does not fit.
    pub const fn plus(self, other: Self) -> Result<Self, Overflow> {
        match self.0.checked_add(other.0) {
            Some(count) => Ok(Self(count)),
            None => Err(Overflow { what: "bytes", left: self.0, right: other.0 }),
        }
    }

    /// `count` times this amount.
    ///
    /// # Errors
    /// [`Overflow`] if it does not fit.
    pub const fn times(self, count: u64) -> Result<Self, Overflow> {
        match self.0.checked_mul(count) {
            Some(count) => Ok(Self(count)),
            None => Err(Overflow { what: "bytes", left: self.0, right: count }),
        }
    }
}

impl Rate {
    /// `bytes` in every `per_nanos` nanoseconds; `None` if either is zero (a transfer would never end, or
    /// take no time at all).
    pub const fn new(bytes: u64, per_nanos: u64) -> Option<Self> {
        if bytes == 0 || per_nanos == 0 { None } else { Some(Self { bytes, per_nanos }) }
    }

    /// `bytes` every second.
    pub const fn per_second(bytes: u64) -> Option<Self> {
        Self::new(bytes, 1_000_000_000)
    }

    /// The numerator: bytes moved in [`Self::nanos`] nanoseconds.
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// The denominator: nanoseconds in which [`Self::bytes`] bytes are moved.
    pub const fn nanos(self) -> u64 {
        self.per_nanos
    }

    /// How long `amount` takes at this rate, rounded to the nearest nanosecond, half to even.
    ///
    /// # Errors
    /// [`Overflow`] if it takes longer than time itself.
    pub const fn time_for(self, amount: Bytes) -> Result<Duration, Overflow> {
        let scaled = amount.0 as u128 * self.per_nanos as u128;
        let nanos = round_half_even(scaled, self.bytes as u128);
        if nanos > u64::MAX as u128 {
            return Err(Overflow { what: "time in ns", left: amount.0, right: self.per_nanos });
        }
        Ok(Duration::from_nanos(nanos as u64))
    }

    /// Bytes a second, for reports.
    pub fn per_second_f64(self) -> f64 {
        self.bytes as f64 * 1e9 / self.per_nanos as f64
    }
}

/// `numerator / denominator` to the nearest integer, half to even: the one rounding rule of pipestep.
const fn round_half_even(numerator: u128, denominator: u128) -> u128 {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let half = denominator - rest;
    if rest > half || (rest == half && quotient % 2 == 1) { quotient + 1 } else { quotient }
}

/// Prints decimal units as the field does: `2.57 GB`, `512 B`.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 4] =
            [(1_000_000_000_000, "TB"), (1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
        match UNITS.into_iter().find(|&(size, _)| self.0 >= size) {
            Some((size, unit)) => write!(f, "{:.2} {unit}", self.0 as f64 / size as f64),
            None => write!(f, "{} B", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_are_exact_and_round_half_to_even() {
        let slow = Rate::per_second(7_000_000_000).unwrap();
        assert_eq!(slow.time_for(Bytes::new(112_000_000_000)).unwrap(), Duration::from_nanos(16_000_000_000));
        let half = Rate::new(2, 1).unwrap();
        assert_eq!(half.time_for(Bytes::new(1)).unwrap().as_nanos(), 0);
        assert_eq!(half.time_for(Bytes::new(3)).unwrap().as_nanos(), 2);
        assert_eq!(half.time_for(Bytes::new(5)).unwrap().as_nanos(), 2);
    }

    #[test]
    fn a_rate_of_zero_does_not_exist_and_an_endless_transfer_is_an_error() {
        assert!(Rate::per_second(0).is_none());
        let crawl = Rate::new(1, u64::MAX).unwrap();
        assert!(crawl.time_for(Bytes::new(2)).is_err());
    }

    #[test]
    fn bytes_print_in_decimal_units() {
        assert_eq!(Bytes::new(2_566_434_816).to_string(), "2.57 GB");
        assert_eq!(Bytes::new(965_758_976).to_string(), "965.76 MB");
        assert_eq!(Bytes::new(999).to_string(), "999 B");
    }
}
