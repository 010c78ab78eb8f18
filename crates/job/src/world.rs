//! The job as a world of events: the one place that says what can happen and in which order.
//!
//! Between two events nothing happens, so a month without incident costs nothing. At one instant the classes
//! of [`class`] hold: a checkpoint becomes usable and its buffer free; the job ends if its work is done; a
//! phase ends; a request is made and captured; a failure strikes; the run stops at its horizon.

mod buffer;
mod faults;
mod feeding;
mod lifetimes;
mod packer;
mod ranks;
mod record;
mod repeats;
mod rollback;
mod rounds;
mod saver;
mod saving;
mod slow;
mod spares;
mod stepping;
mod storage;
mod writer;

use pipestep_engine::{Duration, EventId, EventQueue, Interval, MovingQueue, Streams, Time, World, run};

use crate::inputs::JobInputs;
use crate::outcome::{Activity, Detail, JobOutcome, Losses};
use crate::progress::{Progress, Units};
use crate::stragglers::Stragglers;
use crate::{InputError, JobError, Ratio, Timeline, Warning};
use faults::{FaultState, Strike};
use feeding::FeedState;
use ranks::RankState;
use repeats::Repeats;
use saver::Saver;
use slow::Windows;
use stepping::Stepping;
use storage::StorageState;

/// Events that a run may take: some ten seconds of computing.
const MAX_EVENTS: u64 = 100_000_000;
/// Requests in line, or failures without progress, that prove that a job never ends.
const HOPELESS: u64 = 10_000;

/// The order of the events of one instant.
mod class {
    use pipestep_engine::Class;

    pub(super) const COMMIT: Class = Class(0);
    pub(super) const DONE: Class = Class(1);
    pub(super) const PHASE_END: Class = Class(2);
    pub(super) const REQUEST: Class = Class(3);
    pub(super) const STRIKE: Class = Class(4);
    pub(super) const HORIZON: Class = Class(5);
}

/// Everything that can happen to a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The speed of useful work changes.
    SpeedChange,
    /// The writer has written a snapshot.
    WriteEnd,
    /// A written snapshot becomes usable.
    Commit,
    /// All the work is done, or enough for the next request.
    WorkReached,
    /// A step of jittered or slow ranks is over.
    StepEnd,
    /// A rank becomes slow, at a fixed instant or at random.
    SlowRank { fixed: bool },
    /// A slow rank is fast again.
    Heal(u64),
    /// A machine is back from repair that the job lacks.
    MachineBack,
    /// The phase that the job is in is over.
    PhaseEnd,
    /// The clock asks for a checkpoint.
    ClockRequest,
    /// Something that uses the shared storage has ended.
    StorageEnd,
    /// A reader has read a delivery of input.
    InputRead(u64),
    /// A worker has made some input.
    Delivery,
    /// The input of a step is on the device.
    Copied,
    /// Workers stop, or may go on.
    WorkersChange,
    /// The next request in line may be served.
    ServeLine,
    /// Something breaks.
    Strike(Strike),
    /// The run stops.
    Horizon,
}

type Queue = MovingQueue<Event>;

/// One run of a job.
#[derive(Debug)]
pub(crate) struct JobWorld<'a> {
    inputs: &'a JobInputs,
    detail: Detail,
    progress: Progress,
    activity: Activity,
    since: Time,
    phase_end: Option<EventId>,
    work_reached: Option<EventId>,
    saver: Option<Saver<'a>>,
    faults: FaultState<'a>,
    windows: Windows,
    stepping: Option<Stepping<'a>>,
    storage: StorageState,
    feed: Option<FeedState<'a>>,
    /// Whether what repeats is passed over.
    skips: bool,
    repeats: Repeats,
    lost: Losses,
    /// How many phases there have been.
    phases: u64,
    timeline: Timeline,
    events: u64,
    ended: Option<Time>,
}

/// Simulates run number `run` of a job; runs differ in their random draws only, and each is a function of its
/// number, so that they can be computed in any order and on any number of threads.
///
/// # Errors
/// [`JobError`]: wrong inputs, or a job that can never end.
pub fn simulate(inputs: &JobInputs, run_number: u64, detail: Detail) -> Result<JobOutcome, JobError> {
    inputs.check()?;
    JobWorld::new(inputs, run_number, detail)?.run()
}

/// The same, following every step and every delivery of input, also where they repeat: slower by orders of magnitude
/// for long jobs with input, and with the same outcome but for the roundings of [`JobOutcome::buffer_curve`]. A check
/// of [`simulate`].
///
/// # Errors
/// Those of [`simulate`].
pub fn simulate_every_step(
    inputs: &JobInputs,
    run_number: u64,
    detail: Detail,
) -> Result<JobOutcome, JobError> {
    inputs.check()?;
    let mut world = JobWorld::new(inputs, run_number, detail)?;
    world.skips = false;
    world.run()
}

impl<'a> JobWorld<'a> {
    fn new(inputs: &'a JobInputs, run_number: u64, detail: Detail) -> Result<Self, JobError> {
        let units = units_for(inputs)?;
        let streams = Streams::new(inputs.seed);
        Ok(Self {
            inputs,
            detail,
            progress: Progress::new(units, inputs.work),
            activity: Activity::Training,
            since: Time::ZERO,
            phase_end: None,
            work_reached: None,
            saver: inputs
                .checkpoint
                .as_ref()
                .map(|checkpoint| Saver::new(checkpoint, units, streams, run_number, detail))
                .transpose()?,
            faults: FaultState::new(inputs, streams, run_number),
            windows: Windows::new(&inputs.stragglers.windows),
            stepping: RankState::new(inputs, streams, run_number).map(Stepping::new),
            storage: StorageState::new(inputs.storage),
            feed: inputs.input.as_ref().map(|input| FeedState::new(input, streams, run_number, detail)),
            skips: true,
            repeats: Repeats::default(),
            lost: Losses::default(),
            phases: 0,
            timeline: Timeline::default(),
            events: 0,
            ended: None,
        })
    }

    fn run(mut self) -> Result<JobOutcome, JobError> {
        let mut queue = MovingQueue::new();
        self.begin(&mut queue)?;
        run(&mut self, &mut queue)?;
        self.outcome()
    }

    fn begin(&mut self, queue: &mut Queue) -> Result<(), JobError> {
        if let Some(horizon) = self.inputs.horizon {
            queue.schedule(horizon, class::HORIZON, Event::Horizon);
        }
        if let Some(saver) = &mut self.saver {
            saver.begin(queue);
        }
        self.faults.begin(queue);
        self.windows.schedule_next(queue);
        self.begin_stepping(queue);
        self.begin_feeding(queue)?;
        self.train(Time::ZERO, queue)
    }

    /// Ends the phase that the job is in, and enters another that lasts until something ends it.
    fn enter(&mut self, now: Time, activity: Activity, queue: &mut Queue) {
        self.close_phase(now);
        self.phases += 1;
        if self.activity == Activity::Training {
            self.pause_step(now, queue);
        }
        for id in [self.phase_end.take(), self.work_reached.take()].into_iter().flatten() {
            queue.cancel(id);
        }
        if activity == Activity::Training {
            self.progress.start(now);
        } else {
            self.progress.stop();
        }
        self.activity = activity;
        self.since = now;
    }

    /// Enters a phase of a given length.
    fn enter_for(
        &mut self,
        now: Time,
        activity: Activity,
        length: Duration,
        queue: &mut Queue,
    ) -> Result<(), JobError> {
        self.enter(now, activity, queue);
        let end = now.after(length)?;
        self.phase_end = Some(queue.schedule_movable(end, class::PHASE_END, Event::PhaseEnd));
        Ok(())
    }

    fn train(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if self.must_regroup() {
            return self.regroup(now, queue);
        }
        if !self.take_input(now, queue)? {
            self.enter(now, Activity::InputWait, queue);
            return Ok(());
        }
        self.enter(now, Activity::Training, queue);
        self.start_step(now, queue)
    }

    /// Whether the job is down or recovering: nobody asks for checkpoints or input.
    const fn is_down(&self) -> bool {
        matches!(
            self.activity,
            Activity::Detecting | Activity::Down | Activity::SpareWait | Activity::Recovering
        )
    }

    /// Schedules the next instant at which the work done matters.
    fn plan_work(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        if let Some(id) = self.work_reached.take() {
            queue.cancel(id);
        }
        let end = self.progress.end();
        let request = self.saver.as_ref().and_then(Saver::next_position);
        let mark = request.map_or(end, |position| position.min(end));
        let step_ends = self.stepping.as_ref().and_then(Stepping::end);
        if mark == u128::MAX || step_ends.is_some_and(|end| end < mark) {
            return Ok(());
        }
        let class = if mark == end { class::DONE } else { class::REQUEST };
        let at = self.progress.time_to(mark).map(|length| now.after(length));
        match at {
            Some(Ok(at)) => self.work_reached = Some(queue.schedule_movable(at, class, Event::WorkReached)),
            _ if self.inputs.horizon.is_some() => {}
            Some(Err(overflow)) => return Err(overflow.into()),
            None => now.after(Duration::from_nanos(u64::MAX)).map(|_| ())?,
        }
        Ok(())
    }

    /// Adds the phase that ends now to its account and to the timeline.
    fn close_phase(&mut self, now: Time) {
        let length = now.since(self.since);
        let account = match self.activity {
            Activity::Training => None,
            Activity::Rebalancing => {
                self.lost.straggler_nanos += length.as_nanos() as i64;
                None
            }
            Activity::Waiting | Activity::Staging => Some(&mut self.lost.save_stall),
            Activity::Detecting => Some(&mut self.lost.detection),
            Activity::Down => Some(&mut self.lost.downtime),
            Activity::SpareWait => Some(&mut self.lost.spare_wait),
            Activity::Recovering => Some(&mut self.lost.recovery),
            Activity::Regrouping => Some(&mut self.lost.fewer_replicas),
            Activity::InputWait => Some(&mut self.lost.input_wait),
        };
        if let Some(account) = account {
            *account = Duration::from_nanos(account.as_nanos() + length.as_nanos());
        }
        if self.detail == Detail::Summary || length == Duration::ZERO {
            return;
        }
        self.timeline.push(self.activity, Interval { start: self.since, end: now });
    }

    fn end_phase(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.phase_end = None;
        match self.activity {
            Activity::Staging => self.end_staging(now, queue),
            Activity::Detecting => self.go_down(now, queue),
            Activity::Down => self.wait_for_spare(now, queue),
            Activity::SpareWait => self.recover(now, queue),
            Activity::Recovering => self.resume(now, queue),
            Activity::Rebalancing => self.train_or_wait(now, queue),
            Activity::Regrouping => self.end_regroup(now, queue),
            Activity::Training | Activity::Waiting | Activity::InputWait => Ok(()),
        }
    }

    fn reach_work(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.work_reached = None;
        if self.progress.is_done() {
            self.end(now, queue);
            return Ok(());
        }
        self.request(now, queue)
    }

    fn end(&mut self, now: Time, queue: &mut Queue) {
        self.close_phase(now);
        self.close_step(now);
        self.since = now;
        self.ended = Some(now);
        *queue = MovingQueue::new();
    }

    fn count_event(&mut self, now: Time) -> Result<(), JobError> {
        self.events += 1;
        if self.events > MAX_EVENTS {
            return Err(JobError::TooManyEvents {
                limit: MAX_EVENTS,
                at: now,
                useful: self.progress.totals().useful,
            });
        }
        Ok(())
    }

    fn outcome(mut self) -> Result<JobOutcome, JobError> {
        let Some(end) = self.ended else {
            return Err(JobError::NoInput { at: self.since });
        };
        let mut totals = self.progress.totals();
        if self.inputs.stragglers == Stragglers::default() && totals.fewer_replicas > Duration::ZERO {
            // A nanosecond of rounding is no straggler.
            let nanos = totals.fewer_replicas.as_nanos().saturating_add_signed(totals.straggler_nanos);
            (totals.fewer_replicas, totals.straggler_nanos) = (Duration::from_nanos(nanos), 0);
        }
        let lost = Losses {
            redo: totals.redo,
            dropped: totals.dropped,
            fewer_replicas: self.lost.fewer_replicas.plus(totals.fewer_replicas)?,
            straggler_nanos: self.lost.straggler_nanos + totals.straggler_nanos,
            ..self.lost
        };
        let finished = self.progress.is_done();
        let mut warnings = Vec::new();
        if !finished && let Some(work) = self.inputs.work {
            let left = work.as_nanos().saturating_sub(totals.useful.as_nanos());
            warnings.push(Warning::Unfinished { left: Duration::from_nanos(left) });
        }
        let (failures_counted, failures_ignored) = (self.faults.counted, self.faults.ignored);
        let spares = self.faults.spares.take();
        let (causes, failures) = self.faults.finish(spares.as_ref(), &mut warnings);
        let (replicas, replica_curve) =
            spares.map_or_else(|| (None, Vec::new()), |spares| spares.finish(totals.short));
        let saved = self.saver.map(|saver| saver.finish(totals.useful, &mut warnings)).transpose()?;
        let (saves, checkpoints, backlog_curve, newest_curve) = saved.map_or_else(
            || (None, Vec::new(), Vec::new(), Vec::new()),
            |saved| (Some(saved.totals), saved.records, saved.curve, saved.newest),
        );
        let fed = self.feed.map(|feed| (feed.totals, feed.curve.finish(end)));
        let (input, buffer_curve) = fed.map_or((None, Vec::new()), |(totals, curve)| (Some(totals), curve));
        Ok(JobOutcome {
            elapsed: end.since(Time::ZERO),
            useful: totals.useful,
            pause_total: lost.save_stall,
            lost,
            finished,
            saves,
            failures_counted,
            failures_ignored,
            causes,
            stragglers: self.stepping.map(|stepping| stepping.state.totals),
            replicas,
            input,
            warnings,
            checkpoints,
            failures,
            timeline: self.timeline,
            backlog_curve,
            newest_curve,
            buffer_curve,
            replica_curve,
        })
    }
}

/// Units in which the work of a job is followed: exactly where all speeds are known beforehand, to a millionth
/// of a millionth where the lengths of steps are drawn.
fn units_for(inputs: &JobInputs) -> Result<Units, JobError> {
    const DRAWN: u64 = 1_000_000_000_000;
    // With replicas missing work takes their number over a smaller one times as long, whatever that is.
    let replicas = inputs.shrink_to().map_or(1, |shrink| shrink.replicas.into());
    let all = Ratio::new(replicas, 1).unwrap_or(Ratio::ONE);
    let mut windows = Vec::with_capacity(inputs.stragglers.windows.len() + 1);
    for window in &inputs.stragglers.windows {
        windows.push(window.factor.times(all).ok_or(InputError::FactorsTooFine)?);
    }
    windows.push(all);
    let ranks = inputs.stragglers.ranks.as_ref();
    if ranks.is_none() && inputs.input.is_none() {
        return Ok(Units::for_factors(windows.into_iter(), 1)?);
    }
    let slow = ranks.and_then(|ranks| ranks.slow.as_ref()).map(|slow| slow.factor).into_iter();
    Ok(Units::for_factors(slow, DRAWN).or_else(|_| Units::for_factors(std::iter::empty(), DRAWN))?)
}

impl World<Queue> for JobWorld<'_> {
    type Event = Event;
    type Error = JobError;

    fn handle(&mut self, now: Time, event: Event, queue: &mut Queue) -> Result<(), JobError> {
        self.count_event(now)?;
        self.note_event(event);
        self.progress.settle(now);
        match event {
            Event::SpeedChange => self.change_speed(now, queue),
            Event::WriteEnd => self.end_write(now, queue),
            Event::Commit => {
                if let Some(saver) = &mut self.saver {
                    saver.commit(now);
                }
                Ok(())
            }
            Event::StepEnd => self.end_step(now, queue),
            Event::SlowRank { fixed } => self.slow_rank(now, fixed, queue),
            Event::Heal(id) => self.heal_rank(now, id, queue),
            Event::MachineBack => self.machine_back(now, queue),
            Event::StorageEnd => self.storage_end(now, queue),
            Event::InputRead(number) => self.input_read(now, number, queue),
            Event::Delivery => self.deliver(now, queue),
            Event::Copied => self.copied(now, queue),
            Event::WorkersChange => self.feed_on(now, queue),
            Event::WorkReached => self.reach_work(now, queue),
            Event::PhaseEnd => self.end_phase(now, queue),
            Event::ClockRequest => self.clock_request(now, queue),
            Event::ServeLine => self.serve_line(now, queue),
            Event::Strike(strike) => self.strike(now, strike, queue),
            Event::Horizon => {
                self.end(now, queue);
                Ok(())
            }
        }
    }
}
