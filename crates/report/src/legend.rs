//! Legends: side by side above a chart, or below each other beside it.

use crate::font::{shortened, text_width};
use crate::lane::Paint;
use crate::picture::{Across, Picture};
use crate::theme::{Colour, FAINT_INK, INK, LABEL, SMALL};

/// Points between two entries side by side, and the length of a swatch.
const ENTRY_GAP: f64 = 18.0;
const SWATCH: f64 = 14.0;
/// More entries than this are not listed one by one beside a chart.
pub(crate) const LISTED: usize = 16;

/// How a legend shows one entry.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Swatch {
    Block,
    Line,
    Dashes,
    /// A block with diagonal lines of this colour over it.
    Hatched(Colour),
    Dot,
    Cross,
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

/// Entries below each other from (left, top) on. Where there are too many for the room down to `bottom`, their
/// colours stand as one bar with the first and the last entry named.
pub(crate) fn side_legend(picture: &mut Picture, (left, top): (f64, f64), bottom: f64, entries: &[Entry]) {
    const ROW: f64 = 18.0;
    let row = ((bottom - top) / entries.len().max(1) as f64).min(ROW);
    if entries.len() <= LISTED && row >= SMALL {
        for (place, entry) in entries.iter().enumerate() {
            let y = top + row * (place as f64 + 0.5);
            draw_swatch(picture, (left, y), entry);
            side_name(picture, entry, (left, y));
        }
        return;
    }
    for (entry, y) in [(entries.first(), top + 6.0), (entries.last(), bottom - 6.0)] {
        if let Some(entry) = entry {
            side_name(picture, entry, (left, y));
        }
    }
    let bands = entries.len().min(60);
    let edge = |band: usize| top + (bottom - top) * band as f64 / bands as f64;
    for band in 0..bands {
        let colour = entries[band * (entries.len() - 1) / (bands - 1).max(1)].colour;
        picture.fill([left, edge(band), left + SWATCH, edge(band + 1)], colour);
    }
}

fn side_name(picture: &mut Picture, entry: &Entry, (left, y): (f64, f64)) {
    let room = f64::from(picture.size().0) - left - SWATCH - 8.0;
    let text = shortened(&entry.name, SMALL, room);
    picture.text(text, (left + SWATCH + 6.0, y), SMALL, Across::Left, INK);
}

/// A swatch whose left end is in the middle of the entry's line.
pub(crate) fn draw_swatch(picture: &mut Picture, (x, y): (f64, f64), entry: &Entry) {
    let ends = [(x, y), (x + SWATCH, y)];
    match entry.swatch {
        Swatch::Block => picture.fill([x, y - 6.0, x + SWATCH, y + 6.0], entry.colour),
        Swatch::Line => picture.path(ends.to_vec(), 2.5, entry.colour),
        Swatch::Dashes => picture.dashed(&ends, 2.0, entry.colour),
        Swatch::Hatched(lines) => {
            let paint = Paint { fill: entry.colour, hatch: Some(lines) };
            paint.fill(picture, [x, y - 6.0, x + SWATCH, y + 6.0]);
        }
        Swatch::Dot => picture.dot((x + SWATCH / 2.0, y), 4.0, entry.colour),
        Swatch::Cross => picture.cross((x + SWATCH / 2.0, y), 4.0, 1.5, entry.colour),
    }
}

/// A note in small print.
pub(crate) fn note(picture: &mut Picture, text: &str, at: (f64, f64)) {
    picture.text(text, at, SMALL, Across::Left, FAINT_INK);
}
