//! A sweep that is killed at any instant loses nothing that was finished, and ends as if it had not been killed.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::sweep::{assert_same, inside, place, run};

/// Kills while points are computed.
const KILLS: u32 = 50;
/// Enough points that the kills come before the end.
const SWEEP: [&str; 5] = [
    "sweep",
    "small.toml",
    "--vary=pipeline.micro_batches=8..4000:16",
    "--vary=pipeline.schedule=1f1b,fill-drain,zb-h1,interleaved",
    "--resume",
];

/// The points whose rows are complete in a directory.
fn finished(directory: &Path) -> BTreeSet<u64> {
    let read = |name| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let (results, early) = (read("results.csv"), read("early.csv"));
    let lines = results.split_inclusive('\n').chain(early.split_inclusive('\n'));
    let whole = lines.filter(|line| line.ends_with('\n'));
    whole.filter_map(|line| line.split(',').next()?.parse().ok()).collect()
}

#[test]
fn kills_lose_nothing_and_change_nothing() {
    let place = place();
    let (whole, killed) = (place.path().join("whole"), place.path().join("killed"));
    assert_eq!(run(place.path(), &[&SWEEP[..], &["--out=whole"]].concat()).0, Some(0));

    let mut random = u64::from(std::process::id()) << 16 | 0xACE1;
    let (mut kills, mut before) = (0, BTreeSet::new());
    for round in 0.. {
        let jobs = format!("--jobs={}", 1 + round % 4);
        let mut command = inside(place.path(), &[&SWEEP[..], &["--out=killed", &jobs]].concat());
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
        // Xorshift: delays need no better chance.
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        thread::sleep(Duration::from_micros(random % if kills < KILLS { 60_000 } else { 400_000 }));
        let ended = child.try_wait().expect("it is our child").is_some();
        child.kill().expect("it is our child");
        let output = child.wait_with_output().expect("it is our child");
        let said = String::from_utf8_lossy(&output.stderr);
        let after = finished(&killed);
        assert!(after.is_superset(&before), "round {round} lost {:?}", before.difference(&after));
        if let Some(there) = said.split(' ').next().and_then(|word| word.parse::<usize>().ok()) {
            assert_eq!(there, before.len(), "round {round} found other rows than it was left: {said}");
        }
        before = after;
        if ended {
            assert_eq!(output.status.code(), Some(0), "{said}");
            break;
        }
        kills += 1;
    }
    assert!(kills >= KILLS, "the sweep was over after {kills} kills");
    assert_same(&whole, &killed);
}
