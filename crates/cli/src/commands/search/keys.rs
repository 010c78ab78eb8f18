//! `pipestep search` over any keys.

use anyhow::{Context, Result, bail};
use pipestep_engine::{Duration, Time};
use pipestep_job::Reference;
use pipestep_scenario::{Scenario, SearchSpace};

use crate::output::{Target, check, print, targets, write_all};
use crate::search::keys::{
    About, FoundKeys, KeySpace, Subject, along, bottleneck, find, json, overrides, picture, sets, text,
};
use crate::search::{Evaluator, command_line};
use crate::sweep::{Progress, step_summary, varied};
use crate::{Ending, args};

/// What can be written about a search over keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Artefact {
    Json,
    Png,
    Svg,
}

/// If none of so many settings at the beginning can be read, it is the scenario that is wrong.
const LOOKED_AT: u64 = 256;

/// The keys to search over, if there are any.
///
/// # Errors
/// A `--vary` that is wrong; keys of the other kind of search beside them.
pub(super) fn space(typed: &args::Search, written: &SearchSpace) -> Result<Option<KeySpace>> {
    let vary = varied(&written.vary, &typed.vary, &typed.scenario.set)?;
    let space = KeySpace::new(&vary, written.split.as_ref())?;
    let of_steps = [
        ("schedules", written.schedules.is_some(), "\"pipeline.schedule\""),
        ("most_chunks", written.most_chunks.is_some(), "\"pipeline.chunks\""),
        ("micro_batch_sizes", written.micro_batch_sizes.is_some(), "\"model.micro_batch_size\""),
        ("ranks", written.ranks.is_some(), "\"pipeline.ranks\""),
        ("recompute", written.recompute.is_some(), "\"model.recompute\""),
    ];
    match (&space, of_steps.into_iter().find(|(_, is_written, _)| *is_written)) {
        (Some(_), Some((key, _, instead))) => bail!(
            "`search.{key}` is tried where no keys are varied; beside others write {instead} in `[search.vary]`"
        ),
        (None, _) if written.objective.is_some() => bail!(
            "`search.objective` needs keys to vary: write them in `[search.vary]`, or `--vary KEY=VALUES`"
        ),
        _ => Ok(space),
    }
}

/// Searches, and says what was found.
pub(super) fn run(
    typed: &args::Search,
    evaluator: &Evaluator,
    written: &SearchSpace,
    space: &KeySpace,
) -> Result<Ending> {
    let wanted = wanted(typed, space);
    check(wanted.iter().map(|(_, target)| target))?;
    let scenario = first_legal(evaluator, space)?;
    let subject = Subject::new(&scenario, written.objective, typed.runs.or(written.runs))?;
    super::check_runs(space.settings, subject.runs)?;
    let shown = 1 + usize::from(typed.runners_up);
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    let progress = Progress::new(0, space.settings, typed.quiet);
    let found = super::threads(typed)?.install(|| find(evaluator, space, subject, shown, progress));
    let about = about(typed, evaluator, space, &scenario.name, &found)?;
    write_all(&wanted, |artefact, to| {
        match artefact {
            Artefact::Json => to.write_all(json(&about, &found).as_bytes())?,
            Artefact::Png => to.write_all(&drawn(&about, &found)?.to_png()?)?,
            Artefact::Svg => to.write_all(drawn(&about, &found)?.to_svg()?.as_bytes())?,
        }
        Ok(())
    })?;
    if !typed.quiet && !stdout_is_taken {
        print(&text(&about, &found))?;
    }
    Ok(if found.order.is_empty() { Ending::DoesNotFit } else { Ending::Done })
}

fn drawn(about: &About, found: &FoundKeys) -> Result<pipestep_report::Picture> {
    picture(about, found).context("there is nothing to draw: no setting could be simulated")
}

/// The first setting that can be read, for its name and its parts.
fn first_legal(evaluator: &Evaluator, space: &KeySpace) -> Result<Scenario> {
    let mut first_error = None;
    for number in 0..space.settings.min(LOOKED_AT) {
        match evaluator.read(overrides(&space.setting(number)).collect()) {
            Ok(scenario) => return Ok(scenario),
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    Err(first_error.context("internal error: a space without settings")?.into())
}

/// What is said besides what was found.
fn about<'a>(
    typed: &args::Search,
    evaluator: &Evaluator,
    space: &'a KeySpace,
    name: &'a str,
    found: &FoundKeys,
) -> Result<About<'a>> {
    let scenario_of = |index: usize| -> Result<Scenario> {
        Ok(evaluator.read(overrides(&found.tried[index].setting).collect())?)
    };
    let mut about = About {
        scenario: name,
        space,
        shown: 1 + usize::from(typed.runners_up),
        references: Vec::new(),
        bottlenecks: [None, None],
        again: String::new(),
    };
    let Some(&best) = found.order.first() else { return Ok(about) };
    let path = typed.scenario.path.display().to_string();
    about.again = command_line(&path, &typed.scenario.set, sets(&found.tried[best].setting));
    let scenario = scenario_of(best)?;
    about.references = references(&scenario)?;
    if found.subject.is_of_rounds(&scenario) {
        about.bottlenecks[0] = bottleneck(&scenario)?;
        if let Some(&next) = found.order.get(1) {
            about.bottlenecks[1] = bottleneck(&scenario_of(next)?)?;
        }
    }
    Ok(about)
}

/// The closed forms of a job.
fn references(scenario: &Scenario) -> Result<Vec<Reference>> {
    let Some(job) = &scenario.job else { return Ok(Vec::new()) };
    let length = scenario.step.as_ref().map(step_summary).transpose()?;
    let length: Option<Duration> = length.map(|summary| summary.makespan.since(Time::ZERO));
    Ok(job.inputs(length)?.references())
}

/// Everything that was asked for, with its target.
fn wanted(typed: &args::Search, space: &KeySpace) -> Vec<(Artefact, Target)> {
    let pictures = [(Artefact::Png, "search.png"), (Artefact::Svg, "search.svg")];
    let pictures = pictures.into_iter().filter(|_| along(space).is_some());
    let files = pictures.chain([(Artefact::Json, "search.json")]);
    targets(typed.out.as_deref(), files, [(Artefact::Json, typed.json.as_deref())])
}
