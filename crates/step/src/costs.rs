//! What each operation and message of a step costs: integer nanoseconds and bytes, by stage.

use pipestep_engine::{Bytes, Duration};
use pipestep_schedule::{Kind, MicroBatch, Op, Rank, Shape, Stage, Weights};

/// One message from a stage to a neighbour on another rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// How long it is on the link.
    pub time: Duration,
    /// Its size, which is also that of the buffers that hold it on either side.
    pub bytes: Bytes,
}

/// What one micro-batch costs on one stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageCost {
    /// Length of `F`.
    pub forward: Duration,
    /// Length of `B`.
    pub backward: Duration,
    /// Length of `I`.
    pub input_gradient: Duration,
    /// Length of `W`.
    pub weight_gradient: Duration,
    /// How many of its rank's layers the stage holds (1 of the number of chunks where layers are not known);
    /// gives an overlapped pair its share of the rank's pair time.
    pub layers: u64,
    /// Bytes kept for the backward, from the start of `F` to the end of `B`, or of `W` if split.
    pub saved: Bytes,
    /// The part of them that the end of `I` frees; negative if `I` adds to them (then `W` frees it all).
    pub released_at_input_gradient: i64,
    /// Bytes used to compute again what was not kept, from the start of `B` or `I` to the end of `B`, or of `W`
    /// if split.
    pub workspace: Bytes,
    /// The message of an `F` to the next stage; unused on the same rank and at the last stage.
    pub activation: Message,
    /// The message of a `B` or `I` to the stage before; unused on the same rank and at the first stage.
    pub gradient: Message,
}

/// Bytes that a rank holds for the whole step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Weights.
    pub weights: Bytes,
    /// Gradients.
    pub gradients: Bytes,
    /// Optimizer state.
    pub optimizer: Bytes,
    /// Communication buckets, and buffers of checkpoints on the device.
    pub buckets: Bytes,
}

/// What one rank costs apart from its stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RankCost {
    /// Length of the update `U`.
    pub update: Duration,
    /// Length of an overlapped pair of two stages with all the rank's layers each; without it, the parts of a
    /// pair run one after the other.
    pub overlapped_pair: Option<Duration>,
    /// Held for the whole step.
    pub held: Held,
}

/// All costs of a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// By stage (all copies of the model).
    pub stages: Vec<StageCost>,
    /// By rank.
    pub ranks: Vec<RankCost>,
    /// Time before anything else, once, on every rank.
    pub setup: Duration,
    /// How much longer than usual each micro-batch's operations and messages are, as (numerator, denominator),
    /// and its bytes with them; empty if all are alike.
    pub micro_batch_scale: Vec<(u64, u64)>,
}

impl Costs {
    /// How long an operation runs on its own.
    pub fn duration(&self, op: Op) -> Duration {
        let stage = &self.stages[op.stage.index()];
        let usual = match op.kind {
            Kind::Forward => stage.forward,
            Kind::Backward => stage.backward,
            Kind::InputGradient => stage.input_gradient,
            Kind::WeightGradient => stage.weight_gradient,
        };
        Duration::from_nanos(self.scaled(usual.as_nanos(), op.micro_batch))
    }

    /// How long two operations of one rank run as an overlapped pair, if the rank has a time for it: that time
    /// by the mean of the two stages' shares of the rank's layers, rounded once, half to even.
    pub fn pair_duration(&self, shape: &Shape, first: Op, second: Op) -> Option<Duration> {
        let rank = shape.rank_of(first.stage);
        let whole = self.ranks[rank.index()].overlapped_pair?;
        let layers = |stage: Stage| self.stages[stage.index()].layers;
        let all = self.layers_of(shape, rank);
        let parts = layers(first.stage) + layers(second.stage);
        let nanos =
            round_half_even(u128::from(whole.as_nanos()) * u128::from(parts), 2 * u128::from(all.max(1)));
        // The pair is as long as its longer half asks for when micro-batches are unequal.
        let scaled =
            [first, second].map(|op| self.scaled(u64::try_from(nanos).unwrap_or(u64::MAX), op.micro_batch));
        Some(Duration::from_nanos(scaled[0].max(scaled[1])))
    }

    /// The layers of one copy of the model on a rank.
    fn layers_of(&self, shape: &Shape, rank: Rank) -> u64 {
        let all: u64 = shape.stages_of(rank).map(|stage| self.stages[stage.index()].layers).sum();
        all / shape.copies() as u64
    }

    /// The message that an operation sends to another rank, with its receiver, if it sends one.
    pub fn message(&self, shape: &Shape, op: Op) -> Option<(Stage, Message)> {
        let cost = &self.stages[op.stage.index()];
        let (to, usual) = match op.kind {
            Kind::Forward => (shape.next(op.stage)?, cost.activation),
            Kind::Backward | Kind::InputGradient => (shape.previous(op.stage)?, cost.gradient),
            Kind::WeightGradient => return None,
        };
        if shape.rank_of(to) == shape.rank_of(op.stage) {
            return None;
        }
        let time = Duration::from_nanos(self.scaled(usual.time.as_nanos(), op.micro_batch));
        let bytes = Bytes::new(self.scaled(usual.bytes.get(), op.micro_batch));
        Some((to, Message { time, bytes }))
    }

    /// An amount as it is for one micro-batch: scaled and rounded once, half to even. Past 64 bits it stays at
    /// the largest amount, which the checks of [`crate::Inputs::new`] then refuse.
    pub fn scaled(&self, amount: u64, micro_batch: MicroBatch) -> u64 {
        match self.micro_batch_scale.get(micro_batch.index()) {
            None => amount,
            Some(&(numerator, denominator)) => {
                let scaled = u128::from(amount) * u128::from(numerator);
                u64::try_from(round_half_even(scaled, u128::from(denominator.max(1)))).unwrap_or(u64::MAX)
            }
        }
    }

    /// The costs as the plain numbers that cost-aware schedules look at.
    pub fn weights(&self, shape: &Shape, limit: Option<Vec<u64>>) -> Weights {
        let time = |of: fn(&StageCost) -> Duration| self.stages.iter().map(|s| of(s).as_nanos()).collect();
        let crossing = |op: fn(u16, u32) -> Op| {
            let stages = 0..self.stages.len() as u16;
            stages
                .map(|s| self.message(shape, op(s, 0)).map_or(0, |(_, sent)| sent.time.as_nanos()))
                .collect()
        };
        Weights {
            forward: time(|s| s.forward),
            backward: time(|s| s.backward),
            input_gradient: time(|s| s.input_gradient),
            weight_gradient: time(|s| s.weight_gradient),
            activation: crossing(Op::forward),
            gradient: crossing(Op::backward),
            saved: self.stages.iter().map(|s| s.saved.get()).collect(),
            released_at_input_gradient: self.stages.iter().map(|s| s.released_at_input_gradient).collect(),
            limit,
        }
    }
}

/// `numerator / denominator` to the nearest integer, half to even: the one rounding rule of shares.
pub fn round_half_even(numerator: u128, denominator: u128) -> u128 {
    let (quotient, rest) = (numerator / denominator, numerator % denominator);
    let half = denominator - rest;
    if rest > half || (rest == half && quotient % 2 == 1) { quotient + 1 } else { quotient }
}
