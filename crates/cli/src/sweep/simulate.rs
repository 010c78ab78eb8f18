//! A point's scenario to the numbers of its row: the step, then the job and the rounds that take its length.

use std::cell::RefCell;

use anyhow::Result;
use pipestep_engine::{Duration, Time};
use pipestep_job::Detail;
use pipestep_scenario::{JobScenario, OrderSource, RlScenario, Scenario, StepScenario};
use pipestep_step::{Summaries, Summary};

use super::fields::{Fields, JitterFields, JobFields, RlFields, StepFields};
use crate::simulated_runs::{in_brief, makespans};

/// Simulates every part that a scenario has.
///
/// # Errors
/// A part that is not legal.
pub(crate) fn simulate(scenario: &Scenario) -> Result<Fields> {
    let summary = scenario.step.as_ref().map(summary).transpose()?;
    let length = summary.as_ref().map(|summary| summary.makespan.since(Time::ZERO));
    Ok(Fields {
        step: scenario.step.as_ref().zip(summary.as_ref()).map(|(step, summary)| fields(step, summary)),
        jitter: scenario.step.as_ref().map(jitter_fields).transpose()?.flatten(),
        job: scenario.job.as_ref().map(|job| job_fields(job, length)).transpose()?,
        rl: scenario.rl.as_ref().map(|rl| rl_fields(rl, length)).transpose()?,
    })
}

/// The step itself.
///
/// # Errors
/// As for [`simulate`].
pub(crate) fn summary(step: &StepScenario) -> Result<Summary> {
    // A file that says when messages are posted runs as it stands.
    if let OrderSource::File { orders, comms: Some(comms), .. } = &step.order {
        return Ok(pipestep_step::simulate_comms(&step.inputs, orders, comms)?.0.summary);
    }
    let plan = step.plan()?;
    Ok(SUMMARIES.with_borrow_mut(|summaries| summaries.of(&step.inputs, plan))?)
}

thread_local! {
    /// The memory of the thread's last step, which serves the next one.
    static SUMMARIES: RefCell<Summaries> = RefCell::default();
}

/// The runs of a step whose lengths are drawn.
fn jitter_fields(step: &StepScenario) -> Result<Option<JitterFields>> {
    let Some(jitter) = step.jitter.as_ref().filter(|jitter| jitter.scatters()) else { return Ok(None) };
    let brief = in_brief(&makespans(step, u64::from(jitter.runs))?);
    Ok(brief.map(|[mean, standard_error, p95]| JitterFields { mean, standard_error, p95 }))
}

fn fields(step: &StepScenario, summary: &Summary) -> StepFields {
    let (shape, bubble) = (step.inputs.shape(), summary.bubble());
    let seconds = summary.makespan.since(Time::ZERO).as_secs_f64();
    let tokens = tokens(step).filter(|_| seconds > 0.0);
    StepFields {
        schedule: step.order.name().to_owned(),
        ranks: shape.ranks(),
        chunks: shape.chunks() / shape.copies(),
        micro_batches: shape.micro_batches(),
        makespan_ns: summary.makespan.as_nanos(),
        bubble: [bubble.by_makespan, bubble.by_longest_span, bubble.over_ideal],
        utilisation: summary.utilisation(),
        tokens_per_second: tokens.map(|tokens| tokens / seconds),
        peaks: summary.ranks.iter().map(|rank| rank.peak.bytes).collect(),
        budget: step.budget.clone(),
    }
}

/// The tokens of one step, all copies of the pipeline together, where a model says how many a micro-batch has.
pub(crate) fn tokens(step: &StepScenario) -> Option<f64> {
    let scale = &step.inputs.costs().micro_batch_scale;
    let sizes: f64 = match scale.as_slice() {
        [] => step.inputs.shape().micro_batches() as f64,
        scale => scale.iter().map(|&(numerator, denominator)| numerator as f64 / denominator as f64).sum(),
    };
    Some(step.tokens_per_micro_batch? as f64 * sizes * f64::from(step.data_parallel))
}

/// The mean over the runs of a job, summed in their order.
fn job_fields(job: &JobScenario, step: Option<Duration>) -> Result<JobFields> {
    let inputs = job.inputs(step)?;
    let runs = job.runs.max(1);
    let (mut elapsed, mut useful) = (0.0, 0.0);
    for run in 0..u64::from(runs) {
        let outcome = pipestep_job::simulate(&inputs, run, Detail::Summary)?;
        elapsed += outcome.elapsed.as_nanos() as f64;
        useful += outcome.useful_fraction();
    }
    Ok(JobFields { elapsed_ns: elapsed / f64::from(runs), useful_fraction: useful / f64::from(runs) })
}

fn rl_fields(rl: &RlScenario, step: Option<Duration>) -> Result<RlFields> {
    let outcome = pipestep_rl::simulate(&rl.inputs(step)?)?;
    Ok(RlFields { round_ns: outcome.round.as_nanos(), useful_samples_per_s: outcome.useful_samples_per_s })
}
