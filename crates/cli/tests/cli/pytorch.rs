//! Exported schedules run in real PyTorch: the order it keeps, the gradients it gets, and, if asked, its time.
//!
//! `tests/pytorch/step.py` runs a file on loopback processes and reports; what must hold is said here. The tests
//! are skipped, with a message, where Python has no PyTorch; `docs/pytorch.md` says how to give them one. Nothing
//! here depends on how fast the machine is unless `PIPESTEP_PYTORCH_TIMING` asks for it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use pipestep_schedule::{Entry, Placement};
use serde_json::Value;

use crate::{pipestep, printed, root};

/// Names the Python interpreter; it must then have PyTorch.
const PYTHON: &str = "PIPESTEP_PYTHON";

/// Asks for the comparison of times, if set.
const TIMING: &str = "PIPESTEP_PYTORCH_TIMING";

/// The oldest PyTorch whose reader these files are held to.
const OLDEST: (u32, u32) = (2, 15);

/// How many milliseconds each F, I and W sleeps where times are compared.
const SLEEP_MS: u64 = 50;

/// Steps timed for each file; their median counts.
const REPEAT: usize = 5;

#[test]
fn exported_schedules_run_in_pytorch() {
    let Some(python) = python_with_torch() else { return };
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let formats = ["pytorch-csv", "pytorch-comms-csv"];
    let cases: Vec<Case> = formats.iter().flat_map(|format| export_all(format, place.path())).collect();
    for (case, report) in cases.iter().zip(&run_in_pytorch(&python, &cases, &[])) {
        case.check(report);
    }
    say(&format!("{} exported files ran in PyTorch, in order, with the right gradients", cases.len()));
}

#[test]
fn pytorch_takes_as_long_as_simulated() {
    if std::env::var_os(TIMING).is_none() {
        return say(&format!(
            "skipped: times are compared with PyTorch's on an idle machine, with {TIMING}=1"
        ));
    }
    let Some(python) = python_with_torch() else { return };
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let cases = export_all("pytorch-comms-csv", place.path());
    let (sleep, repeat) = (SLEEP_MS.to_string(), REPEAT.to_string());
    let reports = run_in_pytorch(&python, &cases, &["--sleep-ms", &sleep, "--repeat", &repeat]);
    let mut table = vec![
        "| schedule | ranks | chunks | micro-batches | simulated | PyTorch | ratio |".to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    let mut far = Vec::new();
    for (case, report) in cases.iter().zip(&reports) {
        case.check(report);
        let (simulated, measured) = (case.simulated_ms(), median_ms(report));
        let row = case.row(simulated, measured);
        if (measured / simulated - 1.0).abs() > 0.1 {
            far.push(row.clone());
        }
        table.push(row);
    }
    say(&table.join("\n"));
    assert!(far.is_empty(), "more than 10 % from the simulated makespan: {far:#?}");
}

/// An exported file and what is in it.
struct Case {
    name: &'static str,
    ranks: usize,
    chunks: u64,
    micro_batches: usize,
    file: PathBuf,
    /// Each rank's operations, the parts of a pair one after the other, as PyTorch runs them.
    order: Vec<Vec<String>>,
}

impl Case {
    /// Reads an exported file and keeps it in `place`.
    fn new(name: &'static str, ranks: usize, micro_batches: usize, text: &str, file: PathBuf) -> Self {
        fs::write(&file, text).expect("there is room");
        let is_operation = |part: &&str| part.trim_matches(|c: char| c.is_ascii_digit()).len() == 1;
        let operations = |row: &str| {
            row.split(['(', ';', ')', ',']).filter(is_operation).map(ToOwned::to_owned).collect::<Vec<_>>()
        };
        let order: Vec<Vec<String>> = text.lines().map(operations).collect();
        let first = order[0].iter().filter(|one| one.contains('F')).count();
        let chunks = (first / micro_batches) as u64;
        Self { name, ranks, chunks, micro_batches, file, order }
    }

    /// PyTorch ran what the file says, and its gradients are those of a step without a pipeline.
    fn check(&self, report: &Value) {
        let file = self.file.display();
        for (rank, list) in self.order.iter().enumerate() {
            assert_eq!(report["order"][rank], Value::from(list.clone()), "rank {rank} of {file}");
        }
        let error = report["gradient_error"].as_f64().expect("a number");
        assert!(error < 1e-12, "{file}: gradients differ by {error}");
    }

    /// The makespan of the file as `docs/pytorch.md` has it simulated, in milliseconds.
    fn simulated_ms(&self) -> f64 {
        let file = self.file.file_name().and_then(|name| name.to_str()).expect("it is made here");
        let scenario = self.file.with_extension("toml");
        // Lengths are for all of a rank's chunks.
        let [forward, backward] = [1, 2].map(|passes| passes * SLEEP_MS * self.chunks);
        let text = format!(
            "pipeline.schedule_file = \"{file}\"\n\
             [time]\n\
             forward = \"{forward} ms\"\n\
             backward = \"{backward} ms\"\n\
             first_stage_input_gradient = \"none\"\n"
        );
        fs::write(&scenario, text).expect("there is room");
        let path = scenario.to_str().expect("it is made here");
        let result: Value =
            serde_json::from_str(&printed(&["run", path, "--json", "-"])).expect("it is JSON");
        result["step"]["makespan_ns"].as_f64().expect("a number") / 1e6
    }

    /// A line of the table in `docs/pytorch.md`.
    fn row(&self, simulated_ms: f64, measured_ms: f64) -> String {
        let Self { name, ranks, chunks, micro_batches, .. } = self;
        let ratio = measured_ms / simulated_ms;
        format!(
            "| `{name}` | {ranks} | {chunks} | {micro_batches} | {simulated_ms:.0} ms | {measured_ms:.0} ms | {ratio:.3} |"
        )
    }
}

/// Exports every schedule that PyTorch can run, for two and for four ranks: all but those with two copies of the
/// model.
fn export_all(format: &str, place: &Path) -> Vec<Case> {
    let entries = pipestep_schedule::all().iter().map(|schedule| schedule.entry());
    let one_copy: Vec<&Entry> = entries.filter(|entry| entry.placement != Placement::Bidirectional).collect();
    let with_ranks = |ranks| one_copy.iter().map(move |entry| export(entry.name, ranks, format, place));
    [2, 4].into_iter().flat_map(with_ranks).collect()
}

/// Exports a schedule with twice as many micro-batches as ranks, or as many if it takes no more.
fn export(name: &'static str, ranks: usize, format: &str, place: &Path) -> Case {
    let mut refusal = String::new();
    for micro_batches in [2 * ranks, ranks] {
        let [p, m] = [ranks, micro_batches].map(|number| number.to_string());
        let typed = ["--schedule", name, "--ranks", &p, "--micro-batches", &m, "--format", format];
        let output = pipestep(&[&["schedule", "export"], &typed[..]].concat()).output().expect("it starts");
        if output.status.success() {
            let text = String::from_utf8(output.stdout).expect("it prints UTF-8");
            let file = place.join(format!("{name}-{ranks}-{format}.csv"));
            return Case::new(name, ranks, micro_batches, &text, file);
        }
        refusal = String::from_utf8_lossy(&output.stderr).into_owned();
    }
    panic!("{name} cannot be exported: {refusal}")
}

/// Python with a PyTorch that is new enough; none, and why, if the tests are to be skipped.
fn python_with_torch() -> Option<String> {
    let named = std::env::var(PYTHON);
    let python = named.clone().unwrap_or_else(|_| "python3".to_owned());
    let question = "import torch.distributed.pipelining as _, torch; print(torch.__version__)";
    let missing = match Command::new(&python).args(["-c", question]).output() {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            let mut numbers = version.split('.').map_while(|number| number.parse().ok());
            if (numbers.next(), numbers.next()) >= (Some(OLDEST.0), Some(OLDEST.1)) {
                return Some(python);
            }
            format!("`{python}` has PyTorch {version}, older than {}.{}", OLDEST.0, OLDEST.1)
        }
        Ok(_) => format!("`{python}` cannot import PyTorch"),
        Err(error) => format!("`{python}` does not start: {error}"),
    };
    assert!(named.is_err(), "{PYTHON} is set, but {missing}");
    say(&format!("skipped: {missing}; see docs/pytorch.md, and name an interpreter that can with {PYTHON}"));
    None
}

/// One report for each case from `step.py`.
fn run_in_pytorch(python: &str, cases: &[Case], options: &[&str]) -> Vec<Value> {
    let script = root().join("tests/pytorch/step.py");
    let files = cases.iter().map(|case| &case.file);
    let mut command = Command::new(python);
    let output = command.arg(script).args(options).args(files).output().expect("it started before");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "PyTorch could not run the files: {errors}");
    let lines = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let mut by_file: BTreeMap<PathBuf, Value> = BTreeMap::new();
    for line in lines.lines() {
        let report: Value = serde_json::from_str(line).expect("one JSON value a line");
        by_file.insert(report["file"].as_str().expect("it names its file").into(), report);
    }
    cases.iter().map(|case| by_file.remove(&case.file).expect("every file is run")).collect()
}

/// The median of the measured steps, in milliseconds.
fn median_ms(report: &Value) -> f64 {
    let seconds = report["seconds"].as_array().expect("a list");
    let mut seconds: Vec<f64> = seconds.iter().map(|value| value.as_f64().expect("a number")).collect();
    assert_eq!(seconds.len(), REPEAT);
    seconds.sort_by(f64::total_cmp);
    seconds[REPEAT / 2] * 1e3
}

/// Tells whoever runs the tests, even if their output is captured: a test that is skipped must not look passed.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is open");
}
