//! Schedules side by side where lengths are drawn: means over the same runs, how sure their differences are, and which
//! of them nothing else beats.
//!
//! Run k of each schedule meets the same draws for the same operations, so that a difference is held against the
//! scatter of the differences. Memory is that of the step without scatter: the order of its operations is the same.

use std::fmt::Write as _;

use pipestep_engine::{Bytes, Duration};
use pipestep_job::Estimate;
use serde::Serialize;

use crate::paired::Difference;
use crate::pareto::pareto_front;
use crate::picture::Picture;
use crate::step_runs::StepRuns;
use crate::table::{align, heading, lines, new_table, schedule_with_chunks, yes_or_no};
use crate::tradeoff::{Candidate, tradeoff};
use crate::units::{bytes_exact, bytes_short, counted, time_with_error};
use crate::{StepRunsResult, StepView};

/// One schedule with its runs.
pub type StepWithRuns<'a> = (StepView<'a>, &'a StepRuns);

/// The runs of one schedule among those that are compared, in the JSON result.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedRuns {
    /// Its own runs.
    #[serde(flatten)]
    pub runs: StepRunsResult,
    /// How much longer its mean is than that of the first.
    pub behind_ns: f64,
    /// The standard error of that, by the differences run by run.
    pub behind_standard_error_ns: f64,
    /// Whether that is more than scatter (95 %).
    pub told_apart: bool,
    /// Whether nothing else has a shorter mean with no more memory, or less memory with no longer mean.
    pub on_front_by_mean: bool,
    /// The same by the 95th percentile.
    pub on_front_by_p95: bool,
}

/// What is known of one schedule.
struct Compared {
    estimate: Estimate,
    peak: Bytes,
    behind: Difference,
    /// By the mean, by the 95th percentile.
    on_front: [bool; 2],
}

impl Compared {
    fn p95(&self) -> f64 {
        p95(&self.estimate)
    }
}

fn p95(estimate: &Estimate) -> f64 {
    let [.., p95, _] = estimate.percentiles;
    p95
}

/// All schedules, and which has the shortest mean; `None` where one has no runs or another number of them.
fn compare(steps: &[StepWithRuns]) -> Option<(Vec<Compared>, usize)> {
    let samples: Vec<Vec<f64>> = steps.iter().map(|(_, runs)| runs.samples()).collect();
    let estimates: Vec<Estimate> =
        samples.iter().map(|sample| Estimate::of(sample)).collect::<Option<_>>()?;
    let shorter = |one: &usize, other: &usize| estimates[*one].mean.total_cmp(&estimates[*other].mean);
    let first = (0..steps.len()).min_by(shorter)?;
    let peaks: Vec<Bytes> = steps.iter().map(|(view, _)| view.highest_peak().1).collect();
    let front = |of: &dyn Fn(&Estimate) -> f64| {
        let points = estimates.iter().zip(&peaks).map(|(one, peak)| (of(one).round() as u64, peak.get()));
        pareto_front(&points.collect::<Vec<_>>())
    };
    let by_mean = front(&|estimate| estimate.mean);
    let by_p95 = front(&p95);
    let compared = estimates.iter().enumerate().map(|(index, estimate)| {
        Some(Compared {
            estimate: estimate.clone(),
            peak: peaks[index],
            behind: Difference::of(&samples[index], &samples[first])?,
            on_front: [by_mean[index], by_p95[index]],
        })
    });
    Some((compared.collect::<Option<_>>()?, first))
}

/// What `compare` prints where lengths are drawn: one row a schedule, the shortest mean first.
pub fn compare_runs_text(steps: &[StepWithRuns]) -> String {
    let (Some((view, runs)), Some((compared, first))) = (steps.first(), compare(steps)) else {
        return String::new();
    };
    let count = counted(runs.makespans.len() as u64, "run");
    let same = format!("{}; {count}, seed {}", view.counts_text(), runs.seed);
    let mut text = heading(&[&view.labels.name, "\n", &same]);
    let has_budget = steps.iter().any(|(view, _)| view.fits().is_some());
    let mut header = vec!["", "schedule", "mean ± std. error", "vs best", "p95", "peak"];
    header.extend(has_budget.then_some("fits"));
    let mut table = new_table(&header);
    let mut order: Vec<usize> = (0..steps.len()).collect();
    order.sort_by(|&one, &other| compared[one].estimate.mean.total_cmp(&compared[other].estimate.mean));
    for &index in &order {
        let ((view, _), one) = (&steps[index], &compared[index]);
        let marks = [if one.on_front[0] { "*" } else { " " }, if one.on_front[1] { "+" } else { "" }];
        let mut row = vec![
            marks.concat().trim_end().to_owned(),
            schedule_with_chunks(view),
            time_with_error(one.estimate.mean, one.estimate.standard_error),
            versus(one, compared[first].estimate.mean, index == first, steps.len()),
            time_with_error(one.p95(), 0.0),
            bytes_short(one.peak),
        ];
        row.extend(has_budget.then(|| yes_or_no(view.fits())));
        table.add_row(row);
    }
    align(&mut table, &[0, 1]);
    text += &lines(&table);
    text += "* nothing else compared here has a shorter mean with no more memory, or less with no longer mean\n\
             + the same by the 95th percentile; memory is that of the step without scatter\n";
    if order.iter().any(|&index| index != first && !compared[index].behind.is_sure(steps.len())) {
        let said = "runs do not tell it apart from the best (95 %, by the differences run by run)";
        let _ = writeln!(text, "~ {count} {said}");
    }
    if let Some(budget) = view.common_budget() {
        let _ = writeln!(text, "budget {} on every rank", bytes_exact(budget));
    }
    text
}

/// `+3.1 ± 0.1 %` against the best mean.
fn versus(one: &Compared, best: f64, is_first: bool, candidates: usize) -> String {
    if is_first || best <= 0.0 {
        return String::new();
    }
    let percent = |nanos: f64| 100.0 * nanos / best;
    let (mean, error) = (percent(one.behind.mean), percent(one.behind.standard_error));
    let unsure = if one.behind.is_sure(candidates) { "" } else { "~ " };
    // As many decimals as the error has digits that count, within reason.
    let decimals = if error > 0.0 { (-error.log10().floor()).clamp(1.0, 2.0) as usize } else { 1 };
    format!("{unsure}{mean:+.decimals$} ± {error:.decimals$} %")
}

/// The same for the JSON result, in the order given; `None` where one has no runs.
pub fn compare_runs_results(steps: &[StepWithRuns]) -> Option<Vec<ComparedRuns>> {
    let (compared, _) = compare(steps)?;
    let result = |((_, runs), one): (&StepWithRuns, &Compared)| {
        Some(ComparedRuns {
            runs: StepRunsResult::new(runs)?,
            behind_ns: one.behind.mean,
            behind_standard_error_ns: one.behind.standard_error,
            told_apart: one.behind.is_sure(steps.len()),
            on_front_by_mean: one.on_front[0],
            on_front_by_p95: one.on_front[1],
        })
    };
    steps.iter().zip(&compared).map(result).collect()
}

/// Mean makespan against memory, a dot for each schedule.
pub fn compare_runs_tradeoff(steps: &[StepWithRuns]) -> Picture {
    let candidate = |(view, runs): &StepWithRuns| {
        let mean = runs.estimate().map_or(0.0, |estimate| estimate.mean);
        Candidate { makespan: Duration::from_nanos(mean.round() as u64), ..Candidate::from(view) }
    };
    let candidates: Vec<Candidate> = steps.iter().map(candidate).collect();
    let (name, budget, count) = steps.first().map_or(("", None, 0), |(view, runs)| {
        (view.labels.name.as_str(), view.common_budget(), runs.makespans.len())
    });
    tradeoff(&format!("{name}: mean of {}", counted(count as u64, "run")), &candidates, budget)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::check_layout;
    use crate::testing::Sample;

    /// Runs around a makespan in ms, with the same luck for all and some of each one's own.
    fn runs(millis: u64, own: u64) -> StepRuns {
        let makespans = (0..50_u64).map(|run| {
            let (luck, mine) = (run * 7_919 % 1_000 * 10_000, run * own % 97 * 10_000);
            Duration::from_nanos(millis * 1_000_000 + luck + mine)
        });
        let usual = Duration::from_nanos(millis * 1_000_000);
        StepRuns { name: "a step".to_owned(), seed: 3, makespans: makespans.collect(), usual }
    }

    #[test]
    fn the_shortest_mean_is_first_and_what_is_unsure_is_marked() {
        let samples =
            [Sample::new("1f1b", 4, 1, 8), Sample::new("fill-drain", 4, 1, 8), Sample::new("zb-h1", 4, 1, 8)];
        let runs = [runs(347, 1), runs(337, 5), runs(337, 12)];
        let steps: Vec<StepWithRuns> = samples.iter().map(Sample::view).zip(&runs).collect();
        let text = compare_runs_text(&steps);
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("{needle} in {text}"));
        assert!(at("fill-drain") < at("1f1b") && at("zb-h1") < at("1f1b"), "{text}");
        assert!(text.contains("50 runs, seed 3") && text.contains("~ ") && text.contains("budget"), "{text}");
        let row = text.lines().find(|line| line.contains("1f1b")).expect("it is there");
        assert!(row.contains('*') && row.contains('+') && !row.contains('~'), "{text}");
        let results = compare_runs_results(&steps).expect("they have runs");
        assert_eq!(results.iter().map(|one| one.told_apart).collect::<Vec<_>>(), [true, false, false]);
        assert!(results[0].behind_standard_error_ns < results[0].runs.standard_error_ns / 5.0);
        check_layout(&compare_runs_tradeoff(&steps), "three schedules");
        assert_eq!(compare_runs_text(&[]), "");
    }
}
