//! `pipestep run`: one scenario, its table, and whatever files were asked for.

use std::cell::OnceCell;
use std::io::Write;

use anyhow::Result;
use pipestep_report::{
    Picture, ResultFile, StepResult, events, gantt, memory_curves, run_text, write_events, write_memory,
    write_trace,
};

use crate::output::Target;
use crate::simulated::{Keep, Simulated};
use crate::{Ending, args, load, output};

/// What can be written about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Artefact {
    Json,
    Events,
    Memory,
    Trace,
    GanttPng,
    GanttSvg,
    MemoryPng,
    MemorySvg,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Artefact, &str); 8] = [
    (Artefact::GanttPng, "gantt.png"),
    (Artefact::GanttSvg, "gantt.svg"),
    (Artefact::MemoryPng, "memory.png"),
    (Artefact::MemorySvg, "memory.svg"),
    (Artefact::Json, "result.json"),
    (Artefact::Events, "events.csv"),
    (Artefact::Memory, "memory.csv"),
    (Artefact::Trace, "trace.json"),
];

/// Loads, simulates, reports.
pub(crate) fn run(typed: &args::Run) -> Result<Ending> {
    let scenario = load::scenario(&typed.scenario, &[])?;
    let wanted = wanted(typed);
    output::check(wanted.iter().map(|(_, target)| target))?;

    let only_json = wanted.iter().all(|(artefact, _)| *artefact == Artefact::Json);
    let keep = if only_json { Keep::Summary } else { Keep::Everything };
    let simulated = Simulated::new(&scenario, keep)?;
    let report = Report::new(&simulated);
    output::write_all(&wanted, |artefact, to| report.write(artefact, to))?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        output::print(&run_text(&simulated.view()))?;
    }
    Ok(match simulated.view().fits() {
        Some(false) => Ending::DoesNotFit,
        Some(true) | None => Ending::Done,
    })
}

/// Everything that was asked for, with its target.
fn wanted(typed: &args::Run) -> Vec<(Artefact, Target)> {
    let in_directory = typed.out.iter().flat_map(|directory| {
        let target = |name| Target::InDirectory(directory.clone(), name);
        EVERYTHING.map(|(artefact, name)| (artefact, target(name)))
    });
    let single = [
        (Artefact::Json, &typed.json),
        (Artefact::Events, &typed.events),
        (Artefact::Memory, &typed.memory),
        (Artefact::Trace, &typed.trace),
    ];
    let single = single.into_iter().filter_map(|(artefact, path)| {
        let path = path.as_deref()?;
        Some((artefact, Target::from_argument(path)))
    });
    in_directory.chain(single).collect()
}

/// A simulated step with the pictures drawn so far, each of which is encoded twice.
struct Report<'a> {
    simulated: &'a Simulated,
    gantt: OnceCell<Picture>,
    memory: OnceCell<Picture>,
}

impl<'a> Report<'a> {
    fn new(simulated: &'a Simulated) -> Self {
        Self { simulated, gantt: OnceCell::new(), memory: OnceCell::new() }
    }

    fn write(&self, artefact: Artefact, to: &mut dyn Write) -> Result<()> {
        let (simulated, view) = (self.simulated, self.simulated.view());
        match artefact {
            Artefact::Json => {
                let mut file = ResultFile::new(&view.labels.name);
                file.step = Some(StepResult::new(&view));
                to.write_all(file.to_json().as_bytes())?;
            }
            Artefact::Events => write_events(&events(view.shape, simulated.record()?), to)?,
            Artefact::Memory => write_memory(simulated.curves()?, to)?,
            Artefact::Trace => write_trace(&view, simulated.record()?, simulated.curves()?, to)?,
            Artefact::GanttPng => to.write_all(&self.gantt()?.to_png()?)?,
            Artefact::GanttSvg => to.write_all(self.gantt()?.to_svg()?.as_bytes())?,
            Artefact::MemoryPng => to.write_all(&self.memory()?.to_png()?)?,
            Artefact::MemorySvg => to.write_all(self.memory()?.to_svg()?.as_bytes())?,
        }
        Ok(())
    }

    fn gantt(&self) -> Result<&Picture> {
        let panel = (self.simulated.view(), self.simulated.record()?);
        Ok(self.gantt.get_or_init(|| gantt(&[panel])))
    }

    fn memory(&self) -> Result<&Picture> {
        let panel = (self.simulated.view(), self.simulated.curves()?);
        Ok(self.memory.get_or_init(|| memory_curves(&[panel])))
    }
}
