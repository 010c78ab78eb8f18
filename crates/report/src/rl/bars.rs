//! A histogram whose bins are given: one bar each, with marks at some values.

use crate::axes::{Axis, Frame, Measure, draw_x_grid, draw_x_labels, draw_y_axis};
use crate::chart::{AxisSpec, SIZE, chart_note, draw_title};
use crate::font::text_width;
use crate::histogram::draw_bar;
use crate::picture::{Across, Picture};
use crate::theme::{INK, LABEL, MARGIN, SMALL};
use crate::units::trimmed;

/// Bars to draw.
pub(super) struct Bars<'a> {
    pub(super) title: &'a str,
    pub(super) note: &'a str,
    /// What the values are.
    pub(super) x: AxisSpec,
    /// What the heights are.
    pub(super) heights: &'static str,
    /// Least and greatest value of a bar (it ends before the latter), and its height.
    pub(super) bins: Vec<(f64, f64, f64)>,
    /// Whether each bar stands for one whole number, its middle.
    pub(super) is_counted: bool,
    /// Values to mark.
    pub(super) marks: Vec<(&'static str, f64)>,
}

/// Draws the bars.
pub(super) fn draw(spec: &Bars) -> Picture {
    let (width, height) = (f64::from(SIZE.0), f64::from(SIZE.1));
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    draw_title(&mut picture, spec.title);
    chart_note(&mut picture, spec.note);
    let corners = [MARGIN + 72.0, MARGIN + 82.0, width - MARGIN - 24.0, height - MARGIN - 44.0];
    let ends = ends(spec);
    let x = Axis::new(&spec.x.what, spec.x.measure, spec.x.scale, ends);
    let tallest = spec.bins.iter().map(|bar| bar.2).fold(1.0, f64::max);
    let y = AxisSpec::linear(spec.heights, Measure::Number).over([0.0, tallest].into_iter(), 0.04);
    let frame = Frame { corners, x, y };
    if spec.is_counted {
        draw_y_axis(&mut picture, corners, &frame.y);
        draw_numbers(&mut picture, &frame, &spec.bins);
    } else {
        draw_x_grid(&mut picture, corners, &frame.x);
        draw_y_axis(&mut picture, corners, &frame.y);
        draw_x_labels(&mut picture, corners, &frame.x);
    }
    for &(from, to, height) in spec.bins.iter().filter(|bar| bar.2 > 0.0) {
        draw_bar(&mut picture, &frame, (from, to), height);
    }
    draw_marks(&mut picture, &frame, &spec.marks);
    picture
}

/// From the first bar to the last, with room on both sides where that would be too short an axis to read.
fn ends(spec: &Bars) -> (f64, f64) {
    let (from, to) = (spec.bins.first().map_or(0.0, |bar| bar.0), spec.bins.last().map_or(1.0, |bar| bar.1));
    if !spec.is_counted && from > 0.0 && to < 3.0 * from { (from / 2.0, to * 2.0) } else { (from, to) }
}

/// The whole number of each bar below it, every k-th where they are many.
fn draw_numbers(picture: &mut Picture, frame: &Frame, bars: &[(f64, f64, f64)]) {
    let [left, _, right, bottom] = frame.corners;
    picture.path(vec![(left, bottom), (right, bottom)], 1.0, INK);
    let step = (bars.len() as f64 * 34.0 / (right - left)).ceil().max(1.0) as usize;
    for (from, to, _) in bars.iter().step_by(step) {
        let middle = f64::midpoint(*from, *to);
        let label = format!("{middle:.0}");
        picture.text(label, (frame.at(middle, 0.0).0, bottom + 13.0), SMALL, Across::Middle, INK);
    }
    let middle = f64::midpoint(left, right);
    picture.text(frame.x.title.as_str(), (middle, bottom + 32.0), LABEL, Across::Middle, INK);
}

/// Lines through the plot, named above it, one row for each.
fn draw_marks(picture: &mut Picture, frame: &Frame, marks: &[(&'static str, f64)]) {
    let [left, top, right, bottom] = frame.corners;
    for (row, &(name, at)) in marks.iter().enumerate().take(2) {
        if !(0.0..=1.0).contains(&frame.x.place(at)) {
            continue;
        }
        let x = frame.at(at, 0.0).0;
        picture.dashed(&[(x, top), (x, bottom)], 1.0, INK);
        let digits = if at < 10.0 { 2 } else { 0 };
        let label = format!("{name} {}", trimmed(at, digits));
        let width = text_width(&label, SMALL);
        let middle = x.clamp(left + width / 2.0, right - width / 2.0);
        let y = top - 8.0 - 15.0 * row as f64;
        picture.text(label, (middle, y), SMALL, Across::Middle, INK);
    }
}
