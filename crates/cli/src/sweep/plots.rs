//! The pictures of a finished sweep, and what is printed about it.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Result;
use pipestep_engine::{Bytes, Duration};
use pipestep_report::{
    AxisSpec, COLUMNS, Candidate, HeatMap, Line, LineChart, Measure, Picture, folded, heat_map, line_chart,
    tradeoff,
};

use super::fields::Found;
use super::manifest::Manifest;
use super::quantity::Quantity;
use super::series::{Best, Grid, Key, Series, Shown, read};
use crate::output::{Target, write_all};

/// From this utilisation on a pipeline is called full.
const FULL: f64 = 0.9;

/// Draws the sweep in `directory` and gives what there is to say about it.
///
/// # Errors
/// The sweep is not done; what the system reports.
pub(crate) fn draw(directory: &Path, manifest: &Manifest) -> Result<Drawn> {
    let shown = read(directory, manifest)?;
    let mut pictures: Vec<(Picture, [&'static str; 2])> = Vec::new();
    let name = manifest.name();
    for (quantity, there) in Quantity::ALL.into_iter().zip(shown.any) {
        let (Some([chart_files, map_files]), true) = (quantity.files(), there) else { continue };
        if let Some(along) = shown.along {
            pictures.push((chart(name, &shown, &shown.keys[along], quantity), chart_files));
        }
        if let Some(grid) = &shown.grid {
            pictures.push((map(name, grid, quantity), map_files));
        }
    }
    if shown.along.is_none() {
        pictures.push((scatter(name, &shown), ["tradeoff.png", "tradeoff.svg"]));
    }
    write(directory, &pictures)?;
    Ok(Drawn { text: text(manifest, &shown, directory), none_fits: shown.counts.none_fits() })
}

/// What is left to do after drawing.
pub(crate) struct Drawn {
    /// To print.
    pub(crate) text: String,
    /// Whether no point of the sweep fits its budget, or none could be simulated.
    pub(crate) none_fits: bool,
}

fn write(directory: &Path, pictures: &[(Picture, [&'static str; 2])]) -> Result<()> {
    let mut wanted = Vec::new();
    for (index, (_, [png, svg])) in pictures.iter().enumerate() {
        wanted.push(((index, false), Target::InDirectory(directory.to_owned(), png)));
        wanted.push(((index, true), Target::InDirectory(directory.to_owned(), svg)));
    }
    write_all(&wanted, |(index, is_svg), to| {
        let picture = &pictures[index].0;
        let bytes = if is_svg { picture.to_svg()?.into_bytes() } else { picture.to_png()? };
        Ok(to.write_all(&bytes)?)
    })
}

/// One value against the key along, with what it is compared to.
fn chart(name: &str, shown: &Shown, key: &Key, quantity: Quantity) -> Picture {
    let (series, all) = (shown.series.as_slice(), shown.all_series);
    let solid = |series: &Series| {
        let name = if series.name.is_empty() { "simulated" } else { series.name.as_str() };
        let points = series.points.iter().filter_map(|(x, found)| Some((*x, found.get(quantity)?)));
        Line::solid(name, points.collect())
    };
    // The first lines are drawn on top, where even a line that is met exactly can be seen.
    let mut lines: Vec<Line> = match quantity {
        Quantity::Utilisation => formulas(series).into_iter().chain(full(key, series)).collect(),
        Quantity::Peak => budget(series).into_iter().collect(),
        _ => optimum(series, quantity).into_iter().collect(),
    };
    lines.extend(series.iter().map(solid));
    let left_out = match all.saturating_sub(series.len() as u64) {
        0 => String::new(),
        _ => format!(" ({} of {all} lines)", series.len()),
    };
    line_chart(&LineChart {
        title: format!("{name}: {}{left_out}", quantity.words()),
        bars: String::new(),
        x: axis(
            &key.name,
            key.measure.unwrap_or(Measure::Number),
            series.iter().flat_map(|series| series.points.iter().map(|point| point.0)),
        ),
        y: AxisSpec::linear(quantity.words(), quantity.measure()),
        lines,
    })
}

/// By factors where the values lie so, by steps where they do not; marked at whole numbers where all are whole.
pub(crate) fn axis(name: &str, measure: Measure, values: impl Iterator<Item = f64>) -> AxisSpec {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let are_whole = measure == Measure::Number && values.iter().all(|value| value.fract() == 0.0);
    let measure = if are_whole { Measure::Count } else { measure };
    match values.as_slice() {
        [low, .., high] if *low > 0.0 && *high >= 8.0 * low => {
            let median = values[values.len() / 2];
            let middle = (low * high).sqrt();
            if median < 2.0 * middle {
                return AxisSpec::log(name, measure);
            }
        }
        _ => {}
    }
    AxisSpec::linear(name, measure)
}

/// A dot at the best value, where that is neither the first nor the last of its line.
fn optimum(series: &[Series], quantity: Quantity) -> Option<Line> {
    let values = |series: &Series| -> Vec<(f64, f64)> {
        series.points.iter().filter_map(|(x, found)| Some((*x, found.get(quantity)?))).collect()
    };
    let mut best: Option<((f64, f64), bool)> = None;
    for line in series.iter().map(values) {
        for (place, &(x, value)) in line.iter().enumerate() {
            if best.is_none_or(|((_, before), _)| quantity.is_better(value, before)) {
                best = Some(((x, value), place > 0 && place + 1 < line.len()));
            }
        }
    }
    let ((x, value), inside) = best?;
    inside.then(|| Line::mark(format!("best: {}", quantity.show(value)), (x, value)))
}

/// m/(m+p-1), the utilisation of equal stages and free transfers under fill-drain and 1F1B, once for each number
/// of ranks.
fn formulas(series: &[Series]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for series in series {
        let formula = |found: &Found| {
            let (m, p) = (found.micro_batches?, found.ranks?);
            Some(m / (m + p - 1.0))
        };
        let points: Vec<(f64, f64)> =
            series.points.iter().filter_map(|(x, found)| Some((*x, formula(found)?))).collect();
        let mut ranks: Vec<f64> = series.points.iter().filter_map(|(_, found)| found.ranks).collect();
        ranks.dedup();
        let name = match ranks.as_slice() {
            [ranks] => format!("m/(m+p-1), p = {ranks}"),
            _ => "m/(m+p-1)".to_owned(),
        };
        // The longest of those with one name says all that the others do.
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) if line.points.len() < points.len() => line.points = points,
            Some(_) => {}
            None => lines.push(Line::dashed(name, points)),
        }
    }
    lines
}

/// The utilisation from which on a pipeline counts as full, where micro-batches are swept.
fn full(key: &Key, series: &[Series]) -> Option<Line> {
    let all = || series.iter().flat_map(|series| series.points.iter().map(|point| point.0));
    let (from, to) = (all().reduce(f64::min)?, all().reduce(f64::max)?);
    key.counts_micro_batches().then(|| Line::dashed("90 %", vec![(from, FULL), (to, FULL)]))
}

/// The budget, where there is one and the same for all.
fn budget(series: &[Series]) -> Option<Line> {
    let all = series.iter().flat_map(|series| &series.points);
    let mut points: Vec<(f64, u64)> = all.filter_map(|(x, found)| Some((*x, found.budget_bytes?))).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup();
    let one_for_each = points.windows(2).all(|pair| pair[0].0 < pair[1].0);
    (one_for_each && !points.is_empty())
        .then(|| Line::dashed("budget", points.into_iter().map(|(x, bytes)| (x, bytes as f64)).collect()))
}

fn map(name: &str, grid: &Grid, quantity: Quantity) -> Picture {
    let others = if grid.others.is_empty() { String::new() } else { format!(", {}", grid.others) };
    heat_map(&HeatMap {
        title: format!("{name}: {}{others}", quantity.words()),
        x: grid.x.clone(),
        y: grid.y.clone(),
        what: quantity.words().to_owned(),
        measure: quantity.measure(),
        values: grid.cells.iter().map(|cell| cell.as_ref().and_then(|found| found.get(quantity))).collect(),
        best: quantity.best(),
    })
}

/// Time against memory where no key is a number.
fn scatter(name: &str, shown: &Shown) -> Picture {
    let candidate = |best: &Best| {
        let (makespan, peak) = (best.found.get(Quantity::Makespan)?, best.found.get(Quantity::Peak)?);
        let (makespan, peak) = (Duration::from_nanos(makespan as u64), Bytes::new(peak as u64));
        Some(Candidate { name: best.at.clone(), makespan, peak })
    };
    let candidates: Vec<Candidate> = shown.all.iter().filter_map(candidate).collect();
    let budget = shown.all.first().and_then(|best| best.found.budget_bytes);
    tradeoff(name, &candidates, budget.map(Bytes::new))
}

/// What is printed: counts, and the points that stand out.
fn text(manifest: &Manifest, shown: &Shown, directory: &Path) -> String {
    let counts = &shown.counts;
    let mut text = format!("{}: {} points in {}\n", manifest.name(), manifest.points(), directory.display());
    let mut say = |line: String| {
        let _ = writeln!(text, "  {}", folded(&line, COLUMNS - 4).join("\n    "));
    };
    say(format!("{} simulated, {} not legal", counts.simulated, counts.refused));
    if counts.refused > 0 {
        say(format!("not legal, for example: {}", counts.reason));
    }
    let among = if counts.with_budget > 0 {
        say(format!("{} of {} fit the budget", counts.with_budget - counts.too_large, counts.with_budget));
        " that fits"
    } else {
        ""
    };
    for (quantity, best) in Quantity::ALL.into_iter().zip(&shown.best) {
        let Some((best, value)) = best.as_ref().and_then(|best| Some((best, best.found.get(quantity)?)))
        else {
            continue;
        };
        // Without a word about memory in the scenario there is none to speak of.
        if quantity != Quantity::Peak || value > 0.0 {
            say(format!("{}{among}: {} at {}", quantity.superlative(), quantity.show(value), best.at));
        }
    }
    if let Some(key) = shown.along.map(|along| &shown.keys[along]).filter(|key| key.counts_micro_batches()) {
        for series in &shown.series {
            if let Some((x, _)) =
                series.points.iter().find(|(_, found)| found.get(Quantity::Utilisation) >= Some(FULL))
            {
                let others =
                    if series.name.is_empty() { String::new() } else { format!(", {}", series.name) };
                say(format!("utilisation reaches 90 % at {} {x}{others}", key.short()));
            }
        }
    }
    text
}
