//! The world of rounds: its state, everything that can happen in it, and what happens then.
//!
//! One idea: events only note what has ended; every choice (is the batch full, does the update start, who gets
//! the free slot) is made when nothing more can end at that instant, in [`World::settle`]. So results do not
//! depend on the order of things that end together.
//!
//! The choices are in [`crate::conduct`] (rounds), [`crate::launch`] (slots), [`crate::train`] (scoring and
//! update), [`crate::weights`] (synchronisation and phase switches) and [`crate::breakdown`] (faults).

use std::collections::VecDeque;

use pipestep_engine::{Class, EventQueue, HeapQueue, Streams, Time, World};
use rand_chacha::ChaCha12Rng;

use crate::costs::Costs;
use crate::fleet::Fleet;
use crate::group::Groups;
use crate::inputs::{AsyncRule, Mode};
use crate::meter::Meter;
use crate::pool::Pool;
use crate::record::Recorder;
use crate::response::{Responses, Sample, Ticket};
use crate::tally::Tally;
use crate::train::Trainer;
use crate::turns::{Shared, Turns};
use crate::weights::{Phase, WeightMove};
use crate::{RlError, RlInputs};

/// What ends goes before what begins anew, and that before what breaks.
pub(crate) const ENDS: Class = Class(0);
pub(crate) const CONTROL: Class = Class(1);
pub(crate) const RECOVERS: Class = Class(2);
pub(crate) const BREAKS: Class = Class(3);

/// Everything that can happen. An `era` counts restarts: what was under way before the last is void.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// The first round opens.
    Opens,
    /// An engine must be looked at: responses end, or join.
    Look { engine: u32, epoch: u32 },
    /// A response has its keys and values.
    Prefilled(Ticket),
    /// A response is interrupted.
    Interrupted(Ticket),
    /// A worker has scored its sample.
    Scored { pool: u32, worker: u32, epoch: u32 },
    /// Samples of so many mini-steps have reached the trainer.
    HandedOver { parts: u32, era: u32 },
    /// A mini-step is over.
    StepDone { era: u32 },
    /// The update is over.
    UpdateDone { era: u32 },
    /// All engines have the weights.
    SyncDone { era: u32 },
    /// One engine has the weights.
    EngineLoaded { era: u32 },
    /// Colocated devices have changed phase.
    Switched { era: u32 },
    /// An engine fails: number in the list of failures.
    EngineFails(u32),
    /// An engine fails at random.
    EngineFailsAtRandom(u32),
    /// An engine is back.
    EngineUp(u32),
    /// A pool stops: number in the list of stops.
    ScorerStops(u32),
    /// A pool starts again.
    ScorerStarts(u32),
    /// The job goes down: number in the list of restarts.
    Restarts(u32),
    /// The job is back.
    RestartOver { era: u32 },
    /// A pool that jobs take turns on is this job's now.
    Turn(Shared),
}

/// The state of a run.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent gate of the flow, named at its field"
)]
pub(crate) struct Rounds<'a, R> {
    pub(crate) inputs: &'a RlInputs,
    pub(crate) costs: Costs,
    pub(crate) record: R,
    pub(crate) tally: Tally,
    pub(crate) responses: Responses,
    pub(crate) groups: Groups,
    pub(crate) fleet: Fleet,
    pub(crate) pools: Vec<Pool>,
    pub(crate) trainer: Trainer,
    pub(crate) weights: WeightMove,
    pub(crate) random: Random,

    /// Responses in line for a slot, before fresh prompts.
    pub(crate) pending: VecDeque<Ticket>,
    /// Responses that ended at this instant.
    pub(crate) just_ended: Vec<Sample>,
    /// Samples that wait for the rollout to be over before they are scored.
    pub(crate) gate: Vec<Sample>,
    /// The samples that completed a group beyond a full batch, with which the next round starts.
    pub(crate) carried: Vec<Sample>,
    /// Scored samples that wait for the update.
    pub(crate) ready: VecDeque<Sample>,

    /// Number of the next sample.
    pub(crate) next_sample: u64,
    /// Prompts whose responses may still be launched in this round.
    pub(crate) fresh: u64,
    /// Samples launched and not yet ended.
    pub(crate) open: u64,
    /// Samples that have ended and are not yet scored.
    pub(crate) scoring: u64,
    /// Samples of this round that are certain to be trained on.
    pub(crate) credit: u64,
    /// Groups scored so far, for the even share.
    pub(crate) scored: u64,
    /// Samples that updates need of the groups launched and not thrown away, for the staleness bound.
    pub(crate) launched: u64,

    pub(crate) round: u32,
    /// When the rollout of this round could begin; [`Time::MAX`] while it waits for its turn.
    pub(crate) round_opened: Time,
    /// The rollout of this round is over.
    pub(crate) closed: bool,
    /// Engines may take responses.
    pub(crate) rollout_open: bool,
    /// The trainer may start on what is ready.
    pub(crate) update_allowed: bool,
    /// An update is over whose round is not yet closed in the books.
    pub(crate) round_owed: bool,
    /// One-step-off: the batch that was to be trained on next was lost in a restart.
    pub(crate) batch_lost: bool,
    /// Updates done.
    pub(crate) trained: u32,
    /// Samples thrown away, and failures, since the last update.
    pub(crate) resolved: u64,
    pub(crate) switching: Option<Phase>,
    pub(crate) switch_busy: Meter,
    pub(crate) switch_since: Time,
    pub(crate) era: u32,
    pub(crate) down: bool,
    /// What it may use of the pools that it shares with other jobs; `None` if it is alone.
    pub(crate) turns: Option<Turns>,
    /// All rounds have been measured.
    pub(crate) measured: bool,
    /// Nothing is left to do; a job that shares goes on after it has been measured.
    pub(crate) done: bool,
    /// Reused by the handler of [`Event::Look`].
    ended: Vec<Ticket>,
    /// Reused where members of a group are launched.
    pub(crate) line: Vec<Ticket>,
}

/// The random streams of a run, one a purpose.
pub(crate) struct Random {
    pub(crate) lengths: ChaCha12Rng,
    pub(crate) keep: ChaCha12Rng,
    pub(crate) interruptions: ChaCha12Rng,
    /// Of each engine; empty if none fails at random.
    pub(crate) failures: Vec<ChaCha12Rng>,
}

impl Random {
    fn new(inputs: &RlInputs) -> Self {
        let streams = Streams::new(inputs.seed);
        let failing = match inputs.faults.random_engine_failures {
            Some(_) => inputs.rollout.engines,
            None => 0,
        };
        Self {
            lengths: streams.stream("response lengths", 0),
            keep: streams.stream("keep", 0),
            interruptions: streams.stream("interruptions", 0),
            failures: (0..failing)
                .map(|engine| streams.stream("engine failures", u64::from(engine)))
                .collect(),
        }
    }
}

pub(crate) type Queue = HeapQueue<Event>;

impl<'a, R: Recorder> Rounds<'a, R> {
    /// A world at time zero; the inputs have been checked.
    pub(crate) fn new(inputs: &'a RlInputs, record: R) -> Result<Self, RlError> {
        let rollout = &inputs.rollout;
        Ok(Self {
            inputs,
            costs: Costs::new(inputs)?,
            record,
            tally: Tally::new(inputs.warmup),
            responses: Responses::default(),
            groups: Groups::default(),
            fleet: Fleet::new(rollout.engines, rollout.slots, R::ON),
            pools: inputs.scoring.iter().map(|pool| Pool::new(pool.workers)).collect(),
            trainer: Trainer::new(inputs.batch, inputs.update.mini_steps),
            weights: WeightMove::default(),
            random: Random::new(inputs),
            pending: VecDeque::new(),
            just_ended: Vec::new(),
            gate: Vec::new(),
            carried: Vec::new(),
            ready: VecDeque::new(),
            next_sample: 0,
            fresh: 0,
            open: 0,
            scoring: 0,
            credit: 0,
            scored: 0,
            launched: 0,
            round: 0,
            round_opened: Time::ZERO,
            closed: false,
            rollout_open: false,
            update_allowed: false,
            round_owed: false,
            batch_lost: false,
            trained: 0,
            resolved: 0,
            switching: None,
            switch_busy: Meter::default(),
            switch_since: Time::ZERO,
            era: 0,
            down: false,
            turns: None,
            measured: false,
            done: false,
            ended: Vec::new(),
            line: Vec::new(),
        })
    }

    /// The rules of [`Mode::Async`], if that is the mode.
    pub(crate) const fn async_rule(&self) -> Option<AsyncRule> {
        match self.inputs.mode {
            Mode::Async(rule) => Some(rule),
            _ => None,
        }
    }

    fn look(&mut self, now: Time, engine: u32, epoch: u32) {
        let mut ended = std::mem::take(&mut self.ended);
        let decoder = &mut self.fleet.engines[engine as usize].decoder;
        decoder.ended(now, epoch, &mut self.responses, &mut ended);
        self.fleet.touch(engine);
        for ticket in ended.drain(..) {
            // Of two rivals that end together the first is taken; the other is gone by now.
            if self.responses.get(ticket).is_some() {
                self.end_response(now, ticket);
            }
        }
        self.ended = ended;
    }
}

impl<R: Recorder> World<Queue> for Rounds<'_, R> {
    type Event = Event;
    type Error = RlError;

    fn handle(&mut self, now: Time, event: Event, queue: &mut Queue) -> Result<(), RlError> {
        match event {
            Event::Opens => self.open_round(now, queue)?,
            Event::Look { engine, epoch } => self.look(now, engine, epoch),
            Event::Prefilled(ticket) => self.prefilled(ticket),
            Event::Interrupted(ticket) => self.interrupted(now, ticket)?,
            Event::Scored { pool, worker, epoch } => self.scored_by(now, pool, worker, epoch)?,
            Event::HandedOver { parts, era } if era == self.era => self.trainer.handed += parts,
            Event::StepDone { era } if era == self.era => self.step_done(now),
            Event::UpdateDone { era } if era == self.era => self.update_done(now)?,
            Event::SyncDone { era } if era == self.era => self.sync_done(now, queue)?,
            Event::EngineLoaded { era } if era == self.era => self.engine_loaded(now, queue)?,
            Event::Switched { era } if era == self.era => self.switched(now, queue)?,
            Event::EngineFails(index) => self.engine_fails(now, index, queue)?,
            Event::EngineFailsAtRandom(engine) => self.engine_fails_at_random(now, engine, queue)?,
            Event::EngineUp(engine) => self.engine_up(now, engine, queue)?,
            Event::ScorerStops(index) => self.scorer_stops(now, index, queue)?,
            Event::ScorerStarts(pool) => self.pools[pool as usize].stops -= 1,
            Event::Restarts(index) => self.restarts(now, index, queue)?,
            Event::RestartOver { era } if era == self.era => self.restart_over(now, queue)?,
            Event::Turn(shared) => self.take_turn(now, shared),
            Event::HandedOver { .. }
            | Event::StepDone { .. }
            | Event::UpdateDone { .. }
            | Event::SyncDone { .. }
            | Event::EngineLoaded { .. }
            | Event::Switched { .. }
            | Event::RestartOver { .. } => {}
        }
        if self.done {
            queue.clear();
        }
        Ok(())
    }

    fn settle(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if self.done {
            return Ok(());
        }
        self.conduct(now, queue)?;
        if self.done {
            queue.clear();
            return Ok(());
        }
        self.train(now, queue)?;
        self.serve_pools(now, queue)?;
        if queue.peek_time() == Some(now) {
            // What has no length ends first: an update whose weights arrive at once is in what is launched now.
            return Ok(());
        }
        self.launch(now, queue)?;
        let wake = |engine, due: crate::decoder::Wake| {
            let epoch = due.epoch;
            queue.schedule(due.at, ENDS, Event::Look { engine, epoch });
        };
        self.fleet.settle(now, &mut self.responses, &self.costs.token_time, wake)?;
        let pace = self.pace();
        self.tally.pace.enter(now, pace as usize);
        Ok(())
    }
}
