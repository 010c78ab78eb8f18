//! What breaks, and how the job comes back: failure sources, causes, spares, and the way from a failure to
//! training.

use pipestep_engine::{Bytes, Duration, EventQueue, Rate, Streams, Time};
use rand::RngExt;
use rand_chacha::ChaCha12Rng;

use super::lifetimes::Lifetimes;
use super::rollback::Rollback;
use super::saver::Point;
use super::spares::SpareState;
use super::storage::Use;
use super::{Event, HOPELESS, JobWorld, Queue, class};
use crate::inputs::{Cause, FaultSource, Faults, JobInputs, Recovery};
use crate::outcome::{Activity, CauseTotal, Detail, FailureOrigin, FailureRecord, Place};
use crate::{JobError, Spread, Warning};

/// Which failure strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Strike {
    /// The next of those at fixed instants.
    Fixed,
    /// The next of a random source.
    Source(usize),
}

/// A random source and when it strikes next.
#[derive(Debug)]
struct Source<'a> {
    inputs: &'a FaultSource,
    lifetimes: Lifetimes,
    causes: ChaCha12Rng,
    /// The number of its first cause among those of all sources.
    first_cause: usize,
}

/// The state of the faults of a job.
#[derive(Debug)]
pub(super) struct FaultState<'a> {
    faults: &'a Faults,
    fixed: Vec<Time>,
    next_fixed: usize,
    sources: Vec<Source<'a>>,
    lengths: ChaCha12Rng,
    survival: ChaCha12Rng,
    pub(super) counted: u64,
    pub(super) ignored: u64,
    causes: Vec<CauseTotal>,
    records: Vec<FailureRecord>,
    /// Machines in repair and in reserve, where they are counted.
    pub(super) spares: Option<SpareState>,
    /// The downtime of the failure that the job is down from.
    downtime: Spread,
    /// From where it will recover.
    place: Place,
    latest_resume: Time,
    /// The furthest checkpoint so far, and failures since there was a further one.
    furthest: u128,
    without_progress: u64,
}

impl<'a> FaultState<'a> {
    pub(super) fn new(inputs: &'a JobInputs, streams: Streams, run_number: u64) -> Self {
        let faults = &inputs.faults;
        let mut fixed = faults.at.clone();
        fixed.sort_unstable();
        let mut causes = Vec::new();
        let mut sources = Vec::new();
        for source in &faults.sources {
            sources.push(Source {
                inputs: source,
                lifetimes: Lifetimes::new(
                    source.between,
                    source.devices,
                    streams.stream(&format!("failures: {}", source.name), run_number),
                ),
                causes: streams.stream(&format!("causes: {}", source.name), run_number),
                first_cause: causes.len(),
            });
            causes.extend(source.causes.iter().map(|cause| CauseTotal {
                source: source.name.clone(),
                cause: cause.name.clone(),
                count: 0,
            }));
        }
        Self {
            faults,
            fixed,
            next_fixed: 0,
            sources,
            lengths: streams.stream("downtime and recovery", run_number),
            survival: streams.stream("near survival", run_number),
            counted: 0,
            ignored: 0,
            causes,
            records: Vec::new(),
            spares: faults.spares.map(|spares| SpareState::new(spares, inputs.shrink_to())),
            downtime: faults.downtime,
            place: Place::Far,
            latest_resume: Time::ZERO,
            furthest: 0,
            without_progress: 0,
        }
    }

    pub(super) fn begin(&mut self, queue: &mut Queue) {
        self.schedule_fixed(queue);
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(at) = source.lifetimes.first() {
                queue.schedule(at, class::STRIKE, Event::Strike(Strike::Source(index)));
            }
        }
    }

    /// Whether anything can still break.
    pub(super) fn can_strike(&self) -> bool {
        !self.sources.is_empty() || self.next_fixed < self.fixed.len()
    }

    fn schedule_fixed(&self, queue: &mut Queue) {
        if let Some(&at) = self.fixed.get(self.next_fixed) {
            queue.schedule(at, class::STRIKE, Event::Strike(Strike::Fixed));
        }
    }

    /// Schedules the next failure of the source that has just struck.
    fn schedule_next(&mut self, now: Time, strike: Strike, queue: &mut Queue) {
        match strike {
            Strike::Fixed => {
                self.next_fixed += 1;
                self.schedule_fixed(queue);
            }
            Strike::Source(index) => {
                if let Some(at) = self.sources[index].lifetimes.renew(now) {
                    queue.schedule(at, class::STRIKE, Event::Strike(Strike::Source(index)));
                }
            }
        }
    }

    /// Draws what a failure is due to; `None` for one at a fixed instant.
    fn cause(&mut self, strike: Strike) -> Option<(usize, &'a Cause)> {
        let Strike::Source(index) = strike else {
            return None;
        };
        let source = &mut self.sources[index];
        let chosen = source.draw_cause();
        let number = source.first_cause + chosen;
        self.causes[number].count += 1;
        Some((number, &source.inputs.causes[chosen]))
    }

    /// A machine is lost at `now` and sent to repair.
    fn lose_machine(&mut self, now: Time) {
        let Some(spares) = &mut self.spares else { return };
        let repaired = spares.repair().draw(&mut self.lengths).and_then(|length| now.after(length).ok());
        spares.lose(now, repaired.unwrap_or(Time::MAX));
    }

    fn draw(&mut self, spread: Spread) -> Duration {
        spread.draw(&mut self.lengths).unwrap_or(Duration::from_nanos(u64::MAX))
    }

    pub(super) fn finish(
        self,
        spares: Option<&SpareState>,
        warnings: &mut Vec<Warning>,
    ) -> (Vec<CauseTotal>, Vec<FailureRecord>) {
        let ran_out = spares.map_or(0, SpareState::ran_out);
        if ran_out > 0 {
            warnings.push(Warning::SparesRanOut { times: ran_out });
        }
        (self.causes, self.records)
    }
}

impl Source<'_> {
    fn draw_cause(&mut self) -> usize {
        let causes = &self.inputs.causes;
        let total: u64 = causes.iter().map(|cause| u64::from(cause.weight)).sum();
        let mut ticket = self.causes.random_range(0..total.max(1));
        for (number, cause) in causes.iter().enumerate() {
            match ticket.checked_sub(u64::from(cause.weight)) {
                Some(left) => ticket = left,
                None => return number,
            }
        }
        causes.len() - 1
    }
}

impl JobWorld<'_> {
    /// Something breaks.
    pub(super) fn strike(&mut self, now: Time, strike: Strike, queue: &mut Queue) -> Result<(), JobError> {
        self.faults.schedule_next(now, strike, queue);
        let again = match self.activity {
            Activity::Training
            | Activity::Waiting
            | Activity::Staging
            | Activity::Rebalancing
            | Activity::Regrouping
            | Activity::InputWait => false,
            Activity::Recovering if self.faults.faults.recovery_can_fail => true,
            Activity::Detecting | Activity::Down | Activity::SpareWait | Activity::Recovering => {
                self.faults.ignored += 1;
                return Ok(());
            }
        };
        let cause = self.faults.cause(strike);
        let near_survives = self.near_survives(cause.map(|(_, cause)| cause));
        if cause.is_none_or(|(_, cause)| cause.loses_machine) {
            self.faults.lose_machine(now);
        }
        self.faults.downtime =
            cause.and_then(|(_, cause)| cause.downtime).unwrap_or(self.faults.faults.downtime);
        self.faults.counted += 1;
        let origin = cause.map_or(FailureOrigin::Fixed, |(number, _)| FailureOrigin::Cause(number));
        self.fail(now, again, origin, near_survives, queue)
    }

    /// The job goes down by itself to replace so many slow ranks; the near copy survives that.
    pub(super) fn evict(&mut self, now: Time, ranks: u32, queue: &mut Queue) -> Result<(), JobError> {
        for _ in 0..ranks {
            self.faults.lose_machine(now);
        }
        self.faults.downtime = self.faults.faults.downtime;
        self.fail(now, false, FailureOrigin::Eviction, true, queue)
    }

    /// The job fails: goes back to the newest checkpoint that is left, and down.
    fn fail(
        &mut self,
        now: Time,
        again: bool,
        origin: FailureOrigin,
        near_survives: bool,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        self.repeats.forget();
        let rollback = self.roll_back(now, near_survives, queue)?;
        let point = rollback.point;
        let back = self.progress.position().saturating_sub(point.work);
        self.progress.restore(point.work);
        self.drop_step(now);
        self.storage.cancel(now, Use::Restore, queue);
        self.forget_return(queue);
        let replay = self.roll_back_input(now, point.fed, queue);
        self.faults.place = rollback.place;
        if self.detail == Detail::Full {
            let since = point.capture.max(self.faults.latest_resume);
            self.faults.records.push(FailureRecord {
                at: now,
                origin,
                recovered_to: point.capture,
                place: rollback.place,
                redo_wall: if again { Duration::ZERO } else { now.since(since) },
                redo_useful: self.progress.units.nanos(back),
                snapshots_lost: rollback.snapshots_lost,
                pending_bytes: rollback.pending_bytes,
                replay,
            });
        }
        if origin != FailureOrigin::Fixed {
            self.check_progress(now)?;
        }
        // Nobody has to notice what the job does itself.
        if self.faults.faults.detection == Duration::ZERO || origin == FailureOrigin::Eviction {
            return self.go_down(now, queue);
        }
        self.enter_for(now, Activity::Detecting, self.faults.faults.detection, queue)
    }

    fn roll_back(&mut self, now: Time, near_survives: bool, queue: &mut Queue) -> Result<Rollback, JobError> {
        match &mut self.saver {
            Some(saver) => saver.roll_back(now, near_survives, &mut self.storage, queue),
            None => Ok(Rollback {
                point: Point::START,
                place: Place::Far,
                snapshots_lost: 0,
                pending_bytes: Bytes::ZERO,
            }),
        }
    }

    /// Whether the near copy survives a failure of this cause.
    fn near_survives(&mut self, cause: Option<&Cause>) -> bool {
        let near = self.saver.as_ref().and_then(|saver| saver.checkpoint.near);
        let Some(near) = near else { return false };
        let share = cause.and_then(|cause| cause.near_survives).unwrap_or(near.survives);
        self.faults.survival.random_bool(share)
    }

    /// Refuses to go on with a job that fails again and again before it has saved anything new.
    fn check_progress(&mut self, now: Time) -> Result<(), JobError> {
        let furthest = self.saver.as_ref().map_or(0, super::saver::Saver::furthest);
        let faults = &mut self.faults;
        if furthest > faults.furthest {
            faults.furthest = furthest;
            faults.without_progress = 0;
        }
        faults.without_progress += 1;
        if faults.without_progress > HOPELESS && self.inputs.horizon.is_none() {
            return Err(JobError::NoProgress {
                failures: faults.without_progress,
                at: now,
                useful: self.progress.units.nanos(faults.furthest),
            });
        }
        Ok(())
    }

    /// The failure is noticed.
    pub(super) fn go_down(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let downtime = self.faults.downtime;
        let length = self.faults.draw(downtime);
        self.enter_for(now, Activity::Down, length, queue)
    }

    /// The downtime is over; recovery starts when there are enough machines.
    pub(super) fn wait_for_spare(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let ready = self.faults.spares.as_mut().map_or(now, |spares| spares.ready(now));
        if ready > now {
            self.enter_for(now, Activity::SpareWait, ready.since(now), queue)
        } else {
            self.recover(now, queue)
        }
    }

    /// How the job comes back from where its checkpoint is.
    fn recovery(&self) -> Recovery {
        let near = self.saver.as_ref().and_then(|saver| saver.checkpoint.near);
        match (self.faults.place, near) {
            (Place::Near, Some(near)) => near.recovery,
            _ => self.faults.faults.recovery,
        }
    }

    pub(super) fn recover(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let length = match self.recovery() {
            Recovery::Fixed(spread) => self.faults.draw(spread),
            Recovery::Read { bandwidth, restart } => self.read_time(bandwidth)?.plus(restart)?,
            Recovery::Storage { .. } => {
                self.enter(now, Activity::Recovering, queue);
                return self.storage.read(now, Use::Restore, self.checkpoint_size(), queue);
            }
        };
        self.enter_for(now, Activity::Recovering, length, queue)
    }

    /// The checkpoint has been read from the shared storage.
    pub(super) fn restored(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let restart = match self.recovery() {
            Recovery::Storage { restart } => restart,
            _ => Duration::ZERO,
        };
        self.enter_for(now, Activity::Recovering, restart, queue)
    }

    fn read_time(&self, bandwidth: Rate) -> Result<Duration, JobError> {
        Ok(bandwidth.time_for(self.checkpoint_size())?)
    }

    fn checkpoint_size(&self) -> Bytes {
        self.saver.as_ref().and_then(|saver| saver.checkpoint.size).unwrap_or_default()
    }

    /// Training goes on from the checkpoint.
    pub(super) fn resume(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.faults.latest_resume = now;
        self.count_replicas(now, queue);
        if let Some(saver) = &mut self.saver {
            saver.resume(now, self.progress.position(), queue);
        }
        // Input starts with an empty buffer.
        self.enter(now, Activity::InputWait, queue);
        self.train(now, queue)
    }
}
