//! pipestep: a discrete-event simulator of pipelined LLM training.
//!
//! This crate is the facade: it re-exports the library crates, so that a Rust program can do what the command
//! line does.
//!
//! ```
//! use pipestep::engine::Duration;
//! use pipestep::schedule::{Options, Shape, find};
//! use pipestep::step::{Costs, Inputs, RankCost, StageCost, simulate};
//!
//! let schedule = find("1f1b").expect("it is in the registry");
//! let shape = Shape::new(4, 1, 8, schedule.entry().placement)?;
//! let ms = |count| Duration::from_nanos(count * 1_000_000);
//! let stage = StageCost { forward: ms(10), backward: ms(20), layers: 1, ..StageCost::default() };
//! let costs = Costs { stages: vec![stage; 4], ranks: vec![RankCost::default(); 4], ..Costs::default() };
//! let inputs = Inputs::new(shape, costs)?;
//! let weights = inputs.costs().weights(inputs.shape(), None);
//! let plan = schedule.plan(inputs.shape(), &weights, &Options::default())?;
//! let outcome = simulate(&inputs, plan)?;
//! assert_eq!(outcome.summary.makespan.as_nanos(), 330_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use pipestep_engine as engine;
pub use pipestep_schedule as schedule;
pub use pipestep_step as step;
