//! Messages in the order in which they travel, for each ordered pair of ranks.

use pipestep_engine::{Interval, NoRecord, Recorder, Timeline, Tracks};

/// What a simulation does with its messages: drop them ([`NoRecord`]) or keep them ([`MessageLog`],
/// [`Tracks`]).
pub trait MessageSink {
    /// The message of the operation at `place` travels between the ranks of pair number `pair`. The messages of a
    /// pair come in the order of their starts.
    fn sent(&mut self, pair: u32, place: usize, interval: Interval);

    /// The operation at `place` sends no message.
    #[inline]
    fn sent_nothing(&mut self, _place: usize) {}
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// The place of the operation that made it.
    pub place: u32,
    /// When it is on its way.
    pub interval: Interval,
}

/// All messages of a step, by pair of ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageLog {
    by_pair: Vec<Vec<Sent>>,
}

impl MessageLog {
    /// A log of nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The messages of one pair, in the order of their starts.
    pub fn pair(&self, pair: u32) -> &[Sent] {
        self.by_pair.get(pair as usize).map_or(&[], Vec::as_slice)
    }

    /// Gives the operations that made the messages other places.
    pub(crate) fn renumber(&mut self, place_of: impl Fn(usize) -> usize) {
        for sent in self.by_pair.iter_mut().flatten() {
            sent.place = place_of(sent.place as usize) as u32;
        }
    }

    /// The same messages by the place of the operation that made each, of `places` in all.
    pub fn by_place(&self, places: usize) -> Timeline {
        let mut timeline = Timeline::new(places);
        for sent in self.by_pair.iter().flatten() {
            timeline.record(sent.place as usize, sent.interval);
        }
        timeline
    }
}

impl MessageSink for NoRecord {
    #[inline]
    fn sent(&mut self, _pair: u32, _place: usize, _interval: Interval) {}
}

/// Keeps the messages by the place of the operation that made each.
impl MessageSink for Tracks {
    #[inline]
    fn sent(&mut self, _pair: u32, place: usize, interval: Interval) {
        self.record(place, interval);
    }

    #[inline]
    fn sent_nothing(&mut self, place: usize) {
        self.record(place, Interval::NEVER);
    }
}

impl MessageSink for MessageLog {
    #[inline]
    fn sent(&mut self, pair: u32, place: usize, interval: Interval) {
        if self.by_pair.len() <= pair as usize {
            self.by_pair.resize_with(pair as usize + 1, Vec::new);
        }
        self.by_pair[pair as usize].push(Sent { place: place as u32, interval });
    }
}
