//! Rounds of RL as a report sees them: JSON, text, the picture of rollout, scoring and update, and histograms.
//!
//! The command line fills in an [`RlView`]; what is drawn and printed is read off the outcome in it. Deliberately
//! absent: running the rounds, and the scenario.

mod bars;
mod histograms;
mod paints;
mod result;
mod rows;
#[cfg(test)]
mod testing;
mod text;
mod text_tables;
mod timeline;

pub use histograms::{rl_lengths, rl_staleness};
pub use result::{
    LengthBin, RlCostResult, RlCountsResult, RlJobResult, RlMemoryResult, RlResult, RoundResult, SplitResult,
    StageResult, StalenessResult, SwitchResult, SyncResult, TailResult,
};
pub use text::rl_text;
pub use timeline::rl_timeline;

use pipestep_engine::Bytes;
use pipestep_rl::{Fraction, Mode, RlInputs, Sensitivity, Span, StageUse, SyncTime};

/// Simulated rounds as a report sees them.
#[derive(Clone, Copy, Debug)]
pub struct RlView<'a> {
    /// The scenario's name.
    pub name: &'a str,
    /// What was simulated.
    pub inputs: &'a RlInputs,
    /// The rounds, and what each stage at double speed would bring.
    pub sensitivity: &'a Sensitivity,
    /// For each stage in the order of [`Sensitivity::gains`], the speed (1: as given) below which it would
    /// limit the rounds, where that was looked for and found; empty if it was not looked for.
    pub limits_below: &'a [Option<Fraction>],
    /// How many rounds were looked at to find these speeds, if fewer than all.
    pub limits_rounds: Option<u32>,
    /// Every bar of the picture; empty if nothing was recorded.
    pub spans: &'a [Span],
}

impl RlView<'_> {
    /// A stage's use, with what double speed would bring and the speed below which it limits, if they are known.
    fn stages(&self) -> impl Iterator<Item = (&StageUse, Option<f64>, Option<Fraction>)> {
        self.sensitivity.base.stages.iter().map(|stage| {
            let place = self.sensitivity.gains.iter().position(|gain| gain.name == stage.name);
            let gain = place.map(|place| self.sensitivity.gains[place].gain);
            let below = place.and_then(|place| self.limits_below.get(place).copied().flatten());
            (stage, gain, below)
        })
    }

    /// Bytes that one weight synchronisation brings to all engines together, where weights are sent over links.
    fn sync_bytes(&self) -> Option<Bytes> {
        let SyncTime::Transfer(transfer) = &self.inputs.sync.time else {
            return None;
        };
        let each = transfer.payload.received_by_engine(transfer.content).ok()?;
        each.get().checked_mul(u64::from(self.inputs.rollout.engines)).map(Bytes::new)
    }

    /// What a round is called where there are none.
    const fn round_word(&self) -> &'static str {
        match self.inputs.mode {
            Mode::Async(_) => "update",
            _ => "round",
        }
    }

    /// The same with its article.
    const fn one_round(&self) -> &'static str {
        match self.inputs.mode {
            Mode::Async(_) => "an update",
            _ => "a round",
        }
    }
}

/// Mean age of the samples trained on, in updates, and the greatest.
fn mean_and_oldest(staleness: &[u64]) -> (f64, usize) {
    let total: u64 = staleness.iter().sum();
    let sum: f64 = staleness.iter().enumerate().map(|(age, &count)| age as f64 * count as f64).sum();
    let oldest = staleness.iter().rposition(|&count| count > 0).unwrap_or(0);
    (if total > 0 { sum / total as f64 } else { 0.0 }, oldest)
}
