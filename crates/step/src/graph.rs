//! Who waits for whom in a step that has run: the inputs of each operation, when each was there, and which
//! message had a link before which.
//!
//! Idle attribution and critical paths both read it. An operation is known by its place in
//! [`Orders::all`](pipestep_schedule::Orders::all); its message has the same number. Deliberately absent: any
//! judgement of what waiting means.

use pipestep_engine::{Interval, Time};
use pipestep_schedule::{Kind, Op, Orders, Rank, Shape};

use crate::{Inputs, Links, Posts, Record};

/// No operation.
const NONE: u32 = u32::MAX;

/// Where the operations stand that make what others need.
pub(crate) struct Makers {
    micro_batches: usize,
    forwards: Vec<u32>,
    gradients: Vec<u32>,
}

impl Makers {
    pub(crate) fn new(shape: &Shape, orders: &Orders) -> Self {
        let none = vec![NONE; shape.stages() * shape.micro_batches()];
        let mut makers =
            Self { micro_batches: shape.micro_batches(), forwards: none.clone(), gradients: none };
        for (place, &op) in (0..).zip(orders.all()) {
            let slot = makers.slot(op);
            match op.kind {
                Kind::Forward => makers.forwards[slot] = place,
                Kind::Backward | Kind::InputGradient => makers.gradients[slot] = place,
                Kind::WeightGradient => {}
            }
        }
        makers
    }

    const fn slot(&self, op: Op) -> usize {
        op.stage.index() * self.micro_batches + op.micro_batch.index()
    }

    /// The place of a forward, or of the backward (`B` or `I`) of the same stage and micro-batch.
    pub(crate) fn find(&self, op: Op) -> Option<usize> {
        match op.kind {
            Kind::Forward => found(self.forwards[self.slot(op)]),
            _ => found(self.gradients[self.slot(op)]),
        }
    }

    /// The operation of another stage whose result this one needs.
    pub(crate) fn of(&self, shape: &Shape, op: Op) -> Option<usize> {
        let stage = match op.kind {
            Kind::Forward => shape.previous(op.stage)?,
            Kind::Backward | Kind::InputGradient => shape.next(op.stage)?,
            Kind::WeightGradient => return None,
        };
        self.find(Op { stage, ..op })
    }

    /// The operation of its own stage and micro-batch that must come before this one.
    fn own(&self, op: Op) -> Option<usize> {
        match op.kind {
            Kind::Forward => None,
            Kind::Backward | Kind::InputGradient => self.find(Op { kind: Kind::Forward, ..op }),
            Kind::WeightGradient => self.find(Op { kind: Kind::Backward, ..op }),
        }
    }
}

/// A recorded step with its dependencies.
pub(crate) struct Graph<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) record: &'a Record,
    makers: Makers,
    /// When messages were posted, if the lists say so.
    pub(crate) posts: Option<&'a Posts>,
    /// All messages that take time on a serial link, by link and start.
    sendings: Vec<Sending>,
}

/// One message on a serial link. Sorts by link, then by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Sending {
    link: (Rank, Rank),
    interval: Interval,
    place: u32,
}

impl<'a> Graph<'a> {
    pub(crate) fn new(inputs: &'a Inputs, record: &'a Record) -> Self {
        let makers = Makers::new(inputs.shape(), &record.orders);
        let mut graph = Self { inputs, record, makers, posts: None, sendings: Vec::new() };
        graph.sendings = graph.sendings();
        graph
    }

    fn sendings(&self) -> Vec<Sending> {
        let mut sendings = Vec::new();
        for place in 0..self.record.orders.all().len() {
            let interval = self.record.messages.get(place);
            if interval.start < interval.end
                && let Some(link) = self.link(place)
            {
                sendings.push(Sending { link, interval, place: place as u32 });
            }
        }
        sendings.sort_unstable();
        sendings
    }

    /// All ranks.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.inputs.shape().ranks() as u16).map(Rank)
    }

    /// The operation at a place.
    pub(crate) fn op(&self, place: usize) -> Op {
        self.record.orders.all()[place]
    }

    /// Whose operation stands at a place.
    pub(crate) fn rank(&self, place: usize) -> Rank {
        self.inputs.shape().rank_of(self.op(place).stage)
    }

    /// The operation of another stage whose result the one at `place` needs.
    pub(crate) fn maker(&self, place: usize) -> Option<usize> {
        self.makers.of(self.inputs.shape(), self.op(place))
    }

    /// The same, if that result comes from another rank.
    pub(crate) fn sender(&self, place: usize) -> Option<usize> {
        self.maker(place).filter(|&maker| self.rank(maker) != self.rank(place))
    }

    /// When all inputs of an operation were there: its own stage's and the other stage's.
    pub(crate) fn ready(&self, place: usize) -> Time {
        let own = self.makers.own(self.op(place)).map_or(Time::ZERO, |own| self.record.ops.get(own).end);
        own.max(self.arrival(place))
    }

    /// When the input from another stage was there; the beginning of time if it needs none.
    pub(crate) fn arrival(&self, place: usize) -> Time {
        match (self.maker(place), self.sender(place)) {
            (_, Some(sender)) => self.record.messages.get(sender).end,
            (Some(maker), None) => self.record.ops.get(maker).end,
            (None, None) => Time::ZERO,
        }
    }

    /// Whether an operation and the next of its list ran as one.
    pub(crate) fn runs_as_pair(&self, place: usize) -> bool {
        self.op(place).paired && self.inputs.costs().ranks[self.rank(place).index()].overlapped_pair.is_some()
    }

    /// The message that had the link of this message until this one started, if this one had to wait.
    pub(crate) fn before_on_link(&self, place: usize) -> Option<usize> {
        let start = self.record.messages.get(place).start;
        let link = self.link(place)?;
        let earlier = self.sendings.partition_point(|one| (one.link, one.interval.start) < (link, start));
        let last = self.sendings[..earlier].last()?;
        (last.link == link && last.interval.end == start).then_some(last.place as usize)
    }

    /// The messages that have the link of this one at some time within `window`, in order.
    pub(crate) fn on_link(&self, place: usize, window: Interval) -> impl Iterator<Item = usize> + '_ {
        let link = self.link(place);
        let from = self.sendings.partition_point(|one| Some(one.link) < link);
        let mine = self.sendings[from..].iter().take_while(move |one| Some(one.link) == link);
        // The link is serial, so ends are in order too.
        let skipped = self.sendings[from..]
            .partition_point(|one| Some(one.link) == link && one.interval.end <= window.start);
        mine.skip(skipped)
            .take_while(move |one| one.interval.start < window.end)
            .map(|one| one.place as usize)
    }

    /// Who receives the result of an operation, its own rank or another.
    pub(crate) fn receiver(&self, place: usize) -> Option<Rank> {
        let (shape, op) = (self.inputs.shape(), self.op(place));
        let to = match op.kind {
            Kind::Forward => shape.next(op.stage)?,
            Kind::Backward | Kind::InputGradient => shape.previous(op.stage)?,
            Kind::WeightGradient => return None,
        };
        Some(shape.rank_of(to))
    }

    /// The serial link of a message, by a pair of ranks that stands for it.
    fn link(&self, place: usize) -> Option<(Rank, Rank)> {
        let ends = (self.rank(place), self.receiver(place)?);
        match self.inputs.links {
            Links::Directional => Some(ends),
            Links::Shared => Some((Rank(0), Rank(0))),
            Links::Unlimited => None,
        }
        .filter(|_| ends.0 != ends.1)
    }
}

fn found(place: u32) -> Option<usize> {
    (place != NONE).then_some(place as usize)
}
