//! `[rl]`, as `pipestep-rl` takes it.

mod around;
mod sharing;
mod stages;

use pipestep_engine::Duration;
use pipestep_rl::{
    AsyncRule, Fraction, Group, GroupCut, InFlight, Keep, KvCache, Mode, Placement, RlInputs, ScoringStart,
    Switching,
};

use super::{Broken, Models};
use crate::diagnostic::{Diagnostic, Span};
use crate::files::Files;
use crate::format::File;
use crate::format::rl::{
    self as written, CacheWord, CutWord, InFlightWord, KeepWord, ModeWord, PlacementWord, StartWord,
};
use crate::read::{Count, Key, Problems, Word};
use crate::rl::RlScenario;
use crate::step::StepScenario;
use crate::tree::Table;
use crate::units::{Factor, Share};

/// What the rounds of a file are read with.
struct Reading<'r, 'f> {
    models: &'r Models,
    /// The step of the file, if it has one that could be read.
    step: Option<&'r StepScenario>,
    /// Whether the file has a step at all.
    has_step: bool,
    files: &'r mut Files<'f>,
    problems: &'r mut Problems,
}

impl Reading<'_, '_> {
    /// Reports something wrong.
    fn refuse(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) -> Broken {
        self.problems.push(Diagnostic::new(span, message).help(help));
        Broken
    }

    /// A factor in the 32 bits that the rounds count with.
    fn fraction(&mut self, factor: Factor, path: &str, span: Option<Span>) -> Result<Fraction, Broken> {
        let numbers = (u32::try_from(factor.numerator), u32::try_from(factor.denominator));
        if let (Ok(numerator), Ok(denominator)) = numbers {
            return Fraction::new(numerator, denominator).ok_or(Broken);
        }
        let message = format!("`{path}`: too many digits");
        Err(self.refuse(span.unwrap_or(Span::FILE), message, "round it to six decimals"))
    }
}

/// The rounds of a file, if it has any; `step` is its step, if that could be read.
pub(crate) fn lower_rl(
    file: &File,
    root: &Table,
    models: &Models,
    step: Option<&StepScenario>,
    files: &mut Files<'_>,
    problems: &mut Problems,
) -> Result<Option<RlScenario>, Broken> {
    let Some((rl, span)) = file.rl.given()? else {
        return Ok(None);
    };
    let mut reading = Reading { models, step, has_step: !file.pipeline.is_absent(), files, problems };
    let rollout = stages::rollout(rl, &mut reading);
    let scoring = stages::scoring(rl, &mut reading);
    let update = stages::update(rl, &mut reading);
    let sync = around::sync(rl, &mut reading);
    let mode = mode(rl, &mut reading);
    let group = group(rl);
    let keep = keep(rl, &mut reading);
    let placement = placement(rl, &mut reading);
    let faults = around::faults(rl, &mut reading);
    let prices = around::prices(rl, &mut reading);
    let batch = rl.batch.get().ok_or(Broken)?.0;
    let mode = mode?;
    let scoring_start = match &rl.scoring_start {
        Key::Absent => mode.usual_scoring_start(),
        Key::Broken => return Err(Broken),
        Key::Given(Word(StartWord::WholeBatch), _) => ScoringStart::WholeBatch,
        Key::Given(Word(StartWord::AsFinished), _) => ScoringStart::AsFinished,
    };
    if rl.discard_older_than.is_broken() {
        return Err(Broken);
    }
    let (update, step_tokens) = update?;
    let base = RlInputs {
        mode,
        batch,
        launch: rl.launch.or(Count(batch)).ok_or(Broken)?.0,
        group: group?,
        rounds: rl.rounds.or(Count(20)).ok_or(Broken)?.0,
        warmup: rl.warmup.or(1).ok_or(Broken)?,
        seed: rl.seed.or(0).ok_or(Broken)?,
        rollout: rollout?,
        scoring: scoring?,
        scoring_start,
        update,
        sync: sync?,
        keep: keep?,
        discard_older_than: rl.discard_older_than.get().copied(),
        placement: placement?,
        faults: faults?,
        prices: prices?,
        sharing: None,
    };
    let base = RlInputs { sharing: sharing::sharing(rl, &base, &mut reading)?, ..base };
    let scenario = RlScenario { base, step_tokens, span, written: root.clone() };
    check(&scenario, problems)?;
    Ok(Some(scenario))
}

/// Checks what can be checked before the length of a step is known.
fn check(scenario: &RlScenario, problems: &mut Problems) -> Result<(), Broken> {
    const STAND_IN: Duration = Duration::from_nanos(1_000_000_000);
    scenario.inputs(Some(STAND_IN)).map(|_| ()).map_err(|error| {
        problems.push(scenario.refused(&error));
        Broken
    })
}

/// The mode, with the keys that only some modes have.
fn mode(rl: &written::Rl, reading: &mut Reading<'_, '_>) -> Result<Mode, Broken> {
    let word = rl.mode.get().ok_or(Broken)?.0;
    let in_flight = rl.in_flight.or(Word(InFlightWord::Drain)).ok_or(Broken)?.0;
    let cuts = word == ModeWord::Partial || (word == ModeWord::Async && in_flight == InFlightWord::Continue);
    let only = [
        ("staleness", rl.staleness.span(), word == ModeWord::Async, "mode = \"async\""),
        ("sync_every", rl.sync_every.span(), word == ModeWord::Async, "mode = \"async\""),
        ("in_flight", rl.in_flight.span(), word == ModeWord::Async, "mode = \"async\""),
        ("kv_cache", rl.kv_cache.span(), cuts, "mode = \"partial\", or async with in_flight = \"continue\""),
    ];
    let mut result = Ok(());
    for (name, span, allowed, modes) in only {
        if let (Some(span), false) = (span, allowed) {
            let message = format!("`rl.{name}` is for {modes}");
            let problem = Diagnostic::new(span, message).related(rl.mode.span(), "the mode");
            reading.problems.push(problem.help(format!("leave out `{name}`")));
            result = Err(Broken);
        }
    }
    result?;
    let cache = match rl.kv_cache.or(Word(CacheWord::Kept)).ok_or(Broken)?.0 {
        CacheWord::Kept => KvCache::Kept,
        CacheWord::Recomputed => KvCache::Recomputed,
    };
    Ok(match word {
        ModeWord::Sync => Mode::Sync,
        ModeWord::OneStepOff => Mode::OneStepOff,
        ModeWord::Partial => Mode::Partial(cache),
        ModeWord::Stream => Mode::Stream,
        ModeWord::Async => {
            let staleness = rl.staleness.or(Factor::ONE).ok_or(Broken)?;
            Mode::Async(AsyncRule {
                staleness: reading.fraction(staleness, "rl.staleness", rl.staleness.span())?,
                sync_every: rl.sync_every.or(Count(1)).ok_or(Broken)?.0,
                in_flight: match in_flight {
                    InFlightWord::Drain => InFlight::Drain,
                    InFlightWord::Continue => InFlight::Continue(cache),
                    InFlightWord::Abort => InFlight::Abort,
                },
            })
        }
    })
}

/// How many responses each prompt has.
fn group(rl: &written::Rl) -> Result<Group, Broken> {
    let Some((group, _)) = rl.group.given()? else {
        return Ok(Group::SINGLE);
    };
    let responses = group.responses.get().ok_or(Broken)?.0;
    Ok(Group {
        responses,
        launch: group.launch.or(Count(responses)).ok_or(Broken)?.0,
        cut: match group.cut.or(Word(CutWord::Each)).ok_or(Broken)?.0 {
            CutWord::Each => GroupCut::Each,
            CutWord::Shortest => GroupCut::Shortest,
        },
    })
}

fn keep(rl: &written::Rl, reading: &mut Reading<'_, '_>) -> Result<Keep, Broken> {
    let by = rl.keep_by.or(Word(KeepWord::Evenly)).ok_or(Broken)?.0;
    let share = match &rl.keep {
        Key::Absent => return Ok(Keep::All),
        Key::Broken => return Err(Broken),
        Key::Given(Share { numerator, denominator }, _) => {
            Factor { numerator: *numerator, denominator: *denominator }
        }
    };
    let share = reading.fraction(share, "rl.keep", rl.keep.span())?;
    Ok(match by {
        KeepWord::Evenly => Keep::Evenly(share),
        KeepWord::Randomly => Keep::Randomly(share),
    })
}

fn placement(rl: &written::Rl, reading: &mut Reading<'_, '_>) -> Result<Placement, Broken> {
    let word = rl.placement.or(Word(PlacementWord::Separate)).ok_or(Broken)?.0;
    let memory = around::memory(rl, reading);
    if word == PlacementWord::Colocated {
        return Ok(Placement::Colocated(Switching {
            to_training: rl.to_training.or(Duration::ZERO).ok_or(Broken)?,
            to_rollout: rl.to_rollout.or(Duration::ZERO).ok_or(Broken)?,
            memory: memory?,
        }));
    }
    let only = [
        ("to_training", rl.to_training.span()),
        ("to_rollout", rl.to_rollout.span()),
        ("memory", rl.memory.span()),
    ];
    let stray = only.into_iter().find_map(|(name, span)| Some((name, span?)));
    match stray {
        None => Ok(Placement::Separate),
        Some((name, span)) => {
            let message = format!("`rl.{name}` is about colocated devices");
            let help = format!("leave out `{name}`, or write `placement = \"colocated\"`");
            Err(reading.refuse(span, message, help))
        }
    }
}
