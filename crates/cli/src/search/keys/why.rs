//! Why the best setting of a search over keys is the best: what its neighbours, the next best and the scenario as it
//! is written lose, and to what.

use super::find::FoundKeys;
use super::measure::Measured;
use super::space::name;
use super::words::About;
use crate::search::figures::{show, show_difference};

use pipestep_engine::Duration;
use pipestep_scenario::Objective;

/// Parts of a difference that are told at most.
const MOST_PARTS: usize = 3;
/// A part that is smaller than this share of the largest is not told.
const SMALL: f64 = 0.02;

/// A line for each comparison.
pub(super) fn why(about: &About, found: &FoundKeys, best: usize) -> Vec<String> {
    let mut told = Vec::new();
    let mut lines = Vec::new();
    for (place, dimension) in about.space.dimensions.iter().enumerate() {
        let Some(here) = found.tried[best].setting[place].number else { continue };
        let along: Vec<(f64, usize)> = found
            .line(best, place)
            .into_iter()
            .filter(|&index| !found.tried[index].is_between)
            .filter_map(|index| Some((found.tried[index].setting[place].number?, index)))
            .collect();
        let below = along.iter().filter(|(at, _)| *at < here).max_by(|one, other| one.0.total_cmp(&other.0));
        let above = along.iter().filter(|(at, _)| *at > here).min_by(|one, other| one.0.total_cmp(&other.0));
        for &(_, index) in below.into_iter().chain(above) {
            told.push(index);
            lines.extend(against(found, best, index));
        }
        if along.len() > 1 && (below.is_none() || above.is_none()) {
            let end = if below.is_none() { "lowest" } else { "highest" };
            let only_there = !found.tried[best].is_between;
            if only_there && dimension.measure.is_some() && dimension.is_key {
                lines.push(format!(
                    "it has the {end} value of `{}`: values beyond may be better still",
                    dimension.name
                ));
            }
        }
    }
    let next = found.order.iter().copied().find(|&index| index != best && !found.tried[index].is_between);
    if let Some(next) = next.filter(|next| !told.contains(next)) {
        lines.extend(against(found, best, next));
    }
    lines.extend(limits(about));
    lines.extend(against_written(found, best));
    lines
}

/// What another setting loses, and to what.
fn against(found: &FoundKeys, best: usize, other: usize) -> Option<String> {
    let (ours, theirs) = (found.measured(best)?, found.measured(other)?);
    Some(format!("{}: {}", name(&found.tried[other].setting), behind(found, ours, theirs)?))
}

/// By how much one setting is behind another, and its parts.
fn behind(found: &FoundKeys, ours: &Measured, theirs: &Measured) -> Option<String> {
    let behind = found.behind(theirs, ours)?.mean;
    let amount = show_difference(found.subject.objective, behind);
    if behind == 0.0 {
        return Some("as good".to_owned());
    }
    let (worse, of) = match found.subject.objective {
        Objective::StepTime | Objective::JobTime => ("longer", ": "),
        Objective::UsefulFraction => ("less useful", "; in all "),
        Objective::SamplesPerSecond => ("fewer samples a second", "; a round has "),
        Objective::TokensPerSecond => ("fewer tokens a second", "; a round has "),
        Objective::CostPerSample => ("dearer", "; a round has "),
    };
    let mut parts: Vec<(f64, &str)> = ours
        .parts
        .iter()
        .zip(&theirs.parts)
        .filter(|((name, _), _)| name != "useful work")
        .map(|((name, ours), (_, theirs))| (theirs - ours, name.as_str()))
        .collect();
    parts.sort_by(|one, other| other.0.abs().total_cmp(&one.0.abs()));
    let largest = parts.first().map_or(0.0, |part| part.0.abs());
    parts.retain(|(difference, _)| *difference != 0.0 && difference.abs() >= SMALL * largest);
    let told: Vec<String> = parts
        .iter()
        .take(MOST_PARTS)
        .map(|(difference, name)| {
            let word = if *difference > 0.0 { "more" } else { "less" };
            format!("{} {word} {name}", Duration::from_nanos(difference.abs().round() as u64))
        })
        .collect();
    if told.is_empty() {
        return Some(format!("{amount} {worse}"));
    }
    Some(format!("{amount} {worse}{of}{}", told.join(", ")))
}

/// The stage that limits the rounds of the best, and of the next where it is another.
fn limits(about: &About) -> Option<String> {
    let told = |(stage, gain): &(String, f64)| format!("{stage} (twice as fast: {:+.1} %)", 100.0 * gain);
    match &about.bottlenecks {
        [Some(best), Some(next)] if best.0 != next.0 => {
            Some(format!("what limits it is {}, what limits the next {}", told(best), told(next)))
        }
        [Some(best), _] => Some(format!("what limits it is {}", told(best))),
        _ => None,
    }
}

fn against_written(found: &FoundKeys, best: usize) -> Option<String> {
    let (ours, written) = (found.measured(best)?, found.written.as_ref()?);
    let shown = show(found.subject.objective, written.mean());
    let difference = found.behind(written, ours)?.mean;
    Some(if difference > 0.0 {
        format!("the scenario as written has {shown}, {}", behind(found, ours, written)?)
    } else if difference < 0.0 {
        format!("the scenario as written is better still, {shown}: its values are not among those tried")
    } else {
        "the scenario as written is as good".to_owned()
    })
}
