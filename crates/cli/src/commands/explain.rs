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
    Chosen, CriticalPath, IdleInterval, Inputs, Outcome, Posts, WhatIf, idle_intervals, makespan,
    makespan_of_comms, simulate, simulate_comms, what_if_by,
};

use crate::output::Target;
use crate::simulated::{Keep, Simulated, not_drawn, plan_of, step_of};
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
    let wanted = wanted(typed);
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

/// Everything that was asked for, with its target.
fn wanted(typed: &args::Explain) -> Vec<(Artefact, Target)> {
    let in_directory = typed.out.iter().flat_map(|directory| {
        let target = |name| Target::InDirectory(directory.clone(), name);
        EVERYTHING.map(|(artefact, name)| (artefact, target(name)))
    });
    let json = typed.json.iter().map(|path| (Artefact::Json, Target::from_argument(path)));
    in_directory.chain(json).collect()
}

fn write(all: &Explanation, artefact: Artefact, to: &mut dyn Write) -> Result<()> {
    match artefact {
        Artefact::Json => {
            let mut file = ResultFile::new(&all.view.labels.name);
            file.step = Some(StepResult::new(&all.view));
            file.explain = Some(ExplainResult::new(all));
            to.write_all(file.to_json().as_bytes())?;
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
struct Explained<'a> {
    labels: Labels,
    inputs: &'a Inputs,
    outcome: Outcome,
    idle: Vec<IdleInterval>,
    path: CriticalPath,
    what_if: WhatIf,
    micro_batches: Vec<OtherMicroBatches>,
    posts: Option<(Posts, Time)>,
    against: Option<Against>,
}

impl<'a> Explained<'a> {
    fn new(typed: &args::Explain, scenario: &'a Scenario) -> Result<Self> {
        let step = step_of(scenario)?;
        not_drawn(step)?;
        let inputs = &step.inputs;
        room::check(inputs.shape(), Keep::Everything)?;
        let plan = plan_of(scenario, step)?;
        let chosen = match plan {
            Plan::Fixed(_) => Chosen::Before,
            Plan::Online(_) => Chosen::Online,
        };
        let comms = match &step.order {
            OrderSource::File { orders, comms: Some(comms), .. } => Some((orders, comms)),
            _ => None,
        };
        let (outcome, posts) = match comms {
            None => (simulate(inputs, plan)?, None),
            Some((orders, comms)) => {
                let (outcome, posts) = simulate_comms(inputs, orders, comms)?;
                (outcome, Some((posts, makespan(inputs, orders)?)))
            }
        };
        let record = &outcome.record;
        let schedule = step.order.name().to_owned();
        Ok(Self {
            idle: idle_intervals(inputs, record, chosen),
            path: match &posts {
                None => CriticalPath::new(inputs, record),
                Some((posts, _)) => CriticalPath::with_posts(inputs, record, posts),
            },
            what_if: what_if_by(inputs, typed.faster, |inputs| match comms {
                None => makespan(inputs, &record.orders),
                Some((orders, comms)) => makespan_of_comms(inputs, orders, comms),
            })?,
            micro_batches: twice_the_micro_batches(typed, inputs).into_iter().collect(),
            against: against(typed, &schedule)?,
            labels: Labels {
                name: scenario.name.clone(),
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

/// The scenario with twice the micro-batches, if it and its schedule take them.
fn twice_the_micro_batches(typed: &args::Explain, inputs: &Inputs) -> Option<OtherMicroBatches> {
    let micro_batches = 2 * inputs.shape().micro_batches();
    let twice = Override::from(format!("pipeline.micro_batches={micro_batches}"), "twice the micro-batches");
    let scenario = load::scenario(&typed.scenario, &[twice]).ok()?;
    let simulated = Simulated::new(&scenario, Keep::Summary).ok()?;
    let summary = simulated.view().summary;
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
    let scenario = load::scenario(&typed.scenario, &[Override::schedule(name)])?;
    let simulated = Simulated::new(&scenario, Keep::Everything)?;
    let inputs = &step_of(&scenario)?.inputs;
    let record = simulated.record()?;
    let path = CriticalPath::new(inputs, record);
    let (messages_on_path, transfers_on_path) = transfers_on_path(&path, record);
    let summary = simulated.view().summary;
    Ok(Against {
        schedule: simulated.view().labels.schedule.clone(),
        makespan: summary.makespan,
        free_transfers: summary.zero_transfer_makespan,
        messages_on_path,
        transfers_on_path,
    })
}
