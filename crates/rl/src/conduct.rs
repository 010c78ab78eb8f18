//! The conduct of rounds: when a rollout is over, when the next one opens, and what the trainer waits for.
//!
//! One idea: all modes but `async` are rounds of launches that close when the batch is certain; they differ in
//! what must have happened before the next one opens. `async` has no rounds: its launches are bounded by
//! staleness alone.

use pipestep_engine::{EventQueue, Time};

use crate::RlError;
use crate::fleet::Hold;
use crate::group::Fate;
use crate::inputs::{Keep, Mode, Placement, ScoringStart};
use crate::record::{Recorder, StintEnd};
use crate::response::Sample;
use crate::tally::Pace;
use crate::train::TrainerPhase;
use crate::turns::Shared;
use crate::weights::Phase;
use crate::world::{ENDS, Event, Queue, Rounds};

impl<R: Recorder> Rounds<'_, R> {
    /// Schedules the opening of the first round, and the faults.
    pub(crate) fn begin(&mut self, queue: &mut Queue) -> Result<(), RlError> {
        queue.schedule(Time::ZERO, ENDS, Event::Opens);
        self.schedule_faults(queue)
    }

    /// Every choice of an instant that concerns rounds.
    pub(crate) fn conduct(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.route_ended(now)?;
        if self.down {
            return Ok(());
        }
        if !self.is_async() && !self.closed && self.rollout_open {
            self.close_or_refill(now, queue)?;
        }
        if self.inputs.mode == Mode::OneStepOff {
            let met = self.closed && !self.update_allowed && self.weights.is_idle();
            if met && !self.weights.due {
                // The first batch, or one whose predecessor was lost: there are no weights to wait for.
                self.next_round(now, queue)?;
            }
        }
        self.move_weights(now, queue)
    }

    /// Sends the responses that ended at this instant on their way, in order of launch.
    fn route_ended(&mut self, now: Time) -> Result<(), RlError> {
        if self.just_ended.is_empty() {
            return Ok(());
        }
        let mut ended = std::mem::take(&mut self.just_ended);
        ended.sort_unstable_by_key(|sample| sample.number);
        for sample in ended.drain(..) {
            self.route(now, sample)?;
        }
        self.just_ended = ended;
        Ok(())
    }

    fn route(&mut self, now: Time, sample: Sample) -> Result<(), RlError> {
        let (number, responses) = (sample.group, self.inputs.group.responses);
        let group = self.groups.get(number);
        if let Some(fate) = group.gone {
            self.drop_sample(sample, fate);
            return Ok(());
        }
        if self.version_too_old(group.oldest) {
            let dropped = self.drop_group(now, number, Fate::Stale) + 1;
            self.drop_sample(sample, Fate::Stale);
            self.purge_members();
            return self.throw_away(dropped);
        }
        if group.taken == responses || group.carried {
            self.drop_sample(sample, Fate::Surplus);
            return Ok(());
        }
        if group.taken + 1 == responses && !self.completed(now, sample) {
            return Ok(());
        }
        self.groups.at(number).taken += 1;
        if self.inputs.scoring_start == ScoringStart::WholeBatch && !self.is_async() {
            self.gate.push(sample);
            return Ok(());
        }
        self.enter_scoring(sample)
    }

    /// The last sample that a group needs has ended. Returns whether it goes on to be scored: not if the batch
    /// is full without this group.
    fn completed(&mut self, now: Time, sample: Sample) -> bool {
        let (number, responses) = (sample.group, self.inputs.group.responses);
        if !self.is_async() && self.inputs.keep == Keep::All {
            if self.credit >= u64::from(self.inputs.batch) {
                if self.is_partial() {
                    self.groups.at(number).carried = true;
                    self.carried.push(sample);
                } else {
                    self.drop_group(now, number, Fate::Surplus);
                    self.drop_sample(sample, Fate::Surplus);
                    self.purge_members();
                }
                return false;
            }
            self.credit += u64::from(responses);
            self.groups.at(number).credited = true;
        }
        self.groups.unscored += 1;
        self.tally.counts.aborted += self.abort_members(now, number, StintEnd::Aborted);
        true
    }

    /// As [`Self::purge`], where a group can have other samples on their way at all.
    fn purge_members(&mut self) {
        if self.inputs.group.responses > 1 {
            self.purge();
        }
    }

    /// Closes the rollout if its batch is certain; launches more if it has run out of samples short of that.
    fn close_or_refill(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        let batch = u64::from(self.inputs.batch);
        if self.credit >= batch {
            return self.close_round(now, queue);
        }
        if self.open > 0 || self.fresh > 0 {
            return Ok(());
        }
        if self.inputs.keep != Keep::All {
            self.open_gate()?;
            if self.scoring > 0 {
                return Ok(());
            }
            if self.credit >= batch {
                return self.close_round(now, queue);
            }
        }
        let short = (batch - self.credit).div_ceil(u64::from(self.inputs.group.responses));
        self.fresh = (short * u64::from(self.inputs.launch)).div_ceil(batch);
        Ok(())
    }

    fn close_round(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.closed = true;
        self.rollout_open = false;
        self.fresh = 0;
        self.tally.rollout_over(self.round_opened, now);
        if self.is_partial() {
            for engine in 0..self.inputs.rollout.engines {
                self.fleet.hold(now, engine, Hold::RoundOver, &mut self.responses);
            }
            self.even_out(None);
        } else {
            self.abort_rest(now);
        }
        self.open_gate()?;
        if matches!(self.inputs.placement, Placement::Colocated(_)) {
            self.begin_switch(now, Phase::Training, queue)?;
        }
        Ok(())
    }

    /// Ends what a full batch has no use for.
    fn abort_rest(&mut self, now: Time) {
        for number in self.groups.unsettled() {
            self.drop_group(now, number, Fate::Surplus);
        }
        self.pending.clear();
        self.purge();
    }

    fn open_gate(&mut self) -> Result<(), RlError> {
        for sample in std::mem::take(&mut self.gate) {
            self.enter_scoring(sample)?;
        }
        Ok(())
    }

    /// The round is over, and its update if there was one: the next rollout opens.
    pub(crate) fn next_round(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.settle_round_owed(now);
        if self.done {
            return Ok(());
        }
        self.round += 1;
        self.open_round(now, queue)
    }

    /// Books the update that has ended.
    pub(crate) fn settle_round_owed(&mut self, now: Time) {
        if std::mem::take(&mut self.round_owed) {
            let levels = self.levels(now);
            self.measured = self.tally.end_round(now, levels, self.inputs.rounds);
            self.done = self.measured && self.turns.is_none();
        }
    }

    pub(crate) fn open_round(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.closed = false;
        self.rollout_open = true;
        self.round_opened = if self.has(Shared::Engines) { now } else { Time::MAX };
        self.drop_too_old(now)?;
        // What the last round had too much of is there already.
        self.credit = match self.inputs.keep {
            Keep::Evenly(_) | Keep::Randomly(_) if self.is_partial() => self.ready.len() as u64,
            _ => 0,
        };
        let responses = u64::from(self.inputs.group.responses);
        let begun = self.groups.open + self.credit / responses + self.carried.len() as u64;
        self.fresh = (u64::from(self.inputs.launch) / responses).saturating_sub(begun);
        for sample in &self.carried {
            self.groups.at(sample.group).carried = false;
        }
        self.just_ended.append(&mut self.carried);
        let lost = std::mem::take(&mut self.batch_lost);
        self.update_allowed = if self.inputs.mode == Mode::OneStepOff {
            self.round > 0 && !lost
        } else {
            self.inputs.placement == Placement::Separate
        };
        for engine in 0..self.inputs.rollout.engines {
            if self.fleet.engines[engine as usize].is_held(Hold::RoundOver) {
                let waiting = self.fleet.release(now, engine, Hold::RoundOver);
                self.let_in(now, engine, waiting, queue)?;
            }
        }
        Ok(())
    }

    /// Throws away what would be too old for the update of the round that opens.
    fn drop_too_old(&mut self, now: Time) -> Result<(), RlError> {
        if self.inputs.discard_older_than.is_none() || !self.is_partial() {
            return Ok(());
        }
        for number in self.groups.unsettled() {
            let group = self.groups.get(number);
            let listed = self.responses.listed(group.first);
            let running = listed.map(|place| self.responses.read(place));
            let versions = running.filter(|response| response.launched != Time::MAX).map(|one| one.version);
            let oldest = versions.min().unwrap_or(u32::MAX).min(group.oldest);
            if self.version_too_old(oldest) {
                let dropped = self.drop_group(now, number, Fate::Stale);
                self.throw_away(dropped)?;
            }
        }
        self.purge();
        self.drop_old_ready()
    }

    /// Throws away scored groups that the next update could not use.
    pub(crate) fn drop_old_ready(&mut self) -> Result<(), RlError> {
        let responses = self.inputs.group.responses as usize;
        for _ in 0..self.ready.len() / responses {
            if self.ready.iter().take(responses).any(|sample| self.version_too_old(sample.version)) {
                let dropped: Vec<Sample> = self.ready.drain(..responses).collect();
                self.tally.counts.drop_ended(Fate::Stale, &dropped, &mut self.record);
                self.launched -= responses as u64;
                self.throw_away(responses as u64)?;
            } else {
                self.ready.rotate_left(responses);
            }
        }
        Ok(())
    }

    /// Whether the weights of this version are too old for the next update.
    pub(crate) fn version_too_old(&self, version: u32) -> bool {
        let limit = self.inputs.discard_older_than;
        limit.is_some_and(|limit| self.trained.saturating_sub(version) > limit)
    }

    /// Counts samples thrown away; refuses to go on if that is all that ever happens.
    pub(crate) fn throw_away(&mut self, samples: u64) -> Result<(), RlError> {
        self.resolved += samples;
        if self.resolved <= self.patience() { Ok(()) } else { Err(self.no_progress()) }
    }

    /// Samples that may be thrown away between two updates before that counts as endless.
    fn patience(&self) -> u64 {
        let batch = u64::from(self.inputs.launch.max(self.inputs.batch));
        let needed = match self.inputs.keep {
            Keep::All => batch,
            Keep::Evenly(share) | Keep::Randomly(share) => {
                batch * u64::from(share.denominator()) / u64::from(share.numerator().max(1))
            }
        };
        needed.saturating_mul(100).saturating_add(100_000)
    }

    pub(crate) const fn is_async(&self) -> bool {
        matches!(self.inputs.mode, Mode::Async(_))
    }

    pub(crate) const fn is_partial(&self) -> bool {
        matches!(self.inputs.mode, Mode::Partial(_))
    }

    /// Whether the responses to another prompt may be launched.
    pub(crate) fn may_launch(&self) -> bool {
        match self.async_rule() {
            None => self.fresh > 0,
            Some(rule) => {
                let window = u64::from(self.inputs.batch) * u64::from(rule.sync_every);
                let batches = u64::from(self.weights.syncs) + 1;
                let bound = window.saturating_mul(batches).saturating_add(rule.staleness.floor_of(window));
                self.launched.saturating_add(u64::from(self.inputs.group.responses)) <= bound
            }
        }
    }

    /// What the trainer does or waits for.
    pub(crate) fn pace(&self) -> Pace {
        if self.down {
            Pace::Down
        } else if self.trainer.phase != TrainerPhase::Idle {
            Pace::Update
        } else if self.weights.blocks_trainer() {
            Pace::Sync
        } else if self.switching.is_some() {
            Pace::Switch
        } else if self.waits_for_turn() {
            Pace::Turn
        } else if self.trainer.waits_for_handoff() {
            Pace::Handoff
        } else if self.waits_for_scores() {
            Pace::ScoringWait
        } else {
            Pace::RolloutWait
        }
    }

    /// Whether the trainer waits for samples that have all been generated.
    fn waits_for_scores(&self) -> bool {
        let exhausted = self.open == 0 && self.fresh == 0;
        match self.inputs.mode {
            Mode::OneStepOff => self.update_allowed || exhausted,
            Mode::Sync | Mode::Partial(_) => self.closed || exhausted,
            Mode::Stream | Mode::Async(_) => {
                let part = u64::from(self.next_need());
                let unscored = self.groups.unscored * u64::from(self.inputs.group.responses);
                unscored > 0 && unscored + self.ready.len() as u64 >= part
            }
        }
    }
}
