//! Colours and sizes, in one place: what a kind of work looks like in every picture and in the terminal.
//!
//! The colours are those of Okabe and Ito ("Color Universal Design", 2008), which people with any kind of
//! colour vision can tell apart; they also differ in lightness, so that a grey print still reads.

use crate::EventKind;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Colour(pub(crate) u8, pub(crate) u8, pub(crate) u8);

/// Okabe and Ito's colours, by the names that they gave them, but for black.
pub(crate) const BLUE: Colour = Colour(0x00, 0x72, 0xB2);
pub(crate) const VERMILION: Colour = Colour(0xD5, 0x5E, 0x00);
pub(crate) const GREEN: Colour = Colour(0x00, 0x9E, 0x73);
pub(crate) const PURPLE: Colour = Colour(0xCC, 0x79, 0xA7);
pub(crate) const ORANGE: Colour = Colour(0xE6, 0x9F, 0x00);
pub(crate) const SKY: Colour = Colour(0x56, 0xB4, 0xE9);
pub(crate) const YELLOW: Colour = Colour(0xF0, 0xE4, 0x42);
/// Further ones, for pictures that tell more apart.
pub(crate) const VIOLET: Colour = Colour(0x6A, 0x51, 0xA3);
pub(crate) const BROWN: Colour = Colour(0x8A, 0x3D, 0x00);
/// Under the hatch of work that was lost.
pub(crate) const PALE_BLUE: Colour = Colour(0xBF, 0xDC, 0xEC);
/// What is broken.
pub(crate) const SOOT: Colour = Colour(0x44, 0x44, 0x44);

/// Text and axes.
pub(crate) const INK: Colour = Colour(0x22, 0x22, 0x22);
/// Text of less weight.
pub(crate) const FAINT_INK: Colour = Colour(0x66, 0x66, 0x66);
/// Grid lines.
pub(crate) const GRID: Colour = Colour(0xE4, 0xE4, 0xE4);
/// Idle, and the paper.
pub(crate) const PAPER: Colour = Colour(0xFF, 0xFF, 0xFF);
/// What must not be missed: a budget, a makespan.
pub(crate) const ALERT: Colour = Colour(0xC0, 0x20, 0x20);
/// Setup, before any work.
pub(crate) const SETUP: Colour = Colour(0xCC, 0xCC, 0xCC);

/// Size of a picture's title, in points.
pub(crate) const TITLE: f64 = 17.0;
/// Size of labels and legends.
pub(crate) const LABEL: f64 = 13.0;
/// Size of tick labels and notes.
pub(crate) const SMALL: f64 = 11.5;

/// Points that a picture leaves free at its edges.
pub(crate) const MARGIN: f64 = 18.0;
/// The usual width of a picture, in points.
pub(crate) const WIDTH: u32 = 1_100;

/// The colours in the order in which lines take them.
const LINES: [Colour; 7] = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, Colour(0x33, 0x33, 0x33)];

/// Anchors of a scale from dark blue over green to yellow (after viridis, which is even in lightness).
const SCALE: [Colour; 5] = [
    Colour(0x44, 0x01, 0x54),
    Colour(0x3B, 0x52, 0x8B),
    Colour(0x21, 0x91, 0x8C),
    Colour(0x5E, 0xC9, 0x62),
    Colour(0xFD, 0xE7, 0x25),
];

/// The colour of a kind of work.
pub(crate) const fn of_kind(kind: EventKind) -> Colour {
    match kind {
        EventKind::Forward => BLUE,
        EventKind::Backward => ORANGE,
        EventKind::InputGradient => PURPLE,
        EventKind::WeightGradient => YELLOW,
        EventKind::Update => GREEN,
        EventKind::Activation => Colour(0x00, 0x3F, 0x63),
        EventKind::Gradient => BROWN,
    }
}

/// What a legend calls a kind of work.
pub(crate) const fn name_of(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Forward => "forward",
        EventKind::Backward => "backward",
        EventKind::InputGradient => "input gradient",
        EventKind::WeightGradient => "weight gradient",
        EventKind::Update => "update",
        EventKind::Activation => "sends activation",
        EventKind::Gradient => "sends gradient",
    }
}

/// The colour of a kind on one of a rank's chunks: the first is full, later ones are lighter.
pub(crate) fn of_chunk(kind: EventKind, chunk: usize, chunks: usize) -> Colour {
    if chunks < 2 {
        return of_kind(kind);
    }
    mixed(of_kind(kind), PAPER, 0.6 * chunk as f64 / (chunks - 1) as f64)
}

/// The colour of line number `index` of `count`: distinct while there are few, a scale beyond that.
pub(crate) fn of_line(index: usize, count: usize) -> Colour {
    if count <= LINES.len() {
        return LINES[index % LINES.len()];
    }
    // The yellow end is left out: it is hard to see on white.
    on_scale(0.9 * index as f64 / (count - 1) as f64)
}

/// The grey of reference line number `index` of `count`, all of them dark enough to be seen over a line.
pub(crate) fn of_reference(index: usize, count: usize) -> Colour {
    mixed(INK, PAPER, 0.35 * index as f64 / count.saturating_sub(1).max(1) as f64)
}

/// A colour for a value between 0 and 1.
pub(crate) fn on_scale(value: f64) -> Colour {
    let place = value.clamp(0.0, 1.0) * (SCALE.len() - 1) as f64;
    let below = (place as usize).min(SCALE.len() - 2);
    mixed(SCALE[below], SCALE[below + 1], place - below as f64)
}

/// `share` of the second colour, the rest of the first.
pub(crate) fn mixed(first: Colour, second: Colour, share: f64) -> Colour {
    let part = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share).round() as u8;
    Colour(part(first.0, second.0), part(first.1, second.1), part(first.2, second.2))
}

/// Black or white, whichever reads better on a colour.
pub(crate) fn text_on(Colour(red, green, blue): Colour) -> Colour {
    let lightness = 0.299 * f64::from(red) + 0.587 * f64::from(green) + 0.114 * f64::from(blue);
    // Where the contrast to both is the same, by the luminance of WCAG 2.
    if lightness > 110.0 { INK } else { PAPER }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_and_lines_can_be_told_apart() {
        for chunks in 1..=10 {
            let shades: Vec<_> = (0..chunks).map(|c| of_chunk(EventKind::Forward, c, chunks)).collect();
            assert!(shades.windows(2).all(|pair| pair[0] != pair[1]), "{shades:?}");
        }
        for count in [1, 4, 7, 8, 64, 128] {
            let lines: Vec<_> = (0..count).map(|line| of_line(line, count)).collect();
            assert!(lines.windows(2).all(|pair| pair[0] != pair[1]), "{count}");
        }
    }

    #[test]
    fn text_on_a_block_is_readable() {
        assert_eq!(text_on(of_kind(EventKind::Forward)), PAPER);
        for kind in [EventKind::Backward, EventKind::InputGradient, EventKind::WeightGradient] {
            assert_eq!(text_on(of_kind(kind)), INK, "{kind:?}");
        }
        // The middle of the scale, where white was hard to read.
        assert_eq!([0.2, 0.5, 0.6].map(|value| text_on(on_scale(value))), [PAPER, INK, INK]);
    }
}
