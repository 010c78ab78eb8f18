//! `pipestep schedule`: the schedules themselves, without a scenario of one's own.
//!
//! A schedule is shown and exported for a small scenario made here, with equal stages and free transfers; what
//! is typed is put into it as overrides, so that its mistakes are reported as those of any scenario.

mod check;
mod export;
mod list;
mod show;

use anyhow::Result;
use pipestep_scenario::{Override, Scenario, no_files};
use pipestep_schedule::{Chunks, Entry, Placement};

use crate::{Ending, args};

/// Equal stages, a backward twice as long as a forward, and 1 MB kept of each micro-batch.
const EQUAL_STAGES: &str = r#"
[pipeline]
ranks = 4
micro_batches = 8
schedule = "1f1b"

[time]
forward = "10 ms"
backward = "20 ms"

[memory]
saved_per_micro_batch = "1 MB"
"#;

/// Does one of the subcommands.
pub(crate) fn run(typed: &args::Schedule) -> Result<Ending> {
    match typed {
        args::Schedule::List => list::run(),
        args::Schedule::Show(typed) => show::run(typed),
        args::Schedule::Check(typed) => check::run(typed),
        args::Schedule::Export(typed) => export::run(typed),
    }
}

/// The scenario of equal stages for a schedule and its numbers; `flag` is how the schedule was typed.
fn scenario_for(name: &str, flag: &str, numbers: &args::Numbers) -> Result<Scenario> {
    if let Some(typed) = &numbers.micro_batches {
        return scenario_of(name, flag, numbers, typed);
    }
    let usual = scenario_of(name, flag, numbers, "8")?;
    let is_taken = usual.step.as_ref().is_some_and(|step| step.plan().is_ok());
    if is_taken { Ok(usual) } else { scenario_of(name, flag, numbers, &numbers.ranks) }
}

/// The same for a number of micro-batches.
fn scenario_of(name: &str, flag: &str, numbers: &args::Numbers, micro_batches: &str) -> Result<Scenario> {
    let any_number = |name| {
        let schedule = pipestep_schedule::find(name)?;
        matches!(schedule.entry().chunks, Chunks::Any | Chunks::Even).then(|| "2".to_owned())
    };
    let chunks = numbers.chunks.clone().or_else(|| any_number(name));
    let set = |key: &str, value: &str, flag: &str| Override::from(format!("pipeline.{key}={value}"), flag);
    let mut overrides = vec![
        set("schedule", name, flag),
        set("ranks", &numbers.ranks, "--ranks"),
        set("micro_batches", micro_batches, "--micro-batches"),
    ];
    overrides.extend(chunks.map(|chunks| set("chunks", &chunks, "--chunks")));
    let options = numbers.options.iter();
    overrides.extend(options.map(|(option, flag, value)| set(option, value, &flag)));
    let file = format!("one step of {name}");
    Ok(pipestep_scenario::parse(EQUAL_STAGES, &file, &overrides, &no_files)?)
}

/// A paragraph about a schedule.
fn describe(entry: &Entry) -> String {
    let other_names = match entry.aliases {
        [] => String::new(),
        aliases => format!(" (also {})", aliases.join(", ")),
    };
    let mut text = format!("{}{other_names}\n", entry.name);
    let torch = entry.torch.map(|class| format!("Schedule{class}"));
    let options: Vec<String> = entry
        .options
        .iter()
        .map(|option| format!("{} (default {}): {}", option.name, option.default, option.meaning))
        .collect();
    let facts = [
        ("what", entry.summary.to_owned()),
        ("takes", entry.constraints.to_owned()),
        ("stages", placement(entry.placement).to_owned()),
        ("peak", entry.memory.to_owned()),
        ("bubble", entry.bubble.to_owned()),
        ("options", options.join("; ")),
        ("source", entry.source.to_owned()),
        ("PyTorch", torch.unwrap_or_default()),
    ];
    for (name, fact) in facts.iter().filter(|(_, fact)| !fact.is_empty()) {
        text += &wrapped(name, fact);
    }
    text
}

fn placement(placement: Placement) -> &'static str {
    match placement {
        Placement::Loop => "s on rank s mod p",
        Placement::V => "down the ranks and up again",
        Placement::Bidirectional => "two copies of the model, one in each direction",
        Placement::Listed => "as the file says",
    }
}

/// `  name     value`, the value broken between words where the line would pass column 100.
fn wrapped(name: &str, value: &str) -> String {
    let mut line = format!("  {name:9}");
    let (indent, mut text) = (line.len(), String::new());
    for (index, word) in value.split(' ').enumerate() {
        if index > 0 && line.chars().count() + 1 + word.chars().count() > 100 {
            text += line.trim_end();
            text.push('\n');
            line = " ".repeat(indent);
        } else if index > 0 {
            line.push(' ');
        }
        line += word;
    }
    text + line.trim_end() + "\n"
}
