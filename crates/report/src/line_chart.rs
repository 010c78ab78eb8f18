//! Lines over a swept key: makespan, utilisation or peak against micro-batches, one line for each other key.

use crate::axes::Frame;
use crate::chart::{AxisSpec, SIZE, chart};
use crate::font::text_width;
use crate::legend::{Swatch, entry, side_legend};
use crate::picture::Picture;
use crate::theme::{Colour, SMALL, of_line};
use crate::units::grouped;

/// More points than this on a line are not dotted.
const DOTTED: usize = 40;
/// More points than this on a line are thinned to the lowest and the highest of each group.
const MOST_POINTS: usize = 4_000;
/// Half the width of the cap of a bar.
const CAP: f64 = 3.5;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Simulated values.
    Solid,
    /// A formula beside them.
    Dashed,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// What the legend calls it.
    pub name: String,
    /// (x, y), by rising x. Points that are not finite are left out.
    pub points: Vec<(f64, f64)>,
    /// How it is drawn.
    pub stroke: Stroke,
    /// How far each point may be off, up and down, drawn as a bar; empty for none.
    pub errors: Vec<f64>,
}

/// Lines over two axes.
#[derive(Clone, Debug, PartialEq)]
pub struct LineChart {
    /// The title.
    pub title: String,
    /// What the bars of errors mean; empty where there are none.
    pub bars: String,
    /// The axis across.
    pub x: AxisSpec,
    /// The axis upwards.
    pub y: AxisSpec,
    /// The lines, first ones on top.
    pub lines: Vec<Line>,
}

/// Draws the chart, with a legend beside it.
pub fn line_chart(spec: &LineChart) -> Picture {
    let all = || spec.lines.iter().flat_map(|line| &line.points);
    let x = spec.x.over(all().map(|&(x, _)| x), 0.0);
    let ends = spec.lines.iter().flat_map(|line| line.bars().flat_map(|(_, low, high)| [low, high]));
    let y = spec.y.over(all().map(|&(_, y)| y).chain(ends), 0.08);
    let longest = spec.lines.iter().map(|line| text_width(&line.name, SMALL)).fold(40.0, f64::max);
    let beside = (longest + 46.0).min(f64::from(SIZE.0) / 3.0);
    let shown = spec.lines.iter().filter(|line| line.stroke == Stroke::Solid).map(|line| line.points.len());
    let count: usize = shown.sum();
    let mut note = format!("{} {}", grouped(count as u64), if count == 1 { "point" } else { "points" });
    if !spec.bars.is_empty() {
        note = format!("{note}; bars: {}", spec.bars);
    }
    let (mut picture, frame) = chart(&spec.title, &note, x, y, beside);
    for (index, line) in spec.lines.iter().enumerate().rev() {
        let colour = of_line(index, spec.lines.len());
        let inside = |&&(x, y): &&(f64, f64)| {
            [frame.x.place(x), frame.y.place(y)].iter().all(|place| (-1e-9..=1.0 + 1e-9).contains(place))
        };
        let placed: Vec<_> = line.points.iter().filter(inside).map(|&(x, y)| frame.at(x, y)).collect();
        let points = thinned(placed);
        if line.stroke == Stroke::Dashed {
            picture.dashed(&points, 1.5, colour);
            continue;
        }
        if points.len() <= DOTTED {
            for &point in &points {
                picture.dot(point, 3.0, colour);
            }
        }
        picture.path(points, 2.0, colour);
        for (x, low, high) in line.bars() {
            draw_bar(&mut picture, &frame, (x, low, high), colour);
        }
    }
    let entries = spec.lines.iter().enumerate().map(|(index, line)| {
        let swatch = if line.stroke == Stroke::Solid { Swatch::Line } else { Swatch::Dashes };
        entry(swatch, of_line(index, spec.lines.len()), line.name.as_str())
    });
    let entries: Vec<_> = entries.collect();
    let [_, top, right, bottom] = frame.corners;
    side_legend(&mut picture, (right + 14.0, top), bottom, &entries);
    picture
}

impl Line {
    /// Simulated values.
    pub fn solid(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, stroke: Stroke::Solid, errors: Vec::new() }
    }

    /// Something beside them.
    pub fn dashed(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, stroke: Stroke::Dashed, errors: Vec::new() }
    }

    /// The bars of its errors: where, from and to.
    fn bars(&self) -> impl Iterator<Item = (f64, f64, f64)> {
        let points = self.points.iter().zip(&self.errors);
        points.filter(|(_, error)| **error > 0.0).map(|(&(x, y), error)| (x, y - error, y + error))
    }
}

/// A bar with caps; one that has no place on an axis is left out.
fn draw_bar(picture: &mut Picture, frame: &Frame, (x, low, high): (f64, f64, f64), colour: Colour) {
    let places = [frame.x.place(x), frame.y.place(low), frame.y.place(high)];
    if !places.iter().all(|place| (-1e-9..=1.0 + 1e-9).contains(place)) {
        return;
    }
    let ((x, bottom), (_, top)) = (frame.at(x, low), frame.at(x, high));
    picture.path(vec![(x, bottom), (x, top)], 1.0, colour);
    for end in [bottom, top] {
        picture.path(vec![(x - CAP, end), (x + CAP, end)], 1.0, colour);
    }
}

/// All points, or the lowest and the highest of each group where there are very many.
fn thinned(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if points.len() <= MOST_POINTS {
        return points;
    }
    let group = points.len().div_ceil(MOST_POINTS / 2);
    let ends = |group: &[(f64, f64)]| {
        let by_height = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let both = [group.iter().min_by(by_height), group.iter().max_by(by_height)];
        let mut both = both.map(|point| *point.expect("a chunk is never empty"));
        both.sort_by(|a, b| a.0.total_cmp(&b.0));
        both
    };
    points.chunks(group).flat_map(ends).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Measure;
    use crate::layout_tests::{check_layout, words};
    use crate::picture::Shape;

    fn utilisation(ranks: &[u32]) -> LineChart {
        let line = |p: u32| {
            let points = (0..7).map(|i| f64::from(1 << i)).map(|m| (m, m / (m + f64::from(p) - 1.0)));
            Line::solid(format!("{p} ranks"), points.collect())
        };
        LineChart {
            title: "Utilisation against micro-batches".into(),
            bars: String::new(),
            x: AxisSpec::log("micro-batches", Measure::Number),
            y: AxisSpec::linear("utilisation", Measure::Share),
            lines: ranks.iter().map(|&p| line(p)).collect(),
        }
    }

    #[test]
    fn any_number_of_lines_is_laid_out() {
        for count in [0, 1, 4, 12, 60] {
            let ranks: Vec<u32> = (1..=count).collect();
            check_layout(&line_chart(&utilisation(&ranks)), &format!("{count} lines"));
        }
        let words_of = |count| words(&line_chart(&utilisation(&[count]))).join("|");
        assert!(words_of(4).contains("utilisation [%]") && words_of(4).contains("4 ranks"));
    }

    #[test]
    fn values_without_a_place_are_left_out() {
        let mut chart = utilisation(&[4]);
        chart.lines[0].points.extend([(0.0, 0.5), (f64::NAN, 0.5), (3.0, f64::INFINITY)]);
        check_layout(&line_chart(&chart), "zero on a log axis");
    }

    #[test]
    fn bars_have_their_room_and_are_explained() {
        let mut chart = utilisation(&[4]);
        chart.lines[0].errors = vec![0.0, 0.3, 0.1, 0.1, f64::NAN, 0.2, 0.9];
        chart.bars = "twice the standard error".into();
        let picture = line_chart(&chart);
        check_layout(&picture, "bars");
        assert!(words(&picture).join("|").contains("bars: twice the standard error"));
        chart.lines[0].errors[5] = 0.0;
        assert_eq!(picture.shapes().len(), line_chart(&chart).shapes().len() + 3, "a bar is three strokes");
    }

    #[test]
    fn long_lines_keep_their_extremes() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), 10.0)).collect();
        points[54_321].1 = 99.0;
        let highest = thinned(points.clone()).into_iter().map(|p| p.1).fold(0.0, f64::max);
        assert!((highest - 99.0).abs() < 1e-12);
        let mut chart = utilisation(&[4]);
        chart.x = AxisSpec::linear("point", Measure::Number);
        chart.lines[0].points = points;
        let picture = line_chart(&chart);
        let drawn: usize = picture
            .shapes()
            .iter()
            .map(|s| if let Shape::Path { points, .. } = s { points.len() } else { 0 })
            .sum();
        assert!(drawn < MOST_POINTS + 200);
    }
}
