//! What `run` prints about a job: where its time went, what was saved and lost, formulas beside it, warnings.
//!
//! Every number is read off the simulated run; a line that comes from a formula is called `check`.

use std::fmt::Write as _;

use pipestep_engine::{Bytes, Duration};
use pipestep_job::{
    Backlog, CalendarStart, Checkpoint, InputTotals, Mode, Place, Reference, ReferenceUnit, ReplicaTotals,
    RunsSummary, SaveTotals, StragglerTotals, Trigger, Warning, Write, days,
};

use super::JobView;
use super::text_tables::{LISTED, checkpoint_table, failure_table, runs_table, share_of_wall, time_table};
use crate::table::{heading, lines};
use crate::units::{bytes_short, counted, grouped, trimmed};
use crate::wrap::wrapped;

/// What `run` prints about a job, at most 100 columns wide.
pub fn job_text(view: &JobView) -> String {
    let summary = view.summary();
    let several = if summary.is_some() { "; run 0 of the runs below" } else { "" };
    let mut text = heading(&[view.name, "\njob: ", &work_line(view), several]);
    text += &lines(&time_table(view));
    for (count, table, what) in [
        (view.outcome.checkpoints.len(), checkpoint_table(view), "checkpoints"),
        (view.outcome.failures.len(), failure_table(view), "failures"),
    ] {
        if count > 0 {
            text.push('\n');
            text += &lines(&table);
        }
        if count > LISTED {
            let _ = writeln!(text, "{LISTED} of {} {what} shown; --json lists all", grouped(count as u64));
        }
    }
    if let Some(summary) = &summary {
        text.push('\n');
        text += &lines(&runs_table(summary));
    }
    text.push('\n');
    for (name, value) in summary_lines(view, summary.as_ref()) {
        text += &wrapped(name, &value);
    }
    text
}

/// What there is to do.
fn work_line(view: &JobView) -> String {
    let mut parts = Vec::new();
    if let (Some(steps), Some(step)) = (view.target.steps, view.target.step) {
        let tokens = view
            .target
            .tokens
            .map(|(tokens, each)| format!(" ({} tokens, {} a step)", grouped(tokens), grouped(each)));
        parts.push(format!("{} steps of {step}{}", grouped(steps), tokens.unwrap_or_default()));
    } else if let Some(work) = view.inputs.work {
        parts.push(format!("{work} of useful work"));
    }
    if let Some(horizon) = view.inputs.horizon {
        parts.push(format!("until {horizon} on the clock"));
    }
    parts.join(", ")
}

fn summary_lines(view: &JobView, summary: Option<&RunsSummary>) -> Vec<(&'static str, String)> {
    let outcome = view.outcome;
    let mut found = vec![("goodput", goodput(view, summary))];
    found.extend(completion(view).map(|line| ("completion", line)));
    found.extend(calendar(view, summary).map(|line| ("calendar", line)));
    if let Some(checkpoint) = &view.inputs.checkpoint {
        found.push(("checkpoints", how_it_saves(checkpoint)));
    }
    if let Some(saves) = outcome.saves {
        found.push(("saves", saves_line(view, &saves)));
        found.extend(backlog_line(&saves).map(|line| ("backlog", line)));
    }
    found.extend(failures_line(view).map(|line| ("failures", line)));
    found.extend(outcome.replicas.map(|totals| ("replicas", replicas_line(&totals))));
    let ranks = view.inputs.stragglers.ranks.as_ref().and(outcome.stragglers.as_ref());
    found.extend(ranks.map(|totals| ("slow ranks", slow_ranks(totals))));
    let waited = outcome.lost.input_wait;
    found.extend(outcome.input.as_ref().map(|totals| ("input", input_line(totals, waited))));
    found.extend(view.inputs.references().iter().map(|one| ("check", check_line(view, summary, one))));
    found.extend(outcome.warnings.iter().map(|warning| ("warning", warning_line(view, warning))));
    found
}

fn goodput(view: &JobView, summary: Option<&RunsSummary>) -> String {
    let what = "of the wall time is useful (ETTR, for a job that never queues)";
    match summary {
        None => format!("{} {what}", share_of_wall(view.outcome.useful_fraction())),
        Some(summary) => format!(
            "{} ± {} {what}; mean of {} runs",
            share_of_wall(summary.useful_fraction.mean),
            share_of_wall(summary.useful_fraction.standard_error),
            grouped(summary.runs as u64)
        ),
    }
}

/// When the work is done, for jobs that are long or counted in steps.
fn completion(view: &JobView) -> Option<String> {
    const DAY: f64 = 86_400e9;
    let (elapsed, useful) = view.mean_times();
    let set_aside = view.target.set_aside;
    let is_long = view.target.steps.is_some() && elapsed > DAY / 2.0;
    let matters = set_aside > Duration::ZERO || view.target.start.is_some() || is_long;
    if !matters || !view.finishes() || useful <= 0.0 {
        return None;
    }
    let end = days(Duration::from_nanos(elapsed.round() as u64), set_aside);
    let aside = if set_aside > Duration::ZERO { format!(" + {set_aside} set aside") } else { String::new() };
    Some(format!(
        "after {end:.1} days: {:.2} days of useful work + {} for losses{aside}",
        useful / DAY,
        share_of_wall(elapsed / useful - 1.0)
    ))
}

/// The date at which the work is done, and how sure that is.
fn calendar(view: &JobView, summary: Option<&RunsSummary>) -> Option<String> {
    if !view.finishes() {
        return None;
    }
    let date = |wall: f64| view.date_after(wall).map(CalendarStart::short);
    let line = format!("from {} to {}", view.target.start?.short(), date(view.mean_times().0)?);
    let Some(summary) = summary else { return Some(line) };
    let [_, p5, _, p50, _, p95, _] = summary.elapsed.percentiles;
    Some(format!("{line} on average; p5 {}, median {}, p95 {}", date(p5)?, date(p50)?, date(p95)?))
}

/// How the job saves, in words.
fn how_it_saves(checkpoint: &Checkpoint) -> String {
    let size = checkpoint.size.map_or(String::new(), |size| format!(" of {}", bytes_short(size)));
    let every = Duration::from_nanos(checkpoint.requests.every.mean_nanos().round() as u64);
    let counts = match checkpoint.requests.trigger {
        Trigger::Wall => "on the clock",
        Trigger::WallSinceResume => "on the clock since the start or resume",
        Trigger::Work => "of useful work",
    };
    let write = match checkpoint.write {
        Write::Rate(rate) => format!("written at {} GB/s", trimmed(rate.per_second_f64() / 1e9, 3)),
        Write::Time(time) => {
            format!("a write takes {}", Duration::from_nanos(time.mean_nanos().round() as u64))
        }
        Write::Storage => "written to the shared storage".to_owned(),
    };
    let how = match checkpoint.mode {
        Mode::Sync => "training waits for the write".to_owned(),
        Mode::Async { staging, backlog, .. } => format!(
            "training pauses {staging} for the copy; {}",
            match backlog {
                Backlog::Block { buffers } =>
                    format!("{}, training waits for a free one", counted(buffers.into(), "buffer")),
                Backlog::Queue => "as many buffers as it takes".to_owned(),
                Backlog::Skip { buffers } =>
                    format!("{}, with none free a save is skipped", counted(buffers.into(), "buffer")),
                Backlog::Replace { buffers } => {
                    format!(
                        "{}, with none free the newer snapshot replaces the waiting one",
                        counted(buffers.into(), "buffer")
                    )
                }
            }
        ),
    };
    let near = checkpoint
        .near
        .as_ref()
        .map_or(String::new(), |near| format!("; one in {} goes to the far place", near.far_every));
    let mean =
        if matches!(checkpoint.requests.every, pipestep_job::Spread::Fixed(_)) { "" } else { " on average" };
    format!("one{size} every {every} {counts}{mean}, {write}; {how}{near}")
}

fn saves_line(view: &JobView, saves: &SaveTotals) -> String {
    let near = view.outcome.checkpoints.iter().filter(|record| record.place == Place::Near).count() as u64;
    let open = saves.captured.saturating_sub(saves.durable + saves.lost + near);
    let mut parts =
        vec![format!("{} asked for, {} usable", grouped(saves.requested), grouped(saves.durable))];
    for (count, what) in [
        (near, "to the near place only"),
        (saves.skipped, "skipped or replaced"),
        (saves.lost, "lost to failures before they were"),
        (open, "not usable at the end"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    let lag = (saves.durable > 0)
        .then(|| Duration::from_nanos(saves.commit_lag.as_nanos() / saves.durable))
        .map_or(String::new(), |lag| format!("; {lag} from capture to usable on average"));
    format!("{}{lag}; training stood still for {}", parts.join(", "), view.outcome.pause_total)
}

fn backlog_line(saves: &SaveTotals) -> Option<String> {
    let peak = saves.peak_bytes.filter(|&peak| peak > Bytes::ZERO)?;
    let trend =
        if saves.backlog_grows { "writes are asked for faster than they end" } else { "the writer keeps up" };
    Some(format!("at most {} in buffers, at {}; {trend}", bytes_short(peak), saves.peak_at))
}

fn failures_line(view: &JobView) -> Option<String> {
    let outcome = view.outcome;
    let faults = &view.inputs.faults;
    if faults.at.is_empty() && faults.sources.is_empty() && outcome.failures_counted == 0 {
        return None;
    }
    let mut line = counted(outcome.failures_counted, "failure");
    if outcome.failures_ignored > 0 {
        let count = grouped(outcome.failures_ignored);
        let _ = write!(line, ", {count} more while the job was down anyway");
    }
    if outcome.failures_counted > 1 {
        let between = Duration::from_nanos(outcome.elapsed.as_nanos() / outcome.failures_counted);
        let _ = write!(line, "; one every {between} on average");
    }
    let mut causes: Vec<_> = outcome.causes.iter().filter(|total| total.count > 0).collect();
    if outcome.causes.len() > 1 && !causes.is_empty() {
        causes.sort_by_key(|total| std::cmp::Reverse(total.count));
        let most: Vec<String> =
            causes.iter().take(4).map(|total| format!("{} {}", total.cause, grouped(total.count))).collect();
        let _ = write!(line, "; most are {}", most.join(", "));
    }
    Some(line)
}

/// How the job got by with fewer replicas.
fn replicas_line(totals: &ReplicaTotals) -> String {
    if totals.shrunk == 0 {
        return format!("all {} at work all the time", grouped(totals.all.into()));
    }
    let times =
        if totals.shrunk == 1 { "once".to_owned() } else { format!("{} times", grouped(totals.shrunk)) };
    format!(
        "went down {times}, to {} of {} at the lowest; {} of training with fewer than all",
        grouped(totals.fewest.into()),
        grouped(totals.all.into()),
        totals.short
    )
}

fn slow_ranks(totals: &StragglerTotals) -> String {
    let mut parts = vec![format!("{} steps", grouped(totals.steps))];
    for (count, what) in [
        (totals.became_slow, "became slow"),
        (totals.noticed, "noticed"),
        (totals.false_alarms, "false alarms"),
        (totals.evicted, "replaced"),
        (totals.taken_out, "taken out"),
        (totals.gradients_lost, "gradients lost"),
        (totals.gradients_late, "gradients late"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", grouped(count)));
        }
    }
    if totals.lateness_max > 0 {
        parts.push(format!("the latest by {} steps", totals.lateness_max));
    }
    parts.join(", ")
}

fn input_line(totals: &InputTotals, waited: Duration) -> String {
    let mut line = format!(
        "{} of {} steps waited, {} a step on average, the longest {}; {} items handed out, {} of them again",
        grouped(totals.steps_waited),
        grouped(totals.steps),
        Duration::from_nanos(waited.as_nanos() / totals.steps.max(1)),
        totals.longest_wait,
        grouped(totals.handed_out),
        grouped(totals.replayed)
    );
    let packed = totals.packed;
    if packed.slots > 0 {
        let filled = packed.tokens as f64 / packed.slots as f64;
        let _ = write!(
            line,
            "; packed from {} samples, {} of the token slots filled",
            grouped(packed.samples),
            share_of_wall(filled)
        );
    }
    line
}

/// A formula's value, with the simulated one where there is one to hold beside it.
fn check_line(view: &JobView, summary: Option<&RunsSummary>, reference: &Reference) -> String {
    let simulated =
        summary.map_or_else(|| view.outcome.useful_fraction(), |summary| summary.useful_fraction.mean);
    let name = match reference.name {
        "young_interval" => "Young's best interval",
        "daly_interval" => "Daly's best interval",
        "exact_interval" => "exact best interval",
        "first_order_useful_fraction" => "useful fraction, first order",
        "exact_useful_fraction" => "useful fraction, exact",
        "simple_rule_loss" => "loss, simple rule",
        other => other,
    };
    let value = match reference.unit {
        ReferenceUnit::Interval => {
            let interval = view.inputs.checkpoint.as_ref().map_or(0.0, |one| one.requests.every.mean_nanos());
            let interval = Duration::from_nanos(interval.round() as u64);
            format!("{} s (here {interval})", trimmed(reference.value, 1))
        }
        ReferenceUnit::UsefulFraction => {
            format!("{} (simulated {})", share_of_wall(reference.value), share_of_wall(simulated))
        }
        ReferenceUnit::Loss => {
            format!("{} (simulated {})", share_of_wall(reference.value), share_of_wall(1.0 - simulated))
        }
    };
    format!("{name}: {value}: {}", reference.note)
}

/// A warning, with what to do about it where the settings say.
fn warning_line(view: &JobView, warning: &Warning) -> String {
    let fixed_clock = view.inputs.checkpoint.as_ref().is_some_and(|checkpoint| {
        matches!(checkpoint.requests.trigger, Trigger::Wall)
            && matches!(checkpoint.mode, Mode::Async { backlog: Backlog::Block { .. }, .. })
    });
    match warning {
        Warning::WriterTooSlow { .. } if fixed_clock => format!(
            "{warning}; with `trigger = \"wall\"` and `backlog = \"block\"` training waits more and more: save \
             less often, write faster, or skip"
        ),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::{JobSample, seconds};

    fn text(sample: &JobSample) -> String {
        let text = job_text(&sample.view());
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{line}");
            assert_eq!(line, line.trim_end());
        }
        text
    }

    #[test]
    fn the_textbooks_saves_commit_and_cost_what_it_says() {
        let slow = text(&JobSample::seed(7, &[50]));
        for needle in ["36.5 s", "30 s", "29 s", "45.5 GB unwritten", "16.5 s from capture to usable"] {
            assert!(slow.contains(needle), "{needle}: {slow}");
        }
        let fast = text(&JobSample::seed(20, &[50]));
        for needle in ["26.1 s", "46.1 s", "10 s", "9.5 s", "the writer keeps up"] {
            assert!(fast.contains(needle), "{needle}: {fast}");
        }
    }

    #[test]
    fn a_writer_that_is_too_slow_is_warned_of() {
        let mut sample = JobSample::seed(7, &[]);
        let checkpoint = sample.inputs.checkpoint.as_mut().expect("the seed's job saves");
        checkpoint.requests.every = pipestep_job::Spread::Fixed(seconds(10));
        sample.inputs.work = None;
        sample.inputs.horizon = Some(pipestep_engine::Time::from_nanos(600_000_000_000));
        let text = text(&JobSample::of(sample.inputs, 1)).split_whitespace().collect::<Vec<_>>().join(" ");
        for needle in
            ["11.2 GB/s asked, 7.0 GB/s given", "save less often, write faster, or skip", "stands still"]
        {
            assert!(text.contains(needle), "{needle}: {text}");
        }
    }

    #[test]
    fn random_runs_are_summed_up_with_formulas_beside_them() {
        let text = text(&JobSample::weeks(8));
        for needle in
            ["8 runs", "median", "Young's best interval", "simple rule", "(simulated", "failures shown"]
        {
            assert!(text.contains(needle), "{needle}: {text}");
        }
    }

    #[test]
    fn with_a_start_the_end_is_a_date() {
        let mut sample = JobSample::weeks(8);
        assert!(!text(&sample).contains("calendar"));
        sample.target.start = Some(CalendarStart::parse("2026-03-01").expect("a date"));
        sample.target.set_aside = seconds(5 * 86_400);
        let text = text(&sample).split_whitespace().collect::<Vec<_>>().join(" ");
        // Thirty days of work, five set aside, and five of losses.
        for needle in ["calendar from 2026-03-01 00:00 to 2026-04-10", "p5 2026-04-09", "p95 2026-04-10"] {
            assert!(text.contains(needle), "{needle}: {text}");
        }
        let target = crate::JobResult::new(&sample.view()).target.expect("it has a start");
        let date = target.expected_date.expect("it has a start");
        let days = CalendarStart::parse("2026-03-01").ok();
        let want = days.and_then(|start| {
            start.after(Duration::from_nanos((target.expected_days * 86_400e9).round() as u64))
        });
        assert_eq!(Some(date), want.map(|date| date.to_string()));
        assert_eq!(target.date_percentiles.len(), 7);
    }

    #[test]
    fn every_second_is_in_the_table() {
        let sample = JobSample::weeks(1);
        let outcome = &sample.outcome;
        let lost = outcome.lost.total_nanos() as u64;
        assert_eq!(outcome.useful.as_nanos() + lost, outcome.elapsed.as_nanos());
        let result = crate::JobResult::new(&sample.view());
        let listed: i64 = result.lost.values().sum();
        assert_eq!(result.useful_ns as i64 + listed, result.elapsed_ns as i64);
    }
}
