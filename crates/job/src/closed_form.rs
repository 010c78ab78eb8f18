//! Closed forms to print beside a simulation, as checks and named as such: no result is ever taken from here.
//!
//! Times are seconds as floats; a mean time between failures is that of the whole job. Useful intervals are
//! seconds of useful work between two saves.

/// Young's interval, sqrt(2 c μ) (Young 1974): first order, good while the save cost is far below the MTBF.
pub fn young_interval(save_cost: f64, mtbf: f64) -> f64 {
    (2.0 * save_cost * mtbf).sqrt()
}

/// Daly's higher-order interval (Daly 2006, eq. 37); the MTBF itself where a save takes twice that or longer.
pub fn daly_interval(save_cost: f64, mtbf: f64) -> f64 {
    let ratio = save_cost / (2.0 * mtbf);
    if ratio >= 1.0 {
        return mtbf;
    }
    young_interval(save_cost, mtbf) * (1.0 + ratio.sqrt() / 3.0 + ratio / 9.0) - save_cost
}

/// The interval that is best for exponential failures and synchronous saves, exactly: y μ with
/// y − 1 + exp(−y − c/μ) = 0 (the Lambert-W form), solved by Newton's method from above.
pub fn exact_interval(save_cost: f64, mtbf: f64) -> f64 {
    let cost = save_cost / mtbf;
    // The left side is convex and increasing for y + cost > 0 and positive at 1, so Newton from 1 falls
    // onto the root monotonically.
    let mut y = 1.0_f64;
    for _ in 0..200 {
        let decay = (-y - cost).exp();
        // For small y the plain form cancels: y − 1 + e^−x = (y − x) + (x − 1 + e^−x) with x = y + cost.
        let value = small_remainder(y + cost) - cost;
        let next = y - value / (1.0 - decay);
        if (next - y).abs() <= 1e-15 * y.abs() {
            return next * mtbf;
        }
        y = next;
    }
    y * mtbf
}

/// x − 1 + exp(−x) without cancellation for small x.
fn small_remainder(x: f64) -> f64 {
    if x.abs() > 1e-3 {
        return x + (-x).exp_m1();
    }
    x * x * (0.5 - x * (1.0 / 6.0 - x * (1.0 / 24.0 - x / 120.0)))
}

/// How a job with exponential failures and synchronous saves behaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Poisson {
    /// Mean time between failures of the job.
    pub mtbf: f64,
    /// Useful seconds between saves.
    pub interval: f64,
    /// How long a save pauses training.
    pub save_cost: f64,
    /// Seconds after a failure in which no failure counts.
    pub downtime: f64,
    /// Seconds after that in which a failure starts both again.
    pub exposed_recovery: f64,
}

impl Poisson {
    /// Expected wall time of one interval and its save, retries included:
    /// (exp(λ(τ + c)) − 1) (1/λ + D) exp(λR).
    pub fn segment_time(&self) -> f64 {
        let rate = 1.0 / self.mtbf;
        let attempt = (rate * (self.interval + self.save_cost)).exp_m1();
        attempt * (self.mtbf + self.downtime) * (rate * self.exposed_recovery).exp()
    }

    /// Useful time over wall time.
    pub fn useful_fraction(&self) -> f64 {
        self.interval / self.segment_time()
    }

    /// The probability that one attempt at an interval and its save fails.
    pub fn attempt_failure_probability(&self) -> f64 {
        -(-(self.interval + self.save_cost) / self.mtbf).exp_m1()
    }

    /// Time added per useful second to first order: c/τ + τ/2μ + r/μ, as its three parts.
    pub fn first_order_loss(&self) -> FirstOrder {
        FirstOrder {
            save: self.save_cost / self.interval,
            redo: self.interval / (2.0 * self.mtbf),
            recovery: (self.downtime + self.exposed_recovery) / self.mtbf,
        }
    }
}

/// The first-order loss, by its parts: time added per useful second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstOrder {
    /// Saves.
    pub save: f64,
    /// Work done again: half an interval for each failure.
    pub redo: f64,
    /// Downtime and recovery.
    pub recovery: f64,
}

impl FirstOrder {
    /// The sum.
    pub fn total(&self) -> f64 {
        self.save + self.redo + self.recovery
    }

    /// Useful time over wall time to first order: 1 / (1 + loss).
    pub fn useful_fraction(&self) -> f64 {
        1.0 / (1.0 + self.total())
    }
}

/// The simple rule: loss = (MTTR + redo) / MTBF. It leaves out what the saves themselves cost, failures
/// during recovery and redo, and everything beyond first order; it can leave 0..=1.
pub fn simple_rule_loss(mttr: f64, redo: f64, mtbf: f64) -> f64 {
    (mttr + redo) / mtbf
}

/// Expected effective training time ratio by eq. 2 of Kokolis et al. (HPCA 2025) for a long job with
/// synchronous saves: (1 − (u + τ/2)/μ) / (1 + w/τ), with restart time u and save cost w.
pub fn kokolis_ettr(mtbf: f64, restart: f64, interval: f64, save_cost: f64) -> f64 {
    (1.0 - (restart + interval / 2.0) / mtbf) / (1.0 + save_cost / interval)
}

/// Useful fraction with asynchronous saves under exponential failures: captures after `interval` useful
/// seconds, a pause of `staging`, one writer that takes `write`, and `recovery` seconds in which no failure
/// counts. A writer slower than the period never drains its queue between failures.
pub fn async_useful_fraction(mtbf: f64, interval: f64, staging: f64, write: f64, recovery: f64) -> f64 {
    let (rate, period) = (1.0 / mtbf, interval + staging);
    // The k-th commit comes after lag + k spacings.
    let (lag, spacing) = if write <= period { (write, period) } else { (period, write) };
    let saved = interval * (-rate * lag).exp() / (rate * spacing).exp_m1();
    saved / (mtbf + recovery)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exact_interval_is_the_minimum_of_the_segment_cost() {
        for (cost, mtbf) in [(16.4, 28_440.0), (0.001, 1e7), (600.0, 600.0), (5_000.0, 100.0)] {
            let best = exact_interval(cost, mtbf);
            let fraction = |interval: f64| {
                Poisson { mtbf, interval, save_cost: cost, downtime: 0.0, exposed_recovery: 0.0 }
                    .useful_fraction()
            };
            assert!(fraction(best) >= fraction(best * 1.01) && fraction(best) >= fraction(best * 0.99));
        }
    }

    #[test]
    fn daly_falls_back_to_the_mtbf_when_a_save_takes_longer_than_two() {
        assert!((daly_interval(300.0, 100.0) - 100.0).abs() < 1e-12);
    }
}
