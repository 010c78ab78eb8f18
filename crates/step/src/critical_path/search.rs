//! The search for critical paths: which node follows which, back from the end.

use pipestep_engine::{Interval, Time};
use pipestep_schedule::Rank;

use super::{CriticalPath, Element, PathStep};
use crate::graph::Graph;

/// An operation (of a pair that ran as one, the first) or the message of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Work(usize),
    Message(usize),
}

impl Graph<'_> {
    /// The node of an operation.
    pub(super) fn node(&self, place: usize) -> Node {
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

    /// Everything that a node may have waited for: the operation before it and the messages that it needs, or the
    /// maker, the message before it on its link, and the operations before its posts.
    fn before(&self, node: Node) -> impl Iterator<Item = Node> {
        let found = match node {
            Node::Work(place) => {
                let list = self.record.orders.range(self.rank(place));
                let previous = (place > list.start).then(|| self.node(place - 1));
                let second = self.runs_as_pair(place).then_some(place + 1);
                let message = |place: usize| self.sender(place).map(Node::Message);
                [previous, message(place), second.and_then(message), None]
            }
            Node::Message(place) => {
                let on_link = self.before_on_link(place).map(Node::Message);
                let [send, receive] = self.before_posts(place);
                [Some(self.node(place)), on_link, send, receive]
            }
        };
        found.into_iter().flatten()
    }

    /// The operations after which the send and the receive of a message were posted, if the message started then.
    fn before_posts(&self, place: usize) -> [Option<Node>; 2] {
        let Some(posts) = self.posts else {
            return [None, None];
        };
        let start = self.record.messages.get(place).start;
        let last = |posted: Time, rank: Rank| {
            // Only what takes time: operations of no length may run at that instant after the message.
            let list = self.record.orders.range(rank);
            let ops = &self.record.ops.all()[list.clone()];
            let before = list.start + ops.partition_point(|ran| ran.start < start);
            (posted == start && before > list.start).then(|| self.node(before - 1))
        };
        let receive = self.receiver(place).and_then(|to| last(posts.receives[place], to));
        let made = self.record.ops.get(place).end;
        let send = last(posts.sends[place], self.rank(place)).filter(|_| made < start);
        [send, receive]
    }

    /// Those of them that ended when it started.
    fn tight(&self, node: Node) -> impl Iterator<Item = Node> {
        let start = self.interval(node).start;
        self.before(node).filter(move |&before| self.interval(before).end == start)
    }
}

/// The critical paths that end with one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paths {
    pub(super) count: u64,
    /// Least and most nanoseconds of transfers on any of them.
    pub(super) least: u64,
    pub(super) most: u64,
}

impl Paths {
    pub(super) const NONE: Self = Self { count: 0, least: u64::MAX, most: 0 };

    pub(super) fn or(self, other: Self) -> Self {
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
pub(super) struct Search<'a> {
    graph: &'a Graph<'a>,
    /// By number of node: operations, then messages.
    known: Vec<Option<Paths>>,
    operations: usize,
}

impl<'a> Search<'a> {
    pub(super) fn new(graph: &'a Graph<'a>) -> Self {
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
    pub(super) fn paths_to(&mut self, node: Node) -> Paths {
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
    pub(super) fn walk_back(&self, last: Node) -> Vec<PathStep> {
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

    pub(super) fn setup(&self) -> Option<PathStep> {
        let end = Time::from_nanos(self.graph.inputs.costs().setup.as_nanos());
        let interval = Interval { start: Time::ZERO, end };
        (end > Time::ZERO).then_some(PathStep { element: Element::Setup, interval })
    }
}
