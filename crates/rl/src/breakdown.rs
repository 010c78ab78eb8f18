//! What breaks: engines, scorers, the whole job; and how it comes back.
//!
//! One idea: whatever goes down puts its work back where it came from (a response in line for a slot, a sample
//! at the head of its pool's line, the update before its first mini-step), with or without what was done.

use pipestep_engine::{Duration, EventQueue, Interval, Overflow, Time};
use rand_distr::{Distribution as _, Exp1};

use crate::RlError;
use crate::faults::Survival;
use crate::fleet::Hold;
use crate::group::Fate;
use crate::inputs::Mode;
use crate::record::{Recorder, Row, Span, SpanKind};
use crate::response::Stage;
use crate::weights::Phase;
use crate::world::{BREAKS, Event, Queue, RECOVERS, Rounds};

impl<R: Recorder> Rounds<'_, R> {
    pub(crate) fn schedule_faults(&mut self, queue: &mut Queue) -> Result<(), RlError> {
        let faults = &self.inputs.faults;
        for (index, failure) in faults.engine_failures.iter().enumerate() {
            queue.schedule(failure.at, BREAKS, Event::EngineFails(index as u32));
        }
        for (index, stop) in faults.scorer_stops.iter().enumerate() {
            queue.schedule(stop.at, BREAKS, Event::ScorerStops(index as u32));
        }
        for (index, restart) in faults.restarts.iter().enumerate() {
            queue.schedule(restart.at, BREAKS, Event::Restarts(index as u32));
        }
        if faults.random_engine_failures.is_some() {
            for engine in 0..self.inputs.rollout.engines {
                self.draw_failure(Time::ZERO, engine, queue)?;
            }
        }
        Ok(())
    }

    /// Draws when an engine that works fails next.
    fn draw_failure(&mut self, now: Time, engine: u32, queue: &mut Queue) -> Result<(), Overflow> {
        if let Some(rule) = self.inputs.faults.random_engine_failures {
            let unit: f64 = Exp1.sample(&mut self.random.failures[engine as usize]);
            let time = Duration::from_nanos((rule.mean_time.as_nanos() as f64 * unit).round() as u64);
            queue.schedule(now.after(time)?, BREAKS, Event::EngineFailsAtRandom(engine));
        }
        Ok(())
    }

    pub(crate) fn engine_fails(&mut self, now: Time, index: u32, queue: &mut Queue) -> Result<(), RlError> {
        let failure = self.inputs.faults.engine_failures[index as usize];
        self.fail(now, failure.engine, failure.down, failure.responses, queue)
    }

    pub(crate) fn engine_fails_at_random(
        &mut self,
        now: Time,
        engine: u32,
        queue: &mut Queue,
    ) -> Result<(), RlError> {
        let Some(rule) = self.inputs.faults.random_engine_failures else {
            return Ok(());
        };
        self.throw_away(1)?;
        self.fail(now, engine, rule.down, rule.responses, queue)
    }

    /// An engine goes down; one that is down already stays as it is.
    fn fail(
        &mut self,
        now: Time,
        engine: u32,
        down: Duration,
        responses: Survival,
        queue: &mut Queue,
    ) -> Result<(), RlError> {
        if self.fleet.engines[engine as usize].is_held(Hold::Down) {
            return Ok(());
        }
        self.tally.counts.engine_failures += 1;
        self.fleet.hold(now, engine, Hold::Down, &mut self.responses);
        if responses == Survival::Kept {
            self.even_out(Some(engine));
        }
        for place in self.responses.live() {
            let response = *self.responses.at(place);
            if response.engine == engine && response.stage != Stage::Waiting {
                self.requeue(now, place, responses == Survival::Kept);
            }
        }
        let end = now.after(down)?;
        self.draw_down(Row::Engine(engine), now, end);
        queue.schedule(end, RECOVERS, Event::EngineUp(engine));
        Ok(())
    }

    pub(crate) fn engine_up(&mut self, now: Time, engine: u32, queue: &mut Queue) -> Result<(), RlError> {
        let state = &mut self.fleet.engines[engine as usize];
        state.version = state.version.max(self.weights.latest);
        let waiting = self.fleet.release(now, engine, Hold::Down);
        self.let_in(now, engine, waiting, queue)?;
        Ok(self.draw_failure(now, engine, queue)?)
    }

    pub(crate) fn scorer_stops(&mut self, now: Time, index: u32, queue: &mut Queue) -> Result<(), RlError> {
        let stop = self.inputs.faults.scorer_stops[index as usize];
        self.pools[stop.pool].stop(now);
        if let Some(down) = stop.down {
            queue.schedule(now.after(down)?, RECOVERS, Event::ScorerStarts(stop.pool as u32));
        }
        Ok(())
    }

    /// The job goes down (or, being down, goes down again: the latest restart says when it is back).
    pub(crate) fn restarts(&mut self, now: Time, index: u32, queue: &mut Queue) -> Result<(), RlError> {
        let restart = self.inputs.faults.restarts[index as usize];
        self.era += 1;
        self.tally.counts.restarts += 1;
        if !self.down {
            self.down = true;
            self.stop_moves(now);
            self.trainer.start_over(now);
            for pool in &mut self.pools {
                pool.stop(now);
            }
            for engine in 0..self.inputs.rollout.engines {
                self.fleet.hold(now, engine, Hold::Restart, &mut self.responses);
                self.fleet.engines[engine as usize].cache_lost = true;
            }
        }
        match restart.rollout {
            Survival::Lost => self.lose_rollout(now, queue)?,
            Survival::Kept => self.even_out(None),
        }
        let end = now.after(restart.down)?;
        self.draw_down(Row::Everything, now, end);
        let era = self.era;
        queue.schedule(end, RECOVERS, Event::RestartOver { era });
        Ok(())
    }

    pub(crate) fn restart_over(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.down = false;
        for pool in &mut self.pools {
            pool.stops -= 1;
        }
        for engine in 0..self.inputs.rollout.engines {
            let waiting = self.fleet.release(now, engine, Hold::Restart);
            if !waiting.is_empty() {
                self.let_in(now, engine, waiting, queue)?;
            }
        }
        self.start_moves(now, queue)?;
        let taken = self.trainer.taken;
        self.hand_over(now, taken, queue)
    }

    /// Throws away everything that no finished update has used, and has it generated anew.
    fn lose_rollout(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        for number in self.groups.present() {
            self.drop_group(now, number, Fate::Lost);
        }
        self.pending.clear();
        self.purge();
        for sample in std::mem::take(&mut self.just_ended) {
            let fate = self.groups.get(sample.group).gone.unwrap_or(Fate::Lost);
            self.drop_sample(sample, fate);
        }
        self.tally.counts.drop_ended(Fate::Lost, self.ready.make_contiguous(), &mut self.record);
        self.tally.counts.drop_ended(Fate::Lost, &self.trainer.samples, &mut self.record);
        self.launched -= (self.ready.len() + self.trainer.samples.len()) as u64;
        self.ready.clear();
        self.trainer.drop_samples();
        (self.scoring, self.credit) = (0, 0);
        self.tally.forget_rollouts();
        self.reopen(now, queue)
    }

    /// Opens the round again that a restart has emptied.
    fn reopen(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if self.is_async() {
            return Ok(());
        }
        self.batch_lost = self.inputs.mode == Mode::OneStepOff;
        let over = self.weights.blocks_trainer()
            || self.switching == Some(Phase::Rollout)
            || (self.weights.due && self.inputs.mode != Mode::OneStepOff);
        if over {
            // The update is done; the next round opens as it would have.
            return Ok(());
        }
        self.switching = None;
        self.open_round(now, queue)
    }

    fn draw_down(&mut self, row: Row, start: Time, end: Time) {
        if R::ON {
            self.record.span(Span { row, kind: SpanKind::Down, interval: Interval { start, end } });
        }
    }
}
