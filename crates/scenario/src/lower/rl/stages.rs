//! The stages of `[rl]`: rollout, scoring pools, update.

use pipestep_engine::{Bytes, Duration};
use pipestep_rl::{
    Distribution, Fraction, Rollout, RoutingRecord, ScorerKind, ScoringPool, ScoringTime, Shape, TokenTime,
    Update, UpdateTime,
};

use super::{Broken, Reading};
use crate::chance::{Chance, Drawn, Shape as Written};
use crate::diagnostic::Span;
use crate::format::rl::{self as written, ByTokens, PerToken, PoolWord};
use crate::lower::values::read_values;
use crate::read::{AboveZero, Count, Key, OneOrList, Word};

/// The engines.
pub(super) fn rollout(rl: &written::Rl, reading: &mut Reading<'_, '_>) -> Result<Rollout, Broken> {
    let rollout = rl.rollout.get().ok_or(Broken)?;
    let lengths = match &rollout.lengths {
        Key::Given(chance, span) => {
            distribution(chance, |tokens| tokens, "rl.rollout.lengths", *span, reading)
        }
        Key::Absent | Key::Broken => Err(Broken),
    };
    let speed = speed(&rollout.speed, "rl.rollout.speed", reading);
    Ok(Rollout {
        engines: rollout.engines.get().ok_or(Broken)?.0,
        slots: rollout.slots.get().ok_or(Broken)?.0,
        token_time: token_time(rollout.token_time.get().ok_or(Broken)?)?,
        lengths: lengths?,
        prompt_tokens: rollout.prompt_tokens.or(0).ok_or(Broken)?,
        prefill_per_token: rollout.prefill_per_token.or(Duration::ZERO).ok_or(Broken)?,
        resume: rollout.resume.or(Duration::ZERO).ok_or(Broken)?,
        copies: rollout.copies.or(Count(1)).ok_or(Broken)?.0,
        speed: speed?,
    })
}

fn token_time(written: &written::TokenTime) -> Result<TokenTime, Broken> {
    Ok(match written {
        written::TokenTime::Always(base) => TokenTime::Linear { base: *base, per_response: Duration::ZERO },
        written::TokenTime::Linear(linear) => TokenTime::Linear {
            base: *linear.base.get().ok_or(Broken)?,
            per_response: linear.per_response.or(Duration::ZERO).ok_or(Broken)?,
        },
        written::TokenTime::Points(points) => {
            let point = |point: &written::TokenPoint| Some((point.running.get()?.0, *point.time.get()?));
            TokenTime::Table(points.iter().map(point).collect::<Option<_>>().ok_or(Broken)?)
        }
    })
}

/// The pools, in the order in which a sample passes through them.
pub(super) fn scoring(rl: &written::Rl, reading: &mut Reading<'_, '_>) -> Result<Vec<ScoringPool>, Broken> {
    let Some((pools, span)) = rl.scoring.given()? else {
        return Ok(Vec::new());
    };
    let mut read: Vec<ScoringPool> = Vec::new();
    for pool in pools {
        let pool = self::pool(pool, reading)?;
        if read.iter().any(|other| other.name == pool.name) {
            let message = format!("`rl.scoring`: two pools are called `{}`", pool.name);
            return Err(reading.refuse(span, message, "give each its own `name`"));
        }
        read.push(pool);
    }
    Ok(read)
}

fn pool(pool: &written::Pool, reading: &mut Reading<'_, '_>) -> Result<ScoringPool, Broken> {
    let time = match &pool.time {
        Key::Given(ByTokens::PerToken(time), _) => {
            per_token(time).map(|(fixed, per_token)| ScoringTime::PerToken { fixed, per_token })
        }
        Key::Given(ByTokens::Plain(chance), span) => {
            distribution(chance, Duration::as_nanos, "rl.scoring.time", *span, reading)
                .map(ScoringTime::Sampled)
        }
        Key::Absent | Key::Broken => Err(Broken),
    };
    let speed = speed(&pool.speed, "rl.scoring.speed", reading);
    Ok(ScoringPool {
        name: pool.name.get().ok_or(Broken)?.clone(),
        kind: match pool.kind.or(Word(PoolWord::Rules)).ok_or(Broken)?.0 {
            PoolWord::Rules => ScorerKind::Rules,
            PoolWord::RewardModel => ScorerKind::RewardModel,
            PoolWord::Verifier => ScorerKind::Verifier,
        },
        workers: pool.workers.get().ok_or(Broken)?.0,
        time: time?,
        speed: speed?,
    })
}

/// The update, and the tokens of the simulated step if it takes its time from that.
pub(super) fn update(
    rl: &written::Rl,
    reading: &mut Reading<'_, '_>,
) -> Result<(Update, Option<u64>), Broken> {
    let (update, span) = match &rl.update {
        Key::Given(update, span) => (update, *span),
        Key::Absent | Key::Broken => return Err(Broken),
    };
    let (time, step_tokens) = match &update.time {
        Key::Broken => return Err(Broken),
        Key::Given(time, _) => {
            if let Some(stray) = update.step_tokens.span() {
                let message = "`rl.update.step_tokens` is for an update as long as the simulated step";
                return Err(reading.refuse(stray, message, "leave out `step_tokens` or `time`"));
            }
            (update_time(time)?, None)
        }
        Key::Absent => {
            let tokens = step_tokens(update, span, reading)?;
            // The time follows when the step has been simulated.
            (UpdateTime::Scaled { step: Duration::ZERO, tokens }, Some(tokens))
        }
    };
    let or_none = |key: &Key<Duration>| key.or(Duration::ZERO).ok_or(Broken);
    let update = Update {
        mini_steps: update.mini_steps.or(Count(1)).ok_or(Broken)?.0,
        handoff: or_none(&update.handoff)?,
        record: routing_record(&update.record)?,
        prepare: or_none(&update.prepare)?,
        time,
        finish: or_none(&update.finish)?,
        speed: speed(&update.speed, "rl.update.speed", reading)?,
    };
    Ok((update, step_tokens))
}

fn routing_record(record: &Key<written::RoutingRecord>) -> Result<Option<RoutingRecord>, Broken> {
    let Some((record, _)) = record.given()? else {
        return Ok(None);
    };
    Ok(Some(RoutingRecord {
        layers: record.layers.get().ok_or(Broken)?.0,
        top_k: record.top_k.get().ok_or(Broken)?.0,
        bytes_per_id: record.bytes_per_id.or(Count(2)).ok_or(Broken)?.0,
        identity: record.identity.or(Bytes::ZERO).ok_or(Broken)?,
        header: record.header.or(Bytes::ZERO).ok_or(Broken)?,
        rate: *record.rate.get().ok_or(Broken)?,
    }))
}

pub(super) fn update_time(time: &ByTokens<OneOrList<Duration>>) -> Result<UpdateTime, Broken> {
    Ok(match time {
        ByTokens::Plain(OneOrList::One(time)) => UpdateTime::Fixed(*time),
        ByTokens::Plain(OneOrList::List(times)) => UpdateTime::Each(times.clone()),
        ByTokens::PerToken(time) => {
            let (fixed, per_token) = per_token(time)?;
            UpdateTime::PerToken { fixed, per_token }
        }
    })
}

/// Tokens of the step that gives the update its time.
fn step_tokens(update: &written::Update, span: Span, reading: &mut Reading<'_, '_>) -> Result<u64, Broken> {
    if !reading.has_step {
        let message = "`[rl.update]` needs `time`: there is no `[pipeline]` whose step it could be";
        return Err(reading.refuse(span, message, "write `time = \"16 s\"`"));
    }
    match &update.step_tokens {
        Key::Broken => Err(Broken),
        Key::Given(tokens, _) => Ok(tokens.0),
        Key::Absent => match reading.step {
            // A step that could not be read may have had tokens.
            None => Err(Broken),
            Some(step) => step.tokens().ok_or_else(|| {
                let message =
                    "`[rl.update]` takes its time from the step, and nothing says how many tokens that has";
                reading.refuse(span, message, "write `step_tokens = 1048576`, or `[model]`")
            }),
        },
    }
}

fn per_token(time: &PerToken) -> Result<(Duration, Duration), Broken> {
    Ok((time.fixed.or(Duration::ZERO).ok_or(Broken)?, *time.per_token.get().ok_or(Broken)?))
}

/// How many times faster a stage is; as given if left out.
pub(super) fn speed(
    key: &Key<AboveZero>,
    path: &str,
    reading: &mut Reading<'_, '_>,
) -> Result<Fraction, Broken> {
    match key {
        Key::Absent => Ok(Fraction::ONE),
        Key::Broken => Err(Broken),
        Key::Given(factor, span) => reading.fraction(factor.0, path, Some(*span)),
    }
}

/// A distribution in the plain numbers of the rounds.
pub(super) fn distribution<D: Drawn>(
    chance: &Chance<D>,
    number: impl Fn(D::Amount) -> u64,
    path: &str,
    span: Span,
    reading: &mut Reading<'_, '_>,
) -> Result<Distribution, Broken> {
    let float = |amount: D::Amount| number(amount) as f64;
    let shape = match &chance.shape {
        Written::Fixed(value) => Shape::Fixed(number(*value)),
        Written::Exponential { mean } => Shape::Exponential { mean: float(*mean) },
        Written::LognormalMedian { median, sigma } => {
            Shape::Lognormal { median: float(*median), sigma: *sigma }
        }
        Written::LognormalMean { mean, variation } => {
            let square = (variation * variation).ln_1p();
            Shape::Lognormal { median: float(*mean) * (-square / 2.0).exp(), sigma: square.sqrt() }
        }
        Written::Uniform { low, high } => Shape::Uniform { low: number(*low), high: number(*high) },
        Written::Pareto { minimum, alpha } => Shape::Pareto { minimum: float(*minimum), alpha: *alpha },
        Written::Empirical(values) => {
            let values = read_values::<D>(values, path, reading.files, reading.problems)?;
            Shape::Empirical(values.iter().map(|&value| number(value)).collect())
        }
        Written::List(values) => {
            let values = read_values::<D>(values, path, reading.files, reading.problems)?;
            Shape::List(values.iter().map(|&value| number(value)).collect())
        }
        // Not among the families of the rounds.
        Written::Weibull { .. } | Written::Normal { .. } => {
            return Err(reading.refuse(
                span,
                format!("`{path}`: not a distribution of rounds"),
                "choose another",
            ));
        }
    };
    Ok(Distribution { shape, cap: chance.cap.map(number) })
}
