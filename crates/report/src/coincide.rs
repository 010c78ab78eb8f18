//! Lines that lie on each other: where they do, they are drawn as one line of stripes in the colours of all, so that
//! none hides another. Nothing is moved or widened: a stripe still stands at its value.

use std::collections::BTreeMap;

use crate::picture::{Picture, distance};
use crate::theme::Colour;

/// Two lines that are closer than this are one to the eye, in points: half the width of a line.
const CLOSE: f64 = 1.0;
/// Length of a stripe, in points: that of a dash with its gap, so that a dashed line over it leaves some of each.
const STRIPE: f64 = 9.0;
/// Stripes shorter than this are not seen: the first line is drawn over the others.
const SHORTEST: f64 = 2.0;
/// Lines with more corners than this together are not compared: they are too dense to follow.
const COMPARED: usize = 20_000;

type Point = (f64, f64);

/// A line to be drawn, its corners by rising x.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    pub(crate) points: Vec<Point>,
    pub(crate) colour: Colour,
}

/// Draws lines, the first on top, with stripes where several coincide; returns whether any do.
pub(crate) fn draw_strands(picture: &mut Picture, strands: &[Strand], width: f64) -> bool {
    let mut any = false;
    for stretch in stretches(strands).into_iter().rev() {
        let colours = stretch.lines.iter().map(|&line| strands[line].colour);
        let mut colours: Vec<Colour> = colours.collect();
        let length: f64 = stretch.points.windows(2).map(|ends| distance(ends[0], ends[1])).sum();
        let stripe = STRIPE.min(length / colours.len() as f64);
        if stripe < SHORTEST {
            colours.truncate(1);
        }
        any |= colours.len() > 1;
        picture.striped(&stretch.points, stripe, width, &colours);
    }
    any
}

impl Strand {
    /// Whether it has a point that is the same to the eye.
    pub(crate) fn has_point_near(&self, point: Point) -> bool {
        self.points.iter().any(|&own| distance(own, point) < CLOSE)
    }
}

/// A part of a line, with all the lines that take the same way.
#[derive(Debug, PartialEq)]
struct Stretch {
    /// The first is the one whose points these are.
    lines: Vec<usize>,
    points: Vec<Point>,
}

/// A straight piece of a line between two neighbouring places where any line has a corner.
struct Piece {
    ends: [Point; 2],
    /// Whether the line has a corner of its own at the first end.
    is_corner: bool,
    /// The lines that have the same piece.
    lines: Vec<usize>,
}

/// All lines in stretches, by their first line; a stretch that several share stands once.
fn stretches(strands: &[Strand]) -> Vec<Stretch> {
    let corners: usize = strands.iter().map(|strand| strand.points.len()).sum();
    if strands.len() < 2 || corners > COMPARED {
        let whole =
            |(line, strand): (usize, &Strand)| Stretch { lines: vec![line], points: strand.points.clone() };
        return strands.iter().enumerate().map(whole).collect();
    }
    let mut places: Vec<f64> =
        strands.iter().flat_map(|strand| &strand.points).map(|point| point.0).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let mut pieces: Vec<Vec<Piece>> = strands.iter().map(|strand| cut(&strand.points, &places)).collect();
    join_equal(&mut pieces);
    let owned = pieces.iter().enumerate().flat_map(|(line, pieces)| {
        let runs = pieces.chunk_by(|one, next| one.lines == next.lines && one.ends[1] == next.ends[0]);
        runs.filter(move |run| run[0].lines.first() == Some(&line)).map(stretch_of)
    });
    owned.collect()
}

fn stretch_of(run: &[Piece]) -> Stretch {
    let first = run[0].ends[0];
    let corners = run.iter().skip(1).filter(|piece| piece.is_corner).map(|piece| piece.ends[0]);
    let last = run[run.len() - 1].ends[1];
    let points = std::iter::once(first).chain(corners).chain([last]).collect();
    Stretch { lines: run[0].lines.clone(), points }
}

/// A line, cut at all of these places.
fn cut(points: &[Point], places: &[f64]) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for ends in points.windows(2).filter(|ends| ends[0] != ends[1]) {
        let (from, to) = (ends[0], ends[1]);
        let first = places.partition_point(|&x| x <= from.0);
        let inner = places[first..].iter().take_while(|&&x| x < to.0);
        let at = |&x: &f64| (x, from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0));
        let stops: Vec<Point> = std::iter::once(from).chain(inner.map(at)).chain([to]).collect();
        pieces.extend(stops.windows(2).enumerate().map(|(index, ends)| Piece {
            ends: [ends[0], ends[1]],
            is_corner: index == 0,
            lines: Vec::new(),
        }));
    }
    pieces
}

/// Tells each piece which lines have it.
fn join_equal(pieces: &mut [Vec<Piece>]) {
    // By the places of their ends, which neighbours share to the last bit.
    let mut groups: BTreeMap<[u64; 2], Vec<(usize, usize)>> = BTreeMap::new();
    for (line, own) in pieces.iter().enumerate() {
        for (index, piece) in own.iter().enumerate() {
            groups.entry(piece.ends.map(|end| end.0.to_bits())).or_default().push((line, index));
        }
    }
    for mut rest in groups.into_values() {
        while let Some(&(line, index)) = rest.first() {
            let ends = pieces[line][index].ends;
            let is_same = |&(line, index): &(usize, usize)| {
                let other = pieces[line][index].ends;
                ends.iter().zip(other).all(|(end, other)| (end.1 - other.1).abs() < CLOSE)
            };
            let (same, others): (Vec<_>, Vec<_>) = rest.into_iter().partition(is_same);
            let mut lines: Vec<usize> = same.iter().map(|&(line, _)| line).collect();
            lines.dedup();
            for (line, index) in same {
                pieces[line][index].lines.clone_from(&lines);
            }
            rest = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Shape;
    use crate::theme::{ALERT, INK, PAPER};

    fn strand(points: &[Point], colour: Colour) -> Strand {
        Strand { points: points.to_vec(), colour }
    }

    #[test]
    fn lines_apart_stay_as_they_are() {
        let one = [(0.0, 0.0), (10.0, 0.0), (20.0, 5.0)];
        let other = [(0.0, 9.0), (15.0, 9.0), (20.0, 5.0)];
        let found = stretches(&[strand(&one, INK), strand(&other, ALERT)]);
        let whole = |line, points: &[Point]| Stretch { lines: vec![line], points: points.to_vec() };
        assert_eq!(found, [whole(0, &one), whole(1, &other)], "crossing at a point is no stretch");
    }

    #[test]
    fn a_shared_stretch_is_found_though_the_corners_differ() {
        let one = [(0.0, 0.0), (10.0, 10.0), (20.0, 20.0), (30.0, 30.0)];
        let other = [(0.0, 5.0), (10.0, 10.0), (30.0, 30.0)];
        let found = stretches(&[strand(&one, INK), strand(&other, ALERT)]);
        let alone = |line, points: &[Point]| Stretch { lines: vec![line], points: points.to_vec() };
        let shared = Stretch { lines: vec![0, 1], points: one[1..].to_vec() };
        assert_eq!(found, [alone(0, &one[..2]), shared, alone(1, &other[..2])]);
    }

    #[test]
    fn each_of_equal_lines_shows_as_much() {
        let line = [(0.0, 0.0), (50.0, 0.0), (50.0, 40.0)];
        let mut picture = Picture::new(100, 100);
        let strands = [INK, ALERT, PAPER].map(|colour| strand(&line, colour));
        assert!(draw_strands(&mut picture, &strands, 2.0));
        let length_in = |wanted: Colour| -> f64 {
            let lengths = picture.shapes().iter().map(|shape| match shape {
                Shape::Path { points, colour, .. } if *colour == wanted => {
                    points.windows(2).map(|ends| distance(ends[0], ends[1])).sum()
                }
                _ => 0.0,
            });
            lengths.sum()
        };
        // The first lies under all stripes.
        assert!((length_in(INK) - 90.0).abs() < 1e-9, "{}", length_in(INK));
        assert!([ALERT, PAPER].iter().all(|&colour| length_in(colour) >= 27.0));
    }

    #[test]
    fn points_are_near_or_not() {
        let strand = strand(&[(1.2, 1.0), (5.0, 5.0)], INK);
        assert!(strand.has_point_near((1.0, 1.1)) && !strand.has_point_near((5.0, 3.0)));
    }
}
