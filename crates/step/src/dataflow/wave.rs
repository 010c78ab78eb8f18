//! The loop of the clock-free pass: the ranks advance in sweeps, and in each sweep every rank runs its next
//! operation if its input is there.
//!
//! One idea makes it fast: in the steady state of a pipeline every rank has something to run in every sweep, so
//! the one question of the loop ("is the input there?") is nearly always answered with yes, and what follows one
//! another in the loop belongs to different ranks and does not wait for one another. Which operation runs in
//! which sweep depends on the orders alone, never on lengths (the course of drawn runs, in `jitter`, rests on that).
//!
//! Times inside the pass count from [`Wave::base`], which moves on from run to run past every instant that the
//! table of slots still holds. What is older than the base is not there yet, so the table is never emptied.

use pipestep_schedule::{Op, Orders, Rank};

use crate::lengths::Lengths;
use crate::observe::{Observer, Place};
use crate::rows::{Row, Rows};
use crate::times::Tally;
use crate::{Inputs, StepError};

/// The pass, with its memory kept from one run to the next.
#[derive(Clone, Debug)]
pub(crate) struct Wave {
    /// When each input is there; before `base` if that is not known yet.
    pub(super) slots: Vec<u64>,
    /// When each link has sent everything that it was given.
    pub(super) links: Vec<u64>,
    pub(super) ranks: Vec<RankState>,
    way: Way,
    pub(super) base: u64,
}

/// A rank's progress through its list.
#[derive(Clone, Copy, Debug)]
pub(super) struct RankState {
    /// Its next place in the orders.
    pub(super) place: u32,
    pub(super) end: u32,
    pub(super) free: u64,
    pub(super) busy: u64,
}

/// In which order a sweep visits the ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Neighbours lie apart: what one makes, the next one needs, and would have to wait for.
    Apart,
    /// Most ranks wait, and what they wait for comes down the ranks as often as up.
    Down,
    Up,
}

/// What is asked after every sweep whether it can skip something.
pub(crate) trait Skip {
    /// Skips operations, as if they had run. Returns how many.
    fn after_sweep(&mut self, wave: &mut Wave, rows: &Rows, orders: &Orders) -> usize;
}

/// Nothing is skipped.
impl Skip for () {
    #[inline]
    fn after_sweep(&mut self, _wave: &mut Wave, _rows: &Rows, _orders: &Orders) -> usize {
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

impl Default for Wave {
    fn default() -> Self {
        Self { slots: Vec::new(), links: Vec::new(), ranks: Vec::new(), way: Way::Apart, base: 1 }
    }
}

impl Wave {
    /// Times every operation.
    ///
    /// # Errors
    /// [`StepError`] if the orders are not right for the step or deadlock.
    #[inline(never)] // a caller's variables would take the loop's registers
    pub(crate) fn run<L: Lengths, O: Observer, S: Skip>(
        &mut self,
        run: &mut Run<'_, L, O>,
        skip: &mut S,
    ) -> Result<(), StepError> {
        let (shape, orders) = (run.inputs.shape(), run.orders);
        if orders.ranks() != shape.ranks() {
            return Err(StepError::stuck(shape, orders));
        }
        self.reset(run.inputs, run.rows, orders);
        run.observer.begin(self.base);
        let mut left = orders.all().len();
        while left > 0 {
            let ran = self.sweep(run);
            if ran == 0 {
                self.slots.clear(); // they may hold instants that no rank has reached
                return Err(StepError::stuck(shape, orders));
            }
            left -= ran;
            self.way = if 2 * ran < self.ranks.len() { self.way_of_few(ran) } else { Way::Apart };
            left -= skip.after_sweep(self, run.rows, orders);
        }
        Ok(())
    }

    /// What the ranks counted in the last run, which ended well.
    pub(crate) fn tallies<'a, L, O>(&'a self, run: &'a Run<'_, L, O>) -> impl Iterator<Item = Tally> + 'a {
        let net = |at: u64| at - self.base;
        (0..).map(Rank).zip(&self.ranks).map(move |(rank, state)| {
            let first = self.first_start(run, rank).map_or(u64::MAX, net);
            Tally::of(state.busy, first, net(state.free))
        })
    }

    /// When a rank's first operation started, which the slots still tell.
    fn first_start<L, O>(&self, run: &Run<'_, L, O>, rank: Rank) -> Option<u64> {
        let range = run.orders.range(rank);
        let place = range.start;
        let ready = |place: usize| {
            let op = run.orders.all()[place];
            self.slots[(run.rows.of(op).input + op.micro_batch.0) as usize]
        };
        let is_pair = run.orders.all().get(place)?.paired && run.pair_length(place).is_some();
        let inputs = place..range.end.min(place + if is_pair { 2 } else { 1 });
        Some(inputs.map(ready).max()?.max(self.first_free(run.inputs)))
    }

    /// When every rank is free for its first operation.
    fn first_free(&self, inputs: &Inputs) -> u64 {
        self.base + inputs.costs().setup.as_nanos()
    }

    /// When the input of each slot was there in the last run, and its base.
    pub(super) fn slots(&self) -> (&[u64], u64) {
        (&self.slots, self.base)
    }

    fn reset(&mut self, inputs: &Inputs, rows: &Rows, orders: &Orders) {
        // What is received is received before some rank is free, so no slot holds anything later.
        let last = self.ranks.iter().map(|rank| rank.free).max().unwrap_or(0);
        self.base = self.base.max(last + 1);
        if self.base > i64::MAX as u64 {
            // Inputs::new keeps every instant below 2^63, so that the sum does not overflow.
            self.slots.clear();
            self.base = 1;
        }
        if self.slots.len() < rows.slots {
            self.slots.resize(rows.slots, 0);
        }
        self.slots[rows.always_ready()].fill(self.base);
        self.links.clear();
        self.links.resize(rows.links, self.base);
        let free = self.first_free(inputs);
        self.ranks.clear();
        self.ranks.extend((0..orders.ranks() as u16).map(|rank| {
            let list = orders.range(Rank(rank));
            let (place, end) = (list.start as u32, list.end as u32);
            RankState { place, end, free, busy: 0 }
        }));
        self.way = Way::Apart;
    }

    /// The way of the next sweep after one in which `ran` operations ran, of less than half of the ranks.
    fn way_of_few(&self, ran: usize) -> Way {
        match self.way {
            _ if 2 * ran >= self.ranks.iter().filter(|rank| !rank.is_done()).count() => Way::Apart,
            Way::Down => Way::Up,
            Way::Apart | Way::Up => Way::Down,
        }
    }

    /// Lets every rank run one operation (or one pair) if it can. Returns how many operations ran.
    #[inline]
    fn sweep<L: Lengths, O: Observer>(&mut self, run: &mut Run<'_, L, O>) -> usize {
        let Self { slots, links, ranks, way, base, .. } = self;
        let mut tables = Tables { all: run.orders.all(), rows: run.rows.all(), slots, links, base: *base };
        let mut ran = 0;
        match way {
            Way::Apart => {
                for first in 0..2 {
                    let mut rank = first;
                    while rank < ranks.len() {
                        ran += step(&mut ranks[rank], &mut tables, run);
                        rank += 2;
                    }
                }
            }
            Way::Down => ranks.iter_mut().for_each(|state| ran += step_rarely(state, &mut tables, run)),
            Way::Up => ranks.iter_mut().rev().for_each(|state| ran += step_rarely(state, &mut tables, run)),
        }
        ran
    }
}

/// Runs a rank's next operation (or pair) if it can. Returns how many operations ran.
#[expect(clippy::inline_always, reason = "it is the loop; a call would pass everything through memory")]
#[inline(always)]
fn step<L: Lengths, O: Observer>(
    state: &mut RankState,
    tables: &mut Tables<'_>,
    run: &mut Run<'_, L, O>,
) -> usize {
    if state.is_done() {
        return 0;
    }
    let place = state.place as usize;
    let op = tables.all[place];
    if op.paired
        && let Some(length) = run.pair_length(place)
    {
        return run_pair(length, state, tables, run);
    }
    let row = &tables.rows[Rows::number(op)];
    let Some(ready) = tables.ready(row, op) else { return 0 };
    let start = state.free.max(ready);
    let end = state.run(start, run.lengths.op(op, row.duration));
    state.place += 1;
    run.observer.ran(place, start, end);
    tables.deliver(row, Place { place, op }, end, run);
    1
}

/// The same where most ranks wait.
#[cold]
#[inline(never)]
fn step_rarely<L: Lengths, O: Observer>(
    state: &mut RankState,
    tables: &mut Tables<'_>,
    run: &mut Run<'_, L, O>,
) -> usize {
    step(state, tables, run)
}

/// Runs an overlapped pair as one if both inputs are there. Returns how many operations ran.
#[cold]
fn run_pair<L: Lengths, O: Observer>(
    length: u64,
    state: &mut RankState,
    tables: &mut Tables<'_>,
    run: &mut Run<'_, L, O>,
) -> usize {
    let place = state.place as usize;
    let mut parts = [place, place + 1].map(|place| (place, run.orders.all()[place]));
    let mut start = state.free;
    for (_, op) in parts {
        let Some(ready) = tables.ready(run.rows.of(op), op) else { return 0 };
        start = start.max(ready);
    }
    let end = state.run(start, run.lengths.pair(parts[0].1, parts[1].1, length));
    state.place += 2;
    for (place, _) in parts {
        run.observer.ran(place, start, end);
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

/// What the loop reads, and what operations pass on to one another.
struct Tables<'a> {
    all: &'a [Op],
    rows: &'a [Row],
    slots: &'a mut [u64],
    links: &'a mut [u64],
    base: u64,
}

impl Tables<'_> {
    /// When the input of an operation is there, if that is known already.
    #[inline]
    fn ready(&self, row: &Row, op: Op) -> Option<u64> {
        let ready = self.slots[(row.input + op.micro_batch.0) as usize];
        (ready >= self.base).then_some(ready)
    }

    /// Sends the result of an operation to whoever needs it.
    #[inline]
    fn deliver<L: Lengths, O: Observer>(&mut self, row: &Row, at: Place, end: u64, run: &mut Run<'_, L, O>) {
        let Place { place, op } = at;
        let mut arrival = end;
        if row.sends {
            let mut start = end;
            let length = run.lengths.message(op, row.message);
            // There is none for messages without a link of their own.
            if let Some(link) = self.links.get_mut(row.link as usize) {
                start = end.max(*link);
                arrival = start + length;
                *link = arrival;
            } else {
                arrival = start + length;
            }
            run.observer.sent(row, place, start, arrival);
        } else {
            run.observer.sent_nothing(place);
        }
        self.slots[(row.output + op.micro_batch.0) as usize] = arrival;
    }
}

impl RankState {
    pub(super) const fn is_done(&self) -> bool {
        self.place >= self.end
    }

    /// Something runs from `start` on; returns when it ends.
    #[inline]
    fn run(&mut self, start: u64, length: u64) -> u64 {
        let end = start + length;
        self.busy += length;
        self.free = end;
        end
    }
}
