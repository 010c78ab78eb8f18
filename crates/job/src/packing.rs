//! Samples of many lengths, packed into items of one.

use pipestep_engine::{Bytes, Duration};
use rand::Rng;
use rand_distr::{Distribution, Exp1, LogNormal, StandardNormal, StandardUniform};

use crate::InputError;

/// How items are packed from samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing {
    /// Token slots of a pack, which is an item.
    pub tokens: u64,
    /// What is packed.
    pub samples: Samples,
    /// What becomes of a sample for which there is no room left.
    pub rest: Rest,
}

/// What becomes of a sample that is longer than the rest of a pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It begins the next pack, and the rest of this one stays empty: next fit.
    Padded,
    /// It is cut; what is left of it is kept and begins the next pack.
    Split,
}

/// The samples of a data set.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// These, in order, again and again.
    Listed(Vec<Sample>),
    /// Of random lengths. Whoever asks for a sample again, after a failure, gets it with the same length.
    Drawn {
        /// How many tokens they have.
        lengths: TokenLengths,
        /// Bytes read for each token.
        stored: Bytes,
        /// The time of a worker for each sample.
        cpu: Duration,
    },
}

/// A sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its tokens.
    pub tokens: u64,
    /// Its size in storage.
    pub stored: Bytes,
    /// The CPU time to prepare it.
    pub cpu: Duration,
}

/// Random numbers of tokens, rounded to whole ones, at least one and at most a pack.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TokenLengths {
    /// Exponential around a mean.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// Lognormal.
    Lognormal {
        /// The mean.
        mean: f64,
        /// Standard deviation over mean.
        variation: f64,
    },
    /// Normal.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Uniform.
    Uniform {
        /// The fewest.
        low: u64,
        /// The most.
        high: u64,
    },
}

impl TokenLengths {
    /// One number of tokens before rounding.
    pub(crate) fn draw(self, rng: &mut impl Rng) -> f64 {
        match self {
            Self::Exponential { mean } => {
                let unit: f64 = Exp1.sample(rng);
                mean * unit
            }
            Self::Lognormal { mean, variation } => {
                let square = (variation * variation).ln_1p();
                LogNormal::new(-square / 2.0, square.sqrt()).map_or(mean, |normal| mean * normal.sample(rng))
            }
            Self::Normal { mean, deviation } => {
                let unit: f64 = StandardNormal.sample(rng);
                mean + deviation * unit
            }
            Self::Uniform { low, high } => {
                let unit: f64 = StandardUniform.sample(rng);
                // Every whole number from `low` to `high` is as likely as the next.
                (low as f64 - 0.5) + unit * (high.saturating_sub(low) as f64 + 1.0)
            }
        }
    }

    fn check(self) -> Result<(), InputError> {
        let bad = |reason| Err(InputError::Distribution { what: "input.packing.samples", reason });
        let numbers = match self {
            Self::Exponential { mean } => [mean, 0.0],
            Self::Lognormal { mean, variation } => [mean, variation],
            Self::Normal { mean, deviation } => [mean, deviation],
            Self::Uniform { low, high } if low > high => {
                return bad("the lower end lies above the upper end");
            }
            Self::Uniform { low, .. } => [low as f64, 0.0],
        };
        if !(numbers[0] > 0.0 && numbers[0] < 1e15) {
            return bad("a sample has at least one token on average");
        }
        if matches!(self, Self::Lognormal { .. }) && !(0.0..=100.0).contains(&numbers[1]) {
            return bad("a lognormal variation (deviation over mean) lies between 0 and 100");
        }
        if (0.0..1e15).contains(&numbers[1]) { Ok(()) } else { bad("a deviation is zero or more") }
    }
}

impl Packing {
    pub(crate) fn check(&self) -> Result<(), InputError> {
        let zero = |what| Err(InputError::Zero { what });
        if self.tokens == 0 {
            return zero("input.packing.tokens");
        }
        match &self.samples {
            Samples::Listed(samples) if samples.is_empty() => {
                Err(InputError::Empty { what: "input.packing.samples" })
            }
            Samples::Listed(samples) if samples.iter().any(|sample| sample.tokens == 0) => {
                zero("input.packing.samples")
            }
            Samples::Listed(samples) => match samples.iter().map(|sample| sample.tokens).max() {
                Some(tokens) if tokens > self.tokens && self.rest == Rest::Padded => {
                    Err(InputError::SampleTooLong { tokens, pack: self.tokens })
                }
                _ => Ok(()),
            },
            Samples::Drawn { lengths, .. } => lengths.check(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_engine::Streams;

    #[test]
    fn lengths_have_the_mean_that_they_are_given() {
        let lengths = [
            (TokenLengths::Exponential { mean: 700.0 }, 700.0),
            (TokenLengths::Lognormal { mean: 700.0, variation: 0.8 }, 700.0),
            (TokenLengths::Normal { mean: 700.0, deviation: 90.0 }, 700.0),
            (TokenLengths::Uniform { low: 3, high: 7 }, 5.0),
        ];
        for (lengths, want) in lengths {
            let mut rng = Streams::new(3).stream("lengths", 0);
            let draws: Vec<f64> = (0..40_000).map(|_| lengths.draw(&mut rng)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let square = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            let error = (square / draws.len() as f64).sqrt();
            assert!((mean - want).abs() < 4.0 * error, "{lengths:?}: {mean} ± {error}");
        }
        assert!(TokenLengths::Uniform { low: 7, high: 3 }.check().is_err());
        assert!(TokenLengths::Lognormal { mean: 1.0, variation: f64::NAN }.check().is_err());
    }
}
