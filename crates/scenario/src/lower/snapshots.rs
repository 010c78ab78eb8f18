//! Checkpoint buffers on the device: what each rank holds of them for the whole step.

use pipestep_engine::Bytes;
use pipestep_model::{OPTIMIZER_BYTES, WEIGHT_BYTES};
use pipestep_schedule::Shape;

use super::layers::{Split, stages};
use super::memory::parts;
use super::model::LoweredModel;
use super::{Broken, Each};
use crate::diagnostic::Diagnostic;
use crate::format::File;
use crate::format::job::{BacklogWord, BufferPlace, SaveMode};
use crate::read::{Count, Key, Problems, Word};

/// By rank, the bytes of all its snapshot buffers; nothing where they are on the host.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    split: &Split,
    model: &LoweredModel,
    problems: &mut Problems,
) -> Result<Vec<Bytes>, Broken> {
    let nothing = || Ok(vec![Bytes::ZERO; shape.ranks()]);
    let Key::Given(checkpoint, span) = &file.checkpoint else {
        // A broken one has been reported, and holds nothing.
        return nothing();
    };
    let place = checkpoint.buffers_on.or(Word(BufferPlace::Host)).ok_or(Broken)?.0;
    let is_sync = checkpoint.mode.get().is_some_and(|mode| mode.0 == SaveMode::Sync);
    // That a synchronous save has no buffers is said with the job.
    if place == BufferPlace::Host || is_sync {
        return nothing();
    }
    let backlog = checkpoint.backlog.or(Word(BacklogWord::Block)).ok_or(Broken)?.0;
    if backlog == BacklogWord::Queue {
        let at = checkpoint.buffers_on.span().unwrap_or(*span);
        let message = "`checkpoint.buffers_on`: a queue has as many buffers as it takes, a device has not";
        let problem = Diagnostic::new(at, message).related(checkpoint.backlog.span(), "the queue");
        problems.push(problem.help("choose `block`, `skip` or `replace`, with `buffers`"));
        return Err(Broken);
    }
    let buffers = u64::from(checkpoint.buffers.or(Count(2)).ok_or(Broken)?.0);
    if checkpoint.size.is_broken() {
        return Err(Broken);
    }
    let weights = weights(shape, split, model)?;
    let size = checkpoint.size.get().map(|size| u128::from(size.get()));
    let all: u128 = weights.iter().sum();
    let of_rank = |weight: u128| {
        let one = match size {
            None => weight,
            // A rank's part of the whole, rounded up.
            Some(size) => size.checked_mul(weight)?.div_ceil(all.max(1)),
        };
        u64::try_from(one).ok()?.checked_mul(buffers).map(Bytes::new)
    };
    // Without a model or a size the job is refused.
    if size.is_none() && matches!(model, Ok(None)) {
        return nothing();
    }
    weights.into_iter().map(of_rank).collect::<Option<_>>().ok_or_else(|| {
        problems.push(Diagnostic::new(*span, "`[checkpoint]`: the buffers of a rank exceed 64 bits"));
        Broken
    })
}

/// What each rank's part of a checkpoint goes by: the bytes of its parameters, or one each without a model.
fn weights(shape: &Shape, split: &Split, model: &LoweredModel) -> Result<Vec<u128>, Broken> {
    let Some((activations, _)) = model.as_ref().map_err(|&Broken| Broken)? else {
        return Ok(vec![1; Each::rank(shape).count]);
    };
    let layers = split.layers.as_ref().ok_or(Broken)?;
    let mut bytes = vec![0_u128; shape.ranks()];
    for (stage, part) in stages(shape).zip(parts(shape, layers)) {
        // A model that is too large has been reported with what it keeps.
        let parameters = activations.model.part_parameters(part).map_err(|_| Broken)?;
        let part = u128::from(parameters) * u128::from(WEIGHT_BYTES + OPTIMIZER_BYTES);
        bytes[shape.rank_of(stage).index()] += part;
    }
    Ok(bytes)
}
