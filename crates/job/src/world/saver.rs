//! The state of the saves: the line of requests, the buffers, the one writer, and what a failure goes back to.
//!
//! Nothing here knows whether the job trains or waits: that is `saving.rs`, which asks these methods.

use std::collections::VecDeque;

use pipestep_engine::{Curve, Duration, EventId, Ledger, Level, Streams, Time};
use rand_chacha::ChaCha12Rng;

use super::feeding::Fed;
use super::record::SaveLog;
use super::storage::{StorageState, Use};
use super::{Event, Queue, class};
use crate::JobError;
use crate::input::PackPoint;
use crate::inputs::{Backlog, Checkpoint, Mode, Trigger, Write};
use crate::outcome::{Detail, Place, SaveTotals};
use crate::progress::Units;

/// A state that the job can go back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) capture: Time,
    pub(super) work: u128,
    /// The input in it.
    pub(super) fed: Fed,
    /// Near saves since the latest far one: the pattern of saves goes on from there.
    pub(super) near_since_far: u32,
}

impl Point {
    /// The start of the job, which needs no checkpoint.
    pub(super) const START: Self = Self {
        capture: Time::ZERO,
        work: 0,
        fed: Fed { items: 0, packer: PackPoint { sample: 0, offset: 0 } },
        near_since_far: 0,
    };
}

/// A snapshot on its way to being usable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Snapshot {
    pub(super) point: Point,
    pub(super) place: Place,
    pub(super) staged: Time,
    pub(super) record: usize,
}

/// A request in line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) record: usize,
    /// The work at which it was made, where work is what triggers.
    pub(super) mark: Option<u128>,
}

/// A write under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Writing {
    pub(super) snapshot: Snapshot,
    pub(super) start: Time,
    pub(super) length: Duration,
    /// Its end, unless the shared storage knows it.
    pub(super) end: Option<EventId>,
}

/// What the head of the line gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nobody is in line.
    Empty,
    /// It is captured now.
    Capture,
    /// It waits for a buffer.
    Wait,
    /// It is dropped.
    Drop,
}

/// The saves of a job.
#[derive(Debug)]
pub(super) struct Saver<'a> {
    pub(super) checkpoint: &'a Checkpoint,
    pub(super) units: Units,
    pub(super) intervals: ChaCha12Rng,
    pub(super) write_times: ChaCha12Rng,
    /// The time of a write, where it is fixed.
    pub(super) fixed_write: Option<Duration>,
    /// The work at which the next request is made, if work triggers.
    pub(super) next_position: Option<u128>,
    pub(super) clock: Option<EventId>,
    pub(super) line: VecDeque<Request>,
    pub(super) staging: Option<Snapshot>,
    pub(super) queued: VecDeque<Snapshot>,
    pub(super) writing: Option<Writing>,
    pub(super) committing: VecDeque<(Snapshot, EventId)>,
    pub(super) newest_far: Point,
    pub(super) newest_near: Option<Point>,
    pub(super) near_since_far: u32,
    pub(super) buffers: Ledger<1, BacklogCurve>,
    pub(super) totals: SaveTotals,
    pub(super) log: SaveLog,
}

/// The curve of a backlog, kept or not.
#[derive(Clone, Debug)]
pub(super) enum BacklogCurve {
    Dropped,
    Kept(Vec<Level<1>>),
}

impl Curve<1> for BacklogCurve {
    fn level(&mut self, level: Level<1>) {
        if let Self::Kept(levels) = self {
            levels.level(level);
        }
    }
}

impl<'a> Saver<'a> {
    pub(super) fn new(
        checkpoint: &'a Checkpoint,
        units: Units,
        streams: Streams,
        run_number: u64,
        detail: Detail,
    ) -> Result<Self, JobError> {
        let fixed_write = match (checkpoint.write, checkpoint.size) {
            (Write::Rate(rate), Some(size)) => Some(rate.time_for(size)?),
            (Write::Time(time), _) => time.fixed(),
            (Write::Rate(_), None) | (Write::Storage, _) => None,
        };
        let curve = match detail {
            Detail::Summary => BacklogCurve::Dropped,
            Detail::Full => BacklogCurve::Kept(Vec::new()),
        };
        Ok(Self {
            checkpoint,
            units,
            intervals: streams.stream("save intervals", run_number),
            write_times: streams.stream("write times", run_number),
            fixed_write,
            next_position: None,
            clock: None,
            line: VecDeque::new(),
            staging: None,
            queued: VecDeque::new(),
            writing: None,
            committing: VecDeque::new(),
            newest_far: Point::START,
            newest_near: None,
            near_since_far: 0,
            buffers: Ledger::new(curve),
            totals: SaveTotals::default(),
            log: SaveLog::new(detail),
        })
    }

    /// Plans the first request.
    pub(super) fn begin(&mut self, queue: &mut Queue) {
        self.plan_request(Time::ZERO, 0, self.checkpoint.requests.first, queue);
    }

    /// Plans the next request, `first` or one interval after now and after `position`.
    pub(super) fn plan_request(
        &mut self,
        now: Time,
        position: u128,
        first: Option<Duration>,
        queue: &mut Queue,
    ) {
        let requests = self.checkpoint.requests;
        if requests.count.is_some_and(|count| self.totals.requested >= count) {
            return;
        }
        let Some(interval) = first.or_else(|| requests.every.draw(&mut self.intervals)) else {
            return;
        };
        if requests.trigger == Trigger::Work {
            self.next_position = Some(position + self.units.of(interval));
        } else if let Ok(at) = now.after(interval) {
            // A request past the end of time is never made.
            self.clock = Some(queue.schedule_movable(at, class::REQUEST, Event::ClockRequest));
        }
    }

    /// The work at which the next request is made, if work triggers.
    pub(super) const fn next_position(&self) -> Option<u128> {
        self.next_position
    }

    /// Makes a request.
    pub(super) fn ask(&mut self, now: Time) -> Request {
        self.totals.requested += 1;
        Request { record: self.log.ask(now), mark: self.next_position.take() }
    }

    /// Whether all buffers are held or spoken for by requests in line.
    pub(super) fn is_full(&self) -> bool {
        let Mode::Async { backlog, .. } = self.checkpoint.mode else {
            return false;
        };
        backlog.buffers().is_some_and(|buffers| self.held() + self.line.len() >= buffers as usize)
    }

    /// Buffers in use, each from its capture to the end of its write.
    pub(super) fn held(&self) -> usize {
        usize::from(self.staging.is_some()) + self.queued.len() + usize::from(self.writing.is_some())
    }

    /// Drops a request; the next one comes an interval after it.
    pub(super) fn drop_request(&mut self, request: Request, now: Time, position: u128, queue: &mut Queue) {
        self.log.skip(request.record);
        self.totals.skipped += 1;
        if self.checkpoint.requests.trigger == Trigger::Work {
            self.plan_request(now, request.mark.unwrap_or(position), None, queue);
        }
    }

    /// What the head of the line gets; a snapshot that it may overwrite is overwritten.
    pub(super) fn turn(&mut self, now: Time) -> Result<Turn, JobError> {
        if self.line.is_empty() {
            return Ok(Turn::Empty);
        }
        let Mode::Async { backlog, .. } = self.checkpoint.mode else {
            return Ok(Turn::Capture);
        };
        if backlog.buffers().is_none_or(|buffers| self.held() < buffers as usize) {
            return Ok(Turn::Capture);
        }
        if !matches!(backlog, Backlog::Replace { .. }) {
            return Ok(Turn::Wait);
        }
        let Some(oldest) = self.queued.pop_front() else {
            return Ok(Turn::Drop);
        };
        self.log.skip(oldest.record);
        self.totals.skipped += 1;
        self.change_buffers(now, -1)?;
        Ok(Turn::Capture)
    }

    /// Captures a request at this much work and input; returns how long training is paused for it, unless that
    /// is for the shared storage to say.
    pub(super) fn capture(
        &mut self,
        now: Time,
        request: Request,
        at: (u128, Fed),
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<Option<Duration>, JobError> {
        let (position, fed) = at;
        let near = self.checkpoint.near;
        let place = match near {
            Some(near) if self.near_since_far + 1 < near.far_every => Place::Near,
            _ => Place::Far,
        };
        self.near_since_far = if place == Place::Near { self.near_since_far + 1 } else { 0 };
        let point = Point {
            capture: now,
            work: request.mark.unwrap_or(position),
            fed,
            near_since_far: self.near_since_far,
        };
        let record = request.record;
        self.log.capture(record, now, place, self.units.nanos(point.work));
        self.totals.captured += 1;
        self.staging = Some(Snapshot { point, place, staged: now, record });
        match (self.checkpoint.mode, near, place) {
            (Mode::Async { staging, .. }, _, _) => {
                self.change_buffers(now, 1)?;
                Ok(Some(staging))
            }
            (Mode::Sync, Some(near), Place::Near) => Ok(Some(near.write)),
            (Mode::Sync, _, _) => {
                let write = self.write_time(storage)?;
                if self.checkpoint.write == Write::Storage {
                    storage.start(now, Use::Write, write, queue);
                    return Ok(None);
                }
                Ok(Some(write.plus(self.checkpoint.commit_delay)?))
            }
        }
    }
}
