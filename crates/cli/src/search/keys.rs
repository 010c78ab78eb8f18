//! A search over any keys: which interval between checkpoints, which split of devices, which bound on staleness.
//!
//! [`KeySpace`] has every combination of the values of its keys and the shares of its devices; [`Subject`] simulates
//! one; [`find`] goes through all of them, then looks closer between the values of ranges round the best; [`text`],
//! [`json`] and [`picture`] say what was found.
//!
//! One idea holds it up: all settings meet the same luck. Run k of each has the same seeds, so that a difference is
//! held against the scatter of the differences (`pipestep_report::Difference`), and "best" is told apart from "cannot
//! be told apart at this number of runs". Nothing is left out by bounds.

mod find;
mod json;
mod line;
mod measure;
mod picture;
mod space;
mod why;
mod words;

pub(crate) use find::{FoundKeys, find};
pub(crate) use json::json;
pub(crate) use measure::{Subject, bottleneck};
pub(crate) use picture::{along, picture};
pub(crate) use space::{KeySpace, overrides, sets};
pub(crate) use words::{About, text};
