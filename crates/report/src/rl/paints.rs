//! What the bars of the picture of rounds look like.

use pipestep_rl::{SpanKind, StintEnd};

use crate::lane::Paint;
use crate::legend::{Entry, Swatch, entry};
use crate::theme::{BLUE, Colour, GREEN, ORANGE, PALE_BLUE, PURPLE, SOOT, VERMILION, YELLOW};

/// What is done, as the picture tells it apart; in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Response,
    Open,
    Dropped,
    Aborted,
    Interrupted,
    Lost,
    Scoring,
    MiniStep,
    Finish,
    Sync,
    Switch,
    OtherJob,
    Down,
}

impl Work {
    pub(super) const ALL: [Self; 13] = [
        Self::Response,
        Self::Open,
        Self::Dropped,
        Self::Aborted,
        Self::Interrupted,
        Self::Lost,
        Self::Scoring,
        Self::MiniStep,
        Self::Finish,
        Self::Sync,
        Self::Switch,
        Self::OtherJob,
        Self::Down,
    ];

    pub(super) const fn of(kind: SpanKind) -> Self {
        match kind {
            SpanKind::Response { end: StintEnd::Finished, .. } => Self::Response,
            SpanKind::Response { end: StintEnd::Open, .. } => Self::Open,
            SpanKind::Response { end: StintEnd::Dropped, .. } => Self::Dropped,
            SpanKind::Response { end: StintEnd::Aborted, .. } => Self::Aborted,
            SpanKind::Response { end: StintEnd::Interrupted, .. } => Self::Interrupted,
            SpanKind::Response { end: StintEnd::Lost, .. } => Self::Lost,
            SpanKind::Scoring { .. } => Self::Scoring,
            SpanKind::MiniStep { .. } => Self::MiniStep,
            SpanKind::Finish { .. } => Self::Finish,
            SpanKind::WeightSync { .. } => Self::Sync,
            SpanKind::Switch => Self::Switch,
            SpanKind::OtherJob { .. } => Self::OtherJob,
            SpanKind::Down => Self::Down,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Response => "response",
            Self::Open => "response, runs on at the end",
            Self::Dropped => "response, dropped later",
            Self::Aborted => "response, aborted",
            Self::Interrupted => "response, interrupted",
            Self::Lost => "response, lost",
            Self::Scoring => "scoring",
            Self::MiniStep => "update",
            Self::Finish => "end of the update",
            Self::Sync => "weights on their way",
            Self::Switch => "devices change phase",
            Self::OtherJob => "another job's",
            Self::Down => "down",
        }
    }

    pub(super) const fn paint(self) -> Paint {
        const DARK: Colour = Colour(0x55, 0x55, 0x55);
        match self {
            Self::Response => Paint::plain(BLUE),
            Self::Open => Paint::plain(Colour(0x80, 0xB9, 0xD9)),
            Self::Dropped => Paint::plain(Colour(0xC4, 0xA4, 0x6C)),
            Self::Aborted => Paint { fill: Colour(0xDD, 0xDD, 0xDD), hatch: Some(DARK) },
            Self::Interrupted => {
                Paint { fill: Colour(0xF6, 0xE0, 0xD0), hatch: Some(Colour(0xB0, 0x4A, 0x00)) }
            }
            Self::Lost => Paint { fill: PALE_BLUE, hatch: Some(BLUE) },
            Self::Scoring => Paint::plain(PURPLE),
            Self::MiniStep => Paint::plain(ORANGE),
            Self::Finish => Paint::plain(VERMILION),
            Self::Sync => Paint::plain(GREEN),
            Self::Switch => Paint::plain(YELLOW),
            Self::OtherJob => Paint { fill: Colour(0xEE, 0xEE, 0xE4), hatch: Some(Colour(0xA8, 0xA8, 0x90)) },
            Self::Down => Paint::plain(SOOT),
        }
    }

    /// Its line of the legend.
    pub(super) fn entry(self) -> Entry {
        let Paint { fill, hatch } = self.paint();
        entry(hatch.map_or(Swatch::Block, Swatch::Hatched), fill, self.name())
    }
}
