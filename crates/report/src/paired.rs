//! Whether two things that were run under the same luck differ, or only seem to.
//!
//! One idea: where run k of each candidate meets the same draws, what is uncertain is not each mean but the mean of
//! the differences run by run, which is far surer than either mean (common random numbers).

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The chance of calling the truly best candidate worse than another.
const ERROR: f64 = 0.05;

/// How much more one candidate has than another, run by run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The mean.
    pub mean: f64,
    /// Its standard error; zero for a single run, which says nothing about scatter.
    pub standard_error: f64,
    runs: usize,
}

impl Difference {
    /// `one` less `other`, whose entries are of the same runs. `None` without a run, or with other numbers of runs.
    pub fn of(one: &[f64], other: &[f64]) -> Option<Self> {
        if one.len() != other.len() {
            return None;
        }
        let differences: Vec<f64> = one.iter().zip(other).map(|(one, other)| one - other).collect();
        let estimate = pipestep_job::Estimate::of(&differences)?;
        Some(Self { mean: estimate.mean, standard_error: estimate.standard_error, runs: one.len() })
    }

    /// By how much the mean may be off, with so many candidates held against one: so chosen that the truly best of
    /// them is called worse than another with a chance of 5 % at most (Student's t, the chance shared out over the
    /// candidates after Bonferroni; Nelson, Swann, Goldsman and Song 2001 call what is left the screened set).
    pub fn margin(self, candidates: usize) -> f64 {
        let Some(freedom) = self.runs.checked_sub(1).filter(|&freedom| freedom > 0) else { return 0.0 };
        if self.standard_error <= 0.0 {
            return 0.0;
        }
        let rivals = candidates.saturating_sub(1).max(1);
        let level = 1.0 - ERROR / rivals as f64;
        let quantile =
            StudentsT::new(0.0, 1.0, freedom as f64).map_or(f64::INFINITY, |t| t.inverse_cdf(level));
        quantile * self.standard_error
    }

    /// Whether the difference is more than scatter, among so many candidates.
    pub fn is_sure(self, candidates: usize) -> bool {
        self.mean.abs() > self.margin(candidates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_luck_cancels() {
        // Both scatter by 100, their difference by one.
        let luck: Vec<f64> = (0..20_u32).map(|run| f64::from(run * 7_919 % 100)).collect();
        let other: Vec<f64> =
            luck.iter().enumerate().map(|(run, luck)| luck + 3.0 + (run % 2) as f64).collect();
        let difference = Difference::of(&other, &luck).expect("the same runs");
        assert!((difference.mean - 3.5).abs() < 1e-12 && difference.standard_error < 0.12, "{difference:?}");
        assert!(difference.is_sure(2) && difference.is_sure(100));
        assert_eq!(Difference::of(&luck, &other[1..]), None);
    }

    #[test]
    fn the_margin_is_students_and_grows_with_the_rivals() {
        let difference = Difference { mean: 1.0, standard_error: 1.0, runs: 11 };
        // One-sided 5 % points of t with 10 degrees of freedom, from any table: 1.812; at 0.5 %: 3.169.
        assert!((difference.margin(2) - 1.812).abs() < 1e-3);
        assert!((difference.margin(11) - 3.169).abs() < 1e-3);
        assert!(!difference.is_sure(2));
    }

    #[test]
    fn what_never_scatters_is_sure_at_once() {
        let same = Difference::of(&[2.0, 2.0], &[2.0, 2.0]).expect("the same runs");
        let less = Difference::of(&[2.0], &[2.5]).expect("the same runs");
        assert_eq!((same.is_sure(9), less.is_sure(9)), (false, true));
    }

    /// The promise itself: among candidates that are all as good, the first is called worse than the best in one
    /// of twenty experiments at most.
    #[test]
    fn the_best_is_rarely_called_worse() {
        let mut state = 1_u64;
        let mut unit = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        let mut normal = || (0..12).map(|_| unit()).sum::<f64>() - 6.0;
        let (experiments, candidates, runs) = (2_000, 6, 10);
        let mut wrong = 0;
        for _ in 0..experiments {
            let samples: Vec<Vec<f64>> =
                (0..candidates).map(|_| (0..runs).map(|_| normal()).collect()).collect();
            let mean = |sample: &Vec<f64>| sample.iter().sum::<f64>();
            let best = samples.iter().min_by(|a, b| mean(a).total_cmp(&mean(b))).expect("there are some");
            let difference = Difference::of(&samples[0], best).expect("the same runs");
            wrong += u32::from(difference.is_sure(candidates));
        }
        assert!(wrong * 20 <= experiments, "{wrong} of {experiments}");
    }
}
