//! Lines as pixels: how much of each pixel a line covers, so that it is as thick at every slope and its edges are
//! smooth. (The bitmap backend of plotters rounds the corners of a thick line, which makes some of them thin.)

/// Where a path covers pixels, one path after the other.
pub(crate) struct Coverage {
    width: usize,
    height: usize,
    /// The covered share of each pixel, row by row; all zero between paths.
    shares: Vec<f32>,
    /// The pixels that are not zero.
    touched: Vec<usize>,
}

type Point = (f64, f64);

impl Coverage {
    /// Of a picture of so many pixels across and down.
    pub(crate) fn new(width: u32, height: u32) -> Self {
        let (width, height) = (width as usize, height as usize);
        Self { width, height, shares: vec![0.0; width * height], touched: Vec::new() }
    }

    /// The pixels that a path of this many pixels' width covers, each once, with the covered share of it. Ends are cut
    /// straight, corners are round.
    pub(crate) fn of_path(&mut self, points: &[Point], thickness: u32) -> Vec<((i32, i32), f64)> {
        let half = f64::from(thickness) / 2.0;
        let mut points = points.to_vec();
        points.dedup();
        // The first corner of a closed path is one like the others.
        let beyond = match points[..] {
            [first, second, _, .., last] if first == last => Some(second),
            _ => None,
        };
        points.extend(beyond);
        let last = points.len().saturating_sub(2);
        for (index, ends) in points.windows(2).enumerate() {
            let [from, to] = sharp([ends[0], ends[1]], thickness);
            self.add_segment([from, to], half, [index == 0, index == last]);
        }
        for corner in points.windows(3).filter(|corner| !is_straight(corner)) {
            self.add_disc(sharp_corner(corner, thickness), half);
        }
        let width = self.width;
        let covered = self.touched.drain(..).map(|pixel| {
            let share = std::mem::take(&mut self.shares[pixel]);
            (((pixel % width) as i32, (pixel / width) as i32), f64::from(share))
        });
        covered.collect()
    }

    /// `is_end`: whether the path begins and ends here. Where it goes on, both segments reach half a pixel further, so
    /// that the paper does not shine through between them.
    fn add_segment(&mut self, [(x0, y0), (x1, y1)]: [Point; 2], half: f64, is_end: [bool; 2]) {
        let [before, behind] = is_end.map(|is_end| if is_end { 0.0 } else { 0.5 });
        let (dx, dy) = (x1 - x0, y1 - y0);
        let length = (dx * dx + dy * dy).sqrt();
        let far = half + 1.0;
        for row in pixels(y0.min(y1) - far, y0.max(y1) + far, self.height) {
            let y = row as f64 + 0.5 - y0;
            // Of a slanting line only the pixels beside it.
            let (mut left, mut right) = (x0.min(x1) - far, x0.max(x1) + far);
            if !is_same(y0, y1) {
                let (middle, beside) = (x0 + y * dx / dy, far * length / dy.abs());
                (left, right) = (left.max(middle - beside), right.min(middle + beside));
            }
            for column in pixels(left, right, self.width) {
                let x = column as f64 + 0.5 - x0;
                let across = ((x * dy - y * dx) / length).abs();
                let along = (x * dx + y * dy) / length;
                let share = |inside: f64| (inside + 0.5).clamp(0.0, 1.0);
                self.add(
                    row,
                    column,
                    share(half - across) * share(along + before) * share(length - along + behind),
                );
            }
        }
    }

    fn add_disc(&mut self, (x0, y0): Point, half: f64) {
        for row in pixels(y0 - half - 1.0, y0 + half + 1.0, self.height) {
            for column in pixels(x0 - half - 1.0, x0 + half + 1.0, self.width) {
                let (x, y) = (column as f64 + 0.5 - x0, row as f64 + 0.5 - y0);
                self.add(row, column, (half - (x * x + y * y).sqrt() + 0.5).clamp(0.0, 1.0));
            }
        }
    }

    /// Segments of one path overlap: the greater share counts, so that a path does not grow bolder where it has corners.
    fn add(&mut self, row: usize, column: usize, share: f64) {
        let pixel = row * self.width + column;
        let known = &mut self.shares[pixel];
        if share > 0.0 {
            if *known == 0.0 {
                self.touched.push(pixel);
            }
            *known = known.max(share as f32);
        }
    }
}

/// A level or upright line moved by less than a pixel to where it fills whole pixels; others as they are.
fn sharp([from, to]: [Point; 2], thickness: u32) -> [Point; 2] {
    let fitted = |at: f64| if thickness.is_multiple_of(2) { at.round() } else { at.floor() + 0.5 };
    if is_same(from.1, to.1) {
        return [from, to].map(|(x, y)| (x, fitted(y)));
    }
    if is_same(from.0, to.0) {
        return [from, to].map(|(x, y)| (fitted(x), y));
    }
    [from, to]
}

/// The middle one of three points, moved as the segments on both sides of it are.
fn sharp_corner(corner: &[Point], thickness: u32) -> Point {
    let ([_, before], [after, _]) =
        (sharp([corner[0], corner[1]], thickness), sharp([corner[1], corner[2]], thickness));
    let moved = |own: f64, before: f64, after: f64| if is_same(before, own) { after } else { before };
    (moved(corner[1].0, before.0, after.0), moved(corner[1].1, before.1, after.1))
}

/// Whether a path goes on in the same direction at the middle one of three points, or nearly so.
fn is_straight(corner: &[Point]) -> bool {
    let part = |from: Point, to: Point| (to.0 - from.0, to.1 - from.1);
    let ((x0, y0), (x1, y1)) = (part(corner[0], corner[1]), part(corner[1], corner[2]));
    let lengths = ((x0 * x0 + y0 * y0) * (x1 * x1 + y1 * y1)).sqrt();
    (x0 * y1 - y0 * x1).abs() < 1e-9 * lengths && x0 * x1 + y0 * y1 > 0.0
}

fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

/// The pixels between two places, of so many.
fn pixels(from: f64, to: f64, count: usize) -> std::ops::Range<usize> {
    let end = (to.ceil().max(0.0) as usize).min(count);
    (from.floor().max(0.0) as usize).min(end)..end
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn area(points: &[Point], thickness: u32) -> f64 {
        Coverage::new(200, 200).of_path(points, thickness).iter().map(|(_, share)| share).sum()
    }

    #[test]
    fn level_and_upright_lines_fill_whole_pixels() {
        for thickness in 1..5 {
            for path in [[(10.0, 20.3), (30.0, 20.3)], [(20.7, 10.0), (20.7, 30.0)]] {
                let covered = Coverage::new(50, 50).of_path(&path, thickness);
                assert_eq!(covered.len(), 20 * thickness as usize, "{path:?}");
                assert!(covered.iter().all(|(_, share)| is_same(*share, 1.0)), "{covered:?}");
            }
        }
    }

    #[test]
    fn a_path_leaves_nothing_behind_for_the_next() {
        let mut coverage = Coverage::new(50, 50);
        let first = coverage.of_path(&[(5.0, 5.0), (40.0, 31.0), (12.0, 44.0)], 4);
        assert_eq!(coverage.of_path(&[(5.0, 5.0), (40.0, 31.0), (12.0, 44.0)], 4), first);
        assert!(coverage.of_path(&[(5.0, 5.0)], 4).is_empty());
        assert!(coverage.of_path(&[(500.0, 5.0), (-400.0, 900.0)], 4).is_empty(), "outside");
    }

    #[test]
    fn a_corner_has_no_gap() {
        let path = [(10.0, 10.0), (30.0, 10.0), (30.0, 30.0)];
        let covered = Coverage::new(50, 50).of_path(&path, 6);
        let outer = covered.iter().find(|(pixel, _)| *pixel == (31, 8));
        assert!(outer.is_some_and(|(_, share)| *share > 0.9), "{outer:?}");
        // Two arms that share a square, and a quarter of a disc outside both.
        let want = 2.0 * 120.0 - 9.0 + 9.0 * std::f64::consts::PI / 4.0;
        assert!((area(&path, 6) - want).abs() < 0.2, "{} of {want}", area(&path, 6));
    }

    #[test]
    fn a_straight_path_has_no_seams() {
        let path: Vec<Point> = (0..7).map(|i| (10.3 + 5.7 * f64::from(i), 20.0)).collect();
        let covered = Coverage::new(80, 50).of_path(&path, 4);
        let inside = covered.iter().filter(|((x, _), _)| (11..44).contains(x));
        assert_eq!(inside.clone().count(), 33 * 4);
        assert!(inside.clone().all(|(_, share)| is_same(*share, 1.0)), "{covered:?}");
    }

    proptest! {
        #[test]
        fn a_line_is_as_thick_at_every_slope(angle in 0.0..6.3_f64, shift in 0.0..1.0_f64, thickness in 2_u32..7) {
            let (sin, cos) = angle.sin_cos();
            let at = |far: f64| (100.0 + shift + far * cos, 100.0 + far * sin);
            let want = 100.0 * f64::from(thickness);
            let found = area(&[at(-50.0), at(50.0)], thickness);
            prop_assert!((found - want).abs() < 0.05 * want, "{found} of {want}");
        }
    }
}
