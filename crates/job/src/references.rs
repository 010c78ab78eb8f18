//! Which closed forms stand beside a given job, with what each leaves out.

use crate::closed_form::{
    Poisson, async_useful_fraction, daly_interval, exact_interval, simple_rule_loss, young_interval,
};
use crate::inputs::{Backlog, Checkpoint, JobInputs, Mode, Recovery, Trigger};

/// A number from a formula, to print beside the simulated one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reference {
    /// Its name in the JSON result.
    pub name: &'static str,
    /// The number, in [`Reference::unit`].
    pub value: f64,
    /// What it counts.
    pub unit: ReferenceUnit,
    /// Where it is from and what it leaves out.
    pub note: &'static str,
}

/// What a reference counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceUnit {
    /// Seconds of useful work between two saves.
    Interval,
    /// Useful time over wall time.
    UsefulFraction,
    /// Time lost over wall time.
    Loss,
}

impl JobInputs {
    /// The closed forms for this job; none without random failures or without saves at a mean interval.
    ///
    /// All are for exponential failures, whatever the distribution of the job's sources; only their rate is
    /// taken over.
    pub fn references(&self) -> Vec<Reference> {
        let rate: f64 = self.faults.sources.iter().map(crate::FaultSource::rate).sum();
        let Some(checkpoint) = self.checkpoint.as_ref().filter(|_| rate > 0.0) else {
            return Vec::new();
        };
        let Some(write) = self.write_seconds(checkpoint) else {
            return Vec::new();
        };
        let mtbf = 1.0 / rate;
        let interval = checkpoint.requests.every.mean_nanos() / 1e9;
        let down = self.faults.detection.as_secs_f64() + self.faults.downtime.mean_nanos() / 1e9;
        let recovery = self.recovery_seconds(checkpoint);
        let pause = match checkpoint.mode {
            Mode::Sync => write + checkpoint.commit_delay.as_secs_f64(),
            Mode::Async { staging, .. } => staging.as_secs_f64(),
        };
        let exposed = if self.faults.recovery_can_fail { recovery } else { 0.0 };
        let poisson = Poisson {
            mtbf,
            interval,
            save_cost: pause,
            downtime: down + recovery - exposed,
            exposed_recovery: exposed,
        };
        let mut references = intervals(pause, mtbf);
        references.extend(fractions(checkpoint, &poisson, write));
        references.push(Reference {
            name: "simple_rule_loss",
            value: simple_rule_loss(down + recovery, interval / 2.0, mtbf),
            unit: ReferenceUnit::Loss,
            note: "(MTTR + half an interval of redo) / MTBF; leaves out what the saves cost, the time until a \
                   checkpoint can be used, and everything beyond first order",
        });
        references
    }

    /// How long a write takes on average.
    fn write_seconds(&self, checkpoint: &Checkpoint) -> Option<f64> {
        let rate = match checkpoint.write {
            crate::Write::Time(time) => return Some(time.mean_nanos() / 1e9),
            crate::Write::Rate(rate) => rate,
            crate::Write::Storage => self.storage?.write,
        };
        Some(checkpoint.size?.get() as f64 / rate.per_second_f64())
    }

    fn recovery_seconds(&self, checkpoint: &Checkpoint) -> f64 {
        let size = checkpoint.size.map_or(0.0, |size| size.get() as f64);
        match self.faults.recovery {
            Recovery::Fixed(length) => length.mean_nanos() / 1e9,
            Recovery::Read { bandwidth, restart } => {
                size / bandwidth.per_second_f64() + restart.as_secs_f64()
            }
            Recovery::Storage { restart } => {
                let read = self.storage.map_or(0.0, |storage| size / storage.read.per_second_f64());
                read + restart.as_secs_f64()
            }
        }
    }
}

fn intervals(pause: f64, mtbf: f64) -> Vec<Reference> {
    if pause <= 0.0 {
        return Vec::new();
    }
    let interval = |name, value, note| Reference { name, value, unit: ReferenceUnit::Interval, note };
    vec![
        interval(
            "young_interval",
            young_interval(pause, mtbf),
            "sqrt(2 x pause x MTBF), Young 1974; first order, and a checkpoint counts as usable when training \
             goes on",
        ),
        interval(
            "daly_interval",
            daly_interval(pause, mtbf),
            "Daly 2006, higher order; a checkpoint counts as usable when training goes on",
        ),
        interval(
            "exact_interval",
            exact_interval(pause, mtbf),
            "exact for exponential failures and saves that pause training for the whole write",
        ),
    ]
}

fn fractions(checkpoint: &Checkpoint, poisson: &Poisson, write: f64) -> Vec<Reference> {
    let fraction = |name, value, note| Reference { name, value, unit: ReferenceUnit::UsefulFraction, note };
    let mut references = vec![fraction(
        "first_order_useful_fraction",
        poisson.first_order_loss().useful_fraction(),
        "1 / (1 + pause/interval + interval/2 MTBF + recovery/MTBF); a checkpoint counts as usable when training \
         goes on",
    )];
    if checkpoint.near.is_some() || checkpoint.requests.trigger != Trigger::Work {
        return references;
    }
    match checkpoint.mode {
        Mode::Sync => references.push(fraction(
            "exact_useful_fraction",
            poisson.useful_fraction(),
            "exact for exponential failures, fixed times and no stragglers",
        )),
        // The writer's queue is simple where no request ever waits or is dropped.
        Mode::Async { staging, backlog, .. }
            if backlog == Backlog::Queue || write <= poisson.interval + staging.as_secs_f64() =>
        {
            let recovery = poisson.downtime + poisson.exposed_recovery;
            references.push(fraction(
                "exact_useful_fraction",
                async_useful_fraction(poisson.mtbf, poisson.interval, poisson.save_cost, write, recovery),
                "exact for exponential failures, fixed times, no stragglers and a recovery that cannot fail",
            ));
        }
        Mode::Async { .. } => {}
    }
    references
}
