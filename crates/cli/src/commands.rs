//! One file for each subcommand: load, simulate, report.

mod check;
mod compare;
pub(crate) mod explain;
mod reproduce;
pub(crate) mod run;
mod schedule;
mod schema;
mod search;
mod sweep;

use anyhow::Result;

use crate::Ending;
use crate::args::{Command, CommandLine};

/// Does what was typed.
///
/// # Errors
/// Whatever went wrong, for `failure::report`.
pub(crate) fn run(typed: CommandLine) -> Result<Ending> {
    match typed.command {
        Command::Run(typed) => run::run(&typed),
        Command::Compare(typed) => compare::run(&typed),
        Command::Explain(typed) => explain::run(&typed),
        Command::Search(typed) => search::run(&typed),
        Command::Sweep(typed) => sweep::run(&typed),
        Command::Check(typed) => check::run(&typed),
        Command::Reproduce(typed) => reproduce::run(&typed),
        Command::Schema => schema::run(),
        Command::Schedule(typed) => schedule::run(&typed),
    }
}
