//! What no order of operations can beat: lower bounds on the length of a step and on a rank's peak.
//!
//! **Time.** The first operation of a rank is an `F` of one of its stages, since everything else there needs one.
//! It cannot start before one micro-batch has passed all stages before that one: the *head*. From then on the rank
//! needs its busy time. Where backwards are whole, its last operation is a `B`, whose gradient has to pass the
//! stages before: the *tail*. Where they are split, the same holds for the last `I`, but the `W`s may all come
//! later. So the last gradient is not before setup + head + busy + tail, and with split backwards not before
//! setup + head + the larger of busy and busy without `W` + tail. An overlapped pair may take less time than its
//! parts; each part then counts at most half of the shortest pair that its rank could run. Rules 1, 2, 3 and 6 of
//! `docs/rules.md` are all that is used.
//!
//! **Memory.** A rank holds what it keeps of a micro-batch while that is under way, and its workspace during the
//! backward. Once the order is known, what it keeps can be summed up along it; this needs no times, since one rank
//! allocates and frees in its own order. An interval of no length holds nothing, so only lengths above zero count.

use pipestep_schedule::{Kind, MicroBatch, Op, Orders, Rank, Shape, Stage};
use pipestep_step::{Costs, Inputs, UpdateAfter};

/// No step of these inputs ends before, in ns. `splits`: whether backwards may be split into `I` and `W`.
pub(crate) fn makespan(inputs: &Inputs, splits: bool) -> u64 {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let bounds = Bounds { shape, costs, splits };
    let setup = costs.setup.as_nanos();
    let rank_ends: Vec<u64> = ranks(shape).map(|rank| setup + bounds.own_end(rank)).collect();
    let gradient = ranks(shape).map(|rank| setup + bounds.last_gradient(rank)).max().unwrap_or(setup);
    let updates = || costs.ranks.iter().map(|rank| rank.update.as_nanos());
    match inputs.update_after {
        UpdateAfter::All => gradient + updates().max().unwrap_or(0),
        UpdateAfter::Own => {
            let own = rank_ends.into_iter().zip(updates()).map(|(end, update)| end + update);
            own.max().unwrap_or(0).max(gradient)
        }
    }
}

/// No step of these inputs has a lower peak, rank by rank, in bytes.
pub(crate) fn peaks(inputs: &Inputs, splits: bool) -> Vec<u64> {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let of_stage = |stage: Stage| {
        let cost = &costs.stages[stage.index()];
        let first = MicroBatch(shape.micro_batches_of(stage).start);
        let scaled = |amount: u64| costs.scaled(amount, first);
        let lasts = |kind| lasts(inputs, Op { kind, stage, micro_batch: first, paired: false });
        let backward = if splits { lasts(Kind::InputGradient) } else { lasts(Kind::Backward) };
        let saved = if lasts(Kind::Forward) || backward { scaled(cost.saved.get()) } else { 0 };
        saved + if backward { scaled(cost.workspace.get()) } else { 0 }
    };
    let of_rank = |rank| held(costs, rank) + shape.stages_of(rank).map(of_stage).max().unwrap_or(0);
    ranks(shape).map(of_rank).collect()
}

/// The same once the orders are known; `None` where operations of no length make it uncertain.
pub(crate) fn peaks_of(inputs: &Inputs, orders: &Orders) -> Option<Vec<u64>> {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    if !orders.all().iter().all(|&op| lasts(inputs, op)) {
        return None;
    }
    let of_rank = |rank: Rank| {
        let (mut level, mut peak) = (0_i128, 0_i128);
        for op in orders.rank(rank) {
            let cost = &costs.stages[op.stage.index()];
            let saved = i128::from(costs.scaled(cost.saved.get(), op.micro_batch));
            let released =
                i128::from(costs.scaled(cost.released_at_input_gradient.unsigned_abs(), op.micro_batch));
            let released = if cost.released_at_input_gradient < 0 { -released } else { released };
            level += match op.kind {
                Kind::Forward => saved,
                Kind::Backward => -saved,
                Kind::InputGradient => -released,
                Kind::WeightGradient => released - saved,
            };
            peak = peak.max(level);
        }
        held(costs, rank) + peak as u64
    };
    Some(ranks(shape).map(of_rank).collect())
}

/// Whether an operation takes time, alone and in any pair.
fn lasts(inputs: &Inputs, op: Op) -> bool {
    let (shape, costs) = (inputs.shape(), inputs.costs());
    let mut partners = shape.stages_of(shape.rank_of(op.stage)).map(|stage| Op { stage, ..op });
    let pair = |partner| costs.pair_duration(shape, op, partner).is_none_or(|length| length.as_nanos() > 0);
    costs.duration(op).as_nanos() > 0 && partners.all(pair)
}

fn ranks(shape: &Shape) -> impl Iterator<Item = Rank> + use<> {
    (0..shape.ranks() as u16).map(Rank)
}

/// What a rank holds for the whole step.
fn held(costs: &Costs, rank: Rank) -> u64 {
    let held = costs.ranks[rank.index()].held;
    [held.weights, held.gradients, held.optimizer, held.buckets].iter().map(|bytes| bytes.get()).sum()
}

struct Bounds<'a> {
    shape: &'a Shape,
    costs: &'a Costs,
    splits: bool,
}

impl Bounds<'_> {
    /// The earliest end of everything a rank runs itself, from the end of the setup.
    fn own_end(&self, rank: Rank) -> u64 {
        self.head(rank) + self.busy(rank, &[Kind::Forward, Kind::Backward])
    }

    /// The earliest end of the last gradient of all ranks that this rank allows.
    fn last_gradient(&self, rank: Rank) -> u64 {
        let (head, tail) = (self.head(rank), self.tail(rank));
        if !self.splits {
            return self.own_end(rank) + tail;
        }
        let without = self.busy(rank, &[Kind::Forward, Kind::InputGradient]);
        self.own_end(rank).max(head + without + tail)
    }

    /// The earliest start of an `F` on a rank.
    fn head(&self, rank: Rank) -> u64 {
        let of_stage = |stage| self.over_micro_batches(stage, |i| self.passing(stage, i, Kind::Forward));
        self.shape.stages_of(rank).map(of_stage).min().unwrap_or(0)
    }

    /// The least time from the end of a `B` or `I` of a rank to the end of the same micro-batch's at the first
    /// stage.
    fn tail(&self, rank: Rank) -> u64 {
        let kind = self.gradient();
        let of_stage = |stage| self.over_micro_batches(stage, |i| self.passing(stage, i, kind));
        self.shape.stages_of(rank).map(of_stage).min().unwrap_or(0)
    }

    const fn gradient(&self) -> Kind {
        if self.splits { Kind::InputGradient } else { Kind::Backward }
    }

    fn over_micro_batches(&self, stage: Stage, of: impl Fn(u32) -> u64) -> u64 {
        // Without factors all are alike.
        let mut all = self.shape.micro_batches_of(stage);
        if self.costs.micro_batch_scale.is_empty() {
            all.end = all.end.min(all.start + 1);
        }
        all.map(of).min().unwrap_or(0)
    }

    /// How long a micro-batch takes through the stages before `stage`, forwards or back, and over the links
    /// between.
    fn passing(&self, stage: Stage, micro_batch: u32, kind: Kind) -> u64 {
        let micro_batch = MicroBatch(micro_batch);
        let op = |stage| Op { kind, stage, micro_batch, paired: false };
        let message = |op| self.costs.message(self.shape, op).map_or(0, |(_, sent)| sent.time.as_nanos());
        let before = std::iter::successors(self.shape.previous(stage), |&stage| self.shape.previous(stage));
        let stages: u64 = before.clone().map(|stage| self.shortest(op(stage))).sum();
        let links: u64 = match kind {
            Kind::Forward => before.map(|stage| message(op(stage))).sum(),
            // Gradients leave the stage itself and all before but the first.
            _ => std::iter::once(stage).chain(before).map(|stage| message(op(stage))).sum(),
        };
        stages + links
    }

    /// How long a rank is busy at least with operations of these kinds.
    fn busy(&self, rank: Rank, kinds: &[Kind]) -> u64 {
        let mut sum = 0;
        for stage in self.shape.stages_of(rank) {
            let micro_batches = self.shape.micro_batches_of(stage);
            let of = |kind, i| self.share(Op { kind, stage, micro_batch: MicroBatch(i), paired: false });
            for &kind in kinds {
                sum += if self.costs.micro_batch_scale.is_empty() {
                    of(kind, micro_batches.start) * micro_batches.len() as u64
                } else {
                    micro_batches.clone().map(|i| of(kind, i)).sum()
                };
            }
        }
        sum
    }

    /// The least time that an operation keeps its rank busy: its own, or half of an overlapped pair.
    fn share(&self, op: Op) -> u64 {
        let own = self.own(op);
        self.shortest_pair(op).map_or(own, |pair| own.min(pair / 2))
    }

    /// The least time from an operation's start to its end: its own, or a whole pair.
    fn shortest(&self, op: Op) -> u64 {
        let own = self.own(op);
        self.shortest_pair(op).map_or(own, |pair| own.min(pair))
    }

    /// How long it runs alone. A backward that may be split takes what its parts take.
    fn own(&self, op: Op) -> u64 {
        let whole = self.costs.duration(op).as_nanos();
        if op.kind != Kind::Backward || !self.splits {
            return whole;
        }
        let part = |kind| self.costs.duration(Op { kind, ..op }).as_nanos();
        whole.min(part(Kind::InputGradient) + part(Kind::WeightGradient))
    }

    /// The shortest pair that this operation could be part of, with any stage of its rank.
    fn shortest_pair(&self, op: Op) -> Option<u64> {
        let rank = self.shape.rank_of(op.stage);
        let mut shortest: Option<u64> = None;
        for partner in self.shape.stages_of(rank) {
            // The longer half sets the factor, so the shortest pair is that of two parts with this one's.
            let other = Op { stage: partner, ..op };
            let pair = self.costs.pair_duration(self.shape, op, other)?.as_nanos();
            shortest = Some(shortest.map_or(pair, |shortest| shortest.min(pair)));
        }
        shortest
    }
}
