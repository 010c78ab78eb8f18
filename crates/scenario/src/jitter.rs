//! How the lengths of a step scatter, and how they depend on the size of a micro-batch, as plain data.

use std::sync::Arc;

/// What each operation and message of a step is multiplied with, drawn anew for each.
///
/// Slow ranks and links that are slow in every run are part of the step's costs already.
#[derive(Clone, Debug, PartialEq)]
pub struct Jitter {
    /// Of `F`, by rank.
    pub forward: Vec<Scatter>,
    /// Of `B`, by rank.
    pub backward: Vec<Scatter>,
    /// Of `I`, by rank.
    pub input_gradient: Vec<Scatter>,
    /// Of `W`, by rank.
    pub weight_gradient: Vec<Scatter>,
    /// Of `U`, by rank.
    pub update: Vec<Scatter>,
    /// Of activation messages.
    pub activation: LinkScatter,
    /// Of gradient messages.
    pub gradient: LinkScatter,
    /// How many runs.
    pub runs: u32,
    /// The seed of every draw.
    pub seed: u64,
}

/// The scatter of one kind of message.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkScatter {
    /// By the boundary k between ranks k and k+1.
    pub boundaries: Vec<Scatter>,
    /// Between ranks that are not neighbours.
    pub others: Scatter,
}

/// A distribution of factors.
#[derive(Clone, Debug, PartialEq)]
pub enum Scatter {
    /// Always the same; 1 for no scatter.
    Fixed(f64),
    /// Normal, cut off at zero.
    Normal {
        /// The mean, before the cut.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// Lognormal.
    Lognormal {
        /// The mean.
        mean: f64,
        /// Standard deviation over mean.
        variation: f64,
    },
    /// Uniform.
    Uniform {
        /// The least.
        low: f64,
        /// The greatest; not below `low`.
        high: f64,
    },
    /// Exponential.
    Exponential {
        /// The mean.
        mean: f64,
    },
    /// One of these, each as likely; there is at least one.
    Empirical(Arc<[f64]>),
}

impl Scatter {
    /// No scatter.
    pub const NONE: Self = Self::Fixed(1.0);
}

/// How the time per token depends on the tokens of a micro-batch. The step's lengths follow it already.
#[derive(Clone, Debug, PartialEq)]
pub struct Efficiency {
    /// What was written.
    pub curve: Curve,
    /// Tokens of the micro-batch that the written lengths hold for.
    pub reference_tokens: u64,
    /// Tokens of this step's micro-batches.
    pub tokens: u64,
}

/// Time per token by tokens, up to a constant factor.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// Points by rising tokens; at least one. Straight lines between them, the nearest outside.
    Points(Vec<(u64, f64)>),
    /// `1 + fixed_tokens / tokens`.
    Fixed {
        /// What a micro-batch costs besides its tokens, in tokens.
        fixed_tokens: u64,
    },
}

impl Efficiency {
    /// The time per token of micro-batches of so many tokens, relative to the reference.
    pub fn time_per_token(&self, tokens: u64) -> f64 {
        self.curve.at(tokens) / self.curve.at(self.reference_tokens)
    }
}

impl Curve {
    fn at(&self, tokens: u64) -> f64 {
        match self {
            Self::Fixed { fixed_tokens } => 1.0 + *fixed_tokens as f64 / tokens.max(1) as f64,
            Self::Points(points) => {
                let after = points.partition_point(|&(at, _)| at < tokens);
                match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
                    (Some((left, low)), Some(&(right, high))) => {
                        let share = (tokens - left) as f64 / (right - left) as f64;
                        low + (high - low) * share
                    }
                    (None, Some(&(_, only))) | (Some((_, only)), None) => only,
                    (None, None) => 1.0,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_straight_between_points_and_flat_outside() {
        let curve = Curve::Points(vec![(100, 2.0), (200, 1.0), (400, 0.5)]);
        let read = [50, 100, 150, 200, 300, 400, 1000].map(|tokens| curve.at(tokens));
        let expected = [2.0, 2.0, 1.5, 1.0, 0.75, 0.5, 0.5];
        assert!(
            read.iter().zip(expected).all(|(read, expected)| (read - expected).abs() < 1e-12),
            "{read:?}"
        );
        let fixed =
            Efficiency { curve: Curve::Fixed { fixed_tokens: 100 }, reference_tokens: 100, tokens: 50 };
        assert!((fixed.time_per_token(50) - 1.5).abs() < 1e-12);
    }
}
