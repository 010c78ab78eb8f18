//! Many runs of one random job: means, how certain they are, and percentiles.
//!
//! Runs are independent: `simulate(&inputs, run, Detail::Summary)` for each number in any order and on any
//! number of threads, then [`RunsSummary::of`] over the outcomes in the order of their numbers.

use crate::JobOutcome;

/// The percentiles that are reported, in percent.
pub const PERCENTILES: [u8; 7] = [1, 5, 25, 50, 75, 95, 99];

/// What a sample of runs says about one quantity.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the sample (over n − 1); zero for a single run.
    pub deviation: f64,
    /// The standard error of the mean.
    pub standard_error: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// At each of [`PERCENTILES`], interpolated linearly between the sorted runs.
    pub percentiles: [f64; PERCENTILES.len()],
}

/// What the runs of a job came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsSummary {
    /// How many runs.
    pub runs: usize,
    /// Wall time in ns.
    pub elapsed: Estimate,
    /// Useful time in ns.
    pub useful: Estimate,
    /// Useful time over wall time.
    pub useful_fraction: Estimate,
    /// Failures that counted.
    pub failures: Estimate,
    /// Each loss in ns, by its name in the JSON result.
    pub lost: Vec<(&'static str, Estimate)>,
}

impl Estimate {
    /// The estimate from a sample; `None` if it is empty.
    pub fn of(sample: &[f64]) -> Option<Self> {
        if sample.is_empty() {
            return None;
        }
        let count = sample.len() as f64;
        let mean = sample.iter().sum::<f64>() / count;
        let squares = sample.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        let mut sorted = sample.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Self {
            mean,
            deviation,
            standard_error: deviation / count.sqrt(),
            min: sorted[0],
            max: sorted[sorted.len() - 1],
            percentiles: PERCENTILES.map(|percent| percentile(&sorted, f64::from(percent) / 100.0)),
        })
    }
}

impl RunsSummary {
    /// The summary of all runs, in the order of their numbers; `None` if there are none.
    pub fn of(outcomes: &[JobOutcome]) -> Option<Self> {
        let estimate = |value: &dyn Fn(&JobOutcome) -> f64| {
            let sample: Vec<f64> = outcomes.iter().map(value).collect();
            Estimate::of(&sample)
        };
        let names = outcomes.first()?.lost.by_cause().map(|(name, _)| name);
        let lost = names.into_iter().enumerate().map(|(index, name)| {
            let estimate = estimate(&|outcome| outcome.lost.by_cause()[index].1 as f64)?;
            Some((name, estimate))
        });
        Some(Self {
            runs: outcomes.len(),
            elapsed: estimate(&|outcome| outcome.elapsed.as_nanos() as f64)?,
            useful: estimate(&|outcome| outcome.useful.as_nanos() as f64)?,
            useful_fraction: estimate(&JobOutcome::useful_fraction)?,
            failures: estimate(&|outcome| outcome.failures_counted as f64)?,
            lost: lost.collect::<Option<Vec<_>>>()?,
        })
    }
}

/// The value below which a share of the sorted sample lies.
fn percentile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_knows_its_error_and_its_percentiles() {
        let sample: Vec<f64> = (0..=100).map(f64::from).collect();
        let estimate = Estimate::of(&sample).unwrap();
        assert!((estimate.mean - 50.0).abs() < 1e-12);
        assert!((estimate.deviation - 29.300_170_647_967_224).abs() < 1e-9);
        assert!((estimate.standard_error - estimate.deviation / 101_f64.sqrt()).abs() < 1e-12);
        for (got, percent) in estimate.percentiles.iter().zip(PERCENTILES) {
            assert!((got - f64::from(percent)).abs() < 1e-12);
        }
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[3.0]).unwrap().standard_error.to_bits(), 0.0_f64.to_bits());
    }
}
