//! Rounds of RL post-training: rollout, scoring, update, weight synchronisation.
//!
//! **A run.** [`RlInputs`] says how many engines generate responses of which lengths, what scores them, how
//! long an update takes, how weights reach the engines, and how all that overlaps ([`Mode`]). [`simulate`]
//! plays the rounds event by event on the engine and returns an [`RlOutcome`]: the time of a round and where it
//! went, how busy each stage was, useful samples a second, staleness, the long tail. [`sensitivity`] runs it
//! again with each stage twice as fast and so names the bottleneck.
//!
//! ```
//! use pipestep_engine::Duration;
//! use pipestep_rl::*;
//!
//! let seconds = |s: u64| Duration::from_nanos(s * 1_000_000_000);
//! let mut inputs = RlInputs {
//!     mode: Mode::Sync,
//!     batch: 8,
//!     launch: 8,
//!     group: Group::SINGLE,
//!     rounds: 5,
//!     warmup: 1,
//!     seed: 0,
//!     rollout: Rollout {
//!         engines: 2,
//!         slots: 4,
//!         token_time: TokenTime::Linear { base: seconds(1), per_response: Duration::ZERO },
//!         lengths: Distribution::fixed(40),
//!         prompt_tokens: 0,
//!         prefill_per_token: Duration::ZERO,
//!         resume: Duration::ZERO,
//!         copies: 1,
//!         speed: Fraction::ONE,
//!     },
//!     scoring: vec![],
//!     scoring_start: ScoringStart::WholeBatch,
//!     update: Update {
//!         mini_steps: 1,
//!         handoff: Duration::ZERO,
//!         prepare: Duration::ZERO,
//!         time: UpdateTime::Fixed(seconds(16)),
//!         finish: Duration::ZERO,
//!         record: None,
//!         speed: Fraction::ONE,
//!     },
//!     sync: WeightSync {
//!         time: SyncTime::Fixed(seconds(4)),
//!         style: SyncStyle::Blocking,
//!         speed: Fraction::ONE,
//!     },
//!     keep: Keep::All,
//!     discard_older_than: None,
//!     placement: Placement::Separate,
//!     faults: Faults::none(),
//!     prices: None,
//!     sharing: None,
//! };
//! assert_eq!(simulate(&inputs)?.round, seconds(60));
//! inputs.mode = Mode::OneStepOff;
//! assert_eq!(simulate(&inputs)?.round, seconds(44));
//! assert_eq!(sensitivity(&inputs)?.bottleneck.as_deref(), Some("rollout"));
//! # Ok::<(), RlError>(())
//! ```
//!
//! **Rules.** An engine decodes in iterations; responses join and leave between them, and a response needs as
//! many iterations as it has tokens. Launches go to the engine with the most free slots. What ends together
//! ends before anything is chosen. Samples are scored and trained on in the order in which they come.
//!
//! Deliberately absent: files, printing, scenario text, what a FLOP costs (times are given), and how a policy
//! learns from stale samples (only how stale they are).

mod breakdown;
mod conduct;
mod costs;
mod deadlock;
mod decoder;
mod distribution;
mod emptiest;
mod error;
mod faults;
mod fleet;
mod fraction;
mod group;
mod histogram;
mod inputs;
mod launch;
mod members;
mod memory;
mod meter;
mod outcome;
mod payload;
mod pool;
mod record;
mod response;
mod routing;
mod sensitivity;
mod simulate;
mod stages;
mod tally;
mod train;
mod turns;
mod validate;
mod weights;
mod world;

pub use distribution::{Distribution, Shape};
pub use error::{Field, RlError};
pub use faults::{EngineFailure, Faults, RandomFailures, Restart, ScorerStop, Survival};
pub use fraction::Fraction;
pub use histogram::Histogram;
pub use inputs::{
    AsyncRule, Group, GroupCut, InFlight, Keep, KvCache, Mode, Placement, Prices, RlInputs, ScoringStart,
    SharedJob, Sharing, Switching,
};
pub use memory::{ColocatedMemory, HeldIn, MemoryItem, MemoryMove, MemoryOutcome, SwitchOrder, SwitchPlan};
pub use outcome::{Cost, Counts, JobOutcome, RlOutcome, Round, Split, StageUse, Tail};
pub use record::{Row, Span, SpanKind, StintEnd};
pub use routing::RoutingRecord;
pub use sensitivity::{Gain, Sensitivity, Stage, rate_at_double, sensitivity, sped_up, turning_point};
pub use simulate::{simulate, simulate_recorded};
pub use stages::{
    FanOut, Payload, Rollout, ScorerKind, ScoringPool, ScoringTime, SyncContent, SyncStyle, SyncTime,
    TokenTime, Transfer, Update, UpdateTime, WeightSync,
};
