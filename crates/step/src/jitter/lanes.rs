//! Eight runs side by side.

/// Runs that go through a course side by side.
pub(super) const LANES: usize = 8;

/// A time of each of eight runs, in ns: a whole number below [`Lanes::END`]. An `f64` holds it exactly, and every x86-64
/// processor takes the later of two pairs of `f64` in one instruction, but not of `u64`.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(align(64))]
pub(super) struct Lanes(pub(super) [f64; LANES]);

impl Lanes {
    pub(super) const ZERO: Self = Self([0.0; LANES]);

    /// From here on, an `f64` leaves whole numbers out.
    pub(super) const END: u64 = 1 << f64::MANTISSA_DIGITS;

    #[inline]
    pub(super) fn latest(self, other: &Self) -> Self {
        let latest = |lane| if self.0[lane] > other.0[lane] { self.0[lane] } else { other.0[lane] };
        Self(std::array::from_fn(latest))
    }

    #[inline]
    pub(super) fn plus(self, length: &Self) -> Self {
        Self(std::array::from_fn(|lane| self.0[lane] + length.0[lane]))
    }
}

impl From<[u64; LANES]> for Lanes {
    #[inline]
    fn from(nanos: [u64; LANES]) -> Self {
        Self(nanos.map(|nanos| nanos as f64))
    }
}
