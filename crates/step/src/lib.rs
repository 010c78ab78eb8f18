//! One optimizer step across pipeline ranks: what runs when, what is held when, where the time goes.
//!
//! [`Inputs`] hold the shape, the costs and the rules of links and updates; a plan from `pipestep-schedule` says
//! who runs what in which order. [`simulate`] runs it on the event engine and returns the whole [`Record`];
//! [`summary`] takes the clock-free pass ([`Dataflow`]) where that is exact ([`FifoStep`]).
//!
//! The rules of a step, numbered as in `docs/rules.md`:
//!
//! 1. Compute on a rank is serial; an operation starts when the rank is free, the one before it in its list has
//!    ended, and its inputs are there (`world`, `folded`, `dataflow`).
//! 2. A message starts when its producer has ended and its link is free (`links`, `folded`, `dataflow`).
//! 3. An update starts when every gradient of every rank is ready, or of its own rank (`times`).
//! 4. What a rank holds from when to when (`bytes`; `memory` by account, `levels` in all).
//! 5. Idle time and bubble rates ([`Summary::bubble`]).
//! 6. Overlapped pairs (`world`, `folded`, `dataflow`, [`Costs::pair_duration`]).
//! 7. Shares are rounded once, half to even ([`round_half_even`]).
//!
//! What a step that has run lost its time to: [`idle_intervals`] gives every idle nanosecond a cause,
//! [`CriticalPath`] the chain that sets the makespan, [`what_if`] the makespan with one thing changed.
//!
//! Deliberately absent: TOML, printing, where a duration comes from (that is `pipestep-model`'s).

mod bytes;
mod comms;
mod costs;
mod critical_path;
mod dataflow;
mod error;
mod events;
mod folded;
mod graph;
mod idle;
mod inputs;
mod jitter;
mod lengths;
mod levels;
mod links;
mod log;
mod memory;
mod observe;
mod online;
mod outcome;
mod rows;
mod simulate;
mod times;
mod whatif;
mod world;

pub use comms::{Posts, makespan_of_comms, simulate_comms};
pub use costs::{Costs, Held, Message, RankCost, StageCost, round_half_even};
pub use critical_path::{CriticalPath, Element, PathKind, PathStep};
pub use dataflow::{Dataflow, FifoStep};
pub use error::StepError;
pub use events::{Engine, Messages as MessageMode, run_orders};
pub use idle::{CAUSES, Cause, Chosen, Delay, IdleInterval, IdlePart, idle_by_cause, idle_intervals};
pub use inputs::{Arbitration, InputError, Inputs, Links, UpdateAfter};
pub use jitter::{Jitter, LinkScatter, Replicas, Scatter, SideBySide};
pub use levels::Levels;
pub use log::{MessageLog, MessageSink, Sent};
pub use memory::memory;
pub use online::run_policy;
pub use outcome::{ACCOUNTS, Account, Bubble, MemoryCurve, Messages, RankOutcome, Record, Summary, Times};
pub use simulate::{Outcome, Summaries, simulate, summary};
pub use whatif::{Faster, WhatIf, WhatIfError, balanced, makespan, what_if, what_if_by, with_faster};
