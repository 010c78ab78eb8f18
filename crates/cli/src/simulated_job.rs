//! One scenario's job, simulated: run 0 in full, and all runs in brief on all cores.

use std::num::NonZero;
use std::thread;

use anyhow::{Context, Result};
use pipestep_engine::Duration;
use pipestep_job::{Detail, JobError, JobInputs, JobOutcome, simulate};
use pipestep_report::{JobTarget, JobView};
use pipestep_scenario::Scenario;

/// A simulated job.
pub(crate) struct SimulatedJob {
    name: String,
    inputs: JobInputs,
    target: JobTarget,
    outcome: JobOutcome,
    runs: Vec<JobOutcome>,
}

impl SimulatedJob {
    /// Simulates the job of a scenario; `step` is the length of its step, if it has one. It is run as often as was
    /// asked for on the command line, or as `[faults]` says.
    ///
    /// # Errors
    /// A job that never ends, or that needs a step that there is none of, at its place in the file.
    pub(crate) fn new(scenario: &Scenario, step: Option<Duration>, asked_for: Option<u32>) -> Result<Self> {
        let job = scenario.job.as_ref();
        let job = job.with_context(|| format!("`{}` describes no job: it has no `[job]`", scenario.name))?;
        let refused = |error: JobError| scenario.refused_job(&error);
        let inputs = job.inputs(step).map_err(refused)?;
        let outcome = simulate(&inputs, 0, Detail::Full).map_err(refused)?;
        let count = asked_for.unwrap_or(job.runs);
        let runs = if count > 1 { all_runs(&inputs, u64::from(count)).map_err(refused)? } else { vec![] };
        let target = JobTarget {
            step: job.step.or(step),
            steps: job.steps,
            tokens: job.tokens.zip(job.tokens_per_step),
            start: job.start,
            set_aside: job.set_aside,
        };
        Ok(Self { name: scenario.name.clone(), inputs, target, outcome, runs })
    }

    /// The job as a report sees it.
    pub(crate) fn view(&self) -> JobView<'_> {
        JobView {
            name: &self.name,
            inputs: &self.inputs,
            target: &self.target,
            outcome: &self.outcome,
            runs: &self.runs,
        }
    }
}

/// All runs by their number. Which thread makes which run changes nothing: a run depends on its number only.
fn all_runs(inputs: &JobInputs, count: u64) -> Result<Vec<JobOutcome>, JobError> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get) as u64;
    let part = count.div_ceil(threads).max(1);
    let run_part = |first: u64| {
        let numbers = first..(first + part).min(count);
        numbers.map(|run| simulate(inputs, run, Detail::Summary)).collect::<Result<Vec<_>, _>>()
    };
    thread::scope(|scope| {
        let firsts = (0..count).step_by(part as usize);
        let started: Vec<_> = firsts.map(|first| scope.spawn(move || run_part(first))).collect();
        let mut runs = Vec::with_capacity(count as usize);
        for thread in started {
            runs.extend(thread.join().expect("a simulation never panics")?);
        }
        Ok(runs)
    })
}
