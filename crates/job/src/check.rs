//! Which inputs are refused: everything that means nothing or that no simulation could end.

use pipestep_engine::{Duration, Time};

use crate::input::{Input, ReadFrom};
use crate::inputs::{
    Checkpoint, FaultSource, Faults, JobInputs, Mode, NearTier, Recovery, Spares, WhenOut, Write,
};
use crate::spread::Zero;
use crate::stragglers::{Jitter, Ranks, Response, SlowDetection, SlowRanks, Stragglers};
use crate::{InputError, Ratio};

impl JobInputs {
    /// Whether the inputs can be simulated; the first thing that is wrong with them if not.
    ///
    /// # Errors
    /// [`InputError`], variant by variant.
    pub fn check(&self) -> Result<(), InputError> {
        if self.work.is_none() && self.horizon.is_none() {
            return Err(InputError::NoEnd);
        }
        if self.work == Some(Duration::ZERO) {
            return Err(InputError::Zero { what: "job.work" });
        }
        if self.horizon == Some(Time::ZERO) {
            return Err(InputError::Zero { what: "job.horizon" });
        }
        if let Some(checkpoint) = &self.checkpoint {
            checkpoint.check()?;
        }
        self.faults.check(self.checkpoint.as_ref())?;
        self.stragglers.check()?;
        self.check_storage()?;
        self.check_writes()?;
        let Some(input) = &self.input else { return Ok(()) };
        input.check()?;
        match &self.stragglers.ranks {
            Some(ranks) if ranks.step != input.step => {
                Err(InputError::StepsDiffer { input: input.step, ranks: ranks.step })
            }
            _ => Ok(()),
        }
    }

    /// Whether writes of checkpoints end.
    fn check_writes(&self) -> Result<(), InputError> {
        let Some((checkpoint, size)) = self.checkpoint.as_ref().and_then(|saved| Some((saved, saved.size?)))
        else {
            return Ok(());
        };
        let (what, rate) = match (checkpoint.write, self.storage) {
            (Write::Rate(rate), _) => ("checkpoint.bandwidth", rate),
            (Write::Storage, Some(storage)) => ("storage.write", storage.write),
            _ => return Ok(()),
        };
        rate.time_for(size).map(|_| ()).map_err(|_| InputError::NeverWritten { what, size })
    }

    /// Whether there is a shared storage for everything that goes there.
    fn check_storage(&self) -> Result<(), InputError> {
        let missing = |what| Err(InputError::NoStorage { what });
        if self.storage.is_some() {
            return Ok(());
        }
        let near = self.checkpoint.as_ref().and_then(|saved| saved.near);
        let recoveries = [Some(self.faults.recovery), near.map(|near| near.recovery)];
        if self.checkpoint.as_ref().is_some_and(|saved| saved.write == Write::Storage) {
            return missing("checkpoint.write");
        }
        if recoveries.iter().flatten().any(|recovery| matches!(recovery, Recovery::Storage { .. })) {
            return missing("faults.recovery");
        }
        match self.input.as_ref().and_then(|input| input.read) {
            Some(read) if read.from == ReadFrom::Storage => missing("input.read"),
            _ => Ok(()),
        }
    }
}

impl Input {
    fn check(&self) -> Result<(), InputError> {
        let positive = [
            (u64::from(self.items_per_step), "input.items_per_step"),
            (u64::from(self.workers), "input.workers"),
            (u64::from(self.delivery), "input.delivery"),
            (self.step.as_nanos(), "job.step"),
        ];
        if let Some((_, what)) = positive.into_iter().find(|&(value, _)| value == 0) {
            return Err(InputError::Zero { what });
        }
        if let Some(stop) = self.stops.iter().find(|stop| stop.workers > self.workers) {
            return Err(InputError::TooManyStopped { stopped: stop.workers, workers: self.workers });
        }
        if self.prefetch < self.items_per_step {
            return Err(InputError::Prefetch { wanted: self.items_per_step, prefetch: self.prefetch });
        }
        if self.readers == Some(0) {
            return Err(InputError::Zero { what: "input.readers" });
        }
        if self.copy.is_some_and(|copy| copy.slots == 0) {
            return Err(InputError::Zero { what: "input.copy.slots" });
        }
        if let Some(packing) = &self.packing {
            packing.check()?;
        }
        self.make.check("input.make", Zero::Allowed)
    }
}

impl Checkpoint {
    fn check(&self) -> Result<(), InputError> {
        self.requests.every.check("checkpoint.every", Zero::Refused)?;
        match self.write {
            Write::Time(time) => time.check("checkpoint.write_time", Zero::Allowed)?,
            Write::Rate(_) | Write::Storage if self.size.is_none() => {
                return Err(InputError::NoSize { what: "checkpoint.bandwidth" });
            }
            Write::Rate(_) | Write::Storage => {}
        }
        if let Mode::Async { backlog, buffer, .. } = self.mode {
            if backlog.buffers() == Some(0) {
                return Err(InputError::Zero { what: "checkpoint.buffers" });
            }
            if let (Some(size), Some(buffer)) = (self.size, buffer)
                && size > buffer
            {
                return Err(InputError::Buffer { size, buffer });
            }
        }
        self.near.as_ref().map_or(Ok(()), |near| near.check(self))
    }
}

impl NearTier {
    fn check(&self, checkpoint: &Checkpoint) -> Result<(), InputError> {
        if self.far_every == 0 {
            return Err(InputError::Zero { what: "checkpoint.near.far_every" });
        }
        share("checkpoint.near.survives", self.survives)?;
        check_recovery(self.recovery, "checkpoint.near.recovery", Some(checkpoint))
    }
}

impl Faults {
    fn check(&self, checkpoint: Option<&Checkpoint>) -> Result<(), InputError> {
        self.downtime.check("faults.downtime", Zero::Allowed)?;
        check_recovery(self.recovery, "faults.recovery", checkpoint)?;
        if let Some(spares) = self.spares {
            spares.check()?;
        }
        self.sources.iter().try_for_each(FaultSource::check)
    }
}

impl Spares {
    fn check(&self) -> Result<(), InputError> {
        self.repair.check("faults.spares.repair", Zero::Allowed)?;
        let WhenOut::Shrink(shrink) = self.when_out else { return Ok(()) };
        let counts = [
            (shrink.replicas, "faults.spares.replicas"),
            (shrink.least, "faults.spares.min_replicas"),
            (shrink.machines, "faults.spares.machines_per_replica"),
        ];
        if let Some((_, what)) = counts.into_iter().find(|&(count, _)| count == 0) {
            return Err(InputError::Zero { what });
        }
        if shrink.least > shrink.replicas {
            return Err(InputError::FewReplicas { least: shrink.least, replicas: shrink.replicas });
        }
        Ok(())
    }
}

impl FaultSource {
    fn check(&self) -> Result<(), InputError> {
        self.between.check("faults.mtbf", Zero::Refused)?;
        if self.devices == 0 {
            return Err(InputError::Zero { what: "faults.devices" });
        }
        if self.causes.iter().all(|cause| cause.weight == 0) {
            return Err(InputError::Empty { what: "faults.causes" });
        }
        for cause in &self.causes {
            share("faults.causes.near_survives", cause.near_survives.unwrap_or(0.0))?;
            if let Some(downtime) = cause.downtime {
                downtime.check("faults.causes.downtime", Zero::Allowed)?;
            }
        }
        Ok(())
    }
}

impl Stragglers {
    fn check(&self) -> Result<(), InputError> {
        if let Some(ranks) = &self.ranks {
            ranks.check()?;
        }
        for window in &self.windows {
            if window.from >= window.to {
                return Err(InputError::EmptyWindow { from: window.from, to: window.to });
            }
            if window.factor < Ratio::ONE {
                return Err(InputError::FactorBelowOne { factor: window.factor });
            }
        }
        Ok(())
    }
}

impl Ranks {
    fn check(&self) -> Result<(), InputError> {
        if self.count == 0 {
            return Err(InputError::Zero { what: "stragglers.ranks" });
        }
        if self.step == Duration::ZERO {
            return Err(InputError::NoStep { what: "stragglers" });
        }
        if self.overhead > self.step {
            return Err(InputError::Overhead { overhead: self.overhead, step: self.step });
        }
        self.jitter.check()?;
        if let Some(slow) = &self.slow {
            slow.check(self.count)?;
        }
        if let Some(detection) = self.detection {
            detection.check()?;
        }
        match self.response {
            Response::Redistribute { .. } | Response::Evict | Response::Stale { .. }
                if self.detection.is_none() =>
            {
                Err(InputError::NoDetection)
            }
            Response::Drop { slowest } if slowest >= self.count => Err(InputError::TooManyTaken {
                what: "stragglers.drop",
                taken: slowest.into(),
                present: self.count.into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Jitter {
    fn check(self) -> Result<(), InputError> {
        let bad = |reason| Err(InputError::Distribution { what: "stragglers.jitter", reason });
        let scale = match self {
            Self::None => 0.0,
            Self::Normal { deviation } => deviation,
            Self::Lognormal { variation } => variation,
            Self::Exponential { tail } => tail,
            Self::TwoPoint { factor, probability } => {
                share("stragglers.jitter.probability", probability)?;
                if !(1.0..=1e6).contains(&factor) {
                    return bad("a slow step takes between 1 and a million times as long");
                }
                0.0
            }
        };
        if (0.0..=10.0).contains(&scale) {
            Ok(())
        } else {
            bad("the scatter of a rank lies between 0 and 10 times its mean")
        }
    }
}

impl SlowRanks {
    fn check(&self, present: u32) -> Result<(), InputError> {
        if self.factor < Ratio::ONE {
            return Err(InputError::FactorBelowOne { factor: self.factor });
        }
        if self.at.len() as u64 > u64::from(present) {
            return Err(InputError::TooManyTaken {
                what: "stragglers.slow.at",
                taken: self.at.len() as u64,
                present: present.into(),
            });
        }
        if let Some(between) = self.between {
            between.check("stragglers.slow.mtbf", Zero::Refused)?;
        }
        self.lasts.map_or(Ok(()), |lasts| lasts.check("stragglers.slow.lasts", Zero::Allowed))
    }
}

impl SlowDetection {
    fn check(self) -> Result<(), InputError> {
        if self.window == 0 {
            return Err(InputError::Zero { what: "stragglers.window" });
        }
        if (0.0..=1e6).contains(&self.threshold) {
            return Ok(());
        }
        Err(InputError::Distribution {
            what: "stragglers.threshold",
            reason: "a threshold is a positive share of the mean computing time",
        })
    }
}

fn check_recovery(
    recovery: Recovery,
    what: &'static str,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), InputError> {
    match recovery {
        Recovery::Fixed(length) => length.check(what, Zero::Allowed),
        Recovery::Read { .. } | Recovery::Storage { .. }
            if checkpoint.is_none_or(|saved| saved.size.is_none()) =>
        {
            Err(InputError::NoSize { what })
        }
        Recovery::Read { .. } | Recovery::Storage { .. } => Ok(()),
    }
}

pub(crate) fn share(what: &'static str, value: f64) -> Result<(), InputError> {
    if (0.0..=1.0).contains(&value) { Ok(()) } else { Err(InputError::Share { what, value }) }
}
