//! Where the time of a step goes: idle time by cause, the critical path, what would help.
//!
//! The command line gathers an [`Explanation`]; this module turns it into the terminal's text ([`explain_text`],
//! [`idle_text`]), the JSON of the contract ([`ExplainResult`]) and the path to draw over the Gantt picture
//! ([`path_events`]). Deliberately absent: finding causes and paths, which is `pipestep-step`'s.

mod result;
mod text;
mod words;

use pipestep_engine::{Duration, Time};
use pipestep_schedule::{Kind, Rank, Shape};
use pipestep_step::{CriticalPath, Element, IdleInterval, PathKind, Posts, Record, WhatIf};

pub use result::ExplainResult;
pub use text::{explain_text, idle_text};

use crate::{Event, EventKind, StepView};

/// Everything that explains one step.
#[derive(Clone, Copy, Debug)]
pub struct Explanation<'a> {
    /// Names, shape, summary.
    pub view: StepView<'a>,
    /// When everything ran.
    pub record: &'a Record,
    /// Every idle interval with its causes.
    pub idle: &'a [IdleInterval],
    /// The longest chain.
    pub path: &'a CriticalPath,
    /// The step with one thing changed.
    pub what_if: &'a WhatIf,
    /// The step with other numbers of micro-batches.
    pub micro_batches: &'a [OtherMicroBatches],
    /// When messages were posted, in a step whose lists say when.
    pub posts: Option<PostsView<'a>>,
    /// The same step under a schedule to compare it with.
    pub against: Option<&'a Against>,
}

/// A step whose lists say when sends and receives are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostsView<'a> {
    /// When each message was posted.
    pub posts: &'a Posts,
    /// The makespan of the same orders if messages needed no posts.
    pub makespan_without: Time,
}

/// The same step with another number of micro-batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OtherMicroBatches {
    /// How many.
    pub micro_batches: usize,
    /// The makespan.
    pub makespan: Time,
    /// The bubble rate by makespan.
    pub bubble: f64,
}

/// The same step under another schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Against {
    /// The other schedule's name.
    pub schedule: String,
    /// Its makespan.
    pub makespan: Time,
    /// Its makespan with free transfers.
    pub free_transfers: Time,
    /// Messages on its critical path.
    pub messages_on_path: usize,
    /// Their time.
    pub transfers_on_path: Duration,
}

/// How many messages a critical path crosses, and their time together.
pub fn transfers_on_path(path: &CriticalPath, record: &Record) -> (usize, Duration) {
    let messages = path.steps.iter().filter(|step| matches!(step.element, Element::Message(_))).count();
    (messages, path.by_kind(record)[PathKind::Transfer as usize])
}

/// The events of a critical path, to be drawn by [`crate::gantt_with_path`].
pub fn path_events(shape: &Shape, record: &Record, path: &CriticalPath) -> Vec<Event> {
    let event = |step: &pipestep_step::PathStep| {
        let (start, end) = (step.interval.start, step.interval.end);
        let (place, is_message) = match step.element {
            Element::Operation(place) | Element::Pair(place) => (place, false),
            Element::Message(place) => (place, true),
            Element::Update(rank) => {
                let kind = EventKind::Update;
                return Some(Event { start, rank, kind, stage: None, micro_batch: None, end, peer: None });
            }
            Element::Setup | Element::Held(_) => return None,
        };
        let op = record.orders.all()[place];
        let kind = match (is_message, op.kind) {
            (false, kind) => kind.into(),
            (true, Kind::Forward) => EventKind::Activation,
            (true, _) => EventKind::Gradient,
        };
        let peer = if is_message { receiver(shape, record, place) } else { None };
        let rank = shape.rank_of(op.stage);
        Some(Event { start, rank, kind, stage: Some(op.stage), micro_batch: Some(op.micro_batch), end, peer })
    };
    path.steps.iter().filter_map(event).collect()
}

/// Who receives the message of the operation at a place.
fn receiver(shape: &Shape, record: &Record, place: usize) -> Option<Rank> {
    let op = record.orders.all()[place];
    let to = if op.kind == Kind::Forward { shape.next(op.stage) } else { shape.previous(op.stage) };
    to.map(|stage| shape.rank_of(stage))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::layout_tests::check_layout;
    use crate::testing::Sample;
    use pipestep_schedule::Plan;
    use pipestep_step::{Chosen, idle_intervals, simulate, what_if};

    /// A sample with all that explains it.
    pub(crate) struct Explained {
        pub(crate) sample: Sample,
        idle: Vec<IdleInterval>,
        path: CriticalPath,
        what_if: WhatIf,
        micro_batches: Vec<OtherMicroBatches>,
        against: Option<Against>,
    }

    impl Explained {
        pub(crate) fn new(sample: Sample) -> Self {
            let (inputs, record) = (&sample.inputs, &sample.outcome.record);
            let idle = idle_intervals(inputs, record, Chosen::Before);
            let path = CriticalPath::new(inputs, record);
            let what_if = what_if(inputs, &record.orders, 10).unwrap();
            Self { sample, idle, path, what_if, micro_batches: Vec::new(), against: None }
        }

        /// Compares it with fill-drain and with twice the micro-batches.
        pub(crate) fn compared(schedule: &str, ranks: u64, micro_batches: u64) -> Self {
            let mut this = Self::new(Sample::new(schedule, ranks, 1, micro_batches));
            let other = Sample::new("fill-drain", ranks, 1, micro_batches);
            let path = CriticalPath::new(&other.inputs, &other.outcome.record);
            let (messages_on_path, transfers_on_path) = transfers_on_path(&path, &other.outcome.record);
            let summary = &other.outcome.summary;
            this.against = Some(Against {
                schedule: "fill-drain".into(),
                makespan: summary.makespan,
                free_transfers: summary.zero_transfer_makespan,
                messages_on_path,
                transfers_on_path,
            });
            let twice = Sample::new(schedule, ranks, 1, 2 * micro_batches).outcome.summary;
            let bubble = twice.bubble().by_makespan;
            let micro_batches = 2 * micro_batches as usize;
            this.micro_batches = vec![OtherMicroBatches { micro_batches, makespan: twice.makespan, bubble }];
            this
        }

        pub(crate) fn explanation(&self) -> Explanation<'_> {
            Explanation {
                view: self.sample.view(),
                record: &self.sample.outcome.record,
                idle: &self.idle,
                path: &self.path,
                what_if: &self.what_if,
                micro_batches: &self.micro_batches,
                posts: None,
                against: self.against.as_ref(),
            }
        }
    }

    #[test]
    fn the_path_is_drawn_over_the_gantt() {
        let explained = Explained::new(Sample::new("1f1b", 4, 1, 8));
        let (sample, record) = (&explained.sample, &explained.sample.outcome.record);
        let events = path_events(&sample.shape, record, &explained.path);
        let all = crate::events(&sample.shape, record);
        assert!(events.iter().all(|event| all.contains(event)));
        assert_eq!(events.iter().filter(|event| event.kind.is_message()).count(), 16);
        check_layout(&crate::gantt_with_path((sample.view(), record), &events), "critical path");
    }

    #[test]
    fn a_pair_is_one_step_of_the_path() {
        let sample = Sample::ordered(2, &["0F0 0F1+ 0I0 0W0 0B1"]);
        let path = CriticalPath::new(&sample.inputs, &sample.outcome.record);
        assert!(path.steps.iter().any(|step| matches!(step.element, Element::Pair(1))));
        assert_eq!(path_events(&sample.shape, &sample.outcome.record, &path).len(), path.steps.len());
        // It is simulated from the same inputs again.
        let again = simulate(&sample.inputs, Plan::Fixed(sample.outcome.record.orders.clone())).unwrap();
        assert_eq!(again.summary, sample.outcome.summary);
    }
}
