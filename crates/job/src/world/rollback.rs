//! What a failure does to the saves, and where they go on from.

use pipestep_engine::{Bytes, Duration, Time};

use super::Queue;
use super::saver::{Point, Saver};
use super::storage::{StorageState, Use};
use crate::JobError;
use crate::inputs::{Mode, Trigger};
use crate::outcome::Place;

/// What a failure does to the saves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rollback {
    pub(super) point: Point,
    pub(super) place: Place,
    pub(super) snapshots_lost: u64,
    pub(super) pending_bytes: Bytes,
}

impl Saver<'_> {
    /// The furthest state that some failure could go back to.
    pub(super) fn furthest(&self) -> u128 {
        self.newest_near.map_or(0, |point| point.work).max(self.newest_far.work)
    }

    /// A failure strikes: what is not usable is lost, the writer is idle, and so is the near copy unless it
    /// survives.
    pub(super) fn roll_back(
        &mut self,
        now: Time,
        near_survives: bool,
        storage: &mut StorageState,
        queue: &mut Queue,
    ) -> Result<Rollback, JobError> {
        let snapshots_lost = (self.held() + self.committing.len()) as u64;
        let in_storage = storage.cancel(now, Use::Write, queue);
        let pending_bytes = self.pending_bytes(now, in_storage);
        if self.checkpoint.mode != Mode::Sync {
            self.change_buffers(now, -(self.held() as i128))?;
        }
        let commits = self.committing.drain(..).map(|(_, id)| id);
        let write = self.writing.take().and_then(|writing| writing.end);
        for id in commits.chain(write) {
            queue.cancel(id);
        }
        if self.checkpoint.requests.trigger == Trigger::WallSinceResume
            && let Some(id) = self.clock.take()
        {
            queue.cancel(id);
        }
        self.staging = None;
        self.queued.clear();
        self.line.clear();
        self.next_position = None;
        self.totals.lost += snapshots_lost;
        if !near_survives {
            self.newest_near = None;
        }
        let (point, place) = match self.newest_near {
            Some(near) if near.work >= self.newest_far.work => (near, Place::Near),
            _ => (self.newest_far, Place::Far),
        };
        self.near_since_far = point.near_since_far;
        self.log.newest(now, point.capture);
        Ok(Rollback { point, place, snapshots_lost, pending_bytes })
    }

    /// Training goes on: requests that count from a resume count from now.
    pub(super) fn resume(&mut self, now: Time, position: u128, queue: &mut Queue) {
        if self.checkpoint.requests.trigger != Trigger::Wall {
            self.plan_request(now, position, None, queue);
        }
    }

    /// Bytes of captured snapshots that are not written.
    fn pending_bytes(&self, now: Time, in_storage: Option<Duration>) -> Bytes {
        let size = u128::from(self.checkpoint.size.map_or(0, Bytes::get));
        if self.checkpoint.mode == Mode::Sync {
            return Bytes::ZERO;
        }
        let waiting = (usize::from(self.staging.is_some()) + self.queued.len()) as u128 * size;
        let writing = self.writing.map_or(0, |writing| {
            let length = u128::from(writing.length.as_nanos()).max(1);
            let left = in_storage.map_or_else(
                || length.saturating_sub(u128::from(now.since(writing.start).as_nanos())),
                |left| u128::from(left.as_nanos()),
            );
            size * left / length
        });
        Bytes::new(u64::try_from(waiting + writing).unwrap_or(u64::MAX))
    }
}
