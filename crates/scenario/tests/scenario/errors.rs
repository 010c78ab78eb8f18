//! What users read when something is wrong, word for word.
//!
//! Each file of `tests/data/errors` holds a scenario, a line of `=`, and what is said about it. A first line
//! `# --set KEY=VALUE` sets something. `UPDATE_EXPECTED=1` writes the second halves anew.

use std::fs;
use std::path::Path;

use pipestep_scenario::{Override, StepScenario};

use crate::parse;

const SEPARATOR: &str = "\n==========\n";

#[test]
fn errors_read_as_written_down() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/errors");
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.sort();
    assert!(paths.len() > 30, "{} cases", paths.len());
    let mut wrong = Vec::new();
    for path in paths {
        let content = fs::read_to_string(&path).expect("readable");
        let (text, expected) = content.split_once(SEPARATOR).unwrap_or((&content, ""));
        let found = said_about(text);
        if found.trim_end() == expected.trim_end() {
            continue;
        }
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&path, format!("{text}{SEPARATOR}{}\n", found.trim_end())).expect("writable");
        } else {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            wrong.push(format!("{name}: found\n{found}\nexpected\n{expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

fn said_about(text: &str) -> String {
    let sets = text.lines().map_while(|line| line.strip_prefix("# --set "));
    let overrides: Vec<Override> = sets.map(Override::set).collect();
    match parse(text, "demo.toml", &overrides) {
        Ok(scenario) => match scenario.step.as_ref().map(StepScenario::plan) {
            Some(Err(refusal)) => scenario.refused(&refusal).to_string(),
            _ => "no error".to_owned(),
        },
        Err(errors) => errors.to_string(),
    }
}
