//! Simulated time: integer nanoseconds since the start of a run.
//!
//! The range is that of `u64`, 584 years. Sums that user input can overflow go through the checked methods
//! and become an [`Overflow`] that names both operands.

use std::fmt;

/// An instant: nanoseconds since the start of the simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

/// A sum or product of times or bytes that does not fit in 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} overflows: {left} and {right} together exceed {max}", max = u64::MAX)]
pub struct Overflow {
    /// What was computed, with its unit: `"time in ns"`, `"bytes"`.
    pub what: &'static str,
    /// The first operand.
    pub left: u64,
    /// The second operand.
    pub right: u64,
}

impl Time {
    /// The start of the simulation.
    pub const ZERO: Self = Self(0);
    /// The last instant that can be represented; also used for "not known yet".
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the start.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the start.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The instant `duration` later.
    ///
    /// # Errors
    /// [`Overflow`] past the last representable instant.
    pub const fn after(self, duration: Duration) -> Result<Self, Overflow> {
        match self.0.checked_add(duration.0) {
            Some(nanos) => Ok(Self(nanos)),
            None => Err(Overflow { what: "time in ns", left: self.0, right: duration.0 }),
        }
    }

    /// How long ago `earlier` was; zero if it is not earlier.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `nanos` nanoseconds.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The length in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The length in seconds, for ratios and reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum of two lengths.
    ///
    /// # Errors
    /// [`Overflow`] if it does not fit.
    pub const fn plus(self, other: Self) -> Result<Self, Overflow> {
        match self.0.checked_add(other.0) {
            Some(nanos) => Ok(Self(nanos)),
            None => Err(Overflow { what: "time in ns", left: self.0, right: other.0 }),
        }
    }

    /// `count` times this length.
    ///
    /// # Errors
    /// [`Overflow`] if it does not fit.
    pub const fn times(self, count: u64) -> Result<Self, Overflow> {
        match self.0.checked_mul(count) {
            Some(nanos) => Ok(Self(nanos)),
            None => Err(Overflow { what: "time in ns", left: self.0, right: count }),
        }
    }
}

/// Prints in the unit a person would choose: `347 ms`, `1.5 s`, `250 ns`.
impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (86_400_000_000_000, "d"),
            (3_600_000_000_000, "h"),
            (1_000_000_000, "s"),
            (1_000_000, "ms"),
            (1_000, "us"),
        ];
        let found = UNITS.into_iter().find(|&(size, _)| self.0 >= size);
        let Some((size, unit)) = found else {
            return write!(f, "{} ns", self.0);
        };
        let text = format!("{:.3}", self.0 as f64 / size as f64);
        write!(f, "{} {unit}", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Duration(self.0).fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_print_in_a_readable_unit() {
        let shown = |nanos| Duration::from_nanos(nanos).to_string();
        assert_eq!(shown(0), "0 ns");
        assert_eq!(shown(999), "999 ns");
        assert_eq!(shown(347_000_000), "347 ms");
        assert_eq!(shown(1_500_000_000), "1.5 s");
        assert_eq!(shown(7_200_000_000_000), "2 h");
    }

    #[test]
    fn sums_past_the_end_of_time_are_errors_that_name_the_operands() {
        let error = Time::MAX.after(Duration::from_nanos(1)).unwrap_err();
        assert_eq!((error.left, error.right), (u64::MAX, 1));
        assert!(Duration::from_nanos(u64::MAX).times(2).is_err());
        assert!(Duration::from_nanos(u64::MAX).plus(Duration::from_nanos(1)).is_err());
    }

    #[test]
    fn since_never_goes_below_zero() {
        assert_eq!(Time::ZERO.since(Time::from_nanos(5)), Duration::ZERO);
        assert_eq!(Time::from_nanos(7).since(Time::from_nanos(5)), Duration::from_nanos(2));
    }
}
