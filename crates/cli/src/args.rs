//! The command line as it is typed: subcommands, flags, and the help that teaches them.
//!
//! Meaning is given elsewhere: `commands` decides what to do, `output` what a path or `-` stands for. Options of
//! schedules are not listed here but walked from the registry (`schedule_options`).

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::schedule_options::ScheduleOptions;

const EXAMPLES: &str = "\
Examples:
  pipestep run scenarios/qwen3-8b-1f1b.toml                   where the time of one step goes
  pipestep run scenarios/qwen3-8b-1f1b.toml --out results     and draw it
  pipestep compare scenarios/qwen3-8b-1f1b.toml --schedules fill-drain,1f1b
  pipestep schedule show 1f1b                                 a schedule in letters
  pipestep schema > pipestep.schema.json                      completion for your editor

Exit codes: 0 done; 1 it ran, but does not fit the memory budget; 2 anything else went wrong.";

const RUN_EXAMPLES: &str = "\
Examples:
  pipestep run demo.toml                                  the table, and nothing is written
  pipestep run demo.toml --set pipeline.micro_batches=16  the same with another value
  pipestep run demo.toml --set 'transfer.activation=5 ms' values with units need no inner quotes
  pipestep run demo.toml --out results                    pictures, JSON, CSV and trace in `results`
  pipestep run demo.toml --quiet --json -                 JSON to standard output, for programs

A path of `-` is standard output; the table is then left out. Files appear whole or not at all.
Exit codes: 0 done; 1 it ran, but does not fit the memory budget; 2 anything else went wrong.";

const REPRODUCE_EXAMPLES: &str = "\
Examples:
  pipestep reproduce                 in the repository: all claims of its documentation
  pipestep reproduce --json -        the same as JSON
  pipestep reproduce my/claims.json  claims of your own; each entry points at a scenario

Exit codes: 0 all claims hold; 1 a claim is missed; 2 anything else went wrong.";

const COMPARE_EXAMPLES: &str = "\
Examples:
  pipestep compare demo.toml --schedules fill-drain,1f1b,interleaved
  pipestep compare demo.toml --schedules all --out results
  pipestep compare demo.toml --schedules 1f1b,interleaved --set pipeline.chunks=4
  pipestep compare demo.toml --schedules 1f1b,zb-h1 --runs 500   means, where [jitter] draws lengths

Each schedule runs the same scenario. Where one does not take the scenario's number of chunks,
the nearest number that it takes is used, and every rank keeps its layers. `all` leaves out, with
the reason, what does not take the scenario's shape.
Exit codes: 0 done; 1 none of them fits the memory budget; 2 anything else went wrong.";

const SWEEP_EXAMPLES: &str = "\
Examples:
  pipestep sweep demo.toml --out results                        the values of its [sweep]
  pipestep sweep demo.toml --vary pipeline.micro_batches=1..64 --out results
  pipestep sweep demo.toml --vary pipeline.ranks=2..16*2 --vary pipeline.schedule=1f1b,zb-h1 --out results
  pipestep sweep demo.toml --out results --resume               after a crash, a full disk, a time limit
  pipestep sweep demo.toml --shard 3/8 --out part-3             a part of it, on one of eight machines
  pipestep sweep --merge part-* --out results                   and all parts together

Values: lists (1,2,8), ranges (1..64), every so many (1..64:2), by a factor (1..1024*2). Keys multiply.
results.csv has one row a point, in order; points that are not legal have the reason in their row.
Exit codes: 0 done; 1 no point fits the memory budget; 2 anything else went wrong.";

const CHECK_EXAMPLES: &str = "\
A file has one row a rank and cells such as 2F0 (forward of micro-batch 0 on stage 2), B (backward), I and
W (its two halves), or (0F3;3B1)OVERLAP_F_B. It must be complete and must not deadlock. Files with PyTorch's
communication actions are checked too. Exit codes: 0 it is right; 2 it is not, with row, column and reason.";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  pipestep explain demo.toml                         idle time by cause, critical path, what helps
  pipestep explain demo.toml --rank 3                every idle interval of rank 3, in words
  pipestep explain demo.toml --out results           the critical path drawn over the Gantt chart
  pipestep explain demo.toml --against interleaved   how another schedule differs
  pipestep explain demo.toml --run 17                one of the runs, where [jitter] draws lengths
  pipestep explain demo.toml --quiet --json -        JSON to standard output, for programs

Exit codes: 0 done; 2 anything went wrong.";

const SEARCH_EXAMPLES: &str = "\
Examples:
  pipestep search demo.toml                      every schedule and up to 4 chunks, under its budget
  pipestep search demo.toml --set 'memory.budget=40 GB' --out results
  pipestep search demo.toml --exhaustive         the same answer, without leaving anything out
  pipestep search job.toml --vary 'checkpoint.every=300 s..3000 s*2' --runs 200    the best interval of a job
  pipestep search rl.toml --vary rl.staleness=0..4 --vary rl.launch=512,640        the best rounds of RL

[search] in the scenario says what else may be tried: sizes of micro-batches (with [efficiency]), numbers of
ranks, recomputation. Where [time] gives lengths by layer, layers are moved between stages too. With
[search.vary], [search.split] or --vary the search is over those keys instead, for the best job, rounds or step.
Exit codes: 0 done; 1 nothing fits the memory budget; 2 anything else went wrong.";

const SCHEDULE_EXAMPLES: &str = "\
Examples:
  pipestep schedule list
  pipestep schedule show interleaved --ranks 4 --chunks 2 --micro-batches 8
  pipestep schedule export --schedule 1f1b --ranks 4 --micro-batches 8 > 1f1b.csv
  pipestep schedule check 1f1b.csv";

/// Simulates pipelined LLM training: schedules, memory and time from a short TOML file.
///
/// A scenario describes a pipeline (ranks, micro-batches, schedule), how long its operations and transfers
/// take and what they keep in memory. pipestep runs it event by event and shows the timeline: when each rank
/// works, what it waits for, what it holds.
#[derive(Debug, Parser)]
#[command(name = "pipestep", version, max_term_width = 100, after_help = EXAMPLES)]
#[command(arg_required_else_help = true, disable_help_subcommand = true, propagate_version = true)]
pub(crate) struct CommandLine {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a scenario and show where its time and memory go
    #[command(after_help = RUN_EXAMPLES)]
    Run(Run),
    /// Run one scenario under several schedules, side by side
    #[command(after_help = COMPARE_EXAMPLES)]
    Compare(Compare),
    /// Say why ranks are idle, what sets the makespan, and what would help
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(Explain),
    /// Run a scenario at every point of a space, on all cores, and draw what it shows
    #[command(after_help = SWEEP_EXAMPLES)]
    Sweep(Sweep),
    /// Find the schedule and settings with the shortest step that fits the memory budget
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(Search),
    /// Validate a scenario without running it
    Check(Scenario),
    /// Print the JSON schema of scenarios, for editors
    Schema,
    /// Recompute every number that the documentation claims, by simulation
    #[command(after_help = REPRODUCE_EXAMPLES)]
    Reproduce(Reproduce),
    /// List, show, check and export schedules
    #[command(subcommand, after_help = SCHEDULE_EXAMPLES, arg_required_else_help = true)]
    Schedule(Schedule),
}

/// A scenario and what is changed in it.
#[derive(Args, Debug)]
pub(crate) struct Scenario {
    /// The scenario's TOML file
    #[arg(value_name = "SCENARIO")]
    pub(crate) path: PathBuf,
    /// Replace a value, e.g. `--set pipeline.ranks=8`; may be repeated, later ones win
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
}

/// `pipestep reproduce`.
#[derive(Args, Debug)]
pub(crate) struct Reproduce {
    /// The file of claims; the scenarios that it names lie beside it
    #[arg(value_name = "CLAIMS", default_value = "scenarios/claims.json")]
    pub(crate) claims: PathBuf,
    /// Write claims, values and verdicts as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// `pipestep run`.
#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Write everything to this directory: pictures as PNG and SVG, result.json; of a step also events.csv,
    /// memory.csv, trace.json
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the result as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write every operation and message as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Write every change of every rank's memory as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) memory: Option<PathBuf>,
    /// Write a trace in Chrome's format, for ui.perfetto.dev
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// How often to run a step whose lengths scatter, or a job; as `[jitter]` and `[faults]` say if left out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Print no table
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `pipestep compare`.
#[derive(Args, Debug)]
pub(crate) struct Compare {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// The schedules, by name; `all` for every one that takes the scenario
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', required = true)]
    pub(crate) schedules: Vec<String>,
    /// How often to run each schedule where lengths scatter, with the same draws for all; as `[jitter]` says if left
    /// out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// Write pictures of all of them on one time axis, and the numbers, to this directory: gantt.png,
    /// gantt.svg, memory.png, memory.svg, tradeoff.png, tradeoff.svg, compare.json
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write all results as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print no table
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `pipestep sweep`.
#[derive(Args, Debug)]
pub(crate) struct Sweep {
    /// The scenario's TOML file
    #[arg(value_name = "SCENARIO", required_unless_present = "merge")]
    pub(crate) path: Option<PathBuf>,
    /// Replace a value, e.g. `--set pipeline.ranks=8`; may be repeated; a key of [sweep] keeps that one value
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Try values of a key, instead of those in [sweep] or beside them; may be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// Write results.csv, pictures and what is needed to resume to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// How many points to compute at once; all cores if left out
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Go on with a sweep that was interrupted; begin it if it was not begun
    #[arg(long)]
    pub(crate) resume: bool,
    /// Compute only the K-th of N equal parts of the sweep
    #[arg(long, value_name = "K/N")]
    pub(crate) shard: Option<String>,
    /// Put the directories of all N parts together
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with_all = ["path", "set", "vary", "jobs", "shard"])]
    pub(crate) merge: Vec<PathBuf>,
    /// Say nothing
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `pipestep explain`.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Tell every idle interval of this rank, in order of time, instead
    #[arg(long, value_name = "RANK")]
    pub(crate) rank: Option<u16>,
    /// Explain this run, from 0, of a step whose lengths scatter; `--set jitter.seed=7` for other draws
    #[arg(long, value_name = "K")]
    pub(crate) run: Option<u64>,
    /// By how many percent each rank's slowest stage is made faster, to see what that would gain
    #[arg(long, value_name = "PERCENT", default_value_t = 10, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) faster: u8,
    /// The schedule to compare with, or `none` [default: fill-drain, where it takes the scenario]
    #[arg(long, value_name = "SCHEDULE")]
    pub(crate) against: Option<String>,
    /// Write explain.png, explain.svg and explain.json to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write the explanation as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print nothing
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `pipestep search`.
#[derive(Args, Debug)]
pub(crate) struct Search {
    #[command(flatten)]
    pub(crate) scenario: Scenario,
    /// Simulate every setting, leaving none out by bounds
    #[arg(long)]
    pub(crate) exhaustive: bool,
    /// Try values of a key, instead of those in [search.vary] or beside them; may be repeated
    #[arg(long, value_name = "KEY=VALUES")]
    pub(crate) vary: Vec<String>,
    /// How often to run each setting where anything is drawn, with the same seeds for all
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs: Option<u32>,
    /// How many settings to show behind the best one
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(crate) runners_up: u16,
    /// How many settings to simulate at once; all cores if left out
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Write search.json and pictures to this directory: pareto.png, pareto.svg; search.png, search.svg over keys
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Write what was found as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Print nothing
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// `pipestep schedule`.
#[derive(Debug, Subcommand)]
pub(crate) enum Schedule {
    /// List every schedule: what it is, its memory and bubble, where it comes from
    List,
    /// Draw a schedule in letters
    Show(Show),
    /// Check a schedule file (PyTorch's CSV)
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckFile),
    /// Write a schedule in PyTorch's CSV format to standard output
    Export(Export),
}

/// The numbers a schedule is made for.
#[derive(Args, Debug)]
pub(crate) struct Numbers {
    /// Pipeline-parallel devices
    #[arg(long, value_name = "P", default_value = "4")]
    pub(crate) ranks: String,
    /// Micro-batches of one step; if left out, 8, or as many as ranks where the schedule takes no more
    #[arg(long, value_name = "M")]
    pub(crate) micro_batches: Option<String>,
    /// Stages of each rank; what the schedule takes if left out, 2 if it takes any number
    #[arg(long, value_name = "V")]
    pub(crate) chunks: Option<String>,
    #[command(flatten)]
    pub(crate) options: ScheduleOptions,
}

/// `pipestep schedule show`.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The schedule, e.g. 1f1b
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    /// Columns of the drawing
    #[arg(long, value_name = "COLUMNS", default_value_t = 100)]
    pub(crate) width: u16,
}

/// `pipestep schedule export`.
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The schedule, e.g. 1f1b
    #[arg(long, value_name = "NAME")]
    pub(crate) schedule: String,
    #[command(flatten)]
    pub(crate) numbers: Numbers,
    /// The format
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::PytorchCsv)]
    pub(crate) format: Format,
}

/// Formats of `schedule export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// PyTorch's `compute_only`: one row of operations a rank
    PytorchCsv,
    /// PyTorch's `compute_comms`: with the sends, receives and waits that PyTorch 2.15 adds
    PytorchCommsCsv,
}

/// `pipestep schedule check`.
#[derive(Args, Debug)]
pub(crate) struct CheckFile {
    /// A CSV file with one row a rank
    pub(crate) file: PathBuf,
    /// How many ranks it must have
    #[arg(long, value_name = "P")]
    pub(crate) ranks: Option<usize>,
    /// How many stages it must have, all ranks together
    #[arg(long, value_name = "S")]
    pub(crate) stages: Option<usize>,
    /// How many micro-batches it must have
    #[arg(long, value_name = "M")]
    pub(crate) micro_batches: Option<usize>,
}

/// Reads the command line of this process.
///
/// # Errors
/// A [`clap::Error`]: what is wrong, or the help that was asked for.
pub(crate) fn read() -> anyhow::Result<CommandLine> {
    Ok(CommandLine::try_parse()?)
}
