//! Tests of the scenario format: its errors word for word, its meaning against known figures, its robustness.

mod book;
mod compare;
mod config;
mod errors;
mod job;
mod layer_time;
mod meaning;
mod order_file;
mod rl;
mod rl_supply;
mod robust;
mod spread;
mod uneven;

use std::io;
use std::path::Path;

use pipestep_scenario::{Diagnostics, JobScenario, Override, Scenario, StepScenario};

/// The smallest scenario; tests put further tables behind it.
const MINIMAL: &str = "\
[pipeline]
ranks = 4
micro_batches = 8
schedule = \"1f1b\"

[time]
forward = \"10 ms\"
backward = \"20 ms\"
";

/// Reads a scenario; the files that it names are those of `tests/data/files`.
fn parse(text: &str, file_name: &str, overrides: &[Override]) -> Result<Scenario, Diagnostics> {
    pipestep_scenario::parse(text, file_name, overrides, &|path| read_file(path))
}

fn read_file(path: &Path) -> io::Result<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/files");
    // What the system says differs from one to the next.
    std::fs::read_to_string(folder.join(path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::new(error.kind(), "no such file"),
        _ => error,
    })
}

/// A scenario that must be legal, with `sets` put in.
fn legal(text: &str, sets: &[&str]) -> Scenario {
    let overrides: Vec<Override> = sets.iter().map(|&set| Override::set(set)).collect();
    parse(text, "test.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Its step.
fn step(text: &str, sets: &[&str]) -> StepScenario {
    legal(text, sets).step.expect("it has a pipeline")
}

/// The job of a scenario that must be legal.
fn job_of(text: &str) -> JobScenario {
    legal(text, &[]).job.expect("it has a job")
}
