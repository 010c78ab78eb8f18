//! Machines in repair and in reserve; and a job that goes on with fewer replicas until they are back.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use pipestep_engine::{Class, Duration, EventId, Time};

use super::{Event, JobWorld, Queue};
use crate::inputs::{JobInputs, Shrink, Spares, WhenOut};
use crate::outcome::{Activity, Detail, ReplicaTotals, Replicas};
use crate::{JobError, Ratio, Spread};

/// The machines of a job.
#[derive(Debug)]
pub(super) struct SpareState {
    inputs: Spares,
    shrink: Option<Shrink>,
    /// Machines away for repair, by when they come back.
    away: BinaryHeap<Reverse<Time>>,
    ran_out: u64,
    /// Replicas that training goes without.
    missing: u32,
    /// The next return that gives a replica back while training goes on.
    back: Option<EventId>,
    /// Whether a replica is back that training has not paused for.
    is_due: bool,
    totals: ReplicaTotals,
    curve: Vec<Replicas>,
}

impl JobInputs {
    /// How the job goes on with fewer replicas, if it can.
    pub(super) fn shrink_to(&self) -> Option<Shrink> {
        match self.faults.spares?.when_out {
            WhenOut::Shrink(shrink) => Some(shrink),
            WhenOut::Wait => None,
        }
    }
}

impl SpareState {
    pub(super) fn new(inputs: Spares, shrink: Option<Shrink>) -> Self {
        let all = shrink.map_or(0, |shrink| shrink.replicas);
        Self {
            inputs,
            shrink,
            away: BinaryHeap::new(),
            ran_out: 0,
            missing: 0,
            back: None,
            is_due: false,
            totals: ReplicaTotals { all, fewest: all, ..ReplicaTotals::default() },
            curve: Vec::new(),
        }
    }

    pub(super) const fn repair(&self) -> Spread {
        self.inputs.repair
    }

    /// How often a machine was lost with no spare left.
    pub(super) const fn ran_out(&self) -> u64 {
        self.ran_out
    }

    /// A machine is lost, and back at `repaired`.
    pub(super) fn lose(&mut self, now: Time, repaired: Time) {
        self.take_returned(now);
        self.away.push(Reverse(repaired));
        self.ran_out += u64::from(self.lacking() > 0);
    }

    fn take_returned(&mut self, now: Time) {
        while self.away.peek().is_some_and(|&Reverse(back)| back <= now) {
            self.away.pop();
        }
    }

    /// Machines that the job lacks, all spares being in use.
    fn lacking(&self) -> usize {
        self.away.len().saturating_sub(self.inputs.count as usize)
    }

    /// When there are machines enough to go on.
    pub(super) fn ready(&mut self, now: Time) -> Time {
        self.take_returned(now);
        let can_lack = self.shrink.map_or(0, |shrink| {
            u64::from(shrink.replicas.saturating_sub(shrink.least)) * u64::from(shrink.machines)
        });
        let too_many = (self.lacking() as u64).saturating_sub(can_lack) as usize;
        let Some(last) = too_many.checked_sub(1) else { return now };
        let mut returns: Vec<Time> = self.away.iter().map(|&Reverse(back)| back).collect();
        *returns.select_nth_unstable(last).1
    }

    /// Replicas that training would have to go without now.
    fn stopped(&self) -> u32 {
        self.shrink.map_or(0, |shrink| (self.lacking() as u64).div_ceil(u64::from(shrink.machines)) as u32)
    }

    /// Training goes on with the replicas that there are.
    fn settle(&mut self, now: Time, detail: Detail) {
        self.take_returned(now);
        let missing = self.stopped();
        let Some(shrink) = self.shrink.filter(|_| missing != self.missing) else { return };
        self.totals.shrunk += u64::from(missing > self.missing);
        self.missing = missing;
        let count = shrink.replicas.saturating_sub(missing);
        self.totals.fewest = self.totals.fewest.min(count);
        if detail == Detail::Full {
            self.curve.push(Replicas { at: now, count });
        }
    }

    /// How many times as long work takes with the replicas that there are.
    fn slowness(&self) -> Ratio {
        let working = |shrink: Shrink| u64::from(shrink.replicas.saturating_sub(self.missing));
        let ratio = self.shrink.and_then(|shrink| Ratio::new(shrink.replicas.into(), working(shrink)));
        ratio.unwrap_or(Ratio::ONE)
    }

    pub(super) fn finish(self, short: Duration) -> (Option<ReplicaTotals>, Vec<Replicas>) {
        (self.shrink.map(|_| ReplicaTotals { short, ..self.totals }), self.curve)
    }
}

impl JobWorld<'_> {
    /// How many times as long work takes now: slow windows, and replicas that are missing.
    pub(super) fn slowness(&self) -> Ratio {
        let window = self.windows.factor();
        // Their product fits: the inputs are refused otherwise.
        self.faults.spares.as_ref().and_then(|spares| window.times(spares.slowness())).unwrap_or(window)
    }

    /// Training is about to go on after a failure or a pause: with the replicas that there are, until the next
    /// machine that gives one back.
    pub(super) fn count_replicas(&mut self, now: Time, queue: &mut Queue) {
        let Some(spares) = &mut self.faults.spares else { return };
        let Some(shrink) = spares.shrink else { return };
        spares.settle(now, self.detail);
        spares.is_due = false;
        let missing = spares.missing;
        self.progress.set_missing(missing, shrink.replicas);
        self.await_return(queue);
        if self.stepping.is_none() {
            self.progress.set_factor(self.slowness());
        }
    }

    /// Plans for the next machine to come back, if the job needs it.
    fn await_return(&mut self, queue: &mut Queue) {
        let Some(spares) = &mut self.faults.spares else { return };
        if let Some(&Reverse(at)) = spares.away.peek().filter(|_| spares.missing > 0)
            && at < Time::MAX
        {
            spares.back = Some(queue.schedule_movable(at, Class(0), Event::MachineBack));
        }
    }

    /// A failure: machines that come back while the job is down are counted when it goes on.
    pub(super) fn forget_return(&mut self, queue: &mut Queue) {
        let Some(spares) = &mut self.faults.spares else { return };
        spares.is_due = false;
        if let Some(id) = spares.back.take() {
            queue.cancel(id);
        }
    }

    /// A machine is back; if that makes a replica, training pauses to take it in as soon as it can.
    pub(super) fn machine_back(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(spares) = &mut self.faults.spares else { return Ok(()) };
        spares.back = None;
        spares.take_returned(now);
        if spares.stopped() == spares.missing {
            self.await_return(queue);
            return Ok(());
        }
        spares.is_due = true;
        match self.activity {
            Activity::Training | Activity::InputWait => self.regroup(now, queue),
            _ => Ok(()),
        }
    }

    /// Whether training has to pause for replicas that are back.
    pub(super) fn must_regroup(&self) -> bool {
        self.faults.spares.as_ref().is_some_and(|spares| spares.is_due)
    }

    /// Training pauses to take replicas back.
    pub(super) fn regroup(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        let Some(shrink) = self.inputs.shrink_to() else { return Ok(()) };
        self.enter_for(now, Activity::Regrouping, shrink.regroup, queue)
    }

    /// The replicas are back.
    pub(super) fn end_regroup(&mut self, now: Time, queue: &mut Queue) -> Result<(), JobError> {
        self.count_replicas(now, queue);
        self.train_or_wait(now, queue)
    }
}
