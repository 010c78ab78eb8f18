//! The terminal's answer to `run` and `compare`: a table and the lines below it, never wider than 100 columns.
//!
//! What is quoted (makespan, peaks, messages, the budget) is printed exactly; times in the cells of a table are
//! rounded to three decimals.

use std::fmt::Write as _;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use pipestep_engine::{Bytes, Duration, Time};

use crate::StepView;
use crate::pareto::pareto_front;
use crate::units::{bytes_exact, bytes_short, grouped, percent, time_exact};
use crate::wrap::{COLUMNS, cut, wrapped};

/// More ranks than this are not listed one by one.
const RANKS_LISTED: usize = 32;

/// What `run` prints: heading, a table by rank, the summary.
pub fn run_text(view: &StepView) -> String {
    let mut text = heading(&[&view.labels.name, "\n", &view.labels.schedule, ": ", &view.shape_text()]);
    let listed = ranks_to_list(view);
    text += &lines(&rank_table(view, &listed));
    if listed.len() < view.summary.ranks.len() {
        let (shown, all) = (listed.len(), view.summary.ranks.len());
        let _ = writeln!(text, "{shown} of {all} ranks shown, the highest peak among them; --json lists all");
    }
    text.push('\n');
    for (name, value) in summary_lines(view) {
        text += &wrapped(name, &value);
    }
    text
}

/// What `compare` prints: one row a schedule, fastest first, with the Pareto front of time and memory marked.
pub fn compare_text(views: &[StepView]) -> String {
    let Some(first) = views.first() else {
        return String::new();
    };
    let mut text = heading(&[&first.labels.name, "\n", &first.counts_text()]);
    text += &lines(&compare_table(views));
    text += "* nothing else compared here is faster with no more memory, or smaller with no more time\n";
    if let Some(budget) = first.common_budget() {
        let _ = writeln!(text, "budget {} on every rank", bytes_exact(budget));
    }
    text
}

fn compare_table(views: &[StepView]) -> Table {
    let points: Vec<_> = views.iter().map(time_and_peak).collect();
    let front = pareto_front(&points);
    let mut order: Vec<usize> = (0..views.len()).collect();
    order.sort_by_key(|&index| points[index]);
    let best = points[order[0]].0;
    let has_budget = views.iter().any(|view| view.fits().is_some());
    let mut header = vec!["", "schedule", "makespan", "vs best", "bubble", "highest peak", "rank"];
    header.extend(has_budget.then_some("fits"));
    let mut table = new_table(&header);
    for index in order {
        let view = &views[index];
        let (rank, peak) = view.highest_peak();
        let slower = (points[index].0 - best) as f64 / best.max(1) as f64;
        let mut row = vec![
            if front[index] { "*" } else { "" }.to_owned(),
            schedule_with_chunks(view),
            view.summary.makespan.to_string(),
            if points[index].0 == best { String::new() } else { format!("+{}", percent(slower)) },
            percent(view.summary.bubble().by_makespan),
            bytes_exact(peak),
            rank.to_string(),
        ];
        row.extend(has_budget.then(|| yes_or_no(view.fits())));
        table.add_row(row);
    }
    align(&mut table, &[0, 1]);
    table
}

/// A schedule's makespan in ns and its highest peak in bytes: what candidates are compared by.
pub(crate) fn time_and_peak(view: &StepView) -> (u64, u64) {
    (view.summary.makespan.as_nanos(), view.highest_peak().1.get())
}

/// `interleaved, 4 chunks`; the name alone where a rank holds one chunk or the name says it already.
pub(crate) fn schedule_with_chunks(view: &StepView) -> String {
    let (name, chunks) = (&view.labels.schedule, view.shape.chunks());
    match (view.shape.copies(), chunks) {
        (1, 2..) if !name.contains("chunk") => format!("{name}, {chunks} chunks"),
        _ => name.clone(),
    }
}

fn rank_table(view: &StepView, listed: &[usize]) -> Table {
    let has_budget = view.fits().is_some();
    let mut header = vec!["rank", "busy", "idle", "idle share", "peak", "peak at"];
    header.extend(has_budget.then_some("fits"));
    let mut table = new_table(&header);
    let working = view.summary.working_time().as_secs_f64();
    for &rank in listed {
        let outcome = &view.summary.ranks[rank];
        let share = if working > 0.0 { outcome.idle.as_secs_f64() / working } else { 0.0 };
        let mut row = vec![
            rank.to_string(),
            outcome.busy.to_string(),
            outcome.idle.to_string(),
            percent(share),
            bytes_exact(outcome.peak.bytes),
            outcome.peak.at.to_string(),
        ];
        row.extend(has_budget.then(|| yes_or_no(view.rank_fits(rank))));
        table.add_row(row);
    }
    align(&mut table, &[]);
    table
}

/// All ranks while they are few; beyond that evenly spaced ones, with the first, the last and the highest peak.
pub(crate) fn ranks_to_list(view: &StepView) -> Vec<usize> {
    let all = view.summary.ranks.len();
    if all <= RANKS_LISTED {
        return (0..all).collect();
    }
    let mut listed: Vec<usize> = (0..all).step_by(all.div_ceil(RANKS_LISTED / 2)).collect();
    listed.extend([all - 1, view.highest_peak().0.index()]);
    listed.sort_unstable();
    listed.dedup();
    listed
}

fn summary_lines(view: &StepView) -> Vec<(&'static str, String)> {
    let summary = view.summary;
    let (p, m) = (view.shape.ranks() as f64, view.shape.micro_batches() as f64);
    let bubble = summary.bubble();
    let messages = summary.messages;
    let since_zero = |time: Time| time_exact(time.since(Time::ZERO));
    let mut lines = vec![
        (
            "makespan",
            format!(
                "{}, last gradient at {}",
                since_zero(summary.makespan),
                since_zero(summary.gradient_ready)
            ),
        ),
        (
            "bubble",
            format!(
                "{} by makespan, {} by longest rank span, {} over ideal",
                percent(bubble.by_makespan),
                percent(bubble.by_longest_span),
                percent(bubble.over_ideal)
            ),
        ),
        (
            "utilisation",
            format!(
                "{} (check: m/(m+p-1) = {}, the closed form for equal stages, one chunk, free transfers)",
                percent(view.summary.utilisation()),
                percent(m / (m + p - 1.0))
            ),
        ),
        (
            "transfers exposed",
            format!(
                "{} (the same orders take {} with free transfers)",
                time_exact(view.transfers_exposed()),
                since_zero(summary.zero_transfer_makespan)
            ),
        ),
        (
            "messages",
            format!(
                "{} activations and {} gradients, {}",
                grouped(messages.forward),
                grouped(messages.backward),
                bytes_exact(messages.bytes)
            ),
        ),
        ("memory", memory_line(view)),
    ];
    if summary.setup > Duration::ZERO {
        lines.insert(1, ("setup", format!("{}, counted in the makespan", time_exact(summary.setup))));
    }
    lines
}

/// Which rank binds, and by how much.
fn memory_line(view: &StepView) -> String {
    let Some((rank, peak, budget)) = view.binding_rank() else {
        let (rank, peak) = view.highest_peak();
        return format!("rank {rank} has the highest peak, {}", bytes_exact(peak));
    };
    let of = if view.common_budget().is_some() { "the budget of" } else { "its budget of" };
    let (peak_text, budget_text) = (bytes_exact(peak), bytes_short(budget));
    let gap = bytes_exact(Bytes::new(peak.get().abs_diff(budget.get())));
    if peak <= budget {
        return format!("fits {of} {budget_text}: rank {rank} binds with {peak_text}, {gap} to spare");
    }
    let over = (0..view.summary.ranks.len()).filter(|&rank| view.rank_fits(rank) == Some(false));
    let (over, all) = (over.count(), view.summary.ranks.len());
    format!(
        "does not fit {of} {budget_text}: rank {rank} binds with {peak_text}, {gap} too much; {over} of {all} \
         ranks exceed it"
    )
}

pub(crate) fn yes_or_no(fits: Option<bool>) -> String {
    match fits {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "-",
    }
    .to_owned()
}

pub(crate) fn new_table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(COLUMNS as u16);
    table.set_header(header);
    table
}

/// Numbers to the right, the named columns to the left.
pub(crate) fn align(table: &mut Table, left: &[usize]) {
    for (index, column) in table.column_iter_mut().enumerate() {
        let side = if left.contains(&index) { CellAlignment::Left } else { CellAlignment::Right };
        column.set_cell_alignment(side);
    }
}

/// The table's lines without the blanks at their ends, between rules.
pub(crate) fn lines(table: &Table) -> String {
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let rule = "─".repeat(width);
    let (header, rows) = lines.split_first().expect("every table has a header");
    let all = [&rule, header, &rule].into_iter().chain(rows).chain([&rule]);
    all.map(|line| line.clone() + "\n").collect()
}

/// Title lines, each cut at the last column.
pub(crate) fn heading(parts: &[&str]) -> String {
    let text = parts.concat();
    text.lines().map(|line| cut(line, COLUMNS) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Sample;
    use crate::wrap::assert_fits;

    #[test]
    fn the_headline_prints_its_numbers_exactly() {
        let sample = Sample::new("1f1b", 4, 1, 8);
        let text = run_text(&sample.view());
        println!("{text}");
        assert_fits(&text);
        for needle in [
            "1f1b: 4 ranks, 8 micro-batches",
            "965,758,976 B (0.97 GB)",
            "makespan           347 ms, last gradient at 346 ms",
            "30.6 % by makespan, 30.6 % by longest rank span, 44.2 % over ideal",
            "69.4 % (check: m/(m+p-1) = 72.7 %",
            "16 ms (the same orders take 331 ms with free transfers)",
            "24 activations and 24 gradients, 75,497,472 B (75.5 MB)",
            "fits the budget of 1 GB: rank 0 binds with 965,758,976 B (0.97 GB), 34,241,024 B",
        ] {
            assert!(text.contains(needle), "{needle}");
        }
    }

    #[test]
    fn a_step_that_does_not_fit_names_the_rank_that_binds_and_by_how_much() {
        let sample = Sample::new("fill-drain", 4, 1, 8);
        let text = run_text(&sample.view());
        assert_fits(&text);
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let line = "does not fit the budget of 1 GB: rank 3 binds with 2,566,434,816 B (2.57 GB), 1,566,434,816 B \
                    (1.57 GB) too much; 4 of 4 ranks exceed it";
        assert!(flat.contains(line), "{text}");
    }

    #[test]
    fn many_ranks_are_sampled_and_the_highest_peak_stays() {
        let mut sample = Sample::stretched("1f1b", [100, 1, 4], 1_234_567);
        sample.labels.name = "a very long name ".repeat(20);
        sample.outcome.summary.ranks[41].peak.bytes = Bytes::new(u64::MAX);
        let text = run_text(&sample.view());
        assert_fits(&text);
        assert!(text.lines().count() < 45, "{text}");
        assert!(text.contains("17 of 100 ranks shown, the highest peak among them"), "{text}");
        assert!(text.contains("rank 41 binds"), "{text}");
    }

    #[test]
    fn ranks_with_budgets_of_their_own_bind_by_what_they_have_to_spare() {
        let mut sample = Sample::new("1f1b", 4, 1, 8);
        sample.labels.budgets =
            [2_000_000_000, 700_000_000, 500_000_000, 400_000_000].map(Bytes::new).to_vec();
        let text = run_text(&sample.view());
        assert!(text.contains("does not fit its budget of 0.7 GB: rank 1 binds"), "{text}");
        assert!(text.contains("1 of 4"), "{text}");
    }

    #[test]
    fn without_a_budget_nothing_is_said_to_fit() {
        let mut sample = Sample::new("1f1b", 4, 1, 8);
        sample.labels.budgets.clear();
        let text = run_text(&sample.view());
        assert!(!text.contains("fit"), "{text}");
        assert!(text.contains("rank 0 has the highest peak, 965,758,976 B (0.97 GB)"), "{text}");
    }

    #[test]
    fn a_comparison_is_sorted_and_marks_the_front() {
        let samples = [
            Sample::new("1f1b", 4, 1, 8),
            Sample::new("fill-drain", 4, 1, 8),
            Sample::new("interleaved", 4, 2, 8),
        ];
        let views: Vec<_> = samples.iter().map(Sample::view).collect();
        let text = compare_text(&views);
        println!("{text}");
        assert_fits(&text);
        let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("{needle} in {text}"));
        assert!(at("interleaved, 2 chunks") < at("fill-drain") && at("fill-drain") < at("1f1b"));
        let marked: Vec<bool> =
            text.lines().filter(|l| l.contains(" ms ")).map(|l| l.contains('*')).collect();
        assert_eq!(marked, [true, false, true], "{text}");
        assert_eq!(compare_text(&[]), "");
    }
}
