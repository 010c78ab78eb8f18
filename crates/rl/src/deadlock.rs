//! Who waits for what when nothing can happen any more, and whether every sample is accounted for.

use std::fmt::Write as _;

use crate::RlError;
use crate::fleet::Hold;
use crate::pool::Pool;
use crate::record::Recorder;
use crate::world::Rounds;

impl<R: Recorder> Rounds<'_, R> {
    /// Whether the samples launched are those that went somewhere and those still under way.
    pub(crate) fn every_sample_is_somewhere(&self) -> bool {
        let counts = &self.tally.counts;
        let gone = [
            counts.trained,
            counts.filtered,
            counts.aborted,
            counts.surplus,
            counts.stale,
            counts.interrupted,
            counts.lost,
        ];
        let waiting = self.just_ended.len()
            + self.gate.len()
            + self.carried.len()
            + self.ready.len()
            + self.trainer.samples.len();
        let held: u64 = self.pools.iter().map(Pool::holds).sum();
        let under_way = self.open + self.scoring + self.groups.waiting() + waiting as u64;
        held == self.scoring && counts.launched == gone.iter().sum::<u64>() + under_way
    }

    /// The error that describes a run in which nothing is left to happen.
    pub(crate) fn deadlock(&self) -> RlError {
        let mut waiting =
            format!("the next update waits for {} samples and has {}", self.inputs.batch, self.ready.len());
        for (stage, pool) in self.inputs.scoring.iter().zip(&self.pools) {
            if pool.holds() > 0 {
                let state = if pool.stops > 0 { " and stands still for good" } else { "" };
                // Writing to a string cannot fail.
                let _ = write!(waiting, "; `{}` holds {}{state}", stage.name, pool.holds());
            }
        }
        if self.open > 0 {
            let _ = write!(waiting, "; {} samples are not generated", self.open);
        }
        if self.is_async() && !self.may_launch() {
            let _ = write!(
                waiting,
                "; the staleness bound allows no launch before the next weight synchronisation ({} are \
                 launched)",
                self.launched
            );
        }
        let down = self.fleet.engines.iter().filter(|engine| engine.is_held(Hold::Down));
        let down = down.count();
        if down > 0 {
            let _ = write!(waiting, "; {down} engines are down");
        }
        RlError::Deadlock {
            updates: u64::from(self.trained),
            wanted: u64::from(self.inputs.warmup) + u64::from(self.inputs.rounds),
            waiting,
        }
    }
}
