//! Many runs of one step whose lengths scatter: how long it takes, how surely, and how often.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use pipestep_engine::Duration;
use pipestep_job::{Estimate, PERCENTILES};
use serde::Serialize;

use crate::axes::Measure;
use crate::chart::AxisSpec;
use crate::histogram::{Histogram, histogram};
use crate::picture::Picture;
use crate::table::{align, heading, lines, new_table};
use crate::units::{counted, time_exact};

/// The makespans of one step, run by run.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRuns {
    /// The scenario's name.
    pub name: String,
    /// The seed of all draws.
    pub seed: u64,
    /// The makespan of each run.
    pub makespans: Vec<Duration>,
    /// The makespan without scatter.
    pub usual: Duration,
}

impl StepRuns {
    /// What the runs say about the makespan, in ns; `None` without a run.
    pub fn estimate(&self) -> Option<Estimate> {
        Estimate::of(&self.samples())
    }

    /// The makespans in ns.
    pub fn samples(&self) -> Vec<f64> {
        self.makespans.iter().map(|makespan| makespan.as_nanos() as f64).collect()
    }

    /// The number of the longest run, from 0; of several the first. `None` without a run.
    pub fn longest(&self) -> Option<usize> {
        let numbered = self.makespans.iter().enumerate();
        Some(numbered.min_by_key(|&(_, makespan)| Reverse(makespan))?.0)
    }
}

/// The same in the JSON result of a step.
#[derive(Clone, Debug, Serialize)]
pub struct StepRunsResult {
    /// How many runs.
    pub runs: usize,
    /// The seed of all draws.
    pub seed: u64,
    /// The mean makespan.
    pub mean_ns: f64,
    /// How certain it is.
    pub standard_error_ns: f64,
    /// The shortest.
    pub min_ns: f64,
    /// The longest.
    pub max_ns: f64,
    /// The number of the longest, from 0: `explain --run` takes it.
    pub longest_run: usize,
    /// `p1` to `p99`.
    pub percentiles_ns: BTreeMap<String, f64>,
}

impl StepRunsResult {
    /// What the contract says about runs; `None` without one.
    pub fn new(runs: &StepRuns) -> Option<Self> {
        let estimate = runs.estimate()?;
        let named = PERCENTILES.iter().zip(estimate.percentiles);
        Some(Self {
            runs: runs.makespans.len(),
            seed: runs.seed,
            mean_ns: estimate.mean,
            standard_error_ns: estimate.standard_error,
            min_ns: estimate.min,
            max_ns: estimate.max,
            longest_run: runs.longest()?,
            percentiles_ns: named.map(|(name, value)| (format!("p{name}"), value)).collect(),
        })
    }
}

/// What the terminal shows of the runs, below the table of the step without scatter.
pub fn step_runs_text(runs: &StepRuns) -> String {
    let Some((estimate, longest)) = runs.estimate().zip(runs.longest()) else { return String::new() };
    let count = counted(runs.makespans.len() as u64, "run");
    let mut table = new_table(&[count.as_str(), "mean", "std. error", "p5", "median", "p95", "longest"]);
    let [_, p5, _, p50, _, p95, _] = estimate.percentiles;
    let shown = |nanos: f64| Duration::from_nanos(nanos.round() as u64).to_string();
    let values = [estimate.mean, estimate.standard_error, p5, p50, p95, estimate.max].map(shown);
    table.add_row(std::iter::once("makespan".to_owned()).chain(values));
    align(&mut table, &[0]);
    let title = heading(&[&format!("with scatter, seed {}", runs.seed)]);
    format!(
        "{title}{}without scatter: {}\nthe longest is run {longest}: `pipestep explain` with `--run {longest}` says why\n",
        lines(&table),
        time_exact(runs.usual)
    )
}

/// How often the step takes how long.
pub fn step_runs_histogram(runs: &StepRuns) -> Picture {
    let mut marks = runs.estimate().as_ref().map_or_else(Vec::new, Histogram::marks_of);
    marks.push(("without scatter".to_owned(), runs.usual.as_nanos() as f64));
    histogram(&Histogram {
        title: format!("{}: makespan of {}", runs.name, counted(runs.makespans.len() as u64, "run")),
        x: AxisSpec::linear("makespan", Measure::Time),
        samples: runs.samples(),
        marks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};

    fn runs(count: u64) -> StepRuns {
        let makespans = (0..count).map(|run| Duration::from_nanos(347_000_000 + (run * 7_919) % 1_000_003));
        StepRuns {
            name: "a step".to_owned(),
            seed: 7,
            makespans: makespans.collect(),
            usual: Duration::from_nanos(347_000_000),
        }
    }

    #[test]
    fn the_contract_has_mean_error_and_percentiles() {
        let result = StepRunsResult::new(&runs(1_000)).expect("there are runs");
        let json = serde_json::to_value(&result).expect("it is plain");
        assert_eq!((&json["runs"], &json["seed"]), (&1_000.into(), &7.into()));
        let at = |name: &str| json["percentiles_ns"][name].as_f64().expect("a number");
        assert!(at("p1") < at("p50") && at("p50") < at("p99"));
        assert!(result.min_ns <= at("p1") && result.mean_ns < result.max_ns);
        let longest = runs(1_000).makespans[result.longest_run];
        assert_eq!(longest.as_nanos(), result.max_ns as u64);
        assert!(StepRunsResult::new(&runs(0)).is_none());
    }

    #[test]
    fn of_runs_that_are_as_long_the_first_is_the_longest() {
        let mut runs = runs(4);
        runs.makespans = [3, 7, 7, 1].map(Duration::from_nanos).to_vec();
        assert_eq!(runs.longest(), Some(1));
        assert!(step_runs_text(&runs).contains("`--run 1`"));
    }

    #[test]
    fn text_and_picture_take_any_number_of_runs() {
        for count in [0, 1, 2, 500] {
            check_layout(&step_runs_histogram(&runs(count)), &format!("{count} runs"));
        }
        assert_eq!(step_runs_text(&runs(0)), "");
        let text = step_runs_text(&runs(500));
        assert!(text.contains("500 runs") && text.contains("seed 7"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        assert!(words(&step_runs_histogram(&runs(500))).iter().any(|word| word.starts_with("median")));
    }
}
