//! `[memory]`, and the bytes that `[model]` stands for: what stages and ranks hold, and the budget.

use pipestep_engine::Bytes;
use pipestep_model::{Activations, Decoder, GRADIENT_BYTES, ModelError, OPTIMIZER_BYTES, Part, WEIGHT_BYTES};
use pipestep_schedule::{Shape, Stage};
use pipestep_step::{Held, round_half_even};

use super::layers::{Split, stages};
use super::model::{LoweredModel, extra_saved};
use super::time::hop;
use super::{Broken, Each, for_each};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{self, File, Memory};
use crate::read::{Key, Problems, Word};
use crate::units::Share;

/// Bytes of one micro-batch on one stage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StageBytes {
    pub saved: Bytes,
    pub released: i64,
    pub workspace: Bytes,
    pub activation: Bytes,
    pub gradient: Bytes,
}

/// Bytes of stages, and of ranks for the whole step.
pub(super) struct StepBytes {
    pub stages: Vec<StageBytes>,
    pub held: Vec<Held>,
}

/// All byte counts of a step.
pub(super) fn lower(
    file: &File,
    shape: &Shape,
    split: &Split,
    model: &LoweredModel,
    problems: &mut Problems,
) -> Result<StepBytes, Broken> {
    let memory = match &file.memory {
        Key::Absent => None,
        Key::Broken => return Err(Broken),
        Key::Given(memory, _) => Some(memory),
    };
    let excluded = exclude(file, memory, problems);
    let released = memory.map_or(Some(Share::ZERO), |memory| {
        memory.released_at_input_gradient.or(Share::ZERO)
    });
    let from_model = match model {
        Err(Broken) => Err(Broken),
        Ok(Some((activations, span))) => of_model(file, shape, split, activations, *span, problems),
        Ok(None) => without_model(memory, shape, split, problems),
    };
    let held = held(file, memory, shape, split, model, problems);
    excluded?;
    let (mut stages, released) = (from_model?, released.ok_or(Broken)?);
    for stage in &mut stages {
        stage.released = release(stage.saved, released);
    }
    Ok(StepBytes { stages, held: held? })
}

/// What each rank may hold, if the file says.
pub(super) fn lower_budget(
    file: &File,
    shape: &Shape,
    problems: &mut Problems,
) -> Result<Option<Vec<Bytes>>, Broken> {
    match file.memory.get() {
        Some(memory) if !memory.budget.is_absent() => for_each(
            &memory.budget,
            "memory.budget",
            Bytes::ZERO,
            Each::rank(shape),
            problems,
        )
        .map(Some),
        _ => Ok(None),
    }
}

/// The rounded share of saved bytes. A step with more than 2^63 bytes is refused by its inputs.
fn release(saved: Bytes, share: Share) -> i64 {
    let product = u128::from(saved.get()) * u128::from(share.numerator);
    let released = round_half_even(product, u128::from(share.denominator));
    i64::try_from(released).unwrap_or(i64::MAX)
}

/// Reports byte counts that are written although a model gives them.
fn exclude(file: &File, memory: Option<&Memory>, problems: &mut Problems) -> Result<(), Broken> {
    let (Some(memory), Some(model)) = (memory, file.model.span()) else {
        return Ok(());
    };
    let given = [
        ("saved_per_micro_batch", memory.saved_per_micro_batch.span()),
        ("activation_message", memory.activation_message.span()),
        ("gradient_message", memory.gradient_message.span()),
    ];
    let mut result = Ok(());
    for (name, span) in given {
        if let Some(span) = span {
            let message = format!("`memory.{name}` stands instead of `[model]`, but there is a `[model]`");
            let problem = Diagnostic::new(span, message).related(Some(model), "the model");
            problems.push(problem.help(format!("leave out `{name}` or `[model]`")));
            result = Err(Broken);
        }
    }
    result
}

/// What each stage holds of the model: its layers, and the ends of the model where they lie.
fn parts(shape: &Shape, layers: &[u64]) -> Vec<Part> {
    let part = |stage: Stage| Part {
        layers: layers[stage.index()],
        embedding: shape.previous(stage).is_none(),
        head: shape.next(stage).is_none(),
    };
    stages(shape).map(part).collect()
}

fn of_model(
    file: &File,
    shape: &Shape,
    split: &Split,
    activations: &Activations,
    span: Span,
    problems: &mut Problems,
) -> Result<Vec<StageBytes>, Broken> {
    let each = Each::rank(shape);
    let extra = for_each(
        extra_saved(file),
        "model.extra_saved",
        Bytes::ZERO,
        each,
        problems,
    )?;
    // Without layers the split is broken, which has been reported.
    let layers = split.layers.as_ref().ok_or(Broken)?;
    let count = || -> Result<Vec<StageBytes>, ModelError> {
        let (activation, gradient) = (activations.activation_message()?, activations.gradient_message()?);
        let parts = parts(shape, layers).into_iter().zip(stages(shape));
        parts
            .map(|(part, stage)| {
                let more = extra[shape.rank_of(stage).index()];
                let saved = Bytes::new(activations.saved_bytes(part)?).plus(more);
                Ok(StageBytes {
                    saved: saved.map_err(|_| ModelError::TooLarge {
                        what: "bytes saved for backward",
                    })?,
                    released: 0,
                    workspace: Bytes::new(activations.workspace_bytes(part)?),
                    activation: Bytes::new(activation),
                    gradient: Bytes::new(gradient),
                })
            })
            .collect()
    };
    count().map_err(|error| {
        problems.push(Diagnostic::new(span, error.to_string()));
        Broken
    })
}

fn without_model(
    memory: Option<&Memory>,
    shape: &Shape,
    split: &Split,
    problems: &mut Problems,
) -> Result<Vec<StageBytes>, Broken> {
    let Some(memory) = memory else {
        return Ok(vec![StageBytes::default(); shape.stages()]);
    };
    let (rank, boundary) = (Each::rank(shape), Each::boundary(shape));
    let zero = Bytes::ZERO;
    let saved = for_each(
        &memory.saved_per_micro_batch,
        "memory.saved_per_micro_batch",
        zero,
        rank,
        problems,
    );
    let path = "memory.activation_message";
    let activation = for_each(&memory.activation_message, path, zero, boundary, problems);
    let gradient = for_each(
        &memory.gradient_message,
        "memory.gradient_message",
        zero,
        boundary,
        problems,
    );
    let (saved, activation, gradient) = (saved?, activation?, gradient?);
    let largest = |sizes: &[Bytes]| sizes.iter().copied().max().unwrap_or(zero);
    let (far_activation, far_gradient) = (largest(&activation), largest(&gradient));
    let of_stage = |stage: Stage| StageBytes {
        saved: Bytes::new(split.share_of(stage, saved[shape.rank_of(stage).index()].get())),
        released: 0,
        workspace: zero,
        activation: hop(shape, stage, shape.next(stage), &activation, far_activation),
        gradient: hop(shape, stage, shape.previous(stage), &gradient, far_gradient),
    };
    Ok(stages(shape).map(of_stage).collect())
}

/// What `[memory] include` names, by rank.
fn held(
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
    let (include, span) = match &memory.include {
        Key::Absent => return nothing(),
        Key::Broken => return Err(Broken),
        Key::Given(include, span) => (include, *span),
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
        *of_rank = of_rank
            .checked_add(more)
            .ok_or(ModelError::TooLarge { what: "parameters" })?;
    }
    let size = |wanted, bytes, count: u64| {
        let wanted = include.iter().any(|word| word.0 == wanted);
        let count = if wanted { count } else { 0 };
        let size = count.checked_mul(bytes).map(Bytes::new);
        size.ok_or(ModelError::TooLarge {
            what: "bytes of parameters",
        })
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
