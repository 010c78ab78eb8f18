//! The tables of a job, as `pipestep-job` takes them.

mod checkpoint;
mod faults;
mod input;
mod spares;
mod stragglers;

use pipestep_engine::{Duration, Time};
use pipestep_job::{InputError, JobError, JobInputs, Spread, Storage};

use super::{Broken, Models};
use crate::chance::{Chance, Shape};
use crate::diagnostic::{Diagnostic, Span};
use crate::format::File;
use crate::format::job::{Job, JobTime};
use crate::job::JobScenario;
use crate::read::{Count, Key, Positive, Problems};
use crate::step::StepScenario;
use crate::tree::{Table, find_span};

/// The job of a file, if it has one; `step` is its step, if that could be read.
pub(crate) fn lower_job(
    file: &File,
    root: &Table,
    models: &Models,
    step: Option<&StepScenario>,
    problems: &mut Problems,
) -> Result<Option<JobScenario>, Broken> {
    let Some((job, span)) = file.job.given()? else {
        return Ok(None);
    };
    let work = work(file, job, span, step, problems);
    let storage = lower_storage(file, problems);
    let checkpoint = storage.and_then(|storage| checkpoint::lower(file, models, storage, problems));
    let faults = storage.and_then(|storage| faults::lower(file, storage, problems));
    let stragglers = stragglers::lower(file, problems);
    let input = input::lower(file, problems);
    let (seed, runs) = match &file.faults {
        Key::Absent => (0, 1),
        Key::Broken => return Err(Broken),
        Key::Given(faults, _) => {
            (faults.seed.or(0).ok_or(Broken)?, faults.runs.or(Count(1)).ok_or(Broken)?.0)
        }
    };
    let (work, checkpoint, faults, stragglers) = (work?, checkpoint?, faults?, stragglers?);
    let (checkpoint, save_steps) = checkpoint.unzip();
    let base = JobInputs {
        work: work.time,
        horizon: work.horizon,
        checkpoint,
        faults,
        stragglers,
        input: input?,
        storage: storage?,
        seed,
    };
    let scenario = JobScenario {
        steps: work.steps,
        tokens: work.tokens,
        tokens_per_step: work.tokens_per_step,
        step: job.step.get().copied(),
        start: if job.start.is_broken() { return Err(Broken) } else { job.start.get().copied() },
        set_aside: job.set_aside.or(Duration::ZERO).ok_or(Broken)?,
        runs,
        base,
        save_steps: save_steps.flatten(),
        span,
    };
    check(&scenario, file, root, problems)?;
    Ok(Some(scenario))
}

/// Stands for the length of a step that is yet to be simulated.
const STAND_IN: Duration = Duration::from_nanos(1_000_000_000);

/// Checks what can be checked before the length of a step is known.
fn check(scenario: &JobScenario, file: &File, root: &Table, problems: &mut Problems) -> Result<(), Broken> {
    if scenario.needs_step() && scenario.step.is_none() && file.pipeline.is_absent() {
        let path = match (scenario.tokens, scenario.steps) {
            (Some(_), _) => "job.tokens",
            (None, Some(_)) => "job.steps",
            (None, None) if scenario.save_steps.is_some() => "checkpoint.trigger",
            (None, None) if !file.input.is_absent() => "input.items_per_step",
            (None, None) => "stragglers.ranks",
        };
        let message = format!("`{path}` counts steps, and nothing says how long a step is");
        let problem = Diagnostic::new(find_span(root, path).unwrap_or(scenario.span), message);
        problems
            .push(problem.help("write `step = \"52.8 s\"` in `[job]`, or describe a step with `[pipeline]`"));
        return Err(Broken);
    }
    if scenario.step == Some(Duration::ZERO) {
        let span = find_span(root, "job.step").unwrap_or(scenario.span);
        problems.push(Diagnostic::new(span, "`job.step` is zero, expected more than zero"));
        return Err(Broken);
    }
    match scenario.inputs(Some(STAND_IN)) {
        Ok(_) => Ok(()),
        // Whether these hold depends on the length of the step, if that is not written.
        Err(JobError::Overflow(_) | JobError::Input(InputError::Overhead { .. }))
            if scenario.step.is_none() =>
        {
            Ok(())
        }
        Err(error) => {
            let span = place_of(&error, root).unwrap_or(scenario.span);
            problems.push(Diagnostic::new(span, error.to_string()));
            Err(Broken)
        }
    }
}

/// Where the keys stand that an error is about.
fn place_of(error: &JobError, root: &Table) -> Option<Span> {
    let JobError::Input(error) = error else {
        return find_span(root, "job.steps");
    };
    let path = match error {
        InputError::Zero { what }
        | InputError::Share { what, .. }
        | InputError::Distribution { what, .. }
        | InputError::NoSize { what }
        | InputError::NoStep { what }
        | InputError::NoStorage { what }
        | InputError::NoCheckpoint { what }
        | InputError::TooManyTaken { what, .. }
        | InputError::NeverWritten { what, .. }
        | InputError::Empty { what } => what,
        InputError::Buffer { .. } => "checkpoint.buffer_size",
        InputError::EmptyWindow { .. } | InputError::FactorBelowOne { .. } | InputError::FactorsTooFine => {
            "stragglers.windows"
        }
        InputError::Overhead { .. } => "stragglers.overhead",
        InputError::Prefetch { .. } => "input.prefetch",
        InputError::TooManyStopped { .. } => "input.stops",
        InputError::SampleTooLong { .. } => "input.packing.samples",
        InputError::NoDetection => "stragglers.response",
        InputError::FewReplicas { .. } => "faults.spares.min_replicas",
        _ => "job",
    };
    find_span(root, path)
}

/// What there is to do.
struct Work {
    time: Option<Duration>,
    steps: Option<u64>,
    tokens: Option<u64>,
    tokens_per_step: Option<u64>,
    horizon: Option<Time>,
}

fn work(
    file: &File,
    job: &Job,
    whole: Span,
    step: Option<&StepScenario>,
    problems: &mut Problems,
) -> Result<Work, Broken> {
    let told = [("work", job.work.span()), ("steps", job.steps.span()), ("tokens", job.tokens.span())];
    let mut told = told.into_iter().filter_map(|(name, span)| Some((name, span?)));
    if let (Some((first, first_at)), Some((second, second_at))) = (told.next(), told.next()) {
        let message = format!("`job.{second}`: the work is already given by `{first}`");
        let problem = Diagnostic::new(second_at, message).related(Some(first_at), "the work");
        problems.push(problem.help("leave one of them out"));
        return Err(Broken);
    }
    if let (Some(given), Some(pipeline)) = (job.step.span(), file.pipeline.span()) {
        let message = "`job.step` stands instead of a simulated step, but there is a `[pipeline]`";
        let problem = Diagnostic::new(given, message).related(Some(pipeline), "the step");
        problems.push(problem.help("leave out `step` or `[pipeline]`"));
        return Err(Broken);
    }
    let keys = [&job.work, &job.step, &job.horizon];
    let counts = [&job.steps, &job.tokens, &job.tokens_per_step];
    if keys.iter().any(|key| key.is_broken()) || counts.iter().any(|key| key.is_broken()) {
        return Err(Broken);
    }
    let number = |key: &Key<Positive>| key.get().map(|number| number.0);
    let tokens_per_step = number(&job.tokens_per_step).or_else(|| step?.tokens());
    let steps = match (number(&job.tokens), tokens_per_step) {
        (Some(tokens), Some(each)) => Some(tokens.div_ceil(each)),
        // A step that could not be read may have had tokens.
        (Some(_), None) if step.is_none() && !file.pipeline.is_absent() => return Err(Broken),
        (Some(_), None) => {
            let span = job.tokens.span().unwrap_or(whole);
            let problem = Diagnostic::new(span, "`job.tokens`: nothing says how many tokens a step has");
            problems.push(problem.help("write `tokens_per_step = 3145728`"));
            return Err(Broken);
        }
        (None, _) => number(&job.steps),
    };
    Ok(Work {
        time: job.work.get().copied(),
        steps,
        tokens: number(&job.tokens),
        tokens_per_step,
        horizon: job.horizon.get().map(|horizon| Time::from_nanos(horizon.as_nanos())),
    })
}

/// The storage of a file.
fn lower_storage(file: &File, problems: &mut Problems) -> Result<Option<Storage>, Broken> {
    let Some((storage, span)) = file.storage.given()? else {
        return Ok(None);
    };
    if storage.preset.is_broken() || storage.read.is_broken() || storage.write.is_broken() {
        return Err(Broken);
    }
    let preset = storage.preset.get().map(|preset| preset.0);
    let read = storage.read.get().copied().or(preset.map(|preset| preset.read));
    let write = storage.write.get().copied().or(preset.map(|preset| preset.write));
    if let (Some(read), Some(write)) = (read, write) {
        return Ok(Some(Storage { read, write }));
    }
    let problem = Diagnostic::new(span, "`[storage]` needs a `preset`, or `read` and `write`");
    problems.push(problem.help("write `preset = \"superpod-good-1su\"`"));
    Err(Broken)
}

/// A length of time, fixed or drawn.
fn spread(chance: &Chance<JobTime>) -> Result<Spread, Broken> {
    // The families that a `JobTime` can be are those of a `Spread`.
    Ok(match chance.shape {
        Shape::Fixed(length) => Spread::Fixed(length),
        Shape::Exponential { mean } => Spread::Exponential { mean },
        Shape::Weibull { mean, shape } => Spread::Weibull { mean, shape },
        Shape::LognormalMean { mean, variation } => Spread::Lognormal { mean, variation },
        Shape::LognormalMedian { median, sigma } => {
            let square = sigma * sigma;
            let mean = (median.as_nanos() as f64 * (square / 2.0).exp()).round();
            Spread::Lognormal { mean: Duration::from_nanos(mean as u64), variation: square.exp_m1().sqrt() }
        }
        Shape::Normal { mean, deviation } => Spread::Normal { mean, deviation },
        Shape::Uniform { low, high } => Spread::Uniform { low, high },
        Shape::Pareto { .. } | Shape::Empirical(_) | Shape::List(_) => return Err(Broken),
    })
}

/// The same where a plain time is the mean of an exponential distribution: between failures.
fn between(chance: &Chance<JobTime>) -> Result<Spread, Broken> {
    Ok(match spread(chance)? {
        Spread::Fixed(mean) => Spread::Exponential { mean },
        other => other,
    })
}

/// A length of time that may be left out.
fn spread_or(key: &Key<Chance<JobTime>>, default: Spread) -> Result<Spread, Broken> {
    match key {
        Key::Absent => Ok(default),
        Key::Broken => Err(Broken),
        Key::Given(chance, _) => spread(chance),
    }
}
