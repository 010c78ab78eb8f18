//! Axes and grids: what every chart of this crate has around its data.

use pipestep_engine::Duration;

use crate::font::text_width;
use crate::picture::{Across, Picture};
use crate::theme::{GRID, INK, LABEL, SMALL};
use crate::units::{Unit, byte_unit, grouped, ticks, time_unit, trimmed};

/// What a number on an axis is, and so how it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// A plain number.
    Number,
    /// A number of things, which has no values between whole numbers.
    Count,
    /// Nanoseconds, written in the unit that suits the largest.
    Time,
    /// Bytes, written in the unit that suits the largest.
    Bytes,
    /// A share of one, written in percent.
    Share,
}

/// How an axis divides its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps take equal room.
    Linear,
    /// Equal factors take equal room; only values above zero have a place.
    Log,
}

/// One axis: which values lie at its ends, and how they are written.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What is measured, with the unit.
    pub(crate) title: String,
    /// The values at the two ends, in base units.
    pub(crate) ends: (f64, f64),
    /// That of the labels.
    unit: Unit,
    scale: Scale,
    /// Whether only whole numbers are marked.
    counts: bool,
}

impl Axis {
    /// An axis from one value to another; one of no length is given some.
    pub(crate) fn new(what: &str, measure: Measure, scale: Scale, ends: (f64, f64)) -> Self {
        let ends = widened(ends, scale);
        let largest = ends.0.abs().max(ends.1.abs());
        let unit = match measure {
            Measure::Number | Measure::Count => Unit { name: "", size: 1.0 },
            Measure::Time => time_unit(Duration::from_nanos(largest as u64)),
            Measure::Bytes => byte_unit(largest as u64),
            Measure::Share => Unit { name: "%", size: 0.01 },
        };
        let title = if unit.name.is_empty() { what.to_owned() } else { format!("{what} [{}]", unit.name) };
        // Bytes and nanoseconds have no parts.
        let counts = measure == Measure::Count || ["B", "ns"].contains(&unit.name);
        Self { title, ends, unit, scale, counts }
    }

    /// Time from one instant to another, in ns.
    pub(crate) fn time(what: &str, from: f64, to: f64) -> Self {
        Self::new(what, Measure::Time, Scale::Linear, (from, to))
    }

    /// Bytes from one amount to another.
    pub(crate) fn bytes(what: &str, from: f64, to: f64) -> Self {
        Self::new(what, Measure::Bytes, Scale::Linear, (from, to))
    }

    /// Where a value lies: 0 at the first end, 1 at the last.
    pub(crate) fn place(&self, value: f64) -> f64 {
        let (from, to) = self.ends;
        match self.scale {
            Scale::Linear => (value - from) / (to - from),
            Scale::Log => (value.max(f64::MIN_POSITIVE) / from).ln() / (to / from).ln(),
        }
    }

    /// Values to mark, in base units, with their labels.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        let (from, to) = (self.ends.0 / self.unit.size, self.ends.1 / self.unit.size);
        let (mut values, decimals) = match self.scale {
            Scale::Linear => ticks(from, to, wanted),
            Scale::Log => (log_ticks(from, to, wanted), 9),
        };
        if self.counts {
            values.retain(|value| (value - value.round()).abs() < 1e-9);
        }
        let label = |value: f64| match value {
            1e7.. => format!("{value:e}"),
            1e4.. => grouped(value.round() as u64),
            // Adding zero turns a minus zero into a zero.
            _ => trimmed(value + 0.0, decimals),
        };
        values.into_iter().map(|value| (value * self.unit.size, label(value))).collect()
    }

    /// A value as its label on this axis, without the unit: as fine as a two-hundredth of the axis.
    pub(crate) fn label(&self, value: f64) -> String {
        let fine = (self.ends.1 - self.ends.0) / self.unit.size / 200.0;
        trimmed(value / self.unit.size, (-fine.log10()).ceil().clamp(0.0, 9.0) as usize)
    }

    /// An instant on an axis of time, in the axis's unit, to within so many nanoseconds.
    pub(crate) fn instant(&self, nanos: f64, within: f64) -> String {
        let decimals = (-(within / self.unit.size).log10()).ceil().clamp(0.0, 9.0) as usize;
        format!("{} {}", trimmed(nanos / self.unit.size, decimals), self.unit.name)
    }

    /// A length of time that is written beside an axis of time: in the axis's unit, unless it is a small part of that.
    pub(crate) fn length(&self, nanos: f64) -> String {
        if nanos.abs() >= 0.1 * self.unit.size {
            return self.instant(nanos, self.unit.size / 1e3);
        }
        let unit = time_unit(Duration::from_nanos(nanos.abs().round() as u64));
        format!("{} {}", trimmed(nanos / unit.size, 3), unit.name)
    }
}

/// An axis of no length is given some, and one by factors starts above zero.
fn widened((from, to): (f64, f64), scale: Scale) -> (f64, f64) {
    let from = if scale == Scale::Log && from <= 0.0 { 1.0 } else { from };
    match scale {
        _ if to > from => (from, to),
        Scale::Linear => (from, from + from.abs().max(1.0)),
        Scale::Log => (from / 2.0, from * 2.0),
    }
}

/// One, two and five times powers of ten, or the powers alone where that would be too many.
fn log_ticks(from: f64, to: f64, wanted: usize) -> Vec<f64> {
    let within = |value: &f64| (from * 0.999..=to * 1.001).contains(value);
    let powers = || (from.log10().floor() as i32..=to.log10().ceil() as i32).map(|power| 10_f64.powi(power));
    let fine: Vec<f64> = powers().flat_map(|p| [p, 2.0 * p, 5.0 * p]).filter(within).collect();
    if fine.len() <= wanted.max(3) { fine } else { powers().filter(within).collect() }
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
        let axis = |to| Axis::new("m", Measure::Number, Scale::Log, (1.0, to));
        let labels = |to| axis(to).ticks(8).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(64.0), ["1", "2", "5", "10", "20", "50"]);
        assert_eq!(labels(1e5), ["1", "10", "100", "1000", "10,000", "100,000"]);
        assert!((axis(100.0).place(10.0) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn shares_are_written_in_percent() {
        let axis = Axis::new("utilisation", Measure::Share, Scale::Linear, (0.0, 1.0));
        assert_eq!(axis.title, "utilisation [%]");
        assert_eq!(axis.ticks(5)[1], (0.2, "20".to_owned()));
        assert_eq!(axis.label(0.727), "72.7");
    }

    #[test]
    fn a_length_beside_an_axis_has_the_unit_in_which_it_reads_well() {
        let axis = Axis::time("time on the clock", 0.0, 20.0 * 86_400e9);
        assert_eq!(axis.length(3.0 * 86_400e9), "3 d");
        assert_eq!(axis.length(1_449.013e9), "24.15 min");
        assert_eq!(axis.length(-45.798e9), "-45.798 s");
    }

    #[test]
    fn there_is_no_half_of_a_thing() {
        let axis = Axis::new("chunks", Measure::Count, Scale::Linear, (0.0, 4.0));
        let labels =
            |axis: &Axis| axis.ticks(10).into_iter().map(|(_, label)| label).collect::<Vec<String>>();
        assert_eq!(labels(&axis), ["0", "1", "2", "3", "4"]);
        assert_eq!(labels(&Axis::bytes("held", 0.0, 1.0)), ["0", "1"]);
    }

    #[test]
    fn an_axis_of_no_length_still_has_two_ends() {
        for scale in [Scale::Linear, Scale::Log] {
            for ends in [(5.0, 5.0), (0.0, 0.0), (3.0, 1.0)] {
                let axis = Axis::new("x", Measure::Number, scale, ends);
                assert!(axis.ends.1 > axis.ends.0 && axis.place(axis.ends.0).abs() < 1e-12);
                assert!(!axis.ticks(5).is_empty(), "{scale:?} {ends:?}");
            }
        }
    }
}
