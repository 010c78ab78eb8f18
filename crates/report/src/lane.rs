//! One row of a timeline that is not a step's: what somebody was doing when, in colours, however much there is.
//!
//! Bars while they can be told apart; beyond that columns of two points, each divided into the shares of its
//! time. So a row of ten spans and one of ten million read alike, and no span is lost to rounding.

use crate::picture::Picture;
use crate::theme::{Colour, mixed};

/// Points between the lines of a hatch.
const HATCH: f64 = 5.0;
/// Width of a blended column in points.
const COLUMN: f64 = 2.0;
/// A row with narrower spans than this many points on average is blended.
const NARROW: f64 = 2.5;

/// How something looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    pub(crate) fill: Colour,
    /// Diagonal lines over it.
    pub(crate) hatch: Option<Colour>,
}

impl Paint {
    pub(crate) const fn plain(fill: Colour) -> Self {
        Self { fill, hatch: None }
    }

    /// The one colour for boxes that leave no room for diagonal lines.
    fn blended(self) -> Colour {
        self.hatch.map_or(self.fill, |lines| mixed(self.fill, lines, 0.35))
    }

    /// Fills a box.
    pub(crate) fn fill(self, picture: &mut Picture, corners: [f64; 4]) {
        picture.fill(corners, self.fill);
        if let Some(colour) = self.hatch {
            hatch(picture, corners, colour);
        }
    }
}

/// Something that was done from one instant to another, in ns; `paint` is a place in the row's list of paints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) paint: usize,
}

/// Part of a timeline, and where it lies on the picture.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    /// First and last instant, in ns.
    pub(crate) time: (u64, u64),
    /// Their places, in points.
    pub(crate) across: (f64, f64),
}

impl Window {
    /// Where an instant lies; those outside at the nearer end.
    pub(crate) fn x(&self, nanos: u64) -> f64 {
        let (from, to) = self.time;
        let (left, right) = self.across;
        let share = (nanos.clamp(from, to) - from) as f64 / (to - from).max(1) as f64;
        left + share * (right - left)
    }

    /// Whether an instant lies in it.
    pub(crate) fn has(&self, nanos: u64) -> bool {
        (self.time.0..=self.time.1).contains(&nanos)
    }

    /// Whether any of something lies in it; what has no length does not.
    pub(crate) fn meets(&self, from: u64, to: u64) -> bool {
        from < to && from < self.time.1 && to > self.time.0
    }

    /// Whether so many spans are too many to be told apart.
    pub(crate) fn is_crowded(&self, spans: usize) -> bool {
        spans as f64 > (self.across.1 - self.across.0) / NARROW
    }
}

/// Draws a row between two heights; `segments` by time, none over another. Returns whether it was blended.
pub(crate) fn draw_lane(
    picture: &mut Picture,
    window: &Window,
    segments: &[Segment],
    paints: &[Paint],
    (top, bottom): (f64, f64),
) -> bool {
    let inside = || segments.iter().filter(|segment| window.meets(segment.from, segment.to));
    if window.is_crowded(inside().count()) {
        draw_shares(picture, window, &shares(window, inside(), paints.len()), paints, (top, bottom));
        return true;
    }
    // What is narrower than a point comes last, so that its neighbours do not cover the pixel it is given.
    for narrow in [false, true] {
        for segment in inside() {
            let (left, right) = (window.x(segment.from), window.x(segment.to));
            if (right - left < 1.0) == narrow {
                paints[segment.paint].fill(picture, [left, top, right, bottom]);
            }
        }
    }
    false
}

/// For each column, the share of its time in each paint.
pub(crate) fn shares<'a>(
    window: &Window,
    segments: impl Iterator<Item = &'a Segment>,
    paints: usize,
) -> Vec<Vec<f64>> {
    let (from, to) = window.time;
    let columns = (((window.across.1 - window.across.0) / COLUMN).ceil() as usize).max(1);
    let width = (to - from) as f64 / columns as f64;
    let mut found = vec![vec![0.0; paints]; columns];
    for segment in segments {
        let (start, end) = (segment.from.max(from) - from, segment.to.min(to) - from);
        let (mut at, end) = (start as f64, end as f64);
        let mut column = ((at / width) as usize).min(columns - 1);
        while at < end && column < columns {
            let until = if column + 1 == columns { end } else { end.min(width * (column + 1) as f64) };
            found[column][segment.paint] += (until - at).max(0.0) / width;
            at = until;
            column += 1;
        }
    }
    found
}

/// Draws columns of shares, the first paint at the bottom.
pub(crate) fn draw_shares(
    picture: &mut Picture,
    window: &Window,
    columns: &[Vec<f64>],
    paints: &[Paint],
    (top, bottom): (f64, f64),
) {
    let (left, right) = window.across;
    let width = (right - left) / columns.len().max(1) as f64;
    let mut index = 0;
    while index < columns.len() {
        // Columns that look the same become one box.
        let alike = columns[index..].iter().take_while(|column| **column == columns[index]).count();
        let (from, to) = (left + width * index as f64, left + width * (index + alike) as f64);
        let mut level = bottom;
        for (share, paint) in columns[index].iter().zip(paints) {
            let next = (level - share * (bottom - top)).max(top);
            if level - next > 0.05 {
                picture.fill([from, next, to, level], paint.blended());
            }
            level = next;
        }
        index += alike;
    }
}

/// Diagonal lines through a box, at the same places in every box, so that neighbours join.
fn hatch(picture: &mut Picture, [left, top, right, bottom]: [f64; 4], colour: Colour) {
    let first = ((left + top) / HATCH).ceil() as i64;
    let last = ((right + bottom) / HATCH).floor() as i64;
    for line in first..=last {
        // The points of a line have the same sum of their places across and down.
        let sum = line as f64 * HATCH;
        let (upper_x, lower_x) = ((sum - top).min(right), (sum - bottom).max(left));
        if upper_x - lower_x > 0.2 {
            picture.path(vec![(lower_x, sum - lower_x), (upper_x, sum - upper_x)], 1.0, colour);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::INK;
    use proptest::prelude::*;

    const PLAIN: Paint = Paint::plain(INK);

    fn window() -> Window {
        Window { time: (100, 1_100), across: (10.0, 110.0) }
    }

    #[test]
    fn few_spans_are_bars_and_many_are_shares() {
        let few = [Segment { from: 0, to: 200, paint: 0 }, Segment { from: 600, to: 5_000, paint: 0 }];
        let mut picture = Picture::new(200, 50);
        assert!(!draw_lane(&mut picture, &window(), &few, &[PLAIN], (10.0, 20.0)));
        let boxes: Vec<_> = picture.shapes().iter().collect();
        assert_eq!(boxes.len(), 2, "{boxes:?}");
        let many: Vec<_> =
            (0..100).map(|i| Segment { from: 100 + 10 * i, to: 105 + 10 * i, paint: 0 }).collect();
        assert!(draw_lane(&mut picture, &window(), &many, &[PLAIN], (10.0, 20.0)));
    }

    #[test]
    fn a_hatch_stays_in_its_box() {
        let mut picture = Picture::new(200, 50);
        hatch(&mut picture, [20.0, 10.0, 27.0, 30.0], INK);
        assert!(picture.shapes().len() > 3);
        crate::layout_tests::check_layout(&picture, "hatch");
        for shape in picture.shapes() {
            let crate::picture::Shape::Path { points, .. } = shape else { continue };
            let inside = |&(x, y): &(f64, f64)| (20.0..=27.0).contains(&x) && (10.0..=30.0).contains(&y);
            assert!(points.iter().all(inside), "{points:?}");
        }
    }

    proptest! {
        #[test]
        fn shares_add_up_to_the_time_inside(cuts in proptest::collection::vec(0_u64..2_000, 0..60)) {
            let mut cuts = cuts;
            cuts.sort_unstable();
            let segments: Vec<Segment> = cuts
                .chunks_exact(2)
                .enumerate()
                .map(|(index, ends)| Segment { from: ends[0], to: ends[1], paint: index % 3 })
                .filter(|segment| window().meets(segment.from, segment.to))
                .collect();
            let found = shares(&window(), segments.iter(), 3);
            let column = 1_000.0 / found.len() as f64;
            let total: f64 = found.iter().flatten().sum::<f64>() * column;
            let want: u64 = segments.iter().map(|s| s.to.min(1_100) - s.from.max(100)).sum();
            prop_assert!((total - want as f64).abs() < 1e-6 * (want as f64 + 1.0), "{total} {want}");
            prop_assert!(found.iter().all(|column| column.iter().sum::<f64>() < 1.0 + 1e-9));
        }
    }
}
