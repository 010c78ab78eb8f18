//! What a user gets: JSON, CSV, tables and pictures of simulated timelines.
//!
//! Values in, bytes or text out. The command line hands over a [`StepView`] (names, shape, summary) and, where
//! they were recorded, the timeline and the memory curves; it gets back text or encoded pictures and decides
//! where they go.
//!
//! Deliberately absent: files, the terminal, arguments, and the scenario (names come in as [`Labels`]).

mod csv;
mod events;
mod picture;
mod result;
#[cfg(test)]
mod testing;
mod theme;
mod units;
mod view;

pub use csv::{write_events, write_memory};
pub use events::{Event, EventKind, events};
pub use picture::{Picture, PictureError};
pub use result::{BubbleResult, MessagesResult, RankResult, ResultFile, SCHEMA, StepResult};
pub use view::{Labels, StepView};
