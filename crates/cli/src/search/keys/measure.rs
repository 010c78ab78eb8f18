//! One setting of a search over keys, run as often as is asked for: the objective run by run, and where time went.

use anyhow::{Context, Result, anyhow, bail};
use pipestep_engine::{Bytes, Duration, Time};
use pipestep_job::{Detail, JobOutcome, Losses};
use pipestep_rl::{Keep as Kept, RlInputs, RlOutcome, ScoringTime, Shape, sensitivity};
use pipestep_scenario::{JobScenario, Objective, RlScenario, Scenario, StepScenario};
use pipestep_step::Summary;
use rayon::prelude::*;

use crate::room;
use crate::search::figures::step_parts;
use crate::simulated::Keep;
use crate::simulated_runs::makespans;
use crate::sweep::{step_summary, tokens};

/// Runs of rounds of RL that draw anything, where nothing is said.
const RL_RUNS: u32 = 8;

/// What is simulated of each setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    pub(crate) objective: Objective,
    /// With seeds of their own, the same for each setting.
    pub(crate) runs: u32,
}

/// What the runs of one setting came to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The objective, run by run.
    pub(crate) samples: Vec<f64>,
    /// Where the time went, in ns, a mean over the runs: of the whole job, of one round, of one step.
    pub(crate) parts: Vec<(String, f64)>,
    /// Of a job: wall time over useful time, the mean of the runs.
    pub(crate) stretch: Option<f64>,
}

impl Measured {
    /// The mean of the runs.
    pub(crate) fn mean(&self) -> f64 {
        self.samples.iter().sum::<f64>() / self.samples.len().max(1) as f64
    }
}

impl Subject {
    /// What suits a scenario, where it is not said.
    ///
    /// # Errors
    /// An objective of a part that the scenario does not have.
    pub(crate) fn new(scenario: &Scenario, objective: Option<Objective>, runs: Option<u32>) -> Result<Self> {
        let objective = objective.unwrap_or(match scenario {
            Scenario { rl: Some(_), .. } => Objective::SamplesPerSecond,
            Scenario { job: Some(_), .. } => Objective::JobTime,
            _ => Objective::StepTime,
        });
        let (there, part) = match objective {
            Objective::StepTime => (scenario.step.is_some(), "[pipeline]"),
            Objective::TokensPerSecond => (scenario.rl.is_some() || scenario.step.is_some(), "[rl]"),
            Objective::JobTime | Objective::UsefulFraction => (scenario.job.is_some(), "[job]"),
            Objective::SamplesPerSecond | Objective::CostPerSample => (scenario.rl.is_some(), "[rl]"),
        };
        if !there {
            bail!("`search.objective = \"{}\"` needs a `{part}`, and there is none", objective.word());
        }
        let usual = match objective {
            Objective::JobTime | Objective::UsefulFraction => scenario.job.as_ref().map(|job| job.runs),
            Objective::StepTime => step_runs(scenario.step.as_ref()),
            Objective::TokensPerSecond if scenario.rl.is_none() => step_runs(scenario.step.as_ref()),
            _ => scenario.rl.as_ref().map(rl_runs).transpose()?,
        };
        Ok(Self { objective, runs: runs.or(usual).unwrap_or(1).max(1) })
    }

    /// Whether less of the objective is better.
    pub(crate) const fn is_lowest(self) -> bool {
        matches!(self.objective, Objective::StepTime | Objective::JobTime | Objective::CostPerSample)
    }

    /// Whether the objective is one of rounds of RL.
    pub(crate) const fn is_of_rounds(self, scenario: &Scenario) -> bool {
        match self.objective {
            Objective::SamplesPerSecond | Objective::CostPerSample => true,
            Objective::TokensPerSecond => scenario.rl.is_some(),
            _ => false,
        }
    }

    /// Runs a scenario.
    ///
    /// # Errors
    /// Why it is not legal, does not fit, or does not come to an end.
    pub(crate) fn measure(self, scenario: &Scenario) -> Result<Measured> {
        let step = scenario.step.as_ref().map(step_that_fits).transpose()?;
        let length = step.as_ref().map(|summary| summary.makespan.since(Time::ZERO));
        match self.objective {
            Objective::JobTime | Objective::UsefulFraction => {
                self.job(scenario.job.as_ref().context("it describes no job")?, length)
            }
            Objective::TokensPerSecond if scenario.rl.is_none() => self.step(scenario, step),
            Objective::StepTime => self.step(scenario, step),
            Objective::SamplesPerSecond | Objective::TokensPerSecond | Objective::CostPerSample => {
                self.rl(scenario.rl.as_ref().context("it describes no rounds")?, length)
            }
        }
    }

    fn step(self, scenario: &Scenario, summary: Option<Summary>) -> Result<Measured> {
        let (step, summary) = scenario.step.as_ref().zip(summary).context("it describes no step")?;
        let scatters = step.jitter.as_ref().is_some_and(pipestep_scenario::Jitter::scatters);
        let lengths: Vec<f64> = if scatters {
            makespans(step, u64::from(self.runs))?.iter().map(|end| end.as_nanos() as f64).collect()
        } else {
            vec![summary.makespan.as_nanos() as f64; self.runs as usize]
        };
        let is_rate = self.objective == Objective::TokensPerSecond;
        let samples = if is_rate {
            let tokens =
                tokens(step).context("tokens a second need a `[model]`, which says how many there are")?;
            lengths.iter().map(|nanos| tokens / (nanos / 1e9)).collect()
        } else {
            lengths
        };
        // Where the time of drawn runs went is not known, and steps of different tokens cannot be compared by parts.
        let parts = if scatters || is_rate {
            Vec::new()
        } else {
            step_parts(&summary).map(|(name, nanos)| (name.to_owned(), nanos as f64)).into()
        };
        Ok(Measured { samples, parts, stretch: None })
    }

    fn job(self, job: &JobScenario, step: Option<Duration>) -> Result<Measured> {
        let inputs = job.inputs(step)?;
        let runs: Vec<JobOutcome> = (0..u64::from(self.runs))
            .into_par_iter()
            .map(|run| pipestep_job::simulate(&inputs, run, Detail::Summary))
            .collect::<Result<_, _>>()?;
        if self.objective == Objective::JobTime
            && let Some(run) = runs.iter().position(|outcome| !outcome.finished)
        {
            bail!("its work is not done at the horizon (in run {run}), so its wall time says nothing");
        }
        let count = runs.len() as f64;
        let mean = |of: &dyn Fn(&JobOutcome) -> f64| runs.iter().map(of).sum::<f64>() / count;
        let names = Losses::default().by_cause().map(|(name, _)| name);
        let lost = names.into_iter().enumerate().map(|(place, name)| {
            (name.replace('_', " "), mean(&|outcome| outcome.lost.by_cause()[place].1 as f64))
        });
        let useful = ("useful work".to_owned(), mean(&|outcome| outcome.useful.as_nanos() as f64));
        let stretch = |outcome: &JobOutcome| 1.0 / outcome.useful_fraction();
        let value = |outcome: &JobOutcome| match self.objective {
            Objective::UsefulFraction => outcome.useful_fraction(),
            _ => outcome.elapsed.as_nanos() as f64,
        };
        Ok(Measured {
            samples: runs.iter().map(value).collect(),
            parts: std::iter::once(useful).chain(lost).collect(),
            stretch: Some(mean(&stretch)).filter(|stretch| stretch.is_finite()),
        })
    }

    fn rl(self, rl: &RlScenario, step: Option<Duration>) -> Result<Measured> {
        let inputs = rl.inputs(step)?;
        let runs: Vec<RlOutcome> = (0..u64::from(self.runs))
            .into_par_iter()
            .map(|run| {
                let seed = inputs.seed.wrapping_add(run);
                pipestep_rl::simulate(&RlInputs { seed, ..inputs.clone() })
            })
            .collect::<Result<_, _>>()?;
        if let Some(memory) = runs.first().and_then(|first| first.memory.as_ref())
            && !memory.fits
        {
            let (peak, capacity) = (memory.peak, memory.capacity);
            bail!("it does not fit: changing phase needs {peak} of the {capacity} of a device");
        }
        let value = |outcome: &RlOutcome| {
            Ok(match self.objective {
                Objective::TokensPerSecond => outcome.useful_tokens_per_s,
                Objective::CostPerSample => {
                    outcome.cost.context("a cost needs `[rl.prices]`")?.per_thousand_samples
                }
                _ => outcome.useful_samples_per_s,
            })
        };
        let samples = runs.iter().map(value).collect::<Result<_>>()?;
        let count = runs.len() as f64;
        let mean = |of: &dyn Fn(&RlOutcome) -> Duration| {
            runs.iter().map(|run| of(run).as_nanos() as f64 / run.rounds.len().max(1) as f64).sum::<f64>()
                / count
        };
        let parts = [
            ("waiting for responses", mean(&|run| run.split.rollout)),
            ("waiting for scores", mean(&|run| run.split.scoring)),
            ("waiting for samples on their way", mean(&|run| run.split.handoff)),
            ("updating", mean(&|run| run.split.update)),
            ("waiting for the weights to be synchronised", mean(&|run| run.split.sync)),
            ("changing phase", mean(&|run| run.split.switch)),
            ("down", mean(&|run| run.split.down)),
        ];
        let parts = parts.map(|(name, nanos)| (name.to_owned(), nanos)).into();
        Ok(Measured { samples, parts, stretch: None })
    }
}

/// The stage that limits the first run of a setting, with what doubling it would give; `None` where no stage does.
///
/// # Errors
/// As for the simulation.
pub(crate) fn bottleneck(scenario: &Scenario) -> Result<Option<(String, f64)>> {
    let Some(rl) = &scenario.rl else { return Ok(None) };
    let length = scenario.step.as_ref().map(step_summary).transpose()?;
    let length = length.map(|summary| summary.makespan.since(Time::ZERO));
    let found = sensitivity(&rl.inputs(length)?)?;
    let gain = |name: &String| found.gains.iter().find(|gain| gain.name == *name).map(|gain| gain.gain);
    Ok(found.bottleneck.as_ref().and_then(|name| Some((name.replace('_', " "), gain(name)?))))
}

/// The runs that a step asks for itself.
fn step_runs(step: Option<&StepScenario>) -> Option<u32> {
    let jitter = step?.jitter.as_ref()?;
    jitter.scatters().then_some(jitter.runs)
}

/// One run where nothing is drawn.
fn rl_runs(rl: &RlScenario) -> Result<u32> {
    // Whether anything is drawn does not depend on how long a step is.
    let inputs = rl.inputs(Some(Duration::from_nanos(1)))?;
    let is_drawn = |shape: &Shape| !matches!(shape, Shape::Fixed(_) | Shape::List(_));
    let scoring = inputs.scoring.iter().any(|pool| match &pool.time {
        ScoringTime::Sampled(time) => is_drawn(&time.shape),
        ScoringTime::PerToken { .. } => false,
    });
    let faults = &inputs.faults;
    let breaks = faults.random_engine_failures.is_some() || faults.mean_time_to_interruption.is_some();
    let draws = is_drawn(&inputs.rollout.lengths.shape)
        || scoring
        || breaks
        || matches!(inputs.keep, Kept::Randomly(_));
    Ok(if draws { RL_RUNS } else { 1 })
}

/// A step that stays within its budget.
fn step_that_fits(step: &StepScenario) -> Result<Summary> {
    room::check(step.inputs.shape(), Keep::Summary)?;
    let summary = step_summary(step)?;
    let over = step.budget.as_ref().and_then(|budget| {
        let ranks = summary.ranks.iter().zip(budget).enumerate();
        ranks
            .map(|(rank, (outcome, limit))| (rank, outcome.peak.bytes, *limit))
            .find(|(_, peak, limit)| peak > limit)
    });
    match over {
        None => Ok(summary),
        Some((rank, peak, limit)) => Err(over_budget(rank, peak, limit)),
    }
}

fn over_budget(rank: usize, peak: Bytes, limit: Bytes) -> anyhow::Error {
    anyhow!("it does not fit: rank {rank} needs {peak} of {limit}")
}
