//! The messages with a size, by pair of ranks, as a run tells of them; and each rank's, in order of time.

#![expect(
    clippy::inline_always,
    reason = "what these change stays in registers only where they are inlined; left to itself, the compiler calls them"
)]

use pipestep_schedule::{Orders, Rank};

use crate::Inputs;
use crate::Links;
use crate::bytes::StepBytes;
use crate::observe::Observer;
use crate::rows::{Row, Rows};

/// Past every instant.
pub(super) const NEVER: u64 = u64::MAX;

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Flight {
    /// When it begins to arrive: the receiver holds a buffer from then on.
    pub(super) begins: u64,
    /// When it has arrived: the sender holds a buffer until then.
    pub(super) arrives: u64,
    pub(super) bytes: i64,
}

/// All messages with a size.
#[derive(Clone, Debug, Default)]
pub(crate) struct Flights {
    /// By pair of ranks, each in order of time.
    by_pair: Vec<Vec<Flight>>,
    /// By rank: the pairs in which it sends, and those in which it receives.
    pairs: Vec<[Vec<u32>; 2]>,
    /// What one rank sends and receives, where that must be put in order.
    sorted: [Vec<Flight>; 2],
}

impl Flights {
    /// Forgets all messages, for another step.
    pub(super) fn reset(&mut self, ranks: usize, rows: &Rows) {
        self.by_pair.iter_mut().for_each(Vec::clear);
        self.by_pair.resize_with(rows.pairs.len().max(self.by_pair.len()), Vec::new);
        self.pairs.iter_mut().flatten().for_each(Vec::clear);
        self.pairs.resize_with(ranks, Default::default);
        for (pair, (from, to)) in (0..).zip(&rows.pairs) {
            self.pairs[from.index()][0].push(pair);
            self.pairs[to.index()][1].push(pair);
        }
    }

    fn pair(&self, pair: u32) -> &[Flight] {
        &self.by_pair[pair as usize]
    }

    /// The messages that a rank sends in order of arrival, and those that it receives in the order in which they begin
    /// to: in two lists each.
    pub(super) fn of(&mut self, rank: Rank, links: Links) -> [[&[Flight]; 2]; 2] {
        let pairs = &self.pairs[rank.index()];
        // A serial link keeps the order of its messages.
        if links != Links::Unlimited && pairs.iter().all(|pairs| pairs.len() <= 2) {
            let list =
                |side: usize, number: usize| pairs[side].get(number).map_or(&[][..], |&pair| self.pair(pair));
            return [0, 1].map(|side| [0, 1].map(|number| list(side, number)));
        }
        let mut sorted = std::mem::take(&mut self.sorted);
        for (sorted, pairs) in sorted.iter_mut().zip(pairs) {
            sorted.clear();
            sorted.extend(pairs.iter().flat_map(|&pair| self.pair(pair)));
        }
        sorted[0].sort_by_key(|flight| flight.arrives);
        sorted[1].sort_by_key(|flight| flight.begins);
        self.sorted = sorted;
        let [sent, received] = &self.sorted;
        [[sent, &[]], [received, &[]]]
    }
}

/// Keeps messages for levels, besides what else is kept.
pub(crate) struct Keeping<'a, O> {
    pub(super) inputs: &'a Inputs,
    pub(super) orders: &'a Orders,
    pub(super) bytes: &'a StepBytes,
    pub(super) flights: &'a mut Flights,
    /// What else is told of the run.
    pub(super) other: O,
}

impl<O: Observer> Observer for Keeping<'_, O> {
    #[inline(always)]
    fn begin(&mut self, origin: u64) {
        self.other.begin(origin);
    }

    #[inline(always)]
    fn ran(&mut self, place: usize, start: u64, end: u64) {
        self.other.ran(place, start, end);
    }

    #[inline(always)]
    fn sent(&mut self, row: &Row, place: usize, begins: u64, arrives: u64) {
        self.other.sent(row, place, begins, arrives);
        if let Some(flights) = self.flights.by_pair.get_mut(row.buffered as usize) {
            flights.push(Flight { begins, arrives, bytes: row.bytes });
        } else if row.bytes < 0 {
            self.sent_scaled(row.pair, place, begins, arrives);
        }
    }

    #[inline(always)]
    fn sent_nothing(&mut self, place: usize) {
        self.other.sent_nothing(place);
    }
}

impl<O> Keeping<'_, O> {
    /// The micro-batch has a size of its own.
    #[cold]
    fn sent_scaled(&mut self, pair: u32, place: usize, begins: u64, arrives: u64) {
        let bytes = self.bytes.of(self.inputs, self.orders.all()[place]).sent;
        if bytes > 0 {
            self.flights.by_pair[pair as usize].push(Flight { begins, arrives, bytes });
        }
    }
}
