//! The jobs that share engines and trainer with the one of `[rl]`.

use pipestep_engine::Duration;
use pipestep_rl::{RlInputs, SharedJob, Sharing, SyncTime};

use super::stages::{distribution, update_time};
use super::{Broken, Reading};
use crate::format::rl as written;
use crate::format::rl_around::OtherJob;
use crate::read::{Count, Key};

/// Who shares, each as `base` but for what is written.
pub(super) fn sharing(
    rl: &written::Rl,
    base: &RlInputs,
    reading: &mut Reading<'_, '_>,
) -> Result<Option<Sharing>, Broken> {
    let Some((sharing, _)) = rl.sharing.given()? else {
        return Ok(None);
    };
    let mut jobs = Vec::new();
    for (index, job) in sharing.jobs.get().ok_or(Broken)?.iter().enumerate() {
        let inputs = other(job, base, reading)?;
        // Draws of its own, the same whatever else shares.
        let seed = base.seed.wrapping_add(index as u64 + 1);
        jobs.push(SharedJob {
            name: job.name.get().ok_or(Broken)?.clone(),
            inputs: RlInputs { seed, ..inputs },
        });
    }
    Ok(Some(Sharing { handoff: sharing.handoff.or(Duration::ZERO).ok_or(Broken)?, jobs }))
}

fn other(job: &OtherJob, base: &RlInputs, reading: &mut Reading<'_, '_>) -> Result<RlInputs, Broken> {
    let mut inputs = base.clone();
    if let Key::Given(Count(batch), _) = job.batch {
        (inputs.batch, inputs.launch) = (batch, batch);
    }
    inputs.launch = job.launch.or(Count(inputs.launch)).ok_or(Broken)?.0;
    if let Key::Given(lengths, span) = &job.lengths {
        let path = "rl.sharing.jobs.lengths";
        inputs.rollout.lengths = distribution(lengths, |tokens| tokens, path, *span, reading)?;
    }
    inputs.rollout.prompt_tokens = job.prompt_tokens.or(inputs.rollout.prompt_tokens).ok_or(Broken)?;
    if let Key::Given(time, _) = &job.update {
        inputs.update.time = update_time(time)?;
    }
    if let Key::Given(time, _) = job.sync {
        inputs.sync.time = SyncTime::Fixed(time);
    }
    let is_broken =
        [job.batch.is_broken(), job.lengths.is_broken(), job.update.is_broken(), job.sync.is_broken()];
    if is_broken.contains(&true) { Err(Broken) } else { Ok(inputs) }
}
