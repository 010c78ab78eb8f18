//! The loop of the clock-free pass: the ranks advance in sweeps, and in each sweep every rank runs its next
//! operation if its input is there.
//!
//! One idea makes it fast: in the steady state of a pipeline every rank has something to run in every sweep, so
//! the one question of the loop ("is the input there?") is nearly always answered with yes, and what follows one
//! another in the loop belongs to different ranks and does not wait for one another. Which operation runs in
//! which sweep depends on the orders alone, never on lengths. So `N` replicas of a step with different lengths
//! can run in lanes of one pass.
//!
//! Times inside the pass count from [`Wave::base`], which moves on from run to run past every instant that the
//! table of slots still holds. What is older than the base is not there yet, so the table is never emptied.

use pipestep_schedule::{Op, Orders, Rank};

use crate::lengths::Lengths;
use crate::observe::{Observer, Place};
use crate::rows::{NONE, Row, Rows};
use crate::times::Tally;
use crate::{Inputs, StepError};

/// The pass for `N` replicas, with its memory kept from one run to the next.
#[derive(Clone, Debug)]
pub(crate) struct Wave<const N: usize> {
    /// When each input is there; before `base` if that is not known yet.
    pub(super) slots: Vec<[u64; N]>,
    /// When each link has sent everything that it was given.
    pub(super) links: Vec<[u64; N]>,
    pub(super) ranks: Vec<RankState<N>>,
    /// The ranks whose lists are not at their ends, in the order of the next sweep.
    active: Vec<u16>,
    pub(super) base: u64,
}

/// A rank's progress through its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankState<const N: usize> {
    /// Its next place in the orders.
    pub(super) place: u32,
    pub(super) end: u32,
    pub(super) free: [u64; N],
    pub(super) busy: [u64; N],
    first_start: [u64; N],
}

/// What one sweep came to.
struct Sweep {
    /// Operations that ran.
    ran: usize,
    /// Ranks that came to the ends of their lists.
    ended: usize,
}

/// What is asked after every sweep whether it can skip something.
pub(crate) trait Skip<const N: usize> {
    /// Skips operations, as if they had run. Returns how many.
    fn after_sweep(&mut self, wave: &mut Wave<N>, rows: &Rows, orders: &Orders) -> usize;
}

/// Nothing is skipped.
impl<const N: usize> Skip<N> for () {
    #[inline]
    fn after_sweep(&mut self, _wave: &mut Wave<N>, _rows: &Rows, _orders: &Orders) -> usize {
        0
    }
}

/// What one run reads, and whom it tells.
pub(crate) struct Run<'a, L, O> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) rows: &'a Rows,
    pub(crate) orders: &'a Orders,
    pub(crate) lengths: L,
    pub(crate) observer: O,
}

impl<const N: usize> Default for Wave<N> {
    fn default() -> Self {
        Self { slots: Vec::new(), links: Vec::new(), ranks: Vec::new(), active: Vec::new(), base: 1 }
    }
}

impl<const N: usize> Wave<N> {
    /// Times every operation.
    ///
    /// # Errors
    /// [`StepError`] if the orders are not right for the step or deadlock.
    pub(crate) fn run<L: Lengths<N>, O: Observer<N>, S: Skip<N>>(
        &mut self,
        run: &mut Run<'_, L, O>,
        skip: &mut S,
    ) -> Result<(), StepError> {
        let (shape, orders) = (run.inputs.shape(), run.orders);
        if orders.ranks() != shape.ranks() {
            return Err(StepError::stuck(shape, orders));
        }
        self.reset(run.inputs, run.rows, orders);
        let mut left = orders.all().len();
        while left > 0 {
            let Sweep { ran, ended } = self.sweep(run);
            if ran == 0 {
                self.slots.clear(); // they may hold instants that no rank has reached
                return Err(StepError::stuck(shape, orders));
            }
            left -= ran;
            if 2 * ran < self.active.len() {
                // Most ranks wait. What they wait for comes down the ranks as often as up.
                self.active.reverse();
            }
            let skipped = skip.after_sweep(self, run.rows, orders);
            left -= skipped;
            if ended + skipped > 0 {
                let ranks = &self.ranks;
                self.active.retain(|&rank| !ranks[rank as usize].is_done());
            }
        }
        Ok(())
    }

    /// What one replica's ranks counted in the last run, which ended well.
    pub(crate) fn tallies(&self, lane: usize) -> impl Iterator<Item = Tally> + '_ {
        self.ranks.iter().map(move |rank| {
            let net = |at: u64| at.saturating_sub(self.base);
            Tally::of(rank.busy[lane], net(rank.first_start[lane]), net(rank.free[lane]))
        })
    }

    /// When the input of a slot was there, in the last run of one replica.
    #[inline]
    pub(super) fn there(&self, slot: u32) -> u64 {
        self.slots[slot as usize][0] - self.base
    }

    fn reset(&mut self, inputs: &Inputs, rows: &Rows, orders: &Orders) {
        // What is received is received before some rank is free, so no slot holds anything later.
        let last = self.ranks.iter().flat_map(|rank| rank.free).max().unwrap_or(0);
        self.base = self.base.max(last + 1);
        if self.base > i64::MAX as u64 {
            // Inputs::new keeps every instant below 2^63, so that the sum does not overflow.
            self.slots.clear();
            self.base = 1;
        }
        if self.slots.len() < rows.slots {
            self.slots.resize(rows.slots, [0; N]);
        }
        self.slots[rows.always_ready()].fill([self.base; N]);
        self.links.clear();
        self.links.resize(rows.links, [self.base; N]);
        let free = [self.base + inputs.costs().setup.as_nanos(); N];
        self.ranks.clear();
        self.ranks.extend((0..orders.ranks() as u16).map(|rank| {
            let list = orders.range(Rank(rank));
            let (place, end) = (list.start as u32, list.end as u32);
            RankState { place, end, free, busy: [0; N], first_start: [u64::MAX; N] }
        }));
        let ranks = &self.ranks;
        self.active.clear();
        self.active.extend((0..ranks.len() as u16).filter(|&rank| !ranks[rank as usize].is_done()));
    }

    /// Lets every rank run one operation (or one pair) if it can.
    #[inline]
    fn sweep<L: Lengths<N>, O: Observer<N>>(&mut self, run: &mut Run<'_, L, O>) -> Sweep {
        let Self { slots, links, ranks, active, base } = self;
        let mut tables = Tables { slots, links, base: *base };
        let (all, mut sweep) = (run.orders.all(), Sweep { ran: 0, ended: 0 });
        for &rank in active.iter() {
            let state = &mut ranks[rank as usize];
            let place = state.place as usize;
            let op = all[place];
            if op.paired
                && let Some(length) = run.pair_length(place)
            {
                let tables = Tables { slots: tables.slots, links: tables.links, base: tables.base };
                sweep.ran += run_pair(length, state, tables, run);
                sweep.ended += usize::from(state.is_done());
                continue;
            }
            let row = run.rows.of(op);
            let Some(ready) = tables.ready(row, op) else { continue };
            let start = latest(state.free, ready);
            let end = state.run::<O>(start, run.lengths.op(op, row.duration));
            state.place += 1;
            sweep.ran += 1;
            sweep.ended += usize::from(state.is_done());
            let at = Place { place, op };
            run.observer.ran(place, tables.net(start), tables.net(end));
            tables.deliver(row, at, end, run);
        }
        sweep
    }
}

/// Runs an overlapped pair as one if both inputs are there. Returns how many operations ran.
#[cold]
fn run_pair<const N: usize, L: Lengths<N>, O: Observer<N>>(
    length: u64,
    state: &mut RankState<N>,
    mut tables: Tables<'_, N>,
    run: &mut Run<'_, L, O>,
) -> usize {
    let place = state.place as usize;
    let mut parts = [place, place + 1].map(|place| (place, run.orders.all()[place]));
    let mut start = state.free;
    for (_, op) in parts {
        let Some(ready) = tables.ready(run.rows.of(op), op) else { return 0 };
        start = latest(start, ready);
    }
    let end = state.run::<O>(start, run.lengths.pair(parts[0].1, parts[1].1, length));
    state.place += 2;
    for (place, _) in parts {
        run.observer.ran(place, tables.net(start), tables.net(end));
    }
    // The activation goes first when both use one link.
    parts.sort_by_key(|&(_, op)| op.kind);
    for (place, op) in parts {
        tables.deliver(run.rows.of(op), Place { place, op }, end, run);
    }
    2
}

impl<L, O> Run<'_, L, O> {
    /// How long the operation at a place and the next one run as one, if their rank has a time for pairs.
    #[cold]
    fn pair_length(&self, place: usize) -> Option<u64> {
        let (first, second) = (self.orders.all()[place], self.orders.all()[place + 1]);
        let length = self.inputs.costs().pair_duration(self.inputs.shape(), first, second);
        length.map(pipestep_engine::Duration::as_nanos)
    }
}

/// What operations pass on to one another.
struct Tables<'a, const N: usize> {
    slots: &'a mut [[u64; N]],
    links: &'a mut [[u64; N]],
    base: u64,
}

impl<const N: usize> Tables<'_, N> {
    /// When the input of an operation is there, if that is known already.
    #[inline]
    fn ready(&self, row: &Row, op: Op) -> Option<[u64; N]> {
        let ready = self.slots[(row.input + op.micro_batch.0) as usize];
        (ready[0] >= self.base).then_some(ready)
    }

    /// Sends the result of an operation to whoever needs it.
    #[inline]
    fn deliver<L: Lengths<N>, O: Observer<N>>(
        &mut self,
        row: &Row,
        at: Place,
        end: [u64; N],
        run: &mut Run<'_, L, O>,
    ) {
        let Place { place, op } = at;
        let mut arrival = end;
        if row.sends {
            let mut start = end;
            let length = run.lengths.message(op, row.message);
            if row.link == NONE {
                arrival = plus(start, length);
            } else {
                let link = &mut self.links[row.link as usize];
                start = latest(end, *link);
                arrival = plus(start, length);
                *link = arrival;
            }
            run.observer.sent(row.pair, place, self.net(start), self.net(arrival));
        } else {
            run.observer.sent_nothing(place);
        }
        self.slots[(row.output + op.micro_batch.0) as usize] = arrival;
    }

    /// An instant without the base.
    #[inline]
    fn net(&self, at: [u64; N]) -> [u64; N] {
        at.map(|at| at - self.base)
    }
}

impl<const N: usize> RankState<N> {
    pub(super) const fn is_done(&self) -> bool {
        self.place >= self.end
    }

    /// Something runs from `start` on; returns when it ends.
    #[inline]
    fn run<O: Observer<N>>(&mut self, start: [u64; N], length: [u64; N]) -> [u64; N] {
        let end = plus(start, length);
        if O::TALLIES {
            self.busy = plus(self.busy, length);
            self.first_start = std::array::from_fn(|lane| self.first_start[lane].min(start[lane]));
        }
        self.free = end;
        end
    }
}

#[inline]
fn latest<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|lane| a[lane].max(b[lane]))
}

#[inline]
fn plus<const N: usize>(a: [u64; N], b: [u64; N]) -> [u64; N] {
    std::array::from_fn(|lane| a[lane] + b[lane])
}
