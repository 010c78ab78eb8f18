//! Every command in the README, in `docs/` and in `tests/cli/*.trycmd` does what is written below it.
//!
//! They run in a copy of `scenarios/`, so that they may write files. `TRYCMD=overwrite` writes their output anew.

use std::fs;
use std::path::Path;

use crate::{PIPESTEP, root};

#[test]
fn commands_do_what_the_documentation_says() {
    let root = root();
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let files = "tests/cli/files";
    for (from, to) in [("scenarios", "scenarios"), (files, files), (files, "files")] {
        copy(&root.join(from), &place.path().join(to));
    }
    std::env::set_current_dir(place.path()).expect("it was just made");
    let cases = trycmd::TestCases::new();
    cases.register_bin("pipestep", Path::new(PIPESTEP));
    cases.register_bin("ls", Path::new("/bin/ls"));
    for pattern in ["tests/cli/*.trycmd", "README.md", "docs/*.md"] {
        cases.case(root.join(pattern));
    }
    cases.run();
}

/// Copies a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("there is room");
    for entry in fs::read_dir(from).expect("it is part of the repository") {
        let entry = entry.expect("readable");
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy(&from, &to);
        } else {
            fs::copy(from, to).expect("there is room");
        }
    }
}
