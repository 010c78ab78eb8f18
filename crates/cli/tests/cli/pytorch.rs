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

use pipestep_engine::{Duration, Time};
use pipestep_schedule::{Chunks, Entry, Op, Options, Orders, Placement, Plan, Schedule, Shape, Weights};
use pipestep_step::{Costs, Inputs, RankCost, StageCost};
use serde_json::Value;

use crate::{printed, root};

/// Names the Python interpreter; it must then have PyTorch.
const PYTHON: &str = "PIPESTEP_PYTHON";

/// Asks for the comparison of times, if set.
const TIMING: &str = "PIPESTEP_PYTORCH_TIMING";

/// The oldest PyTorch whose reader these files are held to.
const OLDEST: (u32, u32) = (2, 15);

/// How long each F, I and W sleeps where times are compared.
const SLEEP: Duration = Duration::from_nanos(50_000_000);

/// Steps timed for each file; their median counts.
const REPEAT: usize = 5;

#[test]
fn exported_schedules_run_in_pytorch() {
    let Some(python) = python_with_torch() else { return };
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let cases = export_all(place.path());
    let reports = run_in_pytorch(&python, &cases, &[]);
    for (case, report) in cases.iter().zip(&reports) {
        assert_right(case, report);
    }
    say(&format!("{} exported schedules ran in PyTorch, in order, with the right gradients", cases.len()));
}

#[test]
fn pytorch_takes_as_long_as_simulated() {
    if std::env::var_os(TIMING).is_none() {
        return say(&format!("times are not compared with PyTorch's: set {TIMING}=1 on an idle machine"));
    }
    let Some(python) = python_with_torch() else { return };
    let place = tempfile::tempdir().expect("there is room for temporary files");
    let cases = export_all(place.path());
    let (sleep, repeat) = ((SLEEP.as_nanos() / 1_000_000).to_string(), REPEAT.to_string());
    let reports = run_in_pytorch(&python, &cases, &["--sleep-ms", &sleep, "--repeat", &repeat]);
    let mut table = vec![
        "| schedule | ranks | chunks | micro-batches | simulated | PyTorch | ratio |".to_owned(),
        "| --- | --- | --- | --- | --- | --- | --- |".to_owned(),
    ];
    let mut far = Vec::new();
    for (case, report) in cases.iter().zip(&reports) {
        assert_right(case, report);
        let (simulated, measured) = (case.simulated().as_secs_f64(), median(report));
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
    shape: Shape,
    file: PathBuf,
    /// Each rank's operations, the parts of a pair one after the other, as PyTorch runs them.
    order: Vec<Vec<Op>>,
}

impl Case {
    /// A line of the table in `docs/pytorch.md`; times in seconds.
    fn row(&self, simulated: f64, measured: f64) -> String {
        let Self { name, shape, .. } = self;
        let (ranks, micro_batches) = (shape.ranks(), shape.micro_batches());
        let (chunks, ratio) = (shape.stages() / ranks, measured / simulated);
        let [simulated, measured] = [simulated, measured].map(|seconds| format!("{:.0} ms", seconds * 1e3));
        format!("| `{name}` | {ranks} | {chunks} | {micro_batches} | {simulated} | {measured} | {ratio:.3} |")
    }

    /// The makespan of the file under PyTorch's rules, with every pass as long as it sleeps.
    fn simulated(&self) -> Duration {
        let twice = Duration::from_nanos(2 * SLEEP.as_nanos());
        let usual = StageCost {
            forward: SLEEP,
            backward: twice,
            input_gradient: SLEEP,
            weight_gradient: SLEEP,
            layers: 1,
            ..StageCost::default()
        };
        // PyTorch's first stage does nothing in I and the whole backward in W.
        let first = StageCost { input_gradient: Duration::ZERO, weight_gradient: twice, ..usual };
        let stages = (0..self.shape.stages()).map(|stage| if stage == 0 { first } else { usual }).collect();
        let ranks = vec![RankCost::default(); self.shape.ranks()];
        let costs = Costs { stages, ranks, ..Costs::default() };
        let inputs = Inputs::new(self.shape.clone(), costs).expect("there is a cost for each");
        let plan = Plan::Fixed(Orders::from_lists(self.order.iter().cloned()));
        let summary = pipestep_step::summary(&inputs, plan).expect("PyTorch ran it");
        summary.makespan.since(Time::ZERO)
    }
}

/// Exports every schedule of the registry that PyTorch can run, for two and for four ranks.
fn export_all(place: &Path) -> Vec<Case> {
    let two_and_four = [2, 4].into_iter();
    let cases: Vec<Case> = two_and_four
        .flat_map(|ranks| pipestep_schedule::all().iter().filter_map(move |one| export(*one, ranks, place)))
        .collect();
    assert!(cases.len() > 30, "only {} schedules could be exported", cases.len());
    cases
}

/// Exports a schedule, unless PyTorch has no place for it: two copies of the model, or orders that only a running
/// step decides.
fn export(schedule: &dyn Schedule, ranks: u64, place: &Path) -> Option<Case> {
    let Entry { name, placement, .. } = *schedule.entry();
    if placement == Placement::Bidirectional {
        return None;
    }
    let shape = largest_shape(schedule, ranks)?;
    let chunks = shape.stages() as u64 / ranks;
    let [p, v, m] = [ranks, chunks, shape.micro_batches() as u64].map(|number| number.to_string());
    let numbers = ["--ranks", &p, "--chunks", &v, "--micro-batches", &m];
    let text = printed(&[&["schedule", "export", "--schedule", name], &numbers[..]].concat());
    let file = place.join(format!("{name}-{ranks}.csv"));
    fs::write(&file, &text).expect("there is room");
    let order = text.lines().map(|row| row.split(['(', ';', ')', ',']).filter_map(|part| part.parse().ok()));
    Some(Case { name, shape, file, order: order.map(Iterator::collect).collect() })
}

/// The shape of a schedule with twice as many micro-batches as ranks, or as many if it takes no more; none if it
/// decides online.
fn largest_shape(schedule: &dyn Schedule, ranks: u64) -> Option<Shape> {
    let Entry { name, placement, chunks, .. } = *schedule.entry();
    let chunks = match chunks {
        Chunks::Exactly(chunks) => chunks.into(),
        Chunks::Any | Chunks::Even => 2,
    };
    for micro_batches in [2 * ranks, ranks] {
        let shape = Shape::new(ranks, chunks, micro_batches, placement).expect("a small shape");
        match schedule.plan(&shape, &Weights::unit(&shape), &Options::default()) {
            Ok(Plan::Fixed(_)) => return Some(shape),
            Ok(Plan::Online(_)) => return None,
            Err(_) => {}
        }
    }
    panic!("{name} takes neither {} nor {ranks} micro-batches", 2 * ranks)
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
        Ok(_) => format!("`{python}` cannot `import torch`"),
        Err(error) => format!("`{python}` does not start: {error}"),
    };
    assert!(named.is_err(), "{PYTHON} is set, but {missing}");
    say(&format!(
        "skipped: {missing}; docs/pytorch.md says how to install it, {PYTHON} names an interpreter"
    ));
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
    let reports =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).expect("one JSON value a line"));
    let mut by_file: BTreeMap<PathBuf, Value> = BTreeMap::new();
    for report in reports {
        by_file.insert(report["file"].as_str().expect("it names its file").into(), report);
    }
    cases.iter().map(|case| by_file.remove(&case.file).expect("every file is run")).collect()
}

/// PyTorch ran what the file says, and its gradients are those of a step without a pipeline.
fn assert_right(case: &Case, report: &Value) {
    let Case { name, shape, order, .. } = case;
    for (rank, list) in order.iter().enumerate() {
        let expected: Vec<String> = list.iter().map(ToString::to_string).collect();
        assert_eq!(report["order"][rank], Value::from(expected), "{name} on {} ranks", shape.ranks());
    }
    let error = report["gradient_error"].as_f64().expect("a number");
    assert!(error < 1e-12, "{name} on {} ranks: gradients differ by {error}", shape.ranks());
}

/// The median of the measured steps, in seconds.
fn median(report: &Value) -> f64 {
    let seconds = report["seconds"].as_array().expect("a list");
    let mut seconds: Vec<f64> = seconds.iter().map(|value| value.as_f64().expect("a number")).collect();
    assert_eq!(seconds.len(), REPEAT);
    seconds.sort_by(f64::total_cmp);
    seconds[REPEAT / 2]
}

/// Tells whoever runs the tests, even if their output is captured: a test that is skipped must not look passed.
fn say(text: &str) {
    writeln!(std::io::stderr(), "{text}").expect("standard error is open");
}
