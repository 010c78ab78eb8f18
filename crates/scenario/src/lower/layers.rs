//! How layers are shared out over stages, and each stage's share of its rank.

use pipestep_schedule::{Shape, Stage};
use pipestep_step::round_half_even;

use super::shape::Planned;
use super::{Broken, Each, wrong_length};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::Pipeline;
use crate::read::{Key, OneOrList, Problems};

/// The layers of every stage, all copies of the model together.
#[derive(Clone, Debug)]
pub(super) struct Split {
    /// Layers of each stage, where they are known.
    pub layers: Option<Vec<u64>>,
    /// Each stage's part of its rank's time and bytes, as (part, whole).
    pub shares: Vec<(u64, u64)>,
}

impl Split {
    /// All chunks of a rank alike.
    pub(super) fn even(shape: &Shape) -> Self {
        let chunks = chunks_by_rank(shape);
        let shares = stages(shape).map(|stage| (1, chunks[shape.rank_of(stage).index()].max(1)));
        Self { layers: None, shares: shares.collect() }
    }

    fn by_layers(shape: &Shape, layers: Vec<u64>) -> Self {
        // Each copy of the model has a rank's whole share.
        if shape.copies() > 1 {
            return Self { layers: Some(layers), ..Self::even(shape) };
        }
        let totals = rank_totals(shape, &layers);
        let shares = stages(shape).map(|stage| (layers[stage.index()], totals[shape.rank_of(stage).index()]));
        Self { shares: shares.collect(), layers: Some(layers) }
    }

    /// A stage's share of an amount of its rank, rounded once, half to even.
    pub(super) fn share_of(&self, stage: Stage, amount: u64) -> u64 {
        part_of(self.shares[stage.index()], amount)
    }
}

/// A part of an amount that belongs to a whole, rounded once, half to even.
pub(super) fn part_of((part, whole): (u64, u64), amount: u64) -> u64 {
    // A part is at most the whole, so its share of the amount fits again.
    round_half_even(u128::from(amount) * u128::from(part), u128::from(whole)) as u64
}

/// The stages of a shape, in model order.
pub(super) fn stages(shape: &Shape) -> impl Iterator<Item = Stage> + use<> {
    (0..shape.stages() as u16).map(Stage)
}

/// The split that `[pipeline]` asks for; `of_model` is how many layers there are, where a model says.
pub(super) fn split(
    pipeline: &Pipeline,
    planned: &Planned,
    of_model: Option<u64>,
    problems: &mut Problems,
) -> Result<Split, Broken> {
    let shape = &planned.shape;
    let written_shape = planned.written_shape.as_ref().unwrap_or(shape);
    let (written, span) = match (&pipeline.layers, of_model) {
        (Key::Broken, _) => return Err(Broken),
        (Key::Absent, None) => return Ok(Split::even(shape)),
        (Key::Absent, Some(count)) => {
            let by_rank: Vec<u64> = evenly(count, shape.ranks() as u64).collect();
            return divide(pipeline, shape, &by_rank, problems).map(|layers| Split::by_layers(shape, layers));
        }
        (Key::Given(written, span), _) => (written, *span),
    };
    let one_copy = written_shape.stages() / written_shape.copies();
    let layers = check_list(written, span, one_copy, of_model, problems)?;
    let layers = layers.repeat(written_shape.copies());
    let totals = rank_totals(written_shape, &layers);
    if let Some(rank) = totals.iter().position(|&total| total == 0) {
        let message = format!("`pipeline.layers`: rank {rank} holds no layer at all");
        problems.push(Diagnostic::new(span, message).help("give each rank at least one layer"));
        return Err(Broken);
    }
    let layers = match &planned.written_shape {
        None => layers,
        Some(written) => {
            let copies = written.copies() as u64;
            let by_rank: Vec<u64> = totals.into_iter().map(|total| total / copies).collect();
            divide(pipeline, shape, &by_rank, problems)?
        }
    };
    Ok(Split::by_layers(shape, layers))
}

/// A list of the right length whose sum is the model's.
fn check_list(
    written: &OneOrList<u64>,
    span: Span,
    stages: usize,
    of_model: Option<u64>,
    problems: &mut Problems,
) -> Result<Vec<u64>, Broken> {
    let layers = match written {
        OneOrList::One(count) => vec![*count; stages],
        OneOrList::List(list) if list.len() == stages => list.clone(),
        OneOrList::List(list) => {
            let each = Each { count: stages, one: "stage" };
            problems.push(wrong_length("pipeline.layers", span, list.len(), each));
            return Err(Broken);
        }
    };
    let total: u128 = layers.iter().map(|&count| u128::from(count)).sum();
    let expected = of_model.map_or(total, u128::from);
    if total != expected {
        let message = format!(
            "`pipeline.layers`: expected the model's {expected} layers over {stages} stages, found {total} in all"
        );
        problems.push(Diagnostic::new(span, message).help("leave `layers` out for an even split"));
        return Err(Broken);
    }
    if total > u128::from(u64::MAX) {
        problems.push(Diagnostic::new(span, "`pipeline.layers`: the sum exceeds 64 bits"));
        return Err(Broken);
    }
    Ok(layers)
}

/// Divides each rank's layers evenly over its chunks, the first ones taking one more. Every copy of the model
/// is divided alike.
fn divide(
    pipeline: &Pipeline,
    shape: &Shape,
    by_rank: &[u64],
    problems: &mut Problems,
) -> Result<Vec<u64>, Broken> {
    let chunks = chunks_by_rank(shape);
    if let Some(rank) = (0..by_rank.len()).find(|&rank| by_rank[rank] < chunks[rank]) {
        problems.push(too_few_layers(pipeline, rank, by_rank[rank], chunks[rank]));
        return Err(Broken);
    }
    let parts = by_rank.iter().zip(chunks);
    let mut left: Vec<_> = parts.map(|(&count, chunks)| evenly(count, chunks)).collect();
    let one_copy = stages(shape).take(shape.stages() / shape.copies());
    let layers = one_copy.filter_map(|stage| left[shape.rank_of(stage).index()].next());
    Ok(layers.collect::<Vec<u64>>().repeat(shape.copies()))
}

fn too_few_layers(pipeline: &Pipeline, rank: usize, count: u64, chunks: u64) -> Diagnostic {
    let (key, span, message) = if chunks == 1 {
        ("ranks", pipeline.ranks.span(), format!("no layer is left for rank {rank}"))
    } else {
        let message = format!("rank {rank} has {count} layers, too few for {chunks} chunks");
        ("chunks", pipeline.chunks.span(), message)
    };
    let order = pipeline.schedule.span().or(pipeline.schedule_file.span());
    let span = span.or(order).unwrap_or(Span::FILE);
    Diagnostic::new(span, format!("`pipeline.{key}`: {message}"))
        .help(format!("write fewer `{key}`, or `layers` stage by stage"))
}

/// `count` in `parts` whole parts that differ by at most one, the larger ones first.
fn evenly(count: u64, parts: u64) -> impl Iterator<Item = u64> {
    (0..parts).map(move |part| count / parts + u64::from(part < count % parts))
}

/// The stages of one copy of the model on each rank; a file may give ranks different numbers of them.
fn chunks_by_rank(shape: &Shape) -> Vec<u64> {
    let mut chunks = vec![0; shape.ranks()];
    for stage in stages(shape).take(shape.stages() / shape.copies()) {
        chunks[shape.rank_of(stage).index()] += 1;
    }
    chunks
}

/// The layers of each rank, all its stages together.
fn rank_totals(shape: &Shape, layers: &[u64]) -> Vec<u64> {
    let mut totals = vec![0_u64; shape.ranks()];
    for stage in stages(shape) {
        let total = &mut totals[shape.rank_of(stage).index()];
        *total = total.saturating_add(layers[stage.index()]);
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use pipestep_schedule::Placement;

    #[test]
    fn what_does_not_divide_goes_to_the_first() {
        assert_eq!(evenly(9, 2).collect::<Vec<_>>(), [5, 4]);
        assert_eq!(evenly(126, 16).sum::<u64>(), 126);
        assert_eq!(evenly(3, 3).collect::<Vec<_>>(), [1, 1, 1]);
    }

    #[test]
    fn shares_are_of_the_rank_that_holds_the_stage() {
        let shape = Shape::new(2, 2, 4, Placement::V).expect("small");
        let split = Split::by_layers(&shape, vec![5, 2, 1, 4]);
        assert_eq!(split.shares, [(5, 9), (2, 3), (1, 3), (4, 9)]);
        assert_eq!(split.share_of(Stage(0), 10_000_000), 5_555_556);
        assert_eq!(split.share_of(Stage(3), u64::MAX), 8_198_552_921_648_689_607);
    }

    #[test]
    fn a_copy_of_the_model_has_the_whole_of_a_rank() {
        let shape = Shape::new(2, 1, 4, Placement::Bidirectional).expect("small");
        let split = Split::by_layers(&shape, vec![5, 3, 5, 3]);
        assert_eq!(split.shares, [(1, 1); 4]);
    }
}
