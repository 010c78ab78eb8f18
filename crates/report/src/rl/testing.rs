//! Rounds for this crate's tests: the textbook's 40 + 16 + 4 s, a round of GPU scale, an async run that breaks.

use pipestep_engine::{Duration, Time};
use pipestep_rl::{
    AsyncRule, Distribution, EngineFailure, Faults, Fraction, Group, InFlight, Keep, Mode, Placement,
    RlInputs, Rollout, ScorerKind, ScoringPool, ScoringStart, ScoringTime, Sensitivity, Shape, Span,
    Survival, SyncStyle, SyncTime, TokenTime, Update, UpdateTime, WeightSync, sensitivity, simulate_recorded,
};

use super::RlView;

/// Simulated rounds with what a view of them needs.
pub(crate) struct RlSample {
    pub(crate) inputs: RlInputs,
    pub(crate) sensitivity: Sensitivity,
    pub(crate) spans: Vec<Span>,
    pub(crate) limits_below: Vec<Option<Fraction>>,
}

const fn seconds(count: u64) -> Duration {
    Duration::from_nanos(count * 1_000_000_000)
}

impl RlSample {
    /// 40 s of rollout, 16 s of update, 4 s of synchronisation, one after the other.
    pub(crate) fn small() -> Self {
        Self::of(inputs())
    }

    /// The same with the next batch generated during the update.
    pub(crate) fn one_step_off() -> Self {
        Self::of(RlInputs { mode: Mode::OneStepOff, ..inputs() })
    }

    /// 32 engines of 64 slots, 2,048 long-tailed responses, a verifier of 128 workers.
    pub(crate) fn large() -> Self {
        let mut inputs = inputs();
        (inputs.batch, inputs.launch, inputs.rounds) = (2_048, 2_304, 6);
        (inputs.rollout.engines, inputs.rollout.slots) = (32, 64);
        let shape = Shape::Lognormal { median: 2_000.0, sigma: 0.9 };
        inputs.rollout.lengths = Distribution { shape, cap: Some(16_384) };
        inputs.rollout.token_time =
            TokenTime::Linear { base: Duration::from_nanos(20_000_000), per_response: Duration::ZERO };
        inputs.scoring = vec![verifier(128)];
        Self::of(inputs)
    }

    /// Async within two batches, and an engine that fails.
    pub(crate) fn broken() -> Self {
        let mut inputs = inputs();
        let two = Fraction::new(2, 1).expect("not over zero");
        inputs.mode = Mode::Async(AsyncRule { staleness: two, sync_every: 1, in_flight: InFlight::Drain });
        inputs.rollout.lengths = Distribution { shape: Shape::List(vec![12, 40, 25, 33, 18]), cap: None };
        inputs.scoring = vec![verifier(2)];
        inputs.scoring_start = ScoringStart::AsFinished;
        inputs.sync.style = SyncStyle::Staggered;
        inputs.faults.engine_failures = vec![EngineFailure {
            engine: 1,
            at: Time::from_nanos(70_000_000_000),
            down: seconds(30),
            responses: Survival::Lost,
        }];
        Self::of(inputs)
    }

    fn of(inputs: RlInputs) -> Self {
        let (_, spans) = simulate_recorded(&inputs).unwrap();
        let sensitivity = sensitivity(&inputs).unwrap();
        Self { inputs, sensitivity, spans, limits_below: Vec::new() }
    }

    pub(crate) fn view(&self) -> RlView<'_> {
        RlView {
            name: "Rounds",
            inputs: &self.inputs,
            sensitivity: &self.sensitivity,
            limits_below: &self.limits_below,
            limits_rounds: None,
            spans: &self.spans,
        }
    }
}

fn verifier(workers: u32) -> ScoringPool {
    ScoringPool {
        name: "verifier".to_owned(),
        kind: ScorerKind::Verifier,
        workers,
        time: ScoringTime::Sampled(Distribution::fixed(2_000_000_000)),
        speed: Fraction::ONE,
    }
}

fn inputs() -> RlInputs {
    RlInputs {
        mode: Mode::Sync,
        batch: 8,
        launch: 8,
        group: Group::SINGLE,
        rounds: 5,
        warmup: 1,
        seed: 0,
        rollout: Rollout {
            engines: 2,
            slots: 4,
            token_time: TokenTime::Linear { base: seconds(1), per_response: Duration::ZERO },
            lengths: Distribution::fixed(40),
            prompt_tokens: 0,
            prefill_per_token: Duration::ZERO,
            resume: Duration::ZERO,
            copies: 1,
            speed: Fraction::ONE,
        },
        scoring: vec![],
        scoring_start: ScoringStart::WholeBatch,
        update: Update {
            mini_steps: 4,
            handoff: Duration::ZERO,
            prepare: Duration::ZERO,
            time: UpdateTime::Fixed(seconds(4)),
            finish: Duration::ZERO,
            record: None,
            speed: Fraction::ONE,
        },
        sync: WeightSync {
            time: SyncTime::Fixed(seconds(4)),
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
