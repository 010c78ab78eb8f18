//! `pipestep schedule show`: one schedule, drawn in letters and described.

use anyhow::Result;
use pipestep_report::{Ink, TextGantt, text_gantt};

use crate::output::Stream;
use crate::simulated::{Keep, Simulated, step_of};
use crate::{Ending, args, output};

/// Simulates the schedule for equal stages and prints its Gantt chart.
pub(crate) fn run(typed: &args::Show) -> Result<Ending> {
    let scenario = super::scenario_for(&typed.name, "schedule", &typed.numbers)?;
    let simulated = Simulated::new(&scenario, Keep::Everything)?;
    let view = simulated.view();
    let ink = if output::takes_colours(Stream::Output) { Ink::Ansi } else { Ink::Plain };
    let drawing = TextGantt { width: typed.width.into(), ink };
    let schedule = step_of(&scenario)?.order.schedule();
    let about = schedule.map(|schedule| super::describe(schedule.entry()));
    let gantt = text_gantt(&view, simulated.record()?, drawing);
    let heading = format!("{}: {}", view.labels.schedule, view.shape_text());
    output::print(&format!("{heading}\n\n{gantt}\n{}", about.unwrap_or_default()))?;
    Ok(Ending::Done)
}
