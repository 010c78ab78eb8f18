//! Slots: samples are launched into free ones, responses end, are aborted, interrupted, or generated anew.
//!
//! One idea: whatever frees a slot goes through here, so that slots, rivals and counts always agree.

use pipestep_engine::{Duration, EventQueue, Overflow, Time};
use rand_distr::{Distribution as _, Exp1};

use crate::RlError;
use crate::record::{Recorder, Row, SpanKind, StintEnd, bar};
use crate::response::{Response, Sample, Stage, Ticket};
use crate::turns::Shared;
use crate::world::{BREAKS, ENDS, Event, Queue, Rounds};

impl<R: Recorder> Rounds<'_, R> {
    /// Fills free slots: responses in line first, then fresh samples.
    pub(crate) fn launch(&mut self, now: Time, queue: &mut Queue) -> Result<(), RlError> {
        if !self.rollout_open || !self.has(Shared::Engines) {
            return Ok(());
        }
        while self.fleet.has_room() {
            let ticket = if let Some(ticket) = self.pending.pop_front() {
                if self.responses.get(ticket).is_none() {
                    continue;
                }
                ticket
            } else if self.may_launch() {
                self.fresh_group()
            } else {
                break;
            };
            self.fleet.seat(now, self.responses.at(ticket.place));
            self.start(now, ticket, queue)?;
            self.expose(now, ticket, queue)?;
        }
        Ok(())
    }

    /// Launches the responses to a new prompt: all are put in line but the first, which is returned.
    fn fresh_group(&mut self) -> Ticket {
        let group = self.groups.add();
        self.fresh = self.fresh.saturating_sub(1);
        self.launched += u64::from(self.inputs.group.responses);
        let mut line = std::mem::take(&mut self.line);
        for _ in 0..self.inputs.group.launch {
            self.add_member(group, &mut line);
        }
        for &ticket in line[1..].iter().rev() {
            self.pending.push_front(ticket);
        }
        let first = line[0];
        line.clear();
        self.line = line;
        first
    }

    /// Lets a response with a slot decode, after its prefill.
    fn start(&mut self, now: Time, ticket: Ticket, queue: &mut Queue) -> Result<(), Overflow> {
        let prompt = self.inputs.rollout.prompt_tokens;
        let response = self.responses.at(ticket.place);
        let time = if response.needs_prefill {
            let tokens = prompt.saturating_add(response.done);
            self.costs.prefill(tokens, response.begun)?
        } else {
            Duration::ZERO
        };
        if time == Duration::ZERO {
            self.prefilled(ticket);
        } else {
            response.stage = Stage::Prefill;
            queue.schedule(now.after(time)?, ENDS, Event::Prefilled(ticket));
        }
        Ok(())
    }

    pub(crate) fn prefilled(&mut self, ticket: Ticket) {
        if self.responses.get(ticket).is_none() {
            return;
        }
        let response = self.responses.at(ticket.place);
        response.needs_prefill = false;
        response.stage = Stage::Joining;
        let engine = response.engine;
        self.fleet.engines[engine as usize].decoder.join(ticket);
        self.fleet.touch(engine);
    }

    /// Lets responses of an engine go on that stood still.
    pub(crate) fn let_in(
        &mut self,
        now: Time,
        engine: u32,
        waiting: Vec<Ticket>,
        queue: &mut Queue,
    ) -> Result<(), Overflow> {
        let cache_lost = std::mem::take(&mut self.fleet.engines[engine as usize].cache_lost);
        for ticket in waiting {
            if self.responses.get(ticket).is_some() {
                let response = self.responses.at(ticket.place);
                response.needs_prefill |= cache_lost;
                let spared = std::mem::take(&mut response.spared);
                self.start(now, ticket, queue)?;
                if spared {
                    self.expose(now, ticket, queue)?;
                }
            }
        }
        Ok(())
    }

    /// A response has all its tokens: it becomes a sample, its rivals are aborted.
    pub(crate) fn end_response(&mut self, now: Time, ticket: Ticket) {
        while self.responses.at(ticket.place).rival != ticket.place {
            let rival = self.responses.at(ticket.place).rival;
            self.take_out(now, rival, StintEnd::Aborted);
        }
        let response = self.remove_response(ticket.place);
        self.fleet.unseat(now, &response);
        self.draw_stint(&response, now, StintEnd::Finished);
        self.open -= 1;
        let group = self.groups.at(response.group);
        group.alive -= 1;
        group.ended += 1;
        group.under_way += 1;
        group.oldest = group.oldest.min(response.version);
        if group.ended == self.inputs.group.responses {
            self.groups.open -= 1;
        }
        self.tally.finished(response.length);
        self.just_ended.push(Sample {
            number: response.sample,
            group: response.group,
            tokens: response.length,
            version: response.version,
            launched: response.launched,
            finished: now,
        });
    }

    fn remove_response(&mut self, place: u32) -> Response {
        let group = self.responses.at(place).group;
        self.responses.delist(place, &mut self.groups.at(group).first);
        self.responses.remove(place)
    }

    /// Ends a response for good without a sample; what it generated is wasted.
    pub(crate) fn take_out(&mut self, now: Time, place: u32, end: StintEnd) {
        self.vacate(now, place, end);
        let response = self.remove_response(place);
        self.tally.counts.wasted_tokens += u128::from(response.done);
    }

    /// Puts a response back in line, with what it has generated or without.
    pub(crate) fn requeue(&mut self, now: Time, place: u32, keep: bool) {
        self.vacate(now, place, StintEnd::Lost);
        let response = self.responses.at(place);
        if !keep {
            self.tally.counts.wasted_tokens += u128::from(response.done);
            self.tally.counts.regenerated += 1;
            response.done = 0;
            response.begun = false;
        }
        response.needs_prefill = true;
        response.spared = false;
        response.stage = Stage::Waiting;
        let ticket = self.responses.renew(place);
        self.pending.push_back(ticket);
    }

    /// Frees the slot of a response, if it has one, and brings its tokens up to date.
    fn vacate(&mut self, now: Time, place: u32, end: StintEnd) {
        let response = *self.responses.at(place);
        if response.stage == Stage::Waiting {
            return;
        }
        let decoder = &mut self.fleet.engines[response.engine as usize].decoder;
        let tokens = decoder.tokens(&response, now);
        if matches!(response.stage, Stage::Decoding { .. }) {
            decoder.leave();
        }
        let response = self.responses.at(place);
        response.done = tokens;
        response.stage = Stage::Waiting;
        let response = *response;
        self.fleet.unseat(now, &response);
        self.draw_stint(&response, now, end);
    }

    /// Draws when the response will be interrupted.
    fn expose(&mut self, now: Time, ticket: Ticket, queue: &mut Queue) -> Result<(), Overflow> {
        if let Some(mean) = self.inputs.faults.mean_time_to_interruption {
            let unit: f64 = Exp1.sample(&mut self.random.interruptions);
            let time = Duration::from_nanos((mean.as_nanos() as f64 * unit).round() as u64);
            queue.schedule(now.after(time)?, BREAKS, Event::Interrupted(ticket));
        }
        Ok(())
    }

    /// A response is interrupted and thrown away. One that stands still is spared, and another time drawn
    /// when it goes on (the exponential has no memory).
    pub(crate) fn interrupted(&mut self, now: Time, ticket: Ticket) -> Result<(), RlError> {
        let Some(response) = self.responses.get(ticket).copied() else {
            return Ok(());
        };
        let halted = self.fleet.engines[response.engine as usize].halted();
        if halted && response.stage == Stage::Joining {
            self.responses.at(ticket.place).spared = true;
            return Ok(());
        }
        let alone = response.rival == ticket.place;
        self.take_out(now, ticket.place, StintEnd::Interrupted);
        if alone {
            self.open -= 1;
            self.tally.counts.interrupted += 1;
            self.member_lost(now, response.group);
            self.throw_away(1)?;
        }
        Ok(())
    }

    fn draw_stint(&mut self, response: &Response, now: Time, end: StintEnd) {
        let row = Row::Slot { engine: response.engine, slot: response.lane };
        let kind = SpanKind::Response { sample: response.sample, end };
        bar(&mut self.record, row, kind, response.stint, now);
    }

    /// Draws the responses that still run when the simulation ends.
    pub(crate) fn draw_open_stints(&mut self) {
        let now = self.tally.last_end();
        for place in self.responses.live() {
            let response = *self.responses.at(place);
            if response.stage != Stage::Waiting {
                self.draw_stint(&response, now, StintEnd::Open);
            }
        }
    }
}
