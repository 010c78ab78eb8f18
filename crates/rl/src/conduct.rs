//! The conduct of rounds: when a rollout is over, when the next one opens, and what the trainer waits for.
//!
//! One idea: all modes but `async` are rounds of launches that close when the batch is certain; they differ in
//! what must have happened before the next one opens. `async` has no rounds: its launches are bounded by
//! staleness alone.

use pipestep_engine::{EventQueue, Time};

use crate::RlError;
use crate::fleet::Hold;
use crate::inputs::{Keep, Mode, Placement, ScoringStart};
use crate::record::{Recorder, StintEnd};
use crate::response::Sample;
use crate::tally::Pace;
use crate::train::TrainerPhase;
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
        self.route_ended()?;
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
    fn route_ended(&mut self) -> Result<(), RlError> {
        if self.just_ended.is_empty() {
            return Ok(());
        }
        let mut ended = std::mem::take(&mut self.just_ended);
        ended.sort_unstable_by_key(|sample| sample.number);
        for sample in ended.drain(..) {
            self.route(sample)?;
        }
        self.just_ended = ended;
        Ok(())
    }

    fn route(&mut self, sample: Sample) -> Result<(), RlError> {
        if self.too_old(sample) {
            return self.discard_old();
        }
        if self.is_async() {
            return self.enter_scoring(sample);
        }
        if self.inputs.keep == Keep::All {
            if self.credit >= u64::from(self.inputs.batch) {
                if self.is_partial() {
                    self.carried.push(sample);
                } else {
                    self.tally.counts.surplus += 1;
                    self.forget_launch();
                }
                return Ok(());
            }
            self.credit += 1;
        }
        match self.inputs.scoring_start {
            ScoringStart::WholeBatch => {
                self.gate.push(sample);
                Ok(())
            }
            ScoringStart::AsFinished => self.enter_scoring(sample),
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
        let short = batch - self.credit;
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
        for place in self.responses.live() {
            if self.responses.get(self.responses.ticket(place)).is_some() {
                self.take_out_sample(now, place, StintEnd::Aborted);
                self.tally.counts.aborted += 1;
            }
        }
        self.pending.clear();
        if self.inputs.keep == Keep::All {
            return;
        }
        let round = self.round;
        let mut dropped = self.gate.len() as u64;
        self.gate.clear();
        for pool in &mut self.pools {
            let before = pool.line.len();
            pool.line.retain(|sample| sample.round != round);
            let gone = (before - pool.line.len()) as u64;
            self.scoring -= gone;
            dropped += gone;
        }
        self.tally.counts.surplus += dropped;
        self.launched -= dropped;
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
            self.done = self.tally.end_round(now, levels, self.inputs.rounds);
        }
    }

    pub(crate) fn open_round(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.closed = false;
        self.rollout_open = true;
        self.round_opened = now;
        self.drop_too_old(now)?;
        self.credit = if self.inputs.keep == Keep::All {
            0
        } else if self.is_partial() {
            self.ready.len() as u64
        } else {
            0
        };
        let carried = self.carried.len() as u64;
        self.just_ended.append(&mut self.carried);
        self.fresh = u64::from(self.inputs.launch).saturating_sub(self.open + self.credit + carried);
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
        for place in self.responses.live() {
            let ticket = self.responses.ticket(place);
            if let Some(response) = self.responses.get(ticket).copied()
                && response.launched != Time::MAX
                && self.version_too_old(response.version)
            {
                self.take_out_sample(now, place, StintEnd::Aborted);
                self.tally.counts.stale += 1;
                self.throw_away()?;
            }
        }
        self.drop_old_ready()
    }

    /// Throws away scored samples that the next update could not use.
    pub(crate) fn drop_old_ready(&mut self) -> Result<(), RlError> {
        for _ in 0..self.ready.len() {
            if let Some(sample) = self.ready.pop_front() {
                if self.too_old(sample) {
                    self.discard_old()?;
                } else {
                    self.ready.push_back(sample);
                }
            }
        }
        Ok(())
    }

    /// Whether the weights of this version are too old for the next update.
    pub(crate) fn version_too_old(&self, version: u32) -> bool {
        let limit = self.inputs.discard_older_than;
        limit.is_some_and(|limit| self.trained.saturating_sub(version) > limit)
    }

    pub(crate) fn too_old(&self, sample: Sample) -> bool {
        self.version_too_old(sample.version)
    }

    pub(crate) fn discard_old(&mut self) -> Result<(), RlError> {
        self.tally.counts.stale += 1;
        self.forget_launch();
        self.throw_away()
    }

    /// Counts a sample thrown away; refuses to go on if that is all that ever happens.
    pub(crate) fn throw_away(&mut self) -> Result<(), RlError> {
        self.resolved += 1;
        if self.resolved <= self.patience() {
            return Ok(());
        }
        let counts = &self.tally.counts;
        Err(RlError::NoProgress {
            resolved: self.resolved,
            reason: format!(
                "{} were interrupted, {} not kept, {} too old for an update, and engines failed {} times",
                counts.interrupted, counts.filtered, counts.stale, counts.engine_failures
            ),
        })
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

    /// Whether a fresh sample may be launched.
    pub(crate) fn may_launch(&self) -> bool {
        match self.async_rule() {
            None => self.fresh > 0,
            Some(rule) => {
                let window = u64::from(self.inputs.batch) * u64::from(rule.sync_every);
                let batches = u64::from(self.weights.syncs) + 1;
                let bound = window.saturating_mul(batches).saturating_add(rule.staleness.floor_of(window));
                self.launched < bound
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
                self.scoring > 0 && self.scoring + self.ready.len() as u64 >= part
            }
        }
    }
}
