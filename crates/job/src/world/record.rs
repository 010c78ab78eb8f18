//! What is kept of the saves of a run: every instant, or nothing.

use pipestep_engine::{Duration, Time};

use super::saver::{BacklogCurve, Saver};
use crate::inputs::{Mode, Trigger};
use crate::outcome::{CheckpointRecord, CheckpointState, Detail, Newest, Place, SaveTotals, StragglerTotals};
use crate::{JobError, Warning};
use pipestep_engine::Level;

/// Requests in line at the end that show that training starves.
const PILE: usize = 3;

/// The records of a run; each request is known by its number.
#[derive(Debug)]
pub(super) struct SaveLog {
    keep: bool,
    records: Vec<CheckpointRecord>,
    newest: Vec<Newest>,
}

/// What the saves of a run came to.
pub(super) struct Saved {
    pub(super) totals: SaveTotals,
    pub(super) records: Vec<CheckpointRecord>,
    pub(super) curve: Vec<Level<1>>,
    pub(super) newest: Vec<Newest>,
}

impl SaveLog {
    pub(super) fn new(detail: Detail) -> Self {
        Self { keep: detail == Detail::Full, records: Vec::new(), newest: Vec::new() }
    }

    /// A request is made; returns its number.
    pub(super) fn ask(&mut self, now: Time) -> usize {
        if self.keep {
            self.records.push(CheckpointRecord {
                requested: now,
                capture: None,
                staging_end: None,
                upload_start: None,
                upload_end: None,
                durable: None,
                state: CheckpointState::Unfinished,
                place: Place::Far,
                work: Duration::ZERO,
            });
        }
        self.records.len().saturating_sub(1)
    }

    pub(super) fn skip(&mut self, record: usize) {
        self.note(record, |record| record.state = CheckpointState::Skipped);
    }

    pub(super) fn capture(&mut self, record: usize, now: Time, place: Place, work: Duration) {
        self.note(record, |record| {
            record.capture = Some(now);
            record.place = place;
            record.work = work;
        });
    }

    pub(super) fn staged(&mut self, record: usize, now: Time) {
        self.note(record, |record| record.staging_end = Some(now));
    }

    pub(super) fn writing(&mut self, record: usize, now: Time) {
        self.note(record, |record| record.upload_start = Some(now));
    }

    pub(super) fn written(&mut self, record: usize, start: Time, now: Time) {
        self.note(record, |record| {
            record.upload_start = Some(start);
            record.upload_end = Some(now);
        });
    }

    pub(super) fn durable(&mut self, record: usize, now: Time) {
        self.note(record, |record| {
            record.durable = Some(now);
            record.state = CheckpointState::Durable;
        });
    }

    /// From now on this capture is the newest to go back to.
    pub(super) fn newest(&mut self, at: Time, capture: Time) {
        if self.keep && self.newest.last().map_or(Time::ZERO, |newest| newest.capture) != capture {
            self.newest.push(Newest { at, capture });
        }
    }

    fn note(&mut self, record: usize, change: impl FnOnce(&mut CheckpointRecord)) {
        if self.keep
            && let Some(record) = self.records.get_mut(record)
        {
            change(record);
        }
    }
}

impl SaveTotals {
    /// A write has started this long after its snapshot was copied.
    pub(super) fn count_wait(&mut self, wait: Duration) {
        self.writes_started += 1;
        self.writer_wait = add(self.writer_wait, wait);
    }

    /// A snapshot has become usable this long after its capture.
    pub(super) fn count_durable(&mut self, lag: Duration) {
        self.durable += 1;
        self.commit_lag = add(self.commit_lag, lag);
    }
}

impl StragglerTotals {
    /// So many healthy ranks were taken for slow in one step.
    pub(super) fn count_false_alarms(&mut self, ranks: u32) {
        self.false_alarms += u64::from(ranks);
        self.false_alarm_steps += 1;
    }

    /// A gradient was applied this many steps late.
    pub(super) fn count_late(&mut self, steps: u32) {
        self.gradients_late += 1;
        self.lateness += u64::from(steps);
        self.lateness_max = self.lateness_max.max(steps);
    }
}

fn add(sum: Duration, length: Duration) -> Duration {
    Duration::from_nanos(sum.as_nanos().saturating_add(length.as_nanos()))
}

impl Saver<'_> {
    /// Closes the books.
    pub(super) fn finish(mut self, useful: Duration, warnings: &mut Vec<Warning>) -> Result<Saved, JobError> {
        self.warn(useful, warnings);
        let (peak, _, curve) = self.buffers.finish()?;
        self.totals.peak_bytes = self.checkpoint.size.map(|_| peak.bytes);
        self.totals.peak_at = peak.at;
        let mut records = self.log.records;
        // A request that still waits, or that a failure dropped from the line, has no snapshot to speak of.
        records.retain(|record| record.capture.is_some() || record.state == CheckpointState::Skipped);
        Ok(Saved {
            totals: self.totals,
            records,
            curve: match curve {
                BacklogCurve::Dropped => Vec::new(),
                BacklogCurve::Kept(levels) => levels,
            },
            newest: self.log.newest,
        })
    }

    fn warn(&mut self, useful: Duration, warnings: &mut Vec<Warning>) {
        let requests = self.checkpoint.requests;
        // With a near place the writer sees only every so many of the saves.
        let written = self.checkpoint.near.as_ref().map_or(1, |near| u64::from(near.far_every));
        let every = requests.every.fixed().and_then(|every| every.times(written).ok());
        if let (Some(write), Some(every)) = (self.fixed_write, every)
            && write > every
        {
            self.totals.backlog_grows =
                self.checkpoint.mode != Mode::Sync || requests.trigger != Trigger::Work;
            let bytes_per_second = self.checkpoint.size.map(|size| {
                let bytes = size.get() as f64;
                (bytes / every.as_secs_f64(), bytes / write.as_secs_f64())
            });
            if self.totals.backlog_grows {
                warnings.push(Warning::WriterTooSlow { write, every, bytes_per_second });
            }
        }
        if self.line.len() >= PILE {
            warnings.push(Warning::Starved { waiting: self.line.len() });
        }
        if self.totals.captured == 0 {
            warnings.push(Warning::NeverSaved { useful });
        } else if self.furthest() == 0 && self.totals.durable == 0 {
            warnings.push(Warning::NeverUsable { captured: self.totals.captured, useful });
        }
    }
}
