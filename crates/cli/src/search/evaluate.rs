//! One setting at a time: read, bound, simulate.

use anyhow::Result;
use pipestep_engine::{Bytes, Duration};
use pipestep_scenario::{Diagnostic, Diagnostics, Override, Scenario, SearchSpace, StepScenario};
use pipestep_schedule::{Plan, Shape};
use pipestep_step::Summary;

use super::bounds;
use super::candidates::Setting;
use crate::simulated_runs::makespans;
use crate::{args, load};

/// Reads the scenario of each setting.
pub(crate) struct Evaluator {
    text: String,
    name: String,
    set: Vec<Override>,
    /// How often a step whose lengths are drawn is run, if not as often as its `[jitter]` says.
    runs: Option<u32>,
}

/// A setting that was read: its step, and what no order of its operations can beat.
pub(crate) struct Bounded {
    pub(crate) index: usize,
    pub(crate) step: StepScenario,
    /// In ns.
    pub(crate) makespan: u64,
    /// By rank, in bytes.
    pub(crate) peaks: Vec<u64>,
}

impl Bounded {
    /// The highest of the lower bounds of the ranks' peaks.
    pub(crate) fn peak(&self) -> u64 {
        self.peaks.iter().copied().max().unwrap_or(0)
    }

    /// Whether it may fit as far as the bounds know.
    pub(crate) fn may_fit(&self) -> bool {
        let budget = self.step.budget.as_ref();
        budget.is_none_or(|budget| self.peaks.iter().zip(budget).all(|(&peak, limit)| peak <= limit.get()))
    }
}

/// A setting that was simulated.
#[derive(Clone, Debug)]
pub(crate) struct Evaluated {
    /// Among all settings.
    pub(crate) index: usize,
    pub(crate) shape: Shape,
    pub(crate) summary: Summary,
    /// Whether every rank stays within its budget.
    pub(crate) fits: bool,
    /// The lower bound of its length, in ns; of the length without scatter, where lengths are drawn.
    pub(crate) bound: u64,
    /// Makespans in ns, run by run, where lengths are drawn.
    pub(crate) runs: Option<Vec<f64>>,
}

impl Evaluated {
    /// In ns; the mean of the runs, where lengths are drawn.
    pub(crate) fn makespan(&self) -> u64 {
        match &self.runs {
            None => self.summary.makespan.as_nanos(),
            Some(runs) => (runs.iter().sum::<f64>() / runs.len().max(1) as f64).round() as u64,
        }
    }

    /// The same as a length.
    pub(crate) fn length(&self) -> Duration {
        Duration::from_nanos(self.makespan())
    }

    /// The highest of all ranks.
    pub(crate) fn peak(&self) -> Bytes {
        self.summary.highest_peak().1
    }

    /// Shorter first, then smaller, then as listed.
    pub(crate) fn key(&self) -> (u64, u64, usize) {
        (self.makespan(), self.peak().get(), self.index)
    }
}

impl Evaluator {
    /// For the scenario that was named.
    ///
    /// # Errors
    /// The file's.
    pub(crate) fn new(typed: &args::Scenario) -> Result<Self> {
        let text = load::text(&typed.path)?;
        let set = typed.set.iter().map(Override::set).collect();
        Ok(Self { text, name: typed.path.display().to_string(), set, runs: None })
    }

    /// With so many runs of each step whose lengths are drawn.
    pub(crate) fn with_runs(self, runs: Option<u32>) -> Self {
        Self { runs, ..self }
    }

    /// For a text that is in no file.
    #[cfg(test)]
    pub(crate) fn of_text(text: &str) -> Self {
        Self { text: text.to_owned(), name: "test.toml".to_owned(), set: Vec::new(), runs: None }
    }

    /// The scenario with further values.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn read(&self, more: Vec<Override>) -> Result<Scenario, Diagnostics> {
        let overrides: Vec<Override> = self.set.iter().cloned().chain(more).collect();
        pipestep_scenario::parse(&self.text, &self.name, &overrides, &load::read_text)
    }

    /// The scenario as it is written.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(crate) fn written(&self) -> Result<Scenario, Diagnostics> {
        self.read(Vec::new())
    }

    /// Only its `[search]`.
    ///
    /// # Errors
    /// What is wrong with that.
    pub(crate) fn space(&self) -> Result<SearchSpace, Diagnostics> {
        SearchSpace::read(&self.text, &self.name, &self.set)
    }

    /// Reads a setting and bounds it.
    ///
    /// # Errors
    /// Why it is not legal.
    pub(crate) fn bound(&self, index: usize, setting: &Setting) -> Result<Bounded, String> {
        let parsed = self.read(setting.overrides().collect());
        let first =
            |diagnostics: Diagnostics| diagnostics.iter().next().map_or("", Diagnostic::message).to_owned();
        let step = parsed.map_err(first)?.step.ok_or("it describes no step")?;
        let splits = setting.schedule.entry().splits_backward;
        let makespan = bounds::makespan(&step.inputs, splits);
        let peaks = bounds::peaks(&step.inputs, splits);
        Ok(Bounded { index, step, makespan, peaks })
    }

    /// Simulates a setting; `None` where `can_be_left_out` says so of the bounds that its order gives.
    ///
    /// # Errors
    /// Why it is not legal.
    pub(crate) fn simulate(
        &self,
        mut bounded: Bounded,
        can_be_left_out: impl Fn(&Bounded) -> bool,
    ) -> Result<Option<Evaluated>, String> {
        let plan = bounded.step.plan().map_err(|refusal| refusal.to_string())?;
        if let Plan::Fixed(orders) = &plan {
            orders.validate(bounded.step.inputs.shape()).map_err(|error| error.to_string())?;
            if let Some(peaks) = bounds::peaks_of(&bounded.step.inputs, orders) {
                bounded.peaks = peaks;
                if can_be_left_out(&bounded) {
                    return Ok(None);
                }
            }
        }
        let summary =
            pipestep_step::summary(&bounded.step.inputs, plan).map_err(|error| error.to_string())?;
        let jitter = bounded.step.jitter.as_ref().filter(|jitter| jitter.scatters());
        let runs = match jitter {
            None => None,
            Some(jitter) => {
                let count = u64::from(self.runs.unwrap_or(jitter.runs));
                let ends = makespans(&bounded.step, count).map_err(|error| format!("{error:#}"))?;
                Some(ends.iter().map(|end| end.as_nanos() as f64).collect())
            }
        };
        let budget = bounded.step.budget.as_ref();
        let fits = budget.is_none_or(|budget| {
            summary.ranks.iter().zip(budget).all(|(rank, limit)| rank.peak.bytes <= *limit)
        });
        let shape = bounded.step.inputs.shape().clone();
        Ok(Some(Evaluated { index: bounded.index, shape, summary, fits, bound: bounded.makespan, runs }))
    }
}
