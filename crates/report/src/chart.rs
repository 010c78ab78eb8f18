//! The title of every picture; and the frame that line charts, scatters and histograms share: plot area, room for a
//! legend.

use crate::axes::{Axis, Frame, Measure, Scale};
use crate::font::shortened;
use crate::picture::{Across, Picture};
use crate::theme::{FAINT_INK, INK, LABEL, MARGIN, TITLE};

/// Points across and down of a chart.
pub(crate) const SIZE: (u32, u32) = (1_000, 560);

/// What an axis measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisSpec {
    /// In words, without the unit: `makespan`, `micro-batches`.
    pub what: String,
    /// What its numbers are.
    pub measure: Measure,
    /// How it divides its length.
    pub scale: Scale,
}

impl AxisSpec {
    /// A linear axis.
    pub fn linear(what: impl Into<String>, measure: Measure) -> Self {
        Self { what: what.into(), measure, scale: Scale::Linear }
    }

    /// A logarithmic axis.
    pub fn log(what: impl Into<String>, measure: Measure) -> Self {
        Self { what: what.into(), measure, scale: Scale::Log }
    }

    /// The axis over these values with some room beyond them, or from zero where they come near it.
    pub(crate) fn over(&self, values: impl Iterator<Item = f64>, room: f64) -> Axis {
        let usable =
            values.filter(|value| value.is_finite() && (self.scale == Scale::Linear || *value > 0.0));
        let (from, to) =
            usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(from, to), v| (from.min(v), to.max(v)));
        let ends = match self.scale {
            _ if from > to => (0.0, 1.0),
            Scale::Log => (from, to),
            Scale::Linear if from >= 0.0 && from < to / 2.0 => (0.0, to + to * room),
            Scale::Linear => ((from - (to - from) * room), to + (to - from) * room),
        };
        Axis::new(&self.what, self.measure, self.scale, ends)
    }
}

/// An empty chart: its title, and the frame in which the data goes. `beside` points stay free to the right.
pub(crate) fn chart(title: &str, x: Axis, y: Axis, beside: f64) -> (Picture, Frame) {
    let mut picture = Picture::new(SIZE.0, SIZE.1);
    let (width, height) = (f64::from(SIZE.0), f64::from(SIZE.1));
    draw_title(&mut picture, title);
    let corners = [MARGIN + 72.0, MARGIN + 62.0, width - MARGIN - beside, height - MARGIN - 44.0];
    let frame = Frame { corners, x, y };
    frame.draw(&mut picture);
    (picture, frame)
}

/// The title of any picture, in its first line.
pub(crate) fn draw_title(picture: &mut Picture, title: &str) {
    let room = f64::from(picture.size().0) - 2.0 * MARGIN;
    picture.text(shortened(title, TITLE, room), (MARGIN, MARGIN + 8.0), TITLE, Across::Left, INK);
}

/// One line below the title.
pub(crate) fn chart_note(picture: &mut Picture, note: &str) {
    let room = f64::from(picture.size().0) - 2.0 * MARGIN;
    picture.text(shortened(note, LABEL, room), (MARGIN, MARGIN + 32.0), LABEL, Across::Left, FAINT_INK);
}
