//! A sweep's directory is the same to the byte however it came about, and is refused where it is another's.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{PIPESTEP, one_line, printed};

/// A scenario whose points are cheap.
pub(crate) const SMALL: &str = r#"
    name = "small"
    [pipeline]
    ranks = 4
    micro_batches = 8
    schedule = "1f1b"
    [time]
    forward = "10 ms"
    backward = "20 ms"
    [transfer]
    activation = "1 ms"
    gradient = "1 ms"
    [memory]
    saved_per_micro_batch = "240 MB"
    budget = "1 GB"
    [sweep]
    "pipeline.schedule" = ["1f1b", "interleaved", "hanayo", "dualpipe"]
    "pipeline.micro_batches" = "1..12"
"#;

/// A place with the small scenario in it.
pub(crate) fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("there is room for temporary files");
    fs::write(place.path().join("small.toml"), SMALL).expect("there is room");
    place
}

/// `pipestep` in a directory.
pub(crate) fn inside(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(PIPESTEP);
    command.args(arguments).current_dir(place);
    command
}

/// Runs it; gives the exit code and what was said on standard error, in one line.
pub(crate) fn run(place: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = inside(place, arguments).output().expect("it starts");
    (output.status.code(), one_line(&output.stderr))
}

/// Every file of a directory, hidden ones too.
pub(crate) fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("it is there");
    let content = |entry: fs::DirEntry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).expect("it is a file"))
    };
    entries.map(|entry| content(entry.expect("readable"))).collect()
}

/// Fails with the name of the first file that differs.
pub(crate) fn assert_same(left: &Path, right: &Path) {
    let (left, right) = (contents(left), contents(right));
    assert_eq!(left.keys().collect::<Vec<_>>(), right.keys().collect::<Vec<_>>());
    for (name, bytes) in &left {
        assert!(*bytes == right[name], "{name} differs");
    }
}

fn rows(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("results.csv")).expect("there are results");
    text.lines().skip(1).map(str::to_owned).collect()
}

#[test]
fn threads_and_shards_change_nothing() {
    let place = place();
    let at = place.path();
    assert_eq!(run(at, &["sweep", "small.toml", "--out", "one", "--jobs", "1"]), (Some(0), String::new()));
    assert_eq!(run(at, &["sweep", "small.toml", "--out", "four", "--jobs", "4"]).0, Some(0));
    assert_same(&at.join("one"), &at.join("four"));
    for shard in ["1/3", "2/3", "3/3"] {
        let out = format!("part-{}", &shard[..1]);
        assert_eq!(run(at, &["sweep", "small.toml", "--shard", shard, "--out", &out]).0, Some(0));
    }
    // In any order.
    let merge = ["sweep", "--merge", "part-2", "part-3", "part-1", "--out", "merged"];
    assert_eq!(run(at, &merge).0, Some(0));
    assert_same(&at.join("one"), &at.join("merged"));
}

#[test]
fn a_row_says_what_run_says() {
    let place = place();
    let at = place.path();
    run(at, &["sweep", "small.toml", "--out", "all"]);
    let rows = rows(&at.join("all"));
    assert_eq!(rows.len(), 48);
    let set = ["--set", "pipeline.micro_batches=7", "--set", "pipeline.schedule=1f1b", "--json", "-"];
    let json = inside(at, &["run", "small.toml"]).args(set).output().expect("it starts").stdout;
    let json = String::from_utf8(json).expect("it prints UTF-8");
    let fields: Vec<&str> = rows[6].split(',').collect();
    assert_eq!(&fields[..7], ["6", "1f1b", "7", "1f1b", "4", "1", "7"]);
    assert!(json.contains(&format!("\"makespan_ns\": {},", fields[7])), "{json}");
    assert!(json.contains(&format!("\"by_makespan\": {},", fields[8])), "{json}");
    assert_eq!(fields[14], "960000000 720000000 480000000 240000000");
    assert_eq!((&fields[15..17], fields[24]), (&["1000000000", "true"][..], "true"));
}

#[test]
fn jobs_and_rounds_are_swept_too() {
    let place = place();
    let at = place.path();
    let swept = |text: &str, vary: &str, column: &str, drawn: &str| {
        fs::write(at.join("part.toml"), text).expect("there is room");
        let arguments = ["sweep", "part.toml", "--vary", vary, "--out", "part", "--quiet"];
        assert_eq!(run(at, &arguments), (Some(0), String::new()));
        let results = fs::read_to_string(at.join("part/results.csv")).expect("there are results");
        let header: Vec<&str> = results.lines().next().expect("a header").split(',').collect();
        let place = header.iter().position(|name| *name == column).expect("it has the column");
        assert!(at.join("part").join(drawn).exists(), "{drawn}");
        let cells = results.lines().skip(1).map(|row| row.split(',').nth(place).map(str::to_owned));
        let cells: Option<Vec<String>> = cells.collect();
        fs::remove_dir_all(at.join("part")).expect("it is ours");
        let (key, first) = vary.split_once('=').expect("a key");
        let set = format!("{key}={}", first.split(',').next().expect("a value"));
        let json =
            inside(at, &["run", "part.toml", "--json", "-", "--set", &set]).output().expect("it starts");
        (cells.expect("each row has it"), String::from_utf8(json.stdout).expect("it prints UTF-8"))
    };
    let job = "[job]\nwork = \"1000 s\"\n[checkpoint]\nsize = \"10 GB\"\nbandwidth = \"1 GB/s\"\n\
               every = \"100 s\"\nstaging = \"2 s\"\n[faults]\nat = [\"450 s\"]\n";
    let vary = "checkpoint.every=50 s,100 s,200 s";
    let (elapsed, json) = swept(job, vary, "job_elapsed_ns", "job.png");
    assert!(json.contains(&format!("\"elapsed_ns\": {},", elapsed[0])), "{elapsed:?} {json}");
    let (useful, json) = swept(job, vary, "job_useful_fraction", "useful.svg");
    assert!(json.contains(&format!("\"useful_fraction\": {},", useful[0])), "{useful:?} {json}");
}

#[test]
fn points_that_are_not_legal_are_rows_with_the_reason() {
    let place = place();
    let at = place.path();
    run(at, &["sweep", "small.toml", "--out", "all"]);
    let rows = rows(&at.join("all"));
    // DualPipe takes even numbers of micro-batches, from twice the number of ranks on.
    let odd = ",false,\"a bidirectional pipeline takes an even number of micro-batches, not 1\"";
    assert!(rows[36].ends_with(odd) || rows[36].ends_with(&odd.replace('"', "")), "{}", rows[36]);
    assert!(rows[39].contains(",false,\"`dualpipe` needs an even number of ranks and"), "{}", rows[39]);
    assert!(rows[43].ends_with(",true,"), "{}", rows[43]);
}

#[test]
fn a_scenario_that_is_wrong_everywhere_is_an_error_and_no_directory() {
    let place = place();
    let at = place.path();
    for (more, said) in [
        (["--set", "time.forward=10"], "expected a time with a unit"),
        (["--vary", "pipeline.rank=1..4"], "did you mean `\"pipeline.ranks\"`"),
        (["--vary", "pipeline.ranks=4..1"], "4..1"),
        (["--shard", "4/3"], "expected K/N"),
    ] {
        let (code, errors) = run(at, &[&["sweep", "small.toml", "--out", "none"], more.as_slice()].concat());
        assert_eq!((code, errors.contains(said)), (Some(2), true), "{more:?}: {errors}");
        assert!(!at.join("none").exists());
    }
}

#[test]
fn a_sweep_that_is_there_is_neither_overwritten_nor_mixed() {
    let place = place();
    let at = place.path();
    let sweep = |more: &[&str]| run(at, &[&["sweep", "small.toml", "--out", "all"], more].concat());
    assert_eq!(sweep(&[]).0, Some(0));
    let before = contents(&at.join("all"));
    let refused = |more: &[&str], said: &str| {
        let (code, errors) = sweep(more);
        assert_eq!((code, errors.contains(said)), (Some(2), true), "{more:?}: {errors}");
        assert!(contents(&at.join("all")) == before, "{more:?} changed something");
    };
    refused(&[], "holds a sweep already: `--resume` goes on with it");
    refused(&["--resume", "--vary", "pipeline.micro_batches=1..13"], "the swept keys or their values");
    refused(&["--resume", "--set", "pipeline.ranks=2"], "the values of `--set`");
    refused(&["--resume", "--shard", "1/2"], "another shard");
    assert_eq!(sweep(&["--resume"]).0, Some(0));
    assert!(contents(&at.join("all")) == before);
    fs::write(at.join("small.toml"), SMALL.replace("10 ms", "11 ms")).expect("there is room");
    refused(&["--resume"], "the scenario's text has changed");
}

#[test]
fn shards_that_do_not_go_together_are_refused() {
    let place = place();
    let at = place.path();
    let part = |shard: &str, out: &str, more: &[&str]| {
        let arguments = [&["sweep", "small.toml", "--quiet", "--shard", shard, "--out", out], more].concat();
        assert_eq!(run(at, &arguments), (Some(0), String::new()));
    };
    part("1/2", "one", &[]);
    part("2/2", "two", &[]);
    part("2/2", "other", &["--set", "pipeline.ranks=2"]);
    part("2/3", "third", &[]);
    let refused = |parts: &[&str], said: &str| {
        let (code, errors) = run(at, &[&["sweep", "--out", "merged", "--merge"], parts].concat());
        assert_eq!((code, errors.contains(said)), (Some(2), true), "{parts:?}: {errors}");
        assert!(!at.join("merged").exists(), "{parts:?}");
    };
    refused(&["one"], "shard 2/2 is missing");
    refused(&["one", "one"], "does not go with the others");
    refused(&["one", "third"], "does not go with the others");
    refused(&["one", "other"], "the values of `--set`");
    refused(&["one", "nowhere"], "holds no sweep");
    let results = at.join("two/results.csv");
    let text = fs::read_to_string(&results).expect("it is there");
    fs::write(&results, &text[..text.len() / 2]).expect("there is room");
    let (code, errors) = run(at, &["sweep", "--out", "merged", "--merge", "one", "two"]);
    assert_eq!((code, errors.contains("is that shard done?")), (Some(2), true), "{errors}");
}

#[test]
fn a_file_that_the_scenario_names_is_part_of_it() {
    let place = place();
    let at = place.path();
    let write_orders = |schedule: &str| {
        let shape = ["--schedule", schedule, "--ranks", "4", "--micro-batches", "8"];
        let orders = printed(&[&["schedule", "export"], &shape[..]].concat());
        fs::write(at.join("mine.csv"), orders).expect("there is room");
    };
    write_orders("1f1b");
    let text = SMALL.replace("schedule = \"1f1b\"", "schedule_file = \"mine.csv\"");
    let text = text.split("[sweep]").next().expect("there is one").to_owned();
    fs::write(at.join("named.toml"), text).expect("there is room");
    let sweep = ["sweep", "named.toml", "--vary", "time.forward=10 ms,20 ms", "--out", "all", "--resume"];
    assert_eq!(run(at, &sweep).0, Some(0));
    let manifest = fs::read_to_string(at.join("all/sweep.json")).expect("it is there");
    assert!(manifest.contains("mine.csv"), "{manifest}");
    assert_eq!(run(at, &sweep).0, Some(0));
    write_orders("fill-drain");
    let (code, errors) = run(at, &sweep);
    assert_eq!((code, errors.contains("`mine.csv` has changed")), (Some(2), true), "{errors}");
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_what_was_finished() {
    let place = place();
    let at = place.path();
    let vary = ["sweep", "small.toml", "--vary", "pipeline.micro_batches=1..200", "--resume", "--out"];
    assert_eq!(run(at, &[&vary[..], &["whole"]].concat()).0, Some(0));
    let limited = |blocks: u32| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, PIPESTEP]).args(vary).args(["full", "--jobs", "3"]).current_dir(at);
        let output = command.output().expect("there is a shell");
        (output.status.code(), one_line(&output.stderr))
    };
    for blocks in [16, 32] {
        let (code, errors) = limited(blocks);
        assert_eq!(code, Some(2), "{errors}");
        assert!(errors.contains("they are kept, and the same command with `--resume` goes on"), "{errors}");
        assert!(errors.contains("cannot write `full/"), "{errors}");
    }
    let (code, errors) = run(at, &[&vary[..], &["full"]].concat());
    assert_eq!(code, Some(0));
    let there: u64 = errors.split(' ').next().and_then(|word| word.parse().ok()).expect("it says how many");
    assert!(there > 50, "{errors}");
    assert_same(&at.join("whole"), &at.join("full"));
}
