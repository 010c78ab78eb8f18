//! `pipestep run`: one scenario, its table, and whatever files were asked for.

mod artefact;
mod report;

use anyhow::{Result, bail};
use pipestep_engine::Time;
use pipestep_report::{SmallerMicroBatch, StepRuns, job_text, rl_text, run_text, step_runs_text};
use pipestep_scenario::{Jitter, Scenario};

use crate::output::Target;
use crate::simulated::{Keep, Simulated, step_of};
use crate::simulated_job::SimulatedJob;
use crate::simulated_rl::{Limits, SimulatedRl};
use crate::simulated_runs::step_runs;
use crate::smaller::smaller_micro_batch;
use crate::{Ending, args, load, output};
use artefact::{Artefact, Part, wanted};
use report::Report;

/// Loads, simulates, reports.
pub(crate) fn run(typed: &args::Run) -> Result<Ending> {
    let scenario = load::scenario(&typed.scenario, &[])?;
    let wanted = wanted(typed, |part| has(&scenario, part, typed.runs));
    output::check(wanted.iter().map(|(_, target)| target))?;

    let (keep_step, keep_rl) = keep(&wanted, &scenario)?;
    let mut simulated = Everything::new(&scenario, keep_step, (keep_rl, Limits::Find), typed.runs)?;
    if let Some(step) = &simulated.step {
        simulated.smaller = smaller_micro_batch(&typed.scenario, &scenario, step);
    }
    let report = Report::new(&scenario.name, &simulated);
    output::write_all(&wanted, |artefact, to| report.write(artefact, to))?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        output::print(&simulated.text())?;
    }
    Ok(simulated.ending())
}

/// The result of a scenario as JSON. Beside the result's own keys, the start and end of each operation of a step
/// stand under `/events/KIND/STAGE/MICRO_BATCH/start_ns` and `end_ns`.
pub(crate) fn result_with_events(scenario: &Scenario, limits: Limits) -> Result<serde_json::Value> {
    let simulated = Everything::new(scenario, Keep::Everything, (Keep::Summary, limits), None)?;
    let mut result = serde_json::to_value(Report::new(&scenario.name, &simulated).result())?;
    if let Some(step) = &simulated.step {
        let mut events = serde_json::Value::Null;
        for (place, op) in step.record()?.orders.all().iter().enumerate() {
            let ran = step.record()?.ops.get(place);
            let (kind, stage, micro_batch) =
                (op.kind.letter().to_string(), op.stage.to_string(), op.micro_batch.to_string());
            let entry = &mut events[kind][stage][micro_batch];
            entry["start_ns"] = ran.start.as_nanos().into();
            entry["end_ns"] = ran.end.as_nanos().into();
        }
        result["events"] = events;
    }
    Ok(result)
}

/// What of a scenario was simulated.
struct Everything {
    step: Option<Simulated>,
    /// The step again and again, where its lengths are drawn.
    step_runs: Option<StepRuns>,
    /// The micro-batch with which the step would fit, if it does not.
    smaller: Option<SmallerMicroBatch>,
    job: Option<SimulatedJob>,
    rl: Option<SimulatedRl>,
}

impl Everything {
    /// The step first, since a job or an update behind it takes its length.
    fn new(
        scenario: &Scenario,
        keep_step: Keep,
        asked_rl: (Keep, Limits),
        runs: Option<u32>,
    ) -> Result<Self> {
        let step = scenario.step.as_ref().map(|_| Simulated::new(scenario, keep_step)).transpose()?;
        let step_runs = match &step {
            None if runs.is_some() && scenario.job.is_none() => bail!("`--runs` is for a step or a job"),
            None => None,
            Some(step) => step_runs(scenario, step, runs)?,
        };
        let length = step.as_ref().map(|step| step.view().summary.makespan.since(Time::ZERO));
        let job = scenario.job.as_ref().map(|_| SimulatedJob::new(scenario, length, runs)).transpose()?;
        let rl = scenario.rl.as_ref().map(|_| SimulatedRl::new(scenario, length, asked_rl)).transpose()?;
        Ok(Self { step, step_runs, smaller: None, job, rl })
    }

    /// What the terminal shows, one part after the other.
    fn text(&self) -> String {
        let parts = [
            self.step.as_ref().map(|step| {
                let smaller = self.smaller.as_ref().map(SmallerMicroBatch::text);
                run_text(&step.view()) + &smaller.unwrap_or_default()
            }),
            self.step_runs.as_ref().map(step_runs_text),
            self.job.as_ref().map(|job| job_text(&job.view())),
            self.rl.as_ref().map(|rl| rl_text(&rl.view())),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join("\n")
    }

    fn ending(&self) -> Ending {
        let step_fits = self.step.as_ref().and_then(|step| step.view().fits());
        let rl_fits = self.rl.as_ref().and_then(SimulatedRl::fits);
        if step_fits == Some(false) || rl_fits == Some(false) { Ending::DoesNotFit } else { Ending::Done }
    }
}

/// Whether a scenario has a part, its job being run as often as was asked for.
fn has(scenario: &Scenario, part: Part, runs: Option<u32>) -> bool {
    match part {
        Part::Any => true,
        Part::Step => scenario.step.is_some(),
        Part::StepRuns => {
            let jitter = scenario.step.as_ref().and_then(|step| step.jitter.as_ref());
            jitter.is_some_and(Jitter::scatters)
        }
        Part::Job => scenario.job.is_some(),
        Part::Runs => scenario.job.as_ref().is_some_and(|job| runs.unwrap_or(job.runs) > 1),
        Part::Rl => scenario.rl.is_some(),
    }
}

/// How much of the step and of the rounds is kept for what is to be written; an error if something needs a step
/// that is not there.
fn keep(wanted: &[(Artefact, Target)], scenario: &Scenario) -> Result<(Keep, Keep)> {
    let needs = |of: fn(Artefact) -> bool| wanted.iter().any(|(artefact, _)| of(*artefact));
    let everything = |is_needed: bool| if is_needed { Keep::Everything } else { Keep::Summary };
    if needs(Artefact::is_of_step) {
        step_of(scenario)?;
    }
    Ok((everything(needs(Artefact::is_of_step)), everything(needs(Artefact::draws_rounds))))
}
