//! Tests of the scenario format: its errors word for word, its meaning against known figures, its robustness.

mod book;
mod compare;
mod errors;
mod meaning;
mod robust;

use pipestep_scenario::{Override, Scenario, StepScenario, parse};

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

/// A scenario that must be legal, with `sets` put in.
fn legal(text: &str, sets: &[&str]) -> Scenario {
    let overrides: Vec<Override> = sets.iter().map(|&set| Override::set(set)).collect();
    parse(text, "test.toml", &overrides).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Its step.
fn step(text: &str, sets: &[&str]) -> StepScenario {
    legal(text, sets).step.expect("it has a pipeline")
}
