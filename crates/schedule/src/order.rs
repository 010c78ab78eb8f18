//! Every rank's list of operations, and the check that the lists can run.

use std::fmt;

use crate::{Kind, MicroBatch, Op, Rank, Shape, Stage};

/// Each rank's operations, in the order in which it runs them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    ops: Vec<Op>,
    /// Where each rank's list ends in `ops`.
    ends: Vec<usize>,
}

/// What is wrong with an order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// Not one list for each rank.
    #[error("{found} lists for {expected} ranks")]
    Lists {
        /// Ranks of the shape.
        expected: usize,
        /// Lists found.
        found: usize,
    },
    /// An operation that does not belong where it stands.
    #[error("rank {rank}, position {position}: `{op}` {reason}")]
    Misplaced {
        /// Whose list.
        rank: Rank,
        /// Where in it, from 0.
        position: usize,
        /// The operation.
        op: Op,
        /// What is wrong with it.
        reason: String,
    },
    /// An operation that no list contains.
    #[error("rank {rank}: `{op}` is missing")]
    Missing {
        /// Whose list it should be in.
        rank: Rank,
        /// The operation.
        op: Op,
    },
    /// The ranks wait for one another for ever.
    #[error("deadlock: {0}")]
    Deadlock(Deadlock),
}

/// A circle of operations, each of which waits for the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deadlock {
    /// Each rank's stuck operation, its position, and the operation whose result it waits for.
    pub cycle: Vec<Stuck>,
}

/// One operation of a [`Deadlock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The rank that waits.
    pub rank: Rank,
    /// Where its operation stands in its list, from 0.
    pub position: usize,
    /// The operation that cannot start.
    pub op: Op,
    /// The operation it waits for, further down another rank's list.
    pub waits_for: Op,
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, stuck) in self.cycle.iter().enumerate() {
            let joint = if index == 0 { "" } else { "; " };
            write!(
                f,
                "{joint}rank {} is at `{}` (position {}), which waits for `{}`",
                stuck.rank, stuck.op, stuck.position, stuck.waits_for
            )?;
        }
        Ok(())
    }
}

impl Orders {
    /// No lists yet, with room for `operations` in all.
    pub fn with_capacity(ranks: usize, operations: usize) -> Self {
        Self { ops: Vec::with_capacity(operations), ends: Vec::with_capacity(ranks) }
    }

    /// The orders made of one list for each rank.
    pub fn from_lists<L: IntoIterator<Item = Op>>(lists: impl IntoIterator<Item = L>) -> Self {
        let mut orders = Self::default();
        for list in lists {
            orders.push_list(list);
        }
        orders
    }

    /// Adds the next rank's list.
    pub fn push_list(&mut self, list: impl IntoIterator<Item = Op>) {
        self.ops.extend(list);
        self.ends.push(self.ops.len());
    }

    /// Adds the next rank's list, which `write` appends to the operations before it.
    pub(crate) fn write_list(&mut self, write: impl FnOnce(&mut Vec<Op>)) {
        write(&mut self.ops);
        self.ends.push(self.ops.len());
    }

    /// How many lists there are.
    pub const fn ranks(&self) -> usize {
        self.ends.len()
    }

    /// All operations, rank after rank. An operation's place in it is its number in a recorded timeline.
    pub fn all(&self) -> &[Op] {
        &self.ops
    }

    /// The range of places that a rank's list takes in [`Orders::all`].
    pub fn range(&self, rank: Rank) -> std::ops::Range<usize> {
        let start = rank.index().checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[rank.index()]
    }

    /// One rank's list.
    pub fn rank(&self, rank: Rank) -> &[Op] {
        &self.ops[self.range(rank)]
    }

    /// Checks that every (stage, micro-batch) has one F and either one B or one I and one W, each on its
    /// stage's rank, and that the lists can run to the end.
    ///
    /// # Errors
    /// The first thing that is wrong, with the operations named.
    pub fn validate(&self, shape: &Shape) -> Result<(), OrderError> {
        self.check_lists(shape)?;
        crate::deadlock::check(self, shape).map_err(OrderError::Deadlock)
    }

    /// The same but for deadlocks: a run that comes to its end tells as much, and costs less than looking for one.
    ///
    /// # Errors
    /// As for [`Orders::validate`].
    pub fn check_lists(&self, shape: &Shape) -> Result<(), OrderError> {
        if self.ranks() != shape.ranks() {
            return Err(OrderError::Lists { expected: shape.ranks(), found: self.ranks() });
        }
        let seen = self.check_places(shape)?;
        check_complete(shape, &seen)
    }

    /// Checks each operation where it stands; returns which kinds each (stage, micro-batch) has.
    fn check_places(&self, shape: &Shape) -> Result<Vec<u8>, OrderError> {
        let mut seen = vec![0_u8; shape.stages() * shape.micro_batches()];
        for rank in (0..self.ranks() as u16).map(Rank) {
            let list = self.rank(rank);
            for (position, &op) in list.iter().enumerate() {
                let misplaced = |reason: String| OrderError::Misplaced { rank, position, op, reason };
                if op.stage.index() >= shape.stages() {
                    return Err(misplaced(format!("names a stage past the last, {}", shape.stages() - 1)));
                }
                if shape.rank_of(op.stage) != rank {
                    return Err(misplaced(format!("belongs to rank {}", shape.rank_of(op.stage))));
                }
                if !shape.micro_batches_of(op.stage).contains(&op.micro_batch.0) {
                    return Err(misplaced("names a micro-batch that does not pass this stage".into()));
                }
                let kinds = &mut seen[op.stage.index() * shape.micro_batches() + op.micro_batch.index()];
                if let Some(reason) = clash(*kinds, op.kind) {
                    return Err(misplaced(reason.into()));
                }
                *kinds |= 1 << op.kind as u8;
                if op.paired {
                    check_pair(op, list.get(position + 1)).map_err(|reason| misplaced(reason.into()))?;
                }
            }
        }
        Ok(seen)
    }
}

/// Why an operation of this kind cannot follow those already seen for its stage and micro-batch.
fn clash(seen: u8, kind: Kind) -> Option<&'static str> {
    let has = |kind: Kind| seen & 1 << kind as u8 != 0;
    match kind {
        _ if has(kind) => Some("stands in the list twice"),
        Kind::Forward => None,
        _ if !has(Kind::Forward) => Some("comes before its forward"),
        Kind::Backward if has(Kind::InputGradient) => {
            Some("comes after a split backward of the same micro-batch")
        }
        Kind::InputGradient if has(Kind::Backward) => {
            Some("comes after the full backward of the same micro-batch")
        }
        Kind::WeightGradient if !has(Kind::InputGradient) => Some("comes before its input-gradient backward"),
        _ => None,
    }
}

fn check_pair(first: Op, second: Option<&Op>) -> Result<(), &'static str> {
    let second = second.ok_or("is joined to nothing")?;
    let kinds = (first.kind, second.kind);
    let is_pair = matches!(kinds, (Kind::Forward, Kind::Backward | Kind::InputGradient))
        || matches!(kinds, (Kind::Backward | Kind::InputGradient, Kind::Forward));
    if !is_pair {
        return Err("is joined to the next operation, but only a forward and a backward can run as one");
    }
    if second.paired {
        return Err("starts a chain of more than two joined operations");
    }
    if first.stage == second.stage && first.micro_batch == second.micro_batch {
        return Err("is joined to the backward that needs it");
    }
    Ok(())
}

fn check_complete(shape: &Shape, seen: &[u8]) -> Result<(), OrderError> {
    for stage in (0..shape.stages() as u16).map(Stage) {
        for micro_batch in shape.micro_batches_of(stage).map(MicroBatch) {
            let kinds = seen[stage.index() * shape.micro_batches() + micro_batch.index()];
            let has = |kind: Kind| kinds & 1 << kind as u8 != 0;
            let missing = if !has(Kind::Forward) {
                Some(Kind::Forward)
            } else if has(Kind::InputGradient) {
                (!has(Kind::WeightGradient)).then_some(Kind::WeightGradient)
            } else {
                (!has(Kind::Backward)).then_some(Kind::Backward)
            };
            if let Some(kind) = missing {
                let op = Op::new(kind, stage, micro_batch);
                return Err(OrderError::Missing { rank: shape.rank_of(stage), op });
            }
        }
    }
    Ok(())
}
