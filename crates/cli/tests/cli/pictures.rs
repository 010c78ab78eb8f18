//! The pictures in the documentation are those that the program draws. `UPDATE_DOCS=1` draws them anew.
//!
//! They are compared to the last byte. That holds on every machine with the same mathematical library; logarithms of
//! others may differ in the last digit, and a pixel with them.

use std::fs;

use crate::{printed, root};

/// The picture in `docs/images`, what draws it, and what that calls it.
const PICTURES: [(&str, &[&str], &str); 9] = [
    ("explain.png", &["explain", "scenarios/qwen3-8b-1f1b.toml"], "explain.png"),
    ("gantt.png", COMPARE, "gantt.png"),
    ("job.png", &["run", "scenarios/job-saves-7gbps.toml"], "job.png"),
    ("memory.png", COMPARE, "memory.png"),
    ("rl.png", &["run", "scenarios/rl-async.toml"], "rl.png"),
    ("scatter.png", &["run", "scenarios/scatter.toml"], "scatter.png"),
    ("search-interval.png", &["search", "scenarios/search-interval.toml"], "search.png"),
    ("search-pareto.png", &["search", "scenarios/qwen3-8b-1f1b.toml"], "pareto.png"),
    ("sweep-utilisation.png", &["sweep", "scenarios/sweep-micro-batches.toml"], "utilisation.png"),
];

const COMPARE: &[&str] = &["compare", "scenarios/qwen3-8b-1f1b.toml", "--schedules", "fill-drain,1f1b"];

#[test]
fn pictures_are_what_the_program_draws() {
    let images = root().join("docs/images");
    let mut differ = Vec::new();
    for (image, command, name) in PICTURES {
        let place = tempfile::tempdir().expect("there is room for temporary files");
        let out = place.path().join("out");
        let out_text = out.to_str().expect("temporary paths are UTF-8");
        printed(&[command, &["--quiet", "--out", out_text]].concat());
        let drawn = fs::read(out.join(name)).expect("the command draws it");
        let documented = images.join(image);
        if fs::read(&documented).expect("it is part of the documentation") == drawn {
            continue;
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(&documented, drawn).expect("the documentation can be written");
        } else {
            differ.push(image);
        }
    }
    assert!(differ.is_empty(), "{differ:?} in docs/images are not what is drawn (UPDATE_DOCS=1 draws anew)");
}

#[test]
fn every_picture_of_the_documentation_has_its_command() {
    let images = fs::read_dir(root().join("docs/images")).expect("it is part of the documentation");
    let mut names: Vec<String> =
        images.map(|image| image.expect("readable").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, PICTURES.map(|(image, ..)| image));
}
