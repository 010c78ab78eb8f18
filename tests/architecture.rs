//! The plan of the house (`docs/architecture.md`) holds: which crate may depend on which, and which crate alone
//! may use a heavy dependency.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The arrows: a crate and what it is built on. What these are built on may be named too.
const PLAN: [(&str, &[&str]); 9] = [
    ("engine", &[]),
    ("schedule", &[]),
    ("model", &[]),
    ("step", &["schedule", "engine"]),
    ("job", &["engine"]),
    ("rl", &["engine"]),
    ("scenario", &["step", "job", "rl", "model"]),
    ("report", &["step", "job", "rl"]),
    ("cli", &["report", "scenario"]),
];

/// Dependencies that belong to one crate, and those that core crates never have.
const OWNED: [(&str, &[&str]); 10] = [
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("parquet", &["cli"]),
    ("plotters", &["report"]),
    ("comfy-table", &["report"]),
    ("toml", &["scenario"]),
    ("annotate-snippets", &["scenario"]),
    ("jiff", &["job"]),
    ("serde", &["report", "scenario"]),
    ("serde_json", &["report", "scenario", "cli"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The names in `[dependencies]` and `[build-dependencies]` of each crate, by the crate's directory.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let directories = fs::read_dir(root().join("crates")).expect("the workspace has crates");
    let mut found = BTreeMap::new();
    for directory in directories {
        let directory = directory.expect("readable").path();
        let text = fs::read_to_string(directory.join("Cargo.toml")).expect("every crate has a manifest");
        let manifest: toml::Table = text.parse().expect("cargo reads it too");
        let tables = ["dependencies", "build-dependencies"].into_iter();
        let tables = tables.filter_map(|table| manifest.get(table)?.as_table());
        let names = tables.flat_map(|table| table.keys().cloned());
        let name = directory.file_name().expect("it has a name").to_string_lossy().into_owned();
        found.insert(name, names.collect());
    }
    found
}

/// Everything that a crate is built on by the plan.
fn below(name: &str) -> BTreeSet<&'static str> {
    let (_, direct) = PLAN.iter().find(|(crate_name, _)| *crate_name == name).expect("it is in the plan");
    direct.iter().flat_map(|name| below(name).into_iter().chain([*name])).collect()
}

#[test]
fn no_crate_depends_on_what_the_plan_does_not_put_below_it() {
    let manifests = manifests();
    let planned: BTreeSet<&str> = PLAN.iter().map(|(name, _)| *name).collect();
    let there: BTreeSet<&str> = manifests.keys().map(String::as_str).collect();
    assert_eq!(there, planned, "crates, and those in the plan");
    for (name, dependencies) in &manifests {
        let allowed = below(name);
        for ours in dependencies.iter().filter_map(|dependency| dependency.strip_prefix("pipestep-")) {
            assert!(allowed.contains(ours), "`{name}` depends on `{ours}`, which the plan does not have");
        }
    }
}

#[test]
fn heavy_dependencies_stay_in_their_rooms() {
    for (name, dependencies) in manifests() {
        for (dependency, owners) in OWNED {
            let is_used = dependencies.contains(dependency);
            assert!(
                !is_used || owners.contains(&name.as_str()),
                "`{name}` uses `{dependency}`, which belongs to {owners:?}"
            );
        }
    }
}

#[test]
fn the_documented_house_is_the_house() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).expect("it is part of the repository");
    for (name, _) in PLAN {
        assert!(text.contains(&format!("`crates/{name}`")), "docs/architecture.md lacks `crates/{name}`");
    }
    let paths = text.split('`').filter(|piece| {
        piece.starts_with("crates/") && Path::new(piece).extension().is_some_and(|end| end == "rs")
    });
    let paths: Vec<&str> = paths.collect();
    assert!(paths.len() >= 5, "the reading path has five files: {paths:?}");
    for path in paths {
        assert!(root().join(path).is_file(), "docs/architecture.md names `{path}`, which is not there");
    }
}
