//! The storage that checkpoints and input share, as part of the world: one event for whatever ends first.

use pipestep_engine::{Bytes, Duration, EventId, MovingQueue, Shared, Time};

use super::{Event, JobWorld, Queue, class};
use crate::JobError;
use crate::input::Storage;
use crate::outcome::Activity;

/// What uses the storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    /// A checkpoint is written.
    Write,
    /// A checkpoint is read.
    Restore,
    /// A worker reads input; the number of its delivery.
    Input(u64),
}

/// The storage, if the job has one that is shared.
#[derive(Debug)]
pub(super) struct StorageState {
    inputs: Option<Storage>,
    shared: Shared<Use>,
    event: Option<EventId>,
}

impl StorageState {
    pub(super) const fn new(inputs: Option<Storage>) -> Self {
        Self { inputs, shared: Shared::new(), event: None }
    }

    /// How long a write of this size takes with the storage to itself.
    pub(super) fn write_time(&self, size: Bytes) -> Result<Duration, JobError> {
        self.inputs.map_or(Ok(Duration::ZERO), |storage| Ok(storage.write.time_for(size)?))
    }

    /// Starts a read of this size.
    pub(super) fn read(
        &mut self,
        now: Time,
        what: Use,
        size: Bytes,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        let alone = self.inputs.map_or(Ok(Duration::ZERO), |storage| storage.read.time_for(size))?;
        self.start(now, what, alone, queue);
        Ok(())
    }

    /// Starts something that takes `alone` with the storage to itself.
    pub(super) fn start(&mut self, now: Time, what: Use, alone: Duration, queue: &mut Queue) {
        self.shared.start(now, what, alone);
        self.plan(queue);
    }

    /// Breaks something off; how long the rest of it would have taken alone, if it was under way.
    pub(super) fn cancel(&mut self, now: Time, what: Use, queue: &mut Queue) -> Option<Duration> {
        let left = self.shared.cancel(now, what);
        self.plan(queue);
        left
    }

    /// Whether a checkpoint is being written or read.
    pub(super) fn is_saving(&self) -> bool {
        self.shared.left().any(|(what, _)| !matches!(what, Use::Input(_)))
    }

    /// What uses the storage, and how much of it each needed at the instant that comes first.
    pub(super) fn uses(&self) -> (Time, impl Iterator<Item = (Use, u128)>) {
        (self.shared.since(), self.shared.left())
    }

    /// Passes over a length of time after which everything stands as it does now.
    pub(super) fn pass_over(&mut self, length: Duration) -> Result<(), JobError> {
        Ok(self.shared.pass_over(length)?)
    }

    /// The end of the first use has become another event.
    pub(super) const fn set_event(&mut self, id: EventId) {
        self.event = Some(id);
    }

    /// Takes out something that has ended.
    fn take_ended(&mut self, now: Time, queue: &mut Queue) -> Option<Use> {
        let ended = self.shared.take_ended(now);
        self.plan(queue);
        ended
    }

    /// Moves the one event to the next end.
    fn plan(&mut self, queue: &mut Queue) {
        if let Some(id) = self.event.take() {
            queue.cancel(id);
        }
        self.event = self
            .shared
            .next_end()
            .map(|at| MovingQueue::schedule_movable(queue, at, class::COMMIT, Event::StorageEnd));
    }
}

impl JobWorld<'_> {
    /// Something that uses the storage has ended, or several things.
    pub(super) fn storage_end(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.storage.event = None;
        while let Some(what) = self.storage.take_ended(now, queue) {
            if !matches!(what, Use::Input(_)) {
                self.repeats.forget();
            }
            match what {
                Use::Input(delivery) => self.input_read(now, delivery, queue)?,
                Use::Restore => self.restored(now, queue)?,
                Use::Write if self.activity == Activity::Staging && self.writes_synchronously() => {
                    self.commit_synchronously(now, queue)?;
                }
                Use::Write => self.end_write(now, queue)?,
            }
        }
        Ok(())
    }
}
