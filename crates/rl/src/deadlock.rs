//! Why a run cannot go on: who waits for what when nothing can happen any more, what throws away all that is made;
//! and whether every sample is accounted for.

use std::fmt::Write as _;

use crate::fleet::Hold;
use crate::pool::Pool;
use crate::record::Recorder;
use crate::response::Sample;
use crate::world::Rounds;
use crate::{Field, RlError};

impl<R: Recorder> Rounds<'_, R> {
    /// Whether the samples launched are those that went somewhere and those still under way, and so with the tokens of
    /// those that ended.
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
        let (mut ended, mut tokens) = (0, 0);
        for sample in self.ended_under_way() {
            ended += 1;
            tokens += u128::from(sample.tokens);
        }
        let held: u64 = self.pools.iter().map(Pool::holds).sum();
        held == self.scoring
            && counts.launched == gone.iter().sum::<u64>() + self.open + ended
            && counts.finished_tokens == counts.trained_tokens + counts.dropped_tokens + tokens
    }

    /// The samples that have ended and not yet gone anywhere.
    fn ended_under_way(&self) -> impl Iterator<Item = &Sample> {
        let lines = [&self.just_ended, &self.gate, &self.carried, &self.trainer.samples];
        let lines = lines.into_iter().flatten().chain(&self.ready);
        lines.chain(self.pools.iter().flat_map(Pool::samples)).chain(self.groups.waiting())
    }

    /// The error that describes a run in which nothing is left to happen.
    pub(crate) fn deadlock(&self) -> RlError {
        let mut waiting =
            format!("the next update waits for {} samples and has {}", self.inputs.batch, self.ready.len());
        let mut field = Field::from("faults");
        for (number, (stage, pool)) in self.inputs.scoring.iter().zip(&self.pools).enumerate() {
            if pool.holds() > 0 {
                let mut state = "";
                if pool.stops > 0 {
                    state = " and stands still for good; write how long it is `down`";
                    let stops = &self.inputs.faults.scorer_stops;
                    let stop = stops.iter().position(|stop| stop.pool == number && stop.down.is_none());
                    field = stop.map_or(field, |stop| format!("faults.scorers.{stop}").into());
                }
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
            field,
            updates: u64::from(self.trained),
            wanted: u64::from(self.inputs.warmup) + u64::from(self.inputs.rounds),
            waiting,
        }
    }
    /// The error that describes a run in which samples are made and thrown away without end.
    pub(crate) fn no_progress(&self) -> RlError {
        let counts = &self.tally.counts;
        let ways = [
            (counts.interrupted, "were interrupted", "faults.mean_time_to_interruption", "a longer time"),
            (counts.filtered, "were not kept", "keep", "a larger share"),
            (counts.stale, "were too old for an update", "discard_older_than", "a higher bound"),
            (counts.engine_failures, "failures of engines", "faults", "failures that are rarer"),
        ];
        let all = ways.iter().filter(|way| way.0 > 0).map(|way| format!("{} {}", way.0, way.1));
        let (_, _, field, remedy) = ways.into_iter().max_by_key(|way| way.0).unwrap_or(ways[0]);
        let reason = format!("{}; write {remedy}", all.collect::<Vec<_>>().join(", "));
        RlError::NoProgress { field: field.into(), resolved: self.resolved, reason }
    }
}
