//! Packs, one after another: what is in each, and where packing goes on after a failure.

use std::collections::VecDeque;

use pipestep_engine::{Bytes, Duration, Streams};
use rand_chacha::ChaCha12Rng;

use crate::input::{PackPoint, PackTotals};
use crate::packing::{Packing, Rest, Sample, Samples};

/// Words of randomness set aside for the length of a sample, so that any sample can be drawn at any time.
const WORDS: u128 = 64;

/// What one pack takes to make.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pack {
    /// Bytes read for it.
    pub(super) stored: u64,
    /// A worker's time for its samples.
    pub(super) cpu: u64,
}

/// The packing of a job's samples.
#[derive(Debug)]
pub(super) struct Packer<'a> {
    packing: &'a Packing,
    rng: ChaCha12Rng,
    /// Where the next pack begins.
    next: PackPoint,
    /// Where the packs after each of those begin that were handed out and not trained on.
    ahead: VecDeque<PackPoint>,
    /// Where the first pack begins that has not been trained on.
    trained: PackPoint,
}

impl<'a> Packer<'a> {
    pub(super) fn new(packing: &'a Packing, streams: Streams, run_number: u64) -> Self {
        Self {
            packing,
            rng: streams.stream("sample lengths", run_number),
            next: PackPoint::default(),
            ahead: VecDeque::new(),
            trained: PackPoint::default(),
        }
    }

    /// Where a checkpoint taken now lets packing go on.
    pub(super) const fn trained(&self) -> PackPoint {
        self.trained
    }

    /// So many packs have been trained on.
    pub(super) fn count_trained(&mut self, packs: u32) {
        for _ in 0..packs {
            if let Some(point) = self.ahead.pop_front() {
                self.trained = point;
            }
        }
    }

    /// A failure goes back to this point.
    pub(super) fn restore(&mut self, point: PackPoint) {
        (self.next, self.trained) = (point, point);
        self.ahead.clear();
    }

    /// The next pack.
    pub(super) fn pack(&mut self, totals: &mut PackTotals) -> Pack {
        let mut pack = Pack::default();
        let mut room = self.packing.tokens;
        totals.slots += room;
        while room > 0 {
            let sample = self.sample(self.next.sample);
            let left = sample.tokens - self.next.offset;
            if left > room && self.packing.rest == Rest::Padded {
                break;
            }
            if self.next.offset == 0 {
                // What is cut off later has been read and prepared with the rest.
                pack.stored = pack.stored.saturating_add(sample.stored.get());
                pack.cpu = pack.cpu.saturating_add(sample.cpu.as_nanos());
                totals.samples += 1;
            }
            let taken = left.min(room);
            totals.tokens += taken;
            room -= taken;
            self.next = if taken == left {
                PackPoint { sample: self.next.sample + 1, offset: 0 }
            } else {
                PackPoint { offset: self.next.offset + taken, ..self.next }
            };
        }
        self.ahead.push_back(self.next);
        pack
    }

    fn sample(&mut self, number: u64) -> Sample {
        match &self.packing.samples {
            Samples::Listed(samples) => samples[(number % samples.len() as u64) as usize],
            Samples::Drawn { lengths, stored, cpu } => {
                self.rng.set_word_pos(u128::from(number) * WORDS);
                let tokens =
                    lengths.draw(&mut self.rng).round().clamp(1.0, self.packing.tokens as f64) as u64;
                let stored = Bytes::new(stored.get().saturating_mul(tokens));
                Sample { tokens, stored, cpu: *cpu }
            }
        }
    }

    /// The state of packing but for how often the list of samples has been gone through; `None` if samples never
    /// come again.
    pub(super) fn state(&self) -> Option<Vec<(u64, u64)>> {
        let Samples::Listed(samples) = &self.packing.samples else { return None };
        let turn = samples.len() as u64;
        let points = [self.next, self.trained].into_iter().chain(self.ahead.iter().copied());
        // How far each point lies behind the next one, and where that is in the list.
        let behind = points.map(|point| (self.next.sample - point.sample, point.offset));
        Some(std::iter::once((self.next.sample % turn, 0)).chain(behind).collect())
    }

    /// Samples handed out so far, first and again.
    pub(super) const fn position(&self) -> u64 {
        self.next.sample
    }

    /// Everything stands so many samples further in the data set.
    pub(super) fn move_on(&mut self, samples: u64) {
        let points = [&mut self.next, &mut self.trained].into_iter().chain(&mut self.ahead);
        for point in points {
            point.sample += samples;
        }
    }
}

impl Pack {
    pub(super) fn and(self, other: Self) -> Self {
        Self { stored: self.stored.saturating_add(other.stored), cpu: self.cpu.saturating_add(other.cpu) }
    }

    /// A worker's time for its samples.
    pub(super) const fn cpu_time(self) -> Duration {
        Duration::from_nanos(self.cpu)
    }
}
