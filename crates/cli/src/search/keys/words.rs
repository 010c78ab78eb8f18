//! What a search over keys says: the best, the runners-up, what can and what cannot be told apart, and why.

use std::fmt::Write as _;

use pipestep_job::{Reference, ReferenceUnit};

use super::find::FoundKeys;
use super::measure::Measured;
use super::space::{KeySpace, name};
use super::why::why;
use crate::search::figures::{
    column, show, show_amount, show_difference, show_error, superlative, with_error,
};
use crate::search::table::{bullet, paragraph, table};

/// What is needed for the words besides what was found.
pub(crate) struct About<'a> {
    pub(crate) scenario: &'a str,
    pub(crate) space: &'a KeySpace,
    /// How many settings are shown.
    pub(crate) shown: usize,
    /// The closed forms beside the best, if it is an interval between saves that was searched.
    pub(crate) references: Vec<Reference>,
    /// The stage that limits the best and the one behind it, with what doubling it gives; only of rounds of RL.
    pub(crate) bottlenecks: [Option<(String, f64)>; 2],
    /// How to run the best again.
    pub(crate) again: String,
}

/// What is printed.
pub(crate) fn text(about: &About, found: &FoundKeys) -> String {
    let mut text = heading(about, found);
    let Some(&best) = found.order.first() else {
        text += &nothing(found);
        return text;
    };
    let (objective, runs) = (found.subject.objective, found.subject.runs);
    let of_runs = if runs > 1 { format!(", mean of {runs} runs") } else { String::new() };
    let _ = writeln!(text, "\n{}{of_runs}:\n", superlative(objective));
    text += &rows(about, found, best);
    text += &legend(found, best);
    let lines = why(about, found, best);
    if !lines.is_empty() {
        let _ = writeln!(text, "\nwhy the first one:");
        text.extend(lines.iter().map(|line| bullet(line)));
    }
    text += &intervals(about, found, best);
    // One line however long, so that it can be copied.
    let _ = writeln!(text, "\nto run it:\n\n  {}", about.again);
    text
}

/// What was tried.
fn heading(about: &About, found: &FoundKeys) -> String {
    let grid = found.tried.iter().filter(|tried| !tried.is_between).count();
    let between = found.tried.len() - grid;
    let illegal: Vec<&String> = found.tried.iter().filter_map(|tried| tried.outcome.as_ref().err()).collect();
    let mut line = format!("{}: {grid} settings", about.scenario);
    if between > 0 {
        let _ = write!(line, ", {between} more between them");
    }
    let _ = write!(line, ", {} refused", illegal.len());
    if found.subject.runs > 1 {
        let _ = write!(line, "; {} runs of each, with the same seeds", found.subject.runs);
    }
    let mut text = paragraph(&line);
    if let Some(reason) = illegal.first() {
        text += &paragraph(&format!("refused, for example: {reason}"));
    }
    text
}

fn nothing(found: &FoundKeys) -> String {
    let reason = found.tried.iter().find_map(|tried| tried.outcome.as_ref().err());
    let reason = reason.map_or("there is no setting", String::as_str);
    paragraph(&format!("nothing could be simulated: {reason}"))
}

/// The settings that are listed: the best of all that were asked for, and of those between only the best of its line.
pub(super) fn listed(about: &About, found: &FoundKeys) -> Vec<usize> {
    let best = found.order.first().copied();
    let is_listed = |index: &usize| !found.tried[*index].is_between || Some(*index) == best;
    found.order.iter().copied().filter(is_listed).take(about.shown).collect()
}

fn rows(about: &About, found: &FoundKeys, best: usize) -> String {
    let Some(first) = found.measured(best) else { return String::new() };
    let has_runs = found.subject.runs > 1;
    let row = |index: usize| -> Option<Vec<String>> {
        let measured = found.measured(index)?;
        let behind = found.behind(measured, first)?;
        let objective = found.subject.objective;
        let certain = if has_runs { show_error(objective, standard_error(measured)) } else { String::new() };
        let (how_far, said) = if index == best {
            (String::new(), "")
        } else if has_runs && behind.standard_error > 0.0 {
            let said = if behind.is_sure(found.order.len()) { "" } else { "not told apart" };
            (with_error(objective, behind.mean, behind.standard_error), said)
        } else {
            (show_difference(objective, behind.mean), "")
        };
        let shown = show(objective, measured.mean());
        Some(vec![shown, certain, how_far, said.to_owned(), name(&found.tried[index].setting)])
    };
    let rows: Vec<Vec<String>> = listed(about, found).into_iter().filter_map(row).collect();
    let certain = if has_runs { "std. error" } else { "" };
    table(&[column(found.subject.objective), certain, "behind the first", "", "setting"], &[3, 4], &rows)
}

/// How many settings could be the best after all.
fn legend(found: &FoundKeys, best: usize) -> String {
    let worth_saying = found.subject.runs > 1 && found.order.len() > 1;
    let Some(first) = found.measured(best).filter(|_| worth_saying) else { return String::new() };
    let is_close = |index: &usize| {
        let behind = found.measured(*index).and_then(|measured| found.behind(measured, first));
        *index != best && behind.is_some_and(|behind| !behind.is_sure(found.order.len()))
    };
    let close = found.order.iter().filter(|index| is_close(index)).count();
    let runs = found.subject.runs;
    let said = match close {
        0 => format!("{runs} runs tell the first one apart from all others"),
        1 => format!("{runs} runs do not tell one other setting apart from the first"),
        _ => format!("{runs} runs do not tell {close} other settings apart from the first"),
    };
    let line = format!("{said} (95 % sure, by the differences run by run)");
    paragraph(&line)
}

/// Along each continuous key: how wide the best is, and what formulas say.
fn intervals(about: &About, found: &FoundKeys, best: usize) -> String {
    let mut text = String::new();
    for (place, dimension) in about.space.dimensions.iter().enumerate() {
        let (true, Some(measure)) = (dimension.is_continuous(), dimension.measure) else { continue };
        let Some(here) = found.tried[best].setting[place].number else { continue };
        let short = crate::sweep::short(&dimension.name);
        let _ = writeln!(text, "\n{}:", dimension.name);
        let mut say = |line: String| text += &bullet(&line);
        say(format!("the best simulated: {short} {}", show_amount(measure, here)));
        if let Some((low, high)) = found.span(best, place) {
            let (low, high) = (show_amount(measure, low), show_amount(measure, high));
            say(format!(
                "from {low} to {high} no simulated value can be told apart from it at this number of runs"
            ));
        }
        if let Some(curve) = found.curve(best, place, &dimension.name) {
            let (lowest, points) = (show_amount(measure, curve.lowest), curve.points);
            say(format!(
                "the curve a/x + b + dx through the {points} simulated points round it is lowest at {lowest}"
            ));
        }
        for reference in about.references.iter().filter(|_| dimension.name == "checkpoint.every") {
            if reference.unit == ReferenceUnit::Interval {
                let name = reference.name.replace('_', " ");
                say(format!("check, {name}: {:.1} s: {}", reference.value, reference.note));
            }
        }
    }
    text
}

/// The standard error of the mean of the runs.
pub(super) fn standard_error(measured: &Measured) -> f64 {
    pipestep_job::Estimate::of(&measured.samples).map_or(0.0, |estimate| estimate.standard_error)
}
