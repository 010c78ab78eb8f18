//! Steps of jittered or slow ranks inside the job: the speed of useful work during each, and what happens at
//! its end.

use pipestep_engine::{Class, Duration, EventId, EventQueue, Time};

use super::ranks::{RankState, Step};
use super::{Event, JobWorld, Queue, class};
use crate::outcome::Activity;
use crate::stragglers::Response;
use crate::{JobError, Ratio};

/// The step under way.
#[derive(Debug)]
pub(super) struct Stepping<'a> {
    pub(super) state: RankState<'a>,
    running: Option<Running>,
    event: Option<EventId>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    step: Step,
    /// What is left of it, with no slow window.
    left: Duration,
    /// Where the work will be at its end.
    end: u128,
    /// Since when it has been running without a change.
    since: Time,
}

impl<'a> Stepping<'a> {
    pub(super) const fn new(state: RankState<'a>) -> Self {
        Self { state, running: None, event: None }
    }

    /// Where the work will be at the end of the step under way.
    pub(super) fn end(&self) -> Option<u128> {
        self.running.map(|running| running.end)
    }

    /// Counts the part of the step that has passed at this speed.
    fn pass(&mut self, now: Time, factor: Ratio) {
        if let Some(running) = &mut self.running {
            let passed = unscaled(now.since(running.since), factor);
            let left = running.left.as_nanos().saturating_sub(passed.as_nanos());
            running.left = Duration::from_nanos(left);
            running.since = now;
        }
    }
}

impl Running {
    /// How many whole steps of the bundle have been done; a nanosecond or so of rounding is no step left.
    fn done(&self) -> u64 {
        const FINE: u128 = 1 << 20;
        let length = u128::from(self.step.length.as_nanos()).max(1);
        let passed = length - u128::from(self.left.as_nanos()).min(length);
        let done = (passed * u128::from(self.step.steps) * FINE + length) / (length * FINE);
        done as u64
    }
}

/// A length of a step in a slow window, rounded up.
fn scaled(length: Duration, factor: Ratio) -> Option<Duration> {
    let nanos = u128::from(length.as_nanos()) * u128::from(factor.numerator());
    let nanos = nanos.div_ceil(u128::from(factor.denominator()));
    u64::try_from(nanos).ok().map(Duration::from_nanos)
}

/// The part of a step that is done in a length of a slow window; not more than that length.
fn unscaled(length: Duration, factor: Ratio) -> Duration {
    let nanos = u128::from(length.as_nanos()) * u128::from(factor.denominator());
    Duration::from_nanos((nanos / u128::from(factor.numerator())) as u64)
}

impl JobWorld<'_> {
    /// Plans when ranks become slow.
    pub(super) fn begin_stepping(&mut self, queue: &mut Queue) {
        let Some(stepping) = &mut self.stepping else { return };
        for (id, lasts) in stepping.state.take_first_heals() {
            queue.schedule(Time::from_nanos(lasts.as_nanos()), Class(0), Event::Heal(id));
        }
        if let Some(at) = stepping.state.next_fixed() {
            queue.schedule(at, Class(0), Event::SlowRank { fixed: true });
        }
        if let Some(at) = stepping.state.first_random() {
            queue.schedule(at, Class(0), Event::SlowRank { fixed: false });
        }
    }

    /// Starts or goes on with a step, at the speed of the window.
    pub(super) fn run_step(&mut self, now: Time, queue: &mut Queue) {
        let factor = self.slowness();
        let Some(stepping) = &mut self.stepping else { return };
        let units = self.progress.units;
        let full = units.of(stepping.state.ranks.step);
        let position = self.progress.position();
        let running = stepping.running.get_or_insert_with(|| {
            let step = stepping.state.next_step();
            let gain = full * u128::from(step.steps) * u128::from(step.gradients) / u128::from(step.of);
            Running { step, left: step.length, end: position + gain, since: now }
        });
        running.since = now;
        let wall = scaled(running.left, factor).unwrap_or(Duration::from_nanos(u64::MAX));
        let nanos = u128::from(wall.as_nanos()).max(1);
        let speed = running.end.saturating_sub(position) / nanos;
        let step = running.step;
        let lost = speed * u128::from(step.of - step.gradients) / u128::from(step.gradients.max(1));
        self.progress.set_speed(speed.max(1), lost);
        if let Ok(end) = now.after(wall) {
            stepping.event = Some(queue.schedule_movable(end, class::DONE, Event::StepEnd));
        }
    }

    /// Starts a step, after those before it that are passed over; or goes on with the one under way.
    pub(super) fn start_step(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let is_new = self.stepping.as_ref().is_some_and(|stepping| stepping.running.is_none());
        let at = if is_new { self.pass_repeats(now, queue)? } else { now };
        self.run_step(at, queue);
        self.plan_work(at, queue)
    }

    /// Training stands still: the step under way keeps what is left of it.
    pub(super) fn pause_step(&mut self, now: Time, queue: &mut Queue) {
        let factor = self.slowness();
        let Some(stepping) = &mut self.stepping else { return };
        if let Some(id) = stepping.event.take() {
            queue.cancel(id);
            stepping.pass(now, factor);
        }
    }

    /// Counts what has been done of the step or the bundle under way, and gives the rest up.
    pub(super) fn close_step(&mut self, now: Time) -> u64 {
        let factor = self.slowness();
        let Some(stepping) = &mut self.stepping else { return 0 };
        if self.activity == Activity::Training {
            stepping.pass(now, factor);
        }
        let Some(running) = stepping.running.take() else { return 0 };
        let done = running.done();
        stepping.state.count_done(&running.step, done);
        done
    }

    /// The step under way is lost to a failure, which also forgets who was suspect.
    pub(super) fn drop_step(&mut self, now: Time) {
        self.close_step(now);
        if let Some(stepping) = &mut self.stepping {
            stepping.state.forget_streaks();
        }
    }

    pub(super) fn end_step(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(stepping) = &mut self.stepping else { return Ok(()) };
        stepping.event = None;
        let Some(running) = stepping.running.take() else { return Ok(()) };
        self.progress.snap(running.end);
        stepping.state.count_done(&running.step, running.step.steps);
        if let Some(feed) = &mut self.feed {
            feed.step_done();
            self.feed_on(now, queue)?;
        }
        if self.progress.is_done() {
            self.end(now, queue);
            return Ok(());
        }
        let Some(stepping) = &mut self.stepping else { return Ok(()) };
        stepping.state.watch_bundle(running.step.steps);
        let noticed = stepping.state.take_noticed();
        let alarms = running.step.false_alarms;
        if alarms > 0 {
            stepping.state.totals.count_false_alarms(alarms);
        }
        if noticed + alarms > 0 && self.respond(now, noticed, alarms, queue)? {
            return Ok(());
        }
        self.go_on(now, queue)
    }

    /// Does something about noticed ranks; returns whether training has stopped for it.
    fn respond(&mut self, now: Time, noticed: u32, alarms: u32, queue: &mut Queue) -> Result<bool, JobError> {
        let Some(stepping) = &mut self.stepping else { return Ok(false) };
        let state = &mut stepping.state;
        match state.ranks.response {
            Response::Wait | Response::Drop { .. } => Ok(false),
            Response::Stale { .. } => {
                state.let_noticed_be_late();
                Ok(false)
            }
            Response::Redistribute { pause } => {
                state.take_out_noticed(alarms);
                self.enter_for(now, Activity::Rebalancing, pause, queue)?;
                Ok(true)
            }
            Response::Evict => {
                state.replace_noticed();
                state.totals.evicted += u64::from(noticed + alarms);
                self.evict(now, noticed + alarms, queue)?;
                Ok(true)
            }
        }
    }

    /// Training goes on with the next step, unless it is time for a checkpoint.
    fn go_on(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let due = self.saver.as_ref().and_then(super::saver::Saver::next_position);
        if due.is_some_and(|due| due <= self.progress.position()) {
            if let Some(id) = self.work_reached.take() {
                queue.cancel(id);
            }
            self.request(now, queue)?;
            // A request that is skipped leaves training going on without a step; one that is dropped from the line
            // has let training go on with its next step already.
            let has_step = self.stepping.as_ref().is_some_and(|stepping| stepping.running.is_some());
            if self.activity != Activity::Training || has_step {
                return Ok(());
            }
        }
        if self.take_input(now, queue)? {
            self.start_step(now, queue)
        } else {
            self.enter(now, Activity::InputWait, queue);
            Ok(())
        }
    }

    /// A rank becomes slow.
    pub(super) fn slow_rank(&mut self, now: Time, fixed: bool, queue: &mut Queue) -> Result<(), JobError> {
        let Some(stepping) = &mut self.stepping else { return Ok(()) };
        let next = if fixed { stepping.state.next_fixed() } else { stepping.state.next_random(now) };
        if let Some(at) = next {
            queue.schedule(at, Class(0), Event::SlowRank { fixed });
        }
        self.cut_bundle(now, queue);
        let Some(stepping) = &mut self.stepping else { return Ok(()) };
        if let Some((id, Some(lasts))) = stepping.state.become_slow()
            && let Ok(end) = now.after(lasts)
        {
            queue.schedule(end, Class(0), Event::Heal(id));
        }
        self.restart_step(now, queue)
    }

    /// A slow rank is fast again.
    pub(super) fn heal_rank(&mut self, now: Time, id: u64, queue: &mut Queue) -> Result<(), JobError> {
        self.cut_bundle(now, queue);
        if let Some(stepping) = &mut self.stepping {
            stepping.state.heal(id);
        }
        self.restart_step(now, queue)
    }

    /// Ends a bundle of alike steps here, because the ones to come will not be alike. A single step takes
    /// its end as drawn.
    fn cut_bundle(&mut self, now: Time, queue: &mut Queue) {
        if self.stepping.as_ref().is_none_or(|stepping| stepping.state.varies()) {
            return;
        }
        let done = self.close_step(now);
        let Some(stepping) = &mut self.stepping else { return };
        stepping.state.watch_bundle(done);
        if let Some(id) = stepping.event.take() {
            queue.cancel(id);
        }
    }

    fn restart_step(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let idle = self.stepping.as_ref().is_some_and(|stepping| stepping.event.is_none());
        if self.activity == Activity::Training && idle {
            self.run_step(now, queue);
            return self.plan_work(now, queue);
        }
        Ok(())
    }
}
