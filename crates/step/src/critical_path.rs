//! The critical path of a step: the longest chain from 0 to the makespan in which each element starts when the
//! one before it ends.
//!
//! An operation follows the one before it on its rank, or the message that brought its input. A message follows
//! the operation that made it, or the message that had its link. An update follows the last gradient that it
//! waits for. Where several elements end just when the next one starts, the step has several critical paths of
//! the same length; they are counted, and the one that stays longest on each rank, seen from the end, is given.
//!
//! The lengths add up to the makespan. Deliberately absent: paths that are almost critical.

mod search;

use pipestep_engine::{Duration, Interval, Time};
use pipestep_schedule::{Kind, Rank};

use crate::graph::Graph;
use crate::{Inputs, Posts, Record, UpdateAfter};
use search::{Node, Paths, Search};

/// One element of a critical path. Operations are given by their places in the recorded orders, messages by the
/// place of the operation that made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// The setup of all ranks.
    Setup,
    /// An operation.
    Operation(usize),
    /// An overlapped pair that ran as one: this operation and the next of its list.
    Pair(usize),
    /// The message of an operation.
    Message(usize),
    /// A rank's update; of several ranks that end it together, the first.
    Update(Rank),
    /// A rank, or its message, that was held back although everything was ready: by a policy that chooses online, or
    /// by the order in which messages are posted.
    Held(Rank),
}

/// An element with its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// What it is.
    pub element: Element,
    /// When; may be of no length.
    pub interval: Interval,
}

/// What the time on a critical path is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathKind {
    /// Setup.
    Setup,
    /// `F`.
    Forward,
    /// `B`.
    Backward,
    /// `I`.
    InputGradient,
    /// `W`.
    WeightGradient,
    /// Overlapped pairs that ran as one.
    Pair,
    /// Messages.
    Transfer,
    /// The update.
    Update,
    /// Held back by a policy, or by the order of posts.
    Held,
}

impl PathKind {
    /// All kinds, in order.
    pub const ALL: [Self; 9] = [
        Self::Setup,
        Self::Forward,
        Self::Backward,
        Self::InputGradient,
        Self::WeightGradient,
        Self::Pair,
        Self::Transfer,
        Self::Update,
        Self::Held,
    ];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Setup => "setup",
            Self::Forward => "forward",
            Self::Backward => "backward",
            Self::InputGradient => "input_gradient",
            Self::WeightGradient => "weight_gradient",
            Self::Pair => "overlapped_pair",
            Self::Transfer => "transfer",
            Self::Update => "update",
            Self::Held => "held",
        }
    }
}

/// A critical path, and what is known of those that are as long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalPath {
    /// From 0 to the makespan.
    pub steps: Vec<PathStep>,
    /// How many paths are equally long, this one included; at most [`CriticalPath::MOST`].
    pub count: u64,
    /// The least and the most time that any of them spends on transfers: what a step loses at once when
    /// transfers get longer is by the most, what it gains when they get shorter by the least.
    pub transfers: (Duration, Duration),
}

impl CriticalPath {
    /// Where counting stops.
    pub const MOST: u64 = 1_000_000;

    /// Finds the critical path of a recorded step.
    pub fn new(inputs: &Inputs, record: &Record) -> Self {
        Self::of(&Graph::new(inputs, record))
    }

    /// The same for a step whose lists say when messages are posted: a message may follow the operation after
    /// which it was posted.
    pub fn with_posts(inputs: &Inputs, record: &Record, posts: &Posts) -> Self {
        let mut graph = Graph::new(inputs, record);
        graph.posts = Some(posts);
        Self::of(&graph)
    }

    fn of(graph: &Graph<'_>) -> Self {
        let ends = Ends::new(graph);
        let mut search = Search::new(graph);
        let mut all = Paths::NONE;
        for &(node, _) in &ends.last {
            all = all.or(search.paths_to(node));
        }
        let Some(&(last, update)) = ends.last.first() else {
            // Nothing ran.
            let steps = search.setup().into_iter().chain(ends.alone).collect();
            return Self { steps, count: 1, transfers: (Duration::ZERO, Duration::ZERO) };
        };
        let mut steps = search.walk_back(last);
        steps.extend(update);
        let transfers = (Duration::from_nanos(all.least), Duration::from_nanos(all.most));
        Self { steps, count: all.count, transfers }
    }

    /// The time spent on each kind, in the order of [`PathKind::ALL`].
    pub fn by_kind(&self, record: &Record) -> [Duration; PathKind::ALL.len()] {
        let mut sums = [0_u64; PathKind::ALL.len()];
        for step in &self.steps {
            sums[step.element.kind(record) as usize] += step.interval.length().as_nanos();
        }
        sums.map(Duration::from_nanos)
    }
}

impl Element {
    /// What its time counts as.
    pub fn kind(self, record: &Record) -> PathKind {
        match self {
            Self::Setup => PathKind::Setup,
            Self::Operation(place) => match record.orders.all()[place].kind {
                Kind::Forward => PathKind::Forward,
                Kind::Backward => PathKind::Backward,
                Kind::InputGradient => PathKind::InputGradient,
                Kind::WeightGradient => PathKind::WeightGradient,
            },
            Self::Pair(_) => PathKind::Pair,
            Self::Message(_) => PathKind::Transfer,
            Self::Update(_) => PathKind::Update,
            Self::Held(_) => PathKind::Held,
        }
    }
}

/// The last operations of critical paths, each with the update that follows it.
struct Ends {
    last: Vec<(Node, Option<PathStep>)>,
    /// The update of a step in which nothing else runs.
    alone: Option<PathStep>,
}

impl Ends {
    fn new(graph: &Graph<'_>) -> Self {
        let record = graph.record;
        let makespan = record.updates.iter().map(|update| update.end).max().unwrap_or(Time::ZERO);
        let update_of = |rank: Rank| {
            let interval = record.updates[rank.index()];
            (interval.start < interval.end).then_some(PathStep { element: Element::Update(rank), interval })
        };
        let ends_it = |rank: &Rank| record.updates[rank.index()].end == makespan;
        let first = graph.ranks().find(ends_it);
        let alone = first.and_then(update_of);
        let last_of = |rank: Rank| {
            let list = record.orders.range(rank);
            list.end.checked_sub(1).filter(|&place| list.contains(&place))
        };
        let last = match graph.inputs.update_after {
            UpdateAfter::Own => {
                let mine = graph.ranks().filter(ends_it);
                mine.filter_map(|rank| Some((graph.node(last_of(rank)?), update_of(rank)))).collect()
            }
            UpdateAfter::All => {
                let gradient_ready = record.ops.all().iter().map(|ran| ran.end).max();
                let ready_last = |place: &usize| Some(record.ops.get(*place).end) == gradient_ready;
                let places = graph.ranks().filter_map(last_of).filter(ready_last);
                places.map(|place| (graph.node(place), alone)).collect()
            }
        };
        Self { last, alone }
    }
}
