//! The search itself: settings by rising bound, in batches over all threads, leaving out what cannot matter.
//!
//! A setting is left out only if bounds prove both that it is none of the best that fit (it cannot fit, or is
//! longer than all that will be shown) and that it does not lie on the front of time against memory (something
//! that was simulated is no longer and no larger). What is shown is therefore what trying everything shows.
//!
//! Where lengths are drawn the bounds prove nothing about the mean of the runs, and nothing is left out.

use rayon::prelude::*;

use super::candidates::Candidates;
use super::evaluate::{Bounded, Evaluated, Evaluator};
use pipestep_report::pareto_front;

/// Settings that are simulated before the bounds are looked at again: few at first, when every result tells much.
/// The number does not depend on that of threads, so that nothing does.
const FEWEST: usize = 2;
/// Enough for all threads.
const MOST: usize = 64;

/// How much is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// What bounds do not rule out.
    Pruned,
    /// Everything.
    Exhaustive,
}

/// What a search found.
#[derive(Debug)]
pub(crate) struct Found {
    /// The best settings that fit, best first: as many as were asked for, if there are so many.
    pub(crate) best: Vec<Evaluated>,
    /// Time against memory, whether or not it fits: by rising time. Of equal points, the first.
    pub(crate) front: Vec<Evaluated>,
    /// Everything that was simulated, in the order of the settings.
    pub(crate) simulated: Vec<Evaluated>,
    /// How many bounds left out.
    pub(crate) left_out: usize,
    /// Settings that are not legal, with the reason.
    pub(crate) illegal: Vec<(usize, String)>,
}

/// Goes through all candidates.
pub(crate) fn find(evaluator: &Evaluator, candidates: &Candidates, shown: usize, effort: Effort) -> Found {
    let effort = if candidates.are_drawn() { Effort::Exhaustive } else { effort };
    let settings = candidates.settings.par_iter().enumerate();
    let read: Vec<Result<Bounded, (usize, String)>> = settings
        .map(|(index, setting)| evaluator.bound(index, setting).map_err(|reason| (index, reason)))
        .collect();
    let mut illegal = Vec::new();
    let mut bounded: Vec<Bounded> = Vec::new();
    for one in read {
        match one {
            Ok(one) => bounded.push(one),
            Err(refused) => illegal.push(refused),
        }
    }
    bounded.sort_by_key(|one| (one.makespan, one.peak(), one.index));

    let mut state = State { simulated: Vec::new(), shown, effort };
    let mut left_out = 0;
    let mut waiting = bounded.into_iter().peekable();
    while waiting.peek().is_some() {
        let size = (state.simulated.len() / 2).clamp(FEWEST, MOST);
        let batch: Vec<Bounded> = waiting.by_ref().take(size).collect();
        let outcomes: Vec<(usize, Result<Option<Evaluated>, String>)> = batch
            .into_par_iter()
            .map(|one| {
                let index = one.index;
                if state.can_be_left_out(&one) {
                    return (index, Ok(None));
                }
                (index, evaluator.simulate(one, |one| state.can_be_left_out(one)))
            })
            .collect();
        for (index, outcome) in outcomes {
            match outcome {
                Ok(Some(evaluated)) => state.simulated.push(evaluated),
                Ok(None) => left_out += 1,
                Err(reason) => illegal.push((index, reason)),
            }
        }
    }
    illegal.sort();
    state.finish(left_out, illegal)
}

/// What is known so far.
struct State {
    simulated: Vec<Evaluated>,
    shown: usize,
    effort: Effort,
}

impl State {
    /// Whether a setting can neither be shown among the best nor lie on the front.
    fn can_be_left_out(&self, one: &Bounded) -> bool {
        self.effort == Effort::Pruned && self.cannot_be_among_the_best(one) && self.is_off_the_front(one)
    }

    fn cannot_be_among_the_best(&self, one: &Bounded) -> bool {
        if !one.may_fit() {
            return true;
        }
        let shorter = self.simulated.iter().filter(|done| done.fits && done.makespan() < one.makespan);
        shorter.count() >= self.shown
    }

    fn is_off_the_front(&self, one: &Bounded) -> bool {
        let (time, bytes) = (one.makespan, one.peak());
        self.simulated.iter().any(|done| {
            let (makespan, peak) = (done.makespan(), done.peak().get());
            makespan <= time && peak <= bytes && (makespan < time || peak < bytes)
        })
    }

    fn finish(mut self, left_out: usize, illegal: Vec<(usize, String)>) -> Found {
        self.simulated.sort_by_key(|done| done.index);
        let mut best: Vec<Evaluated> = self.simulated.iter().filter(|done| done.fits).cloned().collect();
        best.sort_by_key(Evaluated::key);
        best.truncate(self.shown);
        let points: Vec<(u64, u64)> =
            self.simulated.iter().map(|done| (done.makespan(), done.peak().get())).collect();
        let on_front = pareto_front(&points);
        let front = self.simulated.iter().zip(on_front).filter(|&(_, on)| on);
        let mut front: Vec<Evaluated> = front.map(|(done, _)| done.clone()).collect();
        front.sort_by_key(Evaluated::key);
        front.dedup_by_key(|done| (done.makespan(), done.peak().get()));
        Found { best, front, simulated: self.simulated, left_out, illegal }
    }
}

#[cfg(test)]
mod tests;
