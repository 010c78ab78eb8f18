//! `[time]` and `[transfer]`: the length of each operation and message.

use pipestep_engine::Duration;
use pipestep_schedule::{Shape, Stage};
use pipestep_step::{Arbitration, Links, RankCost, StageCost, UpdateAfter, round_half_even};

use super::layer_time;
use super::layers::{Split, part_of, stages};
use super::memory::has_no_first_input_gradient;
use super::stretch::{Ratio, Stretch};
use super::{Broken, Each, for_each};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{File, Time};
use crate::read::{AboveZero, Problems, Word};
use crate::step::LayerCosts;
use crate::units::{Factor, Share};

/// Lengths of operations; bytes and messages are still zero.
pub(super) struct Times {
    pub stages: Vec<StageCost>,
    pub ranks: Vec<RankCost>,
    /// Where lengths are given by layer.
    pub layer_costs: Option<LayerCosts>,
}

/// The times of each stage and of each rank.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    split: &Split,
    stretch: &Stretch,
    problems: &mut Problems,
) -> Result<Times, Broken> {
    let time = file.time.get().ok_or(Broken)?;
    let (rank, zero) = (Each::rank(shape), Duration::ZERO);
    let lengths = Lengths::lower(file, shape, split, stretch, problems);
    let path = "time.weight_gradient_fraction";
    let fraction = for_each(&time.weight_gradient_fraction, path, Share::HALF, rank, problems);
    let update = for_each(&time.update, "time.update", zero, rank, problems);
    let pair = for_each(&time.overlapped_pair, "time.overlapped_pair", zero, rank, problems);
    let (lengths, fraction) = (lengths?, fraction?);
    let update = stretched(file, update?, &stretch.updates, problems)?;
    let pair = stretched(file, pair?, &stretch.ranks, problems)?;

    let no_first_input = has_no_first_input_gradient(file);
    let mut costs = Vec::with_capacity(shape.stages());
    for (stage, (share, forward, backward)) in stages(shape).zip(lengths.by_stage) {
        let whole = part_of(share, backward.as_nanos());
        let fraction = fraction[shape.rank_of(stage).index()];
        let part = weight_gradient(time, share, backward, fraction, problems)?;
        // Without an input gradient to compute, `W` is the whole backward.
        let part = if no_first_input && shape.previous(stage).is_none() { whole } else { part };
        costs.push(StageCost {
            forward: Duration::from_nanos(part_of(share, forward.as_nanos())),
            backward: Duration::from_nanos(whole),
            input_gradient: Duration::from_nanos(whole - part),
            weight_gradient: Duration::from_nanos(part),
            layers: split.shares[stage.index()].0,
            ..StageCost::default()
        });
    }
    let has_pair = !time.overlapped_pair.is_absent();
    let ranks = update.into_iter().zip(pair).map(|(update, pair)| RankCost {
        update,
        overlapped_pair: has_pair.then_some(pair),
        ..RankCost::default()
    });
    Ok(Times { stages: costs, ranks: ranks.collect(), layer_costs: lengths.layer_costs })
}

/// Forwards and backwards before they are shared out.
struct Lengths {
    /// By stage: its share, as (part, whole), of a forward and a backward.
    by_stage: Vec<((u64, u64), Duration, Duration)>,
    layer_costs: Option<LayerCosts>,
}

impl Lengths {
    /// Lengths by rank are to be shared out over the rank's stages; those by layer are a stage's own already.
    fn lower(
        file: &File,
        shape: &Shape,
        split: &Split,
        stretch: &Stretch,
        problems: &mut Problems,
    ) -> Result<Self, Broken> {
        let time = file.time.get().ok_or(Broken)?;
        let (rank, zero) = (Each::rank(shape), Duration::ZERO);
        let forward = for_each(&time.forward, "time.forward", zero, rank, problems);
        let backward = for_each(&time.backward, "time.backward", zero, rank, problems);
        let by_layer = layer_time::lower(file, shape, split, problems)?;
        let forward = stretched(file, forward?, &stretch.ranks, problems)?;
        let backward = stretched(file, backward?, &stretch.ranks, problems)?;
        let Some(given) = by_layer else {
            let of_stage = |stage: Stage| {
                let on = shape.rank_of(stage).index();
                (split.shares[stage.index()], forward[on], backward[on])
            };
            return Ok(Self { by_stage: stages(shape).map(of_stage).collect(), layer_costs: None });
        };
        let ranks = stages(shape).map(|stage| stretch.ranks[shape.rank_of(stage).index()]);
        let ranks: Vec<Ratio> = ranks.collect();
        let forward = stretched(file, given.forward, &ranks, problems)?;
        let backward = stretched(file, given.backward, &ranks, problems)?;
        let by_stage =
            forward.into_iter().zip(backward).map(|(forward, backward)| ((1, 1), forward, backward));
        Ok(Self { by_stage: by_stage.collect(), layer_costs: Some(given.costs) })
    }
}

/// Lengths times their factors.
fn stretched(
    file: &File,
    lengths: Vec<Duration>,
    by: &[Ratio],
    problems: &mut Problems,
) -> Result<Vec<Duration>, Broken> {
    let longer = lengths.into_iter().zip(by).map(|(length, ratio)| ratio.apply(length));
    longer.collect::<Option<Vec<Duration>>>().ok_or_else(|| {
        problems.push(too_long(file));
        Broken
    })
}

/// What slow ranks or large micro-batches have made of a length does not fit.
fn too_long(file: &File) -> Diagnostic {
    let span = file.efficiency.span().or(file.jitter.span()).unwrap_or(Span::FILE);
    Diagnostic::new(span, "these factors make lengths that do not fit into 584 years")
}

/// The weight gradient's part of a rank's backward on one stage, rounded once from the exact product. It is at
/// most the stage's rounded backward, since rounding keeps the order.
fn weight_gradient(
    time: &Time,
    (part, whole): (u64, u64),
    backward: Duration,
    fraction: Share,
    problems: &mut Problems,
) -> Result<u64, Broken> {
    let product = |a: u64, b: u64| u128::from(a) * u128::from(b);
    let numerator = product(part, fraction.numerator).checked_mul(u128::from(backward.as_nanos()));
    if let Some(numerator) = numerator {
        return Ok(round_half_even(numerator, product(whole, fraction.denominator)) as u64);
    }
    // Without the key the share is one half, which always fits.
    let span = time.weight_gradient_fraction.span().unwrap_or(Span::FILE);
    let message = "`time.weight_gradient_fraction`: too many digits for a backward of this length";
    problems.push(Diagnostic::new(span, message).help("write a fraction such as `\"1/3\"`"));
    Err(Broken)
}

/// How much each micro-batch costs, as (numerator, denominator); empty if they are all alike.
pub(super) fn lower_scale(
    file: &File,
    shape: &Shape,
    problems: &mut Problems,
) -> Result<Vec<(u64, u64)>, Broken> {
    let time = file.time.get().ok_or(Broken)?;
    if time.micro_batch_scale.is_absent() {
        return Ok(Vec::new());
    }
    let each = Each { count: shape.micro_batches(), one: "micro-batch" };
    let path = "time.micro_batch_scale";
    let scale = for_each(&time.micro_batch_scale, path, AboveZero(Factor::ONE), each, problems)?;
    let fraction = |scale: AboveZero| (scale.0.numerator, scale.0.denominator);
    Ok(scale.into_iter().map(fraction).collect())
}

/// How long a stage's messages to its neighbours are on the link.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sent {
    pub activation: Duration,
    pub gradient: Duration,
}

/// The messages of each stage. Those that are never sent (at the model's ends, on one rank) have length zero.
pub(super) fn lower_messages(
    file: &File,
    shape: &Shape,
    stretch: &Stretch,
    problems: &mut Problems,
) -> Result<Vec<Sent>, Broken> {
    let Some((transfer, _)) = file.transfer.given()? else {
        return Ok(vec![Sent::default(); shape.stages()]);
    };
    let each = Each::boundary(shape);
    let zero = Duration::ZERO;
    let activation = for_each(&transfer.activation, "transfer.activation", zero, each, problems);
    let gradient = for_each(&transfer.gradient, "transfer.gradient", zero, each, problems);
    let (activation, gradient) = (activation?, gradient?);
    let longest = |times: &[Duration]| times.iter().copied().max().unwrap_or(zero);
    let around = |times: &[Duration]| transfer.wraparound.or(longest(times)).ok_or(Broken);
    let (far_activation, far_gradient) = (around(&activation)?, around(&gradient)?);
    let longer = |times: Vec<Duration>| -> Option<Vec<Duration>> {
        times.into_iter().zip(&stretch.boundaries).map(|(time, ratio)| ratio.apply(time)).collect()
    };
    let far = |time| stretch.wraparound.apply(time);
    let (Some(activation), Some(gradient), Some(far_activation), Some(far_gradient)) =
        (longer(activation), longer(gradient), far(far_activation), far(far_gradient))
    else {
        problems.push(too_long(file));
        return Err(Broken);
    };
    let sent = stages(shape).map(|stage| Sent {
        activation: hop(shape, stage, shape.next(stage), &activation, far_activation),
        gradient: hop(shape, stage, shape.previous(stage), &gradient, far_gradient),
    });
    Ok(sent.collect())
}

/// What holds between the ranks of two stages: the boundary's value for neighbours, `far` for others, the
/// default (nothing) on one rank or where there is no other stage.
pub(super) fn hop<T: Copy + Default>(
    shape: &Shape,
    from: Stage,
    to: Option<Stage>,
    boundaries: &[T],
    far: T,
) -> T {
    let Some(to) = to else {
        return T::default();
    };
    let (a, b) = (shape.rank_of(from).index(), shape.rank_of(to).index());
    match a.abs_diff(b) {
        0 => T::default(),
        1 => boundaries[a.min(b)],
        _ => far,
    }
}

/// The rules that are one word each, and the setup.
pub(super) struct Rules {
    pub setup: Duration,
    pub links: Links,
    pub arbitration: Arbitration,
    pub update_after: UpdateAfter,
}

/// The rules of a file.
pub(super) fn lower_rules(file: &File) -> Result<Rules, Broken> {
    let transfer = file.transfer.get();
    let links = transfer.map_or(Some(Word(Links::default())), |t| t.links.or(Word(Links::default())));
    let fifo = Word(Arbitration::default());
    let arbitration = transfer.map_or(Some(fifo), |transfer| transfer.arbitration.or(fifo));
    let pipeline = file.pipeline.get().ok_or(Broken)?;
    let time = file.time.get().ok_or(Broken)?;
    let update_after = pipeline.update_after.or(Word(UpdateAfter::default()));
    Ok(Rules {
        setup: time.setup.or(Duration::ZERO).ok_or(Broken)?,
        links: links.ok_or(Broken)?.0,
        arbitration: arbitration.ok_or(Broken)?.0,
        update_after: update_after.ok_or(Broken)?.0,
    })
}
