//! pipestep: a discrete-event simulator of pipelined LLM training.
//!
//! This crate is the facade: it re-exports the library crates, so that a Rust program can do what the command
//! line does. From a scenario's text to numbers and a picture:
//!
//! ```
//! use pipestep::report::{Labels, StepView, gantt};
//! use pipestep::scenario::{no_files, parse};
//! use pipestep::step::simulate;
//!
//! let text = r#"
//!     name = "demo"
//!     [pipeline]
//!     ranks = 4
//!     micro_batches = 8
//!     schedule = "1f1b"
//!     [time]
//!     forward = "10 ms"
//!     backward = "20 ms"
//! "#;
//! let scenario = parse(text, "demo.toml", &[], &no_files)?;
//! let step = scenario.step.as_ref().expect("it has a pipeline");
//! let plan = step.plan().map_err(|refusal| scenario.refused(&refusal))?;
//! let outcome = simulate(&step.inputs, plan)?;
//! assert_eq!(outcome.summary.makespan.as_nanos(), 330_000_000);
//!
//! let (name, schedule) = (scenario.name.clone(), step.order.name().to_owned());
//! let labels = Labels { name, schedule, ..Labels::default() };
//! let view = StepView { labels: &labels, shape: step.inputs.shape(), summary: &outcome.summary };
//! let svg = gantt(&[(view, &outcome.record)]).to_svg()?;
//! assert!(svg.starts_with("<svg"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same without text, from numbers that the program already has:
//!
//! ```
//! use pipestep::engine::Duration;
//! use pipestep::schedule::{Options, Shape, find};
//! use pipestep::step::{Costs, Inputs, RankCost, StageCost, simulate};
//!
//! let schedule = find("1f1b").expect("it is in the registry");
//! let shape = Shape::new(4, 1, 8, schedule.entry().placement)?;
//! let ms = |count: u64| Duration::from_nanos(count * 1_000_000);
//! let stage = StageCost { forward: ms(10), backward: ms(20), layers: 1, ..StageCost::default() };
//! let costs = Costs { stages: vec![stage; 4], ranks: vec![RankCost::default(); 4], ..Costs::default() };
//! let inputs = Inputs::new(shape, costs)?;
//! let weights = inputs.costs().weights(inputs.shape(), None);
//! let plan = schedule.plan(inputs.shape(), &weights, &Options::default())?;
//! let outcome = simulate(&inputs, plan)?;
//! assert_eq!(outcome.summary.makespan.as_nanos(), 330_000_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `docs/architecture.md` says which crate holds what.

pub use pipestep_engine as engine;
pub use pipestep_job as job;
pub use pipestep_model as model;
pub use pipestep_report as report;
pub use pipestep_rl as rl;
pub use pipestep_scenario as scenario;
pub use pipestep_schedule as schedule;
pub use pipestep_step as step;
