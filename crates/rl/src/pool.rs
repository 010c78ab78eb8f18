//! A scoring pool: workers and a line of samples, first come, first served.
//!
//! One idea: a worker scores one sample at a time; which one is free does not matter to the result, so the
//! lowest is taken (a picture stays tidy). A pool that stops puts what it was scoring back at the head of the
//! line.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use pipestep_engine::Time;

use crate::meter::Meter;
use crate::response::Sample;

/// One pool at work.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    pub(crate) line: VecDeque<Sample>,
    /// What each worker scores, and since when.
    at_work: Vec<Option<(Sample, Time)>>,
    idle: BinaryHeap<Reverse<u32>>,
    pub(crate) busy: Meter,
    /// Why it stands still: how many stops are in force.
    pub(crate) stops: u32,
    /// Distinguishes services of now from those before the last stop.
    pub(crate) epoch: u32,
}

impl Pool {
    pub(crate) fn new(workers: u32) -> Self {
        Self {
            line: VecDeque::new(),
            at_work: vec![None; workers as usize],
            idle: (0..workers).map(Reverse).collect(),
            busy: Meter::default(),
            stops: 0,
            epoch: 0,
        }
    }

    /// The next sample and a free worker for it, if there are both.
    pub(crate) fn take(&mut self, now: Time) -> Option<(u32, Sample)> {
        if self.stops > 0 || self.line.is_empty() {
            return None;
        }
        let Reverse(worker) = self.idle.pop()?;
        let sample = self.line.pop_front()?;
        self.at_work[worker as usize] = Some((sample, now));
        self.busy.add(now, 1);
        Some((worker, sample))
    }

    /// A worker is done; `None` if the pool has stopped since it began.
    pub(crate) fn finish(&mut self, now: Time, worker: u32, epoch: u32) -> Option<(Sample, Time)> {
        if epoch != self.epoch {
            return None;
        }
        let done = self.at_work[worker as usize].take()?;
        self.idle.push(Reverse(worker));
        self.busy.sub(now, 1);
        Some(done)
    }

    /// Stops all work; what was being scored goes back to the head of the line.
    pub(crate) fn stop(&mut self, now: Time) {
        self.stops += 1;
        self.epoch += 1;
        let mut back = Vec::new();
        for (worker, slot) in self.at_work.iter_mut().enumerate() {
            if let Some((sample, since)) = slot.take() {
                back.push((since, sample));
                self.idle.push(Reverse(worker as u32));
            }
        }
        self.busy.sub(now, back.len() as u64);
        back.sort_unstable_by_key(|&(since, sample)| (since, sample.number));
        for (_, sample) in back.into_iter().rev() {
            self.line.push_front(sample);
        }
    }

    /// Samples in line and in work.
    pub(crate) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.line.iter().chain(self.at_work.iter().flatten().map(|(sample, _)| sample))
    }

    /// How many they are.
    pub(crate) fn holds(&self) -> u64 {
        self.line.len() as u64 + self.busy.level()
    }
}
