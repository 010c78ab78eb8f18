//! One optimizer step across pipeline ranks: what runs when, what is held when, where the time goes.

mod costs;
mod inputs;
mod outcome;

pub use costs::{Costs, Held, Message, RankCost, StageCost, round_half_even};
pub use inputs::{Arbitration, InputError, Inputs, Links, UpdateAfter};
pub use outcome::{ACCOUNTS, Account, Bubble, MemoryCurve, Messages, RankOutcome, Record, Summary, Times};
