//! Files appear whole or not at all, streams that break are dealt with, and the same run writes the same bytes.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{PIPESTEP, one_line, pipestep, root};

const SCENARIO: &str = "scenarios/qwen3-8b-1f1b.toml";
/// What `--out` writes.
const EVERYTHING: [&str; 8] = [
    "events.csv",
    "gantt.png",
    "gantt.svg",
    "memory.csv",
    "memory.png",
    "memory.svg",
    "result.json",
    "trace.json",
];

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("there is room for temporary files")
}

/// The names in a directory, hidden ones too.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).expect("it is there");
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.expect("readable"))).collect();
    names.sort();
    names
}

/// Runs the scenario with more arguments; gives the exit code and what was said on standard error.
fn run(more: &[&str]) -> (Option<i32>, String) {
    let output = pipestep(&[&["run", SCENARIO], more].concat()).output().expect("it starts");
    (output.status.code(), one_line(&output.stderr))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}

#[test]
fn everything_is_written_twice_alike_and_nothing_else() {
    let place = temporary();
    let directories = [place.path().join("a/b"), place.path().join("c")];
    for directory in &directories {
        assert_eq!(run(&["--out", text(directory)]), (Some(0), String::new()));
        assert_eq!(names(directory), EVERYTHING);
    }
    for name in EVERYTHING {
        let [first, second] = directories.each_ref().map(|directory| fs::read(directory.join(name)));
        let (first, second) = (first.expect("written"), second.expect("written"));
        assert!(!first.is_empty() && first == second, "{name}");
    }
}

#[test]
fn a_single_file_is_what_out_writes_under_that_name() {
    let place = temporary();
    let at = |name: &str| text(&place.path().join(name)).to_owned();
    run(&["--out", &at("all")]);
    for (flag, name) in [
        ("--json", "result.json"),
        ("--events", "events.csv"),
        ("--memory", "memory.csv"),
        ("--trace", "trace.json"),
    ] {
        let single = at(name);
        assert_eq!(run(&[flag, &single]), (Some(0), String::new()));
        let read = |path: &str| fs::read(path).expect("written");
        assert_eq!(read(&single), read(&at(&format!("all/{name}"))), "{name}");
        let piped = pipestep(&["run", SCENARIO, flag, "-"]).output().expect("it starts");
        assert_eq!(piped.stdout, read(&single), "{name}");
    }
}

#[test]
fn a_failed_run_leaves_what_was_there() {
    let place = temporary();
    let old = place.path().join("old.json");
    fs::write(&old, "old").expect("there is room");
    // The second output fails after the first is complete.
    let (code, said) = run(&["--json", text(&old), "--events", "/dev/full"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("cannot write `/dev/full`: No space left on device"), "{said}");
    assert_eq!(fs::read_to_string(&old).expect("still there"), "old");
    assert_eq!(names(place.path()), ["old.json"]);
    // The scenario fails before anything is written.
    let results = place.path().join("results");
    let (code, _) = run(&["--set", "pipeline.ranks=0", "--out", text(&results)]);
    assert_eq!((code, results.exists()), (Some(2), false));
}

#[test]
fn a_link_and_a_mode_outlive_the_file_they_belong_to() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let place = temporary();
    let (file, link) = (place.path().join("file.json"), place.path().join("link.json"));
    fs::write(&file, "old").expect("there is room");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("it is ours");
    symlink(&file, &link).expect("links can be made");
    assert_eq!(run(&["--json", text(&link)]).0, Some(0));
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&file).expect("still there").starts_with('{'));
    let mode = fs::metadata(&file).expect("still there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

#[test]
fn devices_are_written_to_and_not_replaced() {
    assert_eq!(run(&["--json", "/dev/null"]).0, Some(0));
    assert!(!fs::metadata("/dev/null").expect("it is always there").is_file());
}

#[test]
fn a_full_standard_output_is_an_error() {
    for arguments in [&["run", SCENARIO][..], &["schema"], &["--help"], &["schedule", "list"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let mut command = pipestep(arguments);
        let output = command.stdout(full.expect("Linux has it")).stderr(Stdio::piped());
        let output = output.spawn().and_then(std::process::Child::wait_with_output).expect("it starts");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let said = one_line(&output.stderr);
        assert!(said.starts_with("error: cannot write to standard output: No space left"), "{said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let many = ["run", SCENARIO, "--set", "pipeline.micro_batches=20000", "--quiet"];
    let lots: [&[&str]; 3] = [&[&many[..], &["--events", "-"]].concat(), &["schema"], &["--help"]];
    for arguments in lots {
        let mut command = Command::new(PIPESTEP);
        command.args(arguments).current_dir(root());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn what_is_not_text_is_said_not_to_be() {
    let place = temporary();
    let path = place.path().join("picture.toml");
    fs::write(&path, b"# \xC3\xA9\n\xC3\xA9=\xFF").expect("there is room");
    let output = pipestep(&["check", text(&path)]).output().expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    let said = one_line(&output.stderr);
    assert!(said.contains("expected UTF-8 text, found the byte 0xFF in line 2, column 3"), "{said}");
}
