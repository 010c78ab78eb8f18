//! `[memory]`, and the bytes that `[model]` stands for: what stages and ranks hold, and the budget.

use pipestep_engine::Bytes;
use pipestep_model::{Activations, ModelError, Part};
use pipestep_schedule::{Shape, Stage};
use pipestep_step::{Held, round_half_even};

use super::change;
use super::held::held;
use super::layers::{self, Split, stages};
use super::model::{LoweredModel, extra_saved};
use super::time::hop;
use super::{Broken, Each, for_each, snapshots};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::{File, FirstInputGradient, Memory};
use crate::read::{Key, OneOrList, Problems};
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
    let released =
        memory.map_or(Some(Share::ZERO), |memory| memory.released_at_input_gradient.or(Share::ZERO));
    let changes = change::lower(memory, shape, split, problems);
    let from_model = match model {
        Err(Broken) => Err(Broken),
        Ok(Some((activations, span))) => of_model(file, shape, split, activations, *span, problems),
        Ok(None) => without_model(memory, shape, split, problems),
    };
    let held = held(file, memory, shape, split, model, problems);
    let snapshots = snapshots::lower(file, shape, split, model, problems);
    excluded?;
    let (mut stages, released) = (from_model?, released.ok_or(Broken)?);
    for stage in &mut stages {
        stage.released = release(stage.saved, released);
    }
    if let Some(changes) = changes? {
        for (stage, change) in stages.iter_mut().zip(changes) {
            (stage.saved, stage.released) = (change.saved, change.released);
        }
    }
    if has_no_first_input_gradient(file) {
        let first = layers::stages(shape).filter(|&stage| shape.previous(stage).is_none());
        first.for_each(|stage| stages[stage.index()].released = 0);
    }
    let mut held = held?;
    for (held, snapshots) in held.iter_mut().zip(snapshots?) {
        held.buckets = snapshots;
    }
    Ok(StepBytes { stages, held })
}

/// Whether the input gradient of the first stage is left out.
pub(super) fn has_no_first_input_gradient(file: &File) -> bool {
    let time = file.time.get();
    let written = time.and_then(|time| time.first_stage_input_gradient.get());
    written.is_some_and(|word| word.0 == FirstInputGradient::None)
}

/// What each rank may hold, and what schedules may use of it, if the file says.
pub(super) struct Limits {
    pub budget: Option<Vec<Bytes>>,
    pub limit: Option<Vec<Bytes>>,
}

/// The budget and the limit of a file.
pub(super) fn lower_limits(file: &File, shape: &Shape, problems: &mut Problems) -> Result<Limits, Broken> {
    let Some(memory) = file.memory.get() else {
        return Ok(Limits { budget: None, limit: None });
    };
    let mut by_rank = |key: &Key<OneOrList<Bytes>>, path| match key {
        Key::Absent => Ok(None),
        key => for_each(key, path, Bytes::ZERO, Each::rank(shape), problems).map(Some),
    };
    let (budget, limit) = (by_rank(&memory.budget, "memory.budget"), by_rank(&memory.limit, "memory.limit"));
    let (budget, limit) = (budget?, limit?);
    Ok(Limits { limit: limit.or_else(|| budget.clone()), budget })
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
        ("change", memory.change.span()),
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
pub(super) fn parts(shape: &Shape, layers: &[u64]) -> Vec<Part> {
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
    let extra = for_each(extra_saved(file), "model.extra_saved", Bytes::ZERO, each, problems)?;
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
                    saved: saved.map_err(|_| ModelError::TooLarge { what: "bytes saved for backward" })?,
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
    let saved = for_each(&memory.saved_per_micro_batch, "memory.saved_per_micro_batch", zero, rank, problems);
    let path = "memory.activation_message";
    let activation = for_each(&memory.activation_message, path, zero, boundary, problems);
    let gradient = for_each(&memory.gradient_message, "memory.gradient_message", zero, boundary, problems);
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
