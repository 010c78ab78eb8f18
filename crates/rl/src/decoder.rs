//! The iteration clock of one engine: when the responses in its slots end, without counting tokens one by one.
//!
//! One idea: all decoding responses of an engine gain one token an iteration, so a response of L tokens ends L
//! iterations after it joined, whatever the iterations will last. A heap by iteration number gives the next
//! end; the batch, and with it the time of an iteration, changes only between iterations. Between two changes
//! nothing has to happen, so a response costs O(log n), not O(tokens).
//!
//! What the engine stands for (who may use it, what a response is worth) is in [`crate::fleet`].

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pipestep_engine::{Duration, Overflow, Time};

use crate::response::{Response, Responses, Stage, Ticket};

/// The decoding side of one engine.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decoder {
    /// An instant between two iterations, at which `iteration` of them were over.
    anchor: Time,
    iteration: u64,
    /// Nanoseconds of the iterations since `anchor`.
    token_time: u64,
    /// Responses in the current iteration.
    decoding: u32,
    /// Of these, how many have been taken out since it began.
    leaving: u32,
    /// Iteration at which each decoding response ends. May hold void tickets.
    ends: BinaryHeap<Reverse<(u64, Ticket)>>,
    /// Responses that join between iterations.
    joining: Vec<Ticket>,
    /// When the engine has to be looked at again, if ever.
    wake: Option<Time>,
    /// Distinguishes the event of `wake` from earlier ones.
    epoch: u32,
    /// Nothing moves.
    halted: bool,
}

/// An event to schedule: look at the engine again at this instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wake {
    pub(crate) at: Time,
    pub(crate) epoch: u32,
}

impl Decoder {
    /// Lets a response join with the next iteration.
    pub(crate) fn join(&mut self, ticket: Ticket) {
        self.joining.push(ticket);
    }

    /// A decoding response was taken out; its share of the iteration time goes with the next iteration.
    pub(crate) fn leave(&mut self) {
        self.leaving += 1;
    }

    /// Tokens a response has by now.
    pub(crate) fn tokens(&self, response: &Response, now: Time) -> u64 {
        match response.stage {
            Stage::Decoding { since } => response.done + self.iterations(now) - since,
            _ => response.done,
        }
    }

    /// Takes out the responses that end now, if `epoch` is that of the pending wake. They no longer decode,
    /// but keep their slots until the owner frees them.
    pub(crate) fn ended(&mut self, now: Time, epoch: u32, responses: &mut Responses, out: &mut Vec<Ticket>) {
        if epoch != self.epoch || self.halted {
            return;
        }
        self.wake = None;
        self.iteration = self.iterations(now);
        self.anchor = now;
        while let Some(&Reverse((end, ticket))) = self.ends.peek() {
            let live = responses.get(ticket).is_some();
            if live && end > self.iteration {
                break;
            }
            self.ends.pop();
            if live {
                self.decoding -= 1;
                let response = responses.at(ticket.place);
                response.done = response.length;
                response.stage = Stage::Joining;
                out.push(ticket);
            }
        }
    }

    /// Lets responses join and leave if an iteration ends now, and says when to look again (if that has
    /// changed).
    pub(crate) fn settle(
        &mut self,
        now: Time,
        responses: &mut Responses,
        token_times: &[u64],
    ) -> Result<Option<Wake>, Overflow> {
        if self.halted {
            return Ok(None);
        }
        let between =
            self.decoding == 0 || (now.since(self.anchor).as_nanos()).is_multiple_of(self.token_time);
        if between {
            self.iteration = self.iterations(now);
            self.anchor = now;
            self.change_batch(responses);
            self.token_time = token_times[self.decoding as usize];
        }
        let wake = self.next_look(now, responses)?;
        if wake == self.wake {
            return Ok(None);
        }
        self.wake = wake;
        self.epoch += 1;
        Ok(wake.map(|at| Wake { at, epoch: self.epoch }))
    }

    /// Stops between two tokens: what an unfinished iteration did is lost. All responses in slots wait to
    /// join again.
    pub(crate) fn halt(&mut self, now: Time, responses: &mut Responses) {
        let iteration = self.iterations(now);
        let mut stopped: Vec<Ticket> = self.ends.drain().map(|Reverse((_, ticket))| ticket).collect();
        stopped.retain(|&ticket| responses.get(ticket).is_some());
        stopped.sort_unstable_by_key(|&ticket| (responses.get(ticket).map(|r| r.sample), ticket));
        for &ticket in &stopped {
            let response = responses.at(ticket.place);
            if let Stage::Decoding { since } = response.stage {
                response.done += iteration - since;
            }
            response.stage = Stage::Joining;
        }
        stopped.append(&mut self.joining);
        self.joining = stopped;
        (self.decoding, self.leaving) = (0, 0);
        (self.iteration, self.anchor) = (iteration, now);
        self.wake = None;
        self.epoch += 1;
        self.halted = true;
    }

    /// Goes on. Returns the responses that wait to join, for the owner to let in again.
    pub(crate) fn resume(&mut self, now: Time) -> Vec<Ticket> {
        self.halted = false;
        self.anchor = now;
        std::mem::take(&mut self.joining)
    }

    /// Iterations that are over at `now`.
    fn iterations(&self, now: Time) -> u64 {
        if self.decoding == 0 || self.halted {
            self.iteration
        } else {
            self.iteration + now.since(self.anchor).as_nanos() / self.token_time
        }
    }

    fn change_batch(&mut self, responses: &mut Responses) {
        self.decoding -= self.leaving;
        self.leaving = 0;
        for ticket in self.joining.drain(..) {
            if responses.get(ticket).is_none() {
                continue;
            }
            let response = responses.at(ticket.place);
            response.stage = Stage::Decoding { since: self.iteration };
            response.begun = true;
            let end = self.iteration + (response.length - response.done);
            self.ends.push(Reverse((end, ticket)));
            self.decoding += 1;
        }
    }

    /// The end of the current iteration if somebody waits for it, otherwise the next end of a response.
    fn next_look(&mut self, now: Time, responses: &Responses) -> Result<Option<Time>, Overflow> {
        if self.decoding == 0 {
            return Ok(None);
        }
        let token_time = Duration::from_nanos(self.token_time);
        if !self.joining.is_empty() || self.leaving > 0 {
            let over = now.since(self.anchor).as_nanos() / self.token_time;
            return Ok(Some(self.anchor.after(token_time.times(over + 1)?)?));
        }
        while let Some(&Reverse((end, ticket))) = self.ends.peek() {
            if responses.get(ticket).is_some() {
                let left = token_time.times(end - self.iteration)?;
                return Ok(Some(self.anchor.after(left)?));
            }
            self.ends.pop();
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs one engine alone, `joins` being (instant, tokens); returns when each response ends.
    fn run(joins: &[(u64, u64)], token_times: &[u64]) -> Vec<u64> {
        let mut responses = Responses::default();
        let mut decoder = Decoder::default();
        let (mut ends, mut next, mut wake) = (vec![0; joins.len()], 0, None::<Wake>);
        while next < joins.len() || wake.is_some() {
            let now = match (joins.get(next), wake) {
                (Some(&(at, _)), Some(wake)) => wake.at.min(Time::from_nanos(at)),
                (Some(&(at, _)), None) => Time::from_nanos(at),
                (None, Some(wake)) => wake.at,
                (None, None) => break,
            };
            if let Some(due) = wake.filter(|wake| wake.at == now) {
                wake = None;
                let mut out = Vec::new();
                decoder.ended(now, due.epoch, &mut responses, &mut out);
                for ticket in out {
                    ends[responses.remove(ticket.place).sample as usize] = now.as_nanos();
                }
            }
            while joins.get(next).is_some_and(|&(at, _)| at == now.as_nanos()) {
                let ticket = responses.add(next as u64, 0, joins[next].1);
                decoder.join(ticket);
                next += 1;
            }
            if let Some(new) = decoder.settle(now, &mut responses, token_times).unwrap() {
                wake = Some(new);
            } else if wake.is_some_and(|wake| wake.epoch != decoder.epoch) {
                wake = None;
            }
        }
        ends
    }

    #[test]
    fn a_response_alone_takes_its_tokens_times_the_token_time() {
        assert_eq!(run(&[(5, 10)], &[0, 7]), [75]);
    }

    #[test]
    fn a_fuller_batch_is_slower_and_joins_wait_for_the_iteration() {
        // Alone until 10; the second joins when the iteration from 10 to 20 ends, though it came at 11.
        // Together 15 an iteration: the first has 2 tokens by then and ends with its third at 35.
        assert_eq!(run(&[(0, 3), (11, 2)], &[0, 10, 15]), [35, 45]);
    }

    #[test]
    fn agrees_with_a_loop_over_every_token() {
        let joins: Vec<(u64, u64)> = (0..40).map(|k| (k * k * 3, 1 + (k * 29) % 23)).collect();
        let token_times: Vec<u64> = (0..=40).map(|n| 20 + 3 * n).collect();
        let mut ends = vec![0; joins.len()];
        let (mut now, mut running) = (0, Vec::<(usize, u64)>::new());
        let mut next = 0;
        while next < joins.len() || !running.is_empty() {
            while joins.get(next).is_some_and(|&(at, _)| at <= now) {
                running.push((next, joins[next].1));
                next += 1;
            }
            if running.is_empty() {
                now = joins[next].0;
                continue;
            }
            now += token_times[running.len()];
            for (index, left) in &mut running {
                *left -= 1;
                if *left == 0 {
                    ends[*index] = now;
                }
            }
            running.retain(|&(_, left)| left > 0);
        }
        assert_eq!(run(&joins, &token_times), ends);
    }
}
