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

pub(crate) use crate::read::Broken;
pub(crate) use job::lower_job;
pub(crate) use model::{Models, lower_model};
pub(crate) use rl::lower_rl;
pub(crate) use shape::Fit;

use pipestep_model::Activations;
use pipestep_schedule::Shape;
use pipestep_step::{Costs, InputError, Inputs, Message, RankCost, StageCost};

use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::File;
use crate::read::{Key, OneOrList, Problems};
use crate::scenario::Fitting;
use crate::step::{LayerCosts, StepScenario};
use layers::Split;
use memory::StepBytes;
use model::LoweredModel;
use stretch::Stretch;
use time::{Rules, Sent, Times};

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
    let (pipeline, planned) = (pipeline.ok()?, planned.ok()?);
    let shape = &planned.shape;
    let layers_of = |(activations, _): &(Activations, Span)| activations.model.layers;
    let split = match model {
        Ok(model) => layers::split(pipeline, &planned, model.as_ref().map(layers_of), problems),
        Err(Broken) => Err(Broken),
    };
    // Without a split, lists and links can still be checked.
    let usable = split.as_ref().map_or_else(|_| Split::even(shape), Clone::clone);
    let stretch = stretch::lower(file, shape, models, problems);
    let jitter = jitter::lower(file, shape, files, problems);
    let stretch = stretch.as_ref().map_err(|&Broken| Broken);
    let costs = lower_costs(file, shape, &usable, model, lengths, stretch, problems);
    let limits = memory::lower_limits(file, shape, problems);
    let rules = time::lower_rules(file);

    let (split, (costs, layer_costs), limits) = (split.ok()?, costs.ok()?, limits.ok()?);
    let inputs = inputs(file, planned.shape, costs, &rules.ok()?, problems)?;
    let size = model.as_ref().ok()?.as_ref().map(|(activations, _)| activations.micro_batch);
    Some(StepScenario {
        order: planned.order,
        inputs,
        budget: limits.budget,
        limit: limits.limit,
        layers: split.layers,
        layer_costs,
        global_batch: pipeline.global_batch.get().map(|batch| batch.0),
        sequences_per_micro_batch: size.map(|size| size.sequences),
        tokens_per_micro_batch: size.and_then(|size| size.sequences.checked_mul(size.tokens)),
        data_parallel: batch::data_parallel(file).ok()?,
        jitter: jitter.ok()?,
        efficiency: stretch.ok()?.efficiency.clone(),
        order_span: planned.order_span,
    })
}

/// What everything takes and holds, but for the setup, and what each layer takes.
fn lower_costs(
    file: &File,
    shape: &Shape,
    split: &Split,
    model: &LoweredModel,
    lengths: Result<(), Broken>,
    stretch: Result<&Stretch, Broken>,
    problems: &mut Problems,
) -> Result<(Costs, Option<LayerCosts>), Broken> {
    let times = lengths.and(stretch).and_then(|stretch| time::lower(file, shape, split, stretch, problems));
    let messages = stretch.and_then(|stretch| time::lower_messages(file, shape, stretch, problems));
    let memory = memory::lower(file, shape, split, model, problems);
    let scale = time::lower_scale(file, shape, problems);
    let (mut times, messages, memory) = (times?, messages?, memory?);
    let layer_costs = times.layer_costs.take();
    let costs = costs(shape, times, &messages, &memory);
    Ok((Costs { micro_batch_scale: scale?, ..costs }, layer_costs))
}

/// The lengths and the bytes of stages and ranks, put together.
fn costs(shape: &Shape, times: Times, messages: &[Sent], memory: &StepBytes) -> Costs {
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
        ..Costs::default()
    }
}

/// Shape, costs and rules, put together; `None` after reporting sums that are too large.
fn inputs(file: &File, shape: Shape, costs: Costs, rules: &Rules, problems: &mut Problems) -> Option<Inputs> {
    match Inputs::new(shape, Costs { setup: rules.setup, ..costs }) {
        Ok(mut inputs) => {
            (inputs.links, inputs.arbitration) = (rules.links, rules.arbitration);
            inputs.update_after = rules.update_after;
            Some(inputs)
        }
        Err(error) => {
            problems.push(refused_inputs(file, &error));
            None
        }
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
