//! `pipestep compare`: one scenario under several schedules, as one table and one picture.

use std::io::Write;

use anyhow::Result;
use pipestep_report::{
    COLUMNS, Candidate, GanttPanel, MemoryPanel, Picture, StepResult, StepRuns, StepView, StepWithRuns,
    compare_runs_results, compare_runs_text, compare_runs_tradeoff, compare_text, folded, gantt,
    memory_curves, tradeoff,
};
use pipestep_scenario::{Diagnostic, Diagnostics, Override, Scenario};
use serde_json::{Value, json};

use crate::output::Target;
use crate::simulated::{Keep, Simulated};
use crate::simulated_runs::step_runs;
use crate::{Ending, args, load, output};

/// What can be written about a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Artefact {
    Json,
    GanttPng,
    GanttSvg,
    MemoryPng,
    MemorySvg,
    TradeoffPng,
    TradeoffSvg,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Artefact, &str); 7] = [
    (Artefact::GanttPng, "gantt.png"),
    (Artefact::GanttSvg, "gantt.svg"),
    (Artefact::MemoryPng, "memory.png"),
    (Artefact::MemorySvg, "memory.svg"),
    (Artefact::TradeoffPng, "tradeoff.png"),
    (Artefact::TradeoffSvg, "tradeoff.svg"),
    (Artefact::Json, "compare.json"),
];

/// Loads the scenario once for each schedule, simulates them in turn, reports.
pub(crate) fn run(typed: &args::Compare) -> Result<Ending> {
    let wanted = output::targets(typed.out.as_deref(), EVERYTHING, [(Artefact::Json, typed.json.as_deref())]);
    output::check(wanted.iter().map(|(_, target)| target))?;
    let Compared { steps, left_out } = simulate_all(typed)?;
    let views: Vec<StepView> = steps.iter().map(|step| step.simulated.view()).collect();

    output::write_all(&wanted, |artefact, to| write(&steps, artefact, to))?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        let text = with_runs(&steps).map_or_else(|| compare_text(&views), |steps| compare_runs_text(&steps));
        output::print(&(text + &left_out))?;
    }
    let none_fits = views.iter().all(|view| view.fits() == Some(false));
    Ok(if none_fits { Ending::DoesNotFit } else { Ending::Done })
}

/// The step under one schedule.
struct UnderSchedule {
    simulated: Simulated,
    /// The step again and again, where its lengths are drawn.
    runs: Option<StepRuns>,
}

struct Compared {
    steps: Vec<UnderSchedule>,
    /// A line for each schedule that does not take the scenario, and for an order of one's own that does not.
    left_out: String,
}

/// The steps with their runs, where lengths are drawn.
fn with_runs(steps: &[UnderSchedule]) -> Option<Vec<StepWithRuns<'_>>> {
    steps.iter().map(|step| Some((step.simulated.view(), step.runs.as_ref()?))).collect()
}

/// The scenario's own order, if it has one, and the schedules that were named, each of which must take the scenario; or
/// all that do.
fn simulate_all(typed: &args::Compare) -> Result<Compared> {
    let step = |scenario: &Scenario| -> Result<UnderSchedule> {
        let simulated = Simulated::new(scenario, Keep::Everything)?;
        let runs = step_runs(scenario, &simulated, typed.runs)?;
        Ok(UnderSchedule { simulated, runs })
    };
    let under = |name: &str| step(&load::scenario(&typed.scenario, &[Override::schedule(name)])?);
    let (mut steps, mut first_error, mut left_out) = (Vec::new(), None, String::new());
    // An order of one's own comes first; a scenario may as well have none, since schedules are named.
    if let Some(file) = load::order_file(&typed.scenario)? {
        match load::scenario(&typed.scenario, &[]) {
            Ok(own) => steps.push(step(&own)?),
            Err(error) => left_out += &without(&file, &error.downcast()?),
        }
    }
    if typed.schedules != ["all"] {
        for name in &typed.schedules {
            steps.push(under(name)?);
        }
        return Ok(Compared { steps, left_out });
    }
    for schedule in pipestep_schedule::all() {
        let name = schedule.entry().name;
        match under(name) {
            Ok(one) => steps.push(one),
            Err(error) => {
                let refusal = error.downcast::<Diagnostics>()?;
                left_out += &without(name, &refusal);
                first_error = first_error.or(Some(refusal));
            }
        }
    }
    match first_error {
        // The scenario itself is wrong, most likely.
        Some(error) if steps.is_empty() => Err(error.into()),
        _ => Ok(Compared { steps, left_out }),
    }
}

/// Says why an order is not compared.
fn without(order: &str, refusal: &Diagnostics) -> String {
    let reason = refusal.iter().next().map_or("", Diagnostic::message);
    folded(&format!("without {order}: {reason}"), COLUMNS).join("\n") + "\n"
}

fn write(steps: &[UnderSchedule], artefact: Artefact, to: &mut dyn Write) -> Result<()> {
    let gantt = || -> Result<Picture> {
        let panels = steps.iter().map(|step| Ok((step.simulated.view(), step.simulated.record()?)));
        Ok(gantt(&panels.collect::<Result<Vec<GanttPanel>>>()?))
    };
    let memory = || -> Result<Picture> {
        let panels = steps.iter().map(|step| Ok((step.simulated.view(), step.simulated.curves()?)));
        Ok(memory_curves(&panels.collect::<Result<Vec<MemoryPanel>>>()?))
    };
    match artefact {
        Artefact::Json => to.write_all(json(steps).as_bytes())?,
        Artefact::GanttPng => to.write_all(&gantt()?.to_png()?)?,
        Artefact::GanttSvg => to.write_all(gantt()?.to_svg()?.as_bytes())?,
        Artefact::MemoryPng => to.write_all(&memory()?.to_png()?)?,
        Artefact::MemorySvg => to.write_all(memory()?.to_svg()?.as_bytes())?,
        Artefact::TradeoffPng => to.write_all(&scatter(steps).to_png()?)?,
        Artefact::TradeoffSvg => to.write_all(scatter(steps).to_svg()?.as_bytes())?,
    }
    Ok(())
}

/// Time against memory, a dot for each schedule.
fn scatter(steps: &[UnderSchedule]) -> Picture {
    if let Some(steps) = with_runs(steps) {
        return compare_runs_tradeoff(&steps);
    }
    let views: Vec<StepView> = steps.iter().map(|step| step.simulated.view()).collect();
    let candidates: Vec<Candidate> = views.iter().map(Candidate::from).collect();
    let (name, budget) =
        views.first().map_or(("", None), |view| (view.labels.name.as_str(), view.common_budget()));
    tradeoff(name, &candidates, budget)
}

/// All results as one JSON document.
fn json(steps: &[UnderSchedule]) -> String {
    let name = steps.first().map_or(String::new(), |step| step.simulated.view().labels.name.clone());
    let mut results: Vec<Value> =
        steps.iter().map(|step| json!(StepResult::new(&step.simulated.view()))).collect();
    let runs = with_runs(steps).and_then(|steps| compare_runs_results(&steps));
    for (result, runs) in results.iter_mut().zip(runs.into_iter().flatten()) {
        result["jitter"] = json!(runs);
    }
    format!("{:#}\n", json!({ "schema": "pipestep-compare-1", "name": name, "steps": results }))
}
