//! `pipestep search`: the settings under which a step is shortest and still fits; or, over any keys, those with the
//! best job, rounds or step.

mod keys;

use anyhow::{Context, Result, bail};
use pipestep_engine::Bytes;
use pipestep_report::{Picture, tradeoff};

use crate::output::{Target, check, print, targets, write_all};
use crate::search::{Candidates, Effort, Evaluator, Found, command_line, dots, find, json, text};
use crate::{Ending, args};

/// More runs than this in all are refused: each is kept, as eight bytes.
const MOST_RUNS: u64 = 50_000_000;

/// What can be written about a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Artefact {
    Json,
    ParetoPng,
    ParetoSvg,
}

/// What `--out` writes, by file name.
const EVERYTHING: [(Artefact, &str); 3] = [
    (Artefact::ParetoPng, "pareto.png"),
    (Artefact::ParetoSvg, "pareto.svg"),
    (Artefact::Json, "search.json"),
];

/// Searches, and says what was found.
pub(crate) fn run(typed: &args::Search) -> Result<Ending> {
    let evaluator = Evaluator::new(&typed.scenario)?;
    let space = evaluator.space()?;
    if let Some(over) = keys::space(typed, &space)? {
        return keys::run(typed, &evaluator, &space, &over);
    }
    let wanted = targets(typed.out.as_deref(), EVERYTHING, [(Artefact::Json, typed.json.as_deref())]);
    check(wanted.iter().map(|(_, target)| target))?;
    let scenario = evaluator.written()?;
    if scenario.step.is_none() {
        bail!(
            "`{}` describes no step, so there are no schedules to try: write what to try in `[search.vary]` or \
             `[search.split]`, or `--vary KEY=VALUES`",
            scenario.name
        );
    }
    let name = scenario.name.clone();
    let candidates = Candidates::new(scenario)?;
    let runs = typed.runs.or(space.runs);
    if runs.is_some() && !candidates.are_drawn() {
        bail!(
            "{} needs a `[jitter]` that says how lengths scatter",
            if typed.runs.is_some() { "`--runs`" } else { "`search.runs`" }
        );
    }
    if candidates.are_drawn() {
        let usual = candidates.written.jitter.as_ref().map_or(1, |jitter| jitter.runs);
        check_runs(candidates.settings.len() as u64, runs.unwrap_or(usual))?;
    }
    let evaluator = evaluator.with_runs(runs);
    let effort = if typed.exhaustive { Effort::Exhaustive } else { Effort::Pruned };
    let shown = 1 + usize::from(typed.runners_up);
    let found = threads(typed)?.install(|| find(&evaluator, &candidates, shown, effort));

    write_all(&wanted, |artefact, to| {
        match artefact {
            Artefact::Json => to.write_all(json(&name, &candidates, &found, effort).as_bytes())?,
            Artefact::ParetoPng => to.write_all(&picture(&name, &candidates, &found).to_png()?)?,
            Artefact::ParetoSvg => to.write_all(picture(&name, &candidates, &found).to_svg()?.as_bytes())?,
        }
        Ok(())
    })?;
    let stdout_is_taken = wanted.iter().any(|(_, target)| *target == Target::Stdout);
    if !typed.quiet && !stdout_is_taken {
        let again = found.best.first().map(|best| {
            let path = typed.scenario.path.display().to_string();
            command_line(&path, &typed.scenario.set, candidates.settings[best.index].sets())
        });
        print(&text(&name, &candidates, &found, &again.unwrap_or_default()))?;
    }
    Ok(if found.best.is_empty() { Ending::DoesNotFit } else { Ending::Done })
}

/// Refuses more runs in all than can be kept side by side.
fn check_runs(settings: u64, runs: u32) -> Result<()> {
    if settings.saturating_mul(u64::from(runs)) > MOST_RUNS {
        bail!("{settings} settings of {runs} runs each are more than {MOST_RUNS} runs: take fewer of either");
    }
    Ok(())
}

/// As many threads as were asked for.
fn threads(typed: &args::Search) -> Result<rayon::ThreadPool> {
    let jobs = typed.jobs.map_or(0, usize::from);
    let threads = rayon::ThreadPoolBuilder::new().num_threads(jobs).build();
    threads.context("cannot start the threads of the search")
}

fn picture(name: &str, candidates: &Candidates, found: &Found) -> Picture {
    let budget: Option<Bytes> =
        candidates.written.budget.as_ref().and_then(|budget| budget.iter().min().copied());
    tradeoff(&format!("{name}: time against memory"), &dots(candidates, found), budget)
}
