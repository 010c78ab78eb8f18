//! Steps that repeat: when everything that bears on the steps stands as it stood some steps ago, what happens until
//! something else intervenes is known, and is passed over at once.
//!
//! That nothing is lost is a matter of comparison, not of belief: the state of the input, the ranks and the shared
//! storage at the start of a step, with all times counted from it, is held against that at the start of an earlier
//! step. Where they are equal, so are all steps from one to the other and from now on, until an event that is not
//! theirs: a request for a checkpoint, a failure, a change of speed, a stop of workers, the end. The last turns before
//! that are followed step by step again.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pipestep_engine::{Duration, EventId, Time};

use super::feeding::FeedState;
use super::packer::Packer;
use super::saver::Saver;
use super::storage::{StorageState, Use};
use super::{Event, JobWorld, Queue, class};
use crate::JobError;
use crate::input::InputTotals;
use crate::outcome::{Detail, StragglerTotals};
use crate::progress::Counters;

/// Where everything stood at the start of an earlier step.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// The state of that step; `None` if something has intervened since.
    mark: Option<Mark>,
    /// Steps started since then, and those after which the mark is set anew: ever more, so that a turn of any length
    /// is found in the end.
    steps: u64,
    next_mark: u64,
    /// The state at the start of the step that is looked at.
    state: Vec<u64>,
}

/// The start of a step and all that has been counted until then.
#[derive(Debug)]
struct Mark {
    at: Time,
    state: Vec<u64>,
    /// Since when the job had been training, which phase that was, and how many had been kept.
    since: Time,
    phases: u64,
    kept: usize,
    progress: Counters,
    input_wait: Duration,
    handed_out: u64,
    samples: u64,
    totals: InputTotals,
    ranks: StragglerTotals,
}

impl Repeats {
    /// Something has intervened: what was before says nothing about what comes.
    pub(super) fn forget(&mut self) {
        self.mark = None;
        (self.steps, self.next_mark) = (0, 1);
    }
}

impl Event {
    /// Whether it belongs to the steps and their input, and comes again with them.
    const fn is_of_steps(self) -> bool {
        matches!(
            self,
            Self::Delivery
                | Self::InputRead(_)
                | Self::Copied
                | Self::StorageEnd
                | Self::StepEnd
                | Self::WorkReached
        )
    }
}

impl JobWorld<'_> {
    /// Notes whether an event lets steps go on repeating.
    pub(super) fn note_event(&mut self, event: Event) {
        if !event.is_of_steps() {
            self.repeats.forget();
        }
    }

    /// A step is about to start. Passes over what repeats from here on, and returns the instant at which the step
    /// starts then.
    pub(super) fn pass_repeats(&mut self, now: Time, queue: &mut Queue) -> Result<Time, JobError> {
        if !self.skips || !self.write_state(now, queue) {
            return Ok(now);
        }
        let repeats = &self.repeats;
        let is_turn = repeats.mark.as_ref().is_some_and(|mark| {
            // A phase that ended must have been one of a turn; otherwise training has gone on all the time.
            let same_phase = mark.phases == self.phases;
            let as_long = now.since(self.since) == mark.at.since(mark.since);
            mark.state == repeats.state && (same_phase || as_long)
        });
        let at = if is_turn { self.pass_turns(now, queue)? } else { now };
        if at > now {
            self.repeats.forget();
        } else if self.repeats.mark.is_none() || self.repeats.steps >= self.repeats.next_mark {
            self.set_mark(now);
        }
        self.repeats.steps += 1;
        Ok(at)
    }

    fn set_mark(&mut self, now: Time) {
        let (Some(feed), Some(stepping)) = (&self.feed, &self.stepping) else { return };
        let repeats = &mut self.repeats;
        repeats.next_mark = 2 * repeats.next_mark.max(1);
        repeats.steps = 0;
        repeats.mark = Some(Mark {
            at: now,
            state: repeats.state.clone(),
            since: self.since,
            phases: self.phases,
            kept: self.timeline.kept(),
            progress: self.progress.counters(),
            input_wait: self.lost.input_wait,
            handed_out: feed.handed_out,
            samples: feed.packer.as_ref().map_or(0, Packer::position),
            totals: feed.totals,
            ranks: stepping.state.totals,
        });
        if let Some(feed) = &mut self.feed {
            feed.curve.mark(now);
        }
    }

    /// Writes down everything that bears on the steps to come, with times counted from now; returns whether steps
    /// can repeat at all.
    fn write_state(&mut self, now: Time, queue: &Queue) -> bool {
        let (Some(feed), Some(stepping)) = (&self.feed, &self.stepping) else { return false };
        if stepping.state.varies() || feed.input.make.fixed().is_none() || self.storage.is_saving() {
            return false;
        }
        let state = &mut self.repeats.state;
        state.clear();
        if !feed.write_state(now, state) {
            return false;
        }
        self.storage.write_state(now, feed, state);
        stepping.state.write_state(state);
        // Of two things at one instant the one that was planned first comes first.
        let mut pending: Vec<(Time, EventId, u64)> =
            queue.pending().filter_map(|(at, id, event)| Some((at, id, event.kind(feed)?))).collect();
        pending.sort_unstable();
        state.extend(pending.iter().flat_map(|&(at, _, kind)| [at.since(now).as_nanos(), kind]));
        true
    }

    /// Passes over as many turns as can be; returns the instant after them.
    fn pass_turns(&mut self, now: Time, queue: &mut Queue) -> Result<Time, JobError> {
        let Some(turns) = self.free_turns(now, queue) else { return Ok(now) };
        let Some(mark) = self.repeats.mark.take() else { return Ok(now) };
        let passed = now.since(mark.at).times(turns)?;
        let at = now.after(passed)?;
        if self.phases != mark.phases {
            if self.detail == Detail::Full {
                self.timeline.repeat(mark.kept, turns);
            }
            self.since = self.since.after(passed)?;
        }
        self.progress.repeat(&mark.progress, turns, at);
        let waited = self.lost.input_wait.as_nanos() - mark.input_wait.as_nanos();
        self.lost.input_wait = self.lost.input_wait.plus(Duration::from_nanos(waited).times(turns)?)?;
        if let Some(stepping) = &mut self.stepping {
            stepping.state.totals.repeat(&mark.ranks, turns);
        }
        if let Some(feed) = &mut self.feed {
            feed.repeat(&mark, turns);
            feed.curve.repeat(now, at);
        }
        self.move_on(passed, queue)?;
        Ok(at)
    }

    /// How many turns can be passed over before anything intervenes; `None` if there is none.
    fn free_turns(&self, now: Time, queue: &Queue) -> Option<u64> {
        let mark = self.repeats.mark.as_ref()?;
        let feed = self.feed.as_ref()?;
        let period = now.since(mark.at);
        let is_kept = self.detail == Detail::Full && self.phases != mark.phases;
        if period == Duration::ZERO || (is_kept && !self.timeline.is_turn(mark.kept, period, self.activity)) {
            return None;
        }
        let gain = self.progress.position() - mark.progress.position();
        let target = self.saver.as_ref().and_then(Saver::next_position);
        let target = target.map_or(self.progress.end(), |target| target.min(self.progress.end()));
        // The last turn before a request, the end or the cache is followed.
        let work = target.checked_sub(self.progress.position() + 1)? / gain.max(1);
        let mut turns = u64::try_from(work).unwrap_or(u64::MAX).checked_sub(1)?;
        if let Some(cache) = feed.input.read.and_then(|read| read.cache).filter(|_| !feed.is_cached()) {
            let each = (feed.handed_out - mark.handed_out).max(1);
            let left = cache.epoch_items.checked_sub(feed.handed_out + 1)?;
            turns = turns.min((left / each).checked_sub(1)?);
        }
        // What is under way then must be over before the next event that is not of the steps.
        let (mut latest, mut next): (_, Option<Time>) = (feed.latest(), None);
        for (at, _, event) in queue.pending() {
            if event.is_of_steps() {
                latest = latest.max(Some(at));
            } else if next.is_none_or(|next| at < next) {
                next = Some(at);
            }
        }
        if let Some(next) = next {
            let latest = latest.unwrap_or(now).max(now);
            let free = next.as_nanos().checked_sub(latest.as_nanos() + 1)?;
            turns = turns.min(free / period.as_nanos());
        }
        (turns > 0).then_some(turns)
    }

    /// Moves everything that is under way on by a length of time.
    fn move_on(&mut self, passed: Duration, queue: &mut Queue) -> Result<(), JobError> {
        if let Some(id) = self.work_reached.take() {
            queue.cancel(id);
        }
        let mut pending: Vec<(Time, EventId, Event)> = queue
            .pending()
            .filter(|(_, _, event)| event.is_of_steps())
            .map(|(at, id, event)| (at, id, *event))
            .collect();
        pending.sort_unstable_by_key(|&(at, id, _)| (at, id));
        self.storage.pass_over(passed)?;
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.move_on(passed)?;
        for (at, id, event) in pending {
            queue.cancel(id);
            let at = at.after(passed)?;
            let id = queue.schedule_movable(at, class::COMMIT, event);
            match event {
                Event::Delivery => feed.next_made = Some((at, id)),
                Event::Copied => feed.copying = Some((at, id)),
                Event::InputRead(number) => {
                    let reading = feed.reading.iter_mut().find(|delivery| delivery.number == number);
                    if let Some(delivery) = reading {
                        delivery.end = Some((at, id));
                    }
                }
                Event::StorageEnd => self.storage.set_event(id),
                _ => {}
            }
        }
        Ok(())
    }
}

impl Event {
    /// Which event of the input it is, with the delivery counted back from the newest. Between two steps there is
    /// no other that comes again.
    const fn kind(self, feed: &FeedState<'_>) -> Option<u64> {
        match self {
            Self::Delivery => Some(0),
            Self::Copied => Some(1),
            Self::StorageEnd => Some(2),
            Self::InputRead(number) => Some(3 + (feed.next_delivery - number)),
            _ => None,
        }
    }
}

impl FeedState<'_> {
    /// Writes down the state of the input; returns whether it can come again.
    fn write_state(&self, now: Time, state: &mut Vec<u64>) -> bool {
        state.extend([
            self.buffered,
            u64::from(self.on_device),
            u64::from(self.is_cached()),
            self.copying.map_or(u64::MAX, |(end, _)| end.since(now).as_nanos()),
        ]);
        let mut making: Vec<(u64, u64)> = self
            .making
            .iter()
            .map(|&Reverse((end, number))| (end.since(now).as_nanos(), self.next_delivery - number))
            .collect();
        making.sort_unstable();
        state.push(making.len() as u64);
        state.extend(making.iter().flat_map(|&(end, back)| [end, back]));
        for deliveries in [self.reading.len(), self.read.len()] {
            state.push(deliveries as u64);
        }
        for delivery in self.reading.iter().chain(&self.read) {
            let end = delivery.end.map_or(u64::MAX, |(end, _)| end.as_nanos().saturating_sub(now.as_nanos()));
            state.extend([self.next_delivery - delivery.number, delivery.cpu.as_nanos(), end]);
        }
        let Some(packer) = &self.packer else { return true };
        let Some(packing) = packer.state() else { return false };
        state.extend(packing.into_iter().flat_map(|(behind, offset)| [behind, offset]));
        true
    }

    /// The end of what takes longest of all that is under way.
    fn latest(&self) -> Option<Time> {
        self.making.iter().map(|&Reverse((end, _))| end).max()
    }

    /// Counts so many turns more.
    fn repeat(&mut self, mark: &Mark, turns: u64) {
        let more = |now: &mut u64, then: u64| *now += (*now - then) * turns;
        more(&mut self.handed_out, mark.handed_out);
        let steps = self.totals.steps - mark.totals.steps;
        self.trained += steps * turns * u64::from(self.input.items_per_step);
        more(&mut self.totals.steps, mark.totals.steps);
        more(&mut self.totals.steps_waited, mark.totals.steps_waited);
        more(&mut self.totals.handed_out, mark.totals.handed_out);
        let (packed, then) = (&mut self.totals.packed, &mark.totals.packed);
        more(&mut packed.samples, then.samples);
        more(&mut packed.tokens, then.tokens);
        more(&mut packed.slots, then.slots);
        if let Some(packer) = &mut self.packer {
            packer.move_on((packer.position() - mark.samples) * turns);
        }
    }

    /// Moves deliveries on by a length of time. They keep their numbers, of which only the order matters.
    fn move_on(&mut self, passed: Duration) -> Result<(), JobError> {
        let moved =
            self.making.drain().map(|Reverse((end, number))| Ok(Reverse((end.after(passed)?, number))));
        self.making = moved.collect::<Result<BinaryHeap<_>, JobError>>()?;
        Ok(())
    }
}

impl StragglerTotals {
    /// Counts so many turns more of what was counted since then.
    fn repeat(&mut self, then: &Self, turns: u64) {
        self.steps += (self.steps - then.steps) * turns;
        self.gradients_lost += (self.gradients_lost - then.gradients_lost) * turns;
    }
}

impl StorageState {
    /// Writes down what uses the storage and how much of it each still needs.
    fn write_state(&self, now: Time, feed: &FeedState<'_>, state: &mut Vec<u64>) {
        let (since, uses) = self.uses();
        let mut any = false;
        for (what, left) in uses {
            any = true;
            let back = match what {
                Use::Input(number) => feed.next_delivery - number,
                Use::Write | Use::Restore => u64::MAX,
            };
            state.extend([back, (left >> 64) as u64, left as u64]);
        }
        state.push(if any { now.since(since).as_nanos() } else { 0 });
    }
}
