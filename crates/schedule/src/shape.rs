//! The shape of a pipeline: ranks, stages, micro-batches, and which stage lies on which rank.

use std::fmt;

/// One pipeline-parallel device, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rank(pub u16);

/// Consecutive layers, counted from 0 in model order. With two copies of the model the second copy's stages
/// follow the first's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stage(pub u16);

/// One micro-batch of a step, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MicroBatch(pub u32);

macro_rules! index_and_display {
    ($($id:ident),*) => { $(
        impl $id {
            /// The number as an index into a list.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Display for $id {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}
index_and_display!(Rank, Stage, MicroBatch);

/// How stages are laid on ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Stage s on rank s mod p.
    Loop,
    /// Down then up, and down again: with k = s div p and j = s mod p, rank j for even k and p-1-j for odd.
    V,
    /// Two whole copies of the model with p stages each: stage s < p on rank s, stage p+s on rank p-1-s. The
    /// first half of the micro-batches passes the first copy, the second half the second.
    Bidirectional,
    /// As an order file says: a stage lies on the rank whose list names it.
    Listed,
}

/// Ranks, stages and micro-batches of one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    ranks: u16,
    micro_batches: u32,
    placement: Placement,
    /// The rank of each stage.
    rank_of: Box<[Rank]>,
}

/// Why a shape cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShapeError {
    /// Zero of something that must be there.
    #[error("a pipeline needs at least one of `{what}`")]
    Zero {
        /// `ranks`, `chunks` or `micro_batches`.
        what: &'static str,
    },
    /// More stages than [`Shape::MAX_STAGES`].
    #[error("{stages} stages are more than the {max} that pipestep simulates", max = Shape::MAX_STAGES)]
    TooManyStages {
        /// Ranks times chunks.
        stages: u64,
    },
    /// More operations than [`Shape::MAX_OPERATIONS`].
    #[error(
        "{operations} operations ({stages} stages x {micro_batches} micro-batches, forward and backward) would \
         need about {gigabytes} GB of memory; the limit is {max} operations",
        max = Shape::MAX_OPERATIONS
    )]
    TooManyOperations {
        /// Forward and backward operations of the step.
        operations: u64,
        /// Stages.
        stages: u64,
        /// Micro-batches.
        micro_batches: u64,
        /// What simulating them would take, roughly.
        gigabytes: u64,
    },
    /// Two copies of the model share the micro-batches evenly, and each rank holds one stage of each.
    #[error("a bidirectional pipeline takes an even number of micro-batches, not {micro_batches}")]
    OddMicroBatches {
        /// The number asked for.
        micro_batches: u64,
    },
}

impl Shape {
    /// The largest number of stages, all ranks and copies together.
    pub const MAX_STAGES: u64 = 65_535;
    /// The largest number of forward and backward operations of a step.
    pub const MAX_OPERATIONS: u64 = 1 << 28;
    /// What one operation costs at most while it is simulated and recorded, with its message.
    const BYTES_PER_OPERATION: u64 = 64;

    /// A shape with `chunks` stages on each rank (one stage of each copy for
    /// [`Placement::Bidirectional`], which ignores `chunks`).
    ///
    /// # Errors
    /// [`ShapeError`] for zero of anything and past the limits.
    pub fn new(
        ranks: u64,
        chunks: u64,
        micro_batches: u64,
        placement: Placement,
    ) -> Result<Self, ShapeError> {
        for (what, count) in [("ranks", ranks), ("chunks", chunks), ("micro_batches", micro_batches)] {
            if count == 0 {
                return Err(ShapeError::Zero { what });
            }
        }
        let per_rank = if placement == Placement::Bidirectional { 2 } else { chunks };
        let stages = ranks.saturating_mul(per_rank);
        Self::check_size(stages, micro_batches)?;
        if placement == Placement::Bidirectional && !micro_batches.is_multiple_of(2) {
            return Err(ShapeError::OddMicroBatches { micro_batches });
        }
        let p = ranks as u16;
        let rank_of = (0..stages as u16).map(|stage| placement.rank_of(stage, p)).collect();
        Ok(Self { ranks: p, micro_batches: micro_batches as u32, placement, rank_of })
    }

    /// A shape whose stages lie where `rank_of` says.
    ///
    /// # Errors
    /// [`ShapeError`] for zero of anything and past the limits.
    pub fn listed(ranks: u64, rank_of: Vec<Rank>, micro_batches: u64) -> Result<Self, ShapeError> {
        let stages = rank_of.len() as u64;
        for (what, count) in [("ranks", ranks), ("stages", stages), ("micro_batches", micro_batches)] {
            if count == 0 {
                return Err(ShapeError::Zero { what });
            }
        }
        Self::check_size(stages.max(ranks), micro_batches)?;
        let (ranks, micro_batches) = (ranks as u16, micro_batches as u32);
        Ok(Self { ranks, micro_batches, placement: Placement::Listed, rank_of: rank_of.into() })
    }

    fn check_size(stages: u64, micro_batches: u64) -> Result<(), ShapeError> {
        if stages > Self::MAX_STAGES {
            return Err(ShapeError::TooManyStages { stages });
        }
        let operations = (2 * stages).saturating_mul(micro_batches);
        if operations > Self::MAX_OPERATIONS {
            let gigabytes = operations.saturating_mul(Self::BYTES_PER_OPERATION) / 1_000_000_000;
            return Err(ShapeError::TooManyOperations { operations, stages, micro_batches, gigabytes });
        }
        Ok(())
    }

    /// The number of ranks, p.
    pub const fn ranks(&self) -> usize {
        self.ranks as usize
    }

    /// The number of stages, all ranks and copies together.
    pub const fn stages(&self) -> usize {
        self.rank_of.len()
    }

    /// The number of micro-batches, m.
    pub const fn micro_batches(&self) -> usize {
        self.micro_batches as usize
    }

    /// How stages are laid on ranks.
    pub const fn placement(&self) -> Placement {
        self.placement
    }

    /// Stages per rank, v, where all ranks have the same number; the largest number otherwise.
    pub fn chunks(&self) -> usize {
        match self.placement {
            Placement::Listed => {
                (0..self.ranks).map(|rank| self.stages_of(Rank(rank)).count()).max().unwrap_or(0)
            }
            _ => self.stages() / self.ranks(),
        }
    }

    /// How many whole copies of the model there are.
    pub const fn copies(&self) -> usize {
        if matches!(self.placement, Placement::Bidirectional) { 2 } else { 1 }
    }

    /// The rank on which a stage lies.
    pub fn rank_of(&self, stage: Stage) -> Rank {
        self.rank_of[stage.index()]
    }

    /// The stages of a rank, in model order.
    pub fn stages_of(&self, rank: Rank) -> impl Iterator<Item = Stage> + '_ {
        (0..).map(Stage).zip(&self.rank_of).filter(move |&(_, &on)| on == rank).map(|(stage, _)| stage)
    }

    /// The stage after this one in its copy of the model.
    pub fn next(&self, stage: Stage) -> Option<Stage> {
        let next = stage.0 + 1;
        let ends_copy = next as usize == self.stages() || (self.copies() == 2 && next == self.ranks);
        (!ends_copy).then_some(Stage(next))
    }

    /// The stage before this one in its copy of the model.
    pub fn previous(&self, stage: Stage) -> Option<Stage> {
        let starts_copy = stage.0 == 0 || (self.copies() == 2 && stage.0 == self.ranks);
        (!starts_copy).then(|| Stage(stage.0 - 1))
    }

    /// The micro-batches that pass a stage: all of them, or one half with two copies.
    pub fn micro_batches_of(&self, stage: Stage) -> std::ops::Range<u32> {
        let half = self.micro_batches / 2;
        match (self.copies(), stage.0 < self.ranks) {
            (1, _) => 0..self.micro_batches,
            (_, true) => 0..half,
            (_, false) => half..self.micro_batches,
        }
    }

    /// Messages of one kind (activations or gradients) that a step sends between ranks.
    pub fn messages(&self) -> u64 {
        let stages = (0..self.stages() as u16).map(Stage);
        let crossing = stages
            .filter(|&stage| self.next(stage).is_some_and(|next| self.rank_of(next) != self.rank_of(stage)));
        crossing.map(|stage| self.micro_batches_of(stage).len() as u64).sum()
    }
}

impl Placement {
    fn rank_of(self, stage: u16, ranks: u16) -> Rank {
        let (turn, along) = (stage / ranks, stage % ranks);
        let back = match self {
            Self::Loop | Self::Listed => false,
            Self::V | Self::Bidirectional => turn % 2 == 1,
        };
        Rank(if back { ranks - 1 - along } else { along })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranks(placement: Placement, chunks: u64) -> Vec<u16> {
        let shape = Shape::new(3, chunks, 4, placement).unwrap();
        (0..shape.stages() as u16).map(|stage| shape.rank_of(Stage(stage)).0).collect()
    }

    #[test]
    fn stages_lie_where_the_placement_says() {
        assert_eq!(ranks(Placement::Loop, 2), [0, 1, 2, 0, 1, 2]);
        assert_eq!(ranks(Placement::V, 3), [0, 1, 2, 2, 1, 0, 0, 1, 2]);
        assert_eq!(ranks(Placement::Bidirectional, 1), [0, 1, 2, 2, 1, 0]);
    }

    #[test]
    fn the_two_copies_of_a_bidirectional_pipeline_are_not_joined() {
        let shape = Shape::new(3, 1, 4, Placement::Bidirectional).unwrap();
        assert_eq!(shape.next(Stage(2)), None);
        assert_eq!(shape.previous(Stage(3)), None);
        assert_eq!(shape.next(Stage(3)), Some(Stage(4)));
        assert_eq!(shape.micro_batches_of(Stage(4)), 2..4);
        assert_eq!(shape.messages(), 8);
    }

    #[test]
    fn neighbours_on_one_rank_send_no_message() {
        let shape = Shape::new(3, 2, 4, Placement::V).unwrap();
        assert_eq!(shape.messages(), 4 * 4);
        assert_eq!(shape.stages_of(Rank(0)).collect::<Vec<_>>(), [Stage(0), Stage(5)]);
    }

    #[test]
    fn what_is_too_large_is_refused_with_an_estimate() {
        let error = Shape::new(4, 1, 1_000_000_000, Placement::Loop).unwrap_err();
        assert!(error.to_string().contains("512 GB"), "{error}");
        assert!(Shape::new(70_000, 1, 1, Placement::Loop).is_err());
        assert!(Shape::new(u64::MAX, u64::MAX, u64::MAX, Placement::Loop).is_err());
        assert_eq!(Shape::new(0, 1, 1, Placement::Loop), Err(ShapeError::Zero { what: "ranks" }));
        assert!(Shape::new(2, 1, 3, Placement::Bidirectional).is_err());
    }
}
