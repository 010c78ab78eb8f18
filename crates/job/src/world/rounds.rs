//! Rounds of the workers: while each starts its next delivery the moment it ends one, and all take the same time,
//! a round of them all is like the next, and only the last ones before anything else happens are followed.

use std::cmp::Reverse;

use pipestep_engine::{Bytes, Duration, Time};

use super::feeding::FeedState;
use super::{Event, JobWorld, Queue};
use crate::JobError;
use crate::outcome::Activity;

impl FeedState<'_> {
    /// How long a delivery takes from its start to the buffer, if that is always the same for now.
    fn fixed_delivery(&self) -> Result<Option<Duration>, JobError> {
        let input = self.input;
        let is_plain = self.is_regular() && self.reading.is_empty();
        let Some(make) = input.make.fixed().filter(|_| is_plain) else { return Ok(None) };
        let bytes = input.read.map_or(Bytes::ZERO, |read| read.bytes);
        let read = self.read_time(bytes, self.is_cached())?;
        Ok(read.map(|read| read.plus(make)).transpose()?)
    }

    /// Rounds that leave every worker going on at once and nobody else with anything to do.
    fn free_rounds(&self, now: Time, waits: bool) -> u64 {
        let input = self.input;
        let (each, workers) = (u64::from(input.delivery), self.making.len() as u64);
        let round = each * workers;
        // Each ends a delivery and begins another, unless there are more of them than may go on.
        if round == 0 || self.making.len() + self.stopped(now) > input.workers as usize {
            return 0;
        }
        // Before the last delivery is begun there are all the others of these rounds on the host.
        let mut rounds = (u64::from(input.prefetch) + each).saturating_sub(self.on_host() + 1) / round;
        // In the buffer they must not be enough for whoever waits for them.
        let in_use = self.on_device + u32::from(self.fed);
        let copies = input.copy.is_some_and(|copy| self.copying.is_none() && in_use < copy.slots);
        if copies || (waits && input.copy.is_none()) {
            let missing = u64::from(input.items_per_step).saturating_sub(self.buffered);
            rounds = rounds.min(missing.saturating_sub(1) / round);
        }
        match input.read.and_then(|read| read.cache) {
            Some(cache) if !self.is_cached() => {
                rounds.min((cache.epoch_items + each).saturating_sub(self.handed_out + 1) / round)
            }
            _ => rounds,
        }
    }
}

impl JobWorld<'_> {
    /// Passes over rounds of the workers, all but the last ones before anything else happens.
    pub(super) fn pass_rounds(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let (waits, skips) = (self.activity == Activity::InputWait, self.skips);
        let Some(feed) = self.feed.as_mut().filter(|feed| skips && feed.is_regular()) else {
            return Ok(());
        };
        let rounds = feed.free_rounds(now, waits);
        if rounds < 2 {
            return Ok(());
        }
        let Some(length) = feed.fixed_delivery()?.filter(|&length| length > Duration::ZERO) else {
            return Ok(());
        };
        let latest = feed.making.iter().map(|&Reverse((end, _))| end).max().unwrap_or(now);
        if latest.since(now) > length {
            // Some of them were begun when deliveries took longer.
            return Ok(());
        }
        let others = queue.pending().filter(|(_, _, event)| **event != Event::Delivery);
        let next = others.map(|(at, ..)| at).min();
        let rounds = match next {
            Some(next) if next <= latest => return Ok(()),
            // The last delivery of the last round ends before the next event.
            Some(next) => rounds.min((next.since(latest).as_nanos() - 1) / length.as_nanos() + 1),
            None => rounds,
        };
        let passed = length.times(rounds)?;
        let ends: Vec<(Time, u64)> = feed.making.drain().map(|Reverse(one)| one).collect();
        let items = rounds * ends.len() as u64 * u64::from(feed.input.delivery);
        feed.handed_out += items;
        feed.totals.handed_out += items;
        feed.buffered += items;
        for (end, number) in ends {
            // Of the numbers only the order matters, which is that of the workers' turns.
            feed.making.push(Reverse((end.after(passed)?, number)));
        }
        // The last delivery passed over ends a round before the last one under way.
        let last = latest.after(length.times(rounds - 1)?)?;
        feed.curve.ramp(last, feed.buffered);
        self.await_made(queue);
        Ok(())
    }
}
