//! One optimizer step across pipeline ranks: what runs when, what is held when, where the time goes.
//!
//! [`Inputs`] hold the shape, the costs and the rules of links and updates; a plan from `pipestep-schedule` says
//! who runs what in which order. [`simulate`] runs it on the event engine and returns the whole [`Record`];
//! [`summary`] takes the clock-free pass ([`Dataflow`]) where that is exact ([`FifoStep`]).
//!
//! The rules of a step, numbered as in `docs/rules.md`:
//!
//! 1. Compute on a rank is serial; an operation starts when the rank is free, the one before it in its list has
//!    ended, and its inputs are there (`world`, `dataflow`).
//! 2. A message starts when its producer has ended and its link is free (`links`).
//! 3. An update starts when every gradient of every rank is ready, or of its own rank (`times`).
//! 4. What a rank holds from when to when (`memory`).
//! 5. Idle time and bubble rates ([`Summary::bubble`]).
//! 6. Overlapped pairs (`world`, `dataflow`, [`Costs::pair_duration`]).
//! 7. Shares are rounded once, half to even ([`round_half_even`]).
//!
//! Deliberately absent: TOML, printing, where a duration comes from (that is `pipestep-model`'s).

mod costs;
mod dataflow;
mod error;
mod events;
mod inputs;
mod lengths;
mod links;
mod log;
mod memory;
mod outcome;
mod rows;
mod simulate;
mod times;
mod world;

pub use costs::{Costs, Held, Message, RankCost, StageCost, round_half_even};
pub use dataflow::{Dataflow, FifoStep};
pub use error::StepError;
pub use events::{Messages as MessageMode, run_orders, run_policy};
pub use inputs::{Arbitration, InputError, Inputs, Links, UpdateAfter};
pub use log::{MessageLog, MessageSink, Sent};
pub use memory::{memory, memory_reusing};
pub use outcome::{ACCOUNTS, Account, Bubble, MemoryCurve, Messages, RankOutcome, Record, Summary, Times};
pub use simulate::{Outcome, simulate, summary};
