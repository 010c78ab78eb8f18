//! Exact fast-forward: where a step repeats itself, whole periods are skipped.
//!
//! With fixed lengths, all that happens from some instant on follows from when each rank and link is free, from the
//! inputs that are there and not used yet, and from the lists. So when a later state is an earlier one with every
//! instant moved by the same time, and the lists go on as they did between the two but for the numbers of their
//! micro-batches, then the same happens again, moved once more. How often it does is read off the lists, by comparing
//! every operation that is skipped with the one a period before; nothing is assumed of the schedule.
//!
//! Earlier states are kept at sweeps 128, 256, 512 and so on, so that a long way to the steady state is covered, and
//! the search costs next to nothing where there is none (R. P. Brent, An improved Monte Carlo factorization algorithm,
//! BIT 20, 1980, section 2).

use pipestep_schedule::{MicroBatch, Op, Orders, Rank};

use super::wave::{Skip, Wave};
use crate::rows::Rows;

/// The search for a period, with its memory kept from one run to the next.
#[derive(Clone, Debug, Default)]
pub(crate) struct Periods {
    counts: Counts,
    kept: State,
    now: State,
    sweeps: u64,
    /// At which sweep the next state is kept, and after which sweep none is.
    keep_at: u64,
    last: u64,
    /// How many operations were skipped.
    pub(crate) skipped: usize,
}

/// How many inputs are there and not used yet, by rank, counted over the operations that have run.
#[derive(Clone, Debug, Default)]
struct Counts {
    there: Vec<u32>,
    /// Up to which place each rank's operations are counted.
    counted: Vec<u32>,
}

/// All that what comes next follows from.
#[derive(Clone, Debug, Default)]
struct State {
    /// By rank: its place, and when it is free and how long it was busy.
    ranks: Vec<(u32, u64, u64)>,
    links: Vec<u64>,
    /// The inputs that are there: their rank, how many places ahead they are used, and their instant.
    inputs: Vec<(u16, u32, u64)>,
}

/// A period that was found.
struct Period {
    /// By how much every instant moves.
    time: u64,
    /// By how much every number of a micro-batch does: modulo 2^32, since some lists count down.
    micro_batches: u32,
}

/// The first sweep at which a state is kept.
const FIRST: u64 = 128;

/// How many sweeps pass between two looks: several periods are a period too.
const EVERY: u64 = 4;

impl Periods {
    /// Begins a run of lists of this length on average.
    pub(crate) fn reset(&mut self, length: usize) {
        (self.sweeps, self.keep_at, self.skipped) = (0, FIRST, 0);
        // A rank runs one operation a sweep at most, so nothing is looked for where less than half is left.
        self.last = length as u64 / 2;
        self.kept.ranks.clear();
        self.counts.counted.clear();
    }

    /// The period from the kept state to now, if all but the inputs agrees. Mostly the first rank alone tells that it
    /// does not.
    #[inline]
    fn period(&self, wave: &Wave, orders: &Orders) -> Option<Period> {
        let (&(then, ..), now) = self.kept.ranks.first().zip(wave.ranks.first())?;
        let op = |place: u32| orders.all().get(place as usize).map(|op| (op.kind, op.stage));
        if then < now.end && op(then) != op(now.place) {
            return None;
        }
        self.whole_period(wave, orders)
    }

    #[inline(never)]
    fn whole_period(&self, wave: &Wave, orders: &Orders) -> Option<Period> {
        let all = orders.all();
        let mut period: Option<Period> = None;
        for (rank, &(place, free, _)) in wave.ranks.iter().zip(&self.kept.ranks) {
            if place >= rank.end {
                continue; // it was at its end already
            }
            if rank.is_done() || rank.place == place {
                return None;
            }
            let (now, then) = (all[rank.place as usize], all[place as usize]);
            let time = rank.free - free;
            let micro_batches = now.micro_batch.0.wrapping_sub(then.micro_batch.0);
            let known = period.get_or_insert(Period { time, micro_batches });
            if (known.time, known.micro_batches) != (time, micro_batches) || later(then, micro_batches) != now
            {
                return None;
            }
        }
        let period = period?;
        let repeats = |(&now, &then): (&u64, &u64)| now == then || now - then == period.time;
        wave.links.iter().zip(&self.kept.links).all(repeats).then_some(period)
    }

    /// Skips what it can, given that all but the inputs repeats.
    #[cold]
    fn skip(&mut self, wave: &mut Wave, rows: &Rows, orders: &Orders, period: &Period) -> usize {
        self.now.keep(wave, rows, orders, &mut self.counts);
        let mut times = 0;
        if self.now.inputs_repeat(&self.kept, period) {
            times = self.times(wave, orders, period);
        }
        let mut skipped = 0;
        self.keep_at = 2 * self.sweeps;
        if times > 0 {
            skipped = self.jump(wave, rows, orders, period, times);
            self.skipped += skipped;
            self.counts.places(wave);
            // What comes next is another phase.
            self.keep_at = self.sweeps + FIRST;
            self.last = u64::MAX;
        }
        self.kept.ranks.clear();
        skipped
    }

    /// How many more periods the lists have.
    fn times(&self, wave: &Wave, orders: &Orders, period: &Period) -> u32 {
        let all = orders.all();
        let ranks = wave.ranks.iter().zip(&self.kept.ranks).filter(|(rank, _)| !rank.is_done());
        let of_rank = ranks.map(|(rank, &(place, ..))| {
            let length = rank.place - place;
            let (first, end) = (place as usize, rank.end as usize);
            let then = all[first..end].iter().zip(&all[rank.place as usize..end]);
            let same = then.take_while(|&(&then, &now)| later(then, period.micro_batches) == now).count();
            same as u32 / length
        });
        of_rank.min().unwrap_or(0)
    }

    /// Moves everything on by some periods. Returns how many operations that skips.
    fn jump(&self, wave: &mut Wave, rows: &Rows, orders: &Orders, period: &Period, times: u32) -> usize {
        let time = u64::from(times) * period.time;
        for &(rank, ahead, at) in &self.now.inputs {
            let place = wave.ranks[rank as usize].place + ahead;
            let op = later(orders.all()[place as usize], times.wrapping_mul(period.micro_batches));
            wave.slots[(rows.of(op).input + op.micro_batch.0) as usize] = at + time;
        }
        for (link, then) in
            wave.links.iter_mut().zip(&self.kept.links).filter(|(link, then)| **link != **then)
        {
            debug_assert!(*link > *then, "links are used in order");
            *link += time;
        }
        let mut skipped = 0;
        for (rank, &(place, _, busy)) in wave.ranks.iter_mut().zip(&self.kept.ranks) {
            if rank.is_done() {
                continue;
            }
            let places = times * (rank.place - place);
            rank.busy += u64::from(times) * (rank.busy - busy);
            rank.free += time;
            rank.place += places;
            skipped += places as usize;
        }
        skipped
    }
}

impl Skip for Periods {
    #[inline]
    fn after_sweep(&mut self, wave: &mut Wave, rows: &Rows, orders: &Orders) -> usize {
        self.sweeps += 1;
        if !self.sweeps.is_multiple_of(EVERY) {
            return 0;
        }
        let mut skipped = 0;
        if let Some(period) = self.period(wave, orders) {
            skipped = self.skip(wave, rows, orders, &period);
        }
        if self.sweeps == self.keep_at && self.sweeps < self.last {
            self.kept.keep(wave, rows, orders, &mut self.counts);
            self.keep_at *= 2;
        }
        skipped
    }
}

impl Counts {
    /// Counts the operations that have run since the last time.
    fn count(&mut self, wave: &Wave, rows: &Rows, orders: &Orders) {
        if self.counted.is_empty() {
            self.there.clear();
            self.there.resize(orders.ranks(), 0);
            self.counted.extend((0..orders.ranks() as u16).map(|rank| orders.range(Rank(rank)).start as u32));
        }
        for (rank, state) in wave.ranks.iter().enumerate() {
            for &op in &orders.all()[self.counted[rank] as usize..state.place as usize] {
                let row = rows.of(op);
                if let Some(there) = self.there.get_mut(row.receiver as usize) {
                    *there = there.wrapping_add(1);
                }
                if row.reads() {
                    self.there[rank] = self.there[rank].wrapping_sub(1);
                }
            }
        }
        self.places(wave);
    }

    /// All up to here is counted.
    fn places(&mut self, wave: &Wave) {
        self.counted.clear();
        self.counted.extend(wave.ranks.iter().map(|rank| rank.place));
    }
}

impl State {
    fn keep(&mut self, wave: &Wave, rows: &Rows, orders: &Orders, counts: &mut Counts) {
        counts.count(wave, rows, orders);
        self.ranks.clear();
        self.ranks.extend(wave.ranks.iter().map(|rank| (rank.place, rank.free, rank.busy)));
        self.links.clear();
        self.links.extend(&wave.links);
        self.inputs.clear();
        for (number, (rank, &there)) in (0..).zip(wave.ranks.iter().zip(&counts.there)) {
            let to_come = orders.all()[rank.place as usize..rank.end as usize].iter();
            let found = (0..).zip(to_come).filter_map(|(ahead, &op)| {
                let row = rows.of(op);
                let at = wave.slots[(row.input + op.micro_batch.0) as usize];
                (row.reads() && at >= wave.base).then_some((number, ahead, at))
            });
            self.inputs.extend(found.take(there as usize));
        }
    }

    fn inputs_repeat(&self, then: &Self, period: &Period) -> bool {
        let same = |(now, then): (&(u16, u32, u64), &(u16, u32, u64))| {
            (now.0, now.1) == (then.0, then.1) && now.2.checked_sub(then.2) == Some(period.time)
        };
        self.inputs.len() == then.inputs.len() && self.inputs.iter().zip(&then.inputs).all(same)
    }
}

/// The same operation some micro-batches later.
const fn later(op: Op, micro_batches: u32) -> Op {
    Op { micro_batch: MicroBatch(op.micro_batch.0.wrapping_add(micro_batches)), ..op }
}
