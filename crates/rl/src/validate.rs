//! Which inputs are refused before anything runs, and why.
//!
//! One idea: what can be seen from the inputs alone (counts of zero, rules that exclude each other, a
//! staleness bound that can never be met) is refused here with the reason; what only shows in the run (a
//! scorer that stops for good) ends in [`RlError::Deadlock`] or [`RlError::NoProgress`].

use crate::costs::Costs;
use crate::faults::Faults;
use crate::inputs::{Group, Keep, Mode, Placement, ScoringStart};
use crate::stages::{ScoringTime, SyncStyle, SyncTime, TokenTime, UpdateTime};
use crate::{RlError, RlInputs};

/// The most of anything that is counted one by one.
const MOST: u32 = 1 << 22;
/// The most servers of one stage: each has its own state.
const MOST_SERVERS: u32 = 1 << 20;

impl RlInputs {
    /// Whether the inputs can be simulated.
    ///
    /// # Errors
    /// The first thing that is wrong with them.
    pub fn check(&self) -> Result<(), RlError> {
        validate(self)
    }
}

/// Checks everything.
pub(crate) fn validate(inputs: &RlInputs) -> Result<(), RlError> {
    counts(inputs)?;
    group(inputs)?;
    rollout(inputs)?;
    scoring(inputs)?;
    update(inputs)?;
    speeds(inputs)?;
    sync(inputs)?;
    mode(inputs)?;
    staleness(inputs)?;
    placement(inputs)?;
    faults(inputs)?;
    prices(inputs)?;
    sharing(inputs)?;
    // Times that are too short, or too long to add up.
    Costs::new(inputs).map(|_| ())
}

fn refuse(reason: impl Into<String>) -> Result<(), RlError> {
    Err(RlError::Refused { reason: reason.into() })
}

fn at_least_one(what: impl Into<String>, count: u32, why: &'static str) -> Result<(), RlError> {
    let what = what.into();
    if count == 0 {
        return Err(RlError::Zero { what, why });
    }
    at_most(what, u64::from(count), u64::from(MOST))
}

fn at_most(what: impl Into<String>, found: u64, limit: u64) -> Result<(), RlError> {
    if found > limit {
        let what = what.into();
        return Err(RlError::TooMany { what, found, limit });
    }
    Ok(())
}

fn counts(inputs: &RlInputs) -> Result<(), RlError> {
    at_least_one("`batch`", inputs.batch, "an update trains on nothing")?;
    at_least_one("`rounds`", inputs.rounds, "there is nothing to measure")?;
    at_least_one("`engines`", inputs.rollout.engines, "nothing generates a response")?;
    at_least_one("`slots`", inputs.rollout.slots, "no engine can ever take a response")?;
    at_least_one("`copies`", inputs.rollout.copies, "no response is launched")?;
    at_least_one("`mini_steps`", inputs.update.mini_steps, "the update does nothing")?;
    at_most("`warmup`", u64::from(inputs.warmup), u64::from(MOST))?;
    at_most("`launch`", u64::from(inputs.launch), u64::from(MOST))?;
    let slots = u64::from(inputs.rollout.engines) * u64::from(inputs.rollout.slots);
    at_most("`engines` x `slots`", slots, u64::from(MOST))?;
    at_most("`engines`", u64::from(inputs.rollout.engines), u64::from(MOST_SERVERS))?;
    at_most("the number of scoring pools", inputs.scoring.len() as u64, 255)?;
    for pool in &inputs.scoring {
        let what = format!("workers of scoring pool `{}`", pool.name);
        at_least_one(what.as_str(), pool.workers, "no sample is ever scored")?;
        at_most(what, u64::from(pool.workers), u64::from(MOST_SERVERS))?;
    }
    Ok(())
}

fn group(inputs: &RlInputs) -> Result<(), RlError> {
    let Group { responses, launch, cut: _ } = inputs.group;
    at_least_one("`responses`", responses, "a prompt has no response to train on")?;
    if launch < responses {
        return refuse(format!(
            "a group launches {launch} responses and needs {responses}: it is never complete; launch at least \
             as many"
        ));
    }
    for (what, count) in [("`batch`", inputs.batch), ("`launch`", inputs.launch)] {
        if !count.is_multiple_of(responses) {
            return refuse(format!(
                "{what} is {count}, which is no whole number of groups of {responses}; write a multiple of \
                 {responses}"
            ));
        }
    }
    let members = u64::from(inputs.launch / responses) * u64::from(launch);
    at_most("the number of responses launched a round", members, u64::from(MOST))
}

fn rollout(inputs: &RlInputs) -> Result<(), RlError> {
    inputs.rollout.lengths.check("response lengths")?;
    if let TokenTime::Table(points) = &inputs.rollout.token_time {
        if points.is_empty() {
            return refuse("the table of times per token is empty");
        }
        if points.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return refuse("the table of times per token must list rising numbers of responses");
        }
    }
    Ok(())
}

fn scoring(inputs: &RlInputs) -> Result<(), RlError> {
    for pool in &inputs.scoring {
        if let ScoringTime::Sampled(distribution) = &pool.time {
            distribution.check(&format!("time of scoring pool `{}`", pool.name))?;
        }
    }
    match inputs.keep {
        Keep::Evenly(share) | Keep::Randomly(share) if share.is_zero() => {
            refuse("with a kept share of 0 no batch is ever full; write a share above 0")
        }
        Keep::Evenly(share) | Keep::Randomly(share) if !share.is_share() => {
            refuse(format!("a kept share is at most 1, found {share}"))
        }
        Keep::All | Keep::Evenly(_) | Keep::Randomly(_) => Ok(()),
    }
}

fn update(inputs: &RlInputs) -> Result<(), RlError> {
    let update = &inputs.update;
    if update.mini_steps > inputs.batch {
        return refuse(format!(
            "an update has {} mini-steps but only {} samples; give each mini-step at least one",
            update.mini_steps, inputs.batch
        ));
    }
    match &update.time {
        UpdateTime::Each(times) if times.len() != update.mini_steps as usize => refuse(format!(
            "an update has {} mini-steps but {} times are given",
            update.mini_steps,
            times.len()
        )),
        UpdateTime::Scaled { tokens: 0, .. } => {
            refuse("a step with 0 tokens cannot be scaled; give the tokens of the simulated step")
        }
        _ => Ok(()),
    }
}

fn speeds(inputs: &RlInputs) -> Result<(), RlError> {
    let named = [
        ("rollout", inputs.rollout.speed),
        ("update", inputs.update.speed),
        ("weight sync", inputs.sync.speed),
    ];
    let pools = inputs.scoring.iter().map(|pool| (pool.name.as_str(), pool.speed));
    for (stage, speed) in named.into_iter().chain(pools) {
        if speed.is_zero() {
            let stage = stage.to_owned();
            return Err(RlError::Speed { stage });
        }
    }
    Ok(())
}

fn sync(inputs: &RlInputs) -> Result<(), RlError> {
    if let SyncTime::Transfer(transfer) = &inputs.sync.time {
        let payload = &transfer.payload;
        at_least_one("receiving ranks of an engine", payload.ranks, "nobody gets the weights")?;
        if payload.experts.get() > 0 {
            at_least_one("`expert_count`", payload.expert_count, "there are expert weights")?;
        }
    }
    Ok(())
}

fn mode(inputs: &RlInputs) -> Result<(), RlError> {
    let (batch, launch) = (inputs.batch, inputs.launch);
    if launch < batch {
        return refuse(format!(
            "a round launches {launch} samples and needs {batch}: its batch is never full; launch at least \
             as many"
        ));
    }
    if let Mode::Async(rule) = inputs.mode {
        if launch != batch {
            return refuse(format!(
                "`async` has no rounds of launches: over-sampling ({launch} for {batch}) does not apply; set \
                 the staleness bound instead"
            ));
        }
        at_least_one("`sync_every`", rule.sync_every, "engines never get new weights")?;
    }
    if inputs.mode == Mode::Stream && inputs.scoring_start == ScoringStart::WholeBatch {
        return refuse(
            "`stream` scores responses as they finish; a whole-batch scoring start contradicts it",
        );
    }
    Ok(())
}

/// A bound on age that is below what the mode always has would discard every sample.
fn staleness(inputs: &RlInputs) -> Result<(), RlError> {
    let Some(limit) = inputs.discard_older_than else {
        return Ok(());
    };
    let (always, why) = match inputs.mode {
        Mode::OneStepOff => (1, "every sample is one update old".to_owned()),
        Mode::Async(rule) => (
            rule.sync_every - 1,
            format!(
                "engines get weights every {} updates, so the last update before that trains on samples {} \
                 updates old",
                rule.sync_every,
                rule.sync_every - 1
            ),
        ),
        _ => (0, String::new()),
    };
    if limit < always {
        return refuse(format!(
            "a staleness bound of {limit} can never be met in `{}`: {why}; allow at least {always}",
            inputs.mode.name()
        ));
    }
    Ok(())
}

fn placement(inputs: &RlInputs) -> Result<(), RlError> {
    let Placement::Colocated(switching) = &inputs.placement else {
        return Ok(());
    };
    if !matches!(inputs.mode, Mode::Sync | Mode::Partial(_)) {
        return refuse(format!(
            "`{}` rolls out and trains at the same time, which devices that take turns cannot; place them \
             separately or use `sync` or `partial`",
            inputs.mode.name()
        ));
    }
    if inputs.sync.style == SyncStyle::Staggered {
        return refuse("colocated devices all switch at once; use a blocking weight sync");
    }
    if let Some(memory) = &switching.memory {
        let count = memory.items.len();
        for (index, item) in memory.items.iter().enumerate() {
            if item.read_from.is_some_and(|source| source >= count || source == index) {
                return refuse(format!("`{}` is read from an item that is not there", item.name));
            }
        }
        memory.plan()?;
    }
    Ok(())
}

fn faults(inputs: &RlInputs) -> Result<(), RlError> {
    let faults = &inputs.faults;
    let engines = u64::from(inputs.rollout.engines);
    for failure in &faults.engine_failures {
        let index = u64::from(failure.engine);
        if index >= engines {
            let (what, count) = ("engine", engines);
            return Err(RlError::UnknownTarget { what, index, count });
        }
    }
    for stop in &faults.scorer_stops {
        let (index, count) = (stop.pool as u64, inputs.scoring.len() as u64);
        if index >= count {
            let what = "scoring pool";
            return Err(RlError::UnknownTarget { what, index, count });
        }
    }
    if faults.random_engine_failures.is_some_and(|rule| rule.mean_time.as_nanos() == 0) {
        return refuse("the mean time to an engine's failure must be above 0");
    }
    if faults.mean_time_to_interruption.is_some_and(|time| time.as_nanos() == 0) {
        return refuse("the mean time to an interruption must be above 0");
    }
    Ok(())
}

fn prices(inputs: &RlInputs) -> Result<(), RlError> {
    let Some(prices) = &inputs.prices else {
        return Ok(());
    };
    if prices.worker_hour.len() != inputs.scoring.len() {
        return refuse(format!(
            "{} scoring pools but {} prices of a worker",
            inputs.scoring.len(),
            prices.worker_hour.len()
        ));
    }
    let all = [prices.engine_hour, prices.trainer_hour];
    if all.iter().chain(&prices.worker_hour).any(|price| !(price.is_finite() && *price >= 0.0)) {
        return refuse("prices must be 0 or more");
    }
    Ok(())
}

/// Jobs that share take turns in phases, which only a synchronous round has.
fn sharing(inputs: &RlInputs) -> Result<(), RlError> {
    let Some(sharing) = &inputs.sharing else {
        return Ok(());
    };
    if sharing.jobs.is_empty() {
        return refuse("no other job shares engines and trainer; name one, or leave sharing out");
    }
    let names = std::iter::once("this job").chain(sharing.jobs.iter().map(|job| job.name.as_str()));
    let jobs = std::iter::once(inputs).chain(sharing.jobs.iter().map(|job| &job.inputs));
    for (name, job) in names.zip(jobs) {
        let is_plain = job.mode == Mode::Sync
            && job.placement == Placement::Separate
            && job.sync.style == SyncStyle::Blocking
            && job.faults == Faults::none();
        if !is_plain {
            return refuse(format!(
                "jobs take turns on separate engines and trainer only in `sync`, with a blocking weight sync and \
                 without faults; {name} is otherwise"
            ));
        }
        if (job.rollout.engines, job.rollout.slots) != (inputs.rollout.engines, inputs.rollout.slots) {
            return refuse(format!("{name}, which shares engines and trainer, has other engines"));
        }
    }
    for job in &sharing.jobs {
        if job.inputs.sharing.is_some() {
            return refuse(format!(
                "{}, which shares engines and trainer, shares with further jobs; name them all in one place",
                job.name
            ));
        }
        let refused = |error: RlError| RlError::Refused {
            reason: format!("{}, which shares engines and trainer: {error}", job.name),
        };
        validate(&job.inputs).map_err(refused)?;
    }
    Ok(())
}
