//! Every scenario that is shipped, with the changes that its comments propose, and every one in the documentation, is
//! read without an error.

use std::fs;

use pipestep_scenario::{no_files, parse};

use crate::root;

#[test]
fn shipped_scenarios_are_right() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("scenarios")).expect("it is part of the repository") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let output = crate::pipestep(&["check", path.to_str().expect("UTF-8")]).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        count += 1;
    }
    assert!(count >= 5, "{count} scenarios");
}

/// The commands in the comments of a scenario: file and `--set`s, whatever the command and its other options are. Not
/// those that `--vary` keys, which may be right only with what is varied.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found: Vec<String> = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix('#')) {
        let line = line.trim();
        let is_open = |command: &String| command.matches('\'').count() % 2 == 1 || line.starts_with("--set");
        match found.last_mut().filter(|command| is_open(command)) {
            Some(command) => *command = format!("{command} {line}"),
            None => found.extend(line.strip_prefix("pipestep ").map(str::to_owned)),
        }
    }
    let whole = found.iter().filter(|command| !command.contains("--vary"));
    whole.map(|command| file_and_changes(command)).collect()
}

fn file_and_changes(command: &str) -> Vec<String> {
    // Outside of single quotes, blanks separate.
    let quoted = command.split('\'').enumerate();
    let kept =
        quoted.map(|(part, text)| if part % 2 == 0 { text.replace(' ', "\n") } else { text.to_owned() });
    let kept: String = kept.collect();
    let words: Vec<&str> = kept.split('\n').filter(|word| !word.is_empty()).collect();
    let mut arguments: Vec<String> = words.iter().skip(1).take(1).map(|&file| file.to_owned()).collect();
    for pair in words.windows(2).filter(|pair| pair[0] == "--set") {
        arguments.extend(pair.iter().map(|&word| word.to_owned()));
    }
    arguments
}

#[test]
fn the_changes_that_comments_propose_are_right() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("scenarios")).expect("it is part of the repository") {
        let path = entry.expect("readable").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        for command in commands(&fs::read_to_string(&path).expect("readable")) {
            if !command.iter().any(|word| word == "--set") {
                continue;
            }
            let arguments: Vec<&str> =
                std::iter::once("check").chain(command.iter().map(String::as_str)).collect();
            let output = crate::pipestep(&arguments).output().expect("it starts");
            assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
            count += 1;
        }
    }
    assert!(count >= 20, "{count} commands");
}

#[test]
fn documented_scenarios_are_right() {
    let docs = fs::read_dir(root().join("docs")).expect("it is part of the repository");
    let docs = docs.map(|entry| entry.expect("readable").path());
    let mut count = 0;
    for path in docs.chain([root().join("README.md")]).filter(|path| path.extension().is_some()) {
        let text = fs::read_to_string(&path).expect("readable");
        for block in text.split("\n```toml\n").skip(1) {
            let (block, _) = block.split_once("\n```").expect("the block ends");
            parse(block, &path.display().to_string(), &[], &no_files)
                .unwrap_or_else(|errors| panic!("{errors}"));
            count += 1;
        }
    }
    assert!(count >= 2, "{count} blocks");
}
