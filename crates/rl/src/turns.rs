//! Several jobs on the same engines and the same trainer, which take turns.
//!
//! One idea: each job is a world of its own with a lane of events of its own; what they share is who may use the
//! engines and who may use the trainer, or, where these are the same devices, who may use them. What is shared is
//! asked for and given up at the end of an instant, first come, first served; a pool that changes hands is taken up
//! after a handoff.

use std::collections::VecDeque;

use pipestep_engine::{Class, Duration, EventQueue, HeapQueue, Interval, Time, World};

use crate::inputs::Placement;
use crate::record::{Recorder, Row, Span, SpanKind};
use crate::world::{CONTROL, Event, Queue, Rounds};
use crate::{RlError, RlInputs};

/// What jobs take turns on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shared {
    Engines,
    Trainer,
    /// Both in one: devices on which a job generates and trains in turn.
    Devices,
}

/// Which of them a job has.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Turns {
    pub(crate) engines: bool,
    pub(crate) trainer: bool,
}

/// All jobs.
pub(crate) struct Jobs<'a, R> {
    pub(crate) worlds: Vec<Rounds<'a, R>>,
    handoff: Duration,
    /// Who waits for what, in the order in which pools are passed on.
    lines: Vec<(Shared, Line)>,
    is_over: bool,
}

/// Who has a shared pool, and who waits for it.
#[derive(Clone, Debug, Default)]
struct Line {
    holder: Option<usize>,
    /// Since when it may use it.
    since: Time,
    /// Who had it last.
    last: Option<usize>,
    waiting: VecDeque<usize>,
}

/// A lane of events for each job.
pub(crate) struct Lanes {
    lanes: Vec<Queue>,
}

impl Lanes {
    pub(crate) fn new(jobs: usize) -> Self {
        Self { lanes: (0..jobs).map(|_| HeapQueue::new()).collect() }
    }

    /// The job with the first event, and its instant.
    fn first(&self) -> Option<(Time, usize)> {
        let lanes = self.lanes.iter().enumerate();
        lanes.filter_map(|(job, lane)| Some((lane.peek_time()?, job))).min()
    }
}

impl EventQueue<(usize, Event)> for Lanes {
    fn schedule(&mut self, at: Time, class: Class, (job, event): (usize, Event)) {
        self.lanes[job].schedule(at, class, event);
    }

    fn next(&mut self) -> Option<(Time, (usize, Event))> {
        let (_, job) = self.first()?;
        let (now, event) = self.lanes[job].next()?;
        Some((now, (job, event)))
    }

    fn peek_time(&self) -> Option<Time> {
        self.first().map(|(time, _)| time)
    }
}

impl<'a, R: Recorder> Jobs<'a, R> {
    /// All jobs at time zero: the one of `inputs`, and those that share with it. The inputs have been checked.
    pub(crate) fn new(inputs: &'a RlInputs, mut record: impl FnMut() -> R) -> Result<Self, RlError> {
        let others = inputs.sharing.iter().flat_map(|sharing| &sharing.jobs).map(|job| &job.inputs);
        let mut worlds = Vec::new();
        for inputs in std::iter::once(inputs).chain(others) {
            let mut world = Rounds::new(inputs, record())?;
            world.turns = Some(Turns::default());
            worlds.push(world);
        }
        let handoff = inputs.sharing.as_ref().map_or(Duration::ZERO, |one| one.handoff);
        let pools: &[Shared] = match inputs.placement {
            Placement::Separate => &[Shared::Engines, Shared::Trainer],
            Placement::Colocated(_) => &[Shared::Devices],
        };
        let lines = pools.iter().map(|&shared| (shared, Line::default())).collect();
        Ok(Self { worlds, handoff, lines, is_over: false })
    }

    /// Schedules the first round of every job.
    pub(crate) fn begin(&mut self, queue: &mut Lanes) -> Result<(), RlError> {
        self.worlds.iter_mut().zip(&mut queue.lanes).try_for_each(|(job, lane)| job.begin(lane))
    }

    /// The first job that could not measure all of its rounds, if there is one.
    pub(crate) fn stuck(&self) -> Option<&Rounds<'a, R>> {
        self.worlds.iter().find(|job| !job.measured)
    }

    /// Takes shared pools from who is done with them, and gives each to who has waited longest.
    fn pass_on(&mut self, now: Time, queue: &mut Lanes) -> Result<(), RlError> {
        for (shared, line) in &mut self.lines {
            let shared = *shared;
            if let Some(holder) = line.holder
                && !self.worlds[holder].needs(shared)
            {
                self.worlds[holder].set_turn(shared, false);
                line.holder = None;
                let interval = Interval { start: line.since, end: now };
                draw(&mut self.worlds[0], shared, holder, interval);
            }
            for (number, job) in self.worlds.iter().enumerate() {
                if job.needs(shared) && line.holder != Some(number) && !line.waiting.contains(&number) {
                    line.waiting.push_back(number);
                }
            }
            if line.holder.is_none()
                && let Some(next) = line.waiting.pop_front()
            {
                line.holder = Some(next);
                let at = if line.last == Some(next) { now } else { now.after(self.handoff)? };
                line.last = Some(next);
                line.since = at;
                queue.schedule(at, CONTROL, (next, Event::Turn(shared)));
            }
        }
        Ok(())
    }

    fn check_over(&mut self, queue: &mut Lanes) {
        if self.worlds.iter().all(|job| job.measured) {
            self.is_over = true;
            queue.lanes.iter_mut().for_each(HeapQueue::clear);
        }
    }
}

/// What the first job sees of the others.
fn draw<R: Recorder>(first: &mut Rounds<'_, R>, shared: Shared, holder: usize, interval: Interval) {
    if !R::ON || holder == 0 {
        return;
    }
    let kind = SpanKind::OtherJob { job: holder as u32 };
    if shared != Shared::Trainer {
        for engine in 0..first.inputs.rollout.engines {
            first.record.span(Span { row: Row::Engine(engine), kind, interval });
        }
    }
    if shared != Shared::Engines {
        first.record.span(Span { row: Row::Trainer, kind, interval });
    }
}

impl<R: Recorder> World<Lanes> for Jobs<'_, R> {
    type Event = (usize, Event);
    type Error = RlError;

    fn handle(&mut self, now: Time, (job, event): (usize, Event), queue: &mut Lanes) -> Result<(), RlError> {
        self.worlds[job].handle(now, event, &mut queue.lanes[job])?;
        self.check_over(queue);
        Ok(())
    }

    fn settle(&mut self, now: Time, queue: &mut Lanes) -> Result<(), RlError> {
        if self.is_over {
            return Ok(());
        }
        for (job, lane) in self.worlds.iter_mut().zip(&mut queue.lanes) {
            job.settle(now, lane)?;
        }
        self.check_over(queue);
        if self.is_over || queue.peek_time() == Some(now) {
            // What has no length ends first, and may go on with what it has.
            return Ok(());
        }
        self.pass_on(now, queue)
    }
}

impl<R: Recorder> Rounds<'_, R> {
    /// Whether the job uses a shared pool, or would.
    fn needs(&self, shared: Shared) -> bool {
        match shared {
            // Not while samples are scored and it is open whether more are needed.
            Shared::Engines => self.rollout_open && (self.open > 0 || self.fresh > 0),
            Shared::Trainer => {
                let is_full = self.ready.len() >= self.inputs.batch as usize;
                let is_at_work = self.trainer.taken > 0 || self.weights.due || !self.weights.is_idle();
                !self.rollout_open && (is_full || is_at_work)
            }
            Shared::Devices => self.needs(Shared::Engines) || self.needs(Shared::Trainer),
        }
    }

    /// Whether the job may use a shared pool; always, if it is alone.
    pub(crate) fn has(&self, shared: Shared) -> bool {
        self.turns.is_none_or(|turns| match shared {
            Shared::Engines => turns.engines,
            Shared::Trainer => turns.trainer,
            Shared::Devices => turns.engines && turns.trainer,
        })
    }

    /// Whether it waits for its turn on one.
    pub(crate) fn waits_for_turn(&self) -> bool {
        let waits = |shared| !self.has(shared) && self.needs(shared);
        waits(Shared::Engines) || waits(Shared::Trainer)
    }

    fn set_turn(&mut self, shared: Shared, has: bool) {
        if let Some(turns) = &mut self.turns {
            match shared {
                Shared::Engines => turns.engines = has,
                Shared::Trainer => turns.trainer = has,
                Shared::Devices => *turns = Turns { engines: has, trainer: has },
            }
        }
    }

    /// It is this job's turn.
    pub(crate) fn take_turn(&mut self, now: Time, shared: Shared) {
        self.set_turn(shared, true);
        if self.rollout_open && self.round_opened == Time::MAX {
            self.round_opened = now;
        }
    }
}
