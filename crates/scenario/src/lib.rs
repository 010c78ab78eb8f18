//! The scenario format: TOML text to validated inputs, with errors that show the place and what to write.
//!
//! Text goes through three stages, a file each: a tree of values that know where they stand (`tree`, with
//! `overrides` put in), typed tables (`format`, declared by the macro in `table` and read by `read`), and what
//! they mean (`lower`). Each stage reports everything that is wrong with it at once.
//!
//! ```
//! use pipestep_scenario::{Override, no_files, parse};
//!
//! let text = r#"
//!     [pipeline]
//!     ranks = 4
//!     micro_batches = 8
//!     schedule = "1f1b"
//!     [time]
//!     forward = "10 ms"
//!     backward = "20 ms"
//! "#;
//! let scenario = parse(text, "demo.toml", &[Override::set("pipeline.ranks=2")], &no_files)?;
//! let step = scenario.step.expect("the file describes a step");
//! assert_eq!(step.inputs.shape().ranks(), 2);
//!
//! let errors = parse("[pipeline]\nranks = 0", "demo.toml", &[], &no_files).unwrap_err();
//! assert!(errors.to_string().contains("expected a whole number of at least 1, found the number `0`"));
//! # Ok::<(), pipestep_scenario::Diagnostics>(())
//! ```
//!
//! **To add a table**, declare it with `table!`, name it in `format::File`, and give it its meaning in `lower`.
//!
//! Deliberately absent: opening files (the caller hands in a reader), printing, and the simulation itself.

mod chance;
mod diagnostic;
mod files;
mod format;
mod jitter;
mod job;
mod lower;
mod options;
mod overrides;
mod read;
mod rl;
mod scenario;
mod schema;
mod search;
mod step;
mod sweep;
mod table;
mod tree;
mod units;

pub use diagnostic::{Diagnostic, Diagnostics, Style};
pub use files::{ReadFile, no_files};
pub use jitter::{Curve, Efficiency, Jitter, LinkScatter, Scatter};
pub use job::JobScenario;
pub use overrides::Override;
pub use rl::RlScenario;
pub use scenario::{Scenario, order_file, parse};
pub use schema::schema;
pub use search::{Objective, SearchSpace, Split, SplitPart};
pub use step::{LayerCosts, OrderSource, StepScenario};
pub use sweep::{Axis, Sweep, Values};
pub use units::{Factor, Share, UnitError, parse_bytes, parse_duration, parse_rate, parse_signed_bytes};
