//! Slow windows: when the speed of useful work changes.

use pipestep_engine::{Class, EventQueue, Time};

use super::{Event, JobWorld, Queue};

use crate::outcome::Activity;
use crate::stragglers::SlowWindow;
use crate::{JobError, Ratio};

/// The instants at which the factor changes, in order, and how far the run has come.
#[derive(Clone, Debug)]
pub(super) struct Windows {
    changes: Vec<(Time, Ratio)>,
    next: usize,
}

impl Windows {
    /// Where several windows overlap, the largest factor counts.
    pub(super) fn new(windows: &[SlowWindow]) -> Self {
        let mut edges: Vec<Time> = windows.iter().flat_map(|window| [window.from, window.to]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut opening: Vec<&SlowWindow> = windows.iter().collect();
        opening.sort_by_key(|window| window.from);
        let mut opening = opening.into_iter().peekable();
        let mut open: Vec<&SlowWindow> = Vec::new();
        let mut changes: Vec<(Time, Ratio)> = Vec::new();
        for edge in edges {
            open.retain(|window| window.to > edge);
            while let Some(window) = opening.next_if(|window| window.from <= edge) {
                open.push(window);
            }
            let factor = open.iter().map(|window| window.factor).max().unwrap_or(Ratio::ONE);
            if changes.last().map_or(Ratio::ONE, |&(_, last)| last) != factor {
                changes.push((edge, factor));
            }
        }
        Self { changes, next: 0 }
    }

    /// How many times as long work takes now.
    pub(super) fn factor(&self) -> Ratio {
        match self.next.checked_sub(1) {
            Some(current) => self.changes[current].1,
            None => Ratio::ONE,
        }
    }

    pub(super) fn schedule_next(&self, queue: &mut Queue) {
        if let Some(&(at, _)) = self.changes.get(self.next) {
            queue.schedule(at, Class(0), Event::SpeedChange);
        }
    }
}

impl JobWorld<'_> {
    pub(super) fn change_speed(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let training = self.activity == Activity::Training;
        if training {
            self.pause_step(now, queue);
        }
        self.windows.next += 1;
        self.windows.schedule_next(queue);
        if self.stepping.is_none() {
            self.progress.set_factor(self.slowness());
        } else if training {
            self.run_step(now, queue);
        }
        if training {
            self.plan_work(now, queue)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_of_overlapping_factors_counts() {
        let window = |from, to, tenths| SlowWindow {
            from: Time::from_nanos(from),
            to: Time::from_nanos(to),
            factor: Ratio::new(tenths, 10).unwrap(),
        };
        let windows =
            Windows::new(&[window(10, 50, 12), window(20, 30, 15), window(30, 40, 11), window(60, 70, 10)]);
        let changes: Vec<(u64, f64)> =
            windows.changes.iter().map(|(at, factor)| (at.as_nanos(), factor.as_f64())).collect();
        assert_eq!(changes, [(10, 1.2), (20, 1.5), (30, 1.2), (50, 1.0)]);
    }
}
