//! A rank's operations and messages woven together in order of time.
//!
//! Where only the highest level is wanted, messages that have gone out need not be taken off it in time: the level is
//! then too high rather than too low, and is put right where it seems to be the highest so far.

#![expect(
    clippy::inline_always,
    reason = "what these change stays in registers only where they are inlined; left to itself, the compiler calls them"
)]

use std::slice::Iter;

use pipestep_engine::{Duration, TotalCurve};
use pipestep_schedule::Op;

use super::Ended;
use super::flights::{Flight, NEVER};
use super::lines::{Line, Lines};
use crate::bytes::StepBytes;
use crate::lengths::Lengths;
use crate::rows::Rows;

/// The highest level of a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Top {
    pub(super) level: i64,
    /// The first instant at which it is held.
    pub(super) at: u64,
    /// How many operations have started and ended by then. Halves of a pair count twice.
    pub(super) starts: usize,
    pub(super) ends: usize,
    /// Bytes that have begun to arrive by then.
    pub(super) received: i64,
}

/// Messages in order of time, `SENT` in that of their arrivals, others in the order in which they begin to arrive.
struct Stream<'a, const SENT: bool> {
    rest: Iter<'a, Flight>,
    /// When the next one is due.
    at: u64,
}

impl<'a, const SENT: bool> Stream<'a, SENT> {
    fn new(all: &'a [Flight]) -> Self {
        let mut stream = Self { rest: all.iter(), at: 0 };
        stream.look();
        stream
    }

    #[inline(always)]
    fn look(&mut self) {
        let next = self.rest.as_slice().first();
        self.at = next.map_or(NEVER, |flight| if SENT { flight.arrives } else { flight.begins });
    }

    #[inline(always)]
    fn take(&mut self) -> i64 {
        let bytes = self.rest.next().map_or(0, |flight| flight.bytes);
        self.look();
        bytes
    }
}

/// What changes all the time: passed by value, so that it stays in registers.
#[derive(Clone, Copy)]
struct Now {
    /// The level from the last change on. Without a curve, messages that have gone out are still in it until it
    /// matters.
    level: i64,
    /// When that was.
    last: u64,
}

/// A level under way.
pub(super) struct Level<'a, C> {
    /// What it begins with.
    begin: Now,
    top: Top,
    received: i64,
    /// When the next message begins to arrive, and when the next one has gone out.
    next_receive: u64,
    next_sent: u64,
    /// How many operations have started, and when the last of them ends.
    starts: usize,
    ends: u64,
    /// By how many bytes that changes the level.
    end: i64,
    /// The last value of `starts` at which two ran as one.
    paired: usize,
    sent: [Stream<'a, true>; 2],
    receives: [Stream<'a, false>; 2],
    curve: &'a mut C,
}

impl<'a, C: TotalCurve> Level<'a, C> {
    /// A level that begins at `level`, from the first instant on, of a rank that is free from the second on.
    pub(super) fn new(
        level: i64,
        [origin, setup]: [u64; 2],
        [sent, receives]: [[&'a [Flight]; 2]; 2],
        curve: &'a mut C,
    ) -> Self {
        curve.change(0, level);
        let (sent, receives) = (sent.map(Stream::new), receives.map(Stream::new));
        let mut level = Self {
            begin: Now { level, last: origin },
            next_receive: 0,
            next_sent: 0,
            top: Top { at: origin, ..Top::default() },
            received: 0,
            starts: 0,
            ends: setup,
            end: 0,
            paired: usize::MAX,
            sent,
            receives,
            curve,
        };
        level.next_receive = soonest(&level.receives);
        level.next_sent = soonest(&level.sent);
        level
    }

    /// Nothing more happens before `at`.
    #[inline(always)]
    fn go_to(&mut self, now: Now, at: u64) -> Now {
        if now.level > self.top.level && at > now.last { self.rise(now) } else { now }
    }

    /// Perhaps no level was as high before. What counts is the level after everything at an instant, so this is asked
    /// when time goes on.
    #[inline(always)]
    fn rise(&mut self, mut now: Now) -> Now {
        if !C::KEEPS {
            for stream in &mut self.sent {
                while stream.at <= now.last {
                    now.level -= stream.take();
                }
            }
        }
        if now.level > self.top.level {
            self.mark(now);
        }
        now
    }

    /// No level was as high before.
    #[cold]
    #[inline(never)]
    fn mark(&mut self, now: Now) {
        let runs = match self.starts {
            0 => 0,
            _ if self.ends <= now.last => 0,
            starts if starts == self.paired => 2,
            _ => 1,
        };
        let (starts, ends) = (self.starts, self.starts - runs);
        self.top = Top { level: now.level, at: now.last, starts, ends, received: self.received };
    }

    #[inline(always)]
    fn change(&mut self, now: Now, at: u64, bytes: i64) -> Now {
        let now = self.go_to(now, at);
        self.curve.change(at - now.last, bytes);
        Now { level: now.level + bytes, last: at }
    }

    /// Makes all changes by messages before an instant. Those at the instant itself can wait: within an instant the
    /// order does not matter.
    #[inline(always)]
    fn messages_before(&mut self, mut now: Now, until: u64) -> Now {
        loop {
            if C::KEEPS && self.next_sent < self.next_receive.min(until) {
                let at = self.next_sent;
                let first = self.sent[0].at == at;
                let bytes = if first { self.sent[0].take() } else { self.sent[1].take() };
                self.next_sent = soonest(&self.sent);
                now = self.change(now, at, -bytes);
            } else if self.next_receive < until {
                let at = self.next_receive;
                now = self.go_to(now, at);
                let first = self.receives[0].at == at;
                let bytes = if first { self.receives[0].take() } else { self.receives[1].take() };
                self.next_receive = soonest(&self.receives);
                self.received += bytes;
                self.curve.change(at - now.last, bytes);
                now = Now { level: now.level + bytes, last: at };
            } else {
                return now;
            }
        }
    }

    /// What ran ends, and something else starts when its input is there.
    #[inline(always)]
    fn run(&mut self, mut now: Now, ready: u64, line: &Line) -> Now {
        let start = ready.max(self.ends);
        let (at, mut bytes) = (self.ends, self.end);
        if C::KEEPS && start == at {
            bytes += line.start;
        } else {
            now = self.messages_before(now, at);
            now = self.change(now, at, bytes);
            bytes = line.start;
        }
        now = self.messages_before(now, start);
        now = self.change(now, start, bytes);
        self.starts += 1;
        (self.ends, self.end) = (start + line.duration, line.end);
        now
    }

    /// The same where it is seldom done.
    #[cold]
    #[inline(never)]
    fn run_rarely(&mut self, now: Now, ready: u64, line: &Line) -> Now {
        self.run(now, ready, line)
    }

    /// What ran ends, and nothing starts any more.
    #[cold]
    fn close(mut self, now: Now) -> Top {
        let mut now = self.run_rarely(now, self.ends, &Line::default());
        self.starts -= 1; // that was nothing
        now = self.messages_before(now, NEVER);
        self.go_to(now, NEVER);
        self.top
    }
}

/// When the next message of several streams is due.
#[inline(always)]
fn soonest<const SENT: bool>(streams: &[Stream<'_, SENT>; 2]) -> u64 {
    streams[0].at.min(streams[1].at)
}

/// Reads one run.
pub(super) struct Reader<'a, I, L> {
    pub(super) run: &'a Ended<'a, I>,
    pub(super) lengths: L,
    pub(super) bytes: &'a StepBytes,
    pub(super) lines: &'a Lines,
}

impl<I: Fn(u32) -> u64 + Copy, L: Lengths> Reader<'_, I, L> {
    /// Sums up all changes of a rank's level, in order of time.
    #[inline(never)]
    pub(super) fn weave<C: TotalCurve>(&self, list: &[Op], mut level: Level<'_, C>) -> Top {
        let (lines, there, mut now) = (self.lines.all(), self.run.there, level.begin);
        let mut list = list.iter();
        while let Some(&op) = list.next() {
            if L::USUAL && !op.paired {
                let line = &lines[Rows::number(op)];
                now = level.run(now, there(line.input + op.micro_batch.0), line);
            } else {
                let (ready, line, is_pair) = self.rarely(op, list.as_slice());
                now = level.run_rarely(now, ready, &line);
                if is_pair {
                    list.next();
                    level.starts += 1;
                    level.paired = level.starts;
                }
            }
        }
        level.close(now)
    }

    /// What an operation does whose micro-batch has a size of its own or that is one half of a pair; whether it is, and
    /// when its input is there.
    #[cold]
    #[inline(never)]
    fn rarely(&self, op: Op, rest: &[Op]) -> (u64, Line, bool) {
        let of = |op: Op| {
            let line = self.lines.all()[Rows::number(op)].with(&self.bytes.of(self.run.inputs, op));
            let duration = self.lengths.op(op, line.duration);
            ((self.run.there)(line.input + op.micro_batch.0), Line { duration, ..line })
        };
        let (ready, first) = of(op);
        if op.paired
            && let [partner, ..] = *rest
            && let Some(duration) = self.pair_length(op, partner)
        {
            let (also, second) = of(partner);
            let (start, end) = (first.start + second.start, first.end + second.end);
            return (ready.max(also), Line { duration, start, end, ..first }, true);
        }
        (ready, first, false)
    }

    /// How long two operations run as one, if their rank has a time for pairs.
    fn pair_length(&self, first: Op, second: Op) -> Option<u64> {
        let inputs = self.run.inputs;
        let usual = inputs.costs().pair_duration(inputs.shape(), first, second).map(Duration::as_nanos)?;
        let length = self.lengths.pair(first, second, usual);
        Some(length)
    }
}
