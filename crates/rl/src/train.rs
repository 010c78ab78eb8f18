//! Scoring and update: from a finished response to a finished update.
//!
//! One idea: samples pass through the pools in order, are kept or not, and wait; the trainer takes what its
//! next mini-step (in stream mode) or the whole update (elsewhere) needs as soon as that is there.

use pipestep_engine::{Bytes, EventQueue, Overflow, Time};
use rand::RngExt as _;

use crate::RlError;
use crate::group::Fate;
use crate::inputs::{Keep, Mode};
use crate::meter::Meter;
use crate::record::{Recorder, Row, SpanKind, bar};
use crate::response::Sample;
use crate::tally::Levels;
use crate::turns::Shared;
use crate::world::{CONTROL, ENDS, Event, Queue, Rounds};

/// What the trainer is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrainerPhase {
    Idle,
    MiniStep,
    Finish,
}

/// The trainer and the samples it has taken.
#[derive(Clone, Debug)]
pub(crate) struct Trainer {
    pub(crate) phase: TrainerPhase,
    /// When the phase began.
    since: Time,
    /// Samples of each mini-step.
    sizes: Vec<u32>,
    /// Mini-steps whose samples are taken.
    pub(crate) taken: u32,
    /// Mini-steps whose samples have arrived.
    pub(crate) handed: u32,
    /// Mini-steps done.
    done: u32,
    pub(crate) samples: Vec<Sample>,
    /// Until when the link that brings routing records is busy.
    link_busy: Time,
    pub(crate) busy: Meter,
}

impl Trainer {
    pub(crate) fn new(batch: u32, mini_steps: u32) -> Self {
        let sizes =
            (0..mini_steps).map(|step| batch / mini_steps + u32::from(step < batch % mini_steps)).collect();
        Self {
            phase: TrainerPhase::Idle,
            since: Time::ZERO,
            sizes,
            taken: 0,
            handed: 0,
            done: 0,
            samples: Vec::new(),
            link_busy: Time::ZERO,
            busy: Meter::default(),
        }
    }

    const fn parts(&self) -> u32 {
        self.sizes.len() as u32
    }

    /// Whether samples are under way and nothing else is to do.
    pub(crate) const fn waits_for_handoff(&self) -> bool {
        self.taken > self.handed
    }

    /// Throws away what was done of this update; returns the mini-steps whose samples must arrive again.
    pub(crate) fn start_over(&mut self, now: Time) -> u32 {
        if self.phase != TrainerPhase::Idle {
            self.busy.sub(now, 1);
        }
        self.phase = TrainerPhase::Idle;
        (self.handed, self.done, self.link_busy) = (0, 0, now);
        self.taken
    }

    /// Forgets the samples as well.
    pub(crate) fn drop_samples(&mut self) {
        self.samples.clear();
        self.taken = 0;
    }
}

impl<R: Recorder> Rounds<'_, R> {
    pub(crate) fn enter_scoring(&mut self, sample: Sample) -> Result<(), RlError> {
        self.scoring += 1;
        match self.pools.first_mut() {
            Some(pool) => pool.line.push_back(sample),
            None => self.judge(sample)?,
        }
        Ok(())
    }

    /// Lets free workers start on waiting samples.
    pub(crate) fn serve_pools(&mut self, now: Time, queue: &mut Queue) -> Result<(), Overflow> {
        for (index, pool) in self.pools.iter_mut().enumerate() {
            while let Some((worker, sample)) = pool.take(now) {
                let tokens = self.inputs.rollout.prompt_tokens.saturating_add(sample.tokens);
                let stage = &self.inputs.scoring[index];
                let time = self.costs.scoring(stage, index, sample.number, tokens)?;
                let (pool, epoch) = (index as u32, pool.epoch);
                queue.schedule(now.after(time)?, ENDS, Event::Scored { pool, worker, epoch });
            }
        }
        Ok(())
    }

    /// A worker has scored its sample, which goes to the next pool or has passed them all.
    pub(crate) fn scored_by(&mut self, now: Time, pool: u32, worker: u32, epoch: u32) -> Result<(), RlError> {
        let Some((sample, since)) = self.pools[pool as usize].finish(now, worker, epoch) else {
            return Ok(());
        };
        let kind = SpanKind::Scoring { sample: sample.number };
        bar(&mut self.record, Row::Worker { pool, worker }, kind, since, now);
        match self.pools.get_mut(pool as usize + 1) {
            Some(next) => next.line.push_back(sample),
            None => self.judge(sample)?,
        }
        Ok(())
    }

    /// A sample is scored: the group is decided about when all that it needs are.
    fn judge(&mut self, sample: Sample) -> Result<(), RlError> {
        self.scoring -= 1;
        let number = sample.group;
        if let Some(fate) = self.groups.get(number).gone {
            self.drop_sample(sample, fate);
            return Ok(());
        }
        let group = self.groups.at(number);
        group.under_way -= 1;
        let is_single = self.inputs.group.responses == 1;
        if !is_single {
            group.scored.push(sample);
            if group.scored.len() < self.inputs.group.responses as usize {
                return Ok(());
            }
        }
        self.groups.unscored -= 1;
        let fate = self.decide(number);
        let responses = u64::from(self.inputs.group.responses);
        let group = self.groups.at(number);
        if let Some(fate) = fate {
            let all = if is_single { &[sample][..] } else { &group.scored };
            self.tally.counts.drop_ended(fate, all, &mut self.record);
            group.scored.clear();
            group.gone = Some(fate);
            self.groups.forget(number);
            self.launched -= responses;
            return if fate == Fate::Surplus { Ok(()) } else { self.throw_away(responses) };
        }
        if is_single {
            self.ready.push_back(sample);
        } else {
            self.ready.extend(group.scored.drain(..));
        }
        // What ends of it later is not needed.
        group.gone = Some(Fate::Surplus);
        self.groups.forget(number);
        if self.is_filtered_round() {
            self.credit += responses;
        }
        Ok(())
    }

    /// Why a group that is scored is not trained on; `None` if it is.
    fn decide(&mut self, number: u32) -> Option<Fate> {
        let index = self.scored;
        self.scored += 1;
        let kept = match self.inputs.keep {
            Keep::All => true,
            Keep::Evenly(share) => share.floor_of(index + 1) > share.floor_of(index),
            Keep::Randomly(share) => {
                self.random.keep.random_range(0..share.denominator()) < share.numerator()
            }
        };
        if !kept {
            return Some(Fate::Filtered);
        }
        let filtered_round = self.is_filtered_round();
        if (filtered_round || self.is_async()) && self.version_too_old(self.groups.get(number).oldest) {
            return Some(Fate::Stale);
        }
        let full = self.credit >= u64::from(self.inputs.batch);
        (filtered_round && !self.is_partial() && full).then_some(Fate::Surplus)
    }

    /// Whether the batch of a round is certain only when its samples are scored.
    fn is_filtered_round(&self) -> bool {
        self.inputs.keep != Keep::All && !self.is_async()
    }

    /// Samples that the trainer takes next.
    pub(crate) fn next_need(&self) -> u32 {
        match self.inputs.mode {
            Mode::Stream => self.trainer.sizes.get(self.trainer.taken as usize).copied().unwrap_or(0),
            _ => self.inputs.batch,
        }
    }

    /// Takes samples, and starts the next mini-step or the end of the update if the trainer is free.
    pub(crate) fn train(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if self.down || !self.update_allowed || self.weights.blocks_trainer() || !self.has(Shared::Trainer) {
            return Ok(());
        }
        self.take_samples(now, queue)?;
        let trainer = &self.trainer;
        if trainer.phase != TrainerPhase::Idle {
            return Ok(());
        }
        if trainer.done < trainer.handed {
            let step = trainer.done;
            let first: u32 = trainer.sizes[..step as usize].iter().sum();
            let size = trainer.sizes[step as usize];
            let own = &trainer.samples[first as usize..(first + size) as usize];
            let prompts = u64::from(size).saturating_mul(self.inputs.rollout.prompt_tokens);
            let tokens = own.iter().fold(prompts, |sum, sample| sum.saturating_add(sample.tokens));
            let time = self.costs.mini_step(&self.inputs.update, step, tokens)?;
            self.occupy(now, TrainerPhase::MiniStep);
            let era = self.era;
            queue.schedule(now.after(time)?, CONTROL, Event::StepDone { era });
        } else if trainer.done == trainer.parts() {
            self.occupy(now, TrainerPhase::Finish);
            let era = self.era;
            queue.schedule(now.after(self.costs.finish)?, CONTROL, Event::UpdateDone { era });
        }
        Ok(())
    }

    fn take_samples(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        let mut parts = 0;
        while self.trainer.taken < self.trainer.parts() {
            let need = self.next_need() as usize;
            if self.ready.len() < need {
                break;
            }
            let taken = if self.inputs.mode == Mode::Stream { 1 } else { self.trainer.parts() };
            for sample in self.ready.drain(..need) {
                self.trainer.samples.push(sample);
            }
            self.trainer.taken += taken;
            parts += taken;
        }
        self.hand_over(now, parts, queue)
    }

    /// Has the samples of the last so many mini-steps that were taken brought to the trainer.
    pub(crate) fn hand_over(&mut self, now: Time, parts: u32, queue: &mut Queue) -> Result<(), RlError> {
        if parts == 0 {
            return Ok(());
        }
        let mut at = now;
        if let Some(record) = &self.inputs.update.record {
            let before: u32 = self.trainer.sizes[..(self.trainer.taken - parts) as usize].iter().sum();
            let mut bytes = Bytes::ZERO;
            for sample in &self.trainer.samples[before as usize..] {
                let tokens = self.inputs.rollout.prompt_tokens.saturating_add(sample.tokens);
                bytes = bytes.plus(record.size(tokens)?)?;
            }
            self.tally.counts.record_bytes += u128::from(bytes.get());
            at = self.trainer.link_busy.max(now).after(record.time(bytes)?)?;
            self.trainer.link_busy = at;
        }
        let era = self.era;
        queue.schedule(at.after(self.costs.handoff)?, ENDS, Event::HandedOver { parts, era });
        Ok(())
    }

    fn occupy(&mut self, now: Time, phase: TrainerPhase) {
        self.trainer.phase = phase;
        self.trainer.since = now;
        self.trainer.busy.add(now, 1);
    }

    fn release_trainer(&mut self, now: Time, kind: SpanKind) {
        self.trainer.phase = TrainerPhase::Idle;
        self.trainer.busy.sub(now, 1);
        bar(&mut self.record, Row::Trainer, kind, self.trainer.since, now);
    }

    pub(crate) fn step_done(&mut self, now: Time) {
        let kind = SpanKind::MiniStep { update: self.trained, step: self.trainer.done };
        self.release_trainer(now, kind);
        self.trainer.done += 1;
    }

    pub(crate) fn update_done(&mut self, now: Time) -> Result<(), RlError> {
        let kind = SpanKind::Finish { update: self.trained };
        self.release_trainer(now, kind);
        self.tally.trained_on(&self.trainer.samples, self.trained);
        self.trainer.start_over(now);
        self.trainer.drop_samples();
        self.trained += 1;
        self.resolved = 0;
        self.round_owed = true;
        if let Some(rule) = self.async_rule() {
            self.weights.updates_since += 1;
            self.weights.due |= self.weights.updates_since >= rule.sync_every;
            self.drop_old_ready()?;
            if !self.weights.due || !self.sync_is_blocking() {
                self.settle_round_owed(now);
            }
        } else {
            self.weights.due = true;
            self.update_allowed = false;
        }
        Ok(())
    }

    /// The integrals of all servers until `now`.
    pub(crate) fn levels(&mut self, now: Time) -> Levels {
        Levels {
            engines: self.fleet.busy.area(now),
            slots: self.fleet.slots_busy.area(now),
            pools: self.pools.iter_mut().map(|pool| pool.busy.area(now)).collect(),
            trainer: self.trainer.busy.area(now),
            sync: self.weights.busy.area(now),
            switch: self.switch_busy.area(now),
        }
    }
}
