//! How saves and training take turns: requests, the line, the pause, and going on.

use pipestep_engine::{Duration, EventQueue, Time};

use super::feeding::FeedState;
use super::saver::Turn;
use super::{Event, HOPELESS, JobWorld, Queue, class};
use crate::JobError;
use crate::inputs::{Backlog, Mode, Trigger};
use crate::outcome::Activity;

impl JobWorld<'_> {
    /// The clock asks for a checkpoint; while the job is down nobody listens.
    pub(super) fn clock_request(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if !self.is_down() {
            self.request(now, queue)?;
        }
        let Some(saver) = &mut self.saver else {
            return Ok(());
        };
        saver.plan_request(now, 0, None, queue);
        Ok(())
    }

    /// Asks for a checkpoint.
    pub(super) fn request(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(saver) = &mut self.saver else {
            return Ok(());
        };
        // A step that is interrupted for a save, even one that is dropped at once, is not like others.
        self.repeats.forget();
        let full = saver.is_full();
        let request = saver.ask(now);
        let skips = matches!(saver.checkpoint.mode, Mode::Async { backlog: Backlog::Skip { .. }, .. });
        if skips && full {
            saver.drop_request(request, now, self.progress.position(), queue);
            return if self.activity == Activity::Training { self.plan_work(now, queue) } else { Ok(()) };
        }
        saver.line.push_back(request);
        let waiting = saver.line.len();
        if waiting as u64 > HOPELESS && self.inputs.horizon.is_none() && !self.faults.can_strike() {
            return Err(JobError::Starved { waiting, at: now, useful: self.progress.totals().useful });
        }
        match self.activity {
            Activity::Training | Activity::InputWait => {
                self.enter(now, Activity::Waiting, queue);
                self.serve_line(now, queue)
            }
            _ => Ok(()),
        }
    }

    /// Serves the head of the line, or lets training go on if nobody is in line.
    pub(super) fn serve_line(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        while self.activity == Activity::Waiting {
            let position = self.progress.position();
            let fed = self.feed.as_ref().map(FeedState::fed).unwrap_or_default();
            let Some(saver) = &mut self.saver else { return Ok(()) };
            let turn = saver.turn(now)?;
            match (turn, saver.line.front().copied()) {
                (Turn::Wait, _) => return Ok(()),
                (Turn::Empty, _) | (_, None) => return self.train(now, queue),
                (Turn::Drop, Some(request)) => {
                    saver.line.pop_front();
                    saver.drop_request(request, now, position, queue);
                }
                (Turn::Capture, Some(request)) => {
                    saver.line.pop_front();
                    let pause = saver.capture(now, request, (position, fed), &mut self.storage, queue)?;
                    if saver.checkpoint.requests.trigger == Trigger::Work {
                        saver.plan_request(now, request.mark.unwrap_or(position), None, queue);
                    }
                    match pause {
                        Some(pause) => self.enter_for(now, Activity::Staging, pause, queue)?,
                        None => self.enter(now, Activity::Staging, queue),
                    }
                }
            }
        }
        Ok(())
    }

    /// The copy, or the synchronous write, is done: whoever is in line is next.
    pub(super) fn end_staging(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(saver) = &mut self.saver else {
            return Ok(());
        };
        saver.end_staging(now, &mut self.storage, queue)?;
        self.train_or_wait(now, queue)
    }

    /// Training goes on unless somebody is in line.
    pub(super) fn train_or_wait(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if self.saver.as_ref().is_none_or(|saver| saver.line.is_empty()) {
            return self.train(now, queue);
        }
        self.enter(now, Activity::Waiting, queue);
        queue.schedule(now, class::REQUEST, Event::ServeLine);
        Ok(())
    }

    /// A buffer is free: training that waits for one may go on.
    pub(super) fn end_write(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(saver) = &mut self.saver else {
            return Ok(());
        };
        saver.end_write(now, &mut self.storage, queue)?;
        if self.activity == Activity::Waiting {
            queue.schedule(now, class::REQUEST, Event::ServeLine);
        }
        Ok(())
    }

    /// Whether saves pause training for the whole write.
    pub(super) fn writes_synchronously(&self) -> bool {
        self.saver.as_ref().is_some_and(|saver| saver.checkpoint.mode == Mode::Sync)
    }

    /// A synchronous write to shared storage is done; training goes on after the commit.
    pub(super) fn commit_synchronously(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let delay = self.saver.as_ref().map_or(Duration::ZERO, |saver| saver.checkpoint.commit_delay);
        self.enter_for(now, Activity::Staging, delay, queue)
    }
}
