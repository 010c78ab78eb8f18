//! The `pipestep` binary: what was typed becomes a command, the command an exit code.
//!
//! The whole flow: [`args`] reads the command line; a file of [`commands`] loads the scenario ([`load`]),
//! simulates it ([`simulated`]) and hands values to `pipestep-report`; [`output`] writes what comes back. Exit
//! codes: 0 done; 1 it ran, but does not fit; 2 anything else went wrong.
//!
//! Deliberately absent: rules of simulation, formats, drawing. They are in the library crates, which in turn
//! never print, read files or end the process.

mod args;
mod commands;
mod failure;
mod load;
mod output;
mod reproduce;
mod room;
mod schedule_options;
mod search;
mod simulated;
mod simulated_job;
mod simulated_rl;
mod simulated_runs;
mod smaller;
mod sweep;

use std::process::ExitCode;

/// How a command that ran to its end came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// All is well.
    Done,
    /// It ran, but a rank needs more memory than it has.
    DoesNotFit,
    /// It ran, but not everything is as claimed.
    DoesNotMatch,
}

fn main() -> ExitCode {
    match args::read().and_then(commands::run) {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::DoesNotFit | Ending::DoesNotMatch) => ExitCode::from(1),
        Err(error) => failure::report(&error),
    }
}
