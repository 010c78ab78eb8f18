//! What a job was doing when: span after span, and stretches of spans that repeat written down once.

use std::ops::Range;

use pipestep_engine::{Duration, Interval, Time};

use crate::outcome::{Activity, Span};

/// What a job was doing from its start to its end, without gaps. Steps that wait for input in the same way again and
/// again are kept as one turn and how often it was repeated, so that a job of millions of steps stays small.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    spans: Vec<Span>,
    repeats: Vec<Repeat>,
}

/// Spans that come again so many times, each time right after the last; by rising ends, none inside another.
#[derive(Clone, Debug)]
struct Repeat {
    spans: Range<usize>,
    times: u64,
}

impl Timeline {
    /// Every span, those that repeat included.
    pub fn iter(&self) -> impl Iterator<Item = Span> + '_ {
        self.coarse(Duration::ZERO)
    }

    /// Every span; but where a turn of what repeats is shorter than `least`, so many turns as one with the same
    /// shares of its time. For pictures, in which no more can be told apart.
    pub fn coarse(&self, least: Duration) -> impl Iterator<Item = Span> + '_ {
        let pieces = (0..=self.repeats.len()).map(move |place| {
            let from = place.checked_sub(1).map_or(0, |before| self.repeats[before].spans.end);
            let repeat = self.repeats.get(place);
            (from..repeat.map_or(self.spans.len(), |repeat| repeat.spans.end), repeat)
        });
        pieces.flat_map(move |(plain, repeat)| {
            let turns = repeat.into_iter().flat_map(move |repeat| self.turns(repeat, least));
            self.spans[plain].iter().copied().chain(turns)
        })
    }

    /// The turns of a repeat after its first, several as one where they are shorter than `least`.
    fn turns(&self, repeat: &Repeat, least: Duration) -> impl Iterator<Item = Span> + '_ {
        let spans = &self.spans[repeat.spans.clone()];
        let period = self.length(repeat.spans.clone()).as_nanos().max(1);
        let start = spans.first().map_or(0, |span| span.interval.start.as_nanos());
        let at_once = least.as_nanos().div_ceil(period).max(1);
        let times = repeat.times;
        (0..times.div_ceil(at_once)).flat_map(move |turn| {
            let done = turn * at_once;
            let together = at_once.min(times - done);
            let at = move |instant: Time| {
                let inside = (instant.as_nanos() - start) * together;
                Time::from_nanos(start + period * (done + 1) + inside)
            };
            spans.iter().map(move |span| Span {
                activity: span.activity,
                interval: Interval { start: at(span.interval.start), end: at(span.interval.end) },
            })
        })
    }

    fn length(&self, spans: Range<usize>) -> Duration {
        match self.spans.get(spans) {
            Some([first, .., last]) => last.interval.end.since(first.interval.start),
            Some([only]) => only.interval.length(),
            _ => Duration::ZERO,
        }
    }

    /// How many spans there are, those that repeat included.
    pub fn len(&self) -> u64 {
        let repeated = self.repeats.iter().map(|repeat| repeat.spans.len() as u64 * repeat.times);
        self.spans.len() as u64 + repeated.sum::<u64>()
    }

    /// Whether nothing was kept.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Adds what was done until now; it goes on with the last span if that is the same.
    pub(crate) fn push(&mut self, activity: Activity, interval: Interval) {
        match self.spans.last_mut() {
            Some(last) if last.activity == activity => last.interval.end = interval.end,
            _ => self.spans.push(Span { activity, interval }),
        }
    }

    /// Spans kept one by one so far.
    pub(crate) fn kept(&self) -> usize {
        self.spans.len()
    }

    /// Whether the spans from `first` on fill a period, and another of their turns can follow them.
    pub(crate) fn is_turn(&self, first: usize, period: Duration, next: Activity) -> bool {
        let differs = self.spans.last().is_some_and(|last| last.activity != next);
        differs && self.length(first..self.spans.len()) == period
    }

    /// The spans from `first` on come again so many times.
    pub(crate) fn repeat(&mut self, first: usize, times: u64) {
        self.repeats.push(Repeat { spans: first..self.spans.len(), times });
    }
}

/// Timelines are the same if the same was done, however it is kept.
impl PartialEq for Timeline {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(activity: Activity, start: u64, end: u64) -> Span {
        let at = Time::from_nanos;
        Span { activity, interval: Interval { start: at(start), end: at(end) } }
    }

    fn waiting() -> Timeline {
        let mut timeline = Timeline::default();
        for one in [
            span(Activity::InputWait, 0, 5),
            span(Activity::Training, 5, 15),
            span(Activity::InputWait, 15, 18),
        ] {
            timeline.push(one.activity, one.interval);
        }
        assert!(timeline.is_turn(1, Duration::from_nanos(13), Activity::Training));
        timeline.repeat(1, 3);
        timeline
            .push(Activity::Training, Interval { start: Time::from_nanos(57), end: Time::from_nanos(60) });
        timeline
    }

    #[test]
    fn turns_follow_one_another() {
        let timeline = waiting();
        assert_eq!((timeline.len(), timeline.iter().count()), (10, 10));
        let spans: Vec<Span> = timeline.iter().collect();
        assert!(spans.windows(2).all(|pair| pair[0].interval.end == pair[1].interval.start), "{spans:?}");
        assert_eq!(spans[7], span(Activity::Training, 44, 54));
        let mut plain = Timeline::default();
        for one in spans {
            plain.push(one.activity, one.interval);
        }
        assert_eq!(plain, timeline);
    }

    #[test]
    fn coarse_turns_have_the_same_shares() {
        let timeline = waiting();
        let coarse: Vec<Span> = timeline.coarse(Duration::from_nanos(20)).collect();
        // Two turns as one, and one.
        assert_eq!(coarse.len(), 3 + 2 + 2 + 1);
        assert!(coarse.windows(2).all(|pair| pair[0].interval.end == pair[1].interval.start), "{coarse:?}");
        let waited = |spans: &mut dyn Iterator<Item = Span>| {
            let waits = spans.filter(|span| span.activity == Activity::InputWait);
            waits.map(|span| span.interval.length().as_nanos()).sum::<u64>()
        };
        assert_eq!(waited(&mut coarse.into_iter()), waited(&mut timeline.iter()));
    }
}
