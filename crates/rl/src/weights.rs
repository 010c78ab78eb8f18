//! New weights on their way to the engines, and colocated devices on their way from one phase to the other.
//!
//! One idea: a synchronisation is due when updates have been made that engines should see; a blocking one
//! stops everybody at once, a staggered one passes from engine to engine.

use pipestep_engine::{EventQueue, Overflow, Time};

use crate::RlError;
use crate::fleet::Hold;
use crate::inputs::{InFlight, KvCache, Mode, Placement};
use crate::meter::Meter;
use crate::record::{Recorder, Row, SpanKind, bar};
use crate::response::Stage;
use crate::stages::SyncStyle;
use crate::world::{CONTROL, Event, Queue, Rounds};

/// A phase of colocated devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Rollout,
    Training,
}

/// How far a synchronisation is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    Idle,
    /// All engines finish what they have.
    Draining,
    /// The weights go to all engines.
    Moving,
    /// The weights go to one engine (or, not `loading`, it finishes what it has).
    Pass { engine: u32, loading: bool },
}

/// The state of weight synchronisation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WeightMove {
    /// There are weights that engines should get.
    pub(crate) due: bool,
    /// Updates since the last synchronisation began.
    pub(crate) updates_since: u32,
    /// Synchronisations done.
    pub(crate) syncs: u32,
    /// Updates in the weights of the last synchronisation done.
    pub(crate) latest: u32,
    /// Updates in the weights on their way.
    version: u32,
    progress: Progress,
    since: Time,
    pub(crate) busy: Meter,
}

impl WeightMove {
    pub(crate) fn is_idle(&self) -> bool {
        self.progress == Progress::Idle
    }

    /// Whether a blocking synchronisation is under way.
    pub(crate) fn blocks_trainer(&self) -> bool {
        matches!(self.progress, Progress::Draining | Progress::Moving)
    }
}

impl<R: Recorder> Rounds<'_, R> {
    pub(crate) fn sync_is_blocking(&self) -> bool {
        self.inputs.sync.style == SyncStyle::Blocking
    }

    /// Begins a synchronisation that is due, and goes on with one that waited for engines to drain.
    pub(crate) fn move_weights(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if self.weights.progress == Progress::Idle && self.weights.due {
            let waits_for_rollout = self.inputs.mode == Mode::OneStepOff && !self.closed;
            if !waits_for_rollout {
                self.begin_sync(now, queue)?;
            }
        }
        match self.weights.progress {
            Progress::Draining if self.fleet.slots_busy.level() == 0 => {
                self.transfer(now, queue)?;
            }
            Progress::Pass { engine, loading: false } if self.fleet.engines[engine as usize].held == 0 => {
                self.load_engine(now, engine, queue)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_sync(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.weights.due = false;
        self.weights.updates_since = 0;
        self.weights.version = self.trained;
        let engines = 0..self.inputs.rollout.engines;
        if self.sync_is_blocking() {
            match self.async_rule().map(|rule| rule.in_flight) {
                Some(InFlight::Drain) => {
                    for engine in engines {
                        self.fleet.hold(now, engine, Hold::Draining, &mut self.responses);
                    }
                    self.weights.progress = Progress::Draining;
                    return Ok(());
                }
                Some(InFlight::Abort) => self.clear(now, None),
                Some(InFlight::Continue(_)) | None => {}
            }
            self.transfer(now, queue)?;
        } else {
            if !self.is_async() {
                // On-policy: no engine may start before it has the new weights.
                for engine in engines {
                    self.fleet.hold(now, engine, Hold::Weights, &mut self.responses);
                }
            }
            self.reach_engine(now, 0, queue)?;
            if !self.is_async() {
                self.after_sync(now, queue)?;
            }
        }
        Ok(())
    }

    /// Sends the weights to all engines, which stand still.
    fn transfer(&mut self, now: Time, queue: &mut Queue) -> Result<(), Overflow> {
        for engine in 0..self.inputs.rollout.engines {
            self.fleet.hold(now, engine, Hold::Weights, &mut self.responses);
        }
        self.even_out(None);
        self.weights.progress = Progress::Moving;
        self.send(now, queue)
    }

    /// The links are busy with the weights from now on.
    fn send(&mut self, now: Time, queue: &mut Queue) -> Result<(), Overflow> {
        self.weights.since = now;
        self.weights.busy.add(now, 1);
        let era = self.era;
        let event = match self.weights.progress {
            Progress::Pass { .. } => Event::EngineLoaded { era },
            _ => Event::SyncDone { era },
        };
        queue.schedule(now.after(self.costs.sync)?, CONTROL, event);
        Ok(())
    }

    /// All engines have the weights.
    pub(crate) fn sync_done(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.sent(now, Row::Everything);
        self.weights.progress = Progress::Idle;
        for engine in 0..self.inputs.rollout.engines {
            self.renew_engine(now, engine, queue)?;
        }
        self.all_synced();
        self.after_sync(now, queue)
    }

    fn all_synced(&mut self) {
        self.weights.syncs += 1;
        self.weights.latest = self.weights.version;
    }

    fn sent(&mut self, now: Time, row: Row) {
        self.weights.busy.sub(now, 1);
        let version = self.weights.version;
        let since = self.weights.since;
        bar(&mut self.record, row, SpanKind::WeightSync { version }, since, now);
    }

    /// The staggered pass comes to an engine, or the next that is not down, or to its end. One that is down takes
    /// the weights when it is back.
    fn reach_engine(&mut self, now: Time, from: u32, queue: &mut Queue) -> Result<(), RlError> {
        let mut engine = from;
        while self.fleet.engines.get(engine as usize).is_some_and(|one| one.is_held(Hold::Down)) {
            self.renew_engine(now, engine, queue)?;
            engine += 1;
        }
        if engine == self.inputs.rollout.engines {
            self.weights.progress = Progress::Idle;
            self.all_synced();
            return Ok(());
        }
        self.weights.progress = Progress::Pass { engine, loading: false };
        match self.async_rule().map(|rule| rule.in_flight) {
            Some(InFlight::Drain) => {
                self.fleet.hold(now, engine, Hold::Draining, &mut self.responses);
                Ok(())
            }
            Some(InFlight::Abort) => {
                self.clear(now, Some(engine));
                self.load_engine(now, engine, queue)
            }
            Some(InFlight::Continue(_)) | None => self.load_engine(now, engine, queue),
        }
    }

    fn load_engine(&mut self, now: Time, engine: u32, queue: &mut Queue) -> Result<(), RlError> {
        self.fleet.hold(now, engine, Hold::Weights, &mut self.responses);
        self.even_out(Some(engine));
        self.weights.progress = Progress::Pass { engine, loading: true };
        Ok(self.send(now, queue)?)
    }

    /// The engine of the staggered pass has its weights; the pass goes on to the next.
    pub(crate) fn engine_loaded(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        let Progress::Pass { engine, .. } = self.weights.progress else {
            return Ok(());
        };
        self.sent(now, Row::Engine(engine));
        self.renew_engine(now, engine, queue)?;
        self.reach_engine(now, engine + 1, queue)
    }

    /// An engine goes on with the new weights.
    fn renew_engine(&mut self, now: Time, engine: u32, queue: &mut Queue) -> Result<(), Overflow> {
        let recomputes = matches!(
            self.inputs.mode,
            Mode::Partial(KvCache::Recomputed)
                | Mode::Async(crate::AsyncRule { in_flight: InFlight::Continue(KvCache::Recomputed), .. })
        );
        let state = &mut self.fleet.engines[engine as usize];
        state.version = self.weights.version;
        state.cache_lost |= recomputes;
        for hold in [Hold::Draining, Hold::Weights] {
            let waiting = self.fleet.release(now, engine, hold);
            if !waiting.is_empty() {
                self.let_in(now, engine, waiting, queue)?;
            }
        }
        Ok(())
    }

    /// Puts all responses of an engine, or of all, back in line, to be generated anew.
    fn clear(&mut self, now: Time, only: Option<u32>) {
        for place in self.responses.live() {
            let response = *self.responses.at(place);
            let meant = only.is_none_or(|engine| engine == response.engine);
            if meant && response.stage != Stage::Waiting {
                self.requeue(now, place, false);
            }
        }
    }

    /// What follows a blocking synchronisation, or the start of a staggered one.
    fn after_sync(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if self.is_async() {
            self.settle_round_owed(now);
            Ok(())
        } else if matches!(self.inputs.placement, Placement::Colocated(_)) {
            Ok(self.begin_switch(now, Phase::Rollout, queue)?)
        } else {
            self.next_round(now, queue)
        }
    }

    /// Colocated devices start to change phase.
    pub(crate) fn begin_switch(&mut self, now: Time, to: Phase, queue: &mut Queue) -> Result<(), Overflow> {
        self.switching = Some(to);
        self.switch_since = now;
        self.switch_busy.add(now, 1);
        let time = match to {
            Phase::Rollout => self.costs.to_rollout,
            Phase::Training => self.costs.to_training,
        };
        let era = self.era;
        queue.schedule(now.after(time)?, CONTROL, Event::Switched { era });
        Ok(())
    }

    pub(crate) fn switched(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        self.switch_busy.sub(now, 1);
        bar(&mut self.record, Row::Everything, SpanKind::Switch, self.switch_since, now);
        match self.switching.take() {
            Some(Phase::Rollout) => self.next_round(now, queue),
            Some(Phase::Training) => {
                self.update_allowed = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A restart cuts off what is on its way.
    pub(crate) fn stop_moves(&mut self, now: Time) {
        if self.switching.is_some() {
            self.switch_busy.sub(now, 1);
        }
        if self.is_sending() {
            self.weights.busy.sub(now, 1);
        }
    }

    /// After a restart, what was cut off starts again.
    pub(crate) fn start_moves(&mut self, now: Time, queue: &mut Queue) -> Result<(), Overflow> {
        if let Some(phase) = self.switching {
            self.begin_switch(now, phase, queue)?;
        }
        if self.is_sending() {
            self.send(now, queue)?;
        }
        Ok(())
    }

    fn is_sending(&self) -> bool {
        matches!(self.weights.progress, Progress::Moving | Progress::Pass { loading: true, .. })
    }
}
