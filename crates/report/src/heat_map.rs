//! One value over two swept keys: a grid of coloured cells with a scale beside it, the best cell marked.

use crate::axes::{Axis, Measure, Scale};
use crate::chart::{SIZE, draw_title};
use crate::font::{shortened, text_width};
use crate::picture::{Across, Picture};
use crate::theme::{ALERT, Colour, FAINT_INK, GRID, INK, LABEL, MARGIN, SMALL, on_scale, text_on};

/// Points right of the grid for the scale.
const BESIDE: f64 = 120.0;
/// A grid with more cells than this along a side is drawn one row or column in k.
const MOST_CELLS: usize = 400;

/// Which end of the scale is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    /// Makespans, memory.
    Lowest,
    /// Utilisation, tokens per second.
    Highest,
}

/// A value for each pair of two keys' values.
#[derive(Clone, Debug, PartialEq)]
pub struct HeatMap {
    /// The title.
    pub title: String,
    /// The key across, and its values.
    pub x: (String, Vec<String>),
    /// The key upwards, and its values, lowest first.
    pub y: (String, Vec<String>),
    /// What the value is, in words.
    pub what: String,
    /// What its numbers are.
    pub measure: Measure,
    /// Row after row, the lowest first; nothing where a point is not legal.
    pub values: Vec<Option<f64>>,
    /// Which end is good; its cell is marked.
    pub best: Best,
}

/// Draws the grid. Cells say their value where it fits; empty ones are crossed out. Values that are missing at
/// the end count as empty.
pub fn heat_map(spec: &HeatMap) -> Picture {
    let mut picture = Picture::new(SIZE.0, SIZE.1 + 60);
    let (width, height) = (f64::from(SIZE.0), f64::from(SIZE.1 + 60));
    draw_title(&mut picture, &spec.title);
    let names = spec.y.1.iter().map(|name| text_width(name, SMALL)).fold(10.0, f64::max).min(120.0);
    let corners = [MARGIN + names + 34.0, MARGIN + 40.0, width - BESIDE, height - MARGIN - 46.0];
    let finite = || spec.values.iter().flatten().copied().filter(|value| value.is_finite());
    let (low, high) = finite().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    let ends = if low <= high { (low, high) } else { (0.0, 1.0) };
    let axis = Axis::new(&spec.what, spec.measure, Scale::Linear, ends);
    let grid = Grid { spec, corners, axis: &axis };
    grid.cells(&mut picture);
    grid.mark_best(&mut picture, if spec.best == Best::Lowest { low } else { high });
    grid.names(&mut picture);
    draw_scale(
        &mut picture,
        &axis,
        [corners[2] + 24.0, corners[1], corners[2] + 40.0, corners[3]],
        spec.best,
    );
    picture
}

struct Grid<'a> {
    spec: &'a HeatMap,
    corners: [f64; 4],
    axis: &'a Axis,
}

impl Grid<'_> {
    fn size(&self) -> (usize, usize) {
        (self.spec.x.1.len(), self.spec.y.1.len())
    }

    fn value(&self, column: usize, row: usize) -> Option<f64> {
        let value = self.spec.values.get(row * self.size().0 + column).copied().flatten();
        value.filter(|value| value.is_finite())
    }

    /// The area of a cell: left, top, right, bottom. The first row is at the bottom.
    fn area(&self, column: usize, row: usize) -> [f64; 4] {
        let [left, top, right, bottom] = self.corners;
        let (columns, rows) = self.size();
        let across = |place: usize| left + (right - left) * place as f64 / columns.max(1) as f64;
        let up = |place: usize| bottom - (bottom - top) * place as f64 / rows.max(1) as f64;
        [across(column), up(row + 1), across(column + 1), up(row)]
    }

    /// The colour of a value: yellow is always the good end.
    fn colour(&self, value: f64) -> Colour {
        on_scale(goodness(self.axis.place(value), self.spec.best))
    }

    fn cells(&self, picture: &mut Picture) {
        let (columns, rows) = self.size();
        let (across, up) = (columns.div_ceil(MOST_CELLS).max(1), rows.div_ceil(MOST_CELLS).max(1));
        for row in (0..rows).step_by(up) {
            for column in (0..columns).step_by(across) {
                let [left, _, _, bottom] = self.area(column, row);
                let [_, top, right, _] =
                    self.area((column + across).min(columns) - 1, (row + up).min(rows) - 1);
                let area = [left, top, right, bottom];
                match self.value(column, row) {
                    Some(value) => self.cell(picture, area, value),
                    None => cross_out(picture, area),
                }
            }
        }
    }

    fn cell(&self, picture: &mut Picture, [left, top, right, bottom]: [f64; 4], value: f64) {
        let colour = self.colour(value);
        let hair = if right - left > 12.0 { 0.5 } else { 0.0 };
        picture.fill([left, top, right - hair, bottom - hair], colour);
        let label = self.axis.label(value);
        if text_width(&label, SMALL) + 6.0 <= right - left && SMALL + 3.0 <= bottom - top {
            let middle = (f64::midpoint(left, right), f64::midpoint(top, bottom));
            picture.text(label, middle, SMALL, Across::Middle, text_on(colour));
        }
    }

    /// A frame round the first cell that holds the best value.
    fn mark_best(&self, picture: &mut Picture, best: f64) {
        let (columns, rows) = self.size();
        let mut cells = (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        let found = cells.find(|&(column, row)| {
            self.value(column, row).is_some_and(|value| value.total_cmp(&best).is_eq())
        });
        if let Some((column, row)) = found {
            picture.frame(self.area(column, row), 2.0, ALERT);
        }
    }

    fn names(&self, picture: &mut Picture) {
        let [left, top, right, bottom] = self.corners;
        let ((x_key, x_names), (y_key, y_names)) = (&self.spec.x, &self.spec.y);
        let widest = x_names.iter().map(|name| text_width(name, SMALL)).fold(1.0, f64::max).min(160.0);
        for column in (0..x_names.len()).step_by(every(x_names.len(), (right - left) / (widest + 10.0))) {
            let [from, _, to, _] = self.area(column, 0);
            let text = shortened(&x_names[column], SMALL, widest + 1.0);
            let middle = f64::midpoint(from, to);
            picture.text(text, (middle, bottom + 13.0), SMALL, Across::Middle, INK);
        }
        for row in (0..y_names.len()).step_by(every(y_names.len(), (bottom - top) / (SMALL + 2.0))) {
            let [_, from, _, to] = self.area(0, row);
            let text = shortened(&y_names[row], SMALL, 121.0);
            picture.text(text, (left - 7.0, f64::midpoint(from, to)), SMALL, Across::Right, INK);
        }
        let key = shortened(x_key, LABEL, right - left);
        picture.text(key, (f64::midpoint(left, right), bottom + 34.0), LABEL, Across::Middle, INK);
        let key = shortened(y_key, LABEL, bottom - top);
        picture.text_upwards(key, (MARGIN + 8.0, f64::midpoint(top, bottom)), LABEL, INK);
    }
}

/// Every how many names there is room for one.
fn every(names: usize, room: f64) -> usize {
    (names as f64 / room.max(1.0)).ceil().max(1.0) as usize
}

fn cross_out(picture: &mut Picture, [left, top, right, bottom]: [f64; 4]) {
    picture.fill([left, top, right, bottom], GRID);
    if right - left > 8.0 && bottom - top > 8.0 {
        picture.cross((f64::midpoint(left, right), f64::midpoint(top, bottom)), 3.0, 1.0, FAINT_INK);
    }
}

fn goodness(place: f64, best: Best) -> f64 {
    if best == Best::Lowest { 1.0 - place } else { place }
}

fn draw_scale(picture: &mut Picture, axis: &Axis, [left, top, right, bottom]: [f64; 4], best: Best) {
    const BANDS: usize = 80;
    let edge = |band: usize| bottom - (bottom - top) * band as f64 / BANDS as f64;
    for band in 0..BANDS {
        let colour = on_scale(goodness((band as f64 + 0.5) / BANDS as f64, best));
        picture.fill([left, edge(band + 1), right, edge(band)], colour);
    }
    for (value, label) in axis.ticks(8) {
        let y = bottom - axis.place(value) * (bottom - top);
        picture.text(label, (right + 5.0, y), SMALL, Across::Left, INK);
    }
    let title = shortened(&axis.title, LABEL, BESIDE + 100.0);
    picture.text(title, (f64::from(picture.size().0) - MARGIN, top - 16.0), LABEL, Across::Right, INK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout_tests::{check_layout, words};

    fn grid(columns: usize, rows: usize) -> HeatMap {
        let names = |count: usize| (1..=count).map(|index| index.to_string()).collect();
        let value = |index: usize| {
            let (m, p) = ((index % columns + 1) as f64, (index / columns + 1) as f64);
            (m >= p).then_some(m / (m + p - 1.0))
        };
        HeatMap {
            title: "Utilisation".into(),
            x: ("micro-batches".into(), names(columns)),
            y: ("ranks".into(), names(rows)),
            what: "utilisation".into(),
            measure: Measure::Share,
            values: (0..columns * rows).map(value).collect(),
            best: Best::Highest,
        }
    }

    #[test]
    fn every_size_is_laid_out_without_overlaps() {
        for (columns, rows) in [(0, 0), (1, 1), (3, 2), (16, 8), (100, 40), (1_000, 700)] {
            let picture = heat_map(&grid(columns, rows));
            check_layout(&picture, &format!("{columns} x {rows}"));
            assert!(picture.shapes().len() < 170_000);
        }
    }

    #[test]
    fn cells_say_their_value_and_missing_ones_are_empty() {
        let mut map = grid(4, 2);
        let shown = |map: &HeatMap| words(&heat_map(map)).iter().filter(|word| **word == "80").count();
        assert_eq!(shown(&map), 1 + 1, "the cell, and a tick of the scale");
        map.values = vec![Some(f64::NAN), None];
        check_layout(&heat_map(&map), "no values");
    }
}
