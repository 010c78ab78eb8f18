//! What a job was doing when, as the segments of a picture's row: the timeline with lost work told apart.

use pipestep_engine::Duration;
use pipestep_job::{Activity, JobOutcome};

use crate::lane::{Paint, Segment};
use crate::theme::{
    BLUE, BROWN, Colour, GREEN, ORANGE, PALE_BLUE, PAPER, PURPLE, SKY, SOOT, VERMILION, VIOLET, YELLOW, mixed,
};

/// What a job does, as its picture tells it apart; in the order of the legend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Training,
    /// Training with fewer replicas than all.
    Short,
    /// Training whose work a failure destroyed.
    Lost,
    Staging,
    Waiting,
    InputWait,
    Rebalancing,
    Regrouping,
    Detecting,
    Down,
    SpareWait,
    Recovering,
}

impl Doing {
    pub(super) const ALL: [Self; 12] = [
        Self::Training,
        Self::Short,
        Self::Lost,
        Self::Staging,
        Self::Waiting,
        Self::InputWait,
        Self::Rebalancing,
        Self::Regrouping,
        Self::Detecting,
        Self::Down,
        Self::SpareWait,
        Self::Recovering,
    ];

    /// What the legend says.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Short => "training with fewer replicas",
            Self::Lost => "training, work lost",
            Self::Staging => "paused for a save",
            Self::Waiting => "waiting for a buffer",
            Self::InputWait => "waiting for input",
            Self::Rebalancing => "spreading work of slow ranks",
            Self::Regrouping => "taking replicas back",
            Self::Detecting => "failed, not noticed",
            Self::Down => "down",
            Self::SpareWait => "waiting for a machine",
            Self::Recovering => "recovering",
        }
    }

    pub(super) const fn paint(self) -> Paint {
        match self {
            Self::Training => Paint::plain(BLUE),
            Self::Short => Paint::plain(Colour(0x00, 0x3F, 0x73)),
            Self::Lost => Paint { fill: PALE_BLUE, hatch: Some(BLUE) },
            Self::Staging => Paint::plain(ORANGE),
            Self::Waiting => Paint::plain(YELLOW),
            Self::InputWait => Paint::plain(VERMILION),
            Self::Rebalancing => Paint::plain(BROWN),
            Self::Regrouping => Paint::plain(VIOLET),
            Self::Detecting => Paint::plain(PURPLE),
            Self::Down => Paint::plain(SOOT),
            Self::SpareWait => Paint::plain(Colour(0xAA, 0xAA, 0xAA)),
            Self::Recovering => Paint::plain(GREEN),
        }
    }

    const fn of(activity: Activity) -> Self {
        match activity {
            Activity::Training => Self::Training,
            Activity::Waiting => Self::Waiting,
            Activity::Staging => Self::Staging,
            Activity::Detecting => Self::Detecting,
            Activity::Down => Self::Down,
            Activity::SpareWait => Self::SpareWait,
            Activity::Recovering => Self::Recovering,
            Activity::Rebalancing => Self::Rebalancing,
            Activity::Regrouping => Self::Regrouping,
            Activity::InputWait => Self::InputWait,
        }
    }
}

/// The colour of a write in the background.
pub(super) fn upload_paint() -> Paint {
    Paint::plain(SKY)
}

/// The colour of a snapshot that waits in its buffer.
pub(super) fn buffered_colour() -> Colour {
    mixed(SKY, PAPER, 0.35)
}

/// A stretch of the run, without gaps; `paint` is the place in [`Doing::ALL`]. Steps that repeat in the same way are
/// drawn together where a thousandth of the stretch holds many of them.
pub(super) fn doings(outcome: &JobOutcome, (from, to): (u64, u64)) -> Vec<Segment> {
    const PARTS: u64 = 20_000;
    let lost = lost_intervals(outcome);
    let short = short_intervals(outcome);
    let mut found = Vec::new();
    let mut next_lost = 0;
    let spans = outcome.timeline.coarse(Duration::from_nanos(to.saturating_sub(from) / PARTS));
    let inside =
        spans.filter(|span| span.interval.start.as_nanos() < to && span.interval.end.as_nanos() > from);
    for span in inside {
        let (from, to) = (span.interval.start.as_nanos(), span.interval.end.as_nanos());
        let doing = Doing::of(span.activity);
        if doing != Doing::Training {
            push(&mut found, from, to, doing);
            continue;
        }
        // Intervals of lost work come by time and do not overlap.
        while lost.get(next_lost).is_some_and(|&(_, end)| end <= from) {
            next_lost += 1;
        }
        let mut at = from;
        for &(start, end) in lost[next_lost..].iter().take_while(|&&(start, _)| start < to) {
            push_trained(&mut found, at, start.max(at), &short);
            push(&mut found, start.max(at), end.min(to), Doing::Lost);
            at = end.clamp(at, to);
        }
        push_trained(&mut found, at, to, &short);
    }
    found
}

/// Training that was not lost, told apart by whether all replicas took part.
fn push_trained(found: &mut Vec<Segment>, from: u64, to: u64, short: &[(u64, u64)]) {
    let mut at = from;
    let first = short.partition_point(|&(_, end)| end <= from);
    for &(start, end) in short[first..].iter().take_while(|&&(start, _)| start < to) {
        push(found, at, start.max(at), Doing::Training);
        push(found, start.max(at), end.min(to), Doing::Short);
        at = end.clamp(at, to);
    }
    push(found, at, to, Doing::Training);
}

/// When fewer replicas than all trained, by time.
fn short_intervals(outcome: &JobOutcome) -> Vec<(u64, u64)> {
    let curve = &outcome.replica_curve;
    let all = outcome.replicas.map_or(0, |totals| totals.all);
    let ends = curve.iter().skip(1).map(|level| level.at.as_nanos()).chain([outcome.elapsed.as_nanos()]);
    let short = curve.iter().zip(ends).filter(|(level, _)| level.count < all);
    short.map(|(level, end)| (level.at.as_nanos(), end)).collect()
}

fn push(found: &mut Vec<Segment>, from: u64, to: u64, doing: Doing) {
    if to > from {
        found.push(Segment { from, to, paint: doing as usize });
    }
}

/// From the capture (or resume) that the job fell back behind to the failure, by time.
fn lost_intervals(outcome: &JobOutcome) -> Vec<(u64, u64)> {
    let failures = outcome.failures.iter().filter(|failure| failure.redo_useful.as_nanos() > 0);
    let intervals = failures.map(|failure| {
        let end = failure.at.as_nanos();
        (end.saturating_sub(failure.redo_wall.as_nanos()), end)
    });
    intervals.collect()
}

/// Time in each of [`Doing::ALL`], in ns.
pub(super) fn totals(segments: &[Segment]) -> [u64; Doing::ALL.len()] {
    let mut totals = [0; Doing::ALL.len()];
    for segment in segments {
        totals[segment.paint] += segment.to - segment.from;
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::testing::JobSample;

    #[test]
    fn lost_work_is_told_apart_and_nothing_is_left_out() {
        let sample = JobSample::seed(7, &[50]);
        let segments = doings(&sample.outcome, (0, sample.outcome.elapsed.as_nanos()));
        let found = totals(&segments);
        let at = |doing: Doing| found[doing as usize];
        assert_eq!(found.iter().sum::<u64>(), sample.outcome.elapsed.as_nanos());
        // 30 s on the clock from the capture at 20 s on, of which 1 s was spent on copies.
        assert_eq!(at(Doing::Lost), 29_000_000_000);
        assert_eq!(at(Doing::Staging), sample.outcome.pause_total.as_nanos());
        assert!(segments.windows(2).all(|pair| pair[0].to == pair[1].from), "{segments:?}");
    }
}
