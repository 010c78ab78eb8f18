//! Why ranks are idle: every idle nanosecond between setup and the last gradient has exactly one cause.
//!
//! An idle interval of a rank lies between two of its operations, before its first or after its last. It is cut
//! where the cause changes, and where what holds up the awaited result changes:
//!
//! * before the first operation: [`Cause::WarmUp`];
//! * after the last one: first what the update could use ([`Cause::UpdateBarrier`], or [`Cause::Update`] where
//!   ranks update on their own), then [`Cause::CoolDown`];
//! * in between the rank waits for an input of its next operation, [`Cause::Activation`] or [`Cause::Gradient`],
//!   as long as nothing else could run. From the instant on at which some operation further down its list has
//!   all its inputs, it is idle because of the order: [`Cause::OrderList`]. With a policy that chooses online,
//!   a forward that is ready and does not run is held back by the memory limit: [`Cause::MemoryLimit`]. Where
//!   lists say when messages are posted, what a late post holds up is [`Cause::PostOrder`], whatever else holds.
//!
//! The parts of all intervals of a rank add up to its idle time, to the nanosecond.

use pipestep_engine::{Duration, Interval, Time};
use pipestep_schedule::{Kind, Rank};

use crate::graph::Graph;
use crate::{Inputs, Record, UpdateAfter};

/// Why a rank is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It has not run anything yet.
    WarmUp,
    /// The activation that its next forward needs is not there.
    Activation,
    /// The gradient that its next backward needs is not there.
    Gradient,
    /// Another operation is ready, but comes later in the rank's list than the one whose input is missing.
    OrderList,
    /// What it waits for, or a send that it must see completed, is held up by when sends and receives are posted.
    PostOrder,
    /// A forward is ready, but would exceed the memory limit of the policy that chooses online.
    MemoryLimit,
    /// It has run everything and could update, but must wait until the gradients of all ranks are ready.
    UpdateBarrier,
    /// It runs its own update, which does not count as busy.
    Update,
    /// It has run everything and others have not.
    CoolDown,
}

/// How many causes there are.
pub const CAUSES: usize = Cause::ALL.len();

impl Cause {
    /// All causes, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::WarmUp,
        Self::Activation,
        Self::Gradient,
        Self::OrderList,
        Self::PostOrder,
        Self::MemoryLimit,
        Self::UpdateBarrier,
        Self::Update,
        Self::CoolDown,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::WarmUp => "warm_up",
            Self::Activation => "activation",
            Self::Gradient => "gradient",
            Self::OrderList => "order_list",
            Self::PostOrder => "post_order",
            Self::MemoryLimit => "memory_limit",
            Self::UpdateBarrier => "update_barrier",
            Self::Update => "update",
            Self::CoolDown => "cool_down",
        }
    }
}

/// What holds up a result that a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Its maker's rank runs another operation first: the one at this place.
    MakerBusy(usize),
    /// Its maker's rank is idle itself.
    MakerIdle,
    /// It is being made.
    Making,
    /// It is made, but this other message has the link.
    LinkBusy(usize),
    /// It is made and its link is free, but its send or its receive is not posted, or that of a message before it on
    /// its channel is not: only in steps whose lists say when messages are posted.
    NotPosted,
    /// It is on its way.
    Transfer,
}

/// A piece of an idle interval with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdlePart {
    /// From when until when.
    pub interval: Interval,
    /// Why.
    pub cause: Cause,
    /// What holds up the input of the next operation, if that is what is missing.
    pub delay: Option<Delay>,
    /// The operation (by place) that could run now: the one that was ready first.
    pub ready: Option<usize>,
}

/// A stretch of time in which a rank runs nothing. Operations are given by their places in the recorded orders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdleInterval {
    /// Who is idle.
    pub rank: Rank,
    /// From when until when; never of no length.
    pub interval: Interval,
    /// The operation that ends it, if one does. Of an overlapped pair, the half whose input comes last.
    pub next: Option<usize>,
    /// The operation of another rank whose result `next` needs.
    pub waits_for: Option<usize>,
    /// Its pieces, in order and without gaps.
    pub parts: Vec<IdlePart>,
}

/// Who chose the operations that ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    /// Lists that were fixed beforehand.
    Before,
    /// A policy that chose while the step ran, within a memory limit.
    Online,
}

/// Every idle interval of every rank, rank after rank and in order of time.
pub fn idle_intervals(inputs: &Inputs, record: &Record, chosen: Chosen) -> Vec<IdleInterval> {
    let graph = Graph::new(inputs, record);
    let start = Time::from_nanos(inputs.costs().setup.as_nanos());
    let end = record.ops.all().iter().map(|ran| ran.end).fold(start, Time::max);
    let mut intervals = Vec::new();
    for rank in graph.ranks() {
        let walk = Walk { graph: &graph, rank, chosen, ready: ReadyFrom::new(&graph, rank) };
        walk.collect(Interval { start, end }, &mut intervals);
    }
    intervals
}

/// By rank, the idle time of each cause in the order of [`Cause::ALL`].
pub fn idle_by_cause(ranks: usize, intervals: &[IdleInterval]) -> Vec<[Duration; CAUSES]> {
    let mut sums = vec![[0_u64; CAUSES]; ranks];
    for interval in intervals {
        for part in &interval.parts {
            sums[interval.rank.index()][part.cause as usize] += part.interval.length().as_nanos();
        }
    }
    sums.into_iter().map(|causes| causes.map(Duration::from_nanos)).collect()
}

/// For each position of a rank's list: which operation from there on has all its inputs first.
struct ReadyFrom {
    /// The place of the first operation of the list.
    first: usize,
    /// By position: the instant and the place.
    earliest: Vec<(Time, usize)>,
}

impl ReadyFrom {
    fn new(graph: &Graph<'_>, rank: Rank) -> Self {
        let list = graph.record.orders.range(rank);
        let mut earliest = vec![(Time::MAX, usize::MAX); list.len() + 1];
        for place in list.clone().rev() {
            let position = place - list.start;
            let in_pair = |first: usize| graph.ready(first).max(graph.ready(first + 1));
            let ready = if graph.runs_as_pair(place) {
                in_pair(place)
            } else if place > list.start && graph.runs_as_pair(place - 1) {
                in_pair(place - 1)
            } else {
                graph.ready(place)
            };
            earliest[position] = (ready, place).min(earliest[position + 1]);
        }
        Self { first: list.start, earliest }
    }

    /// The first to be ready of the operations from `place` on.
    fn from(&self, place: usize) -> (Time, usize) {
        self.earliest[place - self.first]
    }
}

/// One rank on its way through the step.
struct Walk<'a> {
    graph: &'a Graph<'a>,
    rank: Rank,
    chosen: Chosen,
    ready: ReadyFrom,
}

impl Walk<'_> {
    fn collect(&self, step: Interval, into: &mut Vec<IdleInterval>) {
        let record = self.graph.record;
        let list = record.orders.range(self.rank);
        let mut free = step.start;
        let mut place = list.start;
        while place < list.end {
            let after = place + if self.graph.runs_as_pair(place) { 2 } else { 1 };
            let ran = record.ops.get(place);
            if free < ran.start {
                let gap = Interval { start: free, end: ran.start };
                into.push(self.before(place..after, gap, place == list.start));
            }
            (free, place) = (ran.end, after);
        }
        if free < step.end {
            let gap = Interval { start: free, end: step.end };
            into.push(self.after_last(gap));
        }
    }

    /// The interval that the operations at `next` (one, or the two of a pair) end.
    fn before(&self, next: std::ops::Range<usize>, gap: Interval, is_first: bool) -> IdleInterval {
        let graph = self.graph;
        let last = next.clone().max_by_key(|&place| (graph.arrival(place), std::cmp::Reverse(place)));
        let op = last.unwrap_or(next.start);
        let waits_for = graph.sender(op).filter(|_| graph.arrival(op) > gap.start);
        let missing = match graph.op(op).kind {
            Kind::Forward => Cause::Activation,
            _ => Cause::Gradient,
        };
        // A list settles the next operation; a policy may have had it ready and held it back.
        let others = match self.chosen {
            Chosen::Before => self.ready.from(next.end),
            Chosen::Online => self.ready.from(next.start),
        };
        let ready_at = others.0.max(gap.start).min(gap.end);
        let held = Interval { start: ready_at, end: gap.end };
        let held_by = match (self.chosen, others.1) {
            (Chosen::Online, place) if place != usize::MAX && graph.op(place).kind == Kind::Forward => {
                Cause::MemoryLimit
            }
            _ => Cause::OrderList,
        };
        let mut parts = Parts { list: Vec::new(), is_first };
        for (interval, delay) in self.delays(waits_for, gap) {
            let (on_time, late) = cut(interval, self.late_from(waits_for, delay));
            let (waiting, kept) = cut(on_time, held.start);
            parts.push(waiting, missing, delay, None);
            parts.push(kept, held_by, delay, Some(others.1));
            parts.push_of_posts(late, delay);
        }
        IdleInterval { rank: self.rank, interval: gap, next: Some(op), waits_for, parts: parts.list }
    }

    /// From when on an input is late only because of when messages are posted: when it would have arrived if its
    /// message had never waited beside a free link.
    fn late_from(&self, maker: Option<usize>, delay: Option<Delay>) -> Time {
        let (Some(maker), Some(_)) = (maker, delay) else {
            // Nothing is missing. What was given beforehand and does not run waits for a send to complete.
            return if self.chosen == Chosen::Before { Time::ZERO } else { Time::MAX };
        };
        let record = self.graph.record;
        let (made, sent) = (record.ops.get(maker).end, record.messages.get(maker));
        let window = Interval { start: made, end: sent.start };
        let mut late = window.length().as_nanos();
        if late == 0 {
            return Time::MAX;
        }
        for other in self.graph.on_link(maker, window) {
            let other = record.messages.get(other);
            late -= other.end.min(window.end).since(other.start.max(window.start)).as_nanos();
        }
        if late == 0 { Time::MAX } else { Time::from_nanos(sent.end.as_nanos() - late) }
    }

    /// Cuts a gap where what holds up the result of the operation at `maker` changes.
    fn delays(&self, maker: Option<usize>, gap: Interval) -> Vec<(Interval, Option<Delay>)> {
        let mut pieces = Pieces { from: gap.start, until: gap.end, cut: Vec::new() };
        let Some(maker) = maker else {
            pieces.until(gap.end, None);
            return pieces.cut;
        };
        let (made, sent) = (self.graph.record.ops.get(maker), self.graph.record.messages.get(maker));
        self.before_making(maker, made.start, &mut pieces);
        pieces.until(made.end, Some(Delay::Making));
        let window = Interval { start: pieces.from, end: sent.start };
        if window.start < window.end {
            for other in self.graph.on_link(maker, window) {
                pieces.until(self.graph.record.messages.get(other).start, Some(Delay::NotPosted));
                pieces.until(self.graph.record.messages.get(other).end, Some(Delay::LinkBusy(other)));
            }
        }
        pieces.until(sent.start, Some(Delay::NotPosted));
        pieces.until(sent.end, Some(Delay::Transfer));
        pieces.until(gap.end, None);
        pieces.cut
    }

    /// What the maker's rank does until it starts.
    fn before_making(&self, maker: usize, start: Time, pieces: &mut Pieces) {
        let record = self.graph.record;
        let list = record.orders.range(self.graph.rank(maker));
        let ended = |&place: &usize| record.ops.get(place).end <= pieces.from;
        let running = list.start + partition(list.start..maker, ended);
        for place in running..maker {
            let ran = record.ops.get(place);
            pieces.until(ran.start.min(start), Some(Delay::MakerIdle));
            pieces.until(ran.end.min(start), Some(Delay::MakerBusy(place)));
        }
        pieces.until(start, Some(Delay::MakerIdle));
    }

    /// The interval from the rank's last operation to the last gradient of all ranks.
    fn after_last(&self, gap: Interval) -> IdleInterval {
        let inputs = self.graph.inputs;
        let update = inputs.costs().ranks[self.rank.index()].update;
        let first = match inputs.update_after {
            UpdateAfter::All => Cause::UpdateBarrier,
            UpdateAfter::Own => Cause::Update,
        };
        let updated = gap.start.after(update).unwrap_or(Time::MAX);
        let (updating, over) = cut(gap, updated);
        let mut parts = Parts { list: Vec::new(), is_first: false };
        parts.push(updating, first, None, None);
        parts.push(over, Cause::CoolDown, None, None);
        IdleInterval { rank: self.rank, interval: gap, next: None, waits_for: None, parts: parts.list }
    }
}

/// How many places at the start of a range satisfy a condition that holds for a beginning of it only.
fn partition(range: std::ops::Range<usize>, holds: impl Fn(&usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(&middle) { low = middle + 1 } else { high = middle }
    }
    low - range.start
}

/// The two sides of an instant.
fn cut(interval: Interval, at: Time) -> (Interval, Interval) {
    let at = at.clamp(interval.start, interval.end);
    (Interval { start: interval.start, end: at }, Interval { start: at, end: interval.end })
}

/// A gap that is cut from its start on.
struct Pieces {
    from: Time,
    until: Time,
    cut: Vec<(Interval, Option<Delay>)>,
}

impl Pieces {
    /// What is not yet cut off before `end` is held up by `delay`.
    fn until(&mut self, end: Time, delay: Option<Delay>) {
        let end = end.min(self.until);
        if self.from < end {
            self.cut.push((Interval { start: self.from, end }, delay));
            self.from = end;
        }
    }
}

/// The parts of one interval.
struct Parts {
    list: Vec<IdlePart>,
    /// Whether the rank has run nothing before: then nothing else is the cause.
    is_first: bool,
}

impl Parts {
    /// What the order of posts holds up, before the first operation too.
    fn push_of_posts(&mut self, interval: Interval, delay: Option<Delay>) {
        self.add(interval, Cause::PostOrder, delay, None);
    }

    fn push(&mut self, interval: Interval, cause: Cause, delay: Option<Delay>, ready: Option<usize>) {
        let (cause, ready) = if self.is_first { (Cause::WarmUp, None) } else { (cause, ready) };
        self.add(interval, cause, delay, ready);
    }

    fn add(&mut self, interval: Interval, cause: Cause, delay: Option<Delay>, ready: Option<usize>) {
        if interval.start == interval.end {
            return;
        }
        match self.list.last_mut() {
            Some(last) if (last.cause, last.delay, last.ready) == (cause, delay, ready) => {
                last.interval.end = interval.end;
            }
            _ => self.list.push(IdlePart { interval, cause, delay, ready }),
        }
    }
}
