//! The critical path of a step: the longest chain from 0 to the makespan in which each element starts when the
//! one before it ends.
//!
//! An operation follows the one before it on its rank, or the message that brought its input. A message follows
//! the operation that made it, or the message that had its link. An update follows the last gradient that it
//! waits for. Where several elements end just when the next one starts, the step has several critical paths of
//! the same length; they are counted, and the one that stays longest on each rank, seen from the end, is given.
//!
//! The lengths add up to the makespan. Deliberately absent: paths that are almost critical.

use pipestep_engine::{Duration, Interval, Time};
use pipestep_schedule::{Kind, Rank};

use crate::graph::Graph;
use crate::{Inputs, Record, UpdateAfter};

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
        let graph = Graph::new(inputs, record);
        let ends = Ends::new(&graph);
        let mut search = Search::new(&graph);
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

/// An operation (of a pair that ran as one, the first) or the message of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Work(usize),
    Message(usize),
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

impl Graph<'_> {
    /// The node of an operation.
    fn node(&self, place: usize) -> Node {
        let list = self.record.orders.range(self.rank(place));
        let is_second = place > list.start && self.runs_as_pair(place - 1);
        Node::Work(if is_second { place - 1 } else { place })
    }

    fn interval(&self, node: Node) -> Interval {
        match node {
            Node::Work(place) => self.record.ops.get(place),
            Node::Message(place) => self.record.messages.get(place),
        }
    }

    /// Everything that a node may have waited for: at most the operation before it and two messages, or the
    /// maker and a message.
    fn before(&self, node: Node) -> impl Iterator<Item = Node> {
        let found = match node {
            Node::Work(place) => {
                let list = self.record.orders.range(self.rank(place));
                let previous = (place > list.start).then(|| self.node(place - 1));
                let second = self.runs_as_pair(place).then_some(place + 1);
                let message = |place: usize| self.sender(place).map(Node::Message);
                [previous, message(place), second.and_then(message)]
            }
            Node::Message(place) => {
                [Some(self.node(place)), self.before_on_link(place).map(Node::Message), None]
            }
        };
        found.into_iter().flatten()
    }

    /// Those of them that ended when it started.
    fn tight(&self, node: Node) -> impl Iterator<Item = Node> {
        let start = self.interval(node).start;
        self.before(node).filter(move |&before| self.interval(before).end == start)
    }
}

/// The critical paths that end with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Paths {
    count: u64,
    /// Least and most nanoseconds of transfers on any of them.
    least: u64,
    most: u64,
}

impl Paths {
    const NONE: Self = Self { count: 0, least: u64::MAX, most: 0 };

    fn or(self, other: Self) -> Self {
        Self {
            count: (self.count + other.count).min(CriticalPath::MOST),
            least: self.least.min(other.least),
            most: self.most.max(other.most),
        }
    }

    fn and_transfer(self, length: u64) -> Self {
        Self { least: self.least + length, most: self.most + length, ..self }
    }
}

/// A search back from the end. Elements of no length make no circle: every edge leads to what caused its node.
struct Search<'a> {
    graph: &'a Graph<'a>,
    /// By number of node: operations, then messages.
    known: Vec<Option<Paths>>,
    operations: usize,
}

impl<'a> Search<'a> {
    fn new(graph: &'a Graph<'a>) -> Self {
        let operations = graph.record.orders.all().len();
        Self { graph, known: vec![None; 2 * operations], operations }
    }

    fn number(&self, node: Node) -> usize {
        match node {
            Node::Work(place) => place,
            Node::Message(place) => self.operations + place,
        }
    }

    /// The paths to a node; depth first, without recursion.
    fn paths_to(&mut self, node: Node) -> Paths {
        let mut stack = vec![node];
        while let Some(&top) = stack.last() {
            let number = self.number(top);
            let missing = stack.len();
            if self.known[number].is_none() {
                stack.extend(self.graph.tight(top).filter(|&one| self.known[self.number(one)].is_none()));
            }
            if stack.len() > missing {
                continue;
            }
            stack.pop();
            if self.known[number].is_none() {
                self.known[number] = Some(self.combined(top));
            }
        }
        self.known[self.number(node)].unwrap_or(Paths::NONE)
    }

    /// The paths to a node, given those to everything before it.
    fn combined(&self, node: Node) -> Paths {
        let before = self.graph.tight(node).filter_map(|one| self.known[self.number(one)]);
        let mut paths = before.fold(Paths::NONE, Paths::or);
        if paths.count == 0 {
            // It starts with the setup's end, or was held back.
            paths = Paths { count: 1, least: 0, most: 0 };
        }
        match node {
            Node::Work(_) => paths,
            Node::Message(_) => paths.and_transfer(self.graph.interval(node).length().as_nanos()),
        }
    }

    /// One path to a node, from 0 on: the operation before on the same rank goes first.
    fn walk_back(&self, last: Node) -> Vec<PathStep> {
        let mut steps = Vec::new();
        let mut node = Some(last);
        while let Some(at) = node {
            let interval = self.graph.interval(at);
            steps.push(PathStep { element: self.element(at), interval });
            node = self.graph.tight(at).next();
            if node.is_none() {
                let (held, before) = self.held(at);
                steps.extend(held);
                node = before;
            }
        }
        steps.extend(self.setup());
        steps.reverse();
        steps
    }

    /// What was held back from the end of the last thing that it needed until it started.
    fn held(&self, node: Node) -> (Option<PathStep>, Option<Node>) {
        let graph = self.graph;
        let interval = graph.interval(node);
        let last = graph.before(node).max_by_key(|&before| graph.interval(before).end);
        let setup = Time::from_nanos(graph.inputs.costs().setup.as_nanos());
        let free = last.map_or(setup, |before| graph.interval(before).end);
        let (Node::Work(place) | Node::Message(place)) = node;
        let element = Element::Held(graph.rank(place));
        let held = Interval { start: free, end: interval.start };
        ((held.start < held.end).then_some(PathStep { element, interval: held }), last)
    }

    fn element(&self, node: Node) -> Element {
        match node {
            Node::Work(place) if self.graph.runs_as_pair(place) => Element::Pair(place),
            Node::Work(place) => Element::Operation(place),
            Node::Message(place) => Element::Message(place),
        }
    }

    fn setup(&self) -> Option<PathStep> {
        let end = Time::from_nanos(self.graph.inputs.costs().setup.as_nanos());
        let interval = Interval { start: Time::ZERO, end };
        (end > Time::ZERO).then_some(PathStep { element: Element::Setup, interval })
    }
}
