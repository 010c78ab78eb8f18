//! Curves over time with any number of points: a line while it can be followed, beyond that a band from the lowest
//! to the highest value in each column, with the mean over its time as a line. No extreme is lost.

use crate::axes::Frame;
use crate::coincide::Strand;
use crate::picture::Picture;
use crate::theme::{Colour, PAPER, mixed};

/// Width of a column of a band, in points.
const COLUMN: f64 = 2.0;
/// A curve with more points than this for each point of width is a band.
const CROWDED: f64 = 0.8;

/// A curve ready to be drawn; of several, all bands come before all lines.
#[derive(Debug)]
pub(crate) struct Curve {
    colour: Colour,
    /// Left and right end, upper and lower edge of each column.
    band: Vec<[f64; 4]>,
    line: Vec<(f64, f64)>,
}

impl Curve {
    /// A curve through points by rising x, straight between them.
    pub(crate) fn new(frame: &Frame, points: &[(f64, f64)], colour: Colour) -> Self {
        let [left, _, right, _] = frame.corners;
        if points.len() as f64 <= (right - left) * CROWDED {
            let line = points.iter().map(|&(x, y)| frame.at(x, y)).collect();
            return Self { colour, band: Vec::new(), line };
        }
        let columns = columns(points, frame.x.ends, ((right - left) / COLUMN).ceil() as usize);
        let width = (right - left) / columns.len() as f64;
        let y = |value: f64| frame.at(0.0, value).1;
        let mut curve = Self { colour, band: Vec::new(), line: Vec::new() };
        for (index, column) in columns.iter().enumerate() {
            let x = left + width * index as f64;
            if let Some(Column { low, high, area, length }) = *column {
                curve.band.push([x, y(high), x + width, y(low)]);
                let mean = if length > 0.0 { area / length } else { low };
                curve.line.push((x + width / 2.0, y(mean)));
            }
        }
        curve
    }

    /// A curve that was kept in stretches: from, to, lowest, highest, mean.
    pub(crate) fn of_stretches(frame: &Frame, stretches: &[[f64; 5]], colour: Colour) -> Self {
        let mut curve = Self { colour, band: Vec::new(), line: Vec::new() };
        for &[from, to, low, high, mean] in stretches {
            let ((left, upper), (right, lower)) = (frame.at(from, high), frame.at(to, low));
            if lower - upper > 0.5 {
                curve.band.push([left, upper, right, lower]);
            }
            let y = frame.at(from, mean).1;
            curve.line.extend([(left, y), (right, y)]);
        }
        curve
    }

    /// Whether there is too much of it for a line alone.
    pub(crate) fn is_band(&self) -> bool {
        !self.band.is_empty()
    }

    /// The line: the curve, or the mean of its band.
    pub(crate) fn into_strand(self) -> Strand {
        Strand { points: self.line, colour: self.colour }
    }
}

/// Draws the bands of those curves that are bands: side by side in each column, so that none hides another.
pub(crate) fn draw_bands(picture: &mut Picture, curves: &[Curve]) {
    let bands: Vec<&Curve> = curves.iter().filter(|curve| curve.is_band()).collect();
    for (place, curve) in bands.iter().enumerate() {
        for &[left, upper, right, lower] in &curve.band {
            let edge = |place: usize| left + (right - left) * place as f64 / bands.len() as f64;
            picture.fill([edge(place), upper, edge(place + 1), lower], mixed(curve.colour, PAPER, 0.65));
        }
    }
}

/// What a curve does within one column.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Column {
    low: f64,
    high: f64,
    area: f64,
    length: f64,
}

impl Column {
    fn take(column: &mut Option<Self>, (from, to): ((f64, f64), (f64, f64))) {
        let length = (to.0 - from.0).max(0.0);
        let area = length * f64::midpoint(from.1, to.1);
        let (low, high) = (from.1.min(to.1), from.1.max(to.1));
        *column = Some(match *column {
            None => Self { low, high, area, length },
            Some(old) => Self {
                low: old.low.min(low),
                high: old.high.max(high),
                area: old.area + area,
                length: old.length + length,
            },
        });
    }
}

/// Cuts a curve at the borders of so many columns between two ends.
fn columns(points: &[(f64, f64)], (from, to): (f64, f64), count: usize) -> Vec<Option<Column>> {
    let count = count.max(1);
    let width = (to - from) / count as f64;
    let mut found = vec![None; count];
    for ends in points.windows(2) {
        let ((x0, y0), (x1, y1)) = (ends[0], ends[1]);
        let at = |x: f64| if x1 > x0 { y0 + (y1 - y0) * (x - x0) / (x1 - x0) } else { y1 };
        let column_of = |x: f64| (((x - from) / width) as usize).min(count - 1);
        let (mut start, last) = ((x0, y0), column_of(x1));
        for (column, place) in found.iter_mut().enumerate().take(last + 1).skip(column_of(x0)) {
            let border = from + width * (column + 1) as f64;
            let end = if column == last { (x1, y1) } else { (border, at(border)) };
            Column::take(place, (start, end));
            start = end;
        }
    }
    found
}

/// The corners of a curve that starts at zero and stays level from each point to the next, up to `end`.
pub(crate) fn stairs(levels: impl Iterator<Item = (f64, f64)>, end: f64) -> Vec<(f64, f64)> {
    let mut corners = vec![(0.0, 0.0)];
    let mut level = 0.0;
    for (x, y) in levels {
        corners.extend([(x, level), (x, y)]);
        level = y;
    }
    corners.push((end, level));
    corners
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::axes::Axis;
    use crate::theme::{ALERT, INK};
    use proptest::prelude::*;

    #[test]
    fn a_long_curve_is_a_band_of_bounded_size_that_keeps_its_extremes() {
        let frame = Frame {
            corners: [0.0, 0.0, 100.0, 50.0],
            x: Axis::time("time", 0.0, 1e6),
            y: Axis::bytes("held", 0.0, 100.0),
        };
        let mut points: Vec<(f64, f64)> = (0..=100_000).map(|i| (f64::from(i) * 10.0, 50.0)).collect();
        (points[12_345].1, points[65_432].1) = (99.0, 1.0);
        let mut picture = Picture::new(100, 50);
        let curve = Curve::new(&frame, &points, INK);
        assert!(curve.is_band());
        draw_bands(&mut picture, std::slice::from_ref(&curve));
        assert!(curve.into_strand().points.len() <= 50);
        assert!(picture.shapes().len() <= 50, "{}", picture.shapes().len());
        let ys = picture.shapes().iter().filter_map(|shape| match shape {
            crate::picture::Shape::Box { corners, .. } => Some((corners[1], corners[3])),
            _ => None,
        });
        let (high, low) =
            ys.fold((f64::MAX, 0.0_f64), |(high, low), (top, bottom)| (high.min(top), low.max(bottom)));
        assert!((high - frame.at(0.0, 99.0).1).abs() < 1e-9 && (low - frame.at(0.0, 1.0).1).abs() < 1e-9);
        assert!(!Curve::new(&frame, &points[..40], INK).is_band());
    }

    #[test]
    fn equal_bands_share_their_columns() {
        let frame = Frame {
            corners: [0.0, 0.0, 100.0, 50.0],
            x: Axis::time("time", 0.0, 1e6),
            y: Axis::bytes("held", 0.0, 100.0),
        };
        let points: Vec<(f64, f64)> =
            (0..=1_000).map(|i| (f64::from(i) * 1e3, f64::from(i % 2) * 90.0)).collect();
        let mut picture = Picture::new(100, 50);
        draw_bands(&mut picture, &[INK, ALERT].map(|colour| Curve::new(&frame, &points, colour)));
        let area_of = |wanted: Colour| -> f64 {
            let areas = picture.shapes().iter().map(|shape| match shape {
                crate::picture::Shape::Box { corners: [left, top, right, bottom], fill }
                    if *fill == wanted =>
                {
                    (right - left) * (bottom - top)
                }
                _ => 0.0,
            });
            areas.sum()
        };
        let [one, other] = [INK, ALERT].map(|colour| area_of(mixed(colour, PAPER, 0.65)));
        assert!((one - 100.0 * 45.0 / 2.0).abs() < 1e-6 && (one - other).abs() < 1e-6, "{one} {other}");
    }

    #[test]
    fn stairs_go_on_to_the_end() {
        let corners = stairs([(1.0, 5.0), (2.0, 3.0)].into_iter(), 9.0);
        assert_eq!(corners, [(0.0, 0.0), (1.0, 0.0), (1.0, 5.0), (2.0, 5.0), (2.0, 3.0), (9.0, 3.0)]);
    }

    proptest! {
        #[test]
        fn columns_keep_the_area_under_a_curve(steps in proptest::collection::vec((0.0..30.0_f64, 0.0..10.0_f64), 1..40), count in 1_usize..20) {
            let mut x = 0.0;
            let points: Vec<(f64, f64)> = steps.iter().map(|&(step, y)| { x += step; (x, y) }).collect();
            prop_assume!(x > 0.0);
            let found = columns(&points, (0.0, x), count);
            let area: f64 = found.iter().flatten().map(|column| column.area).sum();
            let want: f64 = points.windows(2).map(|p| (p[1].0 - p[0].0) * f64::midpoint(p[0].1, p[1].1)).sum();
            prop_assert!((area - want).abs() < 1e-6 * (want + 1.0), "{area} {want}");
        }
    }
}
