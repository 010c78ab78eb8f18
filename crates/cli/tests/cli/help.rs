//! Nothing that is printed for people is wider than 100 columns.

use crate::printed;

#[test]
fn help_and_lists_fit_100_columns() {
    let commands: [&[&str]; 13] = [
        &["--help"],
        &["run", "--help"],
        &["compare", "--help"],
        &["explain", "--help"],
        &["check", "--help"],
        &["schema", "--help"],
        &["schedule", "--help"],
        &["schedule", "list", "--help"],
        &["schedule", "show", "--help"],
        &["schedule", "check", "--help"],
        &["schedule", "export", "--help"],
        &["schedule", "list"],
        &["schedule", "show", "interleaved", "--ranks", "16", "--micro-batches", "64"],
    ];
    for arguments in commands {
        for line in printed(arguments).lines() {
            let columns = line.chars().count();
            assert!(columns <= 100, "{arguments:?}: {columns} columns: {line}");
        }
    }
}

#[test]
fn every_schedule_can_be_listed_and_shown() {
    let list = printed(&["schedule", "list"]);
    for schedule in pipestep_schedule::all() {
        let entry = schedule.entry();
        assert!(list.contains(&format!("\n{}", entry.name)), "{list}");
        let shown = printed(&["schedule", "show", entry.name]);
        assert!(shown.contains("rank 0 ") && shown.contains(entry.name), "{shown}");
    }
}
