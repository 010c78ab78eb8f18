//! The Ray script of `docs/cluster.md` runs, on a local Ray, where Ray is installed.
//!
//! `PIPESTEP_PYTHON` names the Python to use; `python3` if it does not.

use std::fs;
use std::process::Command;

use crate::sweep::{assert_same, place, run};
use crate::{PIPESTEP, root};

#[test]
fn shards_on_a_local_ray_make_the_same_directory() {
    let python = std::env::var("PIPESTEP_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_ray = Command::new(&python).args(["-c", "import ray"]).output();
    if !has_ray.is_ok_and(|output| output.status.success()) {
        println!("skipped: `{python}` has no Ray (pip install ray, or PIPESTEP_PYTHON)");
        return;
    }
    let docs = fs::read_to_string(root().join("docs/cluster.md")).expect("it is part of the repository");
    let script = docs.split("```python\n").nth(1).and_then(|rest| rest.split("```").next());
    let place = place();
    fs::write(place.path().join("sweep_on_ray.py"), script.expect("it has a script")).expect("there is room");
    let mut command = Command::new(&python);
    command.args(["sweep_on_ray.py", "small.toml", "5", "parts"]).current_dir(place.path());
    let output = command.env("PIPESTEP", PIPESTEP).env("RAY_USAGE_STATS_ENABLED", "0").output();
    let output = output.expect("there is a Python");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(run(place.path(), &["sweep", "small.toml", "--out", "one"]).0, Some(0));
    assert_same(&place.path().join("one"), &place.path().join("parts/whole"));
}
