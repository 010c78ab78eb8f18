//! Axes, grids and legends: what every chart of this crate has around its data.

use pipestep_engine::Duration;

use crate::font::text_width;
use crate::picture::{Across, Picture};
use crate::theme::{Colour, FAINT_INK, GRID, INK, LABEL, SMALL};
use crate::units::{byte_unit, ticks, time_unit, trimmed};

/// Points between two legend entries, and between a swatch and its name.
const ENTRY_GAP: f64 = 18.0;
const SWATCH: f64 = 14.0;

/// One axis: which values lie at its ends, and how they are written.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What is measured, with the unit.
    pub(crate) title: String,
    /// The values at the two ends, in base units.
    pub(crate) ends: (f64, f64),
    /// Base units in one unit of the labels.
    unit: f64,
    /// Each factor of ten takes the same room.
    is_log: bool,
}

impl Axis {
    /// Plain numbers.
    pub(crate) fn plain(title: impl Into<String>, ends: (f64, f64)) -> Self {
        Self { title: title.into(), ends: widened(ends), unit: 1.0, is_log: false }
    }

    /// Plain numbers above zero, each factor of ten as wide as the next.
    pub(crate) fn log(title: impl Into<String>, (from, to): (f64, f64)) -> Self {
        let from = if from > 0.0 { from } else { 1.0 };
        let ends = if to > from { (from, to) } else { (from / 2.0, from * 2.0) };
        Self { title: title.into(), ends, unit: 1.0, is_log: true }
    }

    /// Time, in the unit that suits its end.
    pub(crate) fn time(what: &str, from: f64, to: f64) -> Self {
        let unit = time_unit(Duration::from_nanos(to as u64));
        let title = format!("{what} [{}]", unit.name);
        Self { title, ends: widened((from, to)), unit: unit.size, is_log: false }
    }

    /// Bytes, in the unit that suits its end.
    pub(crate) fn bytes(what: &str, from: f64, to: f64) -> Self {
        let unit = byte_unit(to as u64);
        let title = format!("{what} [{}]", unit.name);
        Self { title, ends: widened((from, to)), unit: unit.size, is_log: false }
    }

    /// Where a value lies: 0 at the first end, 1 at the last.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (from, to) = self.ends;
        if self.is_log {
            return (value.max(f64::MIN_POSITIVE) / from).ln() / (to / from).ln();
        }
        (value - from) / (to - from)
    }

    /// Values to mark, in base units, with their labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (from, to) = (self.ends.0 / self.unit, self.ends.1 / self.unit);
        if self.is_log {
            return log_ticks(from, to, wanted);
        }
        let (values, decimals) = ticks(from, to, wanted);
        // Adding zero turns a minus zero into a zero.
        values.into_iter().map(|value| (value * self.unit, trimmed(value + 0.0, decimals))).collect()
    }
}

/// An axis of no length is given some.
fn widened((from, to): (f64, f64)) -> (f64, f64) {
    if to > from { (from, to) } else { (from, from + from.abs().max(1.0)) }
}

/// Powers of ten, with 2 and 5 times them where there are few, or of two where the axis is short.
fn log_ticks(from: f64, to: f64, wanted: usize) -> Vec<(f64, String)> {
    let within = |value: &f64| (from * 0.999..=to * 1.001).contains(value);
    let powers = || (from.log10().floor() as i32..=to.log10().ceil() as i32).map(|power| 10_f64.powi(power));
    let fine: Vec<f64> = powers().flat_map(|p| [p, 2.0 * p, 5.0 * p]).filter(within).collect();
    let values = if fine.len() <= wanted.max(3) { fine } else { powers().filter(within).collect() };
    let label = |value: f64| {
        if value >= 1e6 { format!("{value:e}") } else { trimmed(value, 6) }
    };
    values.into_iter().map(|value| (value, label(value))).collect()
}

/// The area of a plot: left, top, right, bottom, and its two axes.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) corners: [f64; 4],
    pub(crate) x: Axis,
    pub(crate) y: Axis,
}

impl Frame {
    /// The point of a pair of values.
    pub(crate) fn at(&self, x: f64, y: f64) -> (f64, f64) {
        let [left, top, right, bottom] = self.corners;
        (left + self.x.place(x) * (right - left), bottom - self.y.place(y) * (bottom - top))
    }

    /// Grid, ticks, titles; the data is drawn over it.
    pub(crate) fn draw(&self, picture: &mut Picture) {
        draw_x_grid(picture, self.corners, &self.x);
        draw_y_axis(picture, self.corners, &self.y);
        draw_x_labels(picture, self.corners, &self.x);
    }
}

/// How many labels have room across.
fn wanted_across(corners: [f64; 4]) -> usize {
    ((corners[2] - corners[0]) / 85.0) as usize
}

/// Faint lines at the ticks of a horizontal axis.
pub(crate) fn draw_x_grid(picture: &mut Picture, corners: [f64; 4], axis: &Axis) {
    let [left, top, right, bottom] = corners;
    for (value, _) in axis.ticks(wanted_across(corners)) {
        let x = left + axis.place(value) * (right - left);
        picture.path(vec![(x, top), (x, bottom)], 0.5, GRID);
    }
}

/// The line, labels and title of a horizontal axis, below the plot.
pub(crate) fn draw_x_labels(picture: &mut Picture, corners: [f64; 4], axis: &Axis) {
    let [left, _, right, bottom] = corners;
    picture.path(vec![(left, bottom), (right, bottom)], 1.0, INK);
    for (value, label) in axis.ticks(wanted_across(corners)) {
        let x = left + axis.place(value) * (right - left);
        picture.path(vec![(x, bottom), (x, bottom + 4.0)], 1.0, INK);
        picture.text(label, (x, bottom + 13.0), SMALL, Across::Middle, INK);
    }
    let middle = f64::midpoint(left, right);
    picture.text(axis.title.as_str(), (middle, bottom + 32.0), LABEL, Across::Middle, INK);
}

/// Grid, line, labels and title of a vertical axis, left of the plot.
pub(crate) fn draw_y_axis(picture: &mut Picture, corners: [f64; 4], axis: &Axis) {
    let [left, top, right, bottom] = corners;
    let mut widest: f64 = 0.0;
    for (value, label) in axis.ticks(((bottom - top) / 40.0) as usize) {
        let y = bottom - axis.place(value) * (bottom - top);
        picture.path(vec![(left, y), (right, y)], 0.5, GRID);
        picture.path(vec![(left - 4.0, y), (left, y)], 1.0, INK);
        widest = widest.max(text_width(&label, SMALL));
        picture.text(label, (left - 7.0, y), SMALL, Across::Right, INK);
    }
    picture.path(vec![(left, top), (left, bottom)], 1.0, INK);
    let at = (left - widest - 22.0, f64::midpoint(top, bottom));
    picture.text_upwards(axis.title.as_str(), at, LABEL, INK);
}

/// How a legend shows one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Swatch {
    Block,
    Line,
    Dashes,
}

/// One entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) swatch: Swatch,
    pub(crate) colour: Colour,
    pub(crate) name: String,
}

/// An entry.
pub(crate) fn entry(swatch: Swatch, colour: Colour, name: impl Into<String>) -> Entry {
    Entry { swatch, colour, name: name.into() }
}

/// Entries side by side from (left, top) on, as many rows as they need up to `right`; returns the height. With
/// no picture nothing is drawn, for measuring.
pub(crate) fn legend(
    mut picture: Option<&mut Picture>,
    (left, top): (f64, f64),
    right: f64,
    entries: &[Entry],
) -> f64 {
    const ROW: f64 = 20.0;
    if entries.is_empty() {
        return 0.0;
    }
    let (mut x, mut y) = (left, top + ROW / 2.0);
    for entry in entries {
        let width = SWATCH + 6.0 + text_width(&entry.name, LABEL);
        if x > left && x + width > right {
            (x, y) = (left, y + ROW);
        }
        if let Some(picture) = picture.as_deref_mut() {
            draw_swatch(picture, (x, y), entry);
            picture.text(entry.name.as_str(), (x + SWATCH + 6.0, y), LABEL, Across::Left, INK);
        }
        x += width + ENTRY_GAP;
    }
    y + ROW / 2.0 - top
}

/// A swatch whose left end is in the middle of the entry's line.
pub(crate) fn draw_swatch(picture: &mut Picture, (x, y): (f64, f64), entry: &Entry) {
    let ends = [(x, y), (x + SWATCH, y)];
    match entry.swatch {
        Swatch::Block => picture.fill([x, y - 6.0, x + SWATCH, y + 6.0], entry.colour),
        Swatch::Line => picture.path(ends.to_vec(), 2.5, entry.colour),
        Swatch::Dashes => picture.dashed(&ends, 2.0, entry.colour),
    }
}

/// A note in small print.
pub(crate) fn note(picture: &mut Picture, text: &str, at: (f64, f64)) {
    picture.text(text, at, SMALL, Across::Left, FAINT_INK);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_choose_their_unit_and_place_values() {
        let axis = Axis::time("time", 0.0, 347e6);
        assert_eq!(axis.title, "time [ms]");
        assert_eq!(axis.ticks(8)[1], (50e6, "50".to_owned()));
        assert!((axis.place(173.5e6) - 0.5).abs() < 1e-12);
        assert_eq!(Axis::bytes("memory", 0.0, 1.1e9).title, "memory [GB]");
    }

    #[test]
    fn log_axes_mark_round_numbers() {
        let labels = |axis: Axis| axis.ticks(8).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(Axis::log("m", (1.0, 64.0))), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(Axis::log("m", (1.0, 1e5))), ["1", "10", "100", "1000", "10000", "100000"]);
        assert!((Axis::log("m", (1.0, 100.0)).place(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn an_axis_of_no_length_still_has_two_ends() {
        for axis in [Axis::plain("x", (5.0, 5.0)), Axis::time("t", 0.0, 0.0), Axis::log("x", (0.0, 0.0))] {
            assert!(axis.ends.1 > axis.ends.0 && axis.place(axis.ends.0).abs() < 1e-12);
            assert!(!axis.ticks(5).is_empty());
        }
    }
}
