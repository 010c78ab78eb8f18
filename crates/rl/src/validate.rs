//! Which inputs are refused before anything runs, and why.
//!
//! One idea: what can be seen from the inputs alone (counts of zero, rules that exclude each other, a
//! staleness bound that can never be met) is refused here with the reason; what only shows in the run (a
//! scorer that stops for good) ends in [`RlError::Deadlock`] or [`RlError::NoProgress`].

use pipestep_engine::Duration;

use crate::costs::Costs;
use crate::faults::Faults;
use crate::inputs::{Group, Keep, Mode, Placement, ScoringStart, Switching};
use crate::stages::{ScoringTime, SyncStyle, SyncTime, TokenTime, UpdateTime};
use crate::{Field, Fraction, RlError, RlInputs, Shape, Stage};

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

fn refuse(field: impl Into<Field>, reason: impl Into<String>) -> Result<(), RlError> {
    Err(RlError::Refused { field: field.into(), reason: reason.into() })
}

/// A count of something that is called as its key is.
fn at_least_one(field: &'static str, count: u32, why: &'static str) -> Result<(), RlError> {
    let key = field.rsplit('.').next().unwrap_or(field);
    counted(field, &format!("`{key}`"), count, why)
}

/// A count that is neither zero nor more than can be counted one by one.
fn counted(field: impl Into<Field>, what: &str, count: u32, why: &'static str) -> Result<(), RlError> {
    let field = field.into();
    if count == 0 {
        return Err(RlError::Zero { field, what: what.to_owned(), why });
    }
    at_most(field, what, u64::from(count), u64::from(MOST))
}

fn at_most(field: impl Into<Field>, what: &str, found: u64, limit: u64) -> Result<(), RlError> {
    if found > limit {
        return Err(RlError::TooMany { field: field.into(), what: what.to_owned(), found, limit });
    }
    Ok(())
}

fn counts(inputs: &RlInputs) -> Result<(), RlError> {
    let rollout = &inputs.rollout;
    at_least_one("batch", inputs.batch, "an update trains on nothing")?;
    at_least_one("rounds", inputs.rounds, "there is nothing to measure")?;
    at_least_one("rollout.engines", rollout.engines, "nothing generates a response")?;
    at_least_one("rollout.slots", rollout.slots, "no engine can ever take a response")?;
    at_least_one("rollout.copies", rollout.copies, "no response is launched")?;
    at_least_one("update.mini_steps", inputs.update.mini_steps, "the update does nothing")?;
    at_most("warmup", "`warmup`", u64::from(inputs.warmup), u64::from(MOST))?;
    at_most("launch", "`launch`", u64::from(inputs.launch), u64::from(MOST))?;
    let slots = u64::from(rollout.engines) * u64::from(rollout.slots);
    at_most("rollout.slots", "`engines` x `slots`", slots, u64::from(MOST))?;
    at_most("rollout.engines", "`engines`", u64::from(rollout.engines), u64::from(MOST_SERVERS))?;
    at_most("scoring", "the number of scoring pools", inputs.scoring.len() as u64, 255)?;
    for (number, pool) in inputs.scoring.iter().enumerate() {
        let (field, what) =
            (format!("scoring.{number}.workers"), format!("workers of scoring pool `{}`", pool.name));
        counted(field.clone(), &what, pool.workers, "no sample is ever scored")?;
        at_most(field, &what, u64::from(pool.workers), u64::from(MOST_SERVERS))?;
    }
    Ok(())
}

fn group(inputs: &RlInputs) -> Result<(), RlError> {
    let Group { responses, launch, cut: _ } = inputs.group;
    at_least_one("group.responses", responses, "a prompt has no response to train on")?;
    if launch < responses {
        return refuse(
            "group.launch",
            format!(
                "a group launches {launch} responses and needs {responses}: it is never complete; launch at \
                 least as many"
            ),
        );
    }
    for (key, count) in [("batch", inputs.batch), ("launch", inputs.launch)] {
        if !count.is_multiple_of(responses) {
            return refuse(
                key,
                format!(
                    "`{key}` is {count}, which is no whole number of groups of {responses}; write a multiple of \
                     {responses}"
                ),
            );
        }
    }
    let members = u64::from(inputs.launch / responses) * u64::from(launch);
    at_most("group", "the number of responses launched a round", members, u64::from(MOST))
}

fn rollout(inputs: &RlInputs) -> Result<(), RlError> {
    let lengths = &inputs.rollout.lengths;
    lengths.check("rollout.lengths", "response lengths")?;
    let none = match &lengths.shape {
        Shape::Fixed(tokens) => *tokens == 0,
        Shape::List(values) | Shape::Empirical(values) => values.contains(&0),
        // What is drawn is at least one.
        _ => false,
    };
    if none {
        return refuse("rollout.lengths", "a response has at least 1 token, found 0");
    }
    if let TokenTime::Table(points) = &inputs.rollout.token_time {
        if points.is_empty() {
            return refuse("rollout.token_time", "the table of times per token is empty");
        }
        if let Some(at) = (1..points.len()).find(|&at| points[at - 1].0 >= points[at].0) {
            let (before, after) = (points[at - 1].0, points[at].0);
            return refuse(
                format!("rollout.token_time.{at}"),
                format!("times per token are listed by rising `running`: {after} cannot come after {before}"),
            );
        }
    }
    Ok(())
}

fn scoring(inputs: &RlInputs) -> Result<(), RlError> {
    for (number, pool) in inputs.scoring.iter().enumerate() {
        if let ScoringTime::Sampled(distribution) = &pool.time {
            let what = format!("time of scoring pool `{}`", pool.name);
            distribution.check(format!("scoring.{number}.time"), &what)?;
        }
    }
    match inputs.keep {
        Keep::Evenly(share) | Keep::Randomly(share) if share.is_zero() => {
            refuse("keep", "with a kept share of 0 no batch is ever full; write a share above 0")
        }
        Keep::Evenly(share) | Keep::Randomly(share) if !share.is_share() => {
            refuse("keep", format!("a kept share is at most 1, found {share}"))
        }
        Keep::All | Keep::Evenly(_) | Keep::Randomly(_) => Ok(()),
    }
}

fn update(inputs: &RlInputs) -> Result<(), RlError> {
    let update = &inputs.update;
    if update.mini_steps > inputs.batch {
        return refuse(
            "update.mini_steps",
            format!(
                "an update has {} mini-steps but only {} samples; give each mini-step at least one",
                update.mini_steps, inputs.batch
            ),
        );
    }
    match &update.time {
        UpdateTime::Each(times) if times.len() != update.mini_steps as usize => refuse(
            "update.time",
            format!(
                "an update has {} mini-steps but {} times are given; write one for each, or one for all",
                update.mini_steps,
                times.len()
            ),
        ),
        UpdateTime::Scaled { tokens: 0, .. } => refuse(
            "update.step_tokens",
            "a step with 0 tokens cannot be scaled; give the tokens of the simulated step",
        ),
        _ => Ok(()),
    }
}

fn speeds(inputs: &RlInputs) -> Result<(), RlError> {
    let pools = (0..inputs.scoring.len()).map(Stage::Scoring);
    for stage in [Stage::Rollout, Stage::Update, Stage::WeightSync].into_iter().chain(pools) {
        if stage.speed(inputs).is_some_and(Fraction::is_zero) {
            let name = stage.name(inputs);
            return refuse(stage.speed_field(), format!("the speed of {name} must be above 0"));
        }
    }
    Ok(())
}

fn sync(inputs: &RlInputs) -> Result<(), RlError> {
    if let SyncTime::Transfer(transfer) = &inputs.sync.time {
        let payload = &transfer.payload;
        let what = "receiving ranks of an engine";
        counted("sync.transfer.ranks", what, payload.ranks, "nobody gets the weights")?;
        if payload.experts.get() > 0 {
            at_least_one("sync.transfer.expert_count", payload.expert_count, "there are expert weights")?;
        }
    }
    Ok(())
}

fn mode(inputs: &RlInputs) -> Result<(), RlError> {
    let (batch, launch) = (inputs.batch, inputs.launch);
    if launch < batch {
        return refuse(
            "launch",
            format!(
                "a round launches {launch} samples and needs {batch}: its batch is never full; launch at least \
                 as many"
            ),
        );
    }
    if let Mode::Async(rule) = inputs.mode {
        if launch != batch {
            return refuse(
                "launch",
                format!(
                    "`async` has no rounds of launches: over-sampling ({launch} for {batch}) does not apply; set \
                     the staleness bound instead"
                ),
            );
        }
        at_least_one("sync_every", rule.sync_every, "engines never get new weights")?;
    }
    if inputs.mode == Mode::Stream && inputs.scoring_start == ScoringStart::WholeBatch {
        return refuse(
            "scoring_start",
            "`stream` scores responses as they finish; a whole-batch scoring start contradicts it; leave it out",
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
        return refuse(
            "discard_older_than",
            format!(
                "a staleness bound of {limit} can never be met in `{}`: {why}; allow at least {always}",
                inputs.mode.name()
            ),
        );
    }
    Ok(())
}

fn placement(inputs: &RlInputs) -> Result<(), RlError> {
    let Placement::Colocated(switching) = &inputs.placement else {
        return Ok(());
    };
    if !matches!(inputs.mode, Mode::Sync | Mode::Partial(_)) {
        return refuse(
            "placement",
            format!(
                "`{}` rolls out and trains at the same time, which devices that take turns cannot; place them \
                 separately or use `sync` or `partial`",
                inputs.mode.name()
            ),
        );
    }
    if inputs.sync.style == SyncStyle::Staggered {
        return refuse("sync.style", "colocated devices all switch at once; use a blocking weight sync");
    }
    if let Some(memory) = &switching.memory {
        let count = memory.items.len();
        for (index, item) in memory.items.iter().enumerate() {
            if item.read_from.is_some_and(|source| source >= count || source == index) {
                return refuse(
                    format!("memory.items.{index}.read_from"),
                    format!("`{}` is read from itself or from an item that is not there", item.name),
                );
            }
        }
        memory.plan()?;
    }
    Ok(())
}

fn faults(inputs: &RlInputs) -> Result<(), RlError> {
    let faults = &inputs.faults;
    for (number, failure) in faults.engine_failures.iter().enumerate() {
        if failure.engine >= inputs.rollout.engines {
            let field = format!("faults.engines.{number}.engine");
            return unknown(field, "engine", failure.engine as usize, inputs.rollout.engines as usize);
        }
    }
    for (number, stop) in faults.scorer_stops.iter().enumerate() {
        if stop.pool >= inputs.scoring.len() {
            let field = format!("faults.scorers.{number}.pool");
            return unknown(field, "scoring pool", stop.pool, inputs.scoring.len());
        }
    }
    if faults.random_engine_failures.is_some_and(|rule| rule.mean_time.as_nanos() == 0) {
        return refuse("faults.random.mean_time", "the mean time to an engine's failure must be above 0");
    }
    if faults.mean_time_to_interruption.is_some_and(|time| time.as_nanos() == 0) {
        return refuse(
            "faults.mean_time_to_interruption",
            "the mean time to an interruption must be above 0",
        );
    }
    Ok(())
}

/// A fault of something that is not there.
fn unknown(field: String, what: &str, index: usize, count: usize) -> Result<(), RlError> {
    refuse(field, format!("a fault names {what} {index}, there are {count} (numbered from 0)"))
}

fn prices(inputs: &RlInputs) -> Result<(), RlError> {
    let Some(prices) = &inputs.prices else {
        return Ok(());
    };
    if prices.worker_hour.len() != inputs.scoring.len() {
        return refuse(
            "prices.worker",
            format!(
                "{} scoring pools but {} prices of a worker",
                inputs.scoring.len(),
                prices.worker_hour.len()
            ),
        );
    }
    let all = [prices.engine_hour, prices.trainer_hour];
    if all.iter().chain(&prices.worker_hour).any(|price| !(price.is_finite() && *price >= 0.0)) {
        return refuse("prices", "prices must be 0 or more");
    }
    Ok(())
}

/// Jobs that share take turns in phases, which only a synchronous round has.
fn sharing(inputs: &RlInputs) -> Result<(), RlError> {
    let Some(sharing) = &inputs.sharing else {
        return Ok(());
    };
    if sharing.jobs.is_empty() {
        return refuse("sharing", "no other job shares engines and trainer; name one, or leave sharing out");
    }
    let names = std::iter::once("this job").chain(sharing.jobs.iter().map(|job| job.name.as_str()));
    let jobs = std::iter::once(inputs).chain(sharing.jobs.iter().map(|job| &job.inputs));
    for (name, job) in names.zip(jobs) {
        let is_plain =
            job.mode == Mode::Sync && job.sync.style == SyncStyle::Blocking && job.faults == Faults::none();
        if !is_plain {
            return refuse(
                "sharing",
                format!(
                    "jobs take turns on engines and trainer only in `sync`, with a blocking weight sync and without \
                     faults; {name} is otherwise"
                ),
            );
        }
        let changes_hands = |switching: &Switching| {
            (switching.to_training, switching.to_rollout, &switching.memory)
                == (Duration::ZERO, Duration::ZERO, &None)
        };
        match (&job.placement, &inputs.placement) {
            (Placement::Separate, Placement::Separate) => {}
            (Placement::Colocated(one), Placement::Colocated(_)) if changes_hands(one) => {}
            (Placement::Colocated(_), Placement::Colocated(_)) => {
                return refuse(
                    "sharing",
                    "devices that jobs share change hands in `handoff`; leave out `to_training`, `to_rollout` and \
                     `memory`",
                );
            }
            _ => return refuse("sharing", format!("{name} has another placement than those it shares with")),
        }
        if (job.rollout.engines, job.rollout.slots) != (inputs.rollout.engines, inputs.rollout.slots) {
            return refuse("sharing", format!("{name}, which shares engines and trainer, has other engines"));
        }
    }
    for job in &sharing.jobs {
        if job.inputs.sharing.is_some() {
            return refuse(
                "sharing",
                format!(
                    "{}, which shares engines and trainer, shares with further jobs; name them all in one place",
                    job.name
                ),
            );
        }
        let refused = |error: RlError| RlError::Refused {
            field: "sharing".into(),
            reason: format!("{}, which shares engines and trainer: {error}", job.name),
        };
        validate(&job.inputs).map_err(refused)?;
    }
    Ok(())
}
