//! `[memory] include`: what ranks hold for the whole step, counted by the parameters of their stages.

use pipestep_engine::Bytes;
use pipestep_model::{Decoder, GRADIENT_BYTES, ModelError, OPTIMIZER_BYTES, Part, WEIGHT_BYTES};
use pipestep_schedule::Shape;
use pipestep_step::Held;

use super::Broken;
use super::layers::{Split, stages};
use super::memory::parts;
use super::model::LoweredModel;
use crate::diagnostic::Diagnostic;
use crate::format::{self, File, Memory};
use crate::read::{Problems, Word};

/// What `[memory] include` names, by rank.
pub(super) fn held(
    file: &File,
    memory: Option<&Memory>,
    shape: &Shape,
    split: &Split,
    model: &LoweredModel,
    problems: &mut Problems,
) -> Result<Vec<Held>, Broken> {
    let nothing = || Ok(vec![Held::default(); shape.ranks()]);
    let Some(memory) = memory else {
        return nothing();
    };
    let Some((include, span)) = memory.include.given()? else {
        return nothing();
    };
    if include.is_empty() {
        return nothing();
    }
    let Some((activations, model_span)) = model.as_ref().map_err(|&Broken| Broken)? else {
        if file.model.is_absent() {
            let problem = Diagnostic::new(span, "`memory.include` counts parameters and needs a `[model]`");
            problems.push(problem.help("write `[model]` with a `preset`, or leave `include` out"));
        }
        return Err(Broken);
    };
    let layers = split.layers.as_ref().ok_or(Broken)?;
    held_by_rank(shape, &parts(shape, layers), &activations.model, include).map_err(|error| {
        problems.push(Diagnostic::new(*model_span, error.to_string()));
        Broken
    })
}

fn held_by_rank(
    shape: &Shape,
    parts: &[Part],
    model: &Decoder,
    include: &[Word<format::Held>],
) -> Result<Vec<Held>, ModelError> {
    let mut parameters = vec![0_u64; shape.ranks()];
    for (stage, &part) in stages(shape).zip(parts) {
        let of_rank = &mut parameters[shape.rank_of(stage).index()];
        let more = model.part_parameters(part)?;
        *of_rank = of_rank.checked_add(more).ok_or(ModelError::TooLarge { what: "parameters" })?;
    }
    let size = |wanted, bytes, count: u64| {
        let wanted = include.iter().any(|word| word.0 == wanted);
        let count = if wanted { count } else { 0 };
        let size = count.checked_mul(bytes).map(Bytes::new);
        size.ok_or(ModelError::TooLarge { what: "bytes of parameters" })
    };
    let of_rank = |count| {
        Ok(Held {
            weights: size(format::Held::Weights, WEIGHT_BYTES, count)?,
            gradients: size(format::Held::Gradients, GRADIENT_BYTES, count)?,
            optimizer: size(format::Held::Optimizer, OPTIMIZER_BYTES, count)?,
            buckets: Bytes::ZERO,
        })
    };
    parameters.into_iter().map(of_rank).collect()
}
