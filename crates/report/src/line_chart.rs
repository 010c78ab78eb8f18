//! Lines over a swept key: makespan, utilisation or peak against micro-batches, one line for each other key.

use std::fmt::Write as _;

use crate::axes::Frame;
use crate::chart::{AxisSpec, SIZE, chart, chart_note};
use crate::coincide::{Strand, draw_strands};
use crate::font::text_width;
use crate::legend::{Swatch, entry, side_legend};
use crate::picture::Picture;
use crate::theme::{Colour, INK, PAPER, SMALL, of_line, of_reference};
use crate::units::counted;

/// Where a line has more points than this, lines are not dotted.
const DOTTED: usize = 40;
/// More points than this on a line are thinned to the lowest and the highest of each group.
const MOST_POINTS: usize = 4_000;
/// Radius of a point.
const DOT: f64 = 3.0;
/// Width of the ring that a line's point makes round that of another line, and of all such rings together at most.
const RING: f64 = 2.0;
const MOST_OF_RINGS: f64 = 6.0;
/// Half the width of the cap of a bar.
const CAP: f64 = 3.5;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// Simulated values.
    Solid,
    /// A formula beside them.
    Dashed,
    /// Points that stand out: dots without a line.
    Mark,
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
    /// The lines, first ones on top of those of the same stroke.
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
    let (mut picture, frame) = chart(&spec.title, x, y, beside);
    let some_coincide = draw_lines(&mut picture, &frame, &spec.lines);
    chart_note(&mut picture, &note(spec, some_coincide));
    draw_legend(&mut picture, &frame, &spec.lines);
    picture
}

/// A colour for each line. What stands beside the simulated values is grey: so a line has the same colour in all charts of
/// a sweep, whatever stands beside it there, and no colour is spent on formulas.
fn colours(lines: &[Line]) -> Vec<Colour> {
    let of_stroke = |stroke| lines.iter().filter(|line| line.stroke == stroke).count();
    let (solid, dashed) = (of_stroke(Stroke::Solid), of_stroke(Stroke::Dashed));
    let mut colours = (0..solid).map(|index| of_line(index, solid));
    let mut greys = (0..dashed).map(|index| of_reference(index, dashed));
    let next = |line: &Line| match line.stroke {
        Stroke::Solid => colours.next(),
        Stroke::Dashed => greys.next(),
        Stroke::Mark => Some(INK),
    };
    lines.iter().filter_map(next).collect()
}

/// Beside the chart: what stands beside the simulated values, and below that these, which become one scale of colours
/// where there are many.
fn draw_legend(picture: &mut Picture, frame: &Frame, lines: &[Line]) {
    const ROW: f64 = 18.0;
    let entries = lines.iter().zip(colours(lines)).map(|(line, colour)| {
        let swatch = match line.stroke {
            Stroke::Solid => Swatch::Line,
            Stroke::Dashed => Swatch::Dashes,
            Stroke::Mark => Swatch::Dot,
        };
        entry(swatch, colour, line.name.as_str())
    });
    let (simulated, beside): (Vec<_>, Vec<_>) = entries.partition(|entry| entry.swatch == Swatch::Line);
    let [_, top, right, bottom] = frame.corners;
    let between = if simulated.is_empty() { bottom } else { f64::midpoint(top, bottom) };
    let between = between.min(top + ROW * beside.len() as f64);
    if !beside.is_empty() {
        side_legend(picture, (right + 14.0, top), between, &beside);
    }
    side_legend(picture, (right + 14.0, between), bottom, &simulated);
}

/// What is to be known of all lines.
fn note(spec: &LineChart, some_coincide: bool) -> String {
    let shown = spec.lines.iter().filter(|line| line.stroke == Stroke::Solid).map(|line| line.points.len());
    let count: usize = shown.sum();
    let mut note = counted(count as u64, "point");
    if some_coincide {
        note += "; striped: lines that coincide";
    }
    if !spec.bars.is_empty() {
        let _ = write!(note, "; bars: {}", spec.bars);
    }
    note
}

/// Draws the lines with their points and bars, formulas and marks over all of them; returns whether any lines coincide.
fn draw_lines(picture: &mut Picture, frame: &Frame, lines: &[Line]) -> bool {
    let strand = |(line, colour)| Strand { points: thinned(placed(frame, line)), colour };
    let strands: Vec<Strand> = lines.iter().zip(colours(lines)).map(strand).collect();
    let both = strands.iter().zip(lines);
    let only = |stroke| both.clone().filter(move |(_, line)| line.stroke == stroke).map(|(strand, _)| strand);
    let solid: Vec<Strand> = only(Stroke::Solid).cloned().collect();
    let some_coincide = draw_strands(picture, &solid, 2.5);
    draw_dots(picture, &solid);
    for (strand, line) in both.clone().rev() {
        for bar in line.bars() {
            draw_bar(picture, frame, bar, strand.colour);
        }
    }
    for strand in only(Stroke::Dashed).rev() {
        picture.dashed(&strand.points, 1.5, strand.colour);
    }
    for &point in only(Stroke::Mark).flat_map(|strand| &strand.points) {
        picture.dot(point, DOT + RING, PAPER);
        picture.dot(point, DOT, INK);
    }
    some_coincide
}

/// The points of a line that have a place within the frame.
fn placed(frame: &Frame, line: &Line) -> Vec<(f64, f64)> {
    let is_inside = |&&(x, y): &&(f64, f64)| {
        [frame.x.place(x), frame.y.place(y)].iter().all(|place| (-1e-9..=1.0 + 1e-9).contains(place))
    };
    line.points.iter().filter(is_inside).map(|&(x, y)| frame.at(x, y)).collect()
}

/// Draws the points where there are few, each as a ring round those of the lines above that are in the same place.
fn draw_dots(picture: &mut Picture, strands: &[Strand]) {
    let longest = strands.iter().map(|strand| strand.points.len()).max().unwrap_or(0);
    // A point alone is no line: without its dot it would not be seen.
    let is_dotted = |strand: &&Strand| longest <= DOTTED || strand.points.len() == 1;
    let dotted: Vec<&Strand> = strands.iter().filter(is_dotted).collect();
    // Rings of many lines are thin, so that a mark stays a mark.
    let ring = (MOST_OF_RINGS / dotted.len() as f64).min(RING);
    for (index, strand) in dotted.iter().enumerate().rev() {
        for &point in &strand.points {
            let above = dotted[..index].iter().filter(|above| above.has_point_near(point)).count();
            picture.dot(point, DOT + ring * above as f64, strand.colour);
        }
    }
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

    /// A point that stands out.
    pub fn mark(name: impl Into<String>, point: (f64, f64)) -> Self {
        Self { name: name.into(), points: vec![point], stroke: Stroke::Mark, errors: Vec::new() }
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
    fn lines_that_coincide_all_show() {
        let mut chart = utilisation(&[4, 8]);
        assert!(!words(&line_chart(&chart)).concat().contains("striped"));
        chart.lines.extend(utilisation(&[4]).lines);
        let picture = line_chart(&chart);
        check_layout(&picture, "striped");
        assert!(words(&picture).join("|").contains("21 points; striped: lines that coincide"));
        let radii = |colour| {
            picture.shapes().iter().filter_map(move |shape| match shape {
                Shape::Dot { radius, fill, .. } if *fill == colour => Some(*radius),
                _ => None,
            })
        };
        assert!(radii(of_line(0, 3)).all(|radius| (radius - DOT).abs() < 1e-9));
        assert!(radii(of_line(2, 3)).all(|radius| radius > DOT), "a ring round the first line's");
        assert_eq!(radii(of_line(2, 3)).count(), 7);
    }

    #[test]
    fn what_stands_beside_the_values_takes_no_colour_of_theirs() {
        let mut chart = utilisation(&[1, 2, 3]);
        chart.lines.insert(0, Line::dashed("formula", vec![(1.0, 0.9), (64.0, 0.9)]));
        chart.lines.insert(0, Line::mark("best", (64.0, 1.0)));
        let colours = colours(&chart.lines);
        assert_eq!(colours[..2], [INK, of_reference(0, 1)]);
        assert_eq!(colours[2..], [0, 1, 2].map(|index| of_line(index, 3)));
        let picture = line_chart(&chart);
        check_layout(&picture, "beside");
        assert!(words(&picture).join("|").contains("21 points|"), "a mark is no point");
        for (simulated, beside) in [(60, 1), (60, 40), (0, 3), (16, 16)] {
            let mut chart = utilisation(&(1..=simulated).collect::<Vec<_>>());
            let more = (0..beside)
                .map(|index| Line::dashed(format!("formula {index}"), vec![(1.0, 0.9), (64.0, 0.9)]));
            chart.lines.extend(more);
            check_layout(&line_chart(&chart), &format!("{simulated} lines and {beside} formulas"));
        }
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
