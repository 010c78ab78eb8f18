//! How the lengths of a step scatter (`pipestep-step` draws them), and how they depend on the size of a micro-batch.

pub use pipestep_step::{Jitter, LinkScatter, Scatter};

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
