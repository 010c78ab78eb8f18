//! The objective along the numeric key with the most values, a line for each combination of the others.

use std::collections::BTreeMap;

use pipestep_job::ReferenceUnit;
use pipestep_report::{AxisSpec, Line, LineChart, Measure, Picture, line_chart};

use super::find::FoundKeys;
use super::space::{KeySpace, name};
use super::words::About;
use crate::search::figures::{measure, show, words};
use crate::sweep::axis;

/// Lines at most: those of the best settings.
const MOST_LINES: usize = 10;

/// The picture; none where no key is a number.
pub(crate) fn picture(about: &About, found: &FoundKeys) -> Option<Picture> {
    let along = along(about.space)?;
    let dimension = &about.space.dimensions[along];
    let best = *found.order.first()?;
    let first = found.measured(best)?;
    let mut lines: Vec<Line> = Vec::new();
    let mut by_others: BTreeMap<String, usize> = BTreeMap::new();
    // Best first, so that the lines are in the order of what is best on each.
    for &index in &found.order {
        let setting = &found.tried[index].setting;
        let (Some(at), Some(measured)) = (setting[along].number, found.measured(index)) else { continue };
        let mut others = setting.clone();
        others.remove(along);
        let title = name(&others);
        let known = by_others.len();
        let place = *by_others.entry(title.clone()).or_insert(known);
        if place == lines.len() && lines.len() < MOST_LINES {
            lines.push(Line::solid(if title.is_empty() { "simulated" } else { &title }, Vec::new()));
        }
        if let Some(line) = lines.get_mut(place) {
            line.points.push((at, measured.mean()));
            let behind = found.behind(measured, first);
            line.errors.push(behind.map_or(0.0, |behind| behind.margin(found.order.len())));
        }
    }
    lines.iter_mut().for_each(sort_points);
    let objective = found.subject.objective;
    let named =
        format!("best: {} at {}", show(objective, first.mean()), found.tried[best].setting[along].label);
    let at = found.tried[best].setting[along].number?;
    let mut all = vec![Line::mark(named, (at, first.mean()))];
    all.extend(checks(about, &dimension.name, &lines));
    all.extend(lines);
    let has_bars = all.iter().any(|line| line.errors.iter().any(|error| *error > 0.0));
    let left_out = match by_others.len().saturating_sub(MOST_LINES) {
        0 => String::new(),
        more => format!(" (without {more} lines)"),
    };
    let xs = found.order.iter().filter_map(|&index| found.tried[index].setting[along].number);
    Some(line_chart(&LineChart {
        title: format!("{}: {}{left_out}", about.scenario, words(objective)),
        bars: if has_bars { "how far off each may be against the best (95 %)" } else { "" }.to_owned(),
        x: axis(&dimension.name, dimension.measure.unwrap_or(Measure::Number), xs),
        y: AxisSpec::linear(words(objective), measure(objective)),
        lines: all,
    }))
}

/// The numeric dimension with the most values.
pub(crate) fn along(space: &KeySpace) -> Option<usize> {
    let numeric = (0..space.dimensions.len()).filter(|&place| space.dimensions[place].measure.is_some());
    // Of equals the first.
    numeric.rev().max_by_key(|&place| space.dimensions[place].choices.len())
}

fn sort_points(line: &mut Line) {
    let mut both: Vec<((f64, f64), f64)> = line.points.drain(..).zip(line.errors.drain(..)).collect();
    both.sort_by(|one, other| one.0.0.total_cmp(&other.0.0));
    (line.points, line.errors) = both.into_iter().unzip();
}

/// Upright lines at what formulas say.
fn checks(about: &About, key: &str, lines: &[Line]) -> Vec<Line> {
    let heights = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.1));
    let places = || lines.iter().flat_map(|line| line.points.iter().map(|point| point.0));
    let ends = heights().reduce(f64::min).zip(heights().reduce(f64::max));
    let range = places().reduce(f64::min).zip(places().reduce(f64::max));
    let (Some((low, high)), Some((from, to)), "checkpoint.every") = (ends, range, key) else {
        return Vec::new();
    };
    let of_interval = about.references.iter().filter(|one| one.unit == ReferenceUnit::Interval);
    let names = [("young_interval", "Young"), ("daly_interval", "Daly")];
    let told = of_interval.filter_map(|one| {
        let (_, name) = names.iter().find(|(wanted, _)| *wanted == one.name)?;
        let at = one.value * 1e9;
        (from..=to)
            .contains(&at)
            .then(|| Line::dashed(format!("{name}: {:.0} s", one.value), vec![(at, low), (at, high)]))
    });
    told.collect()
}
