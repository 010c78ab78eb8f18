//! Lengths of time that are fixed or drawn at random.

use pipestep_engine::Duration;
use rand::Rng;
use rand_distr::{Distribution, Exp1, LogNormal, StandardNormal, StandardUniform};
use statrs::function::gamma::gamma;

use crate::InputError;

/// A length of time, fixed or random. All but `Uniform` are given by their mean, since that is what a log
/// of failures or of write times shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Always the same.
    Fixed(Duration),
    /// Exponential: memoryless, what many independent sources of failures add up to.
    Exponential {
        /// The mean.
        mean: Duration,
    },
    /// Weibull: failures that come early (shape below 1) or with wear (above 1).
    Weibull {
        /// The mean.
        mean: Duration,
        /// The shape, between 0.1 and 100; 1 is the exponential.
        shape: f64,
    },
    /// Lognormal: multiplicative scatter with a tail.
    Lognormal {
        /// The mean.
        mean: Duration,
        /// Standard deviation over mean, between 0 and 100.
        variation: f64,
    },
    /// Normal, cut off at zero.
    Normal {
        /// The mean, before the cut.
        mean: Duration,
        /// The standard deviation.
        deviation: Duration,
    },
    /// Uniform.
    Uniform {
        /// The shortest.
        low: Duration,
        /// The longest.
        high: Duration,
    },
}

impl Spread {
    /// No time at all, always.
    pub const ZERO: Self = Self::Fixed(Duration::ZERO);

    /// The fixed length, if it is fixed.
    pub const fn fixed(self) -> Option<Duration> {
        match self {
            Self::Fixed(length) => Some(length),
            _ => None,
        }
    }

    /// The mean in nanoseconds (of [`Spread::Normal`]: before the cut at zero).
    pub fn mean_nanos(self) -> f64 {
        let nanos = |length: Duration| length.as_nanos() as f64;
        match self {
            Self::Fixed(mean)
            | Self::Exponential { mean }
            | Self::Weibull { mean, .. }
            | Self::Lognormal { mean, .. }
            | Self::Normal { mean, .. } => nanos(mean),
            Self::Uniform { low, high } => f64::midpoint(nanos(low), nanos(high)),
        }
    }

    /// One length, rounded to the nearest nanosecond; `None` if it is longer than time itself.
    pub(crate) fn draw(self, rng: &mut impl Rng) -> Option<Duration> {
        self.draw_over(1.0, rng)
    }

    /// One length divided by `count`: the next event of `count` exponential sources together.
    pub(crate) fn draw_over(self, count: f64, rng: &mut impl Rng) -> Option<Duration> {
        let mean = self.mean_nanos();
        let nanos = match self {
            Self::Fixed(length) => return Some(length),
            Self::Exponential { .. } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit / count
            }
            Self::Weibull { shape, .. } => {
                let unit: f64 = Exp1.sample(rng);
                mean / gamma(1.0 + 1.0 / shape) * unit.powf(1.0 / shape)
            }
            Self::Lognormal { variation, .. } => {
                let square = (variation * variation).ln_1p();
                let normal = LogNormal::new(-square / 2.0, square.sqrt()).ok()?;
                mean * normal.sample(rng)
            }
            Self::Normal { deviation, .. } => {
                let unit: f64 = StandardNormal.sample(rng);
                mean + unit * deviation.as_nanos() as f64
            }
            Self::Uniform { low, high } => {
                let unit: f64 = StandardUniform.sample(rng);
                low.as_nanos() as f64 + unit * width(low, high)
            }
        };
        // 2^63 ns are 292 years: what is longer never happens.
        (nanos < 9.2e18).then(|| Duration::from_nanos(nanos.round().max(0.0) as u64))
    }

    /// Refuses shapes and variations that are absurd, and a mean of zero where `what` must take time.
    pub(crate) fn check(self, what: &'static str, zero: Zero) -> Result<(), InputError> {
        let bad = |reason: &'static str| Err(InputError::Distribution { what, reason });
        match self {
            Self::Weibull { shape, .. } if !(0.1..=100.0).contains(&shape) => {
                bad("a Weibull shape lies between 0.1 and 100")
            }
            Self::Lognormal { variation, .. } if !(0.0..=100.0).contains(&variation) => {
                bad("a lognormal variation (deviation over mean) lies between 0 and 100")
            }
            Self::Uniform { low, high } if low > high => bad("the lower end lies above the upper end"),
            _ if zero == Zero::Refused && self.mean_nanos() == 0.0 => Err(InputError::Zero { what }),
            _ => Ok(()),
        }
    }
}

/// Whether a length may be zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Zero {
    Allowed,
    Refused,
}

/// The width of a uniform range in nanoseconds.
fn width(low: Duration, high: Duration) -> f64 {
    high.as_nanos().saturating_sub(low.as_nanos()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_engine::Streams;

    const SECOND: Duration = Duration::from_nanos(1_000_000_000);

    #[test]
    fn every_distribution_has_the_mean_it_is_given() {
        let spreads = [
            Spread::Exponential { mean: SECOND },
            Spread::Weibull { mean: SECOND, shape: 0.7 },
            Spread::Weibull { mean: SECOND, shape: 3.0 },
            Spread::Lognormal { mean: SECOND, variation: 0.5 },
            Spread::Normal { mean: SECOND, deviation: Duration::from_nanos(100_000_000) },
            Spread::Uniform { low: Duration::ZERO, high: Duration::from_nanos(2_000_000_000) },
        ];
        for (index, spread) in spreads.into_iter().enumerate() {
            let mut rng = Streams::new(7).stream("spread", index as u64);
            let draws: Vec<f64> = (0..40_000).map(|_| spread.draw(&mut rng).unwrap().as_secs_f64()).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let error = (square / draws.len() as f64).sqrt();
            assert!((mean - 1.0).abs() < 4.0 * error, "{spread:?}: {mean} ± {error}");
        }
    }

    #[test]
    fn absurd_distributions_are_refused_with_their_reason() {
        let shape = Spread::Weibull { mean: SECOND, shape: f64::NAN };
        assert!(shape.check("faults.mtbf", Zero::Allowed).is_err());
        let zero = Spread::Exponential { mean: Duration::ZERO };
        assert!(zero.check("faults.mtbf", Zero::Refused).is_err());
        assert!(zero.check("staging", Zero::Allowed).is_ok());
    }
}
