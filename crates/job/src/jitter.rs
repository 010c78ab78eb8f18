//! The largest of many jittered times, drawn at once.
//!
//! The largest of n independent draws is the quantile of the n-th root of one uniform number, so a step of
//! 16,384 ranks costs as much as a step of one. Upper-tail probabilities are used throughout: the largest of
//! many lies where 1 − p has no digits left.

use rand::{Rng, RngExt};
use rand_distr::{Binomial, Distribution};
use statrs::function::erf::{erfc, erfc_inv};

use crate::stragglers::Jitter;

impl Jitter {
    /// The value that a rank exceeds with probability `tail`, which lies in 0..=1.
    pub(crate) fn upper_quantile(self, tail: f64) -> f64 {
        match self {
            Self::None => 1.0,
            Self::Normal { deviation } => 1.0 + deviation * normal_upper_quantile(tail),
            Self::Lognormal { variation } => {
                let square = (variation * variation).ln_1p();
                (square.sqrt() * normal_upper_quantile(tail) - square / 2.0).exp()
            }
            Self::Exponential { tail: mean } => 1.0 - mean * tail.ln(),
            Self::TwoPoint { factor, probability } => {
                if tail < probability {
                    factor
                } else {
                    1.0
                }
            }
        }
    }

    /// The probability that a rank exceeds `value`.
    pub(crate) fn upper_tail(self, value: f64) -> f64 {
        match self {
            Self::Normal { deviation } if deviation > 0.0 => normal_upper_tail((value - 1.0) / deviation),
            Self::Lognormal { variation } if variation > 0.0 => {
                let square = (variation * variation).ln_1p();
                normal_upper_tail((value.ln() + square / 2.0) / square.sqrt())
            }
            Self::Exponential { tail } if tail > 0.0 => ((1.0 - value) / tail).exp().min(1.0),
            Self::TwoPoint { factor, probability } if value < factor => {
                if value < 1.0 {
                    1.0
                } else {
                    probability
                }
            }
            _ => f64::from(value < 1.0),
        }
    }

    /// The largest of `count` ranks.
    pub(crate) fn largest(self, count: u32, rng: &mut impl Rng) -> f64 {
        self.upper_quantile(largest_tail(0.0, count, rng))
    }

    /// The largest of `count` ranks of which exactly `above` exceed the value with this upper tail.
    pub(crate) fn largest_given(self, count: u32, above: u32, tail: f64, rng: &mut impl Rng) -> f64 {
        if above == 0 {
            return self.upper_quantile(largest_tail((-tail).ln_1p(), count, rng));
        }
        self.upper_quantile(tail * largest_tail(0.0, above, rng))
    }

    /// The largest `wanted` of `count` ranks, largest first.
    pub(crate) fn top(self, count: u32, wanted: u32, rng: &mut impl Rng) -> impl Iterator<Item = f64> {
        let mut log = 0.0;
        let steps = 0..wanted.min(count);
        steps.map(move |taken| {
            log += open_uniform(rng).ln() / f64::from(count - taken);
            self.upper_quantile(-f64::exp_m1(log))
        })
    }
}

/// How many of `count` ranks do what each does with probability `share`.
pub(crate) fn how_many(count: u32, share: f64, rng: &mut impl Rng) -> u32 {
    if count == 0 || share <= 0.0 {
        return 0;
    }
    let drawn = Binomial::new(u64::from(count), share.min(1.0)).map_or(0, |binomial| binomial.sample(rng));
    drawn as u32
}

/// The upper tail at the largest of `count` draws below a value whose lower tail has this logarithm.
fn largest_tail(log_below: f64, count: u32, rng: &mut impl Rng) -> f64 {
    -f64::exp_m1(log_below + open_uniform(rng).ln() / f64::from(count))
}

/// A uniform number in 0..1 without its ends.
fn open_uniform(rng: &mut impl Rng) -> f64 {
    rng.sample(rand_distr::Open01)
}

fn normal_upper_quantile(tail: f64) -> f64 {
    std::f64::consts::SQRT_2 * erfc_inv(2.0 * tail)
}

fn normal_upper_tail(deviations: f64) -> f64 {
    0.5 * erfc(deviations * std::f64::consts::FRAC_1_SQRT_2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_engine::Streams;

    #[test]
    fn quantile_and_tail_are_inverse() {
        for jitter in [
            Jitter::Normal { deviation: 0.05 },
            Jitter::Lognormal { variation: 0.3 },
            Jitter::Exponential { tail: 0.1 },
        ] {
            for tail in [1e-9, 1e-4, 0.3, 0.9] {
                let back = jitter.upper_tail(jitter.upper_quantile(tail));
                assert!((back / tail - 1.0).abs() < 1e-6, "{jitter:?} {tail}: {back}");
            }
        }
    }

    #[test]
    fn the_largest_of_many_drawn_at_once_is_that_of_many_draws() {
        const ROUNDS: u32 = 4_000;
        let jitter = Jitter::Lognormal { variation: 0.2 };
        let mut rng = Streams::new(1).stream("jitter", 0);
        let (mut at_once, mut one_by_one, mut of_top) = (0.0, 0.0, 0.0);
        for _ in 0..ROUNDS {
            at_once += jitter.largest(16, &mut rng);
            one_by_one += (0..16).map(|_| jitter.largest(1, &mut rng)).fold(0.0, f64::max);
            of_top += jitter.top(16, 3, &mut rng).last().unwrap();
        }
        let mean = |sum: f64| sum / f64::from(ROUNDS);
        assert!((mean(at_once) - mean(one_by_one)).abs() < 0.01);
        let mut third = 0.0;
        for _ in 0..ROUNDS {
            let mut draws: Vec<f64> = (0..16).map(|_| jitter.largest(1, &mut rng)).collect();
            draws.sort_by(f64::total_cmp);
            third += draws[13];
        }
        assert!((mean(of_top) - mean(third)).abs() < 0.01);
    }
}
