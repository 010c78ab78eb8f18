//! From the copy to the usable checkpoint: the buffers, the one writer, the commit.

use pipestep_engine::{Bytes, Duration, LedgerError, Time};

use super::saver::{Saver, Snapshot, Writing};
use super::storage::{StorageState, Use};
use super::{Event, Queue, class};
use crate::JobError;
use crate::inputs::{Mode, Write};
use crate::outcome::Place;

impl Saver<'_> {
    /// The copy is done, or the synchronous write.
    pub(super) fn end_staging(
        &mut self,
        now: Time,
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        let Some(mut snapshot) = self.staging.take() else {
            return Ok(());
        };
        snapshot.staged = now;
        self.log.staged(snapshot.record, now);
        if self.checkpoint.mode == Mode::Sync {
            self.log.written(snapshot.record, snapshot.point.capture, now);
            self.usable(snapshot, now);
            return Ok(());
        }
        if self.checkpoint.near.is_some() {
            self.newest_near = Some(snapshot.point);
            self.log.newest(now, snapshot.point.capture);
        }
        if snapshot.place == Place::Near {
            self.log.durable(snapshot.record, now);
            return self.change_buffers(now, -1);
        }
        self.queued.push_back(snapshot);
        self.start_write(now, storage, queue)
    }

    /// Starts the next write if the writer is idle.
    fn start_write(
        &mut self,
        now: Time,
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        if self.writing.is_some() {
            return Ok(());
        }
        let Some(snapshot) = self.queued.pop_front() else {
            return Ok(());
        };
        let length = self.write_time(storage)?;
        let end = if self.checkpoint.write == Write::Storage {
            storage.start(now, Use::Write, length, queue);
            None
        } else {
            Some(queue.schedule_movable(now.after(length)?, class::COMMIT, Event::WriteEnd))
        };
        self.totals.count_wait(now.since(snapshot.staged));
        self.log.writing(snapshot.record, now);
        self.writing = Some(Writing { snapshot, start: now, length, end });
        Ok(())
    }

    /// The writer has written its snapshot, whose buffer is free.
    pub(super) fn end_write(
        &mut self,
        now: Time,
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        let Some(Writing { snapshot, start, .. }) = self.writing.take() else {
            return Ok(());
        };
        self.log.written(snapshot.record, start, now);
        self.change_buffers(now, -1)?;
        let delay = self.checkpoint.commit_delay;
        if delay == Duration::ZERO {
            self.usable(snapshot, now);
        } else {
            let id = queue.schedule_movable(now.after(delay)?, class::COMMIT, Event::Commit);
            self.committing.push_back((snapshot, id));
        }
        self.start_write(now, storage, queue)
    }

    /// The oldest snapshot that was written and not usable is.
    pub(super) fn commit(&mut self, now: Time) {
        if let Some((snapshot, _)) = self.committing.pop_front() {
            self.usable(snapshot, now);
        }
    }

    fn usable(&mut self, snapshot: Snapshot, now: Time) {
        self.log.durable(snapshot.record, now);
        let newest = self.newest_near.map_or(Time::ZERO, |point| point.capture);
        match snapshot.place {
            Place::Near => self.newest_near = Some(snapshot.point),
            Place::Far => {
                self.newest_far = snapshot.point;
                if self.checkpoint.near.is_some() && self.checkpoint.mode == Mode::Sync {
                    // What goes to the far place synchronously is at the near one as well.
                    self.newest_near = Some(snapshot.point);
                }
                self.totals.count_durable(now.since(snapshot.point.capture));
            }
        }
        if snapshot.point.capture > newest {
            self.log.newest(now, snapshot.point.capture);
        }
    }

    /// How long the next write takes, with shared storage to itself.
    pub(super) fn write_time(&mut self, storage: &StorageState) -> Result<Duration, JobError> {
        if let Some(fixed) = self.fixed_write {
            return Ok(fixed);
        }
        match self.checkpoint.write {
            Write::Time(time) => {
                let drawn = time.draw(&mut self.write_times);
                Ok(drawn.unwrap_or(Duration::from_nanos(u64::MAX)))
            }
            Write::Rate(_) | Write::Storage => storage.write_time(self.checkpoint.size.unwrap_or_default()),
        }
    }

    pub(super) fn change_buffers(&mut self, now: Time, buffers: i128) -> Result<(), JobError> {
        let size = self.checkpoint.size.map_or(0, Bytes::get);
        let delta =
            i64::try_from(buffers * i128::from(size)).map_err(|_| LedgerError::TooLarge { at: now })?;
        Ok(self.buffers.change(now, 0, delta)?)
    }
}
