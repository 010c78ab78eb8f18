//! From what is written to what is meant: defaults, shares of layers, and every check that spans two keys.
//!
//! Each part is lowered on its own, so that a mistake in one does not hide one in another; a part that is
//! [`Broken`] has already been reported.

mod batch;
mod change;
mod config;
mod held;
mod jitter;
mod job;
mod layer_time;
mod layers;
mod memory;
mod model;
mod order_file;
mod rl;
mod shape;
mod snapshots;
mod stretch;
mod time;
mod values;

pub(crate) use job::lower_job;
pub(crate) use model::{Models, lower_model};
pub(crate) use rl::lower_rl;
pub(crate) use shape::Fit;

use pipestep_engine::Duration;
use pipestep_schedule::Shape;
use pipestep_step::{Costs, InputError, Inputs, Message, RankCost, StageCost};

use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::File;
use crate::read::{Key, OneOrList, Problems};
use crate::scenario::Fitting;
use crate::step::StepScenario;
use layers::Split;
use memory::StepBytes;
use time::{Sent, Times};

/// Something is wrong and has been reported.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Broken;

/// The step that a file describes, or `None` after reporting what is wrong. The file has a `[pipeline]`.
pub(crate) fn lower_step(
    file: &File,
    models: &Models,
    fitting: &Fitting,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Option<StepScenario> {
    let model = &models.activations;
    let pipeline = file.pipeline.get().ok_or(Broken);
    let planned = pipeline.and_then(|pipeline| shape::lower(file, pipeline, fitting, files, problems));
    if let (Key::Absent, Some(span)) = (&file.time, file.pipeline.span()) {
        let problem = Diagnostic::new(span, "a step needs `[time]`: how long its operations are");
        problems.push(problem.help("write\n\n[time]\nforward = \"10 ms\"\nbackward = \"20 ms\""));
    }
    let lengths = layer_time::check(file, problems);
    let planned = planned.ok()?;
    let shape = &planned.shape;
    let of_model = model.as_ref().map(|model| model.as_ref().map(|(model, _)| model.model.layers));
    let split = match of_model {
        Ok(count) => layers::split(pipeline.ok()?, &planned, count, problems),
        Err(&Broken) => Err(Broken),
    };
    // Without a split, lists and links can still be checked.
    let usable = split.as_ref().map_or_else(|_| Split::even(shape), Clone::clone);
    let stretch = stretch::lower(file, shape, models, problems);
    let jitter = jitter::lower(file, shape, files, problems);
    let stretch = stretch.as_ref();
    let times = lengths
        .and(stretch.map_err(|&Broken| Broken))
        .and_then(|stretch| time::lower(file, shape, &usable, stretch, problems));
    let messages = stretch
        .map_err(|&Broken| Broken)
        .and_then(|stretch| time::lower_messages(file, shape, stretch, problems));
    let memory = memory::lower(file, shape, &usable, model, problems);
    let limits = memory::lower_limits(file, shape, problems);
    let scale = time::lower_scale(file, shape, problems);
    let rules = time::lower_rules(file);

    let (split, times, memory, rules) = (split.ok()?, times.ok()?, memory.ok()?, rules.ok()?);
    let layer_costs = times.layer_costs.clone();
    let mut costs = costs(shape, times, &messages.ok()?, &memory, rules.setup);
    costs.micro_batch_scale = scale.ok()?;
    let mut inputs = match Inputs::new(planned.shape, costs) {
        Ok(inputs) => inputs,
        Err(error) => {
            problems.push(refused_inputs(file, &error));
            return None;
        }
    };
    (inputs.links, inputs.arbitration) = (rules.links, rules.arbitration);
    inputs.update_after = rules.update_after;
    let limits = limits.ok()?;
    Some(StepScenario {
        order: planned.order,
        inputs,
        budget: limits.budget,
        limit: limits.limit,
        layers: split.layers,
        layer_costs,
        data_parallel: batch::data_parallel(file).ok()?,
        jitter: jitter.ok()?,
        efficiency: stretch.ok()?.efficiency.clone(),
        global_batch: pipeline.ok()?.global_batch.get().map(|batch| batch.0),
        sequences_per_micro_batch: model
            .as_ref()
            .ok()?
            .as_ref()
            .map(|(activations, _)| activations.micro_batch.sequences),
        tokens_per_micro_batch: model.as_ref().ok()?.as_ref().and_then(|(activations, _)| {
            let size = activations.micro_batch;
            size.sequences.checked_mul(size.tokens)
        }),
        order_span: planned.order_span,
    })
}

/// The lengths and the bytes of stages and ranks, put together.
fn costs(shape: &Shape, times: Times, messages: &[Sent], memory: &StepBytes, setup: Duration) -> Costs {
    let stages = layers::stages(shape).zip(times.stages).map(|(stage, times)| {
        let (held, sent) = (&memory.stages[stage.index()], &messages[stage.index()]);
        let message = |time, bytes| Message { time, bytes };
        StageCost {
            saved: held.saved,
            released_at_input_gradient: held.released,
            workspace: held.workspace,
            activation: message(sent.activation, held.activation),
            gradient: message(sent.gradient, held.gradient),
            ..times
        }
    });
    let ranks = times.ranks.into_iter().zip(&memory.held);
    Costs {
        stages: stages.collect(),
        ranks: ranks.map(|(rank, &held)| RankCost { held, ..rank }).collect(),
        setup,
        micro_batch_scale: Vec::new(),
    }
}

/// Sums that do not fit, at the table whose numbers are too large.
fn refused_inputs(file: &File, error: &InputError) -> Diagnostic {
    let table = match error {
        InputError::TooLarge { what: "bytes" } => file.memory.span().or(file.model.span()),
        InputError::TooLarge { .. } => file.time.span(),
        _ => None,
    };
    let span = table.or(file.pipeline.span()).unwrap_or(Span::FILE);
    Diagnostic::new(span, error.to_string())
}

/// What the entries of a list are for.
#[derive(Clone, Copy)]
struct Each {
    /// How many there must be.
    count: usize,
    /// `rank`, `boundary between ranks`, `stage`.
    one: &'static str,
}

impl Each {
    fn rank(shape: &Shape) -> Self {
        Self { count: shape.ranks(), one: "rank" }
    }

    fn boundary(shape: &Shape) -> Self {
        Self { count: shape.ranks() - 1, one: "boundary between ranks" }
    }
}

/// One value for each, from one for all or a list of the right length.
fn for_each<T: Copy>(
    key: &Key<OneOrList<T>>,
    path: &str,
    default: T,
    each: Each,
    problems: &mut Problems,
) -> Result<Vec<T>, Broken> {
    match key {
        Key::Absent => Ok(vec![default; each.count]),
        Key::Broken => Err(Broken),
        Key::Given(OneOrList::One(value), _) => Ok(vec![*value; each.count]),
        Key::Given(OneOrList::List(values), _) if values.len() == each.count => Ok(values.clone()),
        Key::Given(OneOrList::List(values), span) => {
            problems.push(wrong_length(path, *span, values.len(), each));
            Err(Broken)
        }
    }
}

fn wrong_length(path: &str, span: Span, found: usize, each: Each) -> Diagnostic {
    let Each { count, one } = each;
    let message = format!("`{path}`: expected {count} values, one a {one}, found {found}");
    Diagnostic::new(span, message).help(format!("write one value for all, or a list of {count}"))
}
