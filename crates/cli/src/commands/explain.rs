//! `pipestep explain`: why ranks are idle, what sets the makespan, what would help.

use std::io::Write;

use anyhow::{Context, Result, bail};
use pipestep_engine::Time;
use pipestep_report::{
    Against, ExplainResult, Explanation, Labels, OtherMicroBatches, Picture, PostsView, ResultFile,
    StepResult, StepView, explain_text, gantt_with_path, idle_text, path_events, transfers_on_path,
};
use pipestep_scenario::{OrderSource, Override, Scenario};
use pipestep_schedule::{Plan, Rank};
use pipestep_step::{
    Chosen, CriticalPath, IdleInterval, Inputs, Outcome, Posts, Record, WhatIf, idle_intervals, makespan,
    makespan_of_comms, simulate, simulate_comms, what_if_by,
};

use crate::output::Target;
use crate::simulated::{Keep, plan_of, step_of};
use crate::simulated_runs::OneRun;
use crate::{Ending, args, load, output, room};

/// What `--against` compares with when nothing is said.
const REFERENCE: &str = "fill-drain";

/// What can be written about an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Artefact {
    Json,
    Png,
    Svg,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Artefact, &str); 3] =
    [(Artefact::Png, "explain.png"), (Artefact::Svg, "explain.svg"), (Artefact::Json, "explain.json")];

/// Loads, simulates, finds causes, reports.
pub(crate) fn run(typed: &args::Explain) -> Result<Ending> {
    let scenario = load::scenario(&typed.scenario, &[])?;
    let wanted = output::targets(typed.out.as_deref(), EVERYTHING, [(Artefact::Json, typed.json.as_deref())]);
    output::check(wanted.iter().map(|(_, target)| target))?;

    let explained = Explained::new(typed, &scenario)?;
    let all = explained.explanation();
    let told = match typed.rank {
        None => explain_text(&all),
        Some(rank) if usize::from(rank) < all.view.shape.ranks() => idle_text(&all, Rank(rank)),
        Some(rank) => {
            let last = all.view.shape.ranks() - 1;
            bail!("`--rank {rank}`: the ranks of this scenario are 0 to {last}")
        }
    };
    output::write_all(&wanted, |artefact, to| write(&all, artefact, to))?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        output::print(&told)?;
    }
    Ok(Ending::Done)
}

/// What `--json` writes about a scenario when nothing else is asked for.
///
/// # Errors
/// A scenario that cannot be read or run.
pub(crate) fn result(scenario: args::Scenario) -> Result<serde_json::Value> {
    let typed = args::Explain {
        scenario,
        run: None,
        rank: None,
        faster: 10,
        against: None,
        out: None,
        json: None,
        quiet: true,
    };
    let scenario = load::scenario(&typed.scenario, &[])?;
    let explained = Explained::new(&typed, &scenario)?;
    Ok(serde_json::to_value(file(&explained.explanation()))?)
}

/// The explanation as JSON has it.
fn file(all: &Explanation) -> ResultFile {
    let mut file = ResultFile::new(&all.view.labels.name);
    file.step = Some(StepResult::new(&all.view));
    file.explain = Some(ExplainResult::new(all));
    file
}

fn write(all: &Explanation, artefact: Artefact, to: &mut dyn Write) -> Result<()> {
    match artefact {
        Artefact::Json => {
            to.write_all(file(all).to_json().as_bytes())?;
        }
        Artefact::Png => to.write_all(&picture(all).to_png()?)?,
        Artefact::Svg => to.write_all(picture(all).to_svg()?.as_bytes())?,
    }
    Ok(())
}

/// The critical path over the Gantt chart.
fn picture(all: &Explanation) -> Picture {
    let path = path_events(all.view.shape, all.record, all.path);
    gantt_with_path((all.view, all.record), &path)
}

/// A simulated step with all that explains it.
struct Explained {
    labels: Labels,
    inputs: Inputs,
    outcome: Outcome,
    idle: Vec<IdleInterval>,
    path: CriticalPath,
    what_if: WhatIf,
    micro_batches: Vec<OtherMicroBatches>,
    posts: Option<(Posts, Time)>,
    against: Option<Against>,
}

impl Explained {
    fn new(typed: &args::Explain, scenario: &Scenario) -> Result<Self> {
        let step = step_of(scenario)?;
        room::check(step.inputs.shape(), Keep::Everything)?;
        let one_run = OneRun::new(step, typed.run)?;
        let Ran { inputs, outcome, posts, chosen } = Ran::new(scenario, one_run)?;
        let record = &outcome.record;
        let schedule = step.order.name().to_owned();
        Ok(Self {
            idle: idle_intervals(&inputs, record, chosen),
            path: match &posts {
                None => CriticalPath::new(&inputs, record),
                Some((posts, _)) => CriticalPath::with_posts(&inputs, record, posts),
            },
            what_if: match (&step.order, one_run) {
                (OrderSource::File { orders, comms: Some(comms), .. }, _) => {
                    what_if_by(&step.inputs, typed.faster, |inputs| makespan_of_comms(inputs, orders, comms))?
                }
                (_, Some(run)) => {
                    what_if_by(&step.inputs, typed.faster, |inputs| run.makespan(inputs, &record.orders))?
                }
                _ => what_if_by(&step.inputs, typed.faster, |inputs| makespan(inputs, &record.orders))?,
            },
            micro_batches: twice_the_micro_batches(typed, &step.inputs).into_iter().collect(),
            against: against(typed, &schedule)?,
            labels: Labels {
                name: match one_run {
                    None => scenario.name.clone(),
                    Some(run) => format!("{}: {run}", scenario.name),
                },
                schedule,
                budgets: step.budget.clone().unwrap_or_default(),
            },
            posts,
            inputs,
            outcome,
        })
    }

    fn explanation(&self) -> Explanation<'_> {
        let view =
            StepView { labels: &self.labels, shape: self.inputs.shape(), summary: &self.outcome.summary };
        Explanation {
            view,
            record: &self.outcome.record,
            idle: &self.idle,
            path: &self.path,
            what_if: &self.what_if,
            micro_batches: &self.micro_batches,
            posts: self
                .posts
                .as_ref()
                .map(|(posts, without)| PostsView { posts, makespan_without: *without }),
            against: self.against.as_ref(),
        }
    }
}

/// A step that has run.
struct Ran {
    /// With the updates of the run, where lengths are drawn.
    inputs: Inputs,
    outcome: Outcome,
    /// When messages were posted and the makespan without that, where a file says when.
    posts: Option<(Posts, Time)>,
    chosen: Chosen,
}

impl Ran {
    fn new(scenario: &Scenario, one_run: Option<OneRun>) -> Result<Self> {
        let step = step_of(scenario)?;
        let plan = plan_of(scenario, step)?;
        let chosen = match plan {
            Plan::Fixed(_) => Chosen::Before,
            Plan::Online(_) => Chosen::Online,
        };
        let usual = || step.inputs.clone();
        if let OrderSource::File { orders, comms: Some(comms), .. } = &step.order {
            let (outcome, posts) = simulate_comms(&step.inputs, orders, comms)?;
            let posts = Some((posts, makespan(&step.inputs, orders)?));
            return Ok(Self { inputs: usual(), outcome, posts, chosen });
        }
        let (inputs, outcome) = match one_run {
            Some(run) => run.outcome(step, plan)?,
            None => (usual(), simulate(&step.inputs, plan)?),
        };
        Ok(Self { inputs, outcome, posts: None, chosen })
    }
}

/// Another scenario's step: in the same run, where lengths are drawn.
fn ran(typed: &args::Explain, change: Override) -> Result<Ran> {
    let scenario = load::scenario(&typed.scenario, &[change])?;
    let step = step_of(&scenario)?;
    room::check(step.inputs.shape(), Keep::Everything)?;
    Ran::new(&scenario, OneRun::new(step, typed.run)?)
}

/// The scenario with twice the micro-batches, if it and its schedule take them.
fn twice_the_micro_batches(typed: &args::Explain, inputs: &Inputs) -> Option<OtherMicroBatches> {
    let micro_batches = 2 * inputs.shape().micro_batches();
    let twice = Override::from(format!("pipeline.micro_batches={micro_batches}"), "twice the micro-batches");
    let summary = ran(typed, twice).ok()?.outcome.summary;
    Some(OtherMicroBatches {
        micro_batches,
        makespan: summary.makespan,
        bubble: summary.bubble().by_makespan,
    })
}

/// The same scenario under another schedule: the one that was asked for, or fill-drain where that is possible.
fn against(typed: &args::Explain, schedule: &str) -> Result<Option<Against>> {
    match typed.against.as_deref() {
        Some("none") => Ok(None),
        Some(other) if pipestep_schedule::find(other).is_none() => {
            bail!("`--against {other}`: there is no such schedule; `pipestep schedule list` names them")
        }
        Some(other) => {
            let found = other_schedule(typed, other);
            found.map(Some).with_context(|| format!("`--against {other}`"))
        }
        None if schedule == REFERENCE => Ok(None),
        None => Ok(other_schedule(typed, REFERENCE).ok()),
    }
}

fn other_schedule(typed: &args::Explain, name: &str) -> Result<Against> {
    let Ran { inputs, outcome, .. } = ran(typed, Override::schedule(name))?;
    let record: &Record = &outcome.record;
    let path = CriticalPath::new(&inputs, record);
    let (messages_on_path, transfers_on_path) = transfers_on_path(&path, record);
    let summary = &outcome.summary;
    Ok(Against {
        schedule: name_of_schedule(name),
        makespan: summary.makespan,
        free_transfers: summary.zero_transfer_makespan,
        messages_on_path,
        transfers_on_path,
    })
}

/// The name that results have for what may be an alias.
fn name_of_schedule(name: &str) -> String {
    pipestep_schedule::find(name).map_or(name, |schedule| schedule.entry().name).to_owned()
}
