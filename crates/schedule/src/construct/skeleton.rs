//! Skeletons from building blocks: one micro-batch's passes get nominal times, every further micro-batch the
//! same times one period later, and each rank's order is the order of these times.
//!
//! The idea is that of "Pipeline Parallelism with Controllable Memory" (Qi et al. 2024, arXiv:2405.15362),
//! section 3; delays take the place of its offsets, so that stages and messages may have any lengths.

use super::squeeze::Slot;
use super::table::Table;

/// How long the passes of a micro-batch are held up on their way, in units of `Table::unit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delays {
    /// Before each forward on another rank than the one before, by turn of the model around the ranks.
    pub(super) forward: Vec<u64>,
    /// The same for gradient passes, by the turn of the stage that runs.
    pub(super) backward: Vec<u64>,
    /// Where the way turns on one rank: before each first forward of a turn (but the first), then between the
    /// last forward and the first gradient pass, then before each last-stage gradient pass of a turn.
    pub(super) turns: Vec<u64>,
}

/// Nominal times of one micro-batch: by rank and slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) times: Vec<Vec<u64>>,
    pub(super) period: u64,
}

impl Block {
    /// The block of a table with these delays. A packed one also delays each pass until its rank's time, taken
    /// modulo the period, is free: then the repeated block never has two passes at once.
    pub(super) fn new(table: &Table, delays: &Delays, packed: bool) -> Self {
        let (unit, ranks, period) = (table.unit(), table.ranks(), table.period());
        let mut times: Vec<Vec<u64>> = table.chunks.iter().map(|chunks| vec![0; 2 * chunks.len()]).collect();
        let mut taken: Vec<Vec<(u64, u64)>> = vec![Vec::new(); ranks];
        let mut put = |rank: usize, now: u64, length: u64| {
            if !packed {
                return now;
            }
            let now = free(&taken[rank], now, length, period);
            taken[rank].push((now % period, length));
            now
        };
        let mut now = 0;
        for (stage, place) in table.places.iter().enumerate() {
            let length = table.chunks[place.rank][place.chunk].forward.max(1);
            now = put(place.rank, now, length);
            times[place.rank][2 * place.chunk] = now;
            now += length + place.activation;
            if stage + 1 < table.stages() {
                let turn = (stage + 1) / ranks;
                let turns = (stage + 1).is_multiple_of(ranks);
                now += unit * if turns { delays.turns[turn - 1] } else { delays.forward[turn] };
            }
        }
        let last_turn = (table.stages() - 1) / ranks;
        now += unit * delays.turns[last_turn];
        for (stage, place) in table.places.iter().enumerate().rev() {
            let length = table.chunks[place.rank][place.chunk].backward.max(1);
            now = put(place.rank, now, length);
            times[place.rank][2 * place.chunk + 1] = now;
            now += length + place.gradient;
            if stage > 0 {
                let turn = (stage - 1) / ranks;
                let turns = stage.is_multiple_of(ranks);
                now += unit * if turns { delays.turns[2 * last_turn - turn] } else { delays.backward[turn] };
            }
        }
        Self { times, period }
    }

    /// The block for one chunk a rank in which each rank runs so many forwards before its first gradient pass, and
    /// then one of each in turn.
    pub(super) fn alternating(warm_up: &[u64]) -> Self {
        Self { times: warm_up.iter().map(|&forwards| vec![0, 2 * forwards - 1]).collect(), period: 2 }
    }

    /// The same block, repeated as fast as the limit allows but no faster than the busiest rank works; `None` if
    /// even one micro-batch at a time is too much.
    pub(super) fn slowed(mut self, table: &Table, limit: &[i64]) -> Option<Self> {
        let step = (table.unit() / 2).max(1);
        let longest = self.times.iter().flatten().max().copied().unwrap_or(0) + 1;
        while !self.fits(table, limit) {
            if self.period > longest {
                return None;
            }
            self.period += step.max(self.period / 16);
        }
        Some(self)
    }

    /// Each rank's order of slots for so many micro-batches.
    pub(super) fn skeleton(&self, micro_batches: usize) -> Vec<Vec<Slot>> {
        self.times.iter().map(|times| merge(times, self.period, micro_batches)).collect()
    }

    /// Whether the orders repeat within the limit when every `W` follows at once.
    pub(super) fn fits(&self, table: &Table, limit: &[i64]) -> bool {
        self.times.iter().enumerate().all(|(rank, times)| {
            let at = |slot: usize| {
                // Just after this slot of some micro-batch: those begun and not ended, per chunk.
                let in_flight = |chunk: usize| {
                    let begun = self.count(times[2 * chunk], times[slot], 2 * chunk <= slot);
                    let ended = self.count(times[2 * chunk + 1], times[slot], 2 * chunk < slot);
                    (begun - ended) * table.chunks[rank][chunk].saved
                };
                (0..times.len() / 2).map(in_flight).sum::<i64>()
            };
            (0..times.len()).step_by(2).all(|slot| at(slot) <= limit[rank])
        })
    }

    /// How many repetitions of an event at `time` lie before `now`, or at it if `inclusive`; up to a constant.
    fn count(&self, time: u64, now: u64, inclusive: bool) -> i64 {
        let difference = now as i64 - time as i64;
        (difference - i64::from(!inclusive)).div_euclid(self.period as i64)
    }
}

/// Merges the slots' repetitions in the order of their times; at one time the lower slot comes first.
fn merge(times: &[u64], period: u64, micro_batches: usize) -> Vec<Slot> {
    let mut next: Vec<u64> = times.to_vec();
    let mut left = vec![micro_batches; times.len()];
    let mut list = Vec::with_capacity(times.len() * micro_batches);
    for _ in 0..times.len() * micro_batches {
        let open = (0..times.len()).filter(|&slot| left[slot] > 0);
        let slot = open.min_by_key(|&slot| next[slot]).expect("some slot is left");
        list.push(slot as Slot);
        next[slot] += period;
        left[slot] -= 1;
    }
    list
}

/// The first time from `now` at which `length` is free in every repetition; `now` if there is none.
fn free(taken: &[(u64, u64)], now: u64, length: u64, period: u64) -> u64 {
    let clash = |start: u64| {
        // The end of a taken interval that overlaps, as a distance from `start`.
        taken.iter().find_map(|&(begin, long)| {
            let ahead = (begin + period - start % period) % period;
            let behind = (start % period + period - begin) % period;
            if behind < long {
                Some(long - behind)
            } else if ahead < length {
                Some(ahead + long)
            } else {
                None
            }
        })
    };
    let mut start = now;
    while let Some(by) = clash(start) {
        start += by;
        if start >= now + period {
            return now;
        }
    }
    start
}
