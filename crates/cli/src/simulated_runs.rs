//! Many runs of one step whose lengths are drawn, on all cores. A run depends on its number only.

use anyhow::{Context, Result, bail};
use pipestep_engine::Time;
use pipestep_report::StepRuns;
use pipestep_scenario::{Jitter, OrderSource, Scenario, StepScenario};
use pipestep_schedule::{Orders, Plan};
use pipestep_step::{Inputs, Outcome, Replicas, StepError};
use rayon::prelude::*;

use crate::simulated::{Simulated, plan_of};

/// Runs that one thread takes at a time.
const AT_ONCE: u64 = 64;
/// Runs are numbered below this.
const MOST_RUNS: u64 = 1 << 32;

/// The runs of a scenario's step: as many as were asked for on the command line, or as `[jitter]` says. `None`
/// where nothing is drawn.
///
/// # Errors
/// Runs were asked for where nothing is drawn; the schedule's refusal; a run that is too long.
pub(crate) fn step_runs(
    scenario: &Scenario,
    simulated: &Simulated,
    asked_for: Option<u32>,
) -> Result<Option<StepRuns>> {
    let step = scenario.step.as_ref().context("internal error: a step was simulated")?;
    let jitter = step.jitter.as_ref().filter(|jitter| jitter.scatters());
    let jitter = match (jitter, asked_for) {
        (Some(jitter), _) => jitter,
        (None, None) => return Ok(None),
        // The runs may be meant for the job behind the step.
        (None, Some(_)) if scenario.job.is_some() => return Ok(None),
        (None, Some(_)) => bail!("`--runs` needs a `[jitter]` that says how lengths scatter, or a `[job]`"),
    };
    // A refusal is shown with its place in the file.
    plan_of(scenario, step)?;
    let makespans = makespans(step, u64::from(asked_for.unwrap_or(jitter.runs)))?;
    Ok(Some(StepRuns {
        name: scenario.name.clone(),
        seed: jitter.seed,
        makespans: makespans.into_iter().map(|makespan| makespan.since(Time::ZERO)).collect(),
        usual: simulated.view().summary.makespan.since(Time::ZERO),
    }))
}

/// The makespan of each of the first `runs` runs of a step with a `[jitter]`.
///
/// # Errors
/// An order that cannot run; a run that is too long.
pub(crate) fn makespans(step: &StepScenario, runs: u64) -> Result<Vec<Time>> {
    let jitter = step.jitter.as_ref().context("internal error: lengths are drawn by a `[jitter]`")?;
    if let OrderSource::File { comms: Some(_), .. } = &step.order {
        bail!("`[jitter]` does not go with a schedule file that says when messages are posted");
    }
    let replicas = Replicas::new(&step.inputs, jitter)?;
    let firsts: Vec<u64> = (0..runs).step_by(AT_ONCE as usize).collect();
    let parts: Vec<Vec<Time>> = match step.plan()? {
        Plan::Fixed(orders) => firsts
            .into_par_iter()
            .map(|first| Ok(replicas.of_orders(&orders, first..runs.min(first + AT_ONCE))?))
            .collect::<Result<_>>()?,
        // A policy remembers what it has done, so every run has its own.
        Plan::Online(_) => (0..runs)
            .collect::<Vec<u64>>()
            .into_par_iter()
            .map(|run| match step.plan()? {
                Plan::Online(policy) => Ok(vec![replicas.of_policy(policy, run)?]),
                Plan::Fixed(orders) => Ok(replicas.of_orders(&orders, run..run + 1)?),
            })
            .collect::<Result<_>>()?,
    };
    Ok(parts.concat())
}

/// The mean of the makespans in ns, its standard error, and the 95th percentile.
pub(crate) fn in_brief(makespans: &[Time]) -> Option<[f64; 3]> {
    let nanos = makespans.iter().map(|makespan| makespan.as_nanos() as f64).collect::<Vec<_>>();
    let estimate = pipestep_job::Estimate::of(&nanos)?;
    let [.., p95, _] = estimate.percentiles;
    Some([estimate.mean, estimate.standard_error, p95])
}

/// One run of a step whose lengths are drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneRun<'a> {
    jitter: &'a Jitter,
    number: u64,
}

impl<'a> OneRun<'a> {
    /// The run that was asked for; `None` where nothing is drawn.
    ///
    /// # Errors
    /// A run was asked for where nothing is drawn, or none where something is.
    pub(crate) fn new(step: &'a StepScenario, asked_for: Option<u64>) -> Result<Option<Self>> {
        let jitter = step.jitter.as_ref().filter(|jitter| jitter.scatters());
        let (Some(jitter), Some(number)) = (jitter, asked_for) else {
            return match (jitter, asked_for) {
                (None, Some(_)) => bail!("`--run` needs a `[jitter]` that says how lengths scatter"),
                (Some(_), None) => bail!(
                    "`[jitter]` draws the lengths of this step: `--run K` explains run K, from 0; without its \
                     distributions (`rank_factor` and `link_factor` may stay) the step is always the same"
                ),
                _ => Ok(None),
            };
        };
        if number >= MOST_RUNS {
            bail!("`--run {number}`: expected a number below {MOST_RUNS}");
        }
        if let OrderSource::File { comms: Some(_), .. } = &step.order {
            bail!("`[jitter]` does not go with a schedule file that says when messages are posted");
        }
        Ok(Some(Self { jitter, number }))
    }

    /// The run in full, and the inputs with its updates.
    ///
    /// # Errors
    /// An order that cannot run; a run that is too long.
    pub(crate) fn outcome(self, step: &StepScenario, plan: Plan) -> Result<(Inputs, Outcome)> {
        Ok(Replicas::new(&step.inputs, self.jitter)?.outcome(plan, self.number)?)
    }

    /// The makespan with other usual lengths and the same draws.
    ///
    /// # Errors
    /// As for [`OneRun::outcome`].
    pub(crate) fn makespan(self, inputs: &Inputs, orders: &Orders) -> Result<Time, StepError> {
        let replicas = Replicas::new(inputs, self.jitter).expect("the lists were right for the same shape");
        Ok(replicas.of_orders(orders, self.number..self.number + 1)?[0])
    }
}

impl std::fmt::Display for OneRun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "run {} of seed {}", self.number, self.jitter.seed)
    }
}
