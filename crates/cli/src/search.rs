//! A search: the settings of a pipeline under which a step is shortest and still fits.
//!
//! [`Candidates`] lists every setting that may be tried, each a handful of overrides; [`Evaluator`] reads and
//! simulates one; [`find`] goes through them, best bound first, and leaves out those which [`bounds`] proves can
//! neither win nor lie on the front of time against memory. [`partition`] splits unequal layers over stages;
//! [`words`] says what was found and why it wins.
//!
//! A search over any other keys (intervals of a job, splits of devices in RL) is [`keys`].
//!
//! One idea holds it up: a setting is left out only by a bound that no order of operations can beat, so what is
//! found is what trying everything finds (`--exhaustive`, and a test over random problems).

mod bounds;
mod candidates;
mod evaluate;
mod figures;
mod find;
pub(crate) mod keys;
mod partition;
mod table;
mod words;

pub(crate) use candidates::Candidates;
pub(crate) use evaluate::Evaluator;
pub(crate) use find::{Effort, Found, find};
pub(crate) use words::{command_line, dots, json, text};
