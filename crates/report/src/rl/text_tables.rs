//! The tables that rounds print: where the trainer's time went, how busy each stage was, how old samples are.

use comfy_table::Table;
use pipestep_engine::Duration;

use super::RlView;
use crate::table::{align, new_table};
use crate::units::{grouped, percent, trimmed};

/// Ages listed at most.
const AGES: usize = 10;
/// Length of the longest bar, in columns.
const BAR: usize = 40;

/// A mean round, cause by cause.
pub(super) fn split_table(view: &RlView) -> Table {
    let outcome = &view.sensitivity.base;
    let rounds = (outcome.rounds.len() as u64).max(1);
    let header = format!("where {} goes", view.one_round());
    let mut table = new_table(&[&header, "mean", "share", ""]);
    let elapsed = outcome.elapsed.as_nanos().max(1) as f64;
    let mut row = |name: &str, time: Duration, what: &str| {
        let mean = Duration::from_nanos(time.as_nanos() / rounds);
        let share = percent(time.as_nanos() as f64 / elapsed);
        table.add_row([name.to_owned(), mean.to_string(), share, what.to_owned()]);
    };
    let split = &outcome.split;
    for (name, time, what) in [
        ("rollout", split.rollout, "the trainer waits for responses"),
        ("scoring", split.scoring, "it waits for scores of responses that have ended"),
        ("handoff", split.handoff, "it waits for samples on their way to it"),
        ("update", split.update, "it updates"),
        ("weight sync", split.sync, "it waits for the weights to reach the engines"),
        ("switch", split.switch, "the devices change between rollout and training"),
        ("turn", split.turn, "engines or trainer are another job's, or change hands"),
        ("down", split.down, "something is broken"),
    ] {
        if time > Duration::ZERO {
            row(name, time, what);
        }
    }
    row("all", outcome.elapsed, "");
    align(&mut table, &[0, 3]);
    table
}

/// Each stage: how busy, and what speed would change.
pub(super) fn stage_table(view: &RlView) -> Table {
    let outcome = &view.sensitivity.base;
    let mut header = vec!["stage", "servers", "busy", "idle", "busy share", "if twice as fast"];
    let is_known = !view.limits_below.is_empty();
    header.extend(is_known.then_some("would limit below"));
    let mut table = new_table(&header);
    let elapsed = outcome.elapsed.as_nanos().max(1) as f64;
    for (stage, gain, below) in view.stages() {
        let mut row = vec![
            stage.name.replace('_', " "),
            grouped(stage.servers),
            stage.busy.to_string(),
            stage.idle.to_string(),
            percent(stage.busy.as_nanos() as f64 / elapsed),
            gain.map_or_else(|| "-".to_owned(), signed_percent),
        ];
        row.extend(is_known.then(|| match below {
            _ if view.sensitivity.bottleneck.as_deref() == Some(stage.name.as_str()) => "limits".to_owned(),
            Some(speed) => percent(speed.as_f64()) + " of its speed",
            None => "-".to_owned(),
        }));
        table.add_row(row);
    }
    align(&mut table, &[0]);
    table
}

/// The jobs that share engines and trainer, side by side, and what they use together.
pub(super) fn jobs_table(view: &RlView) -> Table {
    let own = &view.sensitivity.base;
    let mut table = new_table(&["job", "round", "samples/s", "waits", "engines", "trainer"]);
    let jobs = own.jobs.iter().map(|job| (job.name.as_str(), &job.outcome));
    let mut all = [0.0; 3];
    for (name, outcome) in std::iter::once((view.name, own)).chain(jobs) {
        let elapsed = outcome.elapsed.as_nanos().max(1) as f64;
        let share = |time: Duration| time.as_nanos() as f64 / elapsed;
        let used = |stage: &str| {
            outcome.stages.iter().find(|one| one.name == stage).map_or(0.0, |one| share(one.busy))
        };
        let shares = [used("rollout"), used("update") + used("weight_sync")];
        table.add_row([
            name.to_owned(),
            outcome.round.to_string(),
            trimmed(outcome.useful_samples_per_s, 3),
            percent(share(outcome.split.turn)),
            percent(shares[0]),
            percent(shares[1]),
        ]);
        all = [all[0] + outcome.useful_samples_per_s, all[1] + shares[0], all[2] + shares[1]];
    }
    let total = [trimmed(all[0], 3), String::new(), percent(all[1]), percent(all[2])];
    table.add_row(["all".to_owned(), String::new()].into_iter().chain(total));
    align(&mut table, &[0]);
    table
}

/// `+36.4 %`.
pub(super) fn signed_percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// How old the weights were that samples came from, with bars; ages are put together where there are many.
pub(super) fn staleness_table(staleness: &[u64]) -> Table {
    let first = staleness.iter().position(|&count| count > 0).unwrap_or(0);
    let end = staleness.iter().rposition(|&count| count > 0).map_or(first, |last| last + 1);
    let each = (end - first).div_ceil(AGES).max(1);
    let rows: Vec<(usize, u64)> = (first..end)
        .step_by(each)
        .map(|age| (age, staleness[age..end.min(age + each)].iter().sum()))
        .collect();
    let total = staleness.iter().sum::<u64>().max(1);
    let most = rows.iter().map(|row| row.1).max().unwrap_or(1).max(1);
    let mut table = new_table(&["weights, updates old", "samples", "share", ""]);
    for (age, count) in rows {
        let last = end.min(age + each) - 1;
        let age = if last > age { format!("{age} to {last}") } else { age.to_string() };
        let bar = "█".repeat((count as f64 / most as f64 * BAR as f64).round() as usize);
        table.add_row([age, grouped(count), percent(count as f64 / total as f64), bar]);
    }
    align(&mut table, &[3]);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_ages_share_rows_and_none_is_left_out() {
        let mut staleness = vec![0; 40];
        for count in &mut staleness[3..] {
            *count = 5;
        }
        let text = staleness_table(&staleness).to_string();
        assert!(text.contains("3 to 6") && text.contains("39"), "{text}");
        assert_eq!(text.lines().filter(|line| line.contains('█')).count(), 10, "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 100));
        assert_eq!(staleness_table(&[]).to_string().lines().count(), 1);
    }
}
