//! Writes what was asked for about a run; each picture is drawn once and encoded as often as it is wanted.

use std::cell::OnceCell;
use std::io::Write;

use anyhow::{Context, Result};
use pipestep_report::{
    JobResult, Picture, ResultFile, RlResult, StepResult, StepRunsResult, events, gantt, job_completion,
    job_losses, job_storage, job_timeline, memory_curves, rl_lengths, rl_staleness, rl_timeline,
    step_runs_histogram, write_events, write_memory, write_trace,
};

use super::Everything;
use super::artefact::{Artefact, Drawing};
use crate::simulated::Simulated;
use crate::simulated_job::SimulatedJob;
use crate::simulated_rl::SimulatedRl;

/// A run with the pictures drawn so far.
pub(super) struct Report<'a> {
    name: &'a str,
    simulated: &'a Everything,
    drawn: [OnceCell<Picture>; Drawing::COUNT],
}

impl<'a> Report<'a> {
    pub(super) fn new(name: &'a str, simulated: &'a Everything) -> Self {
        Self { name, simulated, drawn: [const { OnceCell::new() }; Drawing::COUNT] }
    }

    pub(super) fn write(&self, artefact: Artefact, to: &mut dyn Write) -> Result<()> {
        match artefact {
            Artefact::Json => to.write_all(self.result().to_json().as_bytes())?,
            Artefact::Events => {
                let step = self.step()?;
                write_events(&events(step.view().shape, step.record()?), to)?;
            }
            Artefact::Memory => write_memory(self.step()?.curves()?, to)?,
            Artefact::Trace => {
                let step = self.step()?;
                write_trace(&step.view(), step.record()?, step.curves()?, to)?;
            }
            Artefact::Png(drawing) => to.write_all(&self.picture(drawing)?.to_png()?)?,
            Artefact::Svg(drawing) => to.write_all(self.picture(drawing)?.to_svg()?.as_bytes())?,
        }
        Ok(())
    }

    pub(super) fn result(&self) -> ResultFile {
        let mut file = ResultFile::new(self.name);
        file.step = self.simulated.step.as_ref().map(|step| StepResult {
            jitter: self.simulated.step_runs.as_ref().and_then(StepRunsResult::new),
            fitting_micro_batch_size: self.simulated.smaller.and_then(|smaller| smaller.fits),
            ..StepResult::new(&step.view())
        });
        file.job = self.simulated.job.as_ref().map(|job| JobResult::new(&job.view()));
        file.rl = self.simulated.rl.as_ref().map(|rl| RlResult::new(&rl.view()));
        file
    }

    fn picture(&self, drawing: Drawing) -> Result<&Picture> {
        let place = &self.drawn[drawing as usize];
        if let Some(picture) = place.get() {
            return Ok(picture);
        }
        let picture = self.draw(drawing)?;
        Ok(place.get_or_init(|| picture))
    }

    fn draw(&self, drawing: Drawing) -> Result<Picture> {
        let single = "internal error: a distribution was asked for of a single run";
        Ok(match drawing {
            Drawing::Gantt => gantt(&[(self.step()?.view(), self.step()?.record()?)]),
            Drawing::Memory => memory_curves(&[(self.step()?.view(), self.step()?.curves()?)]),
            Drawing::Scatter => {
                let runs = self.simulated.step_runs.as_ref();
                step_runs_histogram(runs.context("internal error: runs were asked for of a step without")?)
            }
            Drawing::Job => job_timeline(&self.job()?.view()),
            Drawing::Storage => job_storage(&self.job()?.view()),
            Drawing::Completion => job_completion(&self.job()?.view()).context(single)?,
            Drawing::Losses => job_losses(&self.job()?.view()).context(single)?,
            Drawing::Rl => rl_timeline(&self.rl()?.view()),
            Drawing::Lengths => rl_lengths(&self.rl()?.view()),
            Drawing::Staleness => rl_staleness(&self.rl()?.view()),
        })
    }

    fn step(&self) -> Result<&Simulated> {
        self.simulated.step.as_ref().context("internal error: what a step has was asked for without one")
    }

    fn job(&self) -> Result<&SimulatedJob> {
        self.simulated.job.as_ref().context("internal error: what a job has was asked for without one")
    }

    fn rl(&self) -> Result<&SimulatedRl> {
        self.simulated.rl.as_ref().context("internal error: what rounds have was asked for without any")
    }
}
