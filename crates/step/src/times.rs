//! From what each rank counted while it ran to the times of the whole step.

use pipestep_engine::{Duration, Interval, Time};

use crate::{Inputs, Times, UpdateAfter};

/// What one rank counts while it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    busy: u64,
    first_start: u64,
    last_end: u64,
}

impl Tally {
    /// Nothing has run; the rank is free from `setup` on.
    pub(crate) const fn new(setup: u64) -> Self {
        Self { busy: 0, first_start: u64::MAX, last_end: setup }
    }

    /// When the last operation ended.
    pub(crate) const fn last_end(self) -> u64 {
        self.last_end
    }

    /// What a rank counted elsewhere. Without any operation, `first_start` is past every instant.
    pub(crate) const fn of(busy: u64, first_start: u64, last_end: u64) -> Self {
        Self { busy, first_start, last_end }
    }

    /// An operation, or a pair that runs as one. Operations of a rank come in order.
    #[inline]
    pub(crate) fn run(&mut self, start: u64, end: u64) {
        self.busy += end - start;
        self.first_start = self.first_start.min(start);
        self.last_end = end;
    }
}

impl Times {
    /// The times of a step whose ranks counted `tallies`: updates follow the rule of the inputs.
    pub(crate) fn new(inputs: &Inputs, tallies: impl Iterator<Item = Tally>) -> Self {
        let setup = inputs.costs().setup;
        let mut busy = Vec::with_capacity(inputs.shape().ranks());
        let mut active = Vec::with_capacity(inputs.shape().ranks());
        for tally in tallies {
            let end = Time::from_nanos(tally.last_end);
            busy.push(Duration::from_nanos(tally.busy));
            active.push(Interval { start: Time::from_nanos(tally.first_start).min(end), end });
        }
        let gradient_ready = active.iter().map(|active| active.end).max().unwrap_or(Time::ZERO);
        let update = |(active, cost): (&Interval, &crate::RankCost)| {
            let start = match inputs.update_after {
                UpdateAfter::All => gradient_ready,
                UpdateAfter::Own => active.end,
            };
            Interval { start, end: later(start, cost.update) }
        };
        let updates: Vec<Interval> = active.iter().zip(&inputs.costs().ranks).map(update).collect();
        let makespan =
            updates.iter().map(|update| update.end).max().unwrap_or(gradient_ready).max(gradient_ready);
        Self { makespan, gradient_ready, setup, busy, active, updates }
    }
}

fn later(start: Time, length: Duration) -> Time {
    start.after(length).expect("Inputs::new keeps the sum of all times below 2^63 ns")
}
