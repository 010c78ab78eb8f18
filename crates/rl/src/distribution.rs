//! Where lengths and times come from: a list, a fixed value, or a random draw.
//!
//! One idea: a [`Distribution`] is plain numbers in the unit of its use (tokens for responses, nanoseconds
//! for services); a draw is rounded to the nearest whole unit and cut at the cap. Deliberately absent: any
//! fitting of parameters to data.

use rand::Rng;
use rand::RngExt as _;
use rand_distr::Distribution as _;
use rand_distr::{Exp1, StandardNormal};

use crate::{Field, RlError};

/// A distribution of lengths (in tokens) or of times (in nanoseconds).
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The shape, with its parameters.
    pub shape: Shape,
    /// No draw is longer: a response is cut here. `None`: no cap.
    pub cap: Option<u64>,
}

/// The shape of a [`Distribution`].
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Always the same value.
    Fixed(u64),
    /// The values one after the other, in the order of samples, from the first again after the last.
    List(Vec<u64>),
    /// One of the given values, each as likely (an empirical distribution: a file of measured lengths).
    Empirical(Vec<u64>),
    /// Between two values, each real number between them as likely.
    Uniform {
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
    },
    /// Exponential.
    Exponential {
        /// Its mean.
        mean: f64,
    },
    /// Lognormal: `median * exp(sigma * Z)`, Z standard normal.
    Lognormal {
        /// Half the draws are longer.
        median: f64,
        /// Standard deviation of the logarithm.
        sigma: f64,
    },
    /// Pareto: the chance to be longer than x is `(minimum / x)^alpha`.
    Pareto {
        /// The least value.
        minimum: f64,
        /// The exponent of the tail; with 1 or less the mean is infinite.
        alpha: f64,
    },
}

impl Distribution {
    /// Always `value`.
    pub const fn fixed(value: u64) -> Self {
        Self { shape: Shape::Fixed(value), cap: None }
    }

    /// Refuses parameters that are no distribution; `field` and `what` name it in the error.
    pub(crate) fn check(&self, field: impl Into<Field>, what: &str) -> Result<(), RlError> {
        let field = field.into();
        let refuse = |reason: &str| Err(RlError::Refused { field, reason: format!("{what}: {reason}") });
        let positive = |value: f64| value.is_finite() && value > 0.0;
        if self.cap == Some(0) {
            return refuse("the cap must be at least 1");
        }
        match &self.shape {
            Shape::List(values) | Shape::Empirical(values) if values.is_empty() => {
                refuse("the list of values is empty")
            }
            Shape::Uniform { low, high } if low > high => refuse("`low` must not exceed `high`"),
            Shape::Exponential { mean } if !positive(*mean) => refuse("the mean must be above 0"),
            Shape::Lognormal { median, .. } if !positive(*median) => refuse("the median must be above 0"),
            Shape::Lognormal { sigma, .. } if !(sigma.is_finite() && *sigma >= 0.0) => {
                refuse("sigma must be 0 or more")
            }
            Shape::Pareto { minimum, alpha } if !(positive(*minimum) && positive(*alpha)) => {
                refuse("minimum and alpha must be above 0")
            }
            _ => Ok(()),
        }
    }

    /// Whether a draw needs no randomness.
    pub(crate) const fn is_certain(&self) -> bool {
        matches!(self.shape, Shape::Fixed(_) | Shape::List(_))
    }

    /// The value for sample number `index`; random shapes draw it from `random`.
    pub(crate) fn draw(&self, index: u64, random: &mut impl Rng) -> u64 {
        let value = match &self.shape {
            Shape::Fixed(value) => *value,
            Shape::List(values) => values[(index % values.len() as u64) as usize],
            Shape::Empirical(values) => values[random.random_range(0..values.len())],
            Shape::Uniform { low, high } => {
                let share: f64 = random.random();
                low + round((high - low) as f64 * share)
            }
            Shape::Exponential { mean } => {
                let unit: f64 = Exp1.sample(random);
                round(mean * unit)
            }
            Shape::Lognormal { median, sigma } => {
                let normal: f64 = StandardNormal.sample(random);
                round(median * (sigma * normal).exp())
            }
            Shape::Pareto { minimum, alpha } => {
                let unit: f64 = Exp1.sample(random);
                round(minimum * (unit / alpha).exp())
            }
        };
        self.cap.map_or(value, |cap| value.min(cap))
    }
}

/// The nearest whole number; what is too large for 64 bits becomes the largest.
fn round(value: f64) -> u64 {
    value.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_engine::Streams;

    fn mean_of(shape: Shape, cap: Option<u64>) -> f64 {
        let distribution = Distribution { shape, cap };
        distribution.check("", "test").unwrap();
        let mut random = Streams::new(3).stream("test", 0);
        let draws = 20_000;
        (0..draws).map(|index| distribution.draw(index, &mut random) as f64).sum::<f64>() / draws as f64
    }

    #[test]
    fn means_are_those_of_the_books() {
        let near = |found: f64, expected: f64| assert!((found / expected - 1.0).abs() < 0.03, "{found}");
        near(mean_of(Shape::Exponential { mean: 1e6 }, None), 1e6);
        let lognormal = Shape::Lognormal { median: 1e6, sigma: 0.5 };
        near(mean_of(lognormal, None), 1e6 * 0.125_f64.exp());
        let pareto = Shape::Pareto { minimum: 1e6, alpha: 3.0 };
        near(mean_of(pareto, None), 1.5e6);
        near(mean_of(Shape::Uniform { low: 10, high: 30 }, None), 20.0);
        near(mean_of(Shape::Empirical(vec![1, 2, 6]), None), 3.0);
        near(mean_of(Shape::Fixed(9), Some(4)), 4.0);
    }

    #[test]
    fn lists_go_round() {
        let list = Distribution { shape: Shape::List(vec![5, 7]), cap: None };
        let mut random = Streams::new(0).stream("test", 0);
        let drawn: Vec<u64> = (0..3).map(|index| list.draw(index, &mut random)).collect();
        assert_eq!(drawn, [5, 7, 5]);
    }

    #[test]
    fn what_is_no_distribution_is_refused_with_its_name() {
        let nan = Distribution { shape: Shape::Lognormal { median: f64::NAN, sigma: 1.0 }, cap: None };
        let error = nan.check("", "response lengths").unwrap_err().to_string();
        assert!(error.contains("response lengths"), "{error}");
        let empty = Distribution { shape: Shape::List(vec![]), cap: None };
        assert!(empty.check("", "x").is_err());
    }
}
