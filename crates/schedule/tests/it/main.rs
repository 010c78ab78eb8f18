//! Tests of all schedules against other programs, papers and the bounds that they state themselves.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bounds;
mod csv_files;
mod generators;
mod orders;
mod support;
