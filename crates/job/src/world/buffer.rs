//! How full the input buffer was over time, in bounded memory however long the job.

use pipestep_engine::Time;

use crate::outcome::{BufferLevel, Detail};

/// Stretches that are kept apart; a picture has fewer points.
const STRETCHES: usize = 2_048;

/// The curve of a buffer: stretches of equal length, which doubles when the run outgrows them.
#[derive(Debug)]
pub(super) struct BufferCurve {
    keep: bool,
    width: u64,
    stretches: Vec<Stretch>,
    /// Since when which level holds.
    now: (u64, u64),
    /// What the level went through since the mark: lowest, highest, items times nanoseconds.
    since_mark: Stretch,
}

#[derive(Clone, Copy, Debug)]
struct Stretch {
    low: u64,
    high: u64,
    /// Items times nanoseconds.
    area: u128,
    length: u64,
}

impl BufferCurve {
    pub(super) fn new(detail: Detail) -> Self {
        let keep = detail == Detail::Full;
        Self { keep, width: 1, stretches: Vec::new(), now: (0, 0), since_mark: Stretch::EMPTY }
    }

    /// The level changes.
    pub(super) fn level(&mut self, at: Time, level: u64) {
        if self.keep {
            let (since, old) = self.now;
            self.add((since, at.as_nanos()), (old, old), |from, to| u128::from(old) * u128::from(to - from));
            self.now = (at.as_nanos(), level);
            // A level that holds for no time is seen all the same.
            self.add((at.as_nanos(), at.as_nanos()), (level, level), |_, _| 0);
        }
    }

    /// From the last change on the level goes evenly to `level` at `to`.
    pub(super) fn ramp(&mut self, to: Time, level: u64) {
        let ((since, old), to) = (self.now, to.as_nanos());
        if !self.keep || to <= since {
            return;
        }
        let at = |nanos: u64| {
            let share = (nanos - since) as f64 / (to - since) as f64;
            old as f64 + share * (level as f64 - old as f64)
        };
        let ends = (old.min(level), old.max(level));
        self.add((since, to), ends, |from, to| {
            (f64::midpoint(at(from), at(to)) * (to - from) as f64) as u128
        });
        self.now = (to, level);
    }

    /// What the level goes through from now on may come again.
    pub(super) fn mark(&mut self, now: Time) {
        if self.keep {
            self.level(now, self.now.1);
            self.since_mark = Stretch { low: self.now.1, high: self.now.1, ..Stretch::EMPTY };
        }
    }

    /// Until `to` the level goes again and again through what it went through since the mark.
    pub(super) fn repeat(&mut self, now: Time, to: Time) {
        if !self.keep {
            return;
        }
        self.level(now, self.now.1);
        let turn = self.since_mark;
        let mean = turn.area as f64 / turn.length.max(1) as f64;
        let ends = (now.as_nanos(), to.as_nanos());
        self.add(ends, (turn.low, turn.high), |from, to| (mean * (to - from) as f64) as u128);
        self.now.0 = to.as_nanos();
    }

    fn add(&mut self, (from, to): (u64, u64), (low, high): (u64, u64), area: impl Fn(u64, u64) -> u128) {
        while to / self.width >= STRETCHES as u64 {
            self.double();
        }
        let mut at = from;
        loop {
            let place = (at / self.width) as usize;
            let end = to.min((place as u64 + 1) * self.width);
            let part = Stretch { low, high, area: area(at, end), length: end - at };
            self.since_mark = self.since_mark.and(part);
            self.put(place, part);
            if end >= to {
                return;
            }
            at = end;
        }
    }

    fn put(&mut self, place: usize, part: Stretch) {
        if self.stretches.len() <= place {
            self.stretches.resize(place + 1, Stretch::EMPTY);
        }
        self.stretches[place] = self.stretches[place].and(part);
    }

    fn double(&mut self) {
        self.width *= 2;
        let pairs = self.stretches.chunks(2);
        self.stretches =
            pairs.map(|pair| pair.iter().fold(Stretch::EMPTY, |sum, &one| sum.and(one))).collect();
    }

    /// The curve up to the end of the run.
    pub(super) fn finish(mut self, end: Time) -> Vec<BufferLevel> {
        if !self.keep {
            return Vec::new();
        }
        let level = self.now.1;
        self.level(end, level);
        let width = self.width;
        let levels = self.stretches.iter().enumerate().filter(|(_, stretch)| stretch.low <= stretch.high);
        let level = |(place, stretch): (usize, &Stretch)| {
            let from = place as u64 * width;
            BufferLevel {
                from: Time::from_nanos(from),
                to: Time::from_nanos((from + width).min(end.as_nanos())),
                low: stretch.low,
                high: stretch.high,
                mean: match stretch.length {
                    0 => stretch.low as f64,
                    length => stretch.area as f64 / length as f64,
                },
            }
        };
        levels.map(level).collect()
    }
}

impl Stretch {
    /// Nothing: no level has been seen.
    const EMPTY: Self = Self { low: u64::MAX, high: 0, area: 0, length: 0 };

    fn and(self, other: Self) -> Self {
        Self {
            low: self.low.min(other.low),
            high: self.high.max(other.high),
            area: self.area + other.area,
            length: self.length + other.length,
        }
    }
}
