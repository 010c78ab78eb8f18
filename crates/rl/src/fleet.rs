//! The rollout engines: which may take a response, which stand still and why, and where each response runs.
//!
//! One idea: an engine has a set of reasons to stand still or to take nothing new; it works when there are
//! none. Launches go to the engine with the most free slots, the lowest number first.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pipestep_engine::{Overflow, Time};

use crate::decoder::{Decoder, Wake};
use crate::emptiest::Emptiest;
use crate::meter::Meter;
use crate::response::{Response, Responses, Stage, Ticket};

/// A reason for an engine to stand still, or (draining) to take nothing new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    /// It has failed.
    Down = 1,
    /// The round's batch is full; its responses wait for the next round.
    RoundOver = 2,
    /// It takes, or waits for, new weights.
    Weights = 4,
    /// It finishes what it has and then takes new weights.
    Draining = 8,
    /// The job is down.
    Restart = 16,
}

/// One engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Engine {
    pub(crate) decoder: Decoder,
    /// Slots taken.
    pub(crate) held: u32,
    /// Updates in its weights.
    pub(crate) version: u32,
    /// Responses that go on must compute their keys and values again.
    pub(crate) cache_lost: bool,
    holds: u8,
    /// Slots by number, for the picture.
    lanes: BinaryHeap<Reverse<u32>>,
    touched: bool,
}

/// All engines.
#[derive(Clone, Debug)]
pub(crate) struct Fleet {
    pub(crate) engines: Vec<Engine>,
    slots: u32,
    /// Engines that take responses.
    open: Emptiest,
    /// Engines to settle at the end of this instant.
    touched: Vec<u32>,
    /// Engines with at least one response.
    pub(crate) busy: Meter,
    /// Slots taken, over all engines.
    pub(crate) slots_busy: Meter,
    keeps_lanes: bool,
}

impl Engine {
    /// Whether nothing moves on it.
    pub(crate) fn halted(&self) -> bool {
        self.holds & !(Hold::Draining as u8) != 0
    }

    /// Whether this reason holds.
    pub(crate) fn is_held(&self, hold: Hold) -> bool {
        self.holds & hold as u8 != 0
    }
}

impl Fleet {
    pub(crate) fn new(engines: u32, slots: u32, keeps_lanes: bool) -> Self {
        let lanes = if keeps_lanes { slots } else { 0 };
        let engine = Engine { lanes: (0..lanes).map(Reverse).collect(), ..Engine::default() };
        Self {
            engines: vec![engine; engines as usize],
            slots,
            open: Emptiest::new(engines),
            touched: Vec::new(),
            busy: Meter::default(),
            slots_busy: Meter::default(),
            keeps_lanes,
        }
    }

    /// Whether some engine has a free slot for a new response.
    pub(crate) fn has_room(&self) -> bool {
        self.open.first().is_some()
    }

    /// Gives a slot of the emptiest engine to a waiting response; the caller has checked for room.
    pub(crate) fn seat(&mut self, now: Time, response: &mut Response) {
        let Some((number, held)) = self.open.first() else {
            return;
        };
        self.touch(number);
        let engine = &mut self.engines[number as usize];
        response.engine = number;
        if self.keeps_lanes {
            response.lane = engine.lanes.pop().map_or(0, |Reverse(lane)| lane);
        }
        response.stint = now;
        response.stage = Stage::Prefill;
        if response.launched == Time::MAX {
            response.launched = now;
        }
        if !response.begun {
            response.version = engine.version;
        }
        engine.held += 1;
        if held == 0 {
            self.busy.add(now, 1);
        }
        self.slots_busy.add(now, 1);
        self.reindex(number);
    }

    /// Frees the slot of a response (not of a waiting one).
    pub(crate) fn unseat(&mut self, now: Time, response: &Response) {
        self.touch(response.engine);
        let engine = &mut self.engines[response.engine as usize];
        let held = engine.held;
        engine.held -= 1;
        if self.keeps_lanes {
            engine.lanes.push(Reverse(response.lane));
        }
        if held == 1 {
            self.busy.sub(now, 1);
        }
        self.slots_busy.sub(now, 1);
        self.reindex(response.engine);
    }

    /// Adds a reason to stand still (or to drain).
    pub(crate) fn hold(&mut self, now: Time, number: u32, hold: Hold, responses: &mut Responses) {
        let engine = &mut self.engines[number as usize];
        let halted = engine.halted();
        engine.holds |= hold as u8;
        if !halted && engine.halted() {
            engine.decoder.halt(now, responses);
        }
        self.reindex(number);
    }

    /// Takes a reason away. If the engine goes on, returns the responses that have to be let in again.
    pub(crate) fn release(&mut self, now: Time, number: u32, hold: Hold) -> Vec<Ticket> {
        self.touch(number);
        let engine = &mut self.engines[number as usize];
        let halted = engine.halted();
        engine.holds &= !(hold as u8);
        let waiting = if halted && !engine.halted() { engine.decoder.resume(now) } else { Vec::new() };
        self.reindex(number);
        waiting
    }

    /// Has the engine settled at the end of this instant.
    pub(crate) fn touch(&mut self, number: u32) {
        let engine = &mut self.engines[number as usize];
        if !engine.touched {
            engine.touched = true;
            self.touched.push(number);
        }
    }

    /// Settles the decoders of all engines touched at this instant.
    pub(crate) fn settle(
        &mut self,
        now: Time,
        responses: &mut Responses,
        token_times: &[u64],
        mut wake: impl FnMut(u32, Wake),
    ) -> Result<(), Overflow> {
        for number in self.touched.drain(..) {
            let engine = &mut self.engines[number as usize];
            engine.touched = false;
            if let Some(due) = engine.decoder.settle(now, responses, token_times)? {
                wake(number, due);
            }
        }
        Ok(())
    }

    /// Renews what is known of an engine's free slots.
    fn reindex(&mut self, number: u32) {
        let engine = &self.engines[number as usize];
        let takes = engine.holds == 0 && engine.held < self.slots;
        self.open.put(number, takes.then_some(engine.held));
    }
}
