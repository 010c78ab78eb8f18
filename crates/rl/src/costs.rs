//! The inputs' times as the world uses them: looked up, scaled by their stage's speed, rounded once.
//!
//! One idea: everything that does not change during a run is computed before it, and the rest (by tokens, by
//! draws) is one function each. Deliberately absent: any state.

use pipestep_engine::{Duration, Overflow, Streams};

use crate::fraction::scale;
use crate::inputs::Placement;
use crate::stages::{Rollout, ScoringPool, ScoringTime, SyncStyle, SyncTime, TokenTime, Update, UpdateTime};
use crate::{Fraction, RlError, RlInputs};

/// Durations of a run.
#[derive(Clone, Debug)]
pub(crate) struct Costs {
    /// Nanoseconds of an iteration with `n` responses, by `n`; entry 0 is never used.
    pub(crate) token_time: Vec<u64>,
    /// Of the whole synchronisation (blocking) or of one engine's (staggered).
    pub(crate) sync: Duration,
    pub(crate) handoff: Duration,
    pub(crate) prepare: Duration,
    pub(crate) finish: Duration,
    /// Of colocated devices, moves of memory included.
    pub(crate) to_rollout: Duration,
    pub(crate) to_training: Duration,
    rollout_speed: Fraction,
    prefill_per_token: Duration,
    resume: Duration,
    streams: Streams,
}

impl Costs {
    pub(crate) fn new(inputs: &RlInputs) -> Result<Self, RlError> {
        let (rollout, update) = (&inputs.rollout, &inputs.update);
        let (to_rollout, to_training) = switch_times(inputs)?;
        Ok(Self {
            token_time: token_times(rollout)?,
            sync: sync_time(inputs)?,
            handoff: update.speed.speed_up(update.handoff)?,
            prepare: update.speed.speed_up(update.prepare)?,
            finish: update.speed.speed_up(update.finish)?,
            to_rollout,
            to_training,
            rollout_speed: rollout.speed,
            prefill_per_token: rollout.prefill_per_token,
            resume: rollout.resume,
            streams: Streams::new(inputs.seed),
        })
    }

    /// Time before a response with `tokens` tokens of prompt (and kept response) decodes.
    pub(crate) fn prefill(&self, tokens: u64, resumed: bool) -> Result<Duration, Overflow> {
        if self.prefill_per_token == Duration::ZERO && (!resumed || self.resume == Duration::ZERO) {
            return Ok(Duration::ZERO);
        }
        let fixed = if resumed { self.resume } else { Duration::ZERO };
        self.rollout_speed.speed_up(self.prefill_per_token.times(tokens)?.plus(fixed)?)
    }

    /// Time of pool number `index` for sample number `sample` with `tokens` tokens.
    pub(crate) fn scoring(
        &self,
        pool: &ScoringPool,
        index: usize,
        sample: u64,
        tokens: u64,
    ) -> Result<Duration, Overflow> {
        let time = match &pool.time {
            ScoringTime::PerToken { fixed, per_token } => per_token.times(tokens)?.plus(*fixed)?,
            ScoringTime::Sampled(distribution) => {
                // One stream for each sample and pool: the draw is the same in every mode, whatever the
                // order of service.
                let name = (sample << 8) | index as u64;
                let drawn = if distribution.is_certain() {
                    distribution.draw(sample, &mut self.streams.stream("", 0))
                } else {
                    distribution.draw(sample, &mut self.streams.stream("scoring", name))
                };
                Duration::from_nanos(drawn)
            }
        };
        pool.speed.speed_up(time)
    }

    /// Time of mini-step number `step` over `tokens` tokens, preparation included in the first.
    pub(crate) fn mini_step(&self, update: &Update, step: u32, tokens: u64) -> Result<Duration, Overflow> {
        let time = match &update.time {
            UpdateTime::Fixed(time) => *time,
            UpdateTime::Each(times) => times[step as usize],
            UpdateTime::PerToken { fixed, per_token } => per_token.times(tokens)?.plus(*fixed)?,
            UpdateTime::Scaled { step, tokens: whole } => {
                scale(*step, u128::from(tokens), u128::from(*whole))?
            }
        };
        let time = update.speed.speed_up(time)?;
        if step == 0 { time.plus(self.prepare) } else { Ok(time) }
    }
}

/// Nanoseconds of an iteration for every number of responses up to the slots.
fn token_times(rollout: &Rollout) -> Result<Vec<u64>, RlError> {
    (0..=rollout.slots)
        .map(|running| {
            let time = match &rollout.token_time {
                TokenTime::Linear { base, per_response } => {
                    per_response.times(u64::from(running))?.plus(*base)?
                }
                TokenTime::Table(points) => between(points, running),
            };
            let time = rollout.speed.speed_up(time)?;
            if running > 0 && time == Duration::ZERO {
                return Err(RlError::Refused {
                    field: "rollout.token_time".into(),
                    reason: format!(
                        "the time per token of {running} running is below a nanosecond: a response \
                         would take no time"
                    ),
                });
            }
            Ok(time.as_nanos())
        })
        .collect()
}

/// The value at `running` on the straight lines through the points, which are not empty and rise (checked
/// with the inputs).
fn between(points: &[(u32, Duration)], running: u32) -> Duration {
    let after = points.partition_point(|&(n, _)| n < running);
    let Some(&(right, high)) = points.get(after) else {
        return points[points.len() - 1].1;
    };
    if right == running || after == 0 {
        return high;
    }
    let (left, low) = points[after - 1];
    let (width, step) = (i128::from(right - left), i128::from(running - left));
    let rise = i128::from(high.as_nanos()) - i128::from(low.as_nanos());
    let twice = 2 * rise * step + width;
    let value = i128::from(low.as_nanos()) + twice.div_euclid(2 * width);
    Duration::from_nanos(u64::try_from(value).expect("between two lengths of time"))
}

/// Times of the switches to rollout and to training.
fn switch_times(inputs: &RlInputs) -> Result<(Duration, Duration), RlError> {
    let Placement::Colocated(switching) = &inputs.placement else {
        return Ok((Duration::ZERO, Duration::ZERO));
    };
    let (mut to_rollout, mut to_training) = (switching.to_rollout, switching.to_training);
    if let Some(memory) = &switching.memory {
        let plan = memory.plan()?;
        to_rollout = to_rollout.plus(plan.to_rollout.time)?;
        to_training = to_training.plus(plan.to_training.time)?;
    }
    Ok((to_rollout, to_training))
}

fn sync_time(inputs: &RlInputs) -> Result<Duration, Overflow> {
    let engines = match inputs.sync.style {
        SyncStyle::Blocking => inputs.rollout.engines,
        SyncStyle::Staggered => 1,
    };
    let time = match &inputs.sync.time {
        SyncTime::Fixed(time) => *time,
        SyncTime::Transfer(transfer) => transfer.time(engines)?,
    };
    inputs.sync.speed.speed_up(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_along_straight_lines_and_flat_outside() {
        let points: Vec<(u32, Duration)> =
            [(2, 100), (4, 50), (8, 90)].map(|(n, nanos)| (n, Duration::from_nanos(nanos))).into();
        let read: Vec<u64> = (0..10).map(|n| between(&points, n).as_nanos()).collect();
        assert_eq!(read, [100, 100, 100, 75, 50, 60, 70, 80, 90, 90]);
    }
}
