//! `[memory.change]`: the bytes of a micro-batch as measured, pass by pass.

use pipestep_engine::Bytes;
use pipestep_schedule::{Shape, Stage};

use super::layers::{Split, stages};
use super::{Broken, Each, for_each};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{Change, Memory};
use crate::read::{Key, OneOrList, Problems, SignedBytes};

/// What one stage keeps of a micro-batch, and how much of it its input gradient frees (negative: keeps more).
pub(super) struct StageChange {
    pub saved: Bytes,
    pub released: i64,
}

/// The changes of each stage, if they are written.
pub(super) fn lower(
    memory: Option<&Memory>,
    shape: &Shape,
    split: &Split,
    problems: &mut Problems,
) -> Result<Option<Vec<StageChange>>, Broken> {
    let Some(memory) = memory else {
        return Ok(None);
    };
    let Some((change, _)) = memory.change.given()? else {
        return Ok(None);
    };
    exclude(memory, problems)?;
    let (forward, input) = by_rank(change, shape, problems)?;
    let of_stage = |stage: Stage| {
        let rank = shape.rank_of(stage).index();
        let share = |amount: i64| split.share_of(stage, amount.unsigned_abs());
        let freed = i64::try_from(share(input[rank])).unwrap_or(i64::MAX);
        StageChange {
            saved: Bytes::new(share(forward[rank])),
            released: if input[rank] < 0 { freed } else { -freed },
        }
    };
    Ok(Some(stages(shape).map(of_stage).collect()))
}

/// Reports the other keys for the same bytes.
fn exclude(memory: &Memory, problems: &mut Problems) -> Result<(), Broken> {
    let others = [
        ("saved_per_micro_batch", memory.saved_per_micro_batch.span()),
        ("released_at_input_gradient", memory.released_at_input_gradient.span()),
    ];
    let mut result = Ok(());
    for (name, span) in others {
        if let Some(span) = span {
            let message = format!("`memory.{name}` and `[memory.change]` say the same twice");
            let problem = Diagnostic::new(span, message).related(memory.change.span(), "the changes");
            problems.push(problem.help(format!("leave out `{name}`")));
            result = Err(Broken);
        }
    }
    result
}

/// The changes of forward and input gradient, rank by rank, once they have been found to make sense.
fn by_rank(change: &Change, shape: &Shape, problems: &mut Problems) -> Result<(Vec<i64>, Vec<i64>), Broken> {
    let mut read = |key: &Key<OneOrList<SignedBytes>>, path| {
        let values = for_each(key, path, SignedBytes(0), Each::rank(shape), problems)?;
        Ok(values.into_iter().map(|change| change.0).collect::<Vec<i64>>())
    };
    let forward = read(&change.forward, "memory.change.forward");
    let input = read(&change.input_gradient, "memory.change.input_gradient");
    let weight = read(&change.weight_gradient, "memory.change.weight_gradient");
    let (forward, input, weight) = (forward?, input?, weight?);
    // A missing key has been reported.
    let (Some(forward_at), Some(input_at), Some(weight_at)) =
        (change.forward.span(), change.input_gradient.span(), change.weight_gradient.span())
    else {
        return Err(Broken);
    };
    for rank in 0..shape.ranks() {
        let changes = [forward[rank], input[rank], weight[rank]];
        let problem = refuse(rank, changes, [forward_at, input_at, weight_at]);
        if let Some(problem) = problem {
            problems.push(problem);
            return Err(Broken);
        }
    }
    Ok((forward, input))
}

/// What is wrong with the changes of one rank, if anything.
fn refuse(rank: usize, changes: [i64; 3], spans: [Span; 3]) -> Option<Diagnostic> {
    let [forward, input, weight] = changes.map(i128::from);
    let [forward_at, input_at, weight_at] = spans;
    if forward < 0 {
        let message = format!("`memory.change.forward`: rank {rank} would hold less than nothing");
        return Some(Diagnostic::new(forward_at, message).help("a forward keeps bytes or none"));
    }
    let sum = forward + input + weight;
    if sum != 0 {
        let message = format!(
            "`memory.change`: expected changes that add up to nothing, found {sum} bytes left over on rank {rank}"
        );
        let rest = -(forward + input);
        let problem = Diagnostic::new(weight_at, message)
            .related(Some(forward_at), "what the forward keeps")
            .related(Some(input_at), "what the input gradient changes");
        return Some(problem.help(format!("write `weight_gradient = \"{rest} B\"`")));
    }
    if forward + input < 0 {
        let message =
            format!("`memory.change.input_gradient`: rank {rank} would free more than its forward keeps");
        return Some(Diagnostic::new(input_at, message).related(Some(forward_at), "what it keeps"));
    }
    None
}
