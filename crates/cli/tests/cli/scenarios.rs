//! Every scenario that is shipped, and every one in the documentation, is read without an error.

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
