//! Inputs to start from, and exact reading of the oracle files.

use pipestep_engine::Duration;
use pipestep_rl::*;
use serde_json::Value;

pub(crate) const SECOND: u64 = 1_000_000_000;

pub(crate) fn seconds(count: u64) -> Duration {
    Duration::from_nanos(count * SECOND)
}

pub(crate) fn nanos(count: u64) -> Duration {
    Duration::from_nanos(count)
}

/// One engine with room for all, one second a token, nothing but rollout taking time.
pub(crate) fn plain(mode: Mode, batch: u32, lengths: Shape) -> RlInputs {
    RlInputs {
        mode,
        batch,
        launch: batch,
        group: Group::SINGLE,
        rounds: 4,
        warmup: 1,
        seed: 1,
        rollout: Rollout {
            engines: 1,
            slots: batch * 4,
            token_time: TokenTime::Linear { base: seconds(1), per_response: Duration::ZERO },
            lengths: Distribution { shape: lengths, cap: None },
            prompt_tokens: 0,
            prefill_per_token: Duration::ZERO,
            resume: Duration::ZERO,
            copies: 1,
            speed: Fraction::ONE,
        },
        scoring: vec![],
        scoring_start: mode.usual_scoring_start(),
        update: Update {
            mini_steps: 1,
            handoff: Duration::ZERO,
            prepare: Duration::ZERO,
            time: UpdateTime::Fixed(Duration::ZERO),
            finish: Duration::ZERO,
            record: None,
            speed: Fraction::ONE,
        },
        sync: WeightSync {
            time: SyncTime::Fixed(Duration::ZERO),
            style: SyncStyle::Blocking,
            speed: Fraction::ONE,
        },
        keep: Keep::All,
        discard_older_than: None,
        placement: Placement::Separate,
        faults: Faults::none(),
        prices: None,
        sharing: None,
    }
}

/// `plain`, with an update of `learn` and a weight sync of `sync` seconds.
pub(crate) fn cycle(mode: Mode, generate: u64, learn: u64, sync: u64) -> RlInputs {
    let mut inputs = plain(mode, 8, Shape::Fixed(generate));
    inputs.update.time = UpdateTime::Fixed(seconds(learn));
    inputs.sync.time = SyncTime::Fixed(seconds(sync));
    inputs
}

pub(crate) fn pool(name: &str, workers: u32, time: Duration) -> ScoringPool {
    ScoringPool {
        name: name.to_owned(),
        kind: ScorerKind::Verifier,
        workers,
        time: ScoringTime::Sampled(Distribution::fixed(time.as_nanos())),
        speed: Fraction::ONE,
    }
}

pub(crate) fn asynchronous(staleness: u32, in_flight: InFlight) -> Mode {
    Mode::Async(AsyncRule { staleness: Fraction::new(staleness, 1).unwrap(), sync_every: 1, in_flight })
}

pub(crate) fn oracle(text: &str) -> Value {
    serde_json::from_str(text).expect("the copied oracle files are JSON")
}

/// A number of the oracle: an integer, or `"n/d"`.
pub(crate) fn rational(value: &Value) -> (i128, i128) {
    match value {
        Value::Number(number) => (i128::from(number.as_i64().expect("an integer")), 1),
        Value::String(text) => {
            let (upper, lower) = text.split_once('/').unwrap_or((text, "1"));
            (upper.parse().unwrap(), lower.parse().unwrap())
        }
        other => panic!("not a number: {other}"),
    }
}

pub(crate) fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("not a whole number: {value}"))
}

/// Equal but for the last bits of a double.
pub(crate) fn same(found: f64, expected: f64, what: &str) {
    let scale = expected.abs().max(1e-300);
    assert!((found - expected).abs() <= scale * 1e-11, "{what}: {found}, expected {expected}");
}
