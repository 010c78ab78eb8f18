//! How far the work has come, exactly.
//!
//! Work is counted in units so fine that an integer number of them is done in every nanosecond at every
//! speed: a nanosecond of useful work is the least common multiple of the factors' numerators. So a slow
//! window costs no rounding, and an instant at which work reaches a mark is only rounded up to the
//! nanosecond when it becomes an event; what is done beyond the mark until then is kept, not lost.

use pipestep_engine::{Duration, Time};

use crate::ratio::gcd;
use crate::{InputError, Ratio};

/// The least unit of work, and how much of it a speed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Units {
    /// Units in a nanosecond of useful work.
    per_nano: u64,
}

impl Units {
    /// Units in which work at each of these factors is whole.
    pub(crate) fn for_factors(
        factors: impl Iterator<Item = Ratio>,
        resolution: u64,
    ) -> Result<Self, InputError> {
        let mut per_nano = resolution;
        for factor in factors {
            let numerator = factor.numerator();
            per_nano = (per_nano / gcd(per_nano, numerator))
                .checked_mul(numerator)
                .filter(|&units| units <= 1 << 63)
                .ok_or(InputError::FactorsTooFine)?;
        }
        Ok(Self { per_nano })
    }

    /// A length of useful work in units.
    pub(crate) fn of(self, work: Duration) -> u128 {
        u128::from(work.as_nanos()) * u128::from(self.per_nano)
    }

    /// Units back in nanoseconds, to the nearest.
    pub(crate) fn nanos(self, units: u128) -> Duration {
        let per_nano = u128::from(self.per_nano);
        Duration::from_nanos(((units + per_nano / 2) / per_nano) as u64)
    }

    /// Units done in a nanosecond when work takes `factor` times as long; exact for the factors that the
    /// units were made for.
    pub(crate) fn speed(self, factor: Ratio) -> u128 {
        u128::from(self.per_nano) * u128::from(factor.denominator()) / u128::from(factor.numerator())
    }
}

/// The work done, first and again.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    pub(crate) units: Units,
    /// Where the job is; a failure moves it back.
    position: u128,
    /// The furthest it has been.
    furthest: u128,
    /// Where the work is done.
    end: u128,
    /// Work done again.
    redone: u128,
    /// Units a nanosecond while training.
    speed: u128,
    /// Units a nanosecond that are done and then thrown away.
    waste: u128,
    /// Work thrown away.
    wasted: u128,
    /// Replicas that are missing, of so many.
    missing: (u32, u32),
    /// Wall time in training times the replicas that were missing.
    absent: u128,
    /// Wall time in training with some of them missing.
    short: u64,
    /// Wall time in training.
    training: u64,
    /// Until when training has been counted; `None` while it stands still.
    since: Option<Time>,
}

impl Progress {
    /// Nothing done, standing still.
    pub(crate) fn new(units: Units, work: Option<Duration>) -> Self {
        Self {
            units,
            position: 0,
            furthest: 0,
            end: work.map_or(u128::MAX, |work| units.of(work)),
            redone: 0,
            speed: units.speed(Ratio::ONE),
            waste: 0,
            wasted: 0,
            missing: (0, 1),
            absent: 0,
            short: 0,
            training: 0,
            since: None,
        }
    }

    /// Counts the work until `now`; to be called before anything that depends on it or changes it.
    pub(crate) fn settle(&mut self, now: Time) {
        let Some(since) = self.since else { return };
        let elapsed = now.since(since).as_nanos();
        self.since = Some(now);
        self.training += elapsed;
        self.wasted += u128::from(elapsed) * self.waste;
        let (missing, _) = self.missing;
        self.absent += u128::from(elapsed) * u128::from(missing);
        self.short += if missing > 0 { elapsed } else { 0 };
        self.snap((self.position + u128::from(elapsed) * self.speed).min(self.end));
    }

    /// Goes on to `reached`: the end of a step, from which the speed is off by less than a unit.
    pub(crate) fn snap(&mut self, reached: u128) {
        let reached = reached.min(self.end).max(self.position);
        self.redone += reached.min(self.furthest).saturating_sub(self.position);
        self.position = reached;
        self.furthest = self.furthest.max(reached);
    }

    pub(crate) fn start(&mut self, now: Time) {
        self.since = Some(now);
    }

    pub(crate) fn stop(&mut self) {
        self.since = None;
    }

    /// From now on work takes `factor` times as long.
    pub(crate) fn set_factor(&mut self, factor: Ratio) {
        self.speed = self.units.speed(factor);
    }

    /// From now on so many replicas of `of` are missing. The speed is not changed by this, but what of it is lost
    /// to them is counted.
    pub(crate) fn set_missing(&mut self, missing: u32, of: u32) {
        self.missing = (missing, of.max(1));
    }

    /// From now on so many units are done in a nanosecond, and so many thrown away.
    pub(crate) fn set_speed(&mut self, speed: u128, waste: u128) {
        (self.speed, self.waste) = (speed, waste);
    }

    /// What has been counted so far.
    pub(crate) const fn counters(&self) -> Counters {
        Counters {
            position: self.position,
            wasted: self.wasted,
            absent: self.absent,
            short: self.short,
            training: self.training,
        }
    }

    /// What was done since `then` is done so many times more, until `at`.
    pub(crate) fn repeat(&mut self, then: &Counters, times: u64, at: Time) {
        let wide = u128::from(times);
        self.wasted += (self.wasted - then.wasted) * wide;
        self.absent += (self.absent - then.absent) * wide;
        self.short += (self.short - then.short) * times;
        self.training += (self.training - then.training) * times;
        self.snap(self.position + (self.position - then.position) * wide);
        self.since = Some(at);
    }

    /// Goes back (or on) to a state with this much work in it.
    pub(crate) fn restore(&mut self, position: u128) {
        self.position = position;
    }

    pub(crate) const fn position(&self) -> u128 {
        self.position
    }

    pub(crate) const fn end(&self) -> u128 {
        self.end
    }

    pub(crate) const fn is_done(&self) -> bool {
        self.position >= self.end
    }

    /// Nanoseconds until `mark`, rounded up; `None` past the end of time.
    pub(crate) fn time_to(&self, mark: u128) -> Option<Duration> {
        let left = mark.saturating_sub(self.position);
        let nanos = left.div_ceil(self.speed);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    /// The time in training by what came of it; the parts are exactly the whole.
    pub(crate) fn totals(&self) -> Totals {
        let useful = self.units.nanos(self.furthest);
        let redo = self.units.nanos(self.redone);
        let dropped = self.units.nanos(self.wasted);
        let of = u128::from(self.missing.1);
        let fewer_replicas = Duration::from_nanos(((self.absent + of / 2) / of) as u64);
        let parts = [useful, redo, dropped, fewer_replicas];
        let work: u64 = parts.iter().map(|part| part.as_nanos()).sum();
        Totals {
            useful,
            redo,
            dropped,
            fewer_replicas,
            short: Duration::from_nanos(self.short),
            straggler_nanos: (i128::from(self.training) - i128::from(work)) as i64,
        }
    }
}

/// What had been counted at some instant, for [`Progress::repeat`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    position: u128,
    wasted: u128,
    absent: u128,
    short: u64,
    training: u64,
}

impl Counters {
    pub(crate) const fn position(&self) -> u128 {
        self.position
    }
}

/// The time in training, by what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) useful: Duration,
    pub(crate) redo: Duration,
    /// Work thrown away.
    pub(crate) dropped: Duration,
    /// What replicas that were missing would have done.
    pub(crate) fewer_replicas: Duration,
    /// Wall time in training with some of them missing.
    pub(crate) short: Duration,
    /// What stragglers added; negative where jitter made steps shorter than they are without it.
    pub(crate) straggler_nanos: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn work_in_a_slow_window_is_exact() {
        let slow = Ratio::new(5, 4).unwrap();
        let units = Units::for_factors([slow].into_iter(), 1).unwrap();
        let mut progress = Progress::new(units, Some(Duration::from_nanos(1_000)));
        progress.set_factor(slow);
        progress.start(at(0));
        progress.settle(at(7));
        assert_eq!(progress.time_to(units.of(Duration::from_nanos(100))), Some(Duration::from_nanos(118)));
        progress.settle(at(125));
        assert_eq!(progress.position(), units.of(Duration::from_nanos(100)));
        assert_eq!(
            progress.totals(),
            Totals {
                useful: Duration::from_nanos(100),
                redo: Duration::ZERO,
                dropped: Duration::ZERO,
                fewer_replicas: Duration::ZERO,
                short: Duration::ZERO,
                straggler_nanos: 25
            }
        );
    }

    #[test]
    fn work_done_again_counts_as_redo_up_to_where_the_job_had_been() {
        let units = Units::for_factors(std::iter::empty(), 1).unwrap();
        let mut progress = Progress::new(units, None);
        progress.start(at(0));
        progress.settle(at(100));
        progress.restore(60);
        progress.settle(at(170));
        let totals = progress.totals();
        assert_eq!((totals.useful.as_nanos(), totals.redo.as_nanos(), totals.straggler_nanos), (130, 40, 0));
    }

    #[test]
    fn factors_without_a_common_unit_are_refused() {
        let primes = [1_000_000_007, 998_244_353, 1_000_000_009].map(|p| Ratio::new(p, 2).unwrap());
        assert_eq!(Units::for_factors(primes.into_iter(), 1), Err(InputError::FactorsTooFine));
    }
}
