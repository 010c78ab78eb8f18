//! `pipestep compare`: one scenario under several schedules, as one table and one picture.

use std::io::Write;

use anyhow::Result;
use pipestep_report::{
    Candidate, GanttPanel, MemoryPanel, Picture, StepResult, StepView, compare_text, gantt, memory_curves,
    tradeoff,
};
use pipestep_scenario::{Diagnostic, Diagnostics, Override};
use serde_json::json;

use crate::output::Target;
use crate::simulated::{Keep, Simulated, not_drawn};
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
    let wanted = wanted(typed);
    output::check(wanted.iter().map(|(_, target)| target))?;
    let Compared { simulated, left_out } = simulate_all(typed)?;
    let views: Vec<StepView> = simulated.iter().map(Simulated::view).collect();

    output::write_all(&wanted, |artefact, to| write(&simulated, artefact, to))?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        output::print(&(compare_text(&views) + &left_out))?;
    }
    let none_fits = views.iter().all(|view| view.fits() == Some(false));
    Ok(if none_fits { Ending::DoesNotFit } else { Ending::Done })
}

struct Compared {
    simulated: Vec<Simulated>,
    /// A line for each schedule that does not take the scenario.
    left_out: String,
}

/// The schedules that were named, each of which must take the scenario; or all that do.
fn simulate_all(typed: &args::Compare) -> Result<Compared> {
    let under = |name: &str| -> Result<Simulated> {
        let scenario = load::scenario(&typed.scenario, &[Override::schedule(name)])?;
        scenario.step.as_ref().map_or(Ok(()), not_drawn)?;
        Simulated::new(&scenario, Keep::Everything)
    };
    let mut left_out = String::new();
    if typed.schedules != ["all"] {
        let simulated = typed.schedules.iter().map(|name| under(name)).collect::<Result<_>>()?;
        return Ok(Compared { simulated, left_out });
    }
    let (mut simulated, mut first_error) = (Vec::new(), None);
    for schedule in pipestep_schedule::all() {
        let name = schedule.entry().name;
        match under(name) {
            Ok(one) => simulated.push(one),
            Err(error) => {
                let refusal = error.downcast::<Diagnostics>()?;
                let reason = refusal.iter().next().map_or("", Diagnostic::message);
                left_out.extend(["without ", name, ": ", reason, "\n"]);
                first_error = first_error.or(Some(refusal));
            }
        }
    }
    match first_error {
        // The scenario itself is wrong, most likely.
        Some(error) if simulated.is_empty() => Err(error.into()),
        _ => Ok(Compared { simulated, left_out }),
    }
}

/// Everything that was asked for, with its target.
fn wanted(typed: &args::Compare) -> Vec<(Artefact, Target)> {
    let in_directory = typed.out.iter().flat_map(|directory| {
        let target = |name| Target::InDirectory(directory.clone(), name);
        EVERYTHING.map(|(artefact, name)| (artefact, target(name)))
    });
    let json = typed.json.iter().map(|path| (Artefact::Json, Target::from_argument(path)));
    in_directory.chain(json).collect()
}

fn write(simulated: &[Simulated], artefact: Artefact, to: &mut dyn Write) -> Result<()> {
    let gantt = || -> Result<Picture> {
        let panels = simulated.iter().map(|one| Ok((one.view(), one.record()?)));
        Ok(gantt(&panels.collect::<Result<Vec<GanttPanel>>>()?))
    };
    let memory = || -> Result<Picture> {
        let panels = simulated.iter().map(|one| Ok((one.view(), one.curves()?)));
        Ok(memory_curves(&panels.collect::<Result<Vec<MemoryPanel>>>()?))
    };
    let views: Vec<StepView> = simulated.iter().map(Simulated::view).collect();
    match artefact {
        Artefact::Json => {
            to.write_all(json(&views).as_bytes())?;
        }
        Artefact::GanttPng => to.write_all(&gantt()?.to_png()?)?,
        Artefact::GanttSvg => to.write_all(gantt()?.to_svg()?.as_bytes())?,
        Artefact::MemoryPng => to.write_all(&memory()?.to_png()?)?,
        Artefact::MemorySvg => to.write_all(memory()?.to_svg()?.as_bytes())?,
        Artefact::TradeoffPng => to.write_all(&scatter(&views).to_png()?)?,
        Artefact::TradeoffSvg => to.write_all(scatter(&views).to_svg()?.as_bytes())?,
    }
    Ok(())
}

/// Time against memory, a dot for each schedule.
fn scatter(views: &[StepView]) -> Picture {
    let candidates: Vec<Candidate> = views.iter().map(Candidate::from).collect();
    let (name, budget) =
        views.first().map_or(("", None), |view| (view.labels.name.as_str(), view.common_budget()));
    tradeoff(name, &candidates, budget)
}

/// All results as one JSON document.
fn json(views: &[StepView]) -> String {
    let name = views.first().map_or("", |view| view.labels.name.as_str());
    let steps: Vec<StepResult> = views.iter().map(StepResult::new).collect();
    format!("{:#}\n", json!({ "schema": "pipestep-compare-1", "name": name, "steps": steps }))
}
