//! Everything that happened in a step as one flat list: operations, updates, messages.
//!
//! The CSV, the trace and the pictures all read this list. The order of [`Event`]'s fields is the order of rows
//! in the contract, so sorting events sorts rows.

use pipestep_engine::{Interval, Time};
use pipestep_schedule::{Kind, MicroBatch, Rank, Shape, Stage};
use pipestep_step::Record;

/// What an event is, in the letters of the contract and in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EventKind {
    /// `F`: a forward.
    Forward,
    /// `B`: a full backward.
    Backward,
    /// `I`: an input-gradient backward.
    InputGradient,
    /// `W`: a weight-gradient backward.
    WeightGradient,
    /// `U`: the update of a rank.
    Update,
    /// `A`: an activation on its way.
    Activation,
    /// `G`: a gradient on its way.
    Gradient,
}

impl EventKind {
    /// All kinds, in order.
    pub const ALL: [Self; 7] = [
        Self::Forward,
        Self::Backward,
        Self::InputGradient,
        Self::WeightGradient,
        Self::Update,
        Self::Activation,
        Self::Gradient,
    ];

    /// The letter in CSV files and traces.
    pub const fn letter(self) -> char {
        match self {
            Self::Forward => 'F',
            Self::Backward => 'B',
            Self::InputGradient => 'I',
            Self::WeightGradient => 'W',
            Self::Update => 'U',
            Self::Activation => 'A',
            Self::Gradient => 'G',
        }
    }

    /// Whether it is something that a link does, and not a rank.
    pub const fn is_message(self) -> bool {
        matches!(self, Self::Activation | Self::Gradient)
    }
}

impl From<Kind> for EventKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Forward => Self::Forward,
            Kind::Backward => Self::Backward,
            Kind::InputGradient => Self::InputGradient,
            Kind::WeightGradient => Self::WeightGradient,
        }
    }
}

/// One operation, update or message. Compares by start, rank, kind, stage, micro-batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// When it starts.
    pub start: Time,
    /// Who runs it, or sends it.
    pub rank: Rank,
    /// What it is.
    pub kind: EventKind,
    /// The stage; of a message, its producer's. An update has none.
    pub stage: Option<Stage>,
    /// The micro-batch. An update has none.
    pub micro_batch: Option<MicroBatch>,
    /// When it ends.
    pub end: Time,
    /// Who receives the message.
    pub peer: Option<Rank>,
}

impl Event {
    /// Whether both run at the very same time on one rank: the halves of an overlapped pair.
    pub(crate) fn is_paired_with(&self, other: &Self) -> bool {
        self.rank == other.rank && (self.start, self.end) == (other.start, other.end) && self.start < self.end
    }
}

/// All events of a step, sorted. Both halves of an overlapped pair are there; an update of no length is not.
pub fn events(shape: &Shape, record: &Record) -> Vec<Event> {
    let operations = record.orders.all().len();
    let mut events = Vec::with_capacity(2 * operations + record.updates.len());
    for rank in (0..record.orders.ranks() as u16).map(Rank) {
        for item in record.orders.range(rank) {
            events.extend(operation(record, rank, item));
            events.extend(message(shape, record, rank, item));
        }
    }
    for (rank, update) in (0..).map(Rank).zip(&record.updates) {
        if *update != Interval::NEVER && update.start < update.end {
            events.push(Event {
                start: update.start,
                rank,
                kind: EventKind::Update,
                stage: None,
                micro_batch: None,
                end: update.end,
                peer: None,
            });
        }
    }
    events.sort_unstable();
    events
}

fn operation(record: &Record, rank: Rank, item: usize) -> Option<Event> {
    let (op, interval) = (record.orders.all()[item], record.ops.get(item));
    (interval != Interval::NEVER).then_some(Event {
        start: interval.start,
        rank,
        kind: op.kind.into(),
        stage: Some(op.stage),
        micro_batch: Some(op.micro_batch),
        end: interval.end,
        peer: None,
    })
}

fn message(shape: &Shape, record: &Record, rank: Rank, item: usize) -> Option<Event> {
    let (op, interval) = (record.orders.all()[item], record.messages.get(item));
    if interval == Interval::NEVER {
        return None;
    }
    let (kind, to) = match op.kind {
        Kind::Forward => (EventKind::Activation, shape.next(op.stage)?),
        _ => (EventKind::Gradient, shape.previous(op.stage)?),
    };
    Some(Event {
        start: interval.start,
        rank,
        kind,
        stage: Some(op.stage),
        micro_batch: Some(op.micro_batch),
        end: interval.end,
        peer: Some(shape.rank_of(to)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;

    #[test]
    fn every_operation_message_and_update_is_there_once_in_the_order_of_the_contract() {
        let sample = Sample::new("interleaved", 4, 2, 8);
        let events = events(&sample.shape, &sample.outcome.record);
        let count = |kind| events.iter().filter(|event| event.kind == kind).count();
        assert_eq!(EventKind::ALL.map(count), [64, 64, 0, 0, 4, 56, 56]);
        assert!(events.is_sorted_by_key(|e| (e.start, e.rank, e.kind, e.stage, e.micro_batch)));
        // Chunk 1 of rank 3's next stage is none; the wrap-around goes from rank 3 to rank 0.
        let wrap = events.iter().find(|e| e.kind == EventKind::Activation && e.stage == Some(Stage(3)));
        assert_eq!(wrap.map(|e| (e.rank, e.peer)), Some((Rank(3), Some(Rank(0)))));
        let back = events.iter().find(|e| e.kind == EventKind::Gradient && e.stage == Some(Stage(4)));
        assert_eq!(back.map(|e| (e.rank, e.peer)), Some((Rank(0), Some(Rank(3)))));
    }

    #[test]
    fn an_update_of_no_length_is_no_event() {
        let mut sample = Sample::new("1f1b", 2, 1, 2);
        sample.outcome.record.updates[1].end = sample.outcome.record.updates[1].start;
        let events = events(&sample.shape, &sample.outcome.record);
        let updates: Vec<_> = events.iter().filter(|e| e.kind == EventKind::Update).map(|e| e.rank).collect();
        assert_eq!(updates, [Rank(0)]);
    }
}
