//! The memory picture: what each rank holds over time, with the budget and the peak; a panel per step, all on the
//! same axes.
//!
//! Curves are steps, read off the ledger. Where several changes fall on one pixel, the lowest and the highest
//! level there are drawn, so that no peak is lost.

use pipestep_engine::Time;
use pipestep_step::MemoryCurve;

use crate::StepView;
use crate::axes::{Axis, Frame};
use crate::chart::draw_title;
use crate::coincide::{Strand, draw_strands};
use crate::font::{shortened, text_width};
use crate::legend::{LISTED, Swatch, entry, side_legend};
use crate::picture::{Across, Picture, SCALE};
use crate::theme::{ALERT, INK, LABEL, MARGIN, PAPER, WIDTH, of_line};
use crate::units::{bytes_exact, bytes_short};

/// Points above a panel for its heading.
const HEADING: f64 = 40.0;
/// Points below a panel for its axis.
const FOOT: f64 = 52.0;
/// Height of a plot: of one panel at most, of any at least, and of all where they share.
const PLOT: (f64, f64) = (360.0, 150.0);
const PLOTS_TOGETHER: f64 = 900.0;
/// Points right of the plot for the legend.
const LEGEND: f64 = 158.0;
/// More curves than this are not all drawn: one in k, and the one with the highest peak.
const CURVES_DRAWN: usize = 64;
/// The budget lies within the picture unless it is more than so many times the highest peak.
const BUDGET_SHOWN: f64 = 2.5;

/// One step to draw: its view and a curve for each rank.
pub type MemoryPanel<'a> = (StepView<'a>, &'a [MemoryCurve]);

/// Draws the memory of one step, or of several below each other on the same axes.
pub fn memory_curves(panels: &[MemoryPanel]) -> Picture {
    let plot = (PLOTS_TOGETHER / panels.len().max(1) as f64).clamp(PLOT.1, PLOT.0);
    let head = MARGIN + 22.0;
    let each = HEADING + plot + FOOT;
    let height = head + each * panels.len().max(1) as f64 + MARGIN / 2.0;
    let mut picture = Picture::new(WIDTH, height.ceil() as u32);
    let title = panels.first().map_or("", |(view, _)| view.labels.name.as_str());
    draw_title(&mut picture, title);
    let (x, y) = axes(panels);
    for (index, panel) in panels.iter().enumerate() {
        let top = head + each * index as f64;
        let corners = [MARGIN + 68.0, top + HEADING, f64::from(WIDTH) - LEGEND, top + HEADING + plot];
        let frame = Frame { corners, x: x.clone(), y: y.clone() };
        draw_panel(&mut picture, &frame, panel);
    }
    picture
}

/// The axes that all panels share. The top leaves room for the peak's label.
fn axes(panels: &[MemoryPanel]) -> (Axis, Axis) {
    let end = panels.iter().map(|(view, _)| view.summary.makespan.as_nanos()).max().unwrap_or(1);
    let peaks = panels.iter().map(|(view, _)| view.highest_peak().1.get() as f64);
    let peak = peaks.fold(0.0, f64::max);
    let budgets =
        panels.iter().filter_map(|(view, _)| view.common_budget()).map(|budget| budget.get() as f64);
    let highest = budgets.filter(|&budget| budget <= BUDGET_SHOWN * peak).fold(peak, f64::max);
    (Axis::time("time", 0.0, end as f64 * 1.005), Axis::bytes("held by a rank", 0.0, highest.max(1.0) * 1.18))
}

fn draw_panel(picture: &mut Picture, frame: &Frame, &(view, curves): &MemoryPanel) {
    let [left, top, right, _] = frame.corners;
    frame.draw(picture);
    let step = curves.len().div_ceil(CURVES_DRAWN).max(1);
    let striped = draw_curves(picture, frame, &view, curves, step);
    let sampled = if step > 1 { format!("; one rank in {step} is drawn") } else { String::new() };
    let striped = if striped { "; striped: ranks that hold as much" } else { "" };
    let heading =
        format!("{}: {}{}{sampled}{striped}", view.labels.schedule, view.shape_text(), verdict(&view));
    let heading = shortened(&heading, LABEL, f64::from(WIDTH) - 2.0 * MARGIN);
    picture.text(heading, (MARGIN, top - 20.0), LABEL, Across::Left, INK);
    if let Some(budget) = view.common_budget().filter(|budget| budget.get() as f64 <= frame.y.ends.1) {
        let y = frame.at(0.0, budget.get() as f64).1;
        picture.dashed(&[(left, y), (right, y)], 1.5, ALERT);
    }
    label_peak(picture, frame, &view, curves.len());
    draw_legend(picture, frame, &view, curves.len());
}

/// Draws one rank's curve in `step`, and the highest, the first on top; returns whether any are striped.
fn draw_curves(
    picture: &mut Picture,
    frame: &Frame,
    view: &StepView,
    curves: &[MemoryCurve],
    step: usize,
) -> bool {
    let highest = view.highest_peak().0.index();
    let drawn = curves.iter().enumerate().filter(|(rank, _)| rank.is_multiple_of(step) || *rank == highest);
    let strands = drawn.map(|(rank, curve)| Strand {
        points: steps(frame, curve, view.summary.makespan),
        colour: of_line(rank, curves.len()),
    });
    let strands: Vec<Strand> = strands.collect();
    if curves.len() <= LISTED {
        return draw_strands(picture, &strands, 2.0);
    }
    // Ranks that no legend lists one by one need not be told apart.
    for strand in strands.into_iter().rev() {
        picture.path(strand.points, 1.0, strand.colour);
    }
    false
}

fn verdict(view: &StepView) -> String {
    let budget = view.common_budget().map_or("its budgets".to_owned(), bytes_short);
    match view.fits() {
        Some(true) => format!("; fits {budget}"),
        Some(false) => format!("; does not fit {budget}"),
        None => String::new(),
    }
}

/// The corners of a curve, at most four for each pixel across.
fn steps(frame: &Frame, curve: &MemoryCurve, end: Time) -> Vec<(f64, f64)> {
    let mut points = vec![frame.at(0.0, 0.0)];
    // The pixel at hand: where it is, its highest, lowest and last point (up is smaller).
    let mut pixel: Option<(f64, f64, f64, f64)> = None;
    for level in curve {
        let total: f64 = level.accounts.iter().map(|bytes| bytes.get() as f64).sum();
        let (x, y) = frame.at(level.at.as_nanos() as f64, total);
        pixel = match pixel {
            Some((at, high, low, _)) if x - at < 1.0 / SCALE => Some((at, high.min(y), low.max(y), y)),
            _ => {
                finish_pixel(&mut points, pixel);
                Some((x, y, y, y))
            }
        };
    }
    finish_pixel(&mut points, pixel);
    let last = points.last().map_or(0.0, |&(_, y)| y);
    points.push((frame.at(end.as_nanos() as f64, 0.0).0, last));
    points
}

fn finish_pixel(points: &mut Vec<(f64, f64)>, pixel: Option<(f64, f64, f64, f64)>) {
    let Some((x, high, low, last)) = pixel else { return };
    let before = points.last().map_or(low, |&(_, y)| y);
    points.push((x, before));
    points.extend([high, low, last].into_iter().map(|y| (x, y)));
    points.dedup();
}

/// A dot where the highest peak is, and its value above it, clear of the budget's line.
fn label_peak(picture: &mut Picture, frame: &Frame, view: &StepView, curves: usize) {
    let (rank, peak) = view.highest_peak();
    let Some(outcome) = view.summary.ranks.get(rank.index()) else {
        return;
    };
    let (x, y) = frame.at(outcome.peak.at.as_nanos() as f64, peak.get() as f64);
    picture.dot((x, y), 4.0, of_line(rank.index(), curves));
    picture.dot((x, y), 2.0, PAPER);
    let label = format!("peak {}, rank {rank} at {}", bytes_exact(peak), outcome.peak.at);
    let width = text_width(&label, LABEL);
    let [left, _, right, _] = frame.corners;
    let middle = x.clamp(left + width / 2.0 + 6.0, (right - width / 2.0).max(left + width / 2.0 + 6.0));
    let line = view.common_budget().map(|budget| frame.at(0.0, budget.get() as f64).1);
    let mut at = y - 13.0;
    if line.is_some_and(|line| (line - at).abs() < 10.0) {
        at = line.map_or(at, |line| line - 11.0);
    }
    let around = [middle - width / 2.0 - 3.0, at - 8.0, middle + width / 2.0 + 3.0, at + 8.0];
    picture.fill(around, PAPER);
    picture.text(label, (middle, at), LABEL, Across::Middle, INK);
}

fn draw_legend(picture: &mut Picture, frame: &Frame, view: &StepView, curves: usize) {
    let [_, top, right, bottom] = frame.corners;
    let (left, mut top) = (right + 14.0, top);
    if let Some(budget) = view.common_budget() {
        let beyond = if budget.get() as f64 > frame.y.ends.1 { " (above)" } else { "" };
        let name = format!("budget {}{beyond}", bytes_short(budget));
        side_legend(picture, (left, top), top + 18.0, &[entry(Swatch::Dashes, ALERT, name)]);
        top += 22.0;
    }
    let ranks = view.summary.ranks.iter().take(curves).enumerate();
    let entries: Vec<_> = ranks
        .map(|(rank, outcome)| {
            let name = format!("rank {rank}: {}", bytes_short(outcome.peak.bytes));
            entry(Swatch::Line, of_line(rank, curves), name)
        })
        .collect();
    side_legend(picture, (left, top), bottom, &entries);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};
    use crate::picture::Shape;
    use crate::testing::Sample;
    use pipestep_engine::Bytes;

    fn draw(samples: &[Sample]) -> Picture {
        let panels: Vec<_> = samples.iter().map(|s| (s.view(), s.outcome.curves.as_slice())).collect();
        memory_curves(&panels)
    }

    #[test]
    fn every_size_is_laid_out_without_overlaps() {
        for (schedule, shape) in [
            ("1f1b", [1, 1, 1]),
            ("1f1b", [2, 1, 4]),
            ("1f1b", [4, 1, 8]),
            ("fill-drain", [4, 1, 8]),
            ("1f1b", [16, 1, 64]),
            ("1f1b", [64, 1, 512]),
            ("fill-drain", [300, 1, 8]),
        ] {
            let sample = Sample::new(schedule, shape[0], shape[1], shape[2]);
            check_layout(&draw(&[sample]), &format!("{schedule} {shape:?}"));
        }
        let many = ["fill-drain", "1f1b"].repeat(6);
        let many: Vec<_> = many.into_iter().map(|schedule| Sample::new(schedule, 16, 1, 32)).collect();
        check_layout(&draw(&many), "twelve panels");
    }

    #[test]
    fn the_peak_and_the_budget_are_named() {
        let picture = draw(&[Sample::new("1f1b", 4, 1, 8)]);
        let words = words(&picture);
        for label in ["peak 965,758,976 B (0.97 GB), rank 0 at 105 ms", "budget 1 GB", "held by a rank [GB]"]
        {
            assert!(words.contains(&label), "{label}: {words:?}");
        }
    }

    #[test]
    fn a_budget_far_above_does_not_flatten_the_curves() {
        let mut sample = Sample::new("1f1b", 4, 1, 8);
        sample.labels.budgets = vec![Bytes::new(80_000_000_000); 4];
        let picture = draw(&[sample]);
        check_layout(&picture, "80 GB");
        assert!(words(&picture).contains(&"budget 80 GB (above)"));
    }

    #[test]
    fn ranks_that_hold_as_much_all_show() {
        let stripes = |picture: &Picture, rank| {
            let of_rank = |shape: &&Shape| matches!(shape, Shape::Path { width, colour, .. } if *width > 1.9 && *colour == of_line(rank, 4));
            // One swatch is that of the legend.
            picture.shapes().iter().filter(of_rank).count() - 1
        };
        let picture = draw(&[Sample::new("fill-drain", 4, 1, 8)]);
        assert!(words(&picture).join("|").contains("striped: ranks that hold as much"));
        assert!((1..4).all(|rank| stripes(&picture, rank) > 4), "all but the first lie on another");
        let alone = draw(&[Sample::new("fill-drain", 1, 1, 8)]);
        assert!(!words(&alone).join("|").contains("striped"));
    }

    #[test]
    fn a_peak_within_one_pixel_is_not_lost() {
        let sample = Sample::new("1f1b", 2, 1, 20_000);
        let picture = draw(&[sample]);
        let highest = |shape: &Shape| match shape {
            Shape::Path { points, width, .. } if points.len() > 100 && *width > 1.2 => {
                points.iter().map(|&(_, y)| y).reduce(f64::min)
            }
            _ => None,
        };
        let curves: Vec<f64> = picture.shapes().iter().filter_map(highest).collect();
        let dot = picture.shapes().iter().find_map(|shape| match shape {
            Shape::Dot { centre, .. } => Some(centre.1),
            _ => None,
        });
        let top = curves.iter().copied().reduce(f64::min).unwrap();
        assert!((top - dot.unwrap()).abs() < 1e-6, "{curves:?} {dot:?}");
        let points: usize = picture
            .shapes()
            .iter()
            .map(|s| if let Shape::Path { points, .. } = s { points.len() } else { 0 })
            .sum();
        assert!(points < 30_000, "{points} points for 40,000 operations a rank");
    }
}
