//! What happens to the members of a group: launched together, cut to one length, given up together.
//!
//! One idea: whatever a group does as a whole goes through here, so that its counts, the responses in slots and
//! the samples in line always agree.

use pipestep_engine::Time;

use crate::group::Fate;
use crate::inputs::GroupCut;
use crate::record::{Recorder, StintEnd};
use crate::response::{NOBODY, Sample, Stage, Ticket};
use crate::world::Rounds;

impl<R: Recorder> Rounds<'_, R> {
    /// Draws a new sample of a group, with its rivals, for `line`.
    pub(crate) fn add_member(&mut self, group: u32, line: &mut Vec<Ticket>) {
        let sample = self.next_sample;
        self.next_sample += 1;
        self.open += 1;
        self.groups.at(group).alive += 1;
        self.tally.counts.launched += 1;
        let copies = u64::from(self.inputs.rollout.copies);
        let mut before = None::<Ticket>;
        for copy in 0..copies {
            let index = sample * copies + copy;
            let drawn = self.inputs.rollout.lengths.draw(index, &mut self.random.lengths);
            let length = drawn.max(1);
            self.tally.counts.launched_tokens += u128::from(length);
            let ticket = self.responses.add(sample, group, length);
            self.responses.enlist(ticket.place, &mut self.groups.at(group).first);
            if let Some(before) = before {
                let next = self.responses.at(before.place).rival;
                self.responses.at(ticket.place).rival = next;
                self.responses.at(before.place).rival = ticket.place;
            }
            before = Some(ticket);
            line.push(ticket);
        }
    }

    /// Ends all responses of a group for good; returns how many samples that were.
    pub(crate) fn abort_members(&mut self, now: Time, number: u32, end: StintEnd) -> u64 {
        loop {
            let first = self.groups.get(number).first;
            if first == NOBODY {
                break;
            }
            self.take_out(now, first, end);
        }
        let group = self.groups.at(number);
        let alive = u64::from(std::mem::take(&mut group.alive));
        self.open -= alive;
        alive
    }

    /// Has the members of each group that are cut at this instant, on one engine or on all, keep as many tokens
    /// as the shortest of them, if that is the rule. One without a token has not been cut.
    pub(crate) fn even_out(&mut self, only: Option<u32>) {
        if self.inputs.group.cut == GroupCut::Each {
            return;
        }
        let mut cut = Vec::new();
        for number in self.groups.present() {
            cut.clear();
            for place in self.responses.listed(self.groups.get(number).first) {
                let response = self.responses.read(place);
                let meant = only.is_none_or(|engine| engine == response.engine);
                if meant && response.done > 0 && response.stage != Stage::Waiting {
                    cut.push((place, response.done));
                }
            }
            let shortest = cut.iter().map(|&(_, done)| done).min().unwrap_or(0);
            for &(place, done) in &cut {
                self.responses.at(place).done = shortest;
                self.tally.counts.truncated_tokens += u128::from(done - shortest);
            }
        }
    }

    /// A group has lost a member. One of several responses that has become too small gets another one; one that
    /// has none left is given up, and replaced if the round runs short.
    pub(crate) fn member_lost(&mut self, now: Time, number: u32) {
        let responses = self.inputs.group.responses;
        let group = self.groups.at(number);
        group.alive -= 1;
        if group.alive + group.ended >= responses {
            return;
        }
        if responses == 1 {
            self.drop_group(now, number, Fate::Interrupted);
            return;
        }
        let mut line = std::mem::take(&mut self.line);
        self.add_member(number, &mut line);
        for ticket in line.drain(..).rev() {
            self.pending.push_front(ticket);
        }
        self.line = line;
    }

    /// Gives a group up: what runs is aborted, what is scored is dropped. Samples on their way drop out where
    /// they are next looked at, or by [`Self::purge`]. Returns how many samples are gone already.
    pub(crate) fn drop_group(&mut self, now: Time, number: u32, fate: Fate) -> u64 {
        let end = if fate == Fate::Lost { StintEnd::Lost } else { StintEnd::Aborted };
        let running = self.abort_members(now, number, end);
        let responses = self.inputs.group.responses;
        let group = self.groups.at(number);
        let scored = group.scored.len() as u64;
        self.tally.counts.drop_ended(fate, &group.scored, &mut self.record);
        group.scored.clear();
        group.gone = Some(fate);
        let (is_open, is_unscored) = (group.ended < responses, group.taken == responses);
        self.groups.open -= u64::from(is_open);
        self.groups.unscored -= u64::from(is_unscored);
        self.launched -= u64::from(responses);
        if fate == Fate::Surplus {
            self.tally.counts.aborted += running;
        } else {
            self.tally.counts.drop(fate, running);
        }
        self.groups.forget(number);
        running + scored
    }

    /// Drops a sample on its way whose group is gone, or complete without it.
    pub(crate) fn drop_sample(&mut self, sample: Sample, fate: Fate) {
        self.tally.counts.drop_ended(fate, &[sample], &mut self.record);
        self.groups.at(sample.group).under_way -= 1;
        self.groups.forget(sample.group);
    }

    /// Takes the samples of groups that are gone out of every line that they stand in.
    pub(crate) fn purge(&mut self) {
        let mut dropped = Vec::new();
        let groups = &self.groups;
        let mut keeps = |sample: &Sample| {
            let gone = groups.get(sample.group).gone;
            dropped.extend(gone.map(|fate| (*sample, fate)));
            gone.is_none()
        };
        self.gate.retain(&mut keeps);
        self.carried.retain(&mut keeps);
        for pool in &mut self.pools {
            let before = pool.line.len();
            pool.line.retain(&mut keeps);
            self.scoring -= (before - pool.line.len()) as u64;
        }
        for (sample, fate) in dropped {
            self.drop_sample(sample, fate);
        }
    }
}
