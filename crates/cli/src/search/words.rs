//! What a search says: the best, the runners-up, the front, and why the best wins.

use std::fmt::Write as _;

use pipestep_engine::{Bytes, Duration};
use pipestep_job::Estimate;
use pipestep_report::{Candidate, Difference};
use pipestep_scenario::Objective;
use serde_json::{Value, json};

use super::candidates::{Candidates, Setting};
use super::evaluate::Evaluated;
use super::figures::{show_error, step_parts, with_error};
use super::find::{Effort, Found};
use super::table::{bullet, paragraph, table};

/// The columns of the tables, and which of them are words. Those of drawn runs are empty, and left out, where nothing
/// is drawn.
const HEADINGS: [&str; 8] =
    ["makespan", "std. error", "behind the first", "", "busy", "highest peak", "", "setting"];
const WORDS: [usize; 3] = [3, 6, 7];

/// Points of the front that are printed at most; the picture has all.
const MOST_ON_FRONT: usize = 12;

/// The name of a setting: what sets it apart.
pub(crate) fn name(candidates: &Candidates, done: &Evaluated) -> String {
    let setting = &candidates.settings[done.index];
    let mut name = setting.schedule.entry().name.to_owned();
    if done.shape.copies() > 1 {
        name += ", two copies of the model";
    } else if setting.chunks > 1 {
        let _ = write!(name, ", {} chunks", setting.chunks);
    }
    if let Some(ranks) = setting.ranks {
        let _ = write!(name, ", {ranks} ranks");
    }
    if let Some((size, _)) = setting.size {
        let _ = write!(name, ", {} micro-batches of {size}", done.shape.micro_batches());
    }
    if let Some(recompute) = setting.recompute {
        let _ = write!(name, ", recompute {recompute}");
    }
    if let Some(layers) = split_of(candidates, setting) {
        let layers: Vec<String> = layers.iter().map(ToString::to_string).collect();
        let _ = write!(name, ", layers {}", layers.join("+"));
    }
    name
}

/// The split of a setting, where splits are tried.
fn split_of<'a>(candidates: &Candidates, setting: &'a Setting) -> Option<&'a Vec<u64>> {
    candidates.written.layer_costs.as_ref()?;
    setting.layers.as_ref()
}

/// Everything that was simulated, for the picture.
pub(crate) fn dots(candidates: &Candidates, found: &Found) -> Vec<Candidate> {
    let dot = |done: &Evaluated| Candidate {
        name: name(candidates, done),
        makespan: done.length(),
        peak: done.peak(),
    };
    found.simulated.iter().map(dot).collect()
}

/// How to run a setting again.
pub(crate) fn command_line(path: &str, set: &[String], sets: Vec<String>) -> String {
    let quoted = |text: &str| {
        let plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "=._-/+".contains(letter));
        if plain { text.to_owned() } else { format!("'{text}'") }
    };
    let sets = set.iter().cloned().chain(sets);
    let sets: Vec<String> = sets.map(|set| format!("--set {}", quoted(&set))).collect();
    format!("pipestep run {} {}", quoted(path), sets.join(" "))
}

/// What is printed.
pub(crate) fn text(name_of_scenario: &str, candidates: &Candidates, found: &Found, again: &str) -> String {
    let mut text = paragraph(&format!(
        "{name_of_scenario}: {} settings; {} simulated, {} left out by bounds, {} not legal",
        candidates.settings.len(),
        found.simulated.len(),
        found.left_out,
        found.illegal.len()
    ));
    let budget = candidates.written.budget.as_ref().and_then(|budget| budget.iter().min());
    let first = found.best.first().or(found.front.first());
    let rows = |list: &[Evaluated]| {
        let row = |done: &Evaluated| cells(candidates, done, first, found.simulated.len());
        list.iter().map(row).collect::<Vec<_>>()
    };
    let mut headings = HEADINGS;
    if !candidates.are_drawn() {
        (headings[1], headings[2]) = ("", "");
    }
    match found.best.first() {
        Some(best) => {
            let fit = budget.map_or(String::new(), |budget| format!(" within {budget} a rank"));
            let of_runs =
                best.runs.as_ref().map_or(String::new(), |runs| format!(", mean of {} runs", runs.len()));
            let _ = writeln!(text, "\nshortest steps{fit}{of_runs}:\n");
            text += &table(&headings, &WORDS, &rows(&found.best));
            if best.runs.is_some() {
                text += "busy and peak are those of the step without scatter\n";
            }
            let _ = writeln!(text, "\nwhy the first one:");
            text.extend(why(candidates, found, best).iter().map(|line| bullet(line)));
            // One line however long, so that it can be copied.
            let _ = writeln!(text, "\nto run it:\n\n  {again}");
        }
        None => text.extend(["\n", nothing(candidates, found, budget.copied()).as_str()]),
    }
    if !found.front.is_empty() {
        let _ = writeln!(text, "\ntime against memory, whether or not it fits:\n");
        text += &table(&headings, &WORDS, &rows(&found.front[..found.front.len().min(MOST_ON_FRONT)]));
        if found.front.len() > MOST_ON_FRONT {
            let _ = writeln!(text, "  and {} more", found.front.len() - MOST_ON_FRONT);
        }
    }
    text
}

/// One row: makespan, how sure it is and how far behind the first, utilisation, peak, whether it fits, name.
fn cells(candidates: &Candidates, done: &Evaluated, first: Option<&Evaluated>, rivals: usize) -> Vec<String> {
    let fits = match (&candidates.written.budget, done.fits) {
        (None, _) => "",
        (Some(_), true) => "fits",
        (Some(_), false) => "too large",
    };
    let mut drawn = [const { String::new() }; 3];
    if let Some(runs) = &done.runs {
        let error = Estimate::of(runs).map_or(0.0, |estimate| estimate.standard_error);
        drawn[0] = show_error(Objective::StepTime, error);
        let behind = first.filter(|first| first.index != done.index).and_then(|first| behind(done, first));
        if let Some(behind) = behind {
            drawn[1] = with_error(Objective::StepTime, behind.mean, behind.standard_error);
            drawn[2] = String::from(if behind.is_sure(rivals) { "" } else { "not told apart" });
        }
    }
    let [error, behind, said] = drawn;
    vec![
        done.length().to_string(),
        error,
        behind,
        said,
        format!("{:.1} %", 100.0 * done.summary.utilisation()),
        done.peak().to_string(),
        fits.to_owned(),
        name(candidates, done),
    ]
}

/// How much longer one setting is than another, run by run.
fn behind(one: &Evaluated, other: &Evaluated) -> Option<Difference> {
    Difference::of(one.runs.as_ref()?, other.runs.as_ref()?)
}

/// What makes the best the best, from the numbers.
fn why(candidates: &Candidates, found: &Found, best: &Evaluated) -> Vec<String> {
    let mut lines = Vec::new();
    if best.runs.is_none() {
        lines.push(against_bound(best));
    }
    lines.extend(against_next(candidates, found, best));

    let faster: Vec<&Evaluated> =
        found.simulated.iter().filter(|done| !done.fits && done.makespan() < best.makespan()).collect();
    if let Some(fastest) = faster.iter().min_by_key(|done| done.key()) {
        let count = faster.len();
        let (are, need) = if count == 1 { ("is", "needs") } else { ("are", "need") };
        lines.push(format!(
            "{count} of those simulated {are} shorter and {need} more memory: {} takes {} and {}",
            name(candidates, fastest),
            fastest.length(),
            fastest.peak()
        ));
    }
    lines.extend(against_written(candidates, found, best));
    lines
}

/// How near it is to what no order can beat.
fn against_bound(best: &Evaluated) -> String {
    let bound = Duration::from_nanos(best.bound);
    let over = best.makespan() - best.bound;
    if over == 0 {
        return format!(
            "no order of its operations is shorter: fill, busiest rank and drain take {bound} already"
        );
    }
    let over = Duration::from_nanos(over);
    format!(
        "no order of its operations is shorter than {bound} (fill, busiest rank, drain); it takes {over} more"
    )
}

/// What the runner-up loses, and to what.
fn against_next(candidates: &Candidates, found: &Found, best: &Evaluated) -> Option<String> {
    let next = found.best.get(1)?;
    let next_name = name(candidates, next);
    if next.makespan() == best.makespan() {
        return Some(match next.peak().get() - best.peak().get() {
            0 => format!("{next_name} is as short and as small"),
            more => format!("{next_name} is as short and needs {} more", Bytes::new(more)),
        });
    }
    let longer = Duration::from_nanos(next.makespan() - best.makespan());
    if let Some(behind) = behind(next, best) {
        // Where the time of drawn runs went is not known.
        let (scatter, usual) = (next.summary.makespan, best.summary.makespan);
        let without = if scatter >= usual {
            format!("{} longer", scatter.since(usual))
        } else {
            format!("{} shorter", usual.since(scatter))
        };
        let amount = with_error(Objective::StepTime, behind.mean, behind.standard_error);
        return Some(format!("{next_name} is {amount} longer on average; without scatter it is {without}"));
    }
    let parts = step_parts(&best.summary).into_iter().zip(step_parts(&next.summary));
    let told = parts.filter(|((_, ours), (_, theirs))| ours != theirs).map(|((what, ours), (_, theirs))| {
        let (difference, word) = (ours.abs_diff(theirs), if theirs > ours { "more" } else { "less" });
        format!("{} {word} {what}", Duration::from_nanos(difference))
    });
    Some(format!("{next_name} is {longer} longer: {}", told.collect::<Vec<_>>().join(", ")))
}

/// What it gains over the scenario as it is written.
fn against_written(candidates: &Candidates, found: &Found, best: &Evaluated) -> Option<String> {
    let written = &candidates.written;
    let (schedule, shape) = (written.order.schedule()?.entry().name, written.inputs.shape());
    let is_written = |done: &&Evaluated| {
        let setting = &candidates.settings[done.index];
        setting.schedule.entry().name == schedule
            && done.shape == *shape
            && setting.layers == written_layers(written)
    };
    let as_written = found.simulated.iter().find(is_written)?;
    if as_written.index == best.index {
        return Some("it is the scenario as written".to_owned());
    }
    let (length, peak) = (as_written.length(), as_written.peak());
    Some(format!("the scenario as written, {schedule}, takes {length} and {peak}"))
}

/// The layers of one copy of the model.
fn written_layers(written: &pipestep_scenario::StepScenario) -> Option<Vec<u64>> {
    let layers = written.layers.as_ref()?;
    Some(layers[..layers.len() / written.inputs.shape().copies()].to_vec())
}

/// What is said when nothing fits.
fn nothing(candidates: &Candidates, found: &Found, budget: Option<Bytes>) -> String {
    let smallest = found.simulated.iter().min_by_key(|done| (done.peak(), done.makespan(), done.index));
    let (Some(smallest), Some(budget)) = (smallest, budget) else {
        let reason = found.illegal.first().map_or("there is no setting", |(_, reason)| reason.as_str());
        return paragraph(&format!("nothing could be simulated: {reason}"));
    };
    let (name, peak, length) = (name(candidates, smallest), smallest.peak(), smallest.length());
    paragraph(&format!("nothing fits {budget} a rank; the smallest is {name}: {peak}, {length}"))
}

/// The same for programs.
pub(crate) fn json(name_of_scenario: &str, candidates: &Candidates, found: &Found, effort: Effort) -> String {
    let one = |done: &Evaluated| -> Value {
        let setting = &candidates.settings[done.index];
        let mut value = json!({
            "name": name(candidates, done),
            "set": setting.sets(),
            "makespan_ns": done.makespan(),
            "bound_ns": done.bound,
            "peak_bytes": done.peak().get(),
            "fits": done.fits,
        });
        if let Some(runs) = &done.runs {
            value["jitter"] = drawn(done, runs, found);
        }
        value
    };
    let all = |list: &[Evaluated]| list.iter().map(one).collect::<Vec<_>>();
    let illegal: Vec<Value> = found
        .illegal
        .iter()
        .map(|(index, reason)| json!({ "set": candidates.settings[*index].sets(), "reason": reason }))
        .collect();
    let document = json!({
        "schema": "pipestep-search-1",
        "name": name_of_scenario,
        "exhaustive": effort == Effort::Exhaustive,
        "settings": candidates.settings.len(),
        "left_out": found.left_out,
        "best": all(&found.best),
        "front": all(&found.front),
        "simulated": all(&found.simulated),
        "illegal": illegal,
    });
    format!("{document:#}\n")
}

/// The runs of a step whose lengths are drawn, and how far behind the best that fits their mean is.
fn drawn(done: &Evaluated, runs: &[f64], found: &Found) -> Value {
    let estimate = Estimate::of(runs);
    let behind = found.best.first().and_then(|first| behind(done, first));
    json!({
        "runs": runs.len(),
        "mean_ns": estimate.as_ref().map(|estimate| estimate.mean),
        "standard_error_ns": estimate.as_ref().map(|estimate| estimate.standard_error),
        "without_scatter_ns": done.summary.makespan.as_nanos(),
        "behind_ns": behind.map(|behind| behind.mean),
        "behind_standard_error_ns": behind.map(|behind| behind.standard_error),
        "told_apart": behind.map(|behind| behind.is_sure(found.simulated.len())),
    })
}
