//! Costs laid out for the construction passes: what each rank can run, how long it takes, where its result goes.

use super::alarms::TIME_BITS;
use crate::{Shape, Stage, Weights};

/// One chunk of a rank: a stage with its costs. Times in ns, sizes in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk {
    pub(super) stage: usize,
    pub(super) forward: u64,
    /// Of the part that passes the gradient on: `I` if the backward is split, `B` otherwise.
    pub(super) backward: u64,
    /// 0 if the backward is whole.
    pub(super) weight: u64,
    /// What the forward adds to the rank's bytes.
    pub(super) saved: i64,
    /// What is freed by the op that passes the gradient on; the rest is freed by `W`.
    pub(super) released: i64,
}

/// Where a stage lies, and how long its results travel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) rank: usize,
    /// Index among the rank's chunks, in model order.
    pub(super) chunk: usize,
    /// Time of a message to the next stage; 0 on the same rank.
    pub(super) activation: u64,
    /// Time of a message to the stage before; 0 on the same rank.
    pub(super) gradient: u64,
}

/// Costs of all ranks and stages, for one way to run the backward.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) chunks: Vec<Vec<Chunk>>,
    pub(super) places: Vec<Place>,
    pub(super) split: bool,
}

/// Larger sizes are scaled down: sums of 2^16 of them fit a word, and orders need no more.
const SIZE_BITS: u32 = 44;

impl Table {
    pub(super) fn new(shape: &Shape, weights: &Weights, split: bool) -> Self {
        let shift = shift_of_times(shape, weights);
        let time = |list: &[u64], stage: usize| list[stage] >> shift;
        let mut chunks = vec![Vec::new(); shape.ranks()];
        let mut places = Vec::with_capacity(shape.stages());
        let sizes = Sizes::new(weights);
        for stage in 0..shape.stages() {
            let rank = shape.rank_of(Stage(stage as u16)).index();
            places.push(Place {
                rank,
                chunk: chunks[rank].len(),
                activation: time(&weights.activation, stage),
                gradient: time(&weights.gradient, stage),
            });
            let saved = sizes.saved(weights, stage);
            let (backward, weight, released) = if split {
                let released = sizes.released(weights, stage);
                (time(&weights.input_gradient, stage), time(&weights.weight_gradient, stage), released)
            } else {
                (time(&weights.backward, stage), 0, saved)
            };
            let forward = time(&weights.forward, stage);
            chunks[rank].push(Chunk { stage, forward, backward, weight, saved, released });
        }
        Self { chunks, places, split }
    }

    pub(super) const fn ranks(&self) -> usize {
        self.chunks.len()
    }

    pub(super) const fn stages(&self) -> usize {
        self.places.len()
    }

    /// Bytes that a rank keeps for one micro-batch, all its chunks together.
    pub(super) fn saved(&self, rank: usize) -> i64 {
        self.chunks[rank].iter().map(|chunk| chunk.saved).sum()
    }

    /// The longest work of a rank for one micro-batch: no schedule repeats faster.
    pub(super) fn period(&self) -> u64 {
        let work = |chunks: &Vec<Chunk>| chunks.iter().map(Chunk::work).sum();
        self.chunks.iter().map(work).max().unwrap_or(0).max(1)
    }

    /// A third of a stage's mean work, about the length of one pass: the unit in which constructions try delays.
    pub(super) fn unit(&self) -> u64 {
        let operations = 3 * self.stages() as u64;
        let work: u64 = self.chunks.iter().flatten().map(Chunk::work).sum();
        (work / operations).max(1)
    }
}

impl Chunk {
    const fn work(&self) -> u64 {
        self.forward + self.backward + self.weight
    }
}

/// By how many bits times have to be scaled down for the whole step to fit [`TIME_BITS`], whatever its order.
fn shift_of_times(shape: &Shape, weights: &Weights) -> u32 {
    let times = [
        &weights.forward,
        &weights.backward,
        &weights.input_gradient,
        &weights.weight_gradient,
        &weights.activation,
        &weights.gradient,
    ];
    let once: u128 = times.into_iter().flatten().map(|&time| u128::from(time)).sum();
    let all = once * shape.micro_batches() as u128;
    (u128::BITS - all.leading_zeros()).saturating_sub(TIME_BITS - 1)
}

const fn excess(size: u64) -> u32 {
    (u64::BITS - size.leading_zeros()).saturating_sub(SIZE_BITS)
}

/// How sizes are scaled down: saved bytes rounded up and freed ones down, so that no limit is passed.
struct Sizes(u32);

impl Sizes {
    fn new(weights: &Weights) -> Self {
        let saved = weights.saved.iter().copied();
        let released = weights.released_at_input_gradient.iter().map(|&bytes| bytes.unsigned_abs());
        Self(saved.chain(released).map(excess).max().unwrap_or(0))
    }

    /// What a micro-batch takes at most: what `I` adds, if it adds any, counts from the forward on.
    fn saved(&self, weights: &Weights, stage: usize) -> i64 {
        let more = weights.released_at_input_gradient[stage].min(0).unsigned_abs();
        let bytes = weights.saved[stage].saturating_add(more);
        (bytes >> self.0) as i64 + i64::from(self.0 > 0)
    }

    fn released(&self, weights: &Weights, stage: usize) -> i64 {
        (weights.released_at_input_gradient[stage].max(0) >> self.0).min(self.saved(weights, stage))
    }
}
